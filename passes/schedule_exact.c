/* exact: the least objective over all subsets of operators, under TTFT, TPOT and both memories, with true transfers.
 *
 * Prices for the limits give a bound and near-optimal placements (exact_bound.c); a label search closes what is between
 * (exact_search.c): stage by stage where the stages have nothing to share, else through both. The search is complete
 * unless it would keep more labels than its width; then the bound of the prices is what is proved. */
#include "passes/plan_exact.h"

#include <math.h>
#include <string.h>

/* Labels that a search may make in all, and per step. */
enum { EFFORT = 40000, MOST_WIDTH = 4000, LEAST_WIDTH = 8 };

/* Placements on the way to the best prices that are evaluated. */
enum { MOST_SEEN = 60 };

/* How near to a bound counts as reached; sums of times differ in the order of their terms. */
static const double tolerance = 1e-11;

typedef struct {
  lp_exact_watch watch; /* first: handed on as itself */
  lp_exact x;
  lp_exact_graph graph[LP_STAGE_COUNT];
  lp_exact_prices *prices, *fastest, *around;
  lp_place **side; /* the best so far */
  lp_plan_result result;
  int seen;
  bool has_result, joint; /* joint: the stages share memory that can run out */
  lp_place *trial[LP_STAGE_COUNT];
  unsigned char *stage_side[LP_STAGE_COUNT]; /* the best of each stage alone that meets its bound */
  double stage_objective[LP_STAGE_COUNT];    /* infinite: none yet */
} solver;

/* ---- candidates ---------------------------------------------------------------------------------------------------------- */

static void consider_trial(solver *s) {
  lp_plan_result result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_plan_settle(&s->x.problem[stage], s->trial[stage]);
  lp_plan_evaluate(s->x.problem, s->x.request, s->trial, &result);
  if (s->has_result && lp_plan_compare(&result, &s->result, s->x.request) >= 0) return;
  s->has_result = true;
  s->result = result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(s->side[stage], s->trial[stage], (size_t)s->x.problem[stage].op_count * sizeof **s->trial);
}

static void consider_units(solver *s, unsigned char *const of_unit[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->x.problem[stage].op_count; i++) {
      int32_t unit = s->x.unit_of[stage][i];
      s->trial[stage][i] = unit >= 0 && of_unit[stage][unit] ? LP_PLACE_CLOUD : LP_PLACE_DEVICE;
    }
  consider_trial(s);
}

static void consider_cuts(solver *s) {
  int64_t layers = s->x.problem[0].layer_count;
  for (int64_t cut = -1; cut <= layers + 1; cut++) {
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      lp_plan_fill_cut(&s->x.problem[stage], cut, s->trial[stage]);
    consider_trial(s);
  }
}

/* Shortest paths on the way to the best prices are placements too. */
static void see(lp_exact_watch *watch, const lp_exact_prices *prices) {
  solver *s = (solver *)watch;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double limit = s->x.limit_ms[stage];
    if (limit > 0 && prices->path_ms[stage] > limit * (1 - tolerance)) continue;
    if (prices->path_objective[stage] >= s->stage_objective[stage]) continue;
    s->stage_objective[stage] = prices->path_objective[stage];
    memcpy(s->stage_side[stage], prices->side[stage], (size_t)s->x.unit_count[stage]);
  }
  if (s->joint && prices->has_met[0] && prices->has_met[1] && s->seen++ < MOST_SEEN) consider_units(s, prices->met);
}

/* KV caches where `of_unit` has them, and each stage at its best around them. */
static void improve_around(solver *s, lp_stage from, const unsigned char *of_unit) {
  lp_exact_prices *prices = s->around;
  for (int32_t i = 0; i < s->x.unit_count[from]; i++) {
    const lp_exact_unit *unit = &s->x.unit[from][i];
    for (int32_t k = 0; k < unit->hold_count; k++)
      if (s->x.holding[unit->hold[k]].is_state) prices->forced[unit->hold[k]] = (int8_t)of_unit[i];
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!lp_exact_best_stage(&s->x, s->graph, (lp_stage)stage, prices)) return;
  consider_units(s, prices->met);
}

static void improve(solver *s) {
  unsigned char *of_unit = LP_NEW_ARRAY(s->x.arena, unsigned char, s->x.unit_count[LP_STAGE_DECODE]);
  s->around = lp_exact_prices_create(&s->x);
  s->around->duals = s->prices->duals;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (s->prices->has_met[stage]) improve_around(s, (lp_stage)stage, s->prices->met[stage]);
  for (int32_t i = 0; i < s->x.problem[LP_STAGE_DECODE].op_count; i++) {
    int32_t unit = s->x.unit_of[LP_STAGE_DECODE][i];
    if (unit >= 0) of_unit[unit] = s->side[LP_STAGE_DECODE][i] == LP_PLACE_CLOUD;
  }
  improve_around(s, LP_STAGE_DECODE, of_unit);
}

