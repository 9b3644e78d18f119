/* Bounds of both stages together. The modes of the segments lead from entry to entry of the places between them, and a
 * placement is a path. At prices of the limits the cheapest path is a bound; unlike the bounds of each stage it counts
 * what the stages share, and messages, exactly. A price mixes placements, so that a limit on few large things, as
 * weights are, makes it weak. A front keeps one limit exact: it is the least price of the rest, at prices of the other
 * limits only, for each amount that is left. */
#include "passes/plan/exact/joint.h"
#include "base/map.h"
#include "base/side.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_ARCS: the most modes of all entries. MOST_STEPS: of the search for prices. PATIENCE: steps without progress
 * after which they are halved. */
enum { LIMITS = LP_JOINT_LIMITS, MOST_ARCS = 1000000, MOST_STEPS = 60, PATIENCE = 4 };

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
static const double allowance = 1e-9;

/* The least factor of a step, and progress as a share of the bound. */
static const double least_factor = 1e-3, progress = 1e-5;

/* An entry. */

typedef struct {
  lp_exact_mode entry;
  const lp_exact_modes_list *list;
  int32_t *to;          /* [list->count] entries of the next place; -1: no wanted path takes the mode */
  size_t count;         /* modes up to the last one that a wanted path takes */
  double excess, after; /* the least excess of paths to it, and of paths from it */
} node;

/* The entries of a place. */
typedef struct {
  LP_VEC(node) node;
  int32_t *slot; /* hash table: node + 1 */
  size_t slots;
  double *to_end, *from_start;   /* [node] least prices */
  double *least[LIMITS];         /* [node] least amounts from the start */
  lp_exact_front *front[LIMITS]; /* [node] */
} row;

struct lp_joint {
  const lp_exact *x;
  size_t segments;
  row *row;
  lp_arena *arena;
  double price[LIMITS], work;
  bool has_front[LIMITS];
  int32_t *path, *best_path; /* [segments] modes of the last path, and of the best one that meets the limits */
  double best_objective;     /* infinite: none met them */
};

double lp_joint_limit(const lp_exact *x, int quantity) {
  return quantity < LP_STAGE_COUNT ? x->limit_ms[quantity] : x->limit_bytes[quantity - LP_STAGE_COUNT];
}

double lp_joint_amount(const lp_exact_mode *sums, int quantity) {
  return quantity < LP_STAGE_COUNT ? sums->ms[quantity] : sums->bytes[quantity - LP_STAGE_COUNT];
}

double lp_joint_left(const lp_exact *x, const lp_exact_mode *sums, int quantity) {
  double left = lp_joint_limit(x, quantity) * (1 + allowance) - lp_joint_amount(sums, quantity);
  return quantity < LP_STAGE_COUNT ? left : left - 2 * sums->activation[quantity - LP_STAGE_COUNT];
}

