/* Plans over places: the best pairs, the prices of the limits, the label search, and what they prove together. */
#include "passes/plan/places/model.h"

#include <math.h>

/* Steps on the prices of all placements and of whole parts, and the labels kept for a part. */
enum { ROUNDS = 300, WHOLE_ROUNDS = 200, LABELS = 2000 };

/* Bounds this close to the plan, as a share, count as reached: sums of times differ with the order of their terms. */
static const double reached = 1e-9;

typedef struct {
  const lp_places_problem *problem;
  lp_places_model *m;
  lp_places_plan *out;
  lp_arena *arena;
  uint8_t *trial[LP_STAGE_COUNT];
  lp_plan_problem *pinned[LP_PLACES_MAX]; /* [place][stage]: of a pair */
  bool has_plan;
} solver;

/* ---- candidates -------------------------------------------------------------------------------------------------- */

static double known(const solver *s) {
  return s->has_plan && s->out->result.feasible ? s->out->result.objective : INFINITY;
}

/* Tells whether early exits can run the trial placement: both stages in the same places, none of them twice, and the
 * head where the last layer is, since the head reads the last rows only. */
static bool is_chain(const solver *s) {
  const lp_plan_problem *of = s->problem->of[0];
  unsigned left = 0;
  int at = -1;
  if (of[0].op_count != of[1].op_count) return false;
  for (int32_t i = 0; i < of[0].op_count; i++) {
    const int place = s->trial[0][i];
    if (of[0].ops[i].free) continue;
    if (place != s->trial[1][i] || (place == 0) != (of[0].ops[i].layer < s->problem->exit_layer)) return false;
    if (place == at || place == 0) continue;
    if (left >> place & 1) return false;
    if (at >= 0 && of[0].ops[i].layer >= of[0].layer_count) return false;
    if (at >= 0) left |= 1U << at;
    at = place;
  }
  return true;
}

/* Prices the trial placement and keeps it if it is the best so far. Returns whether it is. */
static bool consider_trial(solver *s, lp_places_result *result) {
  lp_places_evaluate(s->problem, s->trial, result);
  if (s->problem->exit_layer > 0 && !is_chain(s)) return false;
  if (s->has_plan && lp_places_compare(s->problem, result, &s->out->result) >= 0) return false;
  s->has_plan = true;
  s->out->is_pair = false;
  s->out->result = *result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(s->out->place[stage], s->trial[stage], (size_t)s->problem->of[0][stage].op_count);
  return true;
}

/* Returns the operator's place: `wanted`, where its part lies, or the place that its pins require. */
static uint8_t place_for(const solver *s, int stage, int32_t op, uint8_t wanted) {
  const unsigned allowed = lp_places_allowed(s->problem, stage, op);
  if (s->problem->of[0][stage].ops[op].free) return 0;
  for (uint8_t p = 0; !(allowed >> wanted & 1) && p < s->m->count; p++)
    if (allowed >> p & 1) return p;
  return wanted;
}

static void consider_path(solver *s, uint8_t *const path[LP_STAGE_COUNT]) {
  lp_places_result result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->m->part_count; i++)
      for (int32_t op = s->m->part[i].first_op; op < s->m->part[i].end_op; op++)
        s->trial[stage][op] = place_for(s, stage, op, path[stage][i]);
  (void)consider_trial(s, &result);
}

/* A path that the search for prices meets. While no plan meets the limits, the nearest one is wanted. */
static double see_path(void *user, uint8_t *const path[LP_STAGE_COUNT]) {
  solver *s = user;
  lp_places_sum sum = lp_places_sum_begin();
  for (int32_t i = 0; i < s->m->part_count; i++)
    lp_places_sum_add(s->m, i, (const uint8_t[]){path[0][i], path[1][i]}, &sum);
  const double before = known(s);
  if (isinf(before) || (lp_places_sum_fits(s->m, &sum) && sum.objective < before)) consider_path(s, path);
  return known(s);
}

static void consider_single_places(solver *s) {
  uint8_t *path[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    path[stage] = LP_NEW_ARRAY(s->arena, uint8_t, s->m->part_count);
  for (int p = 0; p < s->m->count; p++) {
    if (s->problem->places->place[p].member > 0) continue;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      memset(path[stage], p, (size_t)s->m->part_count);
    consider_path(s, path);
  }
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

/* The link as the device sees it. */
static lp_link link_to(const lp_places *places, int place) {
  lp_link link = *places->link[0][place];
  if (places->is_down[0][place]) {
    const double up = link.figure[LP_LINK_UP];
    link.figure[LP_LINK_UP] = link.figure[LP_LINK_DOWN];
    link.figure[LP_LINK_DOWN] = up;
  }
  return link;
}

/* Takes a placement with the other place as 1 for the trial. */
static void take_sides(solver *s, uint8_t *const side[LP_STAGE_COUNT], int place) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->problem->of[0][stage].op_count; i++)
      s->trial[stage][i] = (uint8_t)(side[stage][i] ? place : 0);
}

