/* The fastest path through the frontiers of each stage: a placement to begin with, and a proof where a stage cannot
 * meet its limit. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>

double lp_exact_arc_ms(const lp_exact *x, lp_stage stage, const lp_exact_unit *unit, int side, uint32_t fresh) {
  double ms = unit->ms[side];
  for (int32_t k = 0; k < unit->hold_count; k++)
    if (fresh >> k & 1) ms += x->holding[unit->hold[k]].ms[stage][side];
  return ms;
}

/* The least time from an arc's beginning to the stage's end; `after`: from each frontier after the unit. */
static double time_by(const lp_exact *x, lp_stage stage, const lp_exact_unit *unit, int side, const lp_exact_arc *arc,
                      const double *after) {
  if (arc->to < 0) return INFINITY;
  return lp_exact_arc_ms(x, stage, unit, side, arc->fresh) + arc->link_ms + after[arc->to];
}

/* The least time of a stage; infinite when pins contradict each other. */
static double find_fastest(const lp_exact *x, const lp_exact_graph *graph, lp_stage stage, unsigned char *out) {
  const int32_t count = x->unit_count[stage];
  double **rest = LP_NEW_ARRAY(x->arena, double *, count + 1); /* [unit][frontier] the least time to the end */
  rest[count] = LP_NEW_ARRAY(x->arena, double, graph->count[count]);
  for (int32_t i = count; i-- > 0;) {
    rest[i] = LP_NEW_ARRAY(x->arena, double, graph->count[i]);
    for (int32_t f = 0; f < graph->count[i]; f++) {
      double ms[LP_SIDE_COUNT];
      for (int side = 0; side < LP_SIDE_COUNT; side++)
        ms[side] = time_by(x, stage, &x->unit[stage][i], side, &graph->arc[i][f][side], rest[i + 1]);
      rest[i][f] = ms[0] <= ms[1] ? ms[0] : ms[1];
    }
  }
  for (int32_t i = 0, at = 0; i < count && !isinf(rest[0][0]); i++) {
    const lp_exact_arc *arc = graph->arc[i][at];
    const double device = time_by(x, stage, &x->unit[stage][i], 0, &arc[0], rest[i + 1]);
    out[i] = time_by(x, stage, &x->unit[stage][i], 1, &arc[1], rest[i + 1]) < device;
    at = arc[out[i]].to;
  }
  return rest[0][0];
}

bool lp_exact_find_fastest(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT],
                           unsigned char *const side[LP_STAGE_COUNT], double ms[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    ms[stage] = find_fastest(x, &graph[stage], (lp_stage)stage, side[stage]);
  return !isinf(ms[0]) && !isinf(ms[1]);
}
