/* The total order of a split program: turns, each as long as possible. Sides then change as rarely as the data flow
 * allows: every change is forced by a value of the turn before. */
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

/* Operators of one turn stay in program order. */
void lp_plan_order_make(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena, lp_plan_order *out) {
  *out = (lp_plan_order){.op = LP_NEW_ARRAY(arena, int32_t, problem->op_count),
                         .turn = LP_NEW_ARRAY(arena, int32_t, problem->op_count)};
  out->turns = lp_plan_turns(problem, side, out->turn);
  int32_t *first = LP_NEW_ARRAY(arena, int32_t, out->turns + 1);
  for (int32_t i = 0; i < problem->op_count; i++)
    if (out->turn[i] >= 0) first[out->turn[i] + 1]++;
  for (int32_t i = 0; i < out->turns; i++)
    first[i + 1] += first[i];
  out->count = first[out->turns];
  for (int32_t i = 0; i < problem->op_count; i++)
    if (out->turn[i] >= 0) out->op[first[out->turn[i]]++] = i;
}