void lp_joint_add(lp_exact_mode *sums, const lp_exact_mode *mode) {
  sums->objective += mode->objective;
  for (int k = 0; k < 2; k++) {
    sums->ms[k] += mode->ms[k];
    sums->bytes[k] += mode->bytes[k];
    sums->activation[k] = fmax(sums->activation[k], mode->activation[k]);
  }
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static size_t hash_of(const lp_exact_mode *m) {
  const uint64_t key[] = {(uint64_t)(uint32_t)m->at[0] << 32 | (uint32_t)m->at[1], m->shared};
  return (size_t)lp_hash_bytes(key, sizeof key, 1);
}

static bool same(const lp_exact_mode *a, const lp_exact_mode *b) {
  return a->at[0] == b->at[0] && a->at[1] == b->at[1] && a->shared == b->shared;
}

static size_t slot_of(const row *r, const lp_exact_mode *m) {
  size_t at = hash_of(m) % r->slots;
  while (r->slot[at] && !same(&r->node.data[r->slot[at] - 1].entry, m))
    at = (at + 1) % r->slots;
  return at;
}

static int32_t intern(row *r, const lp_exact_mode *m) {
  if (2 * (r->node.count + 1) > r->slots) {
    r->slots = r->slots ? 2 * r->slots : 64;
    free(r->slot);
    r->slot = lp_alloc(r->slots * sizeof *r->slot);
    for (size_t i = 0; i < r->node.count; i++)
      r->slot[slot_of(r, &r->node.data[i].entry)] = (int32_t)i + 1;
  }
  size_t at = slot_of(r, m);
  if (!r->slot[at]) {
    lp_vec_push(&r->node, ((node){.excess = INFINITY, .after = INFINITY}));
    r->node.data[r->node.count - 1].entry = *m;
    r->slot[at] = (int32_t)r->node.count;
  }
  return r->slot[at] - 1;
}

int32_t lp_joint_find(const lp_joint *j, size_t place, const lp_exact_mode *entry) {
  const row *r = &j->row[place];
  if (!r->slots) return -1;
  return r->slot[slot_of(r, entry)] - 1;
}

const int32_t *lp_joint_exits(const lp_joint *j, size_t place, int32_t entry) {
  return j->row[place].node.data[entry].to;
}

double lp_joint_work(const lp_joint *j) {
  return j->work;
}

/* Lists the entries that paths with an excess of at most `slack` meet. False when there are too many. */
static bool list_entries(lp_joint *j, double slack, lp_joint_list list, void *user) {
  lp_exact_mode start = {0};
  (void)intern(&j->row[0], &start);
  j->row[0].node.data[0].excess = 0;
  size_t total = 1;
  for (size_t i = 0; i < j->segments; i++)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      node *n = &j->row[i].node.data[k];
      n->list = list(user, i, &n->entry);
      if (!n->list) return false;
      n->to = lp_arena_array(j->arena, n->list->count + 1, sizeof *n->to);
      for (size_t m = 0; m < n->list->count; m++) {
        const lp_exact_mode *mode = &n->list->data[m];
        n->to[m] = -1;
        if (n->excess + mode->excess > slack) continue;
        n->to[m] = intern(&j->row[i + 1], mode);
        node *next = &j->row[i + 1].node.data[n->to[m]];
        next->excess = fmin(next->excess, n->excess + fmax(mode->excess, 0));
      }
      total += n->list->count;
      if (total > MOST_ARCS) return false;
    }
  return true;
}

/* Excludes modes that are on no path with an excess of at most `slack`. */
static void prune_entries(lp_joint *j, double slack) {
  for (size_t k = 0; k < j->row[j->segments].node.count; k++)
    j->row[j->segments].node.data[k].after = 0;
  for (size_t i = j->segments; i-- > 0;)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      node *n = &j->row[i].node.data[k];
      for (size_t m = 0; m < n->list->count; m++) {
        if (n->to[m] < 0) continue;
        double after = fmax(n->list->data[m].excess, 0) + j->row[i + 1].node.data[n->to[m]].after;
        if (n->excess + after > slack) {
          n->to[m] = -1;
          continue;
        }
        n->count = m + 1;
        n->after = fmin(n->after, after);
      }
    }
}

lp_joint *lp_joint_create(const lp_exact *x, size_t segments, double slack, lp_joint_list list, void *user) {
  lp_joint *j = lp_alloc(sizeof *j);
  *j = (lp_joint){.x = x, .segments = segments, .arena = lp_arena_create(), .best_objective = INFINITY};
  j->path = lp_arena_array(j->arena, segments + 1, sizeof *j->path);
  j->best_path = lp_arena_array(j->arena, segments + 1, sizeof *j->path);
  j->row = lp_arena_array(j->arena, segments + 1, sizeof *j->row);
  memset(j->row, 0, (segments + 1) * sizeof *j->row);
  if (!list_entries(j, slack, list, user)) {
    lp_joint_free(j);
    return NULL;
  }
  prune_entries(j, slack);
  for (size_t i = 0; i <= segments; i++) {
    row *r = &j->row[i];
    r->to_end = lp_arena_array(j->arena, r->node.count + 1, sizeof(double));
    r->from_start = lp_arena_array(j->arena, r->node.count + 1, sizeof(double));
    for (int q = 0; q < LIMITS; q++)
      r->least[q] = lp_arena_array(j->arena, r->node.count + 1, sizeof(double));
  }
  return j;
}

