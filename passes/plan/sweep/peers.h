/* The messages between the processes of a sweep. */
#ifndef LP_SWEEP_PEERS_H
#define LP_SWEEP_PEERS_H

#include "passes/plan/sweep/sweep.h"

/* Rows to compute: `count` positions of the order of work. */
typedef struct {
  uint64_t from;  /* UINT64_MAX: none is left */
  uint64_t count; /* 1 to 64 */
  uint64_t done;  /* bit i: position from + i is done already */
} lp_sweep_turns;

/* What process 0 does with messages. */
typedef struct {
  void *user;
  lp_sweep_turns (*next)(void *user);
  bool (*take)(void *user, const char *line); /* a journal's line; false when it is none */
  void (*evaluated)(void *user, uint64_t evaluations);
} lp_sweep_leader;

/* Process 0: answers the others until all have left. `key` as in the journal; false when another process has another
 * sweep, failed, or sent what is no row: no more rows are handed out then. */
bool lp_sweep_peers_lead(const lp_peers *peers, const char *key, const lp_sweep_leader *leader);
/* The others: greet first, then send finished lines (which are cleared) and get rows, and leave at last. */
void lp_sweep_peers_greet(const lp_peers *peers, const char *key);
lp_sweep_turns lp_sweep_peers_ask(const lp_peers *peers, lp_buf *lines, uint64_t evaluations);
void lp_sweep_peers_leave(const lp_peers *peers, bool failed);

#endif
