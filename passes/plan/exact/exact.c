/* exact: minimises the objective over all subsets of operators, under TTFT, TPOT and both memories, with true
 * transfers.
 *
 * Minimum cuts at prices of the limits give a bound and near-optimal placements (cut.c, cut_prices.c); blocks of layers
 * (blocks.c) give others. Beams through the graph of both stages find better ones (subproblems.c). A beam that drops no
 * label that could be better proves its plan. The bound that a report states is that of the checker of certificates,
 * which begins with the prices and the bound found here. */
#include "base/side.h"
#include "passes/plan/evaluate.h"
#include "passes/plan/exact/cut_prices.h"
#include "passes/plan/exact/solve.h"
#include "passes/plan/exact/subproblems.h"
#include "passes/plan/pin.h"
#include "passes/plan/schedulers.h"

#include <math.h>

/* The most arcs that flows may visit in the search for prices; an arc takes about 3 ns, so this is 30 ms. */
static const double price_effort = 1e7;

/* Cuts with a bound below this share of the best objective are too far off to mix with a plan. With 2 none is mixed:
 * one plan of the sample (subproblems.c) is 0.6 % cheaper, and two of the whole grid are dearer, by up to 1.6 %. */
static const double near_enough = 0.5;

/* The share of the usual labels where a plan is known and a search only looks for a better one: pairs of places. */
static const double known_share = 0.25;

/* The gap, as a share, which a search without any limits of memories leaves and from which on one with them follows.
 * A smaller one searches more cases twice. */
static const double gap_far = 0.05;

/* Seeds for the beams: borders of layers for blocks, cuts that are mixed with a plan, and halvings of such a mixture.
 * The time of the seeds grows with the square of the first and with the others. Twice of the first makes one plan of
 * the sample 0.2 % cheaper, in 1.07 times the time. */
enum { MOST_CUTS = 16, MOST_MIXES = 12, HALVINGS = 8 };

/* Units of both stages up to which beams follow although cuts left only a small gap. */
enum { SOME_UNITS = 400 };

typedef struct {
  const lp_plan_problem *problem; /* by which placements are evaluated: not that of `x` where they stream */
  double offset;                  /* what an objective has beyond the costs that `x` knows */
  lp_exact x;
  lp_exact_graph graph[LP_STAGE_COUNT];
  lp_side **side; /* the best so far */
  lp_plan_result result;
  const lp_exact_task *task;
  bool has_result;
  bool is_relaxed; /* `x` lacks limits of memories now */
  int infeasible;  /* placements that break such a limit */
  double known;    /* the objective of a placement of another problem; infinite: none */
  double lowest;   /* a bound of all placements; infinite: none meets the limits */
  lp_side *trial[LP_STAGE_COUNT];
  unsigned char *mixed[LP_STAGE_COUNT];
} solver;

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* Evaluates the trial placement, keeps it if it is the best so far, and tells whether it is feasible. */
static bool consider_trial(solver *s) {
  lp_plan_result result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_plan_settle(&s->x.problem[stage], s->trial[stage]);
    lp_exact_join(&s->x, (lp_stage)stage, s->trial[stage]);
  }
  lp_plan_evaluate(s->problem, s->x.request, s->trial, &result);
  if (s->task->limited && lp_plan_objective_value(&result, s->task->limited) > s->task->most) result.feasible = false;
  if (s->has_result && lp_plan_compare(&result, &s->result, s->x.request) >= 0) return result.feasible;
  s->has_result = true;
  s->result = result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(s->side[stage], s->trial[stage], (size_t)s->x.problem[stage].op_count * sizeof **s->trial);
  return result.feasible;
}

static void consider(solver *s, lp_side *const *side) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(s->trial[stage], side[stage], (size_t)s->x.problem[stage].op_count * sizeof **side);
  (void)consider_trial(s);
}

