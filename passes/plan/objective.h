/* The quantity that a plan minimises, and the number of runs of each stage in a request. */
#pragma once

#include "passes/plan/plan.h"

/* The objective as a sum: weights per ms of a stage's operators on a side, of its messages, and of KV moves. */
typedef struct {
  double busy[LP_STAGE_COUNT][LP_SIDE_COUNT], link[LP_STAGE_COUNT], move;
} lp_plan_weights;
void lp_plan_weights_get(const lp_compile_request *request, lp_plan_weights *out);
double lp_plan_objective_value(const lp_plan_result *result, const lp_compile_request *request);
/* The number of requests that share a side; each has its own KV caches. */
double lp_plan_sessions(const lp_compile_request *request, lp_side side);
/* The number of requests that one run of a stage serves on the side. */
double lp_plan_shared_runs(const lp_compile_request *request, lp_stage stage, lp_side side);
/* The number of runs of a stage in a request. */
double lp_plan_steps(const lp_compile_request *request, lp_stage stage);
