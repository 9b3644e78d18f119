/* Fronts of a stage: the least price of the rest for each amount of one limit that is left. Prices of time mix
 * placements that send different numbers of messages; a front keeps its limit exact. */
#include "proof/seeker.h"

#include <math.h>

/* The points of a frontier, as far as MOST_IN_ALL allows; a work of some ns each. */
enum { LEAST_POINTS = 64, MOST_IN_ALL = 8000000 };

/* The points after an arc, moved by it. */
typedef struct {
  const front_point *at, *end;
  double amount, price;
} moved_points;

typedef struct {
  const seeker *s;
  front *out;
  double *cost;       /* [2 * frontier + side] of a step: the price of its arcs */
  const void *priced; /* the arcs of `cost` */
  size_t capacity;    /* of cost */
  LP_VEC(front_point) merged;
} maker;

/* Makes room for the points of a merge. */
static void reserve_merged(maker *k, size_t count) {
  if (k->merged.capacity >= count) return;
  free(k->merged.data);
  k->merged.capacity = 2 * count;
  k->merged.data = lp_alloc(k->merged.capacity * sizeof *k->merged.data);
}

static double limit_of(const seeker *s, const front *f) {
  return f->of < 0 ? 0 : s->limit[f->of] * (1 + 2 * CERTIFICATE_ROUNDING);
}

static double amount_of(const front *f, const frontier_arc *arc) {
  return f->of < 0 ? 0 : arc->amount[f->of];
}

/* Fills `cost`. Equal steps share their arcs. */
static void price_arcs(maker *k, const frontier_step *step) {
  const front *f = k->out;
  if (k->priced == step->arc) return;
  k->priced = step->arc;
  if (k->capacity < (size_t)step->count) {
    k->capacity = (size_t)step->count;
    free(k->cost);
    k->cost = lp_alloc(2 * k->capacity * sizeof *k->cost);
  }
  for (int32_t i = 0; i < step->count; i++)
    for (int side = 0; side < 2; side++) {
      const frontier_arc *arc = &step->arc[i][side];
      double price = arc->objective + f->residence * arc->cached;
      for (int q = 0; q < LIMIT_COUNT; q++)
        price += f->price[q] * arc->amount[q];
      k->cost[2 * i + side] = price;
    }
}

void front_open(const seeker *s, front *f) {
  const frontier_graph *g = &s->graph;
  const int32_t all = s->first[g->step_count + 1];
  maker k = {.s = s, .out = f};
  double last = INFINITY, ending = INFINITY;
  f->offset = 0;
  for (int q = 0; q < LIMIT_COUNT; q++)
    f->offset += f->price[q] * s->limit[q];
  for (int32_t i = 0; i < all; i++)
    f->least[i] = f->before[i] = i ? INFINITY : 0;
  for (size_t step = 0; step < g->step_count; step++) {
    price_arcs(&k, &g->step[step]);
    for (int32_t i = 0; i < g->step[step].count; i++)
      for (int side = 0; side < 2; side++) {
        const frontier_arc *arc = &g->step[step].arc[i][side];
        if (arc->to < 0) continue;
        const int32_t from = s->first[step] + i, to = s->first[step + 1] + arc->to;
        const double amount = amount_of(f, arc), price = f->before[from] + k.cost[2 * i + side] + f->own * amount;
        if (f->least[from] + amount < f->least[to]) f->least[to] = f->least[from] + amount;
        if (price < f->before[to]) f->before[to] = price;
      }
  }
  for (int32_t i = s->first[g->step_count]; i < all; i++)
    last = fmin(last, f->before[i]);
  for (int32_t i = 0; i < f->ending_count; i++)
    ending = fmin(ending, f->ending[i].value + f->own * f->ending[i].amount);
  f->bound = last + ending - f->offset - f->own * limit_of(s, f);
  free(k.cost);
}

static moved_points points_after(const maker *k, size_t step, int32_t frontier, int side) {
  const frontier_arc *arc = &k->s->graph.step[step].arc[frontier][side];
  moved_points p = {.amount = amount_of(k->out, arc)};
  if (arc->to < 0) return p;
  const int32_t to = k->s->first[step + 1] + arc->to;
  p.at = k->out->point.data + k->out->first[to];
  p.end = p.at + k->out->count[to];
  p.price = k->cost[2 * frontier + side];
  return p;
}

/* The points that are kept of a merge. */
typedef struct {
  front_point *end;
  double least, own, budget;
} kept_points;

