/* Pareto fronts of a sweep: for each workload the rows that no other feasible row beats in both cost per token and
 * TPOT, or in both cost per token and TTFT. Rows of an unknown cost are on none. */
#include "passes/plan/sweep/front.h"

#include <math.h>

static const lp_sweep_number quantity[] = {LP_SWEEP_TPOT, LP_SWEEP_TTFT};

/* A row as a point; ties go to the earlier row. */
typedef struct {
  double cost, time;
  size_t row;
} point;

static int compare(const void *a, const void *b) {
  const point *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

lp_sweep_number lp_sweep_rank(const lp_sweep_spec *spec) {
  return spec->ranks_by_total ? LP_SWEEP_TOTAL_PER_MTOK : LP_SWEEP_COST_PER_MTOK;
}

size_t lp_sweep_front(const lp_sweep_spec *spec, const lp_sweep_result *result, size_t workload, int which,
                      size_t *rows) {
  LP_OWNED(lp_free_at) point *points = lp_alloc((spec->rows + 1) * sizeof *points);
  size_t count = 0, kept = 0, at[LP_SWEEP_AXES];
  for (size_t i = 0; i < spec->rows; i++) {
    const lp_sweep_row *row = &result->row[i];
    (void)lp_sweep_request(spec, i, at);
    const double cost = row->number[lp_sweep_rank(spec)];
    if (!row->feasible || isnan(cost) || at[LP_SWEEP_WORKLOADS] != workload) continue;
    points[count++] = (point){cost, row->number[quantity[which]], i};
  }
  qsort(points, count, sizeof *points, compare);
  double best = 0;
  for (size_t i = 0; i < count; i++) {
    if (i && points[i].time >= best) continue;
    best = points[i].time;
    rows[kept++] = points[i].row;
  }
  return kept;
}

void lp_sweep_mark_fronts(const lp_sweep_spec *spec, lp_sweep_result *result) {
  LP_OWNED(lp_free_at) size_t *rows = lp_alloc((spec->rows + 1) * sizeof *rows);
  for (size_t workload = 0; workload < spec->workloads.count; workload++)
    for (int which = 0; which < 2; which++) {
      size_t count = lp_sweep_front(spec, result, workload, which, rows);
      for (size_t i = 0; i < count; i++)
        result->row[rows[i]].on_front[which] = true;
    }
}