void lp_joint_free(lp_joint *j) {
  if (!j) return;
  for (size_t i = 0; i <= j->segments; i++) {
    lp_vec_free(&j->row[i].node);
    free(j->row[i].slot);
  }
  lp_arena_free(j->arena);
  free(j);
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static double price_of(const lp_exact_mode *m, const double price[LIMITS]) {
  return m->objective + price[0] * m->ms[0] + price[1] * m->ms[1] + price[2] * m->bytes[0] + price[3] * m->bytes[1];
}

static double offset_of(const lp_joint *j, const double price[LIMITS]) {
  double sum = 0;
  for (int q = 0; q < LIMITS; q++)
    sum += price[q] * lp_joint_limit(j->x, q);
  return sum;
}

double lp_joint_price(const lp_joint *j, const lp_exact_mode *sums) {
  double whole = price_of(sums, j->price) - offset_of(j, j->price);
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    whole += 2 * j->price[LP_STAGE_COUNT + side] * sums->activation[side];
  return whole;
}

double lp_joint_least(const lp_joint *j, size_t place, int32_t entry, const lp_exact_mode *mode) {
  return price_of(mode, j->price) + j->row[place].to_end[entry];
}

/* The cheapest mode of an entry at a place, with all that follows it. */
static double cheapest(const lp_joint *j, size_t place, const node *n, const double price[LIMITS], size_t *mode) {
  double best = INFINITY;
  for (size_t m = 0; m < n->count; m++) {
    if (n->to[m] < 0) continue;
    double whole = price_of(&n->list->data[m], price) + j->row[place + 1].to_end[n->to[m]];
    if (whole >= best) continue;
    best = whole;
    *mode = m;
  }
  return best;
}

/* Fills to_end; returns the bound. */
static double solve(lp_joint *j, const double price[LIMITS]) {
  size_t mode = 0;
  for (size_t k = 0; k < j->row[j->segments].node.count; k++)
    j->row[j->segments].to_end[k] = 0;
  for (size_t i = j->segments; i-- > 0;)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      const node *n = &j->row[i].node.data[k];
      j->row[i].to_end[k] = cheapest(j, i, n, price, &mode);
      j->work += (double)n->count;
    }
  return j->row[0].to_end[0] - offset_of(j, price);
}

/* Sums the cheapest path after solve(), and keeps it if it meets the limits and is the best of those. */
static lp_exact_mode walk(lp_joint *j, const double price[LIMITS]) {
  lp_exact_mode sums = {0};
  int32_t at = 0;
  for (size_t i = 0; i < j->segments; i++) {
    const node *n = &j->row[i].node.data[at];
    size_t mode = 0;
    (void)cheapest(j, i, n, price, &mode);
    j->path[i] = (int32_t)mode;
    lp_joint_add(&sums, &n->list->data[mode]);
    at = n->to[mode];
  }
  for (int q = 0; q < LIMITS; q++)
    if (lp_joint_limit(j->x, q) > 0 && lp_joint_left(j->x, &sums, q) < 0) return sums;
  if (sums.objective >= j->best_objective) return sums;
  j->best_objective = sums.objective;
  memcpy(j->best_path, j->path, j->segments * sizeof *j->path);
  return sums;
}

bool lp_joint_path(const lp_joint *j, uint64_t *sides) {
  int32_t at = 0;
  if (isinf(j->best_objective)) return false;
  for (size_t i = 0; i < j->segments; i++) {
    const node *n = &j->row[i].node.data[at];
    sides[i] = n->list->data[j->best_path[i]].sides;
    at = n->to[j->best_path[i]];
  }
  return true;
}

