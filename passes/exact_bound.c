/* Lagrangian bounds of the exact scheduler: limits become prices, the stages come apart, and each is a shortest path
 * through its frontiers. Prices are chosen to make the bound as large as it gets; any prices give a valid one. */
#include "passes/plan_exact.h"

#include <math.h>
#include <string.h>

/* ---- prices ------------------------------------------------------------------------------------------------------------ */

/* How much the users of a holding in a stage would rather be on the device, at the stage's prices. */
static double *device_wishes(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices, double *wish) {
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    double gain = prices->busy[stage][LP_PLACE_CLOUD] * unit->ms[LP_PLACE_CLOUD] -
                  prices->busy[stage][LP_PLACE_DEVICE] * unit->ms[LP_PLACE_DEVICE];
    for (int32_t k = 0; k < unit->hold_count; k++)
      wish[unit->hold[k]] += gain;
  }
  return wish;
}

/* A holding is there once though both stages use it: its price is divided among them, most to whom it serves most. */
static double share_of(double own, double other) {
  own = fmax(own, 0);
  other = fmax(other, 0);
  return own + other > 0 ? own / (own + other) : 0.5;
}

static void divide_holdings(const lp_exact *x, lp_exact_prices *prices) {
  double *wish[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    wish[stage] = device_wishes(x, (lp_stage)stage, prices,
                                memset(prices->wish[stage], 0, (size_t)x->holding_count * sizeof *wish[stage]));
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *holding = &x->holding[i];
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      bool alone = holding->first[1 - stage] < 0;
      prices->share[stage][LP_PLACE_DEVICE][i] = alone ? 1 : share_of(wish[stage][i], wish[1 - stage][i]);
      prices->share[stage][LP_PLACE_CLOUD][i] = alone ? 1 : share_of(-wish[stage][i], -wish[1 - stage][i]);
    }
  }
}

/* Duals and divisions. */
static void copy_prices(const lp_exact *x, const lp_exact_prices *from, lp_exact_prices *to) {
  to->duals = from->duals;
  to->bound = from->bound;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int place = 0; place < LP_PLACE_COUNT; place++)
      memcpy(to->share[stage][place], from->share[stage][place], (size_t)x->holding_count * sizeof(double));
}

lp_exact_prices *lp_exact_prices_create(const lp_exact *x) {
  lp_exact_prices *prices = LP_NEW(x->arena, lp_exact_prices);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    prices->wish[stage] = LP_NEW_ARRAY(x->arena, double, x->holding_count);
    prices->potential[stage] = LP_NEW_ARRAY(x->arena, double *, x->unit_count[stage] + 1);
    prices->side[stage] = LP_NEW_ARRAY(x->arena, unsigned char, x->unit_count[stage]);
    prices->met[stage] = LP_NEW_ARRAY(x->arena, unsigned char, x->unit_count[stage]);
    for (int place = 0; place < LP_PLACE_COUNT; place++)
      prices->share[stage][place] = LP_NEW_ARRAY(x->arena, double, x->holding_count);
  }
  prices->forced = LP_NEW_ARRAY(x->arena, int8_t, x->holding_count);
  memset(prices->forced, -1, (size_t)x->holding_count);
  return prices;
}

/* What moving a group of caches costs at least when prefill leaves it on `from`. */
static double move_price(const lp_exact *x, const lp_exact_prices *prices, const lp_exact_holding *holding, int from) {
  return (x->weights.move + prices->duals.per_ms[LP_STAGE_PREFILL]) * holding->move_bytes * x->ms_per_byte[from];
}

double lp_exact_residence(const lp_exact *x, const lp_exact_prices *prices, const lp_exact_holding *holding) {
  if (!holding->is_state || holding->first[0] < 0 || holding->first[1] < 0) return 0;
  double wanted = prices->duals.residence, up = move_price(x, prices, holding, LP_PLACE_DEVICE);
  return fmax(fmin(wanted, up), -move_price(x, prices, holding, LP_PLACE_CLOUD));
}

