/* The learning policies in the simulator's form (runtime/simulate/simulate.h). */
#ifndef LP_ROUTER_SIMULATED_H
#define LP_ROUTER_SIMULATED_H

#include "runtime/router/router.h"
#include "runtime/simulate/simulate.h"

/* The simulator's plain policies and, each with epsilon 0.1: "router" (in-context learning, replay `ema`, deciding by
 * lookup), "router-paper" (replay `reward`), "latest", "greedy" (no exploration), "q-table", "dqn"; with `embedded`, a bundle,
 * also "router-embedded" and "router-embedded-paper". A request's keywords are its class, "quality" where that is asked for, and how long the edge's
 * queue is. One table at a time; it lives until the next call. An error when the bundle cannot decide. */
LP_MUST_USE lp_status lp_router_sim_policies(const char *embedded, lp_sim_policies *out, lp_diag *diag);

#endif
