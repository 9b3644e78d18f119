/* The search by beams on random graphs beside an exhaustive search: it finds the best placement, and its bound never
 * exceeds it. Many of the graphs have tight memories, so that they have several classes of activations. */
#include "passes/plan/exact/subproblems.h"
#include "passes/plan/objective.h"
#include "tests/passes/plan/exact/watcher.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>

LP_CASE(.timeout = 120);

/* How often searches have asked for a placement from elsewhere, which there is none here. */
static int asked;

static void find_none(void *user) {
  (void)user;
  asked++;
}

/* Searches at arbitrary prices for placements better than `best`; returns the proved bound. */
static double search(random_plan *plan, double best, lp_exact_subproblems_task task, watcher *w) {
  const bool refuses = w->refuses;
  lp_exact_duals duals = {0};
  watcher_open(plan, best, w);
  w->refuses = refuses;
  for (int i = 0; i < 2; i++) {
    if (w->x->limit_ms[i] > 0) duals.per_ms[i] = 1e-7 * random_plan_number(plan);
    if (w->x->limit_bytes[i] > 0) duals.per_byte[i] = 1e-8 * random_plan_number(plan);
  }
  task.x = w->x;
  task.duals = &duals;
  task.lowest = -INFINITY;
  task.see = watcher_see;
  task.find_any = find_none;
  task.incumbent = watcher_known;
  task.user = w;
  return lp_exact_search_subproblems(&task);
}

enum { GRAPHS = 600, MOST_OPS = 7 };

LP_TEST(finds_and_proves_the_best_of_all) {
  int feasible = 0, tight = 0, full = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    random_plan_forbid_streams(plan);
    lp_plan_result best = random_plan_try_all(plan);
    double wanted = best.feasible ? lp_plan_objective_value(&best, &plan->request) : INFINITY;
    watcher w = {0};
    const int before = asked;
    double lowest = search(plan, seed % 2 ? INFINITY : 1.5 * wanted, (lp_exact_subproblems_task){.share = 1}, &w);
    ck_assert_int_le(asked - before, seed % 2 || !best.feasible);
    ck_assert_msg(!best.feasible || lp_exact_has_room(w.x), "seed %d: no room for a placement", (int)seed);
    full += !lp_exact_has_room(w.x);
    if (best.feasible && wanted > 0) {
      ck_assert_msg(fabs(w.best - wanted) <= 1e-9 * wanted, "seed %d: %.12g, wanted %.12g", (int)seed, w.best, wanted);
      ck_assert_msg(fabs(lowest - wanted) <= 1e-9 * wanted, "seed %d: proves %.12g of %.12g", (int)seed, lowest,
                    wanted);
      feasible++;
      tight += w.x->limit_bytes[0] > 0 || w.x->limit_bytes[1] > 0;
    }
    random_plan_free(plan);
  }
  printf("%d found and proved, %d with tight memory, %d without room\n", feasible, tight, full);
  ck_assert_int_ge(full, 10);
  ck_assert_int_ge(feasible, 400);
  ck_assert_int_ge(tight, 150);
}

/* A search by the narrowest beams only, in graphs of more operators, never proves more than is found by another. */
LP_TEST(narrow_beams_prove_no_more_than_is_true) {
  for (uint64_t seed = 1; seed <= GRAPHS / 2; seed++) {
    random_plan *plan = random_plan_create(seed, 2 * MOST_OPS);
    random_plan_forbid_streams(plan);
    watcher narrow = {0}, wide = {0};
    double lowest = search(plan, INFINITY, (lp_exact_subproblems_task){.share = 1, .is_quick = true}, &narrow);
    (void)search(plan, INFINITY, (lp_exact_subproblems_task){.share = 1}, &wide);
    ck_assert_msg(isinf(wide.best) || lowest <= wide.best * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed,
                  lowest, wide.best);
    random_plan_free(plan);
  }
}

/* A search without some limits ends where it finds only what breaks them, and proves no more than is true. */
LP_TEST(gives_up_where_all_is_refused) {
  int shown[2] = {0}, most = 0;
  for (uint64_t seed = 1; seed <= 150; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    random_plan_forbid_streams(plan);
    lp_plan_result best = random_plan_try_all(plan);
    for (int is_relaxed = 0; is_relaxed < 2; is_relaxed++) {
      const int before = asked;
      watcher w = {.refuses = true};
      double lowest =
          search(plan, INFINITY, (lp_exact_subproblems_task){.share = 1, .is_relaxed = is_relaxed != 0}, &w);
      if (is_relaxed || w.shown > 0) ck_assert_int_eq(asked - before, !is_relaxed);
      shown[is_relaxed] += w.shown;
      if (is_relaxed && w.shown > most) most = w.shown;
      if (!best.feasible) continue;
      double wanted = lp_plan_objective_value(&best, &plan->request);
      ck_assert_msg(lowest <= wanted * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed, lowest, wanted);
    }
    random_plan_free(plan);
  }
  printf("%d refused, %d by searches that give up, %d by one of them\n", shown[0], shown[1], most);
  ck_assert_int_lt(2 * shown[1], shown[0]);
}
