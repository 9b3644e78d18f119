/* Decisions of the router and their outcomes, in a pool that survives a crash: each call returns when its row is on the
 * disk. A pool is an SQLite file, or a PostgreSQL database that servers on several machines share. Several processes
 * and threads may use one pool at once. Any number of threads may use a store object; those that write at the same time
 * share a commit, so that they can write more rows a second than the disk does commits.
 *
 * docs/router.md describes the tables. */
#pragma once

#include "runtime/router/router.h"

typedef struct lp_store lp_store;
/* Tells whether the pool's name is the URL of a database ("postgresql://..."), and not a path. */
bool lp_store_is_url(const char *pool);
/* Opens the pool, and makes the file or the tables if they do not exist. Fails when they belong to another program or
 * to a newer version. Messages show a URL without its password. */
LP_MUST_USE lp_status lp_store_open(const char *pool, lp_store **out, lp_diag *diag);
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
  int64_t sequence; /* of the outcome: later ones have greater numbers */
} lp_stored;
/* The number of decisions in the store. */
LP_MUST_USE lp_status lp_store_count(lp_store *store, int64_t *out, lp_diag *diag);
/* Reads one decision, for `explain`. Its texts are in `arena`. */
LP_MUST_USE lp_status lp_store_get(lp_store *store, int64_t id, lp_arena *arena, lp_stored *out, lp_diag *diag);
/* Visits decisions that have an outcome, in the order of the outcomes: the newest `most`, or all for 0. The texts are
 * valid during the call, in which the store must not be used. */
typedef void lp_store_visit(void *user, const lp_stored *stored);
LP_MUST_USE lp_status lp_store_each(lp_store *store, int64_t most, lp_store_visit *visit, void *user, lp_diag *diag);
/* Visits the outcomes that came since the last call of this function or lp_store_each, but from the second call on not
 * those that this object added itself. So a server learns from the others that share the pool. */
LP_MUST_USE lp_status lp_store_follow(lp_store *store, lp_store_visit *visit, void *user, lp_diag *diag);
