/* The total order of a split program: turns, each as long as it can be. Sides then change as rarely as the data flow
 * allows, and every change is forced by a value that the turn before it made. */
#include "passes/plan_internal.h"

/* Have all operators that `index` reads from run? `first` is its first edge. */
static bool is_ready(const lp_plan_problem *problem, int32_t first, int32_t index, const int32_t *turn) {
  for (int32_t i = first; i < problem->edge_count && problem->edges[i].consumer == index; i++) {
    int32_t producer = problem->edges[i].producer;
    if (producer >= 0 && !problem->ops[producer].free && turn[producer] < 0) return false;
  }
  return true;
}

static int32_t *first_edges(const lp_plan_problem *problem, lp_arena *arena) {
  int32_t *first = LP_NEW_ARRAY(arena, int32_t, problem->op_count);
  for (int32_t i = 0; i < problem->op_count; i++)
    first[i] = problem->edge_count;
  for (int32_t i = problem->edge_count; i-- > 0;)
    first[problem->edges[i].consumer] = i;
  return first;
}

/* Program order is topological, so one sweep runs all that can run without the other side. */
void lp_plan_order_make(const lp_plan_problem *problem, const lp_place *side, lp_arena *arena, lp_plan_order *out) {
  int32_t *first = first_edges(problem, arena), left = 0, from = 0;
  *out = (lp_plan_order){.op = LP_NEW_ARRAY(arena, int32_t, problem->op_count),
                         .turn = LP_NEW_ARRAY(arena, int32_t, problem->op_count)};
  for (int32_t i = 0; i < problem->op_count; i++) {
    out->turn[i] = -1;
    left += !problem->ops[i].free;
  }
  for (lp_place place = LP_PLACE_DEVICE; out->count < left; place = lp_place_other(place), out->turns++) {
    while (problem->ops[from].free || out->turn[from] >= 0)
      from++;
    for (int32_t i = from; i < problem->op_count; i++) {
      if (side[i] != place || problem->ops[i].free || out->turn[i] >= 0) continue;
      if (!is_ready(problem, first[i], i, out->turn)) continue;
      out->turn[i] = out->turns;
      out->op[out->count++] = i;
    }
  }
}
