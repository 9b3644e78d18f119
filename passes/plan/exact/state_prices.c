/* Prices of the limits in the graph of both stages, and the least prices to its end. */
#include "base/level.h"
#include "base/side.h"
#include "passes/plan/exact/state_graph.h"

#include <math.h>

/* A search for shortest paths. */
typedef struct {
  const lp_exact_states *s;
  double **price;       /* [step][cost] equal steps share theirs; forbidden: infinite */
  unsigned char *cloud; /* [state] whether the cheapest path goes on in the cloud */
  double *rest[2];      /* of the states before a step, and after it */
} solver;

static solver create(const lp_exact_states *s) {
  const int32_t count = s->x->step_count;
  solver v = {.s = s, .price = lp_alloc(((size_t)count + 1) * sizeof *v.price)};
  size_t most = s->first[count + 1] - s->first[count];
  for (int32_t k = 0; k < count; k++) {
    const size_t states = (size_t)s->step[k].count, costs = (size_t)s->step[k].cost_count;
    v.price[k] = s->step[k].alike == k ? lp_alloc(costs * sizeof **v.price) : v.price[s->step[k].alike];
    if (states > most) most = states;
  }
  v.cloud = lp_alloc(s->first[count] + 1);
  for (int i = 0; i < 2; i++)
    v.rest[i] = lp_alloc((most + 1) * sizeof **v.rest);
  return v;
}

static void destroy(solver *v) {
  for (int32_t k = 0; k < v->s->x->step_count; k++)
    if (v->s->step[k].alike == k) free(v->price[k]);
  free(v->price);
  free(v->cloud);
  for (int i = 0; i < 2; i++)
    free(v->rest[i]);
}

static double price_of(const lp_exact_state_cost *cost, const lp_exact_state_prices *at) {
  double price = at->objective * cost->objective;
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    if (at->price[q] > 0) price += at->price[q] * cost->amount[q];
  return price;
}

static void price_costs(solver *v, const lp_exact_state_prices *at) {
  for (int32_t k = 0; k < v->s->x->step_count; k++) {
    const lp_exact_state_step *step = &v->s->step[k];
    for (int32_t i = 0; i < step->cost_count && step->alike == k; i++)
      v->price[k][i] = i ? price_of(&step->cost[i], at) : INFINITY;
  }
}

/* Fills `own` with the least prices of the states before a step, from those after it. */
static void step_back(solver *v, int32_t k, const double *restrict rest, double *restrict own) {
  lp_exact_state_arc(*arc)[LP_SIDE_COUNT] = v->s->step[k].arc;
  const double *restrict price = v->price[k];
  unsigned char *cloud = v->cloud + v->s->first[k];
  for (int32_t i = 0; i < v->s->step[k].count; i++) {
    const double device = price[arc[i][0].cost] + rest[arc[i][0].to],
                 other = price[arc[i][1].cost] + rest[arc[i][1].to];
    cloud[i] = other < device;
    own[i] = cloud[i] ? other : device;
  }
}

/* The least price of all placements. */
static double solve(solver *v) {
  const int32_t count = v->s->x->step_count;
  memset(v->rest[count % 2], 0, (v->s->first[count + 1] - v->s->first[count]) * sizeof **v->rest);
  for (int32_t k = count; k-- > 0;)
    step_back(v, k, v->rest[(k + 1) % 2], v->rest[k % 2]);
  return v->rest[0][0];
}

/* Sums the amounts along the cheapest path. */
static void walk(const solver *v, double sum[LP_EXACT_LIMITS]) {
  int32_t at = 0;
  memset(sum, 0, LP_EXACT_LIMITS * sizeof *sum);
  for (int32_t k = 0; k < v->s->x->step_count; k++) {
    const lp_exact_state_arc *arc = &v->s->step[k].arc[at][v->cloud[v->s->first[k] + (size_t)at]];
    for (int q = 0; q < LP_EXACT_LIMITS; q++)
      sum[q] += v->s->step[k].cost[arc->cost].amount[q];
    at = arc->to;
  }
}

