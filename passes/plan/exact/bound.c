/* Bounds of the exact scheduler by shortest paths. Limits become prices, the cost of holdings that both stages share
 * is divided among the stages as a minimum cut divides it, and each stage is a shortest path through its frontiers.
 * Any prices give a valid bound. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>
#include <string.h>

/* ---- prices ------------------------------------------------------------------------------------------------------ */

lp_exact_prices *lp_exact_prices_create(const lp_exact *x) {
  lp_exact_prices *prices = LP_NEW(x->arena, lp_exact_prices);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    prices->potential[stage] = LP_NEW_ARRAY(x->arena, double *, x->unit_count[stage] + 1);
    prices->side[stage] = LP_NEW_ARRAY(x->arena, unsigned char, x->unit_count[stage]);
    prices->met[stage] = LP_NEW_ARRAY(x->arena, unsigned char, x->unit_count[stage]);
    for (int where = 0; where < LP_SIDE_COUNT; where++)
      prices->share[stage][where] = LP_NEW_ARRAY(x->arena, double, x->holding_count);
  }
  prices->residence = LP_NEW_ARRAY(x->arena, double, x->holding_count);
  return prices;
}

/* The least cost of moving a group of caches when prefill leaves it on `from`. */
static double move_price(const lp_exact *x, const lp_exact_prices *prices, const lp_exact_holding *holding, int from) {
  return (x->weights.move + prices->duals.per_ms[LP_STAGE_PREFILL]) * holding->move_bytes * x->ms_per_byte[from];
}

double lp_exact_residence(const lp_exact *x, const lp_exact_prices *prices, int32_t index) {
  const lp_exact_holding *holding = &x->holding[index];
  if (!holding->is_state || holding->first[0] < 0 || holding->first[1] < 0) return 0;
  double wanted = prices->residence[index], up = move_price(x, prices, holding, LP_SIDE_DEVICE);
  return fmax(fmin(wanted, up), -move_price(x, prices, holding, LP_SIDE_CLOUD));
}

/* Sets the prices of a stage from the duals. */
static void set_stage(const lp_exact *x, lp_stage stage, lp_exact_prices *prices) {
  prices->link[stage] = x->weights.link[stage] + prices->duals.per_ms[stage];
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    prices->busy[stage][side] = x->weights.busy[stage][side] + prices->duals.per_ms[stage];
}

/* ---- arcs -------------------------------------------------------------------------------------------------------- */

double lp_exact_arc_ms(const lp_exact *x, lp_stage stage, const lp_exact_unit *unit, int side, uint32_t fresh) {
  double ms = unit->ms[side];
  for (int32_t k = 0; k < unit->hold_count; k++)
    if (fresh >> k & 1) ms += x->holding[unit->hold[k]].ms[stage][side];
  return ms;
}

static double held_price(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices, int32_t index, int side) {
  double price = prices->duals.per_byte[side] * prices->share[stage][side][index] * x->holding[index].bytes[side];
  if (side != LP_SIDE_DEVICE || !x->holding[index].is_state) return price;
  double residence = lp_exact_residence(x, prices, index);
  return price + (stage == LP_STAGE_PREFILL ? residence : -residence);
}

double lp_exact_arc_price(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices, const lp_exact_unit *unit,
                          int side, const lp_exact_arc *arc) {
  double price = prices->busy[stage][side] * lp_exact_arc_ms(x, stage, unit, side, arc->fresh);
  for (int32_t k = 0; k < unit->hold_count; k++)
    if (arc->fresh >> k & 1) price += held_price(x, stage, prices, unit->hold[k], side);
  return price + prices->link[stage] * arc->link_ms;
}

/* Prices the two commonest sets of fresh holdings, all and none, once per unit. */
typedef struct {
  double all, none;
  uint32_t full;
} unit_price;

