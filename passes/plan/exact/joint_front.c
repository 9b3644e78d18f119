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

/* The work of finding out whether a mode is useful, in points. */
static const double mode_work = 5;

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

typedef struct {
  double amount;
  int32_t mode;
} mode_amount;

/* A mode and the front after it. */
typedef struct {
  const lp_exact_front *front;
  double amount, price;
  int32_t mode;
} useful_mode;

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
  double arcs;        /* useful modes of all entries so far */
  LP_VEC(useful_mode) useful;
  LP_VEC(double) cheapest; /* [entries of the next place] the least price of the useful modes before the one at hand */
} maker;

static int compare_amounts(const void *left, const void *right) {
  const mode_amount *a = left, *b = right;
  if (a->amount != b->amount) return a->amount < b->amount ? -1 : 1;
  return a->mode - b->mode;
}

/* The modes of an entry, by amount. */
static const int32_t *order_modes(const maker *k, const lp_joint_node *n) {
  lp_joint *j = k->joint;
  int32_t **order = &j->sorted.data[n->sorted].order[k->quantity];
  const size_t count = n->list->count;
  if (*order) return *order;
  mode_amount *list = lp_alloc((count + 1) * sizeof *list);
  for (size_t m = 0; m < count; m++)
    list[m] = (mode_amount){lp_joint_amount(&n->list->data[m], k->quantity), (int32_t)m};
  qsort(list, count, sizeof *list, compare_amounts);
  *order = lp_arena_array(j->arena, count + 1, sizeof **order);
  for (size_t m = 0; m < count; m++)
    (*order)[m] = list[m].mode;
  free(list);
  return *order;
}

/* Lists the modes that wanted paths take, without those that are neither cheaper nor smaller than another one with the
 * same exit. */
static void list_useful(maker *k, const lp_joint_node *n) {
  const lp_joint_row *next = &k->joint->row[k->place + 1];
  const int32_t *order = order_modes(k, n);
  k->useful.count = k->cheapest.count = 0;
  k->joint->work += mode_work * (double)n->list->count;
  for (size_t e = 0; e < next->node.count; e++)
    lp_vec_push(&k->cheapest, INFINITY);
  for (size_t i = 0; i < n->list->count; i++) {
    const int32_t m = order[i], to = n->to[m];
    if (to < 0 || !next->front[k->quantity][to].count) continue;
    const lp_exact_mode *mode = &n->list->data[m];
    const double price = lp_joint_price_at(mode, k->price), amount = lp_joint_amount(mode, k->quantity);
    if (price >= k->cheapest.data[to] || price + k->whole[k->quantity] * amount + next->to_end[to] > k->own) continue;
    k->cheapest.data[to] = price;
    lp_vec_push(&k->useful, ((useful_mode){&next->front[k->quantity][to], amount, price, m}));
  }
  k->arcs += (double)k->useful.count;
}

/* Adds the points after a mode to the buckets. Points in one bucket become one, as small and as cheap as any. */
static void add_points(maker *k, const useful_mode *mode, double low, double scale) {
  const lp_exact_front *front = mode->front;
  double per_unit = k->whole[k->quantity];
  k->joint->work += front->count;
  for (int32_t p = 0; p < front->count; p++) {
    double ms = mode->amount + front->ms[p], value = mode->price + front->price[p];
    if (ms > k->room) return;
    if (value + per_unit * ms > k->own) continue;
    int at = (int)((ms - low) * scale);
    if (ms < k->ms[at]) k->ms[at] = ms;
    if (value >= k->value[at]) continue;
    k->value[at] = value;
    k->hop[at] = (lp_joint_hop){mode->mode, p};
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
  list_useful(k, n);
  for (size_t i = 0; i < k->useful.count; i++) {
    const useful_mode *mode = &k->useful.data[i];
    low = fmin(low, mode->amount + mode->front->ms[0]);
    high = fmax(high, mode->amount + mode->front->ms[mode->front->count - 1]);
  }
  high = fmin(high, k->room);
  for (int p = 0; p < k->points; p++)
    k->ms[p] = k->value[p] = INFINITY;
  for (size_t i = 0; i < k->useful.count && low <= high; i++)
    add_points(k, &k->useful.data[i], low, high > low ? (k->points - 1) / (high - low) : 0);
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
  double *price = j->front_price[k->quantity], best_price[LIMITS], last[LIMITS] = {0}, best = -INFINITY, factor = 1;
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
      memset(last, 0, sizeof last);
      used = best_used;
    }
    double own = price[k->quantity], limit = lp_joint_limit(j->x, k->quantity);
    *(k->quantity < LP_STAGE_COUNT ? &used.ms[k->quantity] : &used.bytes[k->quantity - LP_STAGE_COUNT]) = limit;
    if (!lp_joint_step(j, &used, factor * (most - best), last, price)) break;
    price[k->quantity] = own;
  }
  memcpy(price, best_price, sizeof best_price);
  k->is_traced = false;
}

/* Counts the useful modes of all entries, by fronts of few points. */
static double count_arcs(maker *k, double most) {
  k->arena = lp_arena_create();
  k->points = LEAST_FEW;
  k->arcs = 1;
  make_fronts(k, most);
  lp_arena_free(k->arena);
  return k->arcs;
}

/* The points of each front, as far as memory and work allow. */
static int most_points_of(const lp_joint *j, double arcs) {
  double nodes = 0;
  for (size_t i = 0; i < j->segments; i++)
    nodes += (double)j->row[i].node.count;
  return (int)fmin(fmax(fmin(most_points / nodes, most_merged / arcs), LEAST_POINTS), MOST_POINTS);
}

void lp_joint_fronts(lp_joint *j, double most, double price[LIMITS][LIMITS]) {
  maker k = {.joint = j};
  double modes = 0;
  for (size_t i = 0; i < j->segments; i++)
    for (size_t n = 0; n < j->row[i].node.count; n++)
      modes += (double)j->row[i].node.data[n].list->count;
  k.ms = lp_alloc(MOST_POINTS * sizeof(double));
  k.value = lp_alloc(MOST_POINTS * sizeof(double));
  k.hop = lp_alloc(MOST_POINTS * sizeof(lp_joint_hop));
  for (k.quantity = 0; k.quantity < LIMITS; k.quantity++) {
    double *own = j->front_price[k.quantity];
    j->has_front[k.quantity] = j->price[k.quantity] > 0; /* others do not bind */
    if (!j->has_front[k.quantity]) continue;
    memcpy(own, price[k.quantity][k.quantity] > 0 ? price[k.quantity] : j->price, sizeof j->price);
    double arcs = count_arcs(&k, most);
    k.points = (int)fmin(fmax(few_merged / arcs, LEAST_FEW), MOST_FEW);
    improve_fronts(&k, most, (int)fmin(most_improved / (arcs * k.points + mode_work * modes), FRONT_STEPS));
    memcpy(price[k.quantity], own, sizeof j->price);
    k.points = most_points_of(j, arcs);
    k.arena = j->arena;
    make_fronts(&k, most);
  }
  (void)lp_joint_solve(j, j->price);
  lp_vec_free(&k.useful);
  lp_vec_free(&k.cheapest);
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
