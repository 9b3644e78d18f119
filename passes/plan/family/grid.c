/* Prices the points of the grid, lets the scheduler plan each, and evaluates every plan at every point. */
#include "passes/plan/family/grid.h"
#include "base/cores.h"
#include "base/side.h"
#include "passes/plan/evaluate.h"
#include "passes/plan/objective.h"
#include "passes/plan/schedulers.h"

#include <math.h>
#include <stdatomic.h>

const char *const lp_family_axis_names[LP_FAMILY_AXES] = {"prompt_tokens", "generated_tokens", "rtt_ms", "up_bps"};

/* ---- axes -------------------------------------------------------------------------------------------------------- */

static void add_knot(lp_grid_axis *axis, double value) {
  if (axis->count == 0 || value > axis->knot[axis->count - 1]) axis->knot[axis->count++] = value;
}

/* Knots in whole numbers of tokens, at least one and at most the context's capacity. */
static void tokens_axis(lp_grid_axis *axis, double own, double most, const double factor[LP_FAMILY_KNOTS]) {
  for (int i = 0; i < LP_FAMILY_KNOTS; i++)
    add_knot(axis, fmax(1, fmin(most, round(own * factor[i]))));
}

static void scaled_axis(lp_grid_axis *axis, double own, const double factor[LP_FAMILY_KNOTS]) {
  for (int i = 0; i < LP_FAMILY_KNOTS; i++)
    add_knot(axis, own * factor[i]);
}

/* Knots in the middle of shares of equal probability. */
static void states_axis(lp_grid_axis *axis, const lp_link *link, lp_link_figure figure) {
  for (int i = 0; i < LP_FAMILY_KNOTS; i++)
    add_knot(axis, fmax(1e-3, lp_link_state_quantile(link, figure, (i + 0.5) / (double)LP_FAMILY_KNOTS)));
}

