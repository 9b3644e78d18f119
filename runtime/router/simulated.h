/* The learning policies in the simulator's form (runtime/simulate/simulate.h). */
#ifndef LP_ROUTER_SIMULATED_H
#define LP_ROUTER_SIMULATED_H

#include "runtime/router/router.h"
#include "runtime/simulate/simulate.h"

/* The simulator's plain policies and, each with epsilon 0.1: "router" (in-context learning, replay `ema`),
 * "router-paper" (replay `reward`), "latest", "greedy" (replay `reward`, no exploration), "q-table", "dqn" and
 * "oracle-explore" (the oracle that explores as they do: the best they can come to). With spec->embedded also
 * "router-embedded" and "router-embedded-paper". A request's keywords are its class, "quality" where that is asked
 * for, and how long the edge's queue is. */
typedef struct lp_router_sim lp_router_sim;
/* Of `spec` the model (NULL: "lookup") and what belongs to it count; its texts are borrowed. An error when the model,
 * or the embedded one, cannot decide. */
LP_MUST_USE lp_status lp_router_sim_open(const lp_policy_spec *spec, lp_router_sim **out, lp_diag *diag);
lp_sim_policies lp_router_sim_policies(const lp_router_sim *sim); /* borrowed */
void lp_router_sim_close(lp_router_sim *sim);                     /* NULL is allowed */

#endif