/* Takes Polyak's step towards `most`; false where the bound has no slope. */
static bool take_step(const lp_joint *j, const lp_exact_mode *used, double length, double price[LIMITS]) {
  double slope[LIMITS], square = 0;
  for (int q = 0; q < LIMITS; q++) {
    double limit = lp_joint_limit(j->x, q);
    slope[q] = limit > 0 ? lp_joint_amount(used, q) / limit - 1 : 0;
    if (!(price[q] > 0) && slope[q] < 0) slope[q] = 0;
    square += slope[q] * slope[q];
  }
  if (!(square > 0)) return false;
  for (int q = 0; q < LIMITS; q++)
    if (lp_joint_limit(j->x, q) > 0)
      price[q] = fmax(0, price[q] + length / square * slope[q] / lp_joint_limit(j->x, q));
  return true;
}

double lp_joint_improve(lp_joint *j, double most, double price[LIMITS]) {
  double now[LIMITS], best = -INFINITY, factor = 1;
  int without = 0;
  for (int q = 0; q < LIMITS; q++)
    j->price[q] = now[q] = lp_joint_limit(j->x, q) > 0 ? price[q] : 0;
  for (int step = 0; step < MOST_STEPS && factor > least_factor; step++) {
    double bound = solve(j, now);
    without = bound > best + progress * fabs(best) ? 0 : without + 1;
    if (bound > best) memcpy(j->price, now, sizeof now);
    best = fmax(best, bound);
    if (bound >= most || isinf(bound)) break;
    lp_exact_mode used = walk(j, now);
    if (without >= PATIENCE) {
      factor /= 2;
      without = 0;
      memcpy(now, j->price, sizeof now);
      bound = solve(j, now);
      used = walk(j, now);
    }
    if (!take_step(j, &used, factor * (most - bound), now)) break;
  }
  memcpy(price, j->price, sizeof j->price);
  return solve(j, j->price);
}

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

/* Fills from_start and the least amounts. */
static void fill_from_start(lp_joint *j) {
  for (size_t i = 0; i <= j->segments; i++)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      j->row[i].from_start[k] = i ? INFINITY : 0;
      for (int q = 0; q < LIMITS; q++)
        j->row[i].least[q][k] = i ? INFINITY : 0;
    }
  for (size_t i = 0; i < j->segments; i++)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      const node *n = &j->row[i].node.data[k];
      row *r = &j->row[i], *next = &j->row[i + 1];
      for (size_t m = 0; m < n->count; m++) {
        int32_t to = n->to[m];
        if (to < 0) continue;
        const lp_exact_mode *mode = &n->list->data[m];
        next->from_start[to] = fmin(next->from_start[to], r->from_start[k] + price_of(mode, j->price));
        for (int q = 0; q < LIMITS; q++)
          next->least[q][to] = fmin(next->least[q][to], r->least[q][k] + lp_joint_amount(mode, q));
      }
    }
}

/* The front of an entry as it is made. */
typedef struct {
  lp_joint *joint;
  size_t place;
  int quantity;
  double price[LIMITS]; /* without that of the quantity */
  double budget;        /* the greatest price of a wanted path, with all prices */
  double room, own;     /* the greatest amount and price that the start leaves for the rest */
  int points;
  double *ms, *value; /* [points] by amount: the least amount and the least price */
} maker;

/* The front after a mode; NULL when no wanted path takes it. */
static const lp_exact_front *front_after(const maker *k, const node *n, size_t mode) {
  const row *next = &k->joint->row[k->place + 1];
  int32_t to = n->to[mode];
  if (to < 0 || !next->front[k->quantity][to].count) return NULL;
  if (price_of(&n->list->data[mode], k->joint->price) + next->to_end[to] > k->own) return NULL;
  return &next->front[k->quantity][to];
}

