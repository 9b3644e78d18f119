/* The learning policies in the simulator's interface (runtime/simulate/simulate.h). */
#pragma once

#include "runtime/router/router.h"
#include "runtime/simulate/simulate.h"

/* The simulator's plain policies and, each with epsilon 0.1: "router" (in-context learning, replay `ema`),
 * "router-paper" (replay `reward`), "latest", "greedy" (replay `reward`, no exploration), "quickest", "q-table", "dqn"
 * and "oracle-explore" (the oracle with the same exploration: the best that a learner can reach). With spec->embedded
 * also "router-embedded" and "router-embedded-paper". A request's keywords are its class, "asks for quality" if that is
 * required, the expected size of the answer, and the length of the edge's queue. Estimates come from lp_delay_estimate,
 * as in runtime/serve, and outcomes correct them. */
typedef struct lp_router_sim lp_router_sim;
/* Reads of `spec` the model (NULL: "lookup") and its settings; the texts are borrowed. Fails when the model, or the
 * embedded one, cannot decide. */
LP_MUST_USE lp_status lp_router_sim_open(const lp_policy_spec *spec, lp_router_sim **out, lp_diag *diag);
lp_sim_policies lp_router_sim_policies(const lp_router_sim *sim); /* borrowed */
void lp_router_sim_close(lp_router_sim *sim);                     /* NULL is allowed */