static unit_price price_unit(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices,
                             const lp_exact_unit *unit, int side) {
  unit_price price = {.full = unit->hold_count < 32 ? (1u << unit->hold_count) - 1 : UINT32_MAX};
  price.all = lp_exact_arc_price(x, stage, prices, unit, side, &(lp_exact_arc){.fresh = price.full});
  price.none = lp_exact_arc_price(x, stage, prices, unit, side, &(lp_exact_arc){.fresh = 0});
  return price;
}

/* ---- shortest paths ---------------------------------------------------------------------------------------------- */

/* Fills potential[unit][frontier]: the least price from there to the stage's end. */
static void solve_stage(const lp_exact *x, const lp_exact_graph *graph, lp_stage stage, lp_exact_prices *prices) {
  double **potential = prices->potential[stage];
  int32_t count = x->unit_count[stage];
  for (int32_t i = 0; i <= count && !potential[count]; i++)
    potential[i] = LP_NEW_ARRAY(x->arena, double, graph->count[i]);
  for (int32_t i = count; i-- > 0;) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    unit_price price[LP_SIDE_COUNT];
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      price[side] = price_unit(x, stage, prices, unit, side);
    for (int32_t f = 0; f < graph->count[i]; f++) {
      double best = INFINITY;
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        const lp_exact_arc *arc = &graph->arc[i][f][side];
        if (arc->to < 0) continue;
        double value = potential[i + 1][arc->to];
        if (arc->fresh == price[side].full)
          value += price[side].all + prices->link[stage] * arc->link_ms;
        else if (!arc->fresh)
          value += price[side].none + prices->link[stage] * arc->link_ms;
        else
          value += lp_exact_arc_price(x, stage, prices, unit, side, arc);
        if (value < best) best = value; /* fmin would be a function call */
      }
      potential[i][f] = best;
    }
  }
}

double lp_exact_walk(const lp_exact *x, const lp_exact_graph graphs[LP_STAGE_COUNT], lp_stage stage,
                     lp_exact_prices *prices) {
  const lp_exact_graph *graph = &graphs[stage];
  int32_t at = 0;
  double ms = 0, objective = 0;
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    int best = -1;
    double least = INFINITY;
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      const lp_exact_arc *arc = &graph->arc[i][at][side];
      if (arc->to < 0) continue;
      double value = lp_exact_arc_price(x, stage, prices, unit, side, arc) + prices->potential[stage][i + 1][arc->to];
      if (best >= 0 && value >= least) continue;
      best = side;
      least = value;
    }
    if (best < 0) return 0; /* pins contradict each other */
    const lp_exact_arc *arc = &graph->arc[i][at][best];
    prices->side[stage][i] = (unsigned char)best;
    double busy = lp_exact_arc_ms(x, stage, unit, best, arc->fresh);
    ms += busy + arc->link_ms;
    objective += x->weights.busy[stage][best] * busy + x->weights.link[stage] * arc->link_ms;
    at = arc->to;
  }
  prices->path_ms[stage] = ms;
  prices->path_objective[stage] = objective;
  return ms - x->limit_ms[stage];
}

bool lp_exact_fastest(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_exact_prices *prices) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    prices->busy[stage][LP_SIDE_DEVICE] = prices->busy[stage][LP_SIDE_CLOUD] = prices->link[stage] = 1;
    solve_stage(x, &graph[stage], (lp_stage)stage, prices);
    if (isinf(prices->potential[stage][0][0])) return false;
    (void)lp_exact_walk(x, graph, (lp_stage)stage, prices);
  }
  return true;
}

void lp_exact_solve_prices(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_exact_prices *prices) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    set_stage(x, (lp_stage)stage, prices);
    solve_stage(x, &graph[stage], (lp_stage)stage, prices);
  }
}

double lp_exact_least(const lp_exact *x, const lp_exact_prices *prices) {
  double sum = prices->potential[0][0][0] + prices->potential[1][0][0];
  for (int i = 0; i < 2; i++)
    sum -= prices->duals.per_ms[i] * x->limit_ms[i] + prices->duals.per_byte[i] * x->limit_bytes[i];
  return sum;
}

