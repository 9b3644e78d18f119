/* Fronts of the exact scheduler: the least price of the rest of a stage for each time that it may take. Unlike a price
 * of time, a front does not mix placements, so it counts each crossing in full. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>
#include <stdlib.h>

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
static const double allowance = 1e-9;

typedef struct {
  double ms, price;
} point;

/* One point for each range of prices. */
typedef struct {
  point *at; /* ms infinite: none */
  int count;
} buckets;

static void add_points(const lp_exact_front *next, double ms, double price, double least, double width, double most_ms,
                       buckets *out) {
  for (int32_t i = next->count; i-- > 0;) { /* from the least price up */
    double total = next->price[i] + price, time = next->ms[i] + ms;
    double index = width > 0 ? (total - least) / width : 0;
    if (index >= out->count) return;
    if (time > most_ms) continue;
    point *p = &out->at[index > 0 ? (int)index : 0];
    if (total < p->price) p->price = total;
    if (time < p->ms) p->ms = time;
  }
}

static void keep_points(const buckets *all, lp_exact_front *out, double *ms, double *price) {
  int32_t count = 0;
  double fastest = INFINITY;
  for (int i = 0; i < all->count; i++) {
    if (!(all->at[i].ms < fastest)) continue;
    fastest = all->at[i].ms;
    ms[count] = fastest;
    price[count++] = all->at[i].price;
  }
  for (int32_t i = 0; i < count / 2; i++) {
    int32_t other = count - 1 - i;
    double swap = ms[i];
    ms[i] = ms[other];
    ms[other] = swap;
    swap = price[i];
    price[i] = price[other];
    price[other] = swap;
  }
  *out = (lp_exact_front){.ms = ms, .price = price, .count = count};
}

/* The fronts of one place; their points follow one another. */
typedef struct {
  lp_exact_front *front;
  double *point;
} row;

static void make_row(row *r, int32_t count, int points) {
  r->front = lp_alloc(((size_t)count + 1) * sizeof *r->front);
  r->point = lp_alloc(((size_t)count + 1) * 2 * (size_t)points * sizeof *r->point);
}

static lp_exact_front *keep_row(const lp_exact *x, const row *r, int32_t count) {
  lp_exact_front *out = LP_NEW_ARRAY(x->arena, lp_exact_front, count);
  for (int32_t i = 0; i < count; i++) {
    size_t points = (size_t)r->front[i].count;
    out[i].count = r->front[i].count;
    if (!points) continue;
    out[i].ms = lp_arena_copy(x->arena, r->front[i].ms, points * sizeof(double));
    out[i].price = lp_arena_copy(x->arena, r->front[i].price, points * sizeof(double));
  }
  return out;
}

void lp_exact_fronts(const lp_exact *x, const lp_exact_graph *graph, lp_stage stage, const lp_exact_prices *prices,
                     double slack, int points, const bool *keep, lp_exact_front **front) {
  int32_t units = x->unit_count[stage];
  bool limited = x->limit_ms[stage] > 0;
  if (!limited) points = 1;
  double most_ms = limited ? x->limit_ms[stage] * (1 + allowance) : INFINITY, width = slack / points;
  row next = {0}, now = {0};
  int32_t most = 0;
  for (int32_t i = 0; i <= units; i++)
    if (graph->count[i] > most) most = graph->count[i];
  make_row(&next, most, points);
  make_row(&now, most, points);
  buckets all = {.at = lp_alloc((size_t)points * sizeof *all.at), .count = points};
  for (int32_t f = 0; f < graph->count[units]; f++) {
    next.point[2 * f] = next.point[2 * f + 1] = 0;
    next.front[f] = (lp_exact_front){.ms = &next.point[2 * f], .price = &next.point[2 * f + 1], .count = 1};
  }
  front[units] = keep_row(x, &next, graph->count[units]);
  for (int32_t i = units; i-- > 0;) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    for (int32_t f = 0; f < graph->count[i]; f++) {
      for (int k = 0; k < points; k++)
        all.at[k] = (point){INFINITY, INFINITY};
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        const lp_exact_arc *arc = &graph->arc[i][f][side];
        if (arc->to < 0 || isinf(prices->potential[stage][i][f])) continue;
        double ms = limited ? lp_exact_arc_ms(x, stage, unit, side, arc->fresh) + arc->link_ms : 0;
        double price = lp_exact_arc_price(x, stage, prices, unit, side, arc);
        add_points(&next.front[arc->to], ms, price, prices->potential[stage][i][f], width, most_ms, &all);
      }
      keep_points(&all, &now.front[f], &now.point[(size_t)f * 2 * (size_t)points],
                  &now.point[((size_t)f * 2 + 1) * (size_t)points]);
    }
    if (keep[i]) front[i] = keep_row(x, &now, graph->count[i]);
    row swap = now;
    now = next;
    next = swap;
  }
  free(all.at);
  free(now.front);
  free(now.point);
  free(next.front);
  free(next.point);
}

double lp_exact_front_price(const lp_exact_front *front, double ms) {
  const double *at = front->ms; /* finds the last point that takes no longer */
  int32_t count = front->count;
  if (!count || at[0] > ms) return INFINITY;
  while (count > 1) {
    int32_t half = count / 2;
    at = at[half] <= ms ? at + half : at;
    count -= half;
  }
  return front->price[at - front->ms];
}
