/* exact: minimises the objective over all subsets of operators, under TTFT, TPOT and both memories, with true
 * transfers.
 *
 * Minimum cuts at prices of the limits give a bound and near-optimal placements (cut.c, branch.c). Real decoders begin
 * with the best blocks of layers (blocks.c), and a label search along a chain of segments closes the gap (chain.c). For
 * smaller models, a label search along the stages' frontiers closes it (search.c): for each stage separately where the
 * stages share nothing, else for both together. That search is complete unless it would keep more labels than its
 * width, or the graph has too many frontiers. Then branch and bound continues from the cuts as far as its effort
 * allows, and the proved bound is reported. */
#include "base/side.h"
#include "passes/plan/exact/branch.h"
#include "passes/plan/exact/cut.h"
#include "passes/plan/exact/parts.h"
#include "passes/plan/exact/solve.h"
#include "passes/plan/pin.h"
#include "passes/plan/schedulers.h"

#include <math.h>
#include <string.h>

/* The most labels that a search may make, in total and per step. A search through both stages with few labels finds
 * nothing that cuts do not find. */
enum { EFFORT = 40000, NEAR_EFFORT = 4000, MOST_WIDTH = 4000, LEAST_WIDTH = 8, WIDTH_OF_BOTH = 20 };

/* The most arcs that flows may visit, for the prices and in total; an arc takes about 3 ns. Branch and bound runs only
 * with at most MOST_PARTED units. */
static const double price_effort = 1e7, parts_effort = 6e7;
enum { MOST_PARTED = 400 };

/* Cuts with a bound below this share of the best objective are too far off to mix. */
static const double near_enough = 0.5;

/* The gap which a search without the limits of memories leaves and from which on one with them may find more. */
static const double gap_far = 0.05;

/* MOST_SEEN: the most placements that are evaluated on the way to the best prices. */
enum { MOST_CUTS = 16, MOST_SEEN = 60, MOST_MIXES = 12, HALVINGS = 8 };

/* A bound this close, as a share, counts as reached, because sums of times differ with the order of their terms. */
static const double tolerance = 1e-11;

typedef struct {
  lp_exact_watch watch; /* first, so that a pointer to it is a pointer to this */
  lp_exact x;
  lp_exact_graph graph[LP_STAGE_COUNT];
  lp_exact_prices *prices, *separate, *fastest; /* separate: prices for stages that share nothing */
  lp_side **side;                               /* the best so far */
  lp_plan_result result;
  lp_exact_kept *kept; /* NULL: none */
  bool again;          /* an earlier search has tried the seeds that are the same for all objectives */
  int seen;
  bool has_result, joint; /* joint: the stages share memory that can run out */
  bool is_loose;          /* `x` lacks limits of memories now */
  int refused;            /* placements that break such a limit */
  lp_side *trial[LP_STAGE_COUNT];
  unsigned char *mixed[LP_STAGE_COUNT];
  unsigned char *stage_side[LP_STAGE_COUNT]; /* the best sides of each stage by itself that meet its bound */
  double stage_objective[LP_STAGE_COUNT];    /* infinite: none yet */
} solver;

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* Evaluates the trial placement, keeps it if it is the best so far, and tells whether it is feasible. */
static bool consider_trial(solver *s) {
  lp_plan_result result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_plan_settle(&s->x.problem[stage], s->trial[stage]);
    lp_exact_join(&s->x, (lp_stage)stage, s->trial[stage]);
  }
  lp_plan_evaluate(s->x.problem, s->x.request, s->trial, &result);
  if (s->kept) (void)lp_exact_keep(s->kept, s->x.problem, s->trial, &result);
  if (s->has_result && lp_plan_compare(&result, &s->result, s->x.request) >= 0) return result.feasible;
  s->has_result = true;
  s->result = result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(s->side[stage], s->trial[stage], (size_t)s->x.problem[stage].op_count * sizeof **s->trial);
  return result.feasible;
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

static double see_blocks(void *user, const lp_exact_block block[LP_STAGE_COUNT]) {
  solver *s = user;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->x.problem[stage].op_count; i++) {
      const int32_t slice = block[stage].slice[i];
      bool inside = slice >= block[stage].from && slice < block[stage].to;
      s->trial[stage][i] = inside == block[stage].cloud ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
  (void)consider_trial(s);
  return s->result.feasible ? lp_plan_objective_value(&s->result, s->x.request) : INFINITY;
}