double lp_exact_states_improve(const lp_exact_states *s, double enough, double price[LP_EXACT_LIMITS]) {
  enum { MOST_STEPS = 40 };
  solver v = create(s);
  double x[LP_LEVEL_PRICES] = {0}, excess[LP_LEVEL_PRICES] = {0}, sum[LP_EXACT_LIMITS], bound = 0;
  int size = 0, of[LP_EXACT_LIMITS];
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    if (s->limit[q] > 0) of[size++] = q;
  for (int i = 0; i < size; i++)
    x[i] = price[of[i]] * s->limit[of[i]];
  lp_level_method method;
  lp_level_begin(&method, size, enough);
  for (int step = 0; step < MOST_STEPS; step++) {
    lp_exact_state_prices at = {.objective = 1};
    for (int i = 0; i < size; i++)
      at.price[of[i]] = x[i] / s->limit[of[i]];
    price_costs(&v, &at);
    bound = solve(&v);
    if (isinf(bound)) break;
    for (int i = 0; i < size; i++)
      bound -= x[i];
    walk(&v, sum);
    for (int i = 0; i < size; i++)
      excess[i] = sum[of[i]] / s->limit[of[i]] - 1;
    lp_level_add(&method, x, bound, excess);
    if (method.best >= enough || !lp_level_next(&method, x)) break;
  }
  destroy(&v);
  if (isinf(bound)) return bound;
  memset(price, 0, LP_EXACT_LIMITS * sizeof *price);
  for (int i = 0; i < size; i++)
    price[of[i]] = method.at[i] / s->limit[of[i]];
  return method.best;
}

/* ---- the least prices to the end --------------------------------------------------------------------------------- */

/* Several prices at once. */
enum { LANES = 4 };

static float round_down(double value) {
  static const double half = 1.2e-7; /* of the last digit of a float, as a share */
  return (float)(value * (value > 0 ? 1 - half : 1 + half));
}

/* Fills `own` with the least prices of the states before a step, from those after it. */
static void wide_step_back(const lp_exact_state_step *step, double (*restrict price)[LANES],
                           const double *restrict rest, double *restrict own) {
  for (int32_t i = 0; i < step->count; i++) {
    const lp_exact_state_arc *arc = step->arc[i];
    const double *device = &rest[LANES * arc[0].to], *cloud = &rest[LANES * arc[1].to];
    for (int k = 0; k < LANES; k++) {
      const double a = price[arc[0].cost][k] + device[k], b = price[arc[1].cost][k] + cloud[k];
      own[LANES * i + k] = b < a ? b : a;
    }
  }
}

static void wide_price(const lp_exact_state_step *step, const lp_exact_state_prices *at, int lanes,
                       double (*price)[LANES]) {
  for (int32_t i = 0; i < step->cost_count; i++)
    for (int k = 0; k < LANES; k++)
      price[i][k] = k >= lanes ? 0 : i ? price_of(&step->cost[i], &at[k]) : INFINITY;
}

/* Keeps the prices of all states at a place; `rest` is that of its first state at the first of these prices. */
static void keep_rests(const double *own, size_t states, int lanes, size_t stride, float *rest) {
  for (size_t i = 0; i < states; i++, rest += stride)
    for (int k = 0; k < lanes; k++)
      rest[k] = round_down(own[LANES * i + (size_t)k]);
}

/* Fills the least prices at the first `lanes` prices of `at`. */
static void fill_lanes(const lp_exact_states *s, const lp_exact_state_prices *at, int lanes, size_t stride,
                       float *rest) {
  const int32_t count = s->x->step_count;
  double(**price)[LANES] = lp_alloc(((size_t)count + 1) * sizeof *price);
  const size_t last = s->first[count + 1] - s->first[count];
  size_t most = last;
  for (int32_t k = 0; k < count; k++) {
    const size_t states = (size_t)s->step[k].count;
    if (states > most) most = states;
    const bool is_first = s->step[k].alike == k;
    price[k] = is_first ? lp_alloc((size_t)s->step[k].cost_count * sizeof **price) : price[s->step[k].alike];
    if (is_first) wide_price(&s->step[k], at, lanes, price[k]);
  }
  double *own = lp_alloc(most * LANES * sizeof *own), *after = lp_alloc(most * LANES * sizeof *after);
  memset(own, 0, last * LANES * sizeof *own);
  keep_rests(own, last, lanes, stride, rest + s->first[count] * stride);
  for (int32_t k = count; k-- > 0;) {
    double *swap = own;
    own = after;
    after = swap;
    wide_step_back(&s->step[k], price[k], after, own);
    keep_rests(own, (size_t)s->step[k].count, lanes, stride, rest + s->first[k] * stride);
  }
  for (int32_t k = 0; k < count; k++)
    if (s->step[k].alike == k) free(price[k]);
  free(price);
  free(own);
  free(after);
}

void lp_exact_states_fill(const lp_exact_states *s, const lp_exact_state_prices *prices, int count, float *rest) {
  for (int i = 0; i < count; i += LANES)
    fill_lanes(s, prices + i, count - i < LANES ? count - i : LANES, (size_t)count, rest + i);
}
