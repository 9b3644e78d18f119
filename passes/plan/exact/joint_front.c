/* The fronts of joint bounds: one for each limit that has a price, which keeps that limit exact and prices the others.
 * The prices that are best for shortest paths are not best for a front, which needs no price for its own limit, so each
 * front has prices of its own. */
#include "base/side.h"
#include "passes/plan/exact/joint_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The points of a front: LEAST_POINTS to MOST_POINTS, and LEAST_FEW to MOST_FEW while its prices are searched, in
 * FRONT_STEPS steps at most. most_points: of all fronts of a limit. most_merged, few_merged: the points merged to make
 * all fronts of a limit, as far as the least numbers allow; most_improved: those of all steps. */
enum {
  LIMITS = LP_JOINT_LIMITS,
  LEAST_POINTS = 64,
  MOST_POINTS = 1024,
  LEAST_FEW = 16,
  MOST_FEW = 64,
  FRONT_STEPS = 12
};
static const double most_points = 1e6, most_merged = 3e7, few_merged = 4e6, most_improved = 4e7;

/* Progress of a step, as a share of the bound. */
static const double progress = 1e-5;

/* Fills from_start, at these prices, and the least amounts. */
static void fill_from_start(lp_joint *j, const double price[LIMITS]) {
  for (size_t i = 0; i <= j->segments; i++)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      j->row[i].from_start[k] = i ? INFINITY : 0;
      for (int q = 0; q < LIMITS; q++)
        j->row[i].least[q][k] = i ? INFINITY : 0;
    }
  for (size_t i = 0; i < j->segments; i++)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      const lp_joint_node *n = &j->row[i].node.data[k];
      lp_joint_row *r = &j->row[i], *next = &j->row[i + 1];
      for (size_t m = 0; m < n->count; m++) {
        int32_t to = n->to[m];
        if (to < 0) continue;
        const lp_exact_mode *mode = &n->list->data[m];
        next->from_start[to] = fmin(next->from_start[to], r->from_start[k] + lp_joint_price_at(mode, price));
        for (int q = 0; q < LIMITS; q++)
          next->least[q][to] = fmin(next->least[q][to], r->least[q][k] + lp_joint_amount(mode, q));
      }
    }
}

/* The front of an entry as it is made. */
typedef struct {
  lp_joint *joint;
  lp_arena *arena; /* of the fronts */
  size_t place;
  int quantity;
  const double *whole;  /* [LIMITS] all prices */
  double price[LIMITS]; /* without that of the quantity */
  double budget;        /* the greatest price of a wanted path, with all prices */
  double room, own;     /* the greatest amount and price that the start leaves for the rest */
  int points;
  bool is_traced;
  double *ms, *value; /* [points] by amount: the least amount and the least price */
  lp_joint_hop *hop;  /* [points] of the least price */
} maker;

/* The front after a mode; NULL when no wanted path takes it. */
static const lp_exact_front *front_after(const maker *k, const lp_joint_node *n, size_t mode) {
  const lp_joint_row *next = &k->joint->row[k->place + 1];
  int32_t to = n->to[mode];
  if (to < 0 || !next->front[k->quantity][to].count) return NULL;
  if (lp_joint_price_at(&n->list->data[mode], k->whole) + next->to_end[to] > k->own) return NULL;
  return &next->front[k->quantity][to];
}

/* Adds the points after a mode to the buckets. Points in one bucket become one, as small and as cheap as any. */
static void add_points(maker *k, const lp_joint_node *n, size_t index, const lp_exact_front *front, double low,
                       double scale) {
  const lp_exact_mode *mode = &n->list->data[index];
  double amount = lp_joint_amount(mode, k->quantity), cost = lp_joint_price_at(mode, k->price);
  double per_unit = k->whole[k->quantity];
  k->joint->work += front->count;
  for (int32_t p = 0; p < front->count; p++) {
    double ms = amount + front->ms[p], value = cost + front->price[p];
    if (ms > k->room) return;
    if (value + per_unit * ms > k->own) continue;
    int at = (int)((ms - low) * scale);
    if (ms < k->ms[at]) k->ms[at] = ms;
    if (value >= k->value[at]) continue;
    k->value[at] = value;
    k->hop[at] = (lp_joint_hop){(int32_t)index, p};
  }
}

