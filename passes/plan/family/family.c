/* Chooses the plans of a family: adds the plan that lowers the worst regret most, one at a time, then exchanges plans
 * while that helps. */
#include "base/side.h"
#include "passes/plan/family/grid.h"

#include <math.h>

/* A set of the grid's plans. */
typedef struct {
  int32_t plan[LP_FAMILY_MOST], count;
} plan_set;

/* The quality of a set: smaller is better, compared member by member. */
typedef struct {
  int32_t missed;
  double worst, sum;
} set_score;

static int32_t best_of(const lp_plan_grid *grid, const plan_set *set, int32_t point, double *least) {
  int32_t best = 0;
  for (int32_t i = 0; i < set->count; i++) {
    double regret = grid->regret[(size_t)set->plan[i] * (size_t)grid->points + (size_t)point];
    if (i && !(regret < *least - 1e-12)) continue;
    best = i;
    *least = regret;
  }
  return best;
}

static set_score score(const lp_plan_grid *grid, const plan_set *set) {
  set_score s = {0};
  for (int32_t i = 0; i < grid->points; i++) {
    double regret = 0;
    (void)best_of(grid, set, i, &regret);
    if (isinf(regret)) {
      s.missed++;
      continue;
    }
    s.worst = fmax(s.worst, regret);
    s.sum += regret;
  }
  return s;
}

static bool is_better(const set_score *a, const set_score *b) {
  if (a->missed != b->missed) return a->missed < b->missed;
  if (fabs(a->worst - b->worst) > 1e-12) return a->worst < b->worst;
  return a->sum < b->sum - 1e-12;
}

/* Tells whether all plans of the set fit, at the request's own sizes. A bundle holds the weights of all plans, and a
 * request runs one of them. */
static bool fits(const lp_plan_grid *grid, const plan_set *set) {
  double working[LP_SIDE_COUNT] = {0}, weights[LP_SIDE_COUNT] = {0};
  lp_plan_prices prices;
  lp_arena *arena = lp_arena_create();
  lp_plan_forms_price(grid->forms, grid->request, arena, &prices);
  for (int32_t i = 0; i < set->count; i++) {
    lp_plan_result result;
    lp_plan_form_evaluate(&grid->plan[set->plan[i]].form, &prices, grid->request, &result);
    working[LP_SIDE_DEVICE] = fmax(working[LP_SIDE_DEVICE], result.device_memory_bytes - result.device_weight_bytes);
    working[LP_SIDE_CLOUD] = fmax(working[LP_SIDE_CLOUD], result.cloud_memory_bytes - result.cloud_weight_bytes);
  }
  const lp_plan_problem *problem = grid->forms->problem;
  for (int32_t w = 0; w < problem[0].weight_count; w++) {
    unsigned held = 0;
    for (int32_t i = 0; i < set->count; i++)
      held |= grid->plan[set->plan[i]].held[w];
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      if (held & (1u << side)) weights[side] += prices.weight[side][grid->forms->weights.class_of[w]];
  }
  lp_arena_free(arena);
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    double limit = lp_plan_memory_limit(grid->request, (lp_side)side);
    if (limit > 0 && weights[side] + working[side] > limit) return false;
  }
  return true;
}

/* Puts the plan that serves best at position `at` of the set; false when none serves better than the set does. */
static bool improve_at(const lp_plan_grid *grid, plan_set *set, int32_t at) {
  set_score best = score(grid, set);
  plan_set found = *set;
  bool better = false;
  for (int32_t k = 0; k < grid->plans; k++) {
    plan_set trial = *set;
    trial.plan[at] = k;
    if (at == trial.count) trial.count++;
    set_score s = score(grid, &trial);
    if (!is_better(&s, &best) || !fits(grid, &trial)) continue;
    best = s;
    found = trial;
    better = true;
  }
  *set = found;
  return better;
}

static plan_set choose(const lp_plan_grid *grid, int32_t most) {
  plan_set set = {.count = 1}; /* the request's own plan */
  while (set.count < most && improve_at(grid, &set, set.count))
    continue;
  for (bool changed = true; changed;) {
    changed = false;
    for (int32_t i = 1; i < set.count; i++)
      changed |= improve_at(grid, &set, i);
  }
  return set;
}

/* Drops plans that serve no point, except the first. */
static void drop_idle(const lp_plan_grid *grid, plan_set *set) {
  bool serves[LP_FAMILY_MOST] = {true};
  for (int32_t i = 0; i < grid->points; i++) {
    double regret = 0;
    serves[best_of(grid, set, i, &regret)] = true;
  }
  int32_t kept = 0;
  for (int32_t i = 0; i < set->count; i++)
    if (serves[i]) set->plan[kept++] = set->plan[i];
  set->count = kept;
}

