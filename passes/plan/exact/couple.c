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
  lp_exact_prices *prices, *pruning;
  double known;
  double per_ms[LP_STAGE_COUNT]; /* the prices of time that prune; those of prefill are the unit of its scale */
  double residence;              /* the unit of its scale; it has a sign; 0: that of each cache is in `own` */
  double *own;                   /* [holding] the prices of residence of minimum cuts */
  double decode_ms;              /* the price of decode's time */
  double best[2], best_bound;
  double work; /* points merged so far */
} coupling;

/* No prices are tried after so many points have been merged; a point takes about 4 ns. */
static const double most_work = 4e7;

/* No more prices are tried once the bound is this close to the known objective, as a share. */
static const double close = 4e-3;

/* Below this value on its scale, a price is 0. */
static const double no_price = -20;

static double scaled(double unit, double at) {
  return at > no_price ? unit * exp2(at) : 0;
}

/* Fronts keep the limits of time by themselves, so decode's time needs no price: a price of time mixes placements.
 * Prefill's has one because moves of caches take time that its front does not contain. */
static void set_coupling(const coupling *c, const double at[2]) {
  lp_exact_duals *duals = &c->prices->duals;
  duals->per_ms[LP_STAGE_PREFILL] = scaled(c->per_ms[LP_STAGE_PREFILL], at[0]);
  duals->per_ms[LP_STAGE_DECODE] = c->decode_ms;
  for (int32_t i = 0; i < c->x->holding_count; i++)
    c->prices->residence[i] = scaled(c->residence != 0 ? c->residence : c->own[i], at[1]);
  lp_exact_prices_copy(c->x, c->prices, c->pruning);
  for (int32_t i = 0; i < c->x->holding_count; i++)
    c->pruning->residence[i] = lp_exact_residence(c->x, c->prices, i);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    c->pruning->duals.per_ms[stage] = fmax(c->per_ms[stage], duals->per_ms[stage]);
  lp_exact_solve_prices(c->x, c->graph, c->prices);
  lp_exact_solve_prices(c->x, c->graph, c->pruning);
}

static double bound_at(coupling *c, const double at[2]) {
  if (c->work > most_work || c->best_bound >= (1 - close) * c->known) return -INFINITY;
  set_coupling(c, at);
  double least = lp_exact_least(c->x, c->pruning), bound = least;
  double slack = isinf(c->known) ? 4 * fabs(least) : fmax(c->known - least, 0);
  if (!isinf(least)) /* placements above least + slack are dropped */
    bound = fmin(lp_exact_chain_bound(c->chain, c->prices, c->pruning, slack, &c->work), least + slack);
  if (bound > c->best_bound) {
    c->best_bound = bound;
    memcpy(c->best, at, sizeof c->best);
  }
  return bound;
}

/* Moves the prices of `which` away from `from`. */
static double bound_near(coupling *c, const double from[2], unsigned which, double distance) {
  double at[2];
  for (int i = 0; i < 2; i++)
    at[i] = from[i] + (which >> i & 1 ? distance : 0);
  return bound_at(c, at);
}

/* Improves prices, one or both in step, by a golden-section search around the best known ones. `which` has a bit for
 * each price. */
static void improve_prices(coupling *c, unsigned which, double reach, int steps) {
  const double ratio = 0.6180339887498949, from[2] = {c->best[0], c->best[1]};
  double low = -reach, high = reach, a = high - ratio * (high - low), b = low + ratio * (high - low);
  double bound_a = bound_near(c, from, which, a), bound_b = bound_near(c, from, which, b);
  for (int i = 0; i < steps; i++) {
    if (bound_a >= bound_b) {
      high = b;
      b = a;
      bound_b = bound_a;
      a = high - ratio * (high - low);
      bound_a = bound_near(c, from, which, a);
    } else {
      low = a;
      a = b;
      bound_a = bound_b;
      b = low + ratio * (high - low);
      bound_b = bound_near(c, from, which, b);
    }
  }
}

/* The objective per cache that can move. Prices have been tried before. */
static double residence_unit(const coupling *c) {
  int states = 0;
  for (int32_t i = 0; i < c->x->holding_count; i++) {
    const lp_exact_holding *h = &c->x->holding[i];
    if (!h->is_state || h->first[0] < 0 || h->first[1] < 0 || !(h->move_bytes > 0)) continue;
    states++;
  }
  if (!states) return 0;
  return fabs(isinf(c->known) ? lp_exact_least(c->x, c->prices) : c->known) / states;
}

/* Tries the prices of minimum cuts, and one price for all caches, of both signs and many sizes. Sets the unit of
 * residence to that of the best; false when residence has no price. */
static bool choose_unit(coupling *c) {
  static const double times[] = {0, -1.5}, sizes[] = {-7, -4, -1};
  (void)bound_at(c, (double[]){no_price, no_price});
  double unit = residence_unit(c), before = c->best_bound, best = 0;
  for (size_t k = 0; k < LP_COUNT(times); k++)
    (void)bound_at(c, (double[]){times[k], 0});
  bool found = c->best_bound > before;
  for (int sign = -1; sign <= 1 && unit > 0; sign += 2) {
    before = c->best_bound;
    c->residence = sign * unit;
    for (size_t i = 0; i < LP_COUNT(sizes); i++)
      for (size_t k = 0; k < LP_COUNT(times); k++)
        (void)bound_at(c, (double[]){times[k], sizes[i]});
    if (c->best_bound > before) best = c->residence;
    found = found || c->best_bound > before;
  }
  c->residence = best;
  return found;
}

double lp_exact_couple(const lp_exact_chain *chain, double known, const lp_exact_duals *cut, bool price_decode,
                       lp_exact_prices *prices, lp_exact_prices *pruning) {
  coupling c = {.chain = chain,
                .x = lp_exact_chain_problem(chain),
                .graph = lp_exact_chain_graph(chain),
                .prices = prices,
                .pruning = pruning,
                .known = known,
                .best_bound = -INFINITY};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    c.per_ms[stage] = fmax(cut->per_ms[stage], prices->duals.per_ms[stage]);
  if (price_decode) c.decode_ms = c.per_ms[LP_STAGE_DECODE];
  c.own = LP_NEW_ARRAY(c.x->arena, double, c.x->holding_count);
  for (int32_t i = 0; i < c.x->holding_count; i++)
    c.own[i] = prices->residence[i];
  bool coupled = choose_unit(&c);
  for (int round = 0; round < 2 && coupled; round++) {
    double reach = round ? 0.5 : 2;
    improve_prices(&c, 2, reach, 3);
    if (!(c.per_ms[LP_STAGE_PREFILL] > 0)) continue;
    improve_prices(&c, 1, reach, 2 - round);
    improve_prices(&c, 3, reach, 2 - round);
  }
  set_coupling(&c, c.best);
  return c.best_bound;
}