/* Evaluates the shortest paths that the price search finds, because each path is a placement. */
static void see(lp_exact_watch *watch, const lp_exact_prices *prices) {
  solver *s = (solver *)watch;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double limit = s->x.limit_ms[stage];
    if (limit > 0 && prices->path_ms[stage] > limit * (1 - tolerance)) continue;
    if (prices->path_objective[stage] >= s->stage_objective[stage]) continue;
    s->stage_objective[stage] = prices->path_objective[stage];
    memcpy(s->stage_side[stage], prices->side[stage], (size_t)s->x.unit_count[stage]);
  }
  if (s->joint && prices->has_met[0] && prices->has_met[1] && s->seen++ < MOST_SEEN)
    (void)consider_units(s, prices->met);
}

/* ---- search ------------------------------------------------------------------------------------------------------ */

static size_t width(const solver *s) {
  int32_t effort = s->x.request->near_suffices ? NEAR_EFFORT : EFFORT;
  int32_t width = s->x.step_count ? effort / s->x.step_count : MOST_WIDTH;
  return (size_t)(width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width);
}

static double below(double value) {
  return isinf(value) ? value : value - tolerance * fabs(value);
}

/* Joins the best placements of each stage. Returns true when nothing better exists: both are found, they agree on the
 * caches or moving them costs nothing, and no label was dropped. */
static bool search_stages(solver *s) {
  bool complete = true;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_exact_search search = {.stages = 1u << stage, .most = below(s->stage_objective[stage]), .width = width(s)};
    lp_exact_search_run(&s->x, s->graph, s->separate, s->fastest, &search, s->stage_side);
    complete = complete && search.complete;
    if (search.found) s->stage_objective[stage] = search.objective;
    if (isinf(s->stage_objective[stage])) return false;
  }
  (void)consider_units(s, s->stage_side);
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
  if (search.found && !consider_units(s, side)) return false; /* it breaks a limit that was dropped: search_loosely */
  return search.complete;
}

/* ---- proofs ------------------------------------------------------------------------------------------------------ */

static bool meets_bounds(const solver *s) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (s->x.limit_ms[stage] > 0 && s->fastest->potential[stage][0][0] > s->x.limit_ms[stage]) return false;
  return true;
}

/* ---- cuts -------------------------------------------------------------------------------------------------------- */

/* The objective below which no placement is wanted. */
static double known_objective(const solver *s) {
  if (!s->result.feasible) return INFINITY;
  return s->x.request->feasible_suffices ? -INFINITY : lp_plan_objective_value(&s->result, s->x.request);
}

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
  if (consider_units(s, side) || bound < near_enough * known_objective(s) || own->mixes++ >= MOST_MIXES)
    return known_objective(s);
  get_units(s, own->best);
  for (unsigned stages = 1; stages <= 3; stages++)
    for (int first = 0; first < 2; first++)
      consider_between(s, own->best, side, stages, first);
  return known_objective(s);
}

/* Searches for the prices of the limits that the problem has now. */
static void search_prices(solver *s, cut_search *out) {
  *out = (cut_search){.search = {.see = see_cut, .known = known_objective(s), .effort = price_effort}, .solver = s};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    out->best[stage] = LP_NEW_ARRAY(s->x.arena, unsigned char, s->x.unit_count[stage]);
  lp_cut_create(&s->x, &out->cut);
  lp_cut_search_prices(&out->cut, &out->search);
}

/* ---- the solver -------------------------------------------------------------------------------------------------- */

static bool has_graphs(solver *s) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!lp_exact_graph_build(&s->x, (lp_stage)stage, &s->graph[stage])) return false;
  return true;
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

/* The least steps of a model that is searched as a chain. */
enum { LEAST_CHAINED = 20 };

/* Tells whether a placement of the chain search is feasible. */
static bool see_chain(void *user, unsigned char *const side[LP_STAGE_COUNT]) {
  solver *s = user;
  const bool is_feasible = consider_units(s, side);
  s->refused += !is_feasible;
  return is_feasible;
}

static double known_of(const void *user) {
  return known_objective(user);
}