/* Prices of a stage at the duals that are set. */
static void set_stage(const lp_exact *x, lp_stage stage, lp_exact_prices *prices) {
  prices->link[stage] = x->weights.link[stage] + prices->duals.per_ms[stage];
  for (int place = 0; place < LP_PLACE_COUNT; place++)
    prices->busy[stage][place] = x->weights.busy[stage][place] + prices->duals.per_ms[stage];
}

/* ---- arcs -------------------------------------------------------------------------------------------------------------- */

double lp_exact_arc_ms(const lp_exact *x, lp_stage stage, const lp_exact_unit *unit, int side, uint32_t fresh) {
  double ms = unit->ms[side];
  for (int32_t k = 0; k < unit->hold_count; k++)
    if (fresh >> k & 1) ms += x->holding[unit->hold[k]].ms[stage][side];
  return ms;
}

static double held_price(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices, int32_t index, int side) {
  if (prices->forced[index] >= 0 && prices->forced[index] != side) return INFINITY;
  double price = prices->duals.per_byte[side] * prices->share[stage][side][index] * x->holding[index].bytes[side];
  if (side != LP_PLACE_DEVICE || !x->holding[index].is_state) return price;
  double residence = lp_exact_residence(x, prices, &x->holding[index]);
  return price + (stage == LP_STAGE_PREFILL ? residence : -residence);
}

double lp_exact_arc_price(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices, const lp_exact_unit *unit,
                          int side, const lp_exact_arc *arc) {
  double price = prices->busy[stage][side] * lp_exact_arc_ms(x, stage, unit, side, arc->fresh);
  for (int32_t k = 0; k < unit->hold_count; k++)
    if (arc->fresh >> k & 1) price += held_price(x, stage, prices, unit->hold[k], side);
  return price + prices->link[stage] * arc->link_ms;
}

/* The two commonest sets of fresh holdings, all and none, are priced once per unit. */
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

/* ---- shortest paths ------------------------------------------------------------------------------------------------------ */

/* potential[unit][frontier]: the least price from there to the stage's end. */
static void solve_stage(const lp_exact *x, const lp_exact_graph *graph, lp_stage stage, lp_exact_prices *prices) {
  double **potential = prices->potential[stage];
  int32_t count = x->unit_count[stage];
  for (int32_t i = 0; i <= count && !potential[count]; i++)
    potential[i] = LP_NEW_ARRAY(x->arena, double, graph->count[i]);
  for (int32_t i = count; i-- > 0;) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    unit_price price[LP_PLACE_COUNT];
    for (int side = 0; side < LP_PLACE_COUNT; side++)
      price[side] = price_unit(x, stage, prices, unit, side);
    for (int32_t f = 0; f < graph->count[i]; f++) {
      double best = INFINITY;
      for (int side = 0; side < LP_PLACE_COUNT; side++) {
        const lp_exact_arc *arc = &graph->arc[i][f][side];
        if (arc->to < 0) continue;
        double value = potential[i + 1][arc->to];
        if (arc->fresh == price[side].full)
          value += price[side].all + prices->link[stage] * arc->link_ms;
        else if (!arc->fresh)
          value += price[side].none + prices->link[stage] * arc->link_ms;
        else
          value += lp_exact_arc_price(x, stage, prices, unit, side, arc);
        if (value < best) best = value; /* fmin is a call */
      }
      potential[i][f] = best;
    }
  }
}

static void count_holding(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices, int32_t index, int side,
                          lp_exact_duals *excess) {
  const lp_exact_holding *holding = &x->holding[index];
  excess->per_byte[side] += prices->share[stage][side][index] * holding->bytes[side];
  if (side != LP_PLACE_DEVICE || !holding->is_state || holding->first[1 - stage] < 0) return;
  excess->residence += stage == LP_STAGE_PREFILL ? 1 : -1;
}

