/* Bounds of both stages together. The modes of the segments lead from entry to entry of the places between them, and a
 * placement is a path. At prices of the limits the cheapest path is a bound; unlike the bounds of each stage it counts
 * what the stages share, and messages, exactly. A price mixes placements, so that a limit on few large things, as
 * weights are, makes it weak. A front keeps one limit exact: it is the least price of the rest, at prices of the other
 * limits only, for each amount that is left. */
#include "base/map.h"
#include "base/side.h"
#include "passes/plan/exact/joint_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_ARCS: the most modes of all entries. MOST_STEPS: of the search for prices. PATIENCE: steps without progress
 * after which they are halved. */
enum { LIMITS = LP_JOINT_LIMITS, MOST_ARCS = 1000000, MOST_STEPS = 60, PATIENCE = 4 };

/* The least factor of a step, and progress as a share of the bound. */
static const double least_factor = 1e-3, progress = 1e-5;

double lp_joint_limit(const lp_exact *x, int quantity) {
  return quantity < LP_STAGE_COUNT ? x->limit_ms[quantity] : x->limit_bytes[quantity - LP_STAGE_COUNT];
}

double lp_joint_amount(const lp_exact_mode *sums, int quantity) {
  return quantity < LP_STAGE_COUNT ? sums->ms[quantity] : sums->bytes[quantity - LP_STAGE_COUNT];
}

