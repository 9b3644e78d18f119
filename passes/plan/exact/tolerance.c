/* Searches for the fastest plan with an objective within the tolerance of the least one.
 *
 * The request's objective plus mu times the latency is an objective of the same form, for which the scheduler has a
 * search. A greater mu gives a faster and dearer plan. The search for mu is that of Handler and Zang (1980) for the
 * shortest path under a limit: the line through two plans, one within the tolerance and one beyond it, gives the next
 * mu, and ends where no plan lies below that line. Every placement that a search evaluates is a candidate. At the
 * end the two plans are mixed, because layers are alike: the operators up to some place come from one plan, the others
 * from the other. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/exact/solve.h"
#include "passes/plan/objective.h"
#include "passes/plan/pin.h"

#include <math.h>
#include <string.h>

/* MOST_STARTS: the search begins again when it meets a plan of a lower objective than the best one known. */
enum { MOST_SOLVES = 3, HALVINGS = 9, MOST_STARTS = 3 };
/* Plans of models with at most MOST_MOVED operators in both stages are improved by moving single operators. */
enum { MOST_MOVED = 120, MOST_ROUNDS = 4 };

typedef struct {
  const lp_plan_problem *problem;
  const lp_compile_request *request;
  lp_arena *scratch;
  lp_exact_kept kept;
  lp_side *trial[LP_STAGE_COUNT];
} faster_search;

static void copy_sides(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const from[LP_STAGE_COUNT],
                       lp_side *to[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(to[stage], from[stage], (size_t)problem[stage].op_count * sizeof **to);
}

static void make_sides(const faster_search *f, lp_side *side[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(f->scratch, lp_side, f->problem[stage].op_count);
}

/* ---- other objectives -------------------------------------------------------------------------------------------- */

/* Searches for the least sum of `share` of the request's objective and `mu` times the latency. Returns whether it found
 * a plan. */
static bool solve_for(faster_search *f, double share, double mu, const lp_exact_placement *seed,
                      lp_exact_placement *out) {
  const char *own = f->request->objective ? f->request->objective : "cost";
  lp_compile_request request = *f->request;
  request.near_suffices = true;
  request.objective =
      share > 0 ? lp_arena_format(f->scratch, "%s+%.17g*latency", own, mu) : lp_arena_strdup(f->scratch, "latency");
  lp_exact_task task = {
      .problem = f->problem, .request = &request, .seed = seed->side, .kept = &f->kept, .again = share > 0};
  make_sides(f, out->side);
  if (!lp_exact_solve(&task, out->side, NULL, f->scratch)) return false;
  lp_plan_evaluate(f->problem, f->request, out->side, &out->result);
  return true;
}

static double objective_of(const faster_search *f, const lp_exact_placement *placement) {
  return lp_plan_objective_value(&placement->result, f->request);
}

/* Moves two plans together, one within the tolerance and one beyond it, until no plan lies below the line through
 * them. */
static void close_in(faster_search *f, lp_exact_placement *within, lp_exact_placement *beyond) {
  for (int i = 0; i < MOST_SOLVES; i++) {
    const double low = objective_of(f, within), ms = within->result.e2e_ms;
    const double mu = (objective_of(f, beyond) - low) / (ms - beyond->result.e2e_ms);
    lp_exact_placement next;
    if (!(mu > 0) || isinf(mu) || !solve_for(f, 1, mu, within, &next)) return;
    const double objective = objective_of(f, &next);
    if (objective + mu * next.result.e2e_ms >= (low + mu * ms) * (1 - LP_EXACT_ROUNDING)) return;
    *(objective <= f->kept.most ? within : beyond) = next;
  }
}

/* ---- mixtures ---------------------------------------------------------------------------------------------------- */

/* Evaluates the trial placement; returns whether it is within the tolerance and meets the limits. */
static bool try_mixed(faster_search *f) {
  lp_plan_result result;
  lp_arena *arena = lp_arena_create();
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_plan_settle(&f->problem[stage], f->trial[stage]);
    lp_exact_join_views(&f->problem[stage], arena, f->trial[stage]);
  }
  lp_arena_free(arena);
  lp_plan_evaluate(f->problem, f->request, f->trial, &result);
  return lp_exact_keep(&f->kept, f->problem, f->trial, &result);
}

/* Mixes two plans in the stages of the mask `stages`; in the other stages the mixture is `within`. Bisection finds the
 * share of `beyond` that the tolerance allows. `first` tells whether it has the first operators or the last. */
static void mix(faster_search *f, const lp_exact_placement *within, const lp_exact_placement *beyond, unsigned stages,
                bool first) {
  double low = 0, high = 1;
  for (int i = 0; i < HALVINGS; i++) {
    const double share = (low + high) / 2;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      const int32_t count = f->problem[stage].op_count, border = (int32_t)(count * (first ? share : 1 - share));
      for (int32_t k = 0; k < count; k++) {
        bool other = (stages >> stage & 1) && (k < border) == first;
        f->trial[stage][k] = (other ? beyond : within)->side[stage][k];
      }
    }
    *(try_mixed(f) ? &low : &high) = share;
  }
}

