/* The evaluation of a placement: turns, crossings, weights, caches, and the constraints. */
#pragma once

#include "passes/plan/plan.h"

/* Fills turn[op_count] as in lp_plan_order; returns the number of turns. */
int32_t lp_plan_turns(const lp_plan_problem *problem, const lp_side *side, int32_t *turn);

/* The transfers of a stage: each value that crosses the link, marked at the first edge that carries it, the result's
 * token, and the number of messages that each side sends. */
typedef struct {
  bool *edge; /* [edge_count] */
  bool result;
  int32_t messages[LP_SIDE_COUNT];
  int64_t count;
} lp_plan_crossings;
void lp_plan_find_crossings(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena,
                            lp_plan_crossings *out);
/* Returns the side of each group of caches in a stage. */
lp_side *lp_plan_state_sides(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena);
/* For each weight the sides that hold it: bit 1 << side. */
unsigned char *lp_plan_mark_weights(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT],
                                    lp_arena *arena);

/* The sums of a placement, by side, from which lp_plan_conclude computes times, cost and memory. Bytes belong to the
 * side that sends. */
typedef struct {
  double busy_ms[LP_SIDE_COUNT], bytes[LP_SIDE_COUNT], messages[LP_SIDE_COUNT];
  int64_t crossings;
} lp_plan_stage_sum;
typedef struct {
  lp_plan_stage_sum stage[LP_STAGE_COUNT];
  double move_bytes[LP_SIDE_COUNT]; /* of KV caches, at the end of prefill */
  double weight_bytes[LP_SIDE_COUNT], activation_bytes[LP_SIDE_COUNT], cache_bytes[LP_SIDE_COUNT];
  bool streams; /* lp_plan_streams */
} lp_plan_sums;
/* Tells whether the placement has all of decode in the cloud, which takes nothing but tokens and has drawn the first
 * one: the worker then draws on without waiting for the device (docs/protocol.md). */
bool lp_plan_streams(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT]);
/* Tells whether the sums are of such a placement over a link. Decode then costs no messages. */
bool lp_plan_link_streams(const lp_plan_sums *sums, const lp_compile_request *request);
/* Tells whether any placement of the problem is one of those. `stall`: the ms that each token then waits for the link,
 * where that takes longer for a token than the cloud takes to make one; it is the same for all of them. */
bool lp_plan_may_stream(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                        double *stall);
/* Makes the problem of the placements that stream, and of no others: all of decode and the first token are pinned to
 * the cloud, and nothing of decode crosses. False: there are none. */
bool lp_plan_make_streamed(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                           lp_arena *arena, lp_plan_problem out[LP_STAGE_COUNT], double *stall);
lp_plan_sums lp_plan_sum_up(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT]);
void lp_plan_conclude(const lp_plan_sums *sums, const lp_compile_request *request, lp_plan_result *out);
/* The largest value / limit over all constraints, at most 1 when feasible; `out` gets the constraint. */
double lp_plan_strain(const lp_plan_result *result, const lp_compile_request *request, lp_plan_limit *out);

/* For each operator the sides that run it: bit 1 << side of needed[op]. Free operators run on every side that needs
 * them. */
void lp_plan_mark_needed(const lp_plan_problem *problem, const lp_side *side, unsigned char *needed);