static void try_blocks(solver *s) {
  if (!s->again) consider_blocks(s);
  lp_exact_blocks(&s->x, known_objective(s), see_blocks, s);
}

/* Searches chains of segments; returns what that proves. */
static double search_chains(solver *s, const lp_cut *cut, const lp_exact_duals *duals, double lowest) {
  try_blocks(s);
  return lp_exact_search_parts(&(lp_exact_parts_task){.x = &s->x,
                                                      .cut = cut,
                                                      .duals = duals,
                                                      .lowest = lowest,
                                                      .share = s->x.request->plan_is_known ? LP_EXACT_KNOWN_SHARE : 1,
                                                      .is_loose = s->is_loose,
                                                      .see = see_chain,
                                                      .known = known_of,
                                                      .watch = &s->watch,
                                                      .user = s});
}

static bool is_done(const solver *s) {
  return s->x.request->feasible_suffices && s->result.feasible;
}

/* Runs the stages' label searches; true when nothing better exists. */
static bool search_graphs(solver *s, const lp_cut *cut, const lp_exact_duals *duals) {
  s->prices = lp_exact_prices_create(&s->x);
  s->separate = lp_exact_prices_create(&s->x);
  s->prices->duals = s->separate->duals = *duals;
  lp_cut_divide(cut, s->prices);
  for (int stage = 0; stage < LP_STAGE_COUNT && !s->joint; stage++)
    lp_exact_best_stage(&s->x, s->graph, (lp_stage)stage, &s->watch, s->separate);
  if (!s->joint && search_stages(s)) return true;
  if (width(s) < WIDTH_OF_BOTH) return false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_exact_best_stage(&s->x, s->graph, (lp_stage)stage, &s->watch, s->prices);
  return search_both(s);
}

/* Tells whether a bound is within this share of the objective. */
static bool is_proved(const solver *s, double lowest, double share) {
  double known = known_objective(s);
  return !isinf(known) && lowest >= known - share * fabs(known);
}

/* Tells whether a search of the chain is worth its time. Smaller models are left to the label search. */
static bool wants_chain(const solver *s, double bound) {
  if (s->x.request->feasible_suffices || s->x.request->near_suffices || s->x.step_count < LEAST_CHAINED) return false;
  return s->x.step_count <= MOST_PARTED || !is_proved(s, bound, LP_EXACT_GAP_CLOSE);
}

/* Searches chains, and graphs where they leave a gap. Raises `lowest` to what chains prove; true when nothing better
 * exists. */
static bool search_labels(solver *s, const cut_search *own, double *lowest) {
  const lp_cut_search *prices = &own->search;
  if (wants_chain(s, prices->bound)) {
    *lowest = fmax(*lowest, search_chains(s, &own->cut, &prices->duals, prices->bound));
    if (is_proved(s, *lowest, tolerance)) return true;
  }
  return !is_proved(s, *lowest, LP_EXACT_GAP_CLOSE) && search_graphs(s, &own->cut, &prices->duals);
}

static bool shares_memory(const lp_exact *x) {
  return x->limit_bytes[LP_SIDE_DEVICE] > 0 || x->limit_bytes[LP_SIDE_CLOUD] > 0;
}

/* Searches for prices without the limits that the problem lacks now. True when the bound is not lower than that of
 * `limited`: then those limits hardly bind, whatever their prices are. */
static bool hardly_bind(solver *s, const cut_search *limited, cut_search *loose) {
  search_prices(s, loose);
  return loose->search.bound >= limited->search.bound;
}

/* What searches of labels find. */
typedef struct {
  const cut_search *by; /* the prices by which `lowest` is to be proved */
  double lowest;        /* a bound */
  double enough;        /* the gap above which a search with all limits follows */
  bool complete;        /* nothing better exists */
} label_searches;

static void search_at(solver *s, const cut_search *prices, label_searches *found) {
  found->complete = prices->search.complete || search_labels(s, prices, &found->lowest);
}

/* Searches as if the memories without a price had no limit, or all of them where that does not lower the bound of cuts:
 * labels that need not heed them are fewer by far. A placement still counts only if it keeps all limits, and what is
 * proved holds with them. `loose` gets the prices without any of these limits. */
