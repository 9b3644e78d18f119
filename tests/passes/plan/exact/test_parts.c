/* The search of parts along chains on random graphs beside an exhaustive search: it finds the best placement, and its
 * bound never exceeds it. Many of the graphs have tight memories, so that they have several parts and joint bounds. */
#include "passes/plan/exact/parts.h"
#include "passes/plan/objective.h"
#include "tests/passes/plan/exact/watcher.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>

LP_CASE(.timeout = 120);

/* Searches at arbitrary prices for placements better than `best`, with a share of the usual work, in a problem that may
 * lack limits; returns the proved bound. */
static double search_some(random_plan *plan, double best, double share, bool is_loose, watcher *w) {
  const bool refuses = w->refuses;
  lp_exact_duals duals = {0};
  lp_exact_watch watch = {0};
  lp_cut cut;
  watcher_open(plan, best, w);
  w->refuses = refuses;
  const lp_exact *x = w->x;
  for (int i = 0; i < 2; i++) {
    if (x->limit_ms[i] > 0) duals.per_ms[i] = 1e-7 * random_plan_number(plan);
    if (x->limit_bytes[i] > 0) duals.per_byte[i] = 1e-8 * random_plan_number(plan);
  }
  lp_cut_create(x, &cut);
  (void)lp_cut_solve(&cut, &duals);
  return lp_exact_search_parts(&(lp_exact_parts_task){.x = x,
                                                      .cut = &cut,
                                                      .duals = &duals,
                                                      .lowest = -INFINITY,
                                                      .share = share,
                                                      .is_loose = is_loose,
                                                      .see = watcher_see,
                                                      .known = watcher_known,
                                                      .watch = &watch,
                                                      .user = w});
}

static double search_parts(random_plan *plan, double best, double share, watcher *w) {
  w->refuses = false;
  return search_some(plan, best, share, false, w);
}

enum { GRAPHS = 600, MOST_OPS = 7 };

LP_TEST(finds_the_best_of_all) {
  int found = 0, tight = 0, proved = 0, full = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_plan_result best = random_plan_try_all(plan);
    double wanted = best.feasible ? lp_plan_objective_value(&best, &plan->request) : INFINITY;
    watcher w;
    double lowest = search_parts(plan, seed % 2 ? INFINITY : 1.5 * wanted, 1, &w);
    ck_assert_msg(w.best >= wanted * (1 - 1e-9), "seed %d: %.12g, wanted %.12g", (int)seed, w.best, wanted);
    ck_assert_msg(!best.feasible || lp_exact_has_room(w.x), "seed %d: no room for a placement", (int)seed);
    full += !lp_exact_has_room(w.x);
    if (best.feasible && wanted > 0) {
      ck_assert_msg(lowest <= wanted * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed, lowest, wanted);
      found += w.best <= wanted * (1 + 1e-9);
      proved += lowest >= wanted * (1 - 1e-6);
      tight += w.x->limit_bytes[0] > 0 || w.x->limit_bytes[1] > 0;
    }
    random_plan_free(plan);
  }
  printf("%d found, %d proved, %d with tight memory, %d without room\n", found, proved, tight, full);
  ck_assert_int_ge(full, 10);
  ck_assert_int_ge(found, 400);
  ck_assert_int_ge(tight, 150);
}

/* Passes that keep to hardly any work drop labels, and never prove more than is true. */
LP_TEST(little_work_proves_no_more) {
  int found = 0, open = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_plan_result best = random_plan_try_all(plan);
    watcher w;
    if (best.feasible && lp_plan_objective_value(&best, &plan->request) > 0) {
      const double wanted = lp_plan_objective_value(&best, &plan->request);
      const double lowest = search_parts(plan, seed % 2 ? INFINITY : 1.5 * wanted, 1e-9, &w);
      ck_assert_msg(w.best >= wanted * (1 - 1e-9), "seed %d: %.12g, wanted %.12g", (int)seed, w.best, wanted);
      ck_assert_msg(lowest <= wanted * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed, lowest, wanted);
      found += w.best <= wanted * (1 + 1e-9);
      open += lowest < wanted * (1 - 1e-6);
    }
    random_plan_free(plan);
  }
  printf("with hardly any work %d found, %d not proved\n", found, open);
  ck_assert_int_ge(found, 100);
  ck_assert_int_ge(open, 1);
}

/* A search without some limits ends where it finds only what breaks them, and proves no more than is true. */
LP_TEST(gives_up_where_all_is_refused) {
  int shown[2] = {0}, most = 0;
  for (uint64_t seed = 1; seed <= 150; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_plan_result best = random_plan_try_all(plan);
    for (int is_loose = 0; is_loose < 2; is_loose++) {
      watcher w = {.refuses = true};
      double lowest = search_some(plan, INFINITY, 1, is_loose != 0, &w);
      shown[is_loose] += w.shown;
      if (is_loose && w.shown > most) most = w.shown;
      if (!best.feasible) continue;
      double wanted = lp_plan_objective_value(&best, &plan->request);
      ck_assert_msg(lowest <= wanted * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed, lowest, wanted);
    }
    random_plan_free(plan);
  }
  printf("%d refused, %d by searches that give up, %d by one of them\n", shown[0], shown[1], most);
  ck_assert_int_lt(2 * shown[1], shown[0]);
}

/* The frontiers of a stage count its messages: with their number fixed, the fastest path is the fastest placement with
 * that many. */
LP_TEST(counts_messages) {
  enum { MOST_MESSAGES = 5 };
  int found[MOST_MESSAGES + 1] = {0};
  for (uint64_t seed = 1; seed <= 300; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_exact x;
    lp_exact_build(plan->problem, &plan->request, plan->arena, &x);
    for (int messages = 0; messages <= MOST_MESSAGES; messages++) {
      lp_exact_graph graph[LP_STAGE_COUNT];
      lp_exact_prices *prices = lp_exact_prices_create(&x);
      x.least_messages[LP_STAGE_DECODE] = x.most_messages[LP_STAGE_DECODE] = messages;
      for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
        ck_assert(lp_exact_graph_build(&x, (lp_stage)stage, &graph[stage]));
      double wanted = random_plan_try_messages(plan, messages);
      bool any = lp_exact_fastest(&x, graph, prices);
      ck_assert_msg(any == !isinf(wanted), "seed %d, %d messages: %g", (int)seed, messages, wanted);
      if (!any) continue;
      double ms = prices->potential[LP_STAGE_DECODE][0][0];
      ck_assert_msg(fabs(ms - wanted) <= 1e-9 * wanted, "seed %d, %d messages: %.12g, wanted %.12g", (int)seed,
                    messages, ms, wanted);
      found[messages]++;
    }
    random_plan_free(plan);
  }
  for (int messages = 0; messages <= MOST_MESSAGES; messages++)
    ck_assert_int_ge(found[messages], 10);
}