static void make_axes(lp_plan_grid *grid, int64_t context) {
  static const double tokens[LP_FAMILY_KNOTS] = {1.0 / 16, 1.0 / 4, 1, 4}, rtts[LP_FAMILY_KNOTS] = {1.0 / 4, 1, 4, 16};
  const lp_compile_request *request = grid->request;
  double room = context > 1 ? (double)context : INFINITY, rtt = request->link->figure[LP_LINK_RTT];
  tokens_axis(&grid->axis[LP_FAMILY_PROMPT], (double)request->isl, room - 1, tokens);
  tokens_axis(&grid->axis[LP_FAMILY_GENERATED], (double)request->osl, room - 1, tokens);
  if (request->link->state_count > 0) {
    states_axis(&grid->axis[LP_FAMILY_RTT], request->link, LP_LINK_RTT);
    states_axis(&grid->axis[LP_FAMILY_UP], request->link, LP_LINK_UP);
    return;
  }
  scaled_axis(&grid->axis[LP_FAMILY_RTT], rtt > 0 ? rtt : 1, rtts);
  scaled_axis(&grid->axis[LP_FAMILY_UP], request->link->figure[LP_LINK_UP], tokens);
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

static void make_points(lp_plan_grid *grid, int64_t context) {
  const lp_grid_axis *axis = grid->axis;
  int32_t links = axis[LP_FAMILY_RTT].count * axis[LP_FAMILY_UP].count;
  int32_t workloads = axis[LP_FAMILY_PROMPT].count * axis[LP_FAMILY_GENERATED].count;
  double ratio = grid->request->link->figure[LP_LINK_DOWN] / grid->request->link->figure[LP_LINK_UP];
  grid->points = workloads * links;
  grid->point = LP_NEW_ARRAY(grid->arena, lp_grid_point, grid->points);
  lp_plan_prices *prices = LP_NEW_ARRAY(grid->arena, lp_plan_prices, workloads);
  for (int32_t i = 0; i < grid->points; i++) {
    lp_grid_point *point = &grid->point[i];
    int32_t workload = i / links, link = i % links;
    point->request = *grid->request;
    point->request.near_suffices = true;
    point->request.tolerance = 0;
    point->link = *grid->request->link;
    point->request.isl = (int64_t)axis[LP_FAMILY_PROMPT].knot[workload / axis[LP_FAMILY_GENERATED].count];
    point->request.osl = (int64_t)axis[LP_FAMILY_GENERATED].knot[workload % axis[LP_FAMILY_GENERATED].count];
    if (context > 1 && point->request.isl + point->request.osl > context)
      point->request.osl = context - point->request.isl; /* the most tokens that a request of this cell can have */
    point->link.figure[LP_LINK_RTT] = axis[LP_FAMILY_RTT].knot[link / axis[LP_FAMILY_UP].count];
    point->link.figure[LP_LINK_UP] = axis[LP_FAMILY_UP].knot[link % axis[LP_FAMILY_UP].count];
    point->link.figure[LP_LINK_DOWN] = ratio * point->link.figure[LP_LINK_UP];
    point->request.link = &point->link;
    if (link == 0) lp_plan_forms_price(grid->forms, &point->request, grid->arena, &prices[workload]);
    point->prices = &prices[workload];
  }
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* The points are planned on all cores; each thread takes the next one. */
typedef struct {
  lp_plan_grid *grid;
  atomic_int next;
  lp_side **side[LP_STAGE_COUNT]; /* [point] chosen by the scheduler; one thread writes each */
} planning;

static void plan_point(planning *p, int32_t index) {
  const lp_grid_point *point = &p->grid->point[index];
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_forms_problem(p->grid->forms, point->prices, scratch, problem);
  const char *scheduler = point->request.scheduler ? point->request.scheduler : lp_scheduler_default;
  lp_status status = lp_plan_choose(problem, scheduler, &point->request, side, NULL, scratch, NULL);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (status == LP_OK || status == LP_INFEASIBLE)
      memcpy(p->side[stage][index], side[stage], (size_t)problem[stage].op_count * sizeof *side[stage]);
}

static void *plan_some(void *user) {
  planning *p = user;
  for (int32_t i; (i = atomic_fetch_add(&p->next, 1)) < p->grid->points;)
    plan_point(p, i);
  return NULL;
}

/* The sides of free operators mean nothing. They are set equal, so that equal plans are equal bytes. */
static bool same_plan(const lp_plan_grid *grid, lp_side *const a[LP_STAGE_COUNT], lp_side *const b[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *problem = &grid->forms->problem[stage];
    for (int32_t i = 0; i < problem->op_count; i++)
      if (!problem->ops[i].free && a[stage][i] != b[stage][i]) return false;
  }
  return true;
}

static void add_plan(lp_plan_grid *grid, lp_side *const side[LP_STAGE_COUNT]) {
  for (int32_t i = 0; i < grid->plans; i++)
    if (same_plan(grid, grid->plan[i].side, side)) return;
  lp_grid_plan *plan = &grid->plan[grid->plans++];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    plan->side[stage] = side[stage];
  lp_plan_form_make(grid->forms, side, grid->arena, &plan->form);
  plan->held = lp_plan_mark_weights(grid->forms->problem, side, grid->arena);
}

static void make_plans(lp_plan_grid *grid, lp_side *const own[LP_STAGE_COUNT]) {
  planning p = {.grid = grid};
  grid->plan = LP_NEW_ARRAY(grid->arena, lp_grid_plan, grid->points + 1);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    p.side[stage] = LP_NEW_ARRAY(grid->arena, lp_side *, grid->points);
    for (int32_t i = 0; i < grid->points; i++)
      p.side[stage][i] = LP_NEW_ARRAY(grid->arena, lp_side, grid->forms->problem[stage].op_count);
  }
  lp_threads_run(lp_machine_threads(), plan_some, &p);
  add_plan(grid, own);
  for (int32_t i = 0; i < grid->points; i++) {
    lp_side *const side[LP_STAGE_COUNT] = {p.side[0][i], p.side[1][i]};
    add_plan(grid, side);
  }
}

/* ---- regret ------------------------------------------------------------------------------------------------------ */

/* The cost of the cloud-only plan at a point, which is the scale of regrets. */
static double reference(const lp_plan_grid *grid, const lp_plan_form *cloud, const lp_grid_point *point) {
  lp_plan_result result;
  (void)grid;
  lp_plan_form_evaluate(cloud, point->prices, &point->request, &result);
  return lp_plan_objective_value(&result, &point->request);
}

static void judge_point(lp_plan_grid *grid, int32_t index, const lp_plan_form *cloud, lp_plan_result *results) {
  const lp_grid_point *point = &grid->point[index];
  const lp_plan_result *best = results;
  lp_plan_limit limit = LP_LIMIT_NONE;
  for (int32_t k = 0; k < grid->plans; k++) {
    lp_plan_form_evaluate(&grid->plan[k].form, point->prices, &point->request, &results[k]);
    if (lp_plan_compare(&results[k], best, &point->request) < 0) best = &results[k];
  }
  double least = lp_plan_objective_value(best, &point->request), scale = fmax(least, reference(grid, cloud, point));
  for (int32_t k = 0; k < grid->plans; k++) {
    double *regret = &grid->regret[(size_t)k * (size_t)grid->points + (size_t)index];
    double above = lp_plan_objective_value(&results[k], &point->request) - least;
    if (!best->feasible)
      *regret =
          lp_plan_strain(&results[k], &point->request, &limit) / lp_plan_strain(best, &point->request, &limit) - 1;
    else if (!results[k].feasible)
      *regret = INFINITY;
    else
      *regret = scale > 0 ? fmax(0, above / scale) : 0;
  }
}

static void judge(lp_plan_grid *grid) {
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_form cloud;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    side[stage] = LP_NEW_ARRAY(grid->arena, lp_side, grid->forms->problem[stage].op_count);
    lp_plan_fill(&grid->forms->problem[stage], LP_SIDE_CLOUD, side[stage]);
  }
  lp_plan_form_make(grid->forms, side, grid->arena, &cloud);
  grid->regret = lp_arena_array(grid->arena, (size_t)grid->plans * (size_t)grid->points, sizeof *grid->regret);
  lp_plan_result *results = LP_NEW_ARRAY(grid->arena, lp_plan_result, grid->plans);
  for (int32_t i = 0; i < grid->points; i++)
    judge_point(grid, i, &cloud, results);
}

void lp_plan_grid_make(const lp_plan_forms *forms, const lp_compile_request *request, int64_t context,
                       lp_side *const own[LP_STAGE_COUNT], lp_arena *arena, lp_plan_grid *out) {
  *out = (lp_plan_grid){.forms = forms, .request = request, .arena = arena};
  make_axes(out, context);
  make_points(out, context);
  make_plans(out, own);
  judge(out);
}