lp_status lp_plan_family_find(lp_module *module, const lp_compile_request *request, int32_t most,
                              lp_side *const own[LP_STAGE_COUNT], lp_arena *arena, lp_plan_family *out, lp_diag *diag) {
  lp_plan_forms *forms = NULL;
  lp_plan_grid grid;
  const lp_op *func = lp_module_find_func(module, "main");
  *out = (lp_plan_family){0};
  LP_TRY(lp_plan_forms_create(module, request, arena, &forms, diag));
  lp_plan_grid_make(forms, request, func ? lp_op_i64(func, "context", 0) : 0, own, arena, &grid);
  plan_set set = choose(&grid, most < LP_FAMILY_MOST ? most : LP_FAMILY_MOST), alone = {.count = 1};
  drop_idle(&grid, &set);
  set_score s = score(&grid, &set), first = score(&grid, &alone);
  int32_t *plan_at = LP_NEW_ARRAY(arena, int32_t, grid.points), met = grid.points - s.missed;
  for (int32_t i = 0; i < grid.points; i++) {
    double regret = 0;
    plan_at[i] = best_of(&grid, &set, i, &regret);
  }
  out->count = set.count;
  for (int32_t i = 0; i < set.count; i++)
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      out->side[i][stage] = grid.plan[set.plan[i]].side[stage];
  lp_plan_grid_regions(&grid, plan_at, out);
  out->regret = (lp_family_regret){.points = grid.points,
                                   .missed = s.missed,
                                   .worst = s.worst,
                                   .mean = met ? s.sum / met : 0,
                                   .alone_missed = first.missed,
                                   .alone_worst = first.worst};
  return LP_OK;
}

/* ---- in the module ----------------------------------------------------------------------------------------------- */

enum { REGION_NUMBERS = 1 + 2 * LP_FAMILY_AXES, REGRET_NUMBERS = 6 };

void lp_plan_family_write(lp_module *module, lp_op *prefill, const lp_plan_family *family,
                          const char *name[LP_STAGE_COUNT][LP_FAMILY_MOST]) {
  const lp_family_regret *r = &family->regret;
  const double regret[REGRET_NUMBERS] = {r->points, r->missed, r->worst, r->mean, r->alone_missed, r->alone_worst};
  double *regions = LP_NEW_ARRAY(module->arena, double, family->region_count *REGION_NUMBERS);
  for (int32_t i = 0; i < family->region_count; i++) {
    double *to = &regions[(size_t)i * REGION_NUMBERS];
    *to++ = family->region[i].plan;
    for (int axis = 0; axis < LP_FAMILY_AXES; axis++) {
      *to++ = family->region[i].low[axis];
      *to++ = isinf(family->region[i].high[axis]) ? -1 : family->region[i].high[axis];
    }
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_plan_func_names_set(module, prefill, (lp_stage)stage, name[stage], family->count);
  lp_op_set_f64s(module, prefill, "plan_regions", regions, family->region_count * REGION_NUMBERS);
  lp_op_set_f64s(module, prefill, "plan_regret", regret, REGRET_NUMBERS);
}

static const lp_attr *family_attr(const lp_module *module, const char *name, lp_attr_kind kind) {
  const lp_op *prefill = lp_module_find_func(module, lp_stage_names[LP_STAGE_PREFILL]);
  const lp_attr *attr = prefill ? lp_op_attr(prefill, name) : NULL;
  return attr && attr->kind == kind ? attr : NULL;
}

void lp_plan_family_read(const lp_module *module, lp_arena *arena, lp_plan_family *out) {
  const lp_attr *regions = family_attr(module, "plan_regions", LP_ATTR_F64S);
  const lp_attr *regret = family_attr(module, "plan_regret", LP_ATTR_F64S);
  *out = (lp_plan_family){.count = lp_plan_count(module)};
  if (!regions || !regret || regret->count != REGRET_NUMBERS) return;
  out->region_count = regions->count / REGION_NUMBERS;
  out->region = LP_NEW_ARRAY(arena, lp_family_region, out->region_count);
  for (int32_t i = 0; i < out->region_count; i++) {
    const double *from = &regions->fs[(size_t)i * REGION_NUMBERS];
    out->region[i].plan = (int32_t)*from++;
    for (int axis = 0; axis < LP_FAMILY_AXES; axis++) {
      out->region[i].low[axis] = *from++;
      out->region[i].high[axis] = *from < 0 ? INFINITY : *from;
      from++;
    }
  }
  const double *r = regret->fs;
  out->regret = (lp_family_regret){.points = (int32_t)r[0],
                                   .missed = (int32_t)r[1],
                                   .worst = r[2],
                                   .mean = r[3],
                                   .alone_missed = (int32_t)r[4],
                                   .alone_worst = r[5]};
}