static void mix_all(faster_search *f, const lp_exact_placement *within, const lp_exact_placement *beyond) {
  for (unsigned stages = 1; stages <= 3; stages++)
    for (int first = 0; first < 2; first++)
      mix(f, within, beyond, stages, first);
}

/* ---- single operators ------------------------------------------------------------------------------------------- */

/* Moves an operator of the kept plan to the other side, with the operators that share its KV caches. Returns whether
 * the plan is better and therefore kept. */
static bool move_one(faster_search *f, int stage, int32_t index) {
  const lp_plan_problem *problem = &f->problem[stage];
  const int32_t state = problem->ops[index].state;
  const double before = f->kept.fastest.result.e2e_ms;
  copy_sides(f->problem, f->kept.fastest.side, f->trial);
  const lp_side other = lp_side_other(f->trial[stage][index]);
  f->trial[stage][index] = other;
  for (int32_t i = 0; i < problem->op_count && state >= 0; i++)
    if (problem->ops[i].state == state) f->trial[stage][i] = other;
  return try_mixed(f) && f->kept.fastest.result.e2e_ms < before;
}

static void move_some(faster_search *f) {
  bool better = f->problem[0].op_count + f->problem[1].op_count <= MOST_MOVED;
  for (int round = 0; round < MOST_ROUNDS && better; round++) {
    better = false;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      for (int32_t i = 0; i < f->problem[stage].op_count; i++)
        if (!f->problem[stage].ops[i].free && move_one(f, stage, i)) better = true;
  }
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static void find_fastest(faster_search *f) {
  lp_exact_placement within = f->kept.fastest, beyond;
  make_sides(f, within.side);
  copy_sides(f->problem, f->kept.fastest.side, within.side);
  if (!solve_for(f, 0, 1, &within, &beyond) || objective_of(f, &beyond) <= f->kept.most) return;
  close_in(f, &within, &beyond);
  mix_all(f, &within, &beyond);
  move_some(f);
}

/* Begins with the best placement known; returns whether the search met none of a lower objective. */
static bool begin_with_best(faster_search *f) {
  const double known = objective_of(f, &f->kept.best);
  f->kept.most = known * (1 + f->request->tolerance);
  lp_exact_placement_set(f->problem, f->kept.best.side, &f->kept.best.result, &f->kept.fastest);
  find_fastest(f);
  return objective_of(f, &f->kept.best) >= known;
}

void lp_exact_find_faster(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                          lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch) {
  faster_search f = {.problem = problem, .request = request, .scratch = scratch, .kept = {.request = request}};
  lp_exact_kept *kept = &f.kept;
  make_sides(&f, kept->best.side);
  make_sides(&f, kept->fastest.side);
  make_sides(&f, f.trial);
  copy_sides(problem, side, kept->best.side);
  lp_plan_evaluate(problem, request, side, &kept->best.result);
  if (objective_of(&f, &kept->best) <= 0 || kept->best.result.e2e_ms <= 0) return;
  bool settled = false;
  for (int i = 0; i < MOST_STARTS && !settled; i++)
    settled = begin_with_best(&f);
  if (!settled) lp_exact_placement_set(problem, kept->best.side, &kept->best.result, &kept->fastest);
  copy_sides(problem, kept->fastest.side, side);
  if (objective_of(&f, &kept->fastest) <= objective_of(&f, &kept->best) * (1 + LP_EXACT_ROUNDING)) return;
  for (int stage = 0; stage < LP_STAGE_COUNT && proof; stage++)
    proof->cheapest[stage] = kept->best.side[stage];
}
