/* What the router decided and what came of it, in an SQLite file that survives a crash: each call returns when its
 * line is on the disk. Several processes and threads may use one file at once; a store object serves any number of
 * threads, and those that write at the same time share a commit, so that many of them write more lines a second than a
 * disk makes commits.
 *
 * docs/router.md describes the table.
 */
#ifndef LP_ROUTER_STORE_H
#define LP_ROUTER_STORE_H

#include "runtime/router/router.h"

typedef struct lp_store lp_store;
/* Opens or makes the file. An error when it is another program's or a newer version's. */
LP_MUST_USE lp_status lp_store_open(const char *path, lp_store **out, lp_diag *diag);
void lp_store_close(lp_store *store); /* NULL is allowed */

/* Notes a decision; `id` is its name from now on. */
LP_MUST_USE lp_status lp_store_decision(lp_store *store, const lp_router_request *request, const lp_decision *decision,
                                        int64_t *id, lp_diag *diag);
/* Notes the outcome of a decision. A second outcome of the same decision is an error, as is one of a decision that is
 * not there. */
LP_MUST_USE lp_status lp_store_outcome(lp_store *store, int64_t id, double reward, bool good, lp_diag *diag);

typedef struct {
  int64_t id;
  lp_router_request request; /* delay_s and mean_reward are not kept */
  lp_decision decision;
  bool has_outcome, good;
  double reward;
} lp_stored;
/* How many decisions were noted. */
LP_MUST_USE lp_status lp_store_count(lp_store *store, int64_t *out, lp_diag *diag);
/* One decision, for `explain`. Its texts are in `arena`. */
LP_MUST_USE lp_status lp_store_get(lp_store *store, int64_t id, lp_arena *arena, lp_stored *out, lp_diag *diag);
/* Visits decisions that have an outcome, in the order in which the outcomes came: the newest `most`, 0 for all. The
 * texts live during the call. */
LP_MUST_USE lp_status lp_store_each(lp_store *store, int64_t most, void (*visit)(void *user, const lp_stored *stored),
                                    void *user, lp_diag *diag);

#endif