static bool consider_units(solver *s, unsigned char *const of_unit[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->x.problem[stage].op_count; i++) {
      int32_t unit = s->x.unit_of[stage][i];
      s->trial[stage][i] = unit >= 0 && of_unit[stage][unit] ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
  return consider_trial(s);
}

/* Fills the sides of the best placement so far, by unit. */
static void get_units(const solver *s, unsigned char *of_unit[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->x.problem[stage].op_count; i++)
      if (s->x.unit_of[stage][i] >= 0) of_unit[stage][s->x.unit_of[stage][i]] = s->side[stage][i] == LP_SIDE_CLOUD;
}

static void consider_cuts(solver *s) {
  int64_t layers = s->x.problem[0].layer_count;
  for (int64_t cut = -1; cut <= layers + 1; cut++) {
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      lp_plan_fill_cut(&s->x.problem[stage], cut, s->trial[stage]);
    (void)consider_trial(s);
  }
  const lp_plan_front *front = s->x.request->front; /* its knee meets the limits that come from it */
  for (int stage = 0; stage < LP_STAGE_COUNT && front; stage++)
    lp_plan_fill_cut(&s->x.problem[stage], front->row[front->knee].cut[stage], s->trial[stage]);
  if (front) (void)consider_trial(s);
}

/* Tries placements with one side between two borders and the other side before and after them, for at most MOST_CUTS
 * borders. */
static void consider_blocks(solver *s) {
  int64_t layers = s->x.problem[0].layer_count, stride = layers / MOST_CUTS + 1;
  for (int64_t from = 0; from <= layers + 1; from += stride)
    for (int64_t to = from + stride; to <= layers + stride; to += stride)
      for (int cloud = 0; cloud < 2; cloud++) {
        for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
          for (int32_t i = 0; i < s->x.problem[stage].op_count; i++) {
            int32_t layer = s->x.problem[stage].ops[i].layer;
            s->trial[stage][i] = (layer >= from && layer < to) == (cloud != 0) ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
          }
        (void)consider_trial(s);
      }
}

/* Puts the MLPs of layers [from, to), or half of their mixtures of experts, on one side, and the rest on the other. */
static void consider_apart(solver *s, lp_mixture_half half, int64_t from, int64_t to, lp_side side) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->x.problem[stage].op_count; i++) {
      const lp_plan_op *item = &s->x.problem[stage].ops[i];
      const bool is_one = half ? lp_op_half(item->op) == half : lp_streq(lp_op_str(item->op, "layer_kind", ""), "mlp");
      const bool moves = is_one && item->layer >= from && item->layer < to;
      s->trial[stage][i] = moves == (side == LP_SIDE_CLOUD) ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
  (void)consider_trial(s);
}

/* Tries MLPs apart from attention in the first or the last layers, for at most MOST_CUTS borders. */
static void consider_mlps(solver *s) {
  const int64_t layers = s->x.problem[0].layer_count, stride = layers / MOST_CUTS + 1;
  const lp_mixture_half last = s->x.request->hot_experts > 0 ? LP_HALF_REST : LP_HALF_NONE;
  for (int64_t count = stride; count < layers + stride; count += stride)
    for (lp_mixture_half half = LP_HALF_NONE; half <= last; half++)
      for (lp_side side = 0; side < LP_SIDE_COUNT; side++) {
        consider_apart(s, half, 0, count, side);
        consider_apart(s, half, layers - count, layers, side);
      }
}

static double see_blocks(void *user, const lp_exact_block block[LP_STAGE_COUNT]) {
  solver *s = user;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->x.problem[stage].op_count; i++) {
      const int32_t slice = block[stage].slice[i];
      bool inside = slice >= block[stage].from && slice < block[stage].to;
      s->trial[stage][i] = inside == block[stage].cloud ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
  (void)consider_trial(s);
  return s->result.feasible ? lp_plan_objective_value(&s->result, s->x.request) - s->offset : INFINITY;
}

static bool any_suffices(const solver *s) {
  return s->x.request->feasible_suffices || s->task->any_suffices;
}

/* The objective below which no placement is wanted. */
static double incumbent(const solver *s) {
  if (!s->result.feasible) return s->known;
  if (any_suffices(s)) return -INFINITY;
  return fmin(s->known, lp_plan_objective_value(&s->result, s->x.request) - s->offset);
}

static void try_blocks(solver *s) {
  consider_blocks(s);
  lp_exact_blocks(&s->x, incumbent(s), see_blocks, s);
}

/* ---- cuts -------------------------------------------------------------------------------------------------------- */

/* All users of a KV cache follow the first one. */
static void gather_caches(solver *s, unsigned char *of_unit[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->x.unit_count[stage]; i++) {
      const lp_exact_unit *unit = &s->x.unit[stage][i];
      for (int32_t k = 0; k < unit->hold_count; k++) {
        const lp_exact_holding *holding = &s->x.holding[unit->hold[k]];
        if (holding->is_state) of_unit[stage][i] = of_unit[stage][holding->first[stage]];
      }
    }
}

/* Mixes two placements in the stages of `stages`: the units up to a share have the sides of one, the units after it
 * those of the other. The other stages keep the sides of `meets`. Layers are alike, so bisection finds the share that
 * the limits allow. `breaks_first` says whether the placement that breaks the limits has the first units. */
