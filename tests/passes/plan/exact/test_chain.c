/* The chain search on random graphs: it equals an exhaustive search, and its bound never exceeds the best objective. */
#include "base/side.h"
#include "passes/plan/exact/cut.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/pin.h"
#include "tests/passes/plan/random_plan.h"
#include "tests/suite.h"

#include <math.h>

LP_CASE(.timeout = 120);

typedef struct {
  random_plan *plan;
  const lp_exact *x;
  lp_side *side[LP_STAGE_COUNT];
  double best; /* objective of the placement that was shown and is feasible; infinite: none */
} watcher;

static bool see(void *user, unsigned char *const of_unit[LP_STAGE_COUNT]) {
  watcher *w = user;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int32_t i = 0; i < w->plan->problem[stage].op_count; i++) {
      int32_t unit = w->x->unit_of[stage][i];
      w->side[stage][i] = unit >= 0 && of_unit[stage][unit] ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
    lp_plan_settle(&w->plan->problem[stage], w->side[stage]);
  }
  lp_plan_result result;
  lp_plan_evaluate(w->plan->problem, &w->plan->request, w->side, &result);
  if (result.feasible) w->best = fmin(w->best, lp_plan_objective_value(&result, &w->plan->request));
  return result.feasible;
}

/* How to search. `couples`: at the prices that couple the stages, which are found first; else at those of a cut.
 * `price_decode`: with a price of decode's time. `known`: the objective known before those are found. */
typedef struct {
  double most, known, step;
  size_t width;
  bool couples, price_decode;
} way;

/* Runs the chain search; false when the graph is no chain. `lowest` gets the greater of the bounds that the prices and
 * the search prove. */
static bool run_chain(random_plan *plan, const way *how, watcher *w, double *lowest) {
  lp_exact *x = LP_NEW(plan->arena, lp_exact);
  lp_exact_graph graph[LP_STAGE_COUNT];
  lp_exact_duals duals = {0};
  lp_cut cut;
  lp_exact_build(plan->problem, &plan->request, plan->arena, x);
  *w = (watcher){.plan = plan, .x = x, .best = INFINITY};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    w->side[stage] = LP_NEW_ARRAY(plan->arena, lp_side, plan->problem[stage].op_count);
    if (!lp_exact_graph_build(x, (lp_stage)stage, &graph[stage])) return false;
    if (x->limit_ms[stage] > 0) duals.per_ms[stage] = 1e-7 * random_plan_number(plan);
  }
  lp_cut_create(x, &cut);
  (void)lp_cut_solve(&cut, &duals);
  lp_exact_prices *prices = lp_exact_prices_create(x);
  prices->duals = duals;
  lp_cut_divide(&cut, prices);
  lp_exact_chain_level(x, prices);
  lp_exact_solve_prices(x, graph, prices);
  lp_exact_chain *chain = lp_exact_chain_create(x, graph);
  if (!chain) return false;
  lp_exact_prices *coupled = lp_exact_prices_create(x), *pruning = lp_exact_prices_create(x);
  lp_exact_prices_copy(x, prices, coupled);
  double bound = -INFINITY;
  if (how->couples) bound = lp_exact_couple(chain, how->known, &duals, how->price_decode, coupled, pruning);
  lp_exact_chain_search search = {.most = how->most,
                                  .greatest = how->most,
                                  .close = 1e-12,
                                  .step = how->step,
                                  .width = how->width,
                                  .listing = prices,
                                  .pruning = how->couples ? pruning : prices,
                                  .see = see,
                                  .user = w};
  lp_exact_chain_run(chain, how->couples ? coupled : prices, &search);
  *lowest = fmax(search.lowest, fmin(bound, how->most));
  lp_exact_chain_free(chain);
  return true;
}

enum { GRAPHS = 300, MOST_OPS = 7 };

/* The limit of the search is a little above the best placement's cost, so that the search finds that placement. */
static const double margin = 1.5;

/* At first, no placement may be known. */
static double known_first(uint64_t seed, double most) {
  return seed % 4 == 1 ? INFINITY : most;
}

LP_TEST(finds_the_best_of_all) {
  int chains = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_plan_result best = random_plan_try_all(plan);
    double wanted = lp_plan_objective_value(&best, &plan->request), lowest = 0;
    watcher w;
    way how = {.most = margin * wanted,
               .known = known_first(seed, margin * wanted),
               .width = SIZE_MAX,
               .couples = seed % 2,
               .price_decode = seed % 8 > 3};
    if (best.feasible && wanted > 0 && run_chain(plan, &how, &w, &lowest)) {
      chains++;
      ck_assert_msg(fabs(w.best - wanted) <= 1e-9 * wanted, "seed %d: %.12g, wanted %.12g", (int)seed, w.best, wanted);
      ck_assert_msg(fabs(lowest - wanted) <= 1e-8 * wanted, "seed %d: proves %.12g of %.12g", (int)seed, lowest,
                    wanted);
    }
    random_plan_free(plan);
  }
  ck_assert_int_ge(chains, 150);
}

/* With few labels, and with labels that stand for others, its bound is weaker but still holds. */
LP_TEST(proves_nothing_wrong) {
  int chains = 0;
  for (uint64_t seed = 1001; seed <= 1000 + GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_plan_result best = random_plan_try_all(plan);
    double wanted = lp_plan_objective_value(&best, &plan->request), lowest = 0;
    watcher w;
    way how = {.most = margin * wanted,
               .known = known_first(seed, margin * wanted),
               .step = 0.02 * wanted,
               .width = 1 + (size_t)(8 * random_plan_number(plan)),
               .couples = seed % 2,
               .price_decode = seed % 8 > 3};
    if (best.feasible && wanted > 0 && run_chain(plan, &how, &w, &lowest)) {
      chains++;
      ck_assert_msg(lowest <= wanted * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed, lowest, wanted);
      ck_assert_msg(w.best >= wanted * (1 - 1e-9), "seed %d: %.12g, wanted %.12g", (int)seed, w.best, wanted);
    }
    random_plan_free(plan);
  }
  ck_assert_int_ge(chains, 150);
}