static void consider_pair(solver *s, lp_places_pair *pair) {
  lp_places_result result;
  if (consider_trial(s, &result)) s->out->is_pair = true;
  if (pair->has_result && lp_places_compare(s->problem, &result, &pair->result) >= 0) return;
  pair->has_result = true;
  pair->result = result;
}

/* Plans a pair as any other places. */
static lp_status plan_pair(solver *s, lp_places_pair *pair, const lp_places_options *options, lp_diag *diag) {
  const lp_places *places = s->problem->places;
  lp_places two = {.place = {places->place[0], places->place[pair->with]}, .count = 2};
  two.place[1].kind = 1;
  for (int i = 0; i < 2; i++) {
    two.link[i][1 - i] = places->link[i ? pair->with : 0][i ? 0 : pair->with];
    two.is_down[i][1 - i] = places->is_down[i ? pair->with : 0][i ? 0 : pair->with];
  }
  const lp_plan_problem *of = s->pinned[pair->with];
  const lp_places_problem problem = {
      .places = &two, .request = s->problem->request, .of = {of, of}, .exit_layer = s->problem->exit_layer};
  lp_places_plan plan;
  const lp_places_options own = {.labels = options->labels};
  lp_status status = lp_places_solve(&problem, &own, s->arena, &plan, diag);
  if (status != LP_OK && status != LP_INFEASIBLE) return status;
  take_sides(s, plan.place, pair->with);
  consider_pair(s, pair);
  pair->lower_bound = plan.lower_bound;
  return LP_OK;
}

/* Plans a pair by the two-place planner, which divides parts, where that may be a better plan than the best one known
 * by more than the tolerance. */
static lp_status plan_exactly(solver *s, lp_places_pair *pair, lp_diag *diag) {
  lp_compile_request request = *s->problem->request;
  const lp_link link = link_to(s->problem->places, pair->with);
  lp_side *side[LP_STAGE_COUNT];
  uint8_t *number[LP_STAGE_COUNT];
  if (pair->lower_bound >= known(s) * (1 - request.tolerance - reached)) return LP_OK;
  request.cloud = s->problem->places->place[pair->with].machine;
  request.link = &link;
  request.tolerance = 0;
  request.plan_is_known = true;
  request.pin_count = 0; /* the operators have theirs */
  pair->is_exact = true;
  lp_status status = lp_plan_choose(s->pinned[pair->with], "exact", &request, side, NULL, s->arena, diag);
  if (status != LP_OK && status != LP_INFEASIBLE) return status;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *shape = &s->problem->of[0][stage];
    number[stage] = LP_NEW_ARRAY(s->arena, uint8_t, shape->op_count);
    for (int32_t i = 0; i < shape->op_count; i++)
      number[stage][i] = !shape->ops[i].free && side[stage][i] == LP_SIDE_CLOUD;
  }
  take_sides(s, number, pair->with);
  consider_pair(s, pair);
  return LP_OK;
}

static lp_status plan_pairs(solver *s, const lp_places_options *options, lp_diag *diag) {
  for (int p = 1; p < s->m->count; p++) {
    if (s->problem->places->place[p].member > 0) continue;
    s->pinned[p] = LP_NEW_ARRAY(s->arena, lp_plan_problem, LP_STAGE_COUNT);
    if (!lp_places_pin_pair(s->problem, p, s->arena, s->pinned[p])) continue;
    lp_places_pair *pair = &s->out->pair[s->out->pair_count++];
    pair->with = p;
    LP_TRY(plan_pair(s, pair, options, diag));
  }
  return LP_OK;
}

static lp_status plan_pairs_exactly(solver *s, lp_diag *diag) {
  for (int32_t i = 0; i < s->out->pair_count; i++) {
    lp_places_pair *pair = &s->out->pair[i];
    LP_TRY(plan_exactly(s, pair, diag));
    const int32_t best = s->out->best_pair;
    if (best < 0 || lp_places_compare(s->problem, &pair->result, &s->out->pair[best].result) < 0) s->out->best_pair = i;
  }
  return LP_OK;
}

/* ---- bounds and search ------------------------------------------------------------------------------------------- */

/* Looks for prices by which no placement meets the limits; returns whether there are any. */
static bool proves_infeasible(solver *s, lp_places_paths *paths) {
  paths->objective = 0;
  memset(&paths->duals, 0, sizeof paths->duals);
  return lp_places_improve(paths, ROUNDS, INFINITY, see_path, s) > reached;
}