void lp_exact_prices_copy(const lp_exact *x, const lp_exact_prices *from, lp_exact_prices *to) {
  size_t size = (size_t)x->holding_count * sizeof(double);
  to->duals = from->duals;
  if (!size) return;
  memcpy(to->residence, from->residence, size);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      memcpy(to->share[stage][side], from->share[stage][side], size);
}

/* ---- the best price of time -------------------------------------------------------------------------------------- */

enum { LINE_STEPS = 7, BRACKET_STEPS = 12 };

typedef struct {
  const lp_exact *x;
  const lp_exact_graph *graph;
  lp_exact_prices *prices;
  lp_exact_watch *watch;
  lp_stage stage;
} price_search;

/* The bound at a price of time, and its slope there. The bound is concave and piecewise linear, so two tangents meet
 * above its maximum. */
typedef struct {
  double at, bound, slope;
} tangent;

static tangent solve_at(price_search *s, double at) {
  const lp_exact *x = s->x;
  tangent t = {.at = at};
  s->prices->duals.per_ms[s->stage] = at;
  set_stage(x, s->stage, s->prices);
  solve_stage(x, &s->graph[s->stage], s->stage, s->prices);
  t.slope = lp_exact_walk(x, s->graph, s->stage, s->prices);
  t.bound = s->prices->potential[s->stage][0][0] - at * x->limit_ms[s->stage];
  bool meets = !(x->limit_ms[s->stage] > 0) || t.slope <= 0;
  if (meets) memcpy(s->prices->met[s->stage], s->prices->side[s->stage], (size_t)x->unit_count[s->stage]);
  if (meets) s->prices->has_met[s->stage] = true;
  if (s->watch->see) s->watch->see(s->watch, s->prices);
  return t;
}

/* Any price gives a bound; a price near the best one suffices. */
static const double close_enough = 1e-5;

/* Finds the maximum between `low`, where the bound rises, and `high`, where it does not. */
static void find_top(price_search *s, tangent low, tangent high) {
  for (int i = 0; i < LINE_STEPS; i++) {
    double at = (high.bound - low.bound + low.slope * low.at - high.slope * high.at) / (low.slope - high.slope);
    double top = low.bound + low.slope * (at - low.at);
    if (!(at > low.at && at < high.at)) break;
    tangent next = solve_at(s, at);
    if (next.slope > 0)
      low = next;
    else
      high = next;
    if (next.bound >= top - close_enough * fabs(top)) break;
  }
  (void)solve_at(s, low.bound > high.bound ? low.at : high.at);
}

/* The order of magnitude of a millisecond's price: the objective's total over the limit. */
static double first_step(const lp_exact *x, lp_stage stage) {
  double sum = 0;
  for (int32_t i = 0; i < x->unit_count[stage]; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      sum += x->weights.busy[stage][side] * x->unit[stage][i].ms[side];
  return (sum > 0 ? sum : 1e-6) / x->limit_ms[stage];
}

void lp_exact_best_stage(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_stage stage,
                         lp_exact_watch *watch, lp_exact_prices *prices) {
  price_search s = {.x = x, .graph = graph, .prices = prices, .watch = watch, .stage = stage};
  double step = prices->duals.per_ms[stage];
  prices->has_met[stage] = false;
  tangent low = solve_at(&s, 0), high = low;
  if (isinf(low.bound) || !(x->limit_ms[stage] > 0)) return;
  if (!(step > 0)) step = first_step(x, stage);
  for (int i = 0; i < BRACKET_STEPS && high.slope > 0; i++) {
    low = high;
    high = solve_at(&s, high.at > 0 ? 6 * high.at : step);
  }
  if (high.at > 0 && high.slope <= 0) find_top(&s, low, high);
}
