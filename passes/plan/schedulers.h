/* The schedulers, and the plain placements that they build on. */
#ifndef LP_PLAN_SCHEDULERS_H
#define LP_PLAN_SCHEDULERS_H

#include "passes/plan/plan.h"

extern const lp_scheduler lp_scheduler_exact, lp_scheduler_greedy, lp_scheduler_layer, lp_scheduler_cut,
    lp_scheduler_cloud_only, lp_scheduler_device_only;

/* One stage of Algorithm 1; returns the stage's time as the algorithm sees it, over linear and attention operators. */
double lp_greedy_place_stage(const lp_plan_problem *problem, double bound_ms, lp_side *side);

/* Every operator on one side. */
void lp_plan_fill(const lp_plan_problem *problem, lp_side where, lp_side *side);
/* The cut before layer `cut`: those below it on the device, the rest in the cloud. Cut 0 leaves the embedding on the
 * device, cut -1 nothing; layer_count + 1 leaves nothing to the cloud. */
void lp_plan_fill_cut(const lp_plan_problem *problem, int64_t cut, lp_side *side);

#endif
