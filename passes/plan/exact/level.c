/* Prices that are the same for holdings that are alike, so that equal segments have equal prices. Subgradient steps
 * (Polyak's) raise the bound of both stages' shortest paths over the prices of the limits, the stages' shares of
 * memory, and the price of a cache's residence. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>
#include <string.h>

/* MOST_STEPS: of the search. PATIENCE: steps without progress after which they are halved. */
enum { MOST_STEPS = 250, PATIENCE = 8, LIMITS = 4, PER_KIND = 3, RESIDENCE = 2 };

/* The least factor of a step, progress as a share of the bound, and the most that a step hopes to gain. */
static const double least_factor = 1e-3, progress = 1e-5, hope = 0.5;

/* A kind of holdings that are alike and have users in both stages. */
typedef struct {
  const lp_exact_holding *first;
  int32_t count;
  int32_t used[LP_STAGE_COUNT][LP_SIDE_COUNT]; /* on the last paths */
} kind;

/* Variables: the prices of the limits, then for each kind the shares of prefill by side and the price of residence. */
typedef struct {
  const lp_exact *x;
  const lp_exact_graph *graph;
  lp_exact_prices *prices;
  int32_t *kind_of; /* [holding] -1: none */
  kind *kind;
  int32_t kind_count, count;
  double *now, *best, *slope, *scale; /* [count] scale: of a variable, such that slopes are comparable */
  double *last;                       /* [count] direction */
  double bytes[LP_SIDE_COUNT];        /* on the last paths, each stage with its share */
} levelling;

static void find_kinds(levelling *l) {
  const lp_exact *x = l->x;
  l->kind_of = LP_NEW_ARRAY(x->arena, int32_t, x->holding_count);
  l->kind = LP_NEW_ARRAY(x->arena, kind, x->holding_count);
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *h = &x->holding[i];
    int32_t k = l->kind_of[i] = -1;
    if (h->first[0] < 0 || h->first[1] < 0) continue;
    for (k = 0; k < l->kind_count && !lp_exact_are_alike(l->kind[k].first, h); k++)
      ;
    l->kind_count += k == l->kind_count;
    l->kind_of[i] = k;
    if (!l->kind[k].first) l->kind[k].first = h;
    l->kind[k].count++;
  }
}

static double *of_kind(double *variables, int32_t k) {
  return &variables[LIMITS + PER_KIND * k];
}

/* Begins with the mean of each kind. */
static void read_prices(levelling *l) {
  const lp_exact_prices *prices = l->prices;
  for (int i = 0; i < 2; i++) {
    l->now[i] = prices->duals.per_ms[i];
    l->now[2 + i] = prices->duals.per_byte[i];
  }
  for (int32_t i = 0; i < l->x->holding_count; i++) {
    int32_t k = l->kind_of[i];
    if (k < 0) continue;
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      of_kind(l->now, k)[side] += prices->share[0][side][i] / l->kind[k].count;
    of_kind(l->now, k)[RESIDENCE] += prices->residence[i] / l->kind[k].count;
  }
}

static void write_prices(const levelling *l, double *from) {
  lp_exact_prices *prices = l->prices;
  for (int i = 0; i < 2; i++) {
    prices->duals.per_ms[i] = from[i];
    prices->duals.per_byte[i] = from[2 + i];
  }
  for (int32_t i = 0; i < l->x->holding_count; i++) {
    int32_t k = l->kind_of[i];
    if (k < 0) continue;
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      prices->share[0][side][i] = of_kind(from, k)[side];
      prices->share[1][side][i] = 1 - of_kind(from, k)[side];
    }
    prices->residence[i] = of_kind(from, k)[RESIDENCE];
  }
  lp_exact_solve_prices(l->x, l->graph, prices);
}

/* Counts the holdings of a stage's shortest path. */
static void count_holdings(levelling *l, lp_stage stage) {
  const lp_exact *x = l->x;
  const lp_exact_prices *prices = l->prices;
  int32_t at = 0;
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    int side = prices->side[stage][i];
    const lp_exact_arc *arc = &l->graph[stage].arc[i][at][side];
    for (int32_t k = 0; k < unit->hold_count; k++) {
      int32_t h = unit->hold[k];
      if (!(arc->fresh >> k & 1)) continue;
      l->bytes[side] += prices->share[stage][side][h] * x->holding[h].bytes[side];
      if (l->kind_of[h] >= 0) l->kind[l->kind_of[h]].used[stage][side]++;
    }
    at = arc->to;
  }
}

