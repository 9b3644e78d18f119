/* The graph of both stages and the beams through it on random graphs, beside an exhaustive search: prices prove no more
 * than is true, a wide beam finds and proves the best placement, and a narrow one never proves too much. */
#include "base/side.h"
#include "passes/plan/exact/beam.h"
#include "passes/plan/objective.h"
#include "tests/passes/plan/exact/watcher.h"
#include "tests/passes/plan/llama_study.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

LP_CASE(.timeout = 120);

enum { GRAPHS = 400, MANY_GRAPHS = 3000, MOST_OPS = 7, WIDE = 100000 };

/* A random problem, its graph and the objective of its best placement. */
typedef struct {
  random_plan *plan;
  watcher w;
  lp_exact_graph graph[LP_STAGE_COUNT];
  lp_exact_states states;
  double best, price[LP_EXACT_LIMITS];
} study;

static void study_open(uint64_t seed, study *s) {
  s->plan = random_plan_create(seed, MOST_OPS);
  random_plan_forbid_streams(s->plan);
  const lp_plan_result best = random_plan_try_all(s->plan);
  s->best = best.feasible ? lp_plan_objective_value(&best, &s->plan->request) : INFINITY;
  watcher_open(s->plan, INFINITY, &s->w);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    ck_assert(lp_exact_graph_build(s->w.x, (lp_stage)stage, &s->graph[stage]));
  ck_assert(lp_exact_states_create(s->w.x, s->graph, LP_EXACT_MOST_STATES, &s->states));
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    s->price[q] = s->states.limit[q] > 0 ? 1e-7 * random_plan_number(s->plan) : 0;
}

static void study_close(study *s) {
  lp_exact_states_free(&s->states);
  random_plan_free(s->plan);
}

/* Searches for placements below `most` by a beam; returns what it proves. */
static double run_beam(study *s, lp_beam_bounds *bounds, double most, size_t width, int level) {
  lp_beam_search search = {.most = most, .width = width, .level = level, .see = watcher_see, .user = &s->w};
  lp_beam_run(bounds, &search);
  return search.lowest;
}

LP_TEST(prices_prove_no_more_than_is_true) {
  int close = 0, limited = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    study s;
    study_open(seed, &s);
    const double enough = isinf(s.best) ? 1 : s.best;
    const double bound = lp_exact_states_improve(&s.states, enough, s.price);
    if (s.best > 0 && !isinf(s.best)) {
      ck_assert_msg(bound <= s.best * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed, bound, s.best);
      close += bound >= 0.9 * s.best;
      for (int q = 0; q < LP_EXACT_LIMITS; q++)
        limited += s.price[q] > 0;
    }
    study_close(&s);
  }
  printf("%d bounds within 10 %%, %d limits with a price\n", close, limited);
  ck_assert_int_ge(close, GRAPHS / 3);
  ck_assert_int_ge(limited, 20);
}

/* After a search with the bounds of the last level, each state has all of them. */
static void check_all_bounds(study *s, lp_beam_bounds *bounds) {
  const size_t states = s->states.first[s->states.x->step_count + 1];
  float *own = lp_alloc((states + 1) * sizeof *own);
  (void)run_beam(s, bounds, INFINITY, 1, bounds->levels - 1);
  for (int level = 0, first = 0; level < bounds->levels; first = bounds->end[level++])
    for (int i = first; i < bounds->end[level]; i++) {
      const size_t count = (size_t)(bounds->end[level] - first);
      lp_exact_states_fill(&s->states, &bounds->at[i], 1, own);
      for (size_t k = 0; k < states; k++)
        ck_assert_float_eq(bounds->rest[level][k * count + (size_t)(i - first)], own[k]);
    }
  free(own);
}