/* ---- search ---------------------------------------------------------------------------------------------------------------- */

static size_t width(const solver *s) {
  int32_t width = s->x.step_count ? EFFORT / s->x.step_count : MOST_WIDTH;
  return (size_t)(width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width);
}

static double below(double value) {
  return isinf(value) ? value : value - tolerance * fabs(value);
}

/* The best of each stage alone. True when nothing better can be: both are found, they agree on the caches or moving them
 * costs nothing, and all labels were kept. */
static bool search_stages(solver *s) {
  bool complete = true;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_exact_search search = {.stages = 1u << stage, .most = below(s->stage_objective[stage]), .width = width(s)};
    lp_exact_search_run(&s->x, s->graph, s->prices, s->fastest, &search, s->stage_side);
    complete = complete && search.complete;
    if (search.found) s->stage_objective[stage] = search.objective;
    if (isinf(s->stage_objective[stage])) return false;
  }
  consider_units(s, s->stage_side);
  double both = s->stage_objective[0] + s->stage_objective[1];
  return complete && s->result.feasible &&
         lp_plan_objective_value(&s->result, s->x.request) <= both + tolerance * fabs(both);
}

static bool search_both(solver *s) {
  unsigned char *side[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(s->x.arena, unsigned char, s->x.unit_count[stage]);
  double known = s->result.feasible ? lp_plan_objective_value(&s->result, s->x.request) : INFINITY;
  lp_exact_search search = {.stages = 3, .most = below(known), .width = width(s)};
  lp_exact_search_run(&s->x, s->graph, s->prices, s->fastest, &search, side);
  if (search.found) consider_units(s, side);
  return search.complete;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

static bool meets_bounds(const solver *s) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (s->x.limit_ms[stage] > 0 && s->fastest->potential[stage][0][0] > s->x.limit_ms[stage]) return false;
  return true;
}

/* Everything lies on one side at least: is there room for all of it together? */
static bool has_room(const lp_exact *x) {
  if (x->limit_bytes[LP_PLACE_DEVICE] <= 0 || x->limit_bytes[LP_PLACE_CLOUD] <= 0) return true;
  double needed = 0;
  for (int32_t i = 0; i < x->holding_count; i++)
    needed += fmin(x->holding[i].bytes[LP_PLACE_DEVICE], x->holding[i].bytes[LP_PLACE_CLOUD]);
  return needed <= x->limit_bytes[LP_PLACE_DEVICE] + x->limit_bytes[LP_PLACE_CLOUD];
}

static void prove(const solver *s, bool complete, lp_plan_proof *proof) {
  if (!proof) return;
  double objective = lp_plan_objective_value(&s->result, s->x.request);
  *proof = (lp_plan_proof){.known = true,
                           .complete = complete,
                           .lower_bound = fmin(complete ? objective : s->prices->bound, objective),
                           .dual_bound = fmin(s->prices->bound, objective)};
  memcpy(proof->per_ms, s->prices->duals.per_ms, sizeof proof->per_ms);
  proof->residence = s->prices->duals.residence;
  memcpy(proof->per_byte, s->prices->duals.per_byte, sizeof proof->per_byte);
}

static void solve(solver *s, lp_plan_proof *proof) {
  consider_cuts(s);
  if (!has_room(&s->x)) return;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!lp_exact_graph_build(&s->x, (lp_stage)stage, &s->graph[stage])) return;
  s->prices = lp_exact_prices_create(&s->x);
  s->fastest = lp_exact_prices_create(&s->x);
  if (!lp_exact_fastest(&s->x, s->graph, s->fastest)) return;
  consider_units(s, s->fastest->side);
  if (!meets_bounds(s) || (s->x.request->feasible_suffices && s->result.feasible)) return;
  lp_exact_best_prices(&s->x, s->graph, &s->watch, s->prices);
  improve(s);
  if (s->x.request->feasible_suffices && s->result.feasible) return;
  bool apart = !s->joint && fabs(s->prices->duals.residence) <= 0;
  bool complete = apart && search_stages(s);
  if (!complete) complete = search_both(s);
  if (s->result.feasible) prove(s, complete, proof);
}

static lp_status place(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_request *request,
                       lp_place *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)diag;
  solver s = {.watch = {see}, .side = side};
  lp_exact_build(problem, request, scratch, &s.x);
  s.joint = s.x.limit_bytes[LP_PLACE_DEVICE] > 0 || s.x.limit_bytes[LP_PLACE_CLOUD] > 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    s.trial[stage] = LP_NEW_ARRAY(scratch, lp_place, problem[stage].op_count);
    s.stage_side[stage] = LP_NEW_ARRAY(scratch, unsigned char, s.x.unit_count[stage]);
    s.stage_objective[stage] = INFINITY;
  }
  solve(&s, proof);
  return LP_OK;
}

const lp_scheduler lp_scheduler_exact = {
    .name = "exact", .summary = "the best of all placements, operator by operator, with a proof", .place = place};