/* Adds the points after a mode to the buckets. Points in one bucket become one, as small and as cheap as any. */
static void add_points(maker *k, const lp_exact_mode *mode, const lp_exact_front *front, double low, double scale) {
  double amount = lp_joint_amount(mode, k->quantity), cost = price_of(mode, k->price);
  double per_unit = k->joint->price[k->quantity];
  k->joint->work += front->count;
  for (int32_t p = 0; p < front->count; p++) {
    double ms = amount + front->ms[p], value = cost + front->price[p];
    if (ms > k->room) return;
    if (value + per_unit * ms > k->own) continue;
    int at = (int)((ms - low) * scale);
    if (ms < k->ms[at]) k->ms[at] = ms;
    if (value < k->value[at]) k->value[at] = value;
  }
}

/* Keeps the points that no smaller one beats. */
static void keep_points(const maker *k, lp_exact_front *out) {
  int32_t count = 0;
  double least = INFINITY;
  for (int p = 0; p < k->points; p++) {
    if (!(k->value[p] < least)) continue;
    least = k->value[p];
    k->ms[count] = k->ms[p];
    k->value[count++] = least;
  }
  *out = (lp_exact_front){.count = count};
  if (!count) return;
  out->ms = lp_arena_copy(k->joint->arena, k->ms, (size_t)count * sizeof(double));
  out->price = lp_arena_copy(k->joint->arena, k->value, (size_t)count * sizeof(double));
}

static void make_front(maker *k, int32_t entry) {
  row *r = &k->joint->row[k->place];
  const node *n = &r->node.data[entry];
  double low = INFINITY, high = 0;
  k->room = lp_joint_limit(k->joint->x, k->quantity) * (1 + allowance) - r->least[k->quantity][entry];
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
    if (front) add_points(k, &n->list->data[m], front, low, high > low ? (k->points - 1) / (high - low) : 0);
  }
  keep_points(k, &r->front[k->quantity][entry]);
}

static void make_fronts(maker *k) {
  lp_joint *j = k->joint;
  k->price[k->quantity] = 0;
  for (size_t i = j->segments + 1; i-- > 0;) {
    row *r = &j->row[i];
    k->place = i;
    r->front[k->quantity] = LP_NEW_ARRAY(j->arena, lp_exact_front, r->node.count);
    for (size_t n = 0; n < r->node.count; n++)
      if (i < j->segments)
        make_front(k, (int32_t)n);
      else
        r->front[k->quantity][n] =
            (lp_exact_front){LP_NEW_ARRAY(j->arena, double, 1), LP_NEW_ARRAY(j->arena, double, 1), 1};
  }
}

void lp_joint_fronts(lp_joint *j, double most, int points) {
  maker k = {.joint = j, .budget = most + 1e-9 * fabs(most) + offset_of(j, j->price), .points = points};
  k.ms = lp_alloc((size_t)points * sizeof(double));
  k.value = lp_alloc((size_t)points * sizeof(double));
  fill_from_start(j);
  for (k.quantity = 0; k.quantity < LIMITS; k.quantity++) {
    j->has_front[k.quantity] = j->price[k.quantity] > 0; /* others do not bind */
    memcpy(k.price, j->price, sizeof k.price);
    if (j->has_front[k.quantity]) make_fronts(&k);
  }
  free(k.ms);
  free(k.value);
}

double lp_joint_bound(const lp_joint *j, size_t place, int32_t entry, const lp_exact_mode *sums, double enough) {
  if (entry < 0) return INFINITY;
  double whole = lp_joint_price(j, sums);
  double bound = whole + j->row[place].to_end[entry];
  for (int q = 0; q < LIMITS && bound < enough; q++) {
    if (!j->has_front[q]) continue;
    double left = lp_joint_left(j->x, sums, q);
    /* Without the price of this limit. */
    double own = whole + j->price[q] * (left - allowance * lp_joint_limit(j->x, q));
    bound = fmax(bound, own + lp_exact_front_price(&j->row[place].front[q][entry], left));
  }
  return bound;
}
