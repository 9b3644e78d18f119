/* The workers of a split that the configuration names: of a bundle with more than two places, groups of them with one
 * for each place, which answer and are away together. A thread for each worker greets it, so that a worker that has
 * ended, was stopped or hangs gets no requests, and gets them again when it is back. Any number of threads may use
 * them. */
#pragma once

#include "runtime/serve/place/breaker.h"
#include "runtime/serve/place/site.h"

typedef struct lp_remote lp_remote;
typedef struct lp_remotes lp_remotes;

/* Borrows both until lp_remotes_close. If passes can run the bundle, each worker gets an engine. */
LP_MUST_USE lp_status lp_remotes_open(const lp_bundle *bundle, const lp_serve_bundle *config, lp_remotes **out,
                                      lp_diag *diag);
void lp_remotes_close(lp_remotes *remotes); /* NULL is allowed */
/* Chooses among the workers that take requests one for a prompt (visits.h); NULL: there is none. `*tried` has a bit for
 * each worker that is not wanted, and gets the one of the result, for which lp_remote_end must be called. */
lp_remote *lp_remotes_choose(lp_remotes *remotes, uint64_t tenant, const lp_tokens *prompt, uint64_t *tried);
const char *lp_remote_address(const lp_remote *remote);                 /* borrowed, as the configuration has it */
const lp_place_addresses *lp_remote_addresses(const lp_remote *remote); /* borrowed: the same, read */
lp_engine *lp_remote_engine(lp_remote *remote);                         /* borrowed; NULL: requests have sessions */
/* A request has ended. A worker that was `lost` is greeted before it gets another one. */
void lp_remote_end(lp_remote *remote, lp_outcome outcome, bool lost);
/* Tells whether a worker that is down was up within this time, and so may soon be again. */
bool lp_remotes_come_back(const lp_remotes *remotes, double within_ms);
/* Why one of the workers does not answer; "": that is not known of any. */
void lp_remotes_reason(lp_remotes *remotes, char out[LP_WORKER_REASON]);
/* Sets the members of the workers, and adds what their engines run. */
void lp_remotes_tell(lp_remotes *remotes, lp_site_state *out);