/* The sides along a shortest path, and how far it is above the limits (the bound's slope in each price). */
static void walk_stage(const lp_exact *x, const lp_exact_graph *graph, lp_stage stage, lp_exact_prices *prices,
                       lp_exact_duals *excess) {
  int32_t at = 0;
  double ms = 0, objective = 0;
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    int best = -1;
    double least = INFINITY;
    for (int side = 0; side < LP_PLACE_COUNT; side++) {
      const lp_exact_arc *arc = &graph->arc[i][at][side];
      if (arc->to < 0) continue;
      double value = lp_exact_arc_price(x, stage, prices, unit, side, arc) + prices->potential[stage][i + 1][arc->to];
      if (best >= 0 && value >= least) continue;
      best = side;
      least = value;
    }
    if (best < 0) return; /* forced to where it cannot be */
    const lp_exact_arc *arc = &graph->arc[i][at][best];
    prices->side[stage][i] = (unsigned char)best;
    double busy = lp_exact_arc_ms(x, stage, unit, best, arc->fresh);
    ms += busy + arc->link_ms;
    objective += x->weights.busy[stage][best] * busy + x->weights.link[stage] * arc->link_ms;
    for (int32_t k = 0; k < unit->hold_count; k++)
      if (arc->fresh >> k & 1) count_holding(x, stage, prices, unit->hold[k], best, excess);
    at = arc->to;
  }
  prices->path_ms[stage] = ms;
  prices->path_objective[stage] = objective;
  excess->per_ms[stage] = ms - x->limit_ms[stage];
}

bool lp_exact_fastest(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_exact_prices *prices) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    prices->busy[stage][LP_PLACE_DEVICE] = prices->busy[stage][LP_PLACE_CLOUD] = prices->link[stage] = 1;
    solve_stage(x, &graph[stage], (lp_stage)stage, prices);
    if (isinf(prices->potential[stage][0][0])) return false;
    walk_stage(x, &graph[stage], (lp_stage)stage, prices, &(lp_exact_duals){.residence = 0});
  }
  return true;
}

/* ---- the best prices ------------------------------------------------------------------------------------------------------ */

enum { LINE_STEPS = 7, COMMON_STEPS = 4, BRACKET_STEPS = 12, DIVISIONS = 2 };

/* The prices that both stages see; within each choice of them every stage has its own best price of time. */
enum { PRICE_CLOUD_BYTES, PRICE_DEVICE_BYTES, PRICE_RESIDENCE, COMMON_PRICES };

typedef struct {
  const lp_exact *x;
  const lp_exact_graph *graph;
  lp_exact_prices *prices;
  lp_exact_watch *watch;
  lp_exact_duals best;
  double best_bound, scale, last[LP_STAGE_COUNT]; /* last: where the search for a stage's price ended before */
} price_search;

/* The bound somewhere along one price, and how it changes there with every price: a tangent. It is concave and piecewise
 * linear in each price, so two tangents meet above its top. */
typedef struct {
  double at, bound;
  lp_exact_duals slope;
} tangent;

typedef tangent evaluate_fn(price_search *s, int which, double at);
typedef double slope_fn(const lp_exact_duals *slope, int which);

static tangent solve_at(price_search *s, int which, double at);

static lp_exact_duals blend(const lp_exact_duals *a, const lp_exact_duals *b, double share) {
  lp_exact_duals out;
  for (int i = 0; i < LP_PLACE_COUNT; i++) {
    out.per_ms[i] = share * a->per_ms[i] + (1 - share) * b->per_ms[i];
    out.per_byte[i] = share * a->per_byte[i] + (1 - share) * b->per_byte[i];
  }
  out.residence = share * a->residence + (1 - share) * b->residence;
  return out;
}

/* Any price gives a bound; one as near to the best as this will do. */
static const double close_enough = 1e-5;

/* The top along one price, from `low` where the bound rises to `high` where it does not. At the top both tangents
 * together are level. */