static void consider_between(solver *s, unsigned char *const meets[LP_STAGE_COUNT],
                             unsigned char *const breaks[LP_STAGE_COUNT], unsigned stages, bool breaks_first) {
  double low = 0, high = 1; /* share of the units of the placement that breaks the limits */
  for (int i = 0; i < HALVINGS; i++) {
    double share = (low + high) / 2;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      int32_t count = s->x.unit_count[stage], border = (int32_t)(count * (breaks_first ? share : 1 - share));
      for (int32_t k = 0; k < count; k++) {
        bool other = (stages >> stage & 1) && (k < border) == breaks_first;
        s->mixed[stage][k] = (other ? breaks : meets)[stage][k];
      }
    }
    gather_caches(s, s->mixed);
    *(consider_units(s, s->mixed) ? &low : &high) = share;
  }
}

/* Evaluates the cuts of a search: those that meet the limits directly, the others mixed with the best placement that
 * meets them. */
typedef struct {
  lp_cut_search search; /* first, so that a pointer to it is a pointer to this */
  lp_cut cut;
  solver *solver;
  unsigned char *best[LP_STAGE_COUNT];
  int mixes;
} cut_search;

static double see_cut(lp_cut_search *search, unsigned char *const side[LP_STAGE_COUNT], double bound) {
  cut_search *own = (cut_search *)search;
  solver *s = own->solver;
  if (consider_units(s, side) || bound < near_enough * incumbent(s) || own->mixes++ >= MOST_MIXES) return incumbent(s);
  get_units(s, own->best);
  for (unsigned stages = 1; stages <= 3; stages++)
    for (int first = 0; first < 2; first++)
      consider_between(s, own->best, side, stages, first);
  return incumbent(s);
}

/* Searches for the prices of the limits that the problem has now. */
static void search_prices(solver *s, cut_search *out) {
  *out = (cut_search){.search = {.see = see_cut, .known = incumbent(s), .effort = price_effort}, .solver = s};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    out->best[stage] = LP_NEW_ARRAY(s->x.arena, unsigned char, s->x.unit_count[stage]);
  lp_cut_create(&s->x, &out->cut);
  lp_cut_search_prices(&out->cut, &out->search);
}

/* ---- beams ------------------------------------------------------------------------------------------------------- */

/* Evaluates a placement that a beam has found; returns whether it is feasible. */
static bool see_beam(void *user, unsigned char *const side[LP_STAGE_COUNT]) {
  solver *s = user;
  const bool is_feasible = consider_units(s, side);
  s->infeasible += !is_feasible;
  return is_feasible;
}

static double incumbent_of(const void *user) {
  return incumbent(user);
}

/* If the limits are tight, the placements that meet them are far from the objective at which the searches aim: a search
 * for another objective finds one to begin with, that for the latency or, where memory is tight, for the cost. */
