/* The prices that couple the stages of the exact scheduler: the price of a millisecond of prefill and the price of a
 * cache's residence. The prices that are best for minimum cuts are not best for fronts, which keep the limits by
 * themselves. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>
#include <string.h>

/* Both prices are searched on a logarithmic scale. */
typedef struct {
  const lp_exact_chain *chain;
  const lp_exact *x;
  const lp_exact_graph *graph;
  lp_exact_prices *prices;
  double known;
  double time, residence; /* the units of the two scales; the unit of residence has a sign */
  double best[2], best_bound;
} coupling;

/* Below this value on its scale, the price of residence is 0. */
static const double no_residence = -20;

static void set_coupling(const coupling *c, const double at[2]) {
  c->prices->duals.per_ms[LP_STAGE_PREFILL] = c->time * exp2(at[0]);
  for (int32_t i = 0; i < c->x->holding_count; i++)
    c->prices->residence[i] = at[1] > no_residence ? c->residence * exp2(at[1]) : 0;
  lp_exact_solve_prices(c->x, c->graph, c->prices);
}

static double bound_at(coupling *c, const double at[2]) {
  set_coupling(c, at);
  double least = lp_exact_least(c->x, c->prices), slack = isinf(c->known) ? 4 * fabs(least) : c->known - least;
  double bound = isinf(least) ? least : lp_exact_chain_bound(c->chain, c->prices, fmax(slack, 0));
  if (isinf(bound)) bound = least + fmax(slack, 0); /* no placement lies within the slack */
  if (bound > c->best_bound) {
    c->best_bound = bound;
    memcpy(c->best, at, sizeof c->best);
  }
  return bound;
}

/* Improves one price by a golden-section search, because the bound is concave in each price. */
static void improve_price(coupling *c, int which, double low, double high, int steps) {
  const double ratio = 0.6180339887498949;
  double at[2] = {c->best[0], c->best[1]}, a = high - ratio * (high - low), b = low + ratio * (high - low);
  at[which] = a;
  double bound_a = bound_at(c, at);
  at[which] = b;
  double bound_b = bound_at(c, at);
  for (int i = 0; i < steps; i++) {
    if (bound_a >= bound_b) {
      high = b;
      b = a;
      bound_b = bound_a;
      at[which] = a = high - ratio * (high - low);
      bound_a = bound_at(c, at);
    } else {
      low = a;
      a = b;
      bound_a = bound_b;
      at[which] = b = low + ratio * (high - low);
      bound_b = bound_at(c, at);
    }
  }
}

/* The objective per cache that can move. `own` gets the mean price of residence for minimum cuts. */
static double residence_unit(const coupling *c, double *own) {
  int states = 0;
  double sum = 0;
  for (int32_t i = 0; i < c->x->holding_count; i++) {
    const lp_exact_holding *h = &c->x->holding[i];
    if (!h->is_state || h->first[0] < 0 || h->first[1] < 0 || !(h->move_bytes > 0)) continue;
    states++;
    sum += c->prices->residence[i];
  }
  if (!states) return 0;
  *own = sum / states;
  return fabs(isinf(c->known) ? lp_exact_least(c->x, c->prices) : c->known) / states;
}

/* Tries prices of both signs and many sizes. Returns the sign of the best; 0: residence has no price. */
static int choose_sign(coupling *c, double unit, double own) {
  static const double times[] = {0, -1.5}, sizes[] = {-7, -4, -1};
  int best = 0;
  for (int sign = -1; sign <= 1 && unit > 0; sign += 2) {
    double before = c->best_bound;
    c->residence = sign * unit;
    for (size_t i = 0; i < LP_COUNT(sizes); i++)
      for (size_t k = 0; k < LP_COUNT(times); k++)
        (void)bound_at(c, (double[]){times[k], sizes[i]});
    if (own * sign > 0) (void)bound_at(c, (double[]){-1, log2(fabs(own) / unit)});
    if (c->best_bound > before) best = sign;
  }
  return best;
}

double lp_exact_couple(const lp_exact_chain *chain, double known, lp_exact_prices *prices) {
  coupling c = {.chain = chain,
                .x = lp_exact_chain_problem(chain),
                .graph = lp_exact_chain_graph(chain),
                .prices = prices,
                .known = known,
                .time = prices->duals.per_ms[LP_STAGE_PREFILL],
                .best_bound = -INFINITY};
  lp_exact_solve_prices(c.x, c.graph, prices);
  double own = 0, unit = residence_unit(&c, &own);
  (void)bound_at(&c, (double[]){-1, no_residence});
  int sign = choose_sign(&c, unit, own);
  c.residence = sign * unit;
  for (int round = 0; round < 2; round++) {
    double reach = round ? 0.5 : 2;
    if (sign) improve_price(&c, 1, c.best[1] - reach, c.best[1] + reach, 3);
    if (c.time > 0) improve_price(&c, 0, c.best[0] - reach, c.best[0] + reach, 2 - round);
  }
  set_coupling(&c, c.best);
  return c.best_bound;
}