static tangent find_top(price_search *s, int which, evaluate_fn *evaluate, slope_fn *slope, tangent low, tangent high) {
  int steps = evaluate == solve_at ? LINE_STEPS : COMMON_STEPS;
  for (int i = 0; i < steps; i++) {
    double up = slope(&low.slope, which), down = slope(&high.slope, which);
    double at = (high.bound - low.bound + up * low.at - down * high.at) / (up - down);
    double top = low.bound + up * (at - low.at);
    if (!(at > low.at && at < high.at)) break;
    tangent next = evaluate(s, which, at);
    if (slope(&next.slope, which) > 0)
      low = next;
    else
      high = next;
    if (next.bound >= top - close_enough * fabs(top)) break;
  }
  double up = slope(&low.slope, which), down = slope(&high.slope, which);
  tangent top = evaluate(s, which, low.bound > high.bound ? low.at : high.at);
  if (up - down > 0) top.slope = blend(&low.slope, &high.slope, -down / (up - down));
  return top;
}

/* From 0 towards `step` until the bound falls. */
static tangent search_price(price_search *s, int which, evaluate_fn *evaluate, slope_fn *slope, double step,
                            tangent zero) {
  tangent near = zero, far = zero;
  double sign = step < 0 ? -1 : 1;
  for (int i = 0; i < BRACKET_STEPS && sign * slope(&far.slope, which) > 0; i++) {
    near = far;
    far = evaluate(s, which, far.at > 0 || far.at < 0 ? 6 * far.at : step);
  }
  if (sign * slope(&far.slope, which) > 0) return far;           /* a limit that cannot be met */
  if (!(far.at > 0 || far.at < 0)) return evaluate(s, which, 0); /* one that does not bind */
  return sign > 0 ? find_top(s, which, evaluate, slope, near, far) : find_top(s, which, evaluate, slope, far, near);
}

/* ---- a stage's price of time */

static double time_slope(const lp_exact_duals *slope, int which) {
  return slope->per_ms[which];
}

static tangent solve_at(price_search *s, int which, double at) {
  tangent t = {.at = at};
  s->prices->duals.per_ms[which] = at;
  set_stage(s->x, (lp_stage)which, s->prices);
  solve_stage(s->x, &s->graph[which], (lp_stage)which, s->prices);
  walk_stage(s->x, &s->graph[which], (lp_stage)which, s->prices, &t.slope);
  t.bound = s->prices->potential[which][0][0] - at * s->x->limit_ms[which];
  bool meets = !(s->x->limit_ms[which] > 0) || t.slope.per_ms[which] <= 0;
  if (meets) memcpy(s->prices->met[which], s->prices->side[which], (size_t)s->x->unit_count[which]);
  if (meets) s->prices->has_met[which] = true;
  return t;
}

static tangent best_of_stage(price_search *s, int stage) {
  tangent zero = solve_at(s, stage, 0);
  if (s->watch->see) s->watch->see(s->watch, s->prices);
  if (!(s->x->limit_ms[stage] > 0)) {
    zero.slope.per_ms[stage] = 0;
    return zero;
  }
  double step = s->last[stage] > 0 ? s->last[stage] : s->scale / s->x->limit_ms[stage];
  tangent top = search_price(s, stage, solve_at, time_slope, step, zero);
  s->last[stage] = top.at;
  return top;
}

static tangent best_of_both(price_search *s) {
  tangent sum = {0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    tangent t = best_of_stage(s, stage);
    sum.bound += t.bound;
    sum.slope.residence += t.slope.residence;
    for (int place = 0; place < LP_PLACE_COUNT; place++)
      sum.slope.per_byte[place] += t.slope.per_byte[place];
    if (s->watch->see) s->watch->see(s->watch, s->prices);
  }
  for (int place = 0; place < LP_PLACE_COUNT; place++) {
    sum.bound -= s->prices->duals.per_byte[place] * s->x->limit_bytes[place];
    sum.slope.per_byte[place] -= s->x->limit_bytes[place];
  }
  if (sum.bound > s->best_bound) {
    s->best_bound = sum.bound;
    s->best = s->prices->duals;
  }
  return sum;
}

/* ---- the prices of what the stages share, one within the other */

static double common_slope(const lp_exact_duals *slope, int which) {
  return which == PRICE_RESIDENCE ? slope->residence : slope->per_byte[which == PRICE_CLOUD_BYTES];
}

static tangent best_from(price_search *s, int which);