/* Searches with `width` labels; returns the bound of all plans without divided parts that prices prove. */
static double search(solver *s, lp_places_paths *whole, size_t width, bool segments) {
  uint8_t *path[LP_STAGE_COUNT];
  lp_places_search run = {.width = width, .known = known(s), .segments = segments};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    path[stage] = LP_NEW_ARRAY(s->arena, uint8_t, s->m->part_count);
  lp_places_paths_back(whole);
  lp_places_search_run(whole, &run, path);
  if (!isinf(run.found)) consider_path(s, path);
  /* With early exits the plan found may be no chain; then the chains that it dominates are no cheaper. */
  if (s->problem->exit_layer > 0) run.dropped = fmin(run.dropped, run.found);
  return segments ? -INFINITY : fmin(known(s), run.dropped);
}

static double improve(solver *s, lp_places_paths *paths, int rounds) {
  return lp_places_improve(paths, rounds, known(s), see_path, s);
}

/* Where no plan is known yet, labels that are nearest to the limits come first. */
static void find_any(solver *s, size_t labels) {
  lp_places_paths *limits = lp_places_paths_create(s->m, false);
  if (proves_infeasible(s, limits)) return;
  (void)search(s, limits, labels, true);
  if (isinf(known(s))) (void)search(s, limits, labels, false);
}

/* Searches first for chains of segments, then improves the prices by what is known, then searches for any plan. Returns
 * the bound of plans without divided parts. */
static double search_whole(solver *s, lp_places_paths *all, size_t labels) {
  lp_places_paths *whole = lp_places_paths_create(s->m, false);
  whole->duals = all->duals;
  (void)improve(s, whole, WHOLE_ROUNDS);
  (void)search(s, whole, labels, true);
  if (isinf(known(s))) find_any(s, labels);
  s->out->dual_bound = improve(s, all, ROUNDS);
  whole->duals = all->duals;
  const double bound = improve(s, whole, WHOLE_ROUNDS);
  return bound >= known(s) * (1 - reached) ? bound : fmax(bound, search(s, whole, labels, false));
}

static bool can_divide(const lp_places_model *m) {
  for (int32_t i = 0; i < m->part_count; i++)
    if (m->part[i].divides[0] || m->part[i].divides[1]) return true;
  return false;
}

static void prove(solver *s, size_t labels) {
  lp_places_plan *out = s->out;
  lp_places_paths *all = lp_places_paths_create(s->m, true);
  (void)improve(s, all, ROUNDS);
  const double whole = search_whole(s, all, labels);
  out->duals = all->duals;
  if (isinf(known(s))) {
    lp_places_paths *limits = lp_places_paths_create(s->m, true);
    out->lower_bound = isinf(whole) && !can_divide(s->m) ? INFINITY : out->dual_bound;
    if (!proves_infeasible(s, limits)) return;
    out->lower_bound = out->dual_bound = INFINITY;
    out->duals = limits->duals;
    return;
  }
  lp_places_paths_back(all);
  out->lower_bound = fmax(out->dual_bound, fmin(whole, lp_places_divided_bound(all)));
}

double lp_places_gap(const lp_places_plan *plan, double bound) {
  if (!plan->result.feasible) return NAN;
  return plan->result.objective > 0 ? fmax(0, 1 - bound / plan->result.objective) : 0;
}

lp_status lp_places_solve(const lp_places_problem *problem, const lp_places_options *options, lp_arena *arena,
                          lp_places_plan *out, lp_diag *diag) {
  *out = (lp_places_plan){.best_pair = -1};
  solver s = {.problem = problem, .out = out, .arena = arena};
  LP_TRY(lp_places_model_build(problem, arena, &s.m, diag));
  out->model = s.m;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    out->place[stage] = LP_NEW_ARRAY(arena, uint8_t, problem->of[0][stage].op_count);
    s.trial[stage] = LP_NEW_ARRAY(arena, uint8_t, problem->of[0][stage].op_count);
  }
  if (options->pairs) LP_TRY(plan_pairs(&s, options, diag));
  consider_single_places(&s);
  prove(&s, options->labels ? options->labels : LABELS);
  if (options->pairs) LP_TRY(plan_pairs_exactly(&s, diag));
  if (!s.has_plan)
    return lp_error(diag, LP_LOC_FILE("--pin"),
                    "no chain of places, none of them twice, follows the pins, as exits need");
  if (!out->result.feasible) return LP_INFEASIBLE;
  out->lower_bound = fmin(out->lower_bound, known(&s));
  out->complete = out->lower_bound >= known(&s) * (1 - reached);
  return LP_OK;
}