/* Keeps a point unless a smaller one beats it, or its price exceeds the budget. Has no branch, which would be
 * mispredicted at every other point. */
static void keep_point(kept_points *k, double amount, double value) {
  const bool is_kept = (value < k->least) & !(value + k->own * amount > k->budget);
  *k->end = (front_point){amount, value};
  k->end += is_kept;
  k->least = is_kept ? value : k->least;
}

/* Merges the points after both arcs; keeps those that no smaller one beats, with an amount of at most `room` and a
 * price of at most `budget`. */
static void merge_points(maker *k, const moved_points from[2], double room, double budget) {
  moved_points a = from[0], b = from[1];
  reserve_merged(k, (size_t)(a.end - a.at) + (size_t)(b.end - b.at));
  kept_points kept = {.end = k->merged.data, .least = INFINITY, .own = k->out->own, .budget = budget};
  while (a.at < a.end && b.at < b.end) {
    const double of_a = a.at->amount + a.amount, of_b = b.at->amount + b.amount;
    const bool second = of_b < of_a;
    const double amount = second ? of_b : of_a, value = second ? b.at->value + b.price : a.at->value + a.price;
    if (!(amount <= room)) break; /* nor is there room for any that follows */
    a.at += !second;
    b.at += second;
    keep_point(&kept, amount, value);
  }
  if (a.at == a.end) a = b;
  for (; a.at < a.end && a.at->amount + a.amount <= room; a.at++)
    keep_point(&kept, a.at->amount + a.amount, a.at->value + a.price);
  k->merged.count = (size_t)(kept.end - k->merged.data);
}

/* Adds the merged points. Where they are more than `most`, neighbours with about the same value become one, as small
 * and as cheap as any of them. */
static int32_t add_points(const maker *k, size_t most) {
  front *f = k->out;
  const front_point *p = k->merged.data;
  const size_t count = k->merged.count, before = f->point.count;
  if (!count) return 0;
  const double width = count > most ? (p[0].value - p[count - 1].value) / ((double)most / 2) : 0;
  for (size_t i = 0; i < count;) {
    const double amount = p[i].amount, least = p[i].value - width;
    while (count > most && i + 1 < count && p[i + 1].value >= least)
      i++;
    lp_vec_push(&f->point, ((front_point){amount, p[i].value}));
    i++;
  }
  return (int32_t)(f->point.count - before);
}

void front_fill(const seeker *s, double below, int most, front *f) {
  const frontier_graph *g = &s->graph;
  const double limit = limit_of(s, f), budget = below + 1e-9 * fabs(below) + f->offset + f->own * limit;
  maker k = {.s = s, .out = f};
  f->point.count = 0;
  for (int32_t i = s->first[g->step_count]; i < s->first[g->step_count + 1]; i++) {
    f->first[i] = (int32_t)f->point.count;
    f->count[i] = f->ending_count;
    for (int32_t p = 0; p < f->ending_count; p++)
      lp_vec_push(&f->point, f->ending[p]);
  }
  for (size_t step = g->step_count; step-- > 0;) {
    price_arcs(&k, &g->step[step]);
    for (int32_t i = 0; i < g->step[step].count; i++) {
      const int32_t at = s->first[step] + i;
      const double left = (double)MOST_IN_ALL - (double)f->point.count;
      moved_points from[] = {points_after(&k, step, i, 0), points_after(&k, step, i, 1)};
      merge_points(&k, from, limit - f->least[at], budget - f->before[at]);
      f->first[at] = (int32_t)f->point.count;
      f->count[at] = add_points(&k, (size_t)fmax(LEAST_POINTS, fmin(most, left / (at + 1))));
    }
  }
  f->bound = front_least(f, 0, limit) - f->offset;
  free(k.cost);
  lp_vec_free(&k.merged);
}

void front_create(const seeker *s, front *f) {
  const size_t all = (size_t)s->first[s->graph.step_count + 1];
  f->first = lp_alloc(all * sizeof *f->first);
  f->count = lp_alloc(all * sizeof *f->count);
  f->least = lp_alloc(all * sizeof *f->least);
  f->before = lp_alloc(all * sizeof *f->before);
}

void front_free(front *f) {
  lp_vec_free(&f->point);
  free(f->first);
  free(f->count);
  free(f->least);
  free(f->before);
}

double front_least(const front *f, int32_t frontier, double left) {
  const front_point *p = f->point.data + f->first[frontier];
  int32_t low = 0, high = f->count[frontier];
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (p[middle].amount <= left)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? p[low - 1].value : INFINITY;
}