/* From the first state, the least price to the end less the price of the limits is the bound. */
LP_TEST(least_prices_are_those_of_the_bound) {
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    study s;
    study_open(seed, &s);
    const double bound = lp_exact_states_improve(&s.states, isinf(s.best) ? 1 : s.best, s.price);
    lp_beam_bounds bounds;
    if (!isinf(bound)) {
      lp_beam_bounds_create(&s.states, s.price, LP_BEAM_LEVELS, &bounds);
      check_all_bounds(&s, &bounds);
      const double first = (double)bounds.rest[0][0], scale = fabs(first) + fabs(bounds.offset[0]);
      ck_assert_double_le(first - bounds.offset[0], bound + 1e-9 * scale);
      ck_assert_double_ge(first - bounds.offset[0], bound - 1e-6 * scale);
      lp_beam_bounds_free(&bounds);
    }
    study_close(&s);
  }
}

/* With the bounds of any level a wide beam drops only what is not better than the best placement. In a few of these
 * graphs only the largest activations decide. */
LP_TEST(wide_beams_find_and_prove_the_best) {
  int found = 0, tight = 0;
  for (uint64_t seed = 1; seed <= MANY_GRAPHS; seed++) {
    study s;
    study_open(seed, &s);
    lp_beam_bounds bounds;
    const double bound = lp_exact_states_improve(&s.states, isinf(s.best) ? 1 : s.best, s.price);
    if (isinf(bound)) {
      ck_assert_msg(isinf(s.best), "seed %d: has a placement", (int)seed);
      study_close(&s);
      continue;
    }
    lp_beam_bounds_create(&s.states, s.price, LP_BEAM_LEVELS, &bounds);
    for (int level = 0; level < (seed <= GRAPHS ? bounds.levels : 1); level++) {
      s.w.best = INFINITY;
      const double lowest = run_beam(&s, &bounds, INFINITY, WIDE, level);
      ck_assert_msg(isinf(s.best) == isinf(s.w.best), "seed %d: %.12g, wanted %.12g", (int)seed, s.w.best, s.best);
      if (isinf(s.best)) continue;
      ck_assert_msg(fabs(s.w.best - s.best) <= 1e-9 * s.best, "seed %d: %.12g, wanted %.12g", (int)seed, s.w.best,
                    s.best);
      ck_assert_msg(fabs(lowest - s.best) <= 1e-9 * s.best, "seed %d: proves %.12g of %.12g", (int)seed, lowest,
                    s.best);
      found++;
    }
    tight += s.states.limit[2] > 0 || s.states.limit[3] > 0;
    if (!isinf(s.best)) { /* nothing is below the best */
      s.w.shown = 0;
      const double most = s.best * (1 - 1e-6);
      ck_assert_double_eq(run_beam(&s, &bounds, most, WIDE, bounds.levels - 1), most);
      ck_assert_int_eq(s.w.shown, 0);
    }
    lp_beam_bounds_free(&bounds);
    study_close(&s);
  }
  printf("%d found, %d with tight memory\n", found, tight);
  ck_assert_int_ge(found, MANY_GRAPHS / 2);
  ck_assert_int_ge(tight, MANY_GRAPHS / 5);
}

/* A narrow beam keeps the labels with the least bounds, so that it often finds the best placement. */
LP_TEST(narrow_beams_prove_no_more_than_is_true) {
  int found = 0, wanted = 0, open = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    study s;
    study_open(seed, &s);
    const double bound = lp_exact_states_improve(&s.states, isinf(s.best) ? 1 : s.best, s.price);
    lp_beam_bounds bounds;
    if (isinf(bound) || isinf(s.best)) {
      study_close(&s);
      continue;
    }
    lp_beam_bounds_create(&s.states, s.price, LP_BEAM_LEVELS, &bounds);
    const double lowest = run_beam(&s, &bounds, INFINITY, 2, bounds.levels - 1);
    ck_assert_msg(lowest <= s.best * (1 + 1e-9), "seed %d: proves %.12g of %.12g", (int)seed, lowest, s.best);
    ck_assert_msg(lowest >= bound - 1e-5 * fabs(bound), "seed %d: proves %.12g, prices %.12g", (int)seed, lowest,
                  bound);
    ck_assert_msg(s.w.best >= s.best * (1 - 1e-9), "seed %d: %.12g, wanted %.12g", (int)seed, s.w.best, s.best);
    wanted++;
    found += s.w.best <= s.best * (1 + 1e-9);
    open += lowest < s.best * (1 - 1e-6);
    lp_beam_bounds_free(&bounds);
    study_close(&s);
  }
  printf("a beam of 2: %d of %d found, %d not proved\n", found, wanted, open);
  ck_assert_int_ge(found, wanted / 2);
  ck_assert_int_ge(open, 1);
}

