/* The schedulers, and the simple placements on which they build. */
#pragma once

#include "passes/plan/plan.h"

#define LP_SCHEDULER(symbol, name, ignores_link, summary) lp_scheduler_place lp_place_##symbol;
#include "passes/plan/schedulers.def"

/* Places one stage by Algorithm 1; returns the stage's time as the algorithm computes it, over linear and attention
 * operators. */
double lp_greedy_place_stage(const lp_plan_problem *problem, double bound_ms, lp_side *side);

/* Puts every operator on one side. */
void lp_plan_fill(const lp_plan_problem *problem, lp_side where, lp_side *side);
/* Cuts before layer `cut`: the layers below it are on the device, the rest in the cloud. Cut 0 leaves the embedding on
 * the device, cut -1 leaves nothing there; layer_count + 1 leaves nothing in the cloud. */
void lp_plan_fill_cut(const lp_plan_problem *problem, int64_t cut, lp_side *side);
