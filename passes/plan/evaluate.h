/* What a placement adds up to: turns, crossings, weights, caches, and the constraints. */
#ifndef LP_PLAN_EVALUATE_H
#define LP_PLAN_EVALUATE_H

#include "passes/plan/plan.h"

/* By operator, as above; returns how many turns there are. */
int32_t lp_plan_turns(const lp_plan_problem *problem, const lp_side *side, int32_t *turn);

/* What crosses the link in a stage: values by the first edge that carries each, the result's token, and messages by the
 * side that sends. */
typedef struct {
  bool *edge; /* [edge_count] */
  bool result;
  int32_t messages[LP_SIDE_COUNT];
  int64_t count;
} lp_plan_crossings;
void lp_plan_find_crossings(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena,
                            lp_plan_crossings *out);
/* The side of each group of caches in a stage. */
lp_side *lp_plan_state_sides(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena);
/* Bit 1 << side for each weight: it is held there. */
unsigned char *lp_plan_mark_weights(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT],
                                    lp_arena *arena);

/* What a placement adds up to: lp_plan_conclude makes times, cost and memory of it. By side; bytes by the side they leave. */
typedef struct {
  double busy_ms[LP_SIDE_COUNT], bytes[LP_SIDE_COUNT], messages[LP_SIDE_COUNT];
  int64_t crossings;
} lp_plan_stage_sum;
typedef struct {
  lp_plan_stage_sum stage[LP_STAGE_COUNT];
  double move_bytes[LP_SIDE_COUNT]; /* of KV caches, at the end of prefill */
  double weight_bytes[LP_SIDE_COUNT], activation_bytes[LP_SIDE_COUNT], cache_bytes[LP_SIDE_COUNT];
} lp_plan_sums;
void lp_plan_conclude(const lp_plan_sums *sums, const lp_compile_request *request, lp_plan_result *out);
/* The largest of value / limit over all constraints, and whose it is; at most 1 when feasible. */
double lp_plan_strain(const lp_plan_result *result, const lp_compile_request *request, lp_plan_limit *out);

/* Bit 1 << side of needed[op]: the operator runs there. Free operators run on every side that needs them. */
void lp_plan_mark_needed(const lp_plan_problem *problem, const lp_side *side, unsigned char *needed);

#endif
