/* The search for prices: it comes near the highest bound of a few placements, which a grid of prices shows as well. */
#include "base/level.h"
#include "base/random.h"
#include "tests/suite.h"

#include <math.h>

LP_CASE(.timeout = 60);

enum { MOST_SIZE = 3, PLACEMENTS = 12, CASES = 60, STEPS = 80, POINTS = 20 };

/* Placements with a cost, and the shares by which they exceed the limits. The first keeps all of them. */
typedef struct {
  int size;
  double cost[PLACEMENTS], excess[PLACEMENTS][LP_LEVEL_PRICES];
} problem;

static problem make_problem(uint64_t seed) {
  uint64_t drawn = 0;
  problem p = {.size = 1 + (int)(seed % MOST_SIZE)};
  for (int i = 0; i < PLACEMENTS; i++) {
    p.cost[i] = i ? 10 * lp_random_uniform(seed, 3, drawn++) : 10;
    for (int k = 0; k < p.size; k++)
      p.excess[i][k] = i ? 3 * lp_random_uniform(seed, 3, drawn++) - 1 : -0.5;
  }
  return p;
}

/* The bound at prices `x`, and the placement that makes it. */
static double bound_at(const problem *p, const double *x, int *least) {
  double best = INFINITY;
  for (int i = 0; i < PLACEMENTS; i++) {
    double price = p->cost[i];
    for (int k = 0; k < p->size; k++)
      price += x[k] * p->excess[i][k];
    if (price >= best) continue;
    best = price;
    *least = i;
  }
  return best;
}

/* The highest bound at the points of ever finer grids around the best one. */
static double best_of_grids(const problem *p) {
  double center[MOST_SIZE] = {10, 10, 10}, width = 10, best = -INFINITY;
  for (int round = 0; round < 14; round++, width /= 2) {
    double next[MOST_SIZE] = {center[0], center[1], center[2]};
    for (int i = 0; i < POINTS * POINTS * POINTS; i++) {
      const int index[] = {i % POINTS, i / POINTS % POINTS, i / POINTS / POINTS};
      double x[MOST_SIZE];
      int least;
      for (int k = 0; k < MOST_SIZE; k++)
        x[k] = fmax(0, center[k] + width * (2.0 * index[k] / (POINTS - 1) - 1));
      const double bound = bound_at(p, x, &least);
      if (bound <= best) continue;
      best = bound;
      for (int k = 0; k < MOST_SIZE; k++)
        next[k] = x[k];
    }
    for (int k = 0; k < MOST_SIZE; k++)
      center[k] = next[k];
  }
  return best;
}

/* Returns the number of steps. */
static int search(const problem *p, double enough, lp_level_method *m) {
  double x[LP_LEVEL_PRICES] = {0};
  int step = 0, least = 0;
  lp_level_begin(m, p->size, enough);
  do {
    const double bound = bound_at(p, x, &least);
    lp_level_add(m, x, bound, p->excess[least]);
    for (int k = 0; k < p->size; k++)
      ck_assert_double_ge(x[k], 0);
  } while (++step < STEPS && m->best < enough && lp_level_next(m, x));
  return step;
}

LP_TEST(it_comes_near_the_highest_bound) {
  int steps = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    const problem p = make_problem(seed);
    const double best = best_of_grids(&p);
    lp_level_method m;
    int least;
    steps += search(&p, 20, &m);
    ck_assert_msg(m.best >= best - 0.01, "seed %d: %g, a grid shows %g", (int)seed, m.best, best);
    ck_assert_msg(m.most >= best - 1e-6, "seed %d: nothing above %g is looked for, a grid shows %g", (int)seed, m.most,
                  best);
    ck_assert_double_eq(bound_at(&p, m.at, &least), m.best);
  }
  ck_assert_int_lt(steps, 40 * CASES);
}

LP_TEST(it_ends_at_enough) {
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    const problem p = make_problem(seed);
    lp_level_method whole, half;
    (void)search(&p, 20, &whole);
    const double begin = whole.cut[0].objective, enough = (begin + whole.best) / 2;
    if (whole.best - begin < 0.5) continue;
    (void)search(&p, enough, &half);
    ck_assert_double_ge(half.best, enough * (1 - 3e-4) - 1e-3);
    ck_assert_double_le(half.most, enough);
  }
}

/* Old cuts make room for new ones. */
LP_TEST(it_keeps_so_many_cuts) {
  lp_level_method m;
  const double x[LP_LEVEL_PRICES] = {1}, slope[LP_LEVEL_PRICES] = {2};
  lp_level_begin(&m, 1, 1000);
  for (int i = 0; i < LP_LEVEL_CUTS + 2; i++)
    lp_level_add(&m, x, i, slope);
  ck_assert_int_eq(m.cut_count, LP_LEVEL_CUTS);
  ck_assert_double_eq(m.cut[0].objective, LP_LEVEL_CUTS - 2);
  ck_assert_double_eq(m.cut[2].objective, 0);
  ck_assert_double_eq(m.best, LP_LEVEL_CUTS + 1);
}