/* Keeps the points that no smaller one beats. */
static void keep_points(const maker *k, int32_t entry) {
  lp_joint_row *r = &k->joint->row[k->place];
  lp_exact_front *out = &r->front[k->quantity][entry];
  int32_t count = 0;
  double least = INFINITY;
  for (int p = 0; p < k->points; p++) {
    if (!(k->value[p] < least)) continue;
    least = k->value[p];
    k->ms[count] = k->ms[p];
    k->hop[count] = k->hop[p];
    k->value[count++] = least;
  }
  *out = (lp_exact_front){.count = count};
  if (!count) return;
  out->ms = lp_arena_copy(k->arena, k->ms, (size_t)count * sizeof(double));
  out->price = lp_arena_copy(k->arena, k->value, (size_t)count * sizeof(double));
  if (k->is_traced) r->hop[entry] = lp_arena_copy(k->arena, k->hop, (size_t)count * sizeof(lp_joint_hop));
}

static void make_front(maker *k, int32_t entry) {
  lp_joint_row *r = &k->joint->row[k->place];
  const lp_joint_node *n = &r->node.data[entry];
  double low = INFINITY, high = 0;
  k->room = lp_joint_limit(k->joint->x, k->quantity) * (1 + LP_JOINT_ALLOWANCE) - r->least[k->quantity][entry];
  k->own = k->budget - r->from_start[entry];
  for (size_t m = 0; m < n->count; m++) {
    const lp_exact_front *front = front_after(k, n, m);
    if (!front) continue;
    double amount = lp_joint_amount(&n->list->data[m], k->quantity);
    low = fmin(low, amount + front->ms[0]);
    high = fmax(high, amount + front->ms[front->count - 1]);
  }
  high = fmin(high, k->room);
  for (int p = 0; p < k->points; p++)
    k->ms[p] = k->value[p] = INFINITY;
  for (size_t m = 0; m < n->count && low <= high; m++) {
    const lp_exact_front *front = front_after(k, n, m);
    if (front) add_points(k, n, m, front, low, high > low ? (k->points - 1) / (high - low) : 0);
  }
  keep_points(k, entry);
}

/* Makes the fronts of a limit. `most` is the greatest objective of a wanted path. */
static void make_fronts(maker *k, double most) {
  lp_joint *j = k->joint;
  k->whole = j->front_price[k->quantity];
  memcpy(k->price, k->whole, sizeof k->price);
  k->price[k->quantity] = 0;
  k->budget = most + 1e-9 * fabs(most) + lp_joint_offset(j, k->whole);
  (void)lp_joint_solve(j, k->whole);
  fill_from_start(j, k->whole);
  for (size_t i = j->segments + 1; i-- > 0;) {
    lp_joint_row *r = &j->row[i];
    k->place = i;
    r->front[k->quantity] = LP_NEW_ARRAY(k->arena, lp_exact_front, r->node.count);
    r->hop = LP_NEW_ARRAY(k->arena, lp_joint_hop *, r->node.count);
    for (size_t n = 0; n < r->node.count; n++)
      if (i < j->segments)
        make_front(k, (int32_t)n);
      else
        r->front[k->quantity][n] =
            (lp_exact_front){LP_NEW_ARRAY(k->arena, double, 1), LP_NEW_ARRAY(k->arena, double, 1), 1};
  }
}

/* The bound by the fronts of a limit, at the start. */
static double bound_of(const maker *k) {
  const lp_joint *j = k->joint;
  double least = lp_exact_front_price(&j->row[0].front[k->quantity][0],
                                      lp_joint_limit(j->x, k->quantity) * (1 + LP_JOINT_ALLOWANCE));
  return least - (1 + LP_JOINT_ALLOWANCE) * lp_joint_offset(j, k->price);
}

/* Sums the cheapest path of the fronts, and keeps it if it is the best. False: there is none. */
static bool walk_fronts(const maker *k, lp_exact_mode *sums) {
  lp_joint *j = k->joint;
  int32_t at = 0, point = j->row[0].front[k->quantity][0].count - 1;
  *sums = (lp_exact_mode){0};
  if (point < 0) return false;
  for (size_t i = 0; i < j->segments; i++) {
    const lp_joint_node *n = &j->row[i].node.data[at];
    const lp_joint_hop *next = &j->row[i].hop[at][point];
    j->path[i] = next->mode;
    lp_joint_add(sums, &n->list->data[next->mode]);
    at = n->to[next->mode];
    point = next->next;
  }
  lp_joint_keep_path(j, sums);
  return true;
}