/* A placement that is refused is followed by the next cheapest one. */
LP_TEST(shows_the_next_one_after_a_refusal) {
  int most = 0;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    study s;
    study_open(seed, &s);
    lp_beam_bounds bounds;
    if (!isinf(s.best)) {
      (void)lp_exact_states_improve(&s.states, s.best, s.price);
      lp_beam_bounds_create(&s.states, s.price, LP_BEAM_LEVELS, &bounds);
      s.w.refuses = true;
      lp_beam_search search = {.most = INFINITY, .width = WIDE, .see = watcher_see, .user = &s.w};
      lp_beam_run(&bounds, &search);
      ck_assert_int_eq(search.refused, s.w.shown);
      if (search.refused > most) most = search.refused;
      lp_beam_bounds_free(&bounds);
    }
    study_close(&s);
  }
  ck_assert_int_ge(most, 3);
}

/* Each level adds bounds at prices of which one is changed, and one bound is that of the needs of all limits. */
static void expect_prices(const lp_beam_bounds *b, const double price[LP_EXACT_LIMITS]) {
  int priced = 0, limited = 0, needs = 0;
  for (int q = 0; q < LP_EXACT_LIMITS; q++) {
    priced += price[q] > 0;
    limited += b->s->limit[q] > 0;
  }
  for (int i = 0; i < b->count; i++) {
    int changed = 0;
    for (int q = 0; q < LP_EXACT_LIMITS; q++)
      changed += fabs(b->at[i].price[q] - price[q]) > 0.01 * price[q];
    needs += !(b->at[i].objective > 0);
    if (b->at[i].objective > 0) ck_assert_int_eq(changed, i != 0);
  }
  ck_assert_int_eq(needs, limited + (priced > 1));
  for (int level = 0; level < b->levels; level++)
    ck_assert_int_eq(b->end[level], 1 + needs + 2 * priced * (level + 1));
}

/* Eight layers of 7B, of which the device holds a part, within tight limits of time. The states are as few as the order
 * of blocks makes them; in another order they are more. */
LP_TEST(goes_through_a_decoder_block_by_block) {
  enum { MOST_STATES = 2500000 };
  llama_study l = llama_study_open_7b(8, "snapdragon-8s-gen3-p1,memory=2GiB", "a100,price_usd_per_s=4e-5", "lan");
  l.request.ttft_ms = 200;
  l.request.tpot_ms = 40;
  l.request.device_memory = (int64_t)2 << 30;
  ck_assert_int_eq(lp_plan_build(l.module, &l.request, l.arena, l.problem, NULL), LP_OK);
  lp_exact x;
  lp_exact_graph graph[LP_STAGE_COUNT];
  lp_exact_states states;
  lp_exact_build(l.problem, &l.request, l.arena, &x);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    ck_assert(lp_exact_graph_build(&x, (lp_stage)stage, &graph[stage]));
  ck_assert(lp_exact_states_create(&x, graph, LP_EXACT_MOST_STATES, &states));
  double price[LP_EXACT_LIMITS] = {0};
  const double bound = lp_exact_states_improve(&states, 1, price);
  lp_beam_bounds bounds;
  lp_beam_bounds_create(&states, price, LP_BEAM_LEVELS, &bounds);
  expect_prices(&bounds, price);
  ck_assert_double_gt(bound, 0);
  ck_assert_uint_le(states.first[x.step_count], MOST_STATES);
  lp_beam_bounds_free(&bounds);
  lp_exact_states_free(&states);
  llama_study_close(&l);
}
