/* The total order of a split program: turns, each as long as possible. Places then change as rarely as the data flow
 * allows: every change is forced by a value of a turn before. */
#include "base/side.h"
#include "passes/plan/evaluate.h"
#include "passes/plan/plan.h"

/* An operator's turn is the first turn of its side that is not before the turns of its operands. Program order is
 * topological. */
int32_t lp_plan_turns(const lp_plan_problem *problem, const lp_side *side, int32_t *turn) {
  int32_t edge = 0, turns = 0;
  for (int32_t i = 0; i < problem->op_count; i++) {
    turn[i] = 0;
    for (; edge < problem->edge_count && problem->edges[edge].consumer == i; edge++) {
      int32_t producer = problem->edges[edge].producer;
      if (producer >= 0 && turn[producer] > turn[i]) turn[i] = turn[producer];
    }
    if (problem->ops[i].free) {
      turn[i] = -1;
      continue;
    }
    turn[i] += turn[i] % 2 != (int32_t)side[i];
    if (turn[i] >= turns) turns = turn[i] + 1;
  }
  return turns;
}

int32_t lp_plan_place_turns(const lp_plan_problem *problem, const uint8_t *place, int32_t *turn) {
  int32_t edge = 0, turns = 0;
  for (int32_t i = 0; i < problem->op_count; i++) {
    turn[i] = place[i] != 0;
    for (; edge < problem->edge_count && problem->edges[edge].consumer == i; edge++) {
      const int32_t from = problem->edges[edge].producer;
      if (from < 0 || problem->ops[from].free) continue;
      const int32_t own = turn[from] + (place[from] != place[i]);
      if (own > turn[i]) turn[i] = own;
    }
    if (problem->ops[i].free) turn[i] = -1;
    if (turn[i] >= turns) turns = turn[i] + 1;
  }
  return turns;
}

/* Operators of one place and turn stay in program order. */
void lp_plan_order_make(const lp_plan_problem *problem, const uint8_t *place, lp_arena *arena, lp_plan_order *out) {
  *out = (lp_plan_order){.op = LP_NEW_ARRAY(arena, int32_t, problem->op_count),
                         .turn = LP_NEW_ARRAY(arena, int32_t, problem->op_count)};
  out->turns = lp_plan_place_turns(problem, place, out->turn);
  const int32_t groups = out->turns * LP_PLACES_MAX; /* of a turn and a place */
  int32_t *first = LP_NEW_ARRAY(arena, int32_t, groups + 1);
  for (int32_t i = 0; i < problem->op_count; i++)
    if (out->turn[i] >= 0) first[out->turn[i] * LP_PLACES_MAX + place[i] + 1]++;
  for (int32_t i = 0; i < groups; i++)
    first[i + 1] += first[i];
  out->count = first[groups];
  for (int32_t i = 0; i < problem->op_count; i++)
    if (out->turn[i] >= 0) out->op[first[out->turn[i] * LP_PLACES_MAX + place[i]]++] = i;
}
