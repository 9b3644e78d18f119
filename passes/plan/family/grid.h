/* The grid of a plan family: its points with their prices, and every placement that is the best at one of them. */
#pragma once

#include "base/side.h"
#include "passes/plan/family/family.h"
#include "passes/plan/forms.h"

typedef struct {
  double knot[LP_FAMILY_KNOTS];
  int32_t count;
} lp_grid_axis;

/* A point of the grid, with its request. */
typedef struct {
  lp_compile_request request;
  lp_link link;
  const lp_plan_prices *prices;
} lp_grid_point;

/* A placement that may join the family. */
typedef struct {
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_form form;
  unsigned char *held; /* [weight] bit 1 << side */
} lp_grid_plan;

typedef struct {
  const lp_plan_forms *forms;
  const lp_compile_request *request;
  lp_arena *arena;
  lp_grid_axis axis[LP_FAMILY_AXES];
  lp_grid_point *point; /* [points], the last axis varies fastest */
  int32_t points;
  lp_grid_plan *plan; /* [plans], the request's own first, all different */
  int32_t plans;
  double *regret; /* [plan][point]; infinity: the plan misses an SLA that another plan meets */
} lp_plan_grid;

/* Fills the grid, in `arena` (grid.c). */
void lp_plan_grid_make(const lp_plan_forms *forms, const lp_compile_request *request, int64_t context,
                       lp_side *const own[LP_STAGE_COUNT], lp_arena *arena, lp_plan_grid *out);
/* Covers the cells of the grid by few regions; plan_at[point] (region.c). */
void lp_plan_grid_regions(const lp_plan_grid *grid, const int32_t *plan_at, lp_plan_family *out);