double lp_joint_left(const lp_exact *x, const lp_exact_mode *sums, int quantity) {
  double left = lp_joint_limit(x, quantity) * (1 + LP_JOINT_ALLOWANCE) - lp_joint_amount(sums, quantity);
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

static size_t slot_of(const lp_joint_row *r, const lp_exact_mode *m) {
  size_t at = hash_of(m) % r->slots;
  while (r->slot[at] && !same(&r->node.data[r->slot[at] - 1].entry, m))
    at = (at + 1) % r->slots;
  return at;
}

static int32_t intern(lp_joint_row *r, const lp_exact_mode *m) {
  if (2 * (r->node.count + 1) > r->slots) {
    r->slots = r->slots ? 2 * r->slots : 64;
    free(r->slot);
    r->slot = lp_alloc(r->slots * sizeof *r->slot);
    for (size_t i = 0; i < r->node.count; i++)
      r->slot[slot_of(r, &r->node.data[i].entry)] = (int32_t)i + 1;
  }
  size_t at = slot_of(r, m);
  if (!r->slot[at]) {
    lp_vec_push(&r->node, ((lp_joint_node){.excess = INFINITY, .after = INFINITY}));
    r->node.data[r->node.count - 1].entry = *m;
    r->slot[at] = (int32_t)r->node.count;
  }
  return r->slot[at] - 1;
}

int32_t lp_joint_find(const lp_joint *j, size_t place, const lp_exact_mode *entry) {
  const lp_joint_row *r = &j->row[place];
  if (!r->slots) return -1;
  return r->slot[slot_of(r, entry)] - 1;
}

const int32_t *lp_joint_exits(const lp_joint *j, size_t place, int32_t entry) {
  return j->row[place].node.data[entry].to;
}

double lp_joint_work(const lp_joint *j) {
  return j->work;
}

/* The number of a list of modes. Places of one kind share lists, so the last ones are the likeliest. */
static int32_t number_list(lp_joint *j, const lp_exact_modes_list *list) {
  for (size_t i = j->sorted.count; i-- > 0;)
    if (j->sorted.data[i].list == list) return (int32_t)i;
  lp_vec_push(&j->sorted, ((lp_joint_sorted){.list = list}));
  return (int32_t)j->sorted.count - 1;
}

/* Lists the entries that paths with an excess of at most `slack` meet. False when there are too many. */
static bool list_entries(lp_joint *j, double slack, lp_joint_list list, void *user) {
  lp_exact_mode start = {0};
  (void)intern(&j->row[0], &start);
  j->row[0].node.data[0].excess = 0;
  size_t total = 1;
  for (size_t i = 0; i < j->segments; i++)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      lp_joint_node *n = &j->row[i].node.data[k];
      n->list = list(user, i, &n->entry);
      if (!n->list) return false;
      n->sorted = number_list(j, n->list);
      n->to = lp_arena_array(j->arena, n->list->count + 1, sizeof *n->to);
      for (size_t m = 0; m < n->list->count; m++) {
        const lp_exact_mode *mode = &n->list->data[m];
        n->to[m] = -1;
        if (n->excess + mode->excess > slack) continue;
        n->to[m] = intern(&j->row[i + 1], mode);
        lp_joint_node *next = &j->row[i + 1].node.data[n->to[m]];
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
      lp_joint_node *n = &j->row[i].node.data[k];
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
    lp_joint_row *r = &j->row[i];
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
  lp_vec_free(&j->sorted);
  lp_arena_free(j->arena);
  free(j);
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

double lp_joint_offset(const lp_joint *j, const double price[LIMITS]) {
  double sum = 0;
  for (int q = 0; q < LIMITS; q++)
    sum += price[q] * lp_joint_limit(j->x, q);
  return sum;
}

double lp_joint_price(const lp_joint *j, const lp_exact_mode *sums) {
  double whole = lp_joint_price_at(sums, j->price) - lp_joint_offset(j, j->price);
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    whole += 2 * j->price[LP_STAGE_COUNT + side] * sums->activation[side];
  return whole;
}

double lp_joint_least(const lp_joint *j, size_t place, int32_t entry, const lp_exact_mode *mode) {
  return lp_joint_price_at(mode, j->price) + j->row[place].to_end[entry];
}

/* The cheapest mode of an entry at a place, with all that follows it. */
static double cheapest(const lp_joint *j, size_t place, const lp_joint_node *n, const double price[LIMITS],
                       size_t *mode) {
  double best = INFINITY;
  for (size_t m = 0; m < n->count; m++) {
    if (n->to[m] < 0) continue;
    double whole = lp_joint_price_at(&n->list->data[m], price) + j->row[place + 1].to_end[n->to[m]];
    if (whole >= best) continue;
    best = whole;
    *mode = m;
  }
  return best;
}

double lp_joint_solve(lp_joint *j, const double price[LIMITS]) {
  size_t mode = 0;
  for (size_t k = 0; k < j->row[j->segments].node.count; k++)
    j->row[j->segments].to_end[k] = 0;
  for (size_t i = j->segments; i-- > 0;)
    for (size_t k = 0; k < j->row[i].node.count; k++) {
      const lp_joint_node *n = &j->row[i].node.data[k];
      j->row[i].to_end[k] = cheapest(j, i, n, price, &mode);
      j->work += (double)n->count;
    }
  return j->row[0].to_end[0] - lp_joint_offset(j, price);
}

void lp_joint_keep_path(lp_joint *j, const lp_exact_mode *sums) {
  for (int q = 0; q < LIMITS; q++)
    if (lp_joint_limit(j->x, q) > 0 && lp_joint_left(j->x, sums, q) < 0) return;
  if (sums->objective >= j->best_objective) return;
  j->best_objective = sums->objective;
  memcpy(j->best_path, j->path, j->segments * sizeof *j->path);
}

/* Sums the cheapest path after lp_joint_solve(). */
static lp_exact_mode walk(lp_joint *j, const double price[LIMITS]) {
  lp_exact_mode sums = {0};
  int32_t at = 0;
  for (size_t i = 0; i < j->segments; i++) {
    const lp_joint_node *n = &j->row[i].node.data[at];
    size_t mode = 0;
    (void)cheapest(j, i, n, price, &mode);
    j->path[i] = (int32_t)mode;
    lp_joint_add(&sums, &n->list->data[mode]);
    at = n->to[mode];
  }
  lp_joint_keep_path(j, &sums);
  return sums;
}

bool lp_joint_path(const lp_joint *j, uint64_t *sides) {
  int32_t at = 0;
  if (isinf(j->best_objective)) return false;
  for (size_t i = 0; i < j->segments; i++) {
    const lp_joint_node *n = &j->row[i].node.data[at];
    sides[i] = n->list->data[j->best_path[i]].sides;
    at = n->to[j->best_path[i]];
  }
  return true;
}

bool lp_joint_step(const lp_joint *j, const lp_exact_mode *used, double length, double last[LIMITS],
                   double price[LIMITS]) {
  double slope[LIMITS], square = 0, along = 0, before = 0;
  for (int q = 0; q < LIMITS; q++) {
    double limit = lp_joint_limit(j->x, q);
    slope[q] = limit > 0 ? lp_joint_amount(used, q) / limit - 1 : 0;
    if (!(price[q] > 0) && slope[q] < 0) slope[q] = 0;
    square += slope[q] * slope[q];
    along += slope[q] * last[q];
    before += last[q] * last[q];
  }
  if (!(square > 0)) return false;
  const double share = before > 0 && along < 0 ? -1.5 * along / before : 0;
  square = 0;
  for (int q = 0; q < LIMITS; q++) {
    last[q] = slope[q] += share * last[q];
    square += slope[q] * slope[q];
  }
  for (int q = 0; q < LIMITS; q++)
    if (lp_joint_limit(j->x, q) > 0)
      price[q] = fmax(0, price[q] + length / square * slope[q] / lp_joint_limit(j->x, q));
  return true;
}

double lp_joint_improve(lp_joint *j, double most, double price[LIMITS]) {
  double now[LIMITS], last[LIMITS] = {0}, best = -INFINITY, factor = 1;
  int without = 0;
  for (int q = 0; q < LIMITS; q++)
    j->price[q] = now[q] = lp_joint_limit(j->x, q) > 0 ? price[q] : 0;
  for (int step = 0; step < MOST_STEPS && factor > least_factor; step++) {
    double bound = lp_joint_solve(j, now);
    without = bound > best + progress * fabs(best) ? 0 : without + 1;
    if (bound > best) memcpy(j->price, now, sizeof now);
    best = fmax(best, bound);
    if (bound >= most || isinf(bound)) break;
    lp_exact_mode used = walk(j, now);
    if (without >= PATIENCE) {
      factor /= 2;
      without = 0;
      memcpy(now, j->price, sizeof now);
      memset(last, 0, sizeof last);
      bound = lp_joint_solve(j, now);
      used = walk(j, now);
    }
    if (!lp_joint_step(j, &used, factor * (most - bound), last, now)) break;
  }
  memcpy(price, j->price, sizeof j->price);
  return lp_joint_solve(j, j->price);
}
