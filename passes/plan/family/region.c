/* Joins cells into regions: boxes of neighbouring cells that the same plan serves, each grown as far as possible. They
 * cover all requests and do not overlap. A boundary between two knots is their geometric mean. */
#include "passes/plan/family/grid.h"

#include <math.h>

typedef struct {
  const lp_plan_grid *grid;
  const int32_t *plan_at;
  bool *covered;
} cells;

/* A box of cells: [low, high) on each axis. */
typedef struct {
  int32_t low[LP_FAMILY_AXES], high[LP_FAMILY_AXES];
} box;

static int32_t cell_index(const lp_plan_grid *grid, const int32_t at[LP_FAMILY_AXES]) {
  int32_t index = 0;
  for (int i = 0; i < LP_FAMILY_AXES; i++)
    index = index * grid->axis[i].count + at[i];
  return index;
}

/* Moves `at` to the next cell of the box; false after the last. */
static bool next_cell(const box *b, int32_t at[LP_FAMILY_AXES]) {
  for (int i = LP_FAMILY_AXES; i-- > 0;) {
    if (++at[i] < b->high[i]) return true;
    at[i] = b->low[i];
  }
  return false;
}

static bool is_all_of(const cells *c, const box *b, int32_t plan) {
  int32_t at[LP_FAMILY_AXES];
  for (int i = 0; i < LP_FAMILY_AXES; i++)
    at[i] = b->low[i];
  do {
    int32_t index = cell_index(c->grid, at);
    if (c->plan_at[index] != plan || c->covered[index]) return false;
  } while (next_cell(b, at));
  return true;
}

static void cover(const cells *c, const box *b) {
  int32_t at[LP_FAMILY_AXES];
  for (int i = 0; i < LP_FAMILY_AXES; i++)
    at[i] = b->low[i];
  do
    c->covered[cell_index(c->grid, at)] = true;
  while (next_cell(b, at));
}

/* Extends the box along one axis after the other, as long as the new cells are free and have the same plan. */
static box grow(const cells *c, const int32_t from[LP_FAMILY_AXES], int32_t plan) {
  box b;
  for (int i = 0; i < LP_FAMILY_AXES; i++) {
    b.low[i] = from[i];
    b.high[i] = from[i] + 1;
  }
  for (int i = 0; i < LP_FAMILY_AXES; i++)
    while (b.high[i] < c->grid->axis[i].count) {
      box more = b;
      more.low[i] = b.high[i];
      more.high[i] = b.high[i] + 1;
      if (!is_all_of(c, &more, plan)) break;
      b.high[i]++;
    }
  return b;
}

static double bound(const lp_grid_axis *axis, int32_t knot) {
  if (knot == 0) return 0;
  return knot == axis->count ? INFINITY : sqrt(axis->knot[knot - 1] * axis->knot[knot]);
}

void lp_plan_grid_regions(const lp_plan_grid *grid, const int32_t *plan_at, lp_plan_family *out) {
  cells c = {grid, plan_at, LP_NEW_ARRAY(grid->arena, bool, grid->points)};
  box all;
  int32_t at[LP_FAMILY_AXES] = {0};
  out->region = LP_NEW_ARRAY(grid->arena, lp_family_region, grid->points);
  out->region_count = 0;
  for (int i = 0; i < LP_FAMILY_AXES; i++) {
    all.low[i] = 0;
    all.high[i] = grid->axis[i].count;
  }
  do {
    int32_t index = cell_index(grid, at);
    if (c.covered[index]) continue;
    box b = grow(&c, at, plan_at[index]);
    cover(&c, &b);
    lp_family_region *region = &out->region[out->region_count++];
    region->plan = plan_at[index];
    for (int i = 0; i < LP_FAMILY_AXES; i++) {
      region->low[i] = bound(&grid->axis[i], b.low[i]);
      region->high[i] = bound(&grid->axis[i], b.high[i]);
    }
  } while (next_cell(&all, at));
}