static tangent common_at(price_search *s, int which, double at) {
  if (which == PRICE_RESIDENCE)
    s->prices->duals.residence = at;
  else
    s->prices->duals.per_byte[which == PRICE_CLOUD_BYTES] = at;
  tangent t = best_from(s, which + 1);
  t.at = at;
  return t;
}

static bool is_wanted(const lp_exact *x, int which) {
  if (which != PRICE_RESIDENCE) return x->limit_bytes[which == PRICE_CLOUD_BYTES] > 0;
  for (int32_t i = 0; i < x->holding_count; i++)
    if (x->holding[i].is_state && x->holding[i].first[0] >= 0 && x->holding[i].first[1] >= 0) return true;
  return false;
}

static tangent best_from(price_search *s, int which) {
  if (which == COMMON_PRICES) return best_of_both(s);
  tangent zero = common_at(s, which, 0);
  if (!is_wanted(s->x, which)) return zero;
  double step =
      s->scale / (which == PRICE_RESIDENCE ? s->x->holding_count : s->x->limit_bytes[which == PRICE_CLOUD_BYTES]);
  double slope = common_slope(&zero.slope, which);
  if (which == PRICE_RESIDENCE && slope < 0) step = -step;
  return search_price(s, which, common_at, common_slope, step, zero);
}

/* ---- the whole */

/* What a millisecond or a byte is worth, roughly: the objective's total over that of the limited quantity. */
static double objective_scale(const lp_exact *x) {
  double sum = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      for (int place = 0; place < LP_PLACE_COUNT; place++)
        sum += x->weights.busy[stage][place] * x->unit[stage][i].ms[place];
  return sum > 0 ? sum : 1e-6;
}

static void solve_again(price_search *s, const lp_exact_duals *duals) {
  s->prices->duals = *duals;
  s->prices->bound = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->prices->bound += solve_at(s, stage, duals->per_ms[stage]).bound;
  for (int place = 0; place < LP_PLACE_COUNT; place++)
    s->prices->bound -= duals->per_byte[place] * s->x->limit_bytes[place];
}

/* The best of one stage alone, its KV caches where they are forced to be; false when its bound cannot be met so. */
bool lp_exact_best_stage(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_stage stage,
                         lp_exact_prices *prices) {
  price_search s = {.x = x, .graph = graph, .prices = prices, .watch = &(lp_exact_watch){NULL}};
  s.scale = objective_scale(x);
  s.last[stage] = prices->duals.per_ms[stage];
  prices->duals.residence = 0;
  prices->has_met[stage] = false;
  tangent first = solve_at(&s, (int)stage, 0);
  if (isinf(first.bound)) return false;
  (void)best_of_stage(&s, (int)stage);
  return prices->has_met[stage];
}

/* How memory is divided between the stages depends on the prices: a second time with those of the first. */
void lp_exact_best_prices(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_exact_watch *watch,
                          lp_exact_prices *prices) {
  bool memory = x->limit_bytes[0] > 0 || x->limit_bytes[1] > 0;
  price_search s = {.x = x, .graph = graph, .prices = prices, .watch = watch, .scale = objective_scale(x)};
  lp_exact_prices *first = memory ? lp_exact_prices_create(x) : NULL;
  for (int i = 0; i < (memory ? DIVISIONS : 1); i++) {
    double before = i ? prices->bound : -INFINITY;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      set_stage(x, (lp_stage)stage, prices);
    divide_holdings(x, prices);
    s.best_bound = -INFINITY;
    (void)best_from(&s, 0);
    solve_again(&s, &s.best);
    if (i && prices->bound < before) copy_prices(x, first, prices);
    if (!i && memory) copy_prices(x, prices, first);
  }
  const lp_exact_duals found = prices->duals;
  solve_again(&s, &found);
}

void lp_exact_bound_at(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], const lp_exact_duals *duals,
                       lp_exact_prices *prices) {
  price_search s = {.x = x, .graph = graph, .prices = prices, .watch = &(lp_exact_watch){NULL}};
  prices->duals = *duals;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    set_stage(x, (lp_stage)stage, prices);
  divide_holdings(x, prices);
  solve_again(&s, duals);
}