static void search_loosely(solver *s, const cut_search *own, cut_search *loose, label_searches *found) {
  const double limit[] = {s->x.limit_bytes[LP_SIDE_DEVICE], s->x.limit_bytes[LP_SIDE_CLOUD]};
  const double *per_byte = own->search.duals.per_byte;
  const bool all = !(limit[0] > 0 && !(per_byte[0] > 0)) && !(limit[1] > 0 && !(per_byte[1] > 0));
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (all || !(per_byte[side] > 0)) s->x.limit_bytes[side] = 0;
  s->joint = shares_memory(&s->x);
  s->is_loose = true;
  if (!all) {
    search_at(s, own, found);
  } else if (hardly_bind(s, own, loose)) {
    search_at(s, loose, found);
    found->enough = gap_far;
    if (found->complete || is_proved(s, found->lowest, LP_EXACT_GAP_CLOSE)) found->by = loose;
  }
  memcpy(s->x.limit_bytes, limit, sizeof limit);
  s->joint = shares_memory(&s->x);
  s->is_loose = false;
}

static void prove(const solver *s, const label_searches *found, lp_plan_proof *proof) {
  if (!proof || !s->result.feasible) return;
  const lp_cut_search *search = &found->by->search;
  double objective = lp_plan_objective_value(&s->result, s->x.request);
  *proof = (lp_plan_proof){.known = true,
                           .complete = found->complete,
                           .lower_bound = found->complete ? objective : fmin(found->lowest, objective),
                           .dual_bound = fmin(search->bound, objective),
                           .way = found->by->cut.way,
                           .way_count = found->by->cut.slot_count};
  memcpy(proof->per_ms, search->duals.per_ms, sizeof proof->per_ms);
  memcpy(proof->per_byte, search->duals.per_byte, sizeof proof->per_byte);
}

static void solve(solver *s, lp_plan_proof *proof) {
  if (!s->again) consider_cuts(s);
  if (!lp_exact_has_room(&s->x) || is_done(s)) return;
  bool has_graph = has_graphs(s);
  s->fastest = lp_exact_prices_create(&s->x);
  if (has_graph) {
    if (!lp_exact_fastest(&s->x, s->graph, s->fastest)) return;
    (void)consider_units(s, s->fastest->side);
    if (!meets_bounds(s) || is_done(s)) return;
  }
  cut_search own, loose;
  search_prices(s, &own);
  if (is_done(s)) return;
  if (s->kept) try_blocks(s);
  label_searches found = {&own, -INFINITY, LP_EXACT_GAP_CLOSE, own.search.complete};
  if (!found.complete && has_graph && s->joint) search_loosely(s, &own, &loose, &found);
  const bool suffices = found.lowest > -INFINITY && s->refused == 0 && s->result.feasible;
  if (!found.complete && has_graph && !suffices && !is_proved(s, found.lowest, found.enough))
    search_at(s, &own, &found);
  own.search.known = known_objective(s);
  own.search.effort = parts_effort;
  const lp_compile_request *request = s->x.request;
  bool small = s->x.step_count <= MOST_PARTED && !request->feasible_suffices && !request->near_suffices;
  if (!found.complete && (small || !has_graph)) lp_cut_search_parts(&own.cut, &own.search);
  found.complete = found.complete || own.search.complete;
  found.lowest = fmax(found.lowest, own.search.lowest);
  prove(s, &found, proof);
}

bool lp_exact_solve(const lp_exact_task *task, lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch) {
  const lp_plan_problem *problem = task->problem;
  solver s = {.watch = {see}, .side = side, .kept = task->kept, .again = task->again};
  lp_exact_build(problem, task->request, scratch, &s.x);
  s.joint = shares_memory(&s.x);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    s.trial[stage] = LP_NEW_ARRAY(scratch, lp_side, problem[stage].op_count);
    s.stage_side[stage] = LP_NEW_ARRAY(scratch, unsigned char, s.x.unit_count[stage]);
    s.mixed[stage] = LP_NEW_ARRAY(scratch, unsigned char, s.x.unit_count[stage]);
    s.stage_objective[stage] = INFINITY;
    if (task->seed) memcpy(s.trial[stage], task->seed[stage], (size_t)problem[stage].op_count * sizeof **task->seed);
  }
  if (task->seed) (void)consider_trial(&s);
  solve(&s, proof);
  return s.result.feasible;
}