/* Improves the prices of the other limits for the fronts of one: by Polyak's steps, because each price of a front is
 * that of a path. */
static void improve_fronts(maker *k, double most, int steps) {
  lp_joint *j = k->joint;
  double *price = j->front_price[k->quantity], best_price[LIMITS], best = -INFINITY, factor = 1;
  memcpy(best_price, price, sizeof best_price);
  k->is_traced = true;
  lp_exact_mode best_used = {0};
  for (int step = 0; step < steps; step++) {
    lp_exact_mode used;
    k->arena = lp_arena_create();
    make_fronts(k, most);
    double bound = bound_of(k);
    bool found = walk_fronts(k, &used);
    lp_arena_free(k->arena);
    if (!found || bound >= most) {
      if (bound > best) memcpy(best_price, price, sizeof best_price);
      break;
    }
    if (bound > best + progress * fabs(best)) {
      best = bound;
      best_used = used;
      memcpy(best_price, price, sizeof best_price);
    } else {
      factor /= 2;
      memcpy(price, best_price, sizeof best_price);
      used = best_used;
    }
    double own = price[k->quantity], limit = lp_joint_limit(j->x, k->quantity);
    *(k->quantity < LP_STAGE_COUNT ? &used.ms[k->quantity] : &used.bytes[k->quantity - LP_STAGE_COUNT]) = limit;
    if (!lp_joint_step(j, &used, factor * (most - best), price)) break;
    price[k->quantity] = own;
  }
  memcpy(price, best_price, sizeof best_price);
  k->is_traced = false;
}

/* The points of each front, as far as memory and work allow. */
static void set_points(const lp_joint *j, int *many, int *few, int *steps) {
  double nodes = 0, arcs = 1;
  for (size_t i = 0; i < j->segments; i++)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      nodes++;
      arcs += (double)j->row[i].node.data[k].count;
    }
  *many = (int)fmin(fmax(fmin(most_points / nodes, most_merged / arcs), LEAST_POINTS), MOST_POINTS);
  *few = (int)fmin(fmax(few_merged / arcs, LEAST_FEW), MOST_FEW);
  *steps = (int)fmin(most_improved / arcs / *few, FRONT_STEPS);
}

void lp_joint_fronts(lp_joint *j, double most, double price[LIMITS][LIMITS]) {
  int many, few, steps;
  set_points(j, &many, &few, &steps);
  maker k = {.joint = j};
  k.ms = lp_alloc((size_t)many * sizeof(double));
  k.value = lp_alloc((size_t)many * sizeof(double));
  k.hop = lp_alloc((size_t)many * sizeof(lp_joint_hop));
  for (k.quantity = 0; k.quantity < LIMITS; k.quantity++) {
    double *own = j->front_price[k.quantity];
    j->has_front[k.quantity] = j->price[k.quantity] > 0; /* others do not bind */
    if (!j->has_front[k.quantity]) continue;
    memcpy(own, price[k.quantity][k.quantity] > 0 ? price[k.quantity] : j->price, sizeof j->price);
    k.points = few;
    improve_fronts(&k, most, steps);
    memcpy(price[k.quantity], own, sizeof j->price);
    k.points = many;
    k.arena = j->arena;
    make_fronts(&k, most);
  }
  (void)lp_joint_solve(j, j->price);
  free(k.ms);
  free(k.value);
  free(k.hop);
}

double lp_joint_bound(const lp_joint *j, size_t place, int32_t entry, const lp_exact_mode *sums, double enough) {
  if (entry < 0) return INFINITY;
  double bound = lp_joint_price(j, sums) + j->row[place].to_end[entry];
  for (int q = 0; q < LIMITS && bound < enough; q++) {
    if (!j->has_front[q]) continue;
    double own = sums->objective;
    for (int other = 0; other < LIMITS; other++)
      if (other != q) own -= j->front_price[q][other] * lp_joint_left(j->x, sums, other);
    bound = fmax(bound, own + lp_exact_front_price(&j->row[place].front[q][entry], lp_joint_left(j->x, sums, q)));
  }
  return bound;
}
