/* Decisions of the router and their outcomes, in an SQLite file that survives a crash: each call returns when its row
 * is on the disk. Several processes and threads may use one file at once. Any number of threads may use a store object;
 * those that write at the same time share a commit, so that they can write more rows a second than the disk does
 * commits.
 *
 * docs/router.md describes the table. */
#ifndef LP_ROUTER_STORE_H
#define LP_ROUTER_STORE_H

#include "runtime/router/router.h"

typedef struct lp_store lp_store;
/* Opens or makes the file. Fails when it belongs to another program or to a newer version. */
LP_MUST_USE lp_status lp_store_open(const char *path, lp_store **out, lp_diag *diag);
void lp_store_close(lp_store *store); /* NULL is allowed */

/* Adds a decision; `id` receives its number. */
LP_MUST_USE lp_status lp_store_decision(lp_store *store, const lp_router_request *request, const lp_decision *decision,
                                        int64_t *id, lp_diag *diag);
/* Adds the outcome of a decision. Fails when the decision does not exist or has an outcome. */
LP_MUST_USE lp_status lp_store_outcome(lp_store *store, int64_t id, double reward, bool good, lp_diag *diag);

typedef struct {
  int64_t id;
  lp_router_request request; /* delay_s and mean_reward are not stored */
  lp_decision decision;
  bool has_outcome, good;
  double reward;
} lp_stored;
/* The number of decisions in the store. */
LP_MUST_USE lp_status lp_store_count(lp_store *store, int64_t *out, lp_diag *diag);
/* Reads one decision, for `explain`. Its texts are in `arena`. */
LP_MUST_USE lp_status lp_store_get(lp_store *store, int64_t id, lp_arena *arena, lp_stored *out, lp_diag *diag);
/* Visits decisions that have an outcome, in the order of the outcomes: the newest `most`, or all for 0. The texts are
 * valid during the call. */
LP_MUST_USE lp_status lp_store_each(lp_store *store, int64_t most, void (*visit)(void *user, const lp_stored *stored),
                                    void *user, lp_diag *diag);

#endif