static void find_any(void *user) {
  solver *s = user;
  if (s->task->any_suffices) return;
  static const char *const objectives[] = {"latency", "cost"};
  const char *own = s->x.request->objective ? s->x.request->objective : "cost";
  lp_side *side[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(s->x.arena, lp_side, s->x.problem[stage].op_count);
  for (size_t i = 0; i < LP_COUNT(objectives) && !s->result.feasible; i++) {
    lp_compile_request other = *s->x.request;
    other.objective = objectives[i];
    const lp_exact_task task = {.problem = s->problem, .request = &other, .any_suffices = true};
    if (!lp_streq(own, objectives[i]) && lp_exact_solve(&task, side, NULL, s->x.arena)) consider(s, side);
  }
}

/* Tells whether a bound is within this share of the objective. */
static bool is_proved(const solver *s, double lowest, double share) {
  double known = incumbent(s);
  return known < INFINITY && lowest >= known - share * fabs(known);
}

/* What the searches find. */
typedef struct {
  const cut_search *by; /* the prices by which `lowest` is to be proved */
  double lowest;        /* a bound */
  double enough;        /* the gap above which a search with all limits follows */
} findings;

static void search_beams(solver *s, const cut_search *prices, findings *found) {
  const lp_exact_subproblems_task task = {.x = &s->x,
                                          .duals = &prices->search.duals,
                                          .lowest = prices->search.bound,
                                          .share = s->x.request->plan_is_known ? known_share : 1,
                                          .is_quick = s->x.request->near_suffices,
                                          .is_relaxed = s->is_relaxed,
                                          .see = see_beam,
                                          .find_any = find_any,
                                          .incumbent = incumbent_of,
                                          .user = s};
  found->lowest = fmax(found->lowest, lp_exact_search_subproblems(&task));
}

/* ---- memories that need not bind --------------------------------------------------------------------------------- */

static bool shares_memory(const lp_exact *x) {
  return x->limit_bytes[LP_SIDE_DEVICE] > 0 || x->limit_bytes[LP_SIDE_CLOUD] > 0;
}

/* Searches as if the memories without a price had no limit, or all of them where that does not lower the bound of cuts:
 * labels that need not heed them are fewer by far. A placement still counts only if it keeps all limits, and what is
 * proved holds with them. `relaxed` gets the prices without any of these limits. */
static void search_without_limits(solver *s, const cut_search *own, cut_search *relaxed, findings *found) {
  const double limit[] = {s->x.limit_bytes[LP_SIDE_DEVICE], s->x.limit_bytes[LP_SIDE_CLOUD]};
  const double *per_byte = own->search.duals.per_byte;
  const bool all = !(limit[0] > 0 && !(per_byte[0] > 0)) && !(limit[1] > 0 && !(per_byte[1] > 0));
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (all || !(per_byte[side] > 0)) s->x.limit_bytes[side] = 0;
  s->is_relaxed = true;
  if (all) search_prices(s, relaxed);
  if (!all) {
    search_beams(s, own, found);
  } else if (relaxed->search.bound >= own->search.bound) {
    search_beams(s, relaxed, found);
    if (s->x.step_count > LP_EXACT_FEW_UNITS) found->enough = gap_far;
    if (is_proved(s, found->lowest, LP_EXACT_GAP_CLOSE)) found->by = relaxed;
  }
  memcpy(s->x.limit_bytes, limit, sizeof limit);
  s->is_relaxed = false;
}

/* ---- the solver -------------------------------------------------------------------------------------------------- */

static bool is_done(const solver *s) {
  return any_suffices(s) && s->result.feasible;
}

/* Tells whether a request of many, those of fixes and of grids, is left without a plan where cuts and blocks find none:
 * each search of beams builds the graph of both stages. */
static bool gives_up(const solver *s) {
  return !s->result.feasible && (s->x.request->near_suffices || s->x.request->feasible_suffices);
}

static void prove(const solver *s, const findings *found, lp_plan_proof *proof) {
  if (!proof || !s->result.feasible) return;
  const lp_cut_search *search = &found->by->search;
  const double objective = lp_plan_objective_value(&s->result, s->x.request);
  *proof = (lp_plan_proof){.known = true,
                           .complete = is_proved(s, found->lowest, LP_EXACT_ROUNDING),
                           .lower_bound = fmin(found->lowest, objective),
                           .dual_bound = fmin(search->bound, objective),
                           .way = found->by->cut.way,
                           .way_count = found->by->cut.slot_count};
  if (proof->complete) proof->lower_bound = objective;
  memcpy(proof->per_ms, search->duals.per_ms, sizeof proof->per_ms);
  memcpy(proof->per_byte, search->duals.per_byte, sizeof proof->per_byte);
}

/* Makes the stages' graphs and evaluates their fastest placements; false when a stage has too many frontiers. `meets`:
 * whether each stage by itself can meet its limit. */
static bool make_graphs(solver *s, bool *meets) {
  unsigned char *side[LP_STAGE_COUNT];
  double ms[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    if (!lp_exact_graph_build(&s->x, (lp_stage)stage, &s->graph[stage])) return false;
    side[stage] = LP_NEW_ARRAY(s->x.arena, unsigned char, s->x.unit_count[stage]);
  }
  *meets = lp_exact_find_fastest(&s->x, s->graph, side, ms);
  if (*meets) (void)consider_units(s, side);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    *meets = *meets && !(s->x.limit_ms[stage] > 0 && ms[stage] > s->x.limit_ms[stage]);
  return true;
}

static void solve(solver *s, lp_plan_proof *proof) {
  bool meets = true;
  consider_cuts(s);
  consider_mlps(s);
  if (is_done(s)) return;
  const bool has_room = lp_exact_has_room(&s->x), has_graph = has_room && make_graphs(s, &meets);
  if (is_done(s)) return;
  if (!has_room || !meets) {
    s->lowest = INFINITY;
    return;
  }
  cut_search own, relaxed;
  search_prices(s, &own);
  s->lowest = own.search.bound;
  if (is_done(s)) return;
  const int32_t units = s->x.step_count;
  findings found = {&own, own.search.bound, units <= SOME_UNITS ? LP_EXACT_ROUNDING : LP_EXACT_GAP_CLOSE};
  bool suffices = own.search.complete || !has_graph;
  if (!own.search.complete) try_blocks(s);
  if (is_done(s)) return;
  if (!s->result.feasible && (!has_graph || s->x.request->near_suffices)) find_any(s);
  if (gives_up(s)) return;
  if (!suffices && shares_memory(&s->x)) {
    search_without_limits(s, &own, &relaxed, &found);
    suffices =
        units > LP_EXACT_FEW_UNITS && found.lowest > own.search.bound && s->infeasible == 0 && s->result.feasible;
  }
  if (!suffices && !is_proved(s, found.lowest, found.enough)) search_beams(s, &own, &found);
  s->lowest = found.lowest;
  prove(s, &found, proof);
}

static void begin(solver *s, const lp_exact_task *task, const lp_plan_problem problem[LP_STAGE_COUNT],
                  lp_side *side[LP_STAGE_COUNT], lp_arena *scratch) {
  s->side = side;
  s->task = task;
  s->known = INFINITY;
  s->lowest = -INFINITY;
  s->problem = task->problem;
  lp_exact_build(problem, task->request, scratch, &s->x);
  if (task->limited) {
    lp_plan_weights_get(task->limited, &s->x.limited);
    s->x.limit_objective = task->most;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    s->trial[stage] = LP_NEW_ARRAY(scratch, lp_side, problem[stage].op_count);
    s->mixed[stage] = LP_NEW_ARRAY(scratch, unsigned char, s->x.unit_count[stage]);
  }
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* States what is proved of both problems; `lowest`: of the other one. */
static void prove_both(solver *s, double lowest, lp_plan_proof *proof) {
  if (!proof || !s->result.feasible) return;
  if (!proof->known) {
    cut_search own;
    search_prices(s, &own);
    prove(s, &(findings){&own, s->lowest, 0}, proof);
  }
  const double objective = lp_plan_objective_value(&s->result, s->x.request);
  lowest = fmin(lowest, s->lowest);
  proof->complete = is_proved(s, lowest, LP_EXACT_ROUNDING);
  proof->lower_bound = proof->complete ? objective : fmin(lowest, objective);
  proof->dual_bound = fmin(proof->dual_bound, objective);
}

/* Searches the placements that stream. Each token's wait for the link is no cost that the graphs of a stage know, and
 * is the same for all of them. `lowest` gets a bound. False: there are no such placements. */
static bool solve_streams(solver *all, const lp_exact_task *task, lp_arena *arena, double *lowest) {
  lp_plan_problem streamed[LP_STAGE_COUNT];
  lp_side *side[LP_STAGE_COUNT];
  double stall = 0;
  if (!lp_plan_make_streamed(task->problem, task->request, arena, streamed, &stall)) return false;
  *lowest = INFINITY;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(arena, lp_side, streamed[stage].op_count);
  solver s = {0};
  begin(&s, task, streamed, side, arena);
  double *const limit[] = {&s.x.limit_ms[LP_STAGE_DECODE], &s.x.limit_objective};
  const double taken[] = {stall, s.x.limited.link[LP_STAGE_DECODE] * stall};
  for (size_t i = 0; i < LP_COUNT(limit); i++) {
    if (*limit[i] > 0 && *limit[i] <= taken[i]) return true;
    if (*limit[i] > 0) *limit[i] -= taken[i];
  }
  s.offset = s.x.weights.link[LP_STAGE_DECODE] * stall;
  s.known = incumbent(all) - s.offset;
  if (task->seed) consider(&s, task->seed);
  solve(&s, NULL);
  if (s.has_result) consider(all, side);
  *lowest = s.lowest + s.offset;
  return true;
}

/* The graphs of a stage know nothing of streams: placements that stream are a problem of their own, and in the other
 * one they cost more than they do. */
bool lp_exact_solve(const lp_exact_task *task, lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch) {
  lp_arena *arena = lp_arena_create(); /* the searches of large models take much memory */
  solver all = {0};
  begin(&all, task, task->problem, side, proof ? scratch : arena);
  if (task->seed) consider(&all, task->seed);
  solve(&all, proof);
  double lowest = 0;
  if (!is_done(&all) && solve_streams(&all, task, arena, &lowest)) prove_both(&all, lowest, proof);
  lp_arena_free(arena);
  return all.result.feasible;
}
