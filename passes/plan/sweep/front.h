/* Pareto fronts of a sweep. */
#pragma once

#include "passes/plan/sweep/sweep.h"

/* The cost by which rows are ranked. */
lp_sweep_number lp_sweep_rank(const lp_sweep_spec *spec);
/* Marks the rows of each workload that no other feasible row beats in both measures. */
void lp_sweep_mark_fronts(const lp_sweep_spec *spec, lp_sweep_result *result);
/* Lists the rows of a workload's front, cheapest first; returns their number. */
size_t lp_sweep_front(const lp_sweep_spec *spec, const lp_sweep_result *result, size_t workload, int which,
                      size_t *rows);