/* Sets a variable's slope; no step leads beyond its least and greatest value. */
static void set_slope(levelling *l, int32_t at, double slope, double scale, double most) {
  bool is_stuck = (l->now[at] <= 0 && slope < 0 && most > 0) || (l->now[at] >= most && slope > 0 && most > 0);
  l->scale[at] = scale;
  l->slope[at] = is_stuck || !(scale > 0) ? 0 : slope;
}

/* Fills the slopes of the bound; returns the sum of their squares. */
static double find_slopes(levelling *l) {
  const lp_exact *x = l->x;
  double sum = 0;
  memset(l->bytes, 0, sizeof l->bytes);
  for (int32_t k = 0; k < l->kind_count; k++)
    memset(l->kind[k].used, 0, sizeof l->kind[k].used);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double limit = x->limit_ms[stage], excess = lp_exact_walk(x, l->graph, (lp_stage)stage, l->prices);
    set_slope(l, stage, limit > 0 ? excess / limit : 0, limit > 0 ? 1 / limit : 0, INFINITY);
    count_holdings(l, (lp_stage)stage);
  }
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    double limit = x->limit_bytes[side];
    set_slope(l, 2 + side, limit > 0 ? l->bytes[side] / limit - 1 : 0, limit > 0 ? 1 / limit : 0, INFINITY);
  }
  for (int32_t k = 0; k < l->kind_count; k++) {
    const kind *own = &l->kind[k];
    int32_t at = LIMITS + PER_KIND * k;
    double count = own->count;
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      double unit = l->now[2 + side] * own->first->bytes[side] * count;
      set_slope(l, at + side, (own->used[0][side] - own->used[1][side]) / count, unit > 0 ? 1 / unit : 0, 1);
    }
    double stay = own->used[0][LP_SIDE_DEVICE] - own->used[1][LP_SIDE_DEVICE];
    set_slope(l, at + RESIDENCE, stay / count, own->first->is_state ? 1 / count : 0, 0);
  }
  for (int32_t i = 0; i < l->count; i++)
    sum += l->slope[i] * l->slope[i];
  return sum;
}

static void take_step(levelling *l, double length) {
  for (int32_t i = 0; i < l->count; i++) {
    l->now[i] += length * l->slope[i] * l->scale[i];
    if (i < LIMITS) l->now[i] = fmax(l->now[i], 0);
    if (i >= LIMITS && (i - LIMITS) % PER_KIND != RESIDENCE) l->now[i] = fmin(fmax(l->now[i], 0), 1);
  }
}

/* Turns the slopes towards the last direction where the two are opposite (Camerini, Fratta and Maffioli, 1975), so that
 * steps do not go to and fro. Returns the square of the new direction. */
static double deflect(levelling *l) {
  double along = 0, square = 0, sum = 0;
  for (int32_t i = 0; i < l->count; i++) {
    along += l->slope[i] * l->last[i];
    square += l->last[i] * l->last[i];
  }
  const double share = square > 0 && along < 0 ? -1.5 * along / square : 0;
  for (int32_t i = 0; i < l->count; i++) {
    l->slope[i] += share * l->last[i];
    sum += l->slope[i] * l->slope[i];
  }
  memcpy(l->last, l->slope, (size_t)l->count * sizeof *l->slope);
  return sum;
}

static void climb(levelling *l, double most) {
  double best = -INFINITY, factor = 1;
  int without = 0;
  for (int step = 0; step < MOST_STEPS && factor > least_factor; step++) {
    write_prices(l, l->now);
    double bound = lp_exact_least(l->x, l->prices);
    without = bound > best + progress * fabs(best) ? 0 : without + 1;
    if (bound > best || !step) memcpy(l->best, l->now, (size_t)l->count * sizeof *l->now);
    best = fmax(best, bound);
    if (bound >= most || isinf(bound)) return;
    double square = find_slopes(l);
    if (!(square > 0)) return;
    square = deflect(l);
    take_step(l, factor * fmin(most - bound, fmax(hope * fabs(best), best - bound)) / square);
    if (without < PATIENCE) continue;
    factor /= 2;
    without = 0;
    memcpy(l->now, l->best, (size_t)l->count * sizeof *l->now);
    memset(l->last, 0, (size_t)l->count * sizeof *l->last);
  }
}

void lp_exact_level(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], double most,
                    lp_exact_prices *prices) {
  levelling l = {.x = x, .graph = graph, .prices = prices};
  find_kinds(&l);
  l.count = LIMITS + PER_KIND * l.kind_count;
  double **arrays[] = {&l.now, &l.best, &l.slope, &l.scale, &l.last};
  for (size_t i = 0; i < LP_COUNT(arrays); i++)
    *arrays[i] = LP_NEW_ARRAY(x->arena, double, l.count);
  read_prices(&l);
  climb(&l, most);
  write_prices(&l, l.best);
}
