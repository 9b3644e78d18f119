/* Finds the best prices for a cut, and branches over the sides of units. */
#include "passes/plan/exact/branch.h"
#include "base/side.h"
#include "passes/plan/exact/cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOT_STEPS = 30, PART_STEPS = 8, MOST_PARTS = 20000 };

/* A bound this close, as a share, counts as reached, because sums of times differ with the order of their terms. */
static const double tolerance = 1e-11;

/* A part of the placements: those of the parent that have `unit` on `side`. */
typedef struct {
  double bound;
  lp_exact_duals duals;
  int32_t parent, unit; /* -1: all placements */
  int8_t stage, side;
} part;

typedef struct {
  lp_cut *cut;
  lp_cut_search *search;
  int8_t *pinned[LP_STAGE_COUNT]; /* [unit] the sides that the caller had fixed */
  double *best_way;
  double known, ceiling; /* ceiling: no placement has a greater objective */
  LP_VEC(part) parts;
  LP_VEC(int32_t) open;
} brancher;

/* ---- prices ------------------------------------------------------------------------------------------------------ */

/* An objective that no placement exceeds: every operator on both sides, every value across the link. */
static double find_ceiling(const lp_exact *x) {
  double sum = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_weights *w = &x->weights;
    double link = x->rtt_half * (x->unit_count[stage] + 2);
    for (int32_t i = 0; i < x->problem[stage].value_count; i++)
      link += x->value[stage][i].bytes * fmax(x->ms_per_byte[0], x->ms_per_byte[1]);
    sum += w->link[stage] * (link + x->problem[stage].result_bytes * x->ms_per_byte[1]);
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      for (int32_t i = 0; i < x->unit_count[stage]; i++)
        sum += w->busy[stage][side] * x->unit[stage][i].ms[side];
      for (int32_t i = 0; i < x->holding_count; i++)
        sum += w->busy[stage][side] * x->holding[i].ms[stage][side];
    }
  }
  double moves = 2 * x->rtt_half;
  for (int32_t i = 0; i < x->holding_count; i++)
    moves += x->holding[i].move_bytes * fmax(x->ms_per_byte[0], x->ms_per_byte[1]);
  return sum + x->weights.move * moves;
}

/* The bound above which a part contains no wanted placement. */
static double enough(const brancher *b) {
  return isinf(b->known) ? b->ceiling * (1 + 1e-6) : b->known - tolerance * fabs(b->known);
}

static double limit_of(const lp_exact *x, int which) {
  return which < LP_STAGE_COUNT ? x->limit_ms[which] : x->limit_bytes[which - LP_STAGE_COUNT];
}

static double *dual_of(lp_exact_duals *duals, int which) {
  return which < LP_STAGE_COUNT ? &duals->per_ms[which] : &duals->per_byte[which - LP_STAGE_COUNT];
}

enum { LIMITS = (int)LP_STAGE_COUNT + (int)LP_SIDE_COUNT };

/* Raises the prices of limits that the last cut exceeds and lowers the others, by the share `part` of the step that
 * would reach `wanted` if the bound were a plane. A price counts in the objective as price times limit. */
static void move_prices(const lp_cut *cut, double missing, lp_exact_duals *duals) {
  lp_exact_duals excess = cut->excess;
  double slope[LIMITS], norm = 0;
  for (int i = 0; i < LIMITS; i++) {
    double limit = limit_of(cut->x, i);
    slope[i] = limit > 0 ? *dual_of(&excess, i) / limit : 0;
    if (slope[i] < 0 && !(*dual_of(duals, i) > 0)) slope[i] = 0;
    norm += slope[i] * slope[i];
  }
  for (int i = 0; i < LIMITS && norm > 0; i++)
    if (limit_of(cut->x, i) > 0)
      *dual_of(duals, i) = fmax(0, *dual_of(duals, i) + missing / norm * slope[i] / limit_of(cut->x, i));
}

/* Searches for better prices from `duals`, keeps the best and returns their bound. Every cut on the way is a
 * placement. */
static double ascend(brancher *b, int steps, lp_exact_duals *duals) {
  lp_exact_duals at = *duals;
  double best = -INFINITY, length = 1;
  int stale = 0, patience = steps > PART_STEPS ? 4 : 2;
  for (int i = 0; i < steps; i++) {
    double bound = lp_cut_solve(b->cut, &at);
    if (isinf(bound)) return bound;
    stale = bound > best + 1e-6 * fabs(best) ? 0 : stale + 1;
    if (bound > best) {
      best = bound;
      *duals = at;
      memcpy(b->best_way, b->cut->way, (size_t)b->cut->slot_count * sizeof *b->best_way);
    }
    b->known = fmin(b->known, b->search->see(b->search, b->cut->side, bound));
    double wanted = isinf(b->known) ? fmax(2 * fabs(bound), 1e-3 * b->ceiling) + bound : b->known;
    if (best >= enough(b)) break;
    if (stale >= patience) {
      length /= 2;
      stale = 0;
    }
    if (length < 1e-3 || b->cut->flow.work >= b->search->effort) break;
    move_prices(b->cut, length * fmax(wanted - bound, 1e-9 * fabs(wanted)), &at);
    if (b->cut->x->rtt_half > 0) lp_cut_mix_way(b->cut, 1.0 / (i + 3));
  }
  memcpy(b->cut->way, b->best_way, (size_t)b->cut->slot_count * sizeof *b->best_way);
  return best;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* Fixes all users of a KV cache in the stage together. */
static void fix_unit(brancher *b, int stage, int32_t index, int8_t side) {
  const lp_exact *x = b->cut->x;
  b->cut->fixed[stage][index] = side;
  for (int32_t k = 0; k < x->unit[stage][index].hold_count; k++) {
    int32_t held = x->unit[stage][index].hold[k];
    if (!x->holding[held].is_state) continue;
    for (int32_t i = x->holding[held].first[stage]; i <= x->holding[held].last[stage]; i++)
      for (int32_t m = 0; m < x->unit[stage][i].hold_count; m++)
        if (x->unit[stage][i].hold[m] == held && b->cut->fixed[stage][i] < 0) b->cut->fixed[stage][i] = side;
  }
}

static void enter(brancher *b, int32_t index) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(b->cut->fixed[stage], b->pinned[stage], (size_t)b->cut->x->unit_count[stage]);
  for (int32_t i = index; b->parts.data[i].unit >= 0; i = b->parts.data[i].parent)
    fix_unit(b, b->parts.data[i].stage, b->parts.data[i].unit, b->parts.data[i].side);
}

/* The heaviest unit that may still be on either side; false when there is none. */
static bool choose_unit(const brancher *b, const lp_exact_duals *duals, int8_t *stage, int32_t *unit) {
  const lp_exact *x = b->cut->x;
  double most = -1;
  for (int s = 0; s < LP_STAGE_COUNT; s++)
    for (int32_t i = 0; i < x->unit_count[s]; i++) {
      const lp_exact_unit *u = &x->unit[s][i];
      if (b->cut->fixed[s][i] >= 0) continue;
      double weight = 0;
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        weight += (x->weights.busy[s][side] + duals->per_ms[s]) * u->ms[side];
        for (int32_t k = 0; k < u->hold_count; k++)
          weight += duals->per_byte[side] * x->holding[u->hold[k]].bytes[side];
      }
      if (weight <= most) continue;
      most = weight;
      *stage = (int8_t)s;
      *unit = i;
    }
  return most >= 0;
}

static void open_part(brancher *b, part p) {
  lp_vec_push(&b->parts, p);
  lp_vec_push(&b->open, (int32_t)b->parts.count - 1);
}

/* Takes the open part with the least bound off the list; -1: none. */
static int32_t take_least(brancher *b) {
  size_t least = 0;
  if (!b->open.count) return -1;
  for (size_t i = 1; i < b->open.count; i++)
    if (b->parts.data[b->open.data[i]].bound < b->parts.data[b->open.data[least]].bound) least = i;
  int32_t taken = b->open.data[least];
  b->open.data[least] = b->open.data[--b->open.count];
  return taken;
}

/* Bounds a part again, with prices of its own, and divides it. A part with one placement needs no division: its cut
 * was that placement. */
static void divide(brancher *b, int32_t index) {
  part p = b->parts.data[index];
  enter(b, index);
  p.bound = fmax(p.bound, ascend(b, PART_STEPS, &p.duals));
  if (p.bound >= enough(b)) return;
  part child = {.bound = p.bound, .duals = p.duals, .parent = index};
  if (!choose_unit(b, &p.duals, &child.stage, &child.unit)) return;
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    child.side = (int8_t)side;
    open_part(b, child);
  }
}

/* ---- all parts --------------------------------------------------------------------------------------------------- */

static brancher begin(lp_cut *cut, lp_cut_search *search) {
  const lp_exact *x = cut->x;
  brancher b = {.cut = cut, .search = search, .known = search->known, .ceiling = find_ceiling(x)};
  b.best_way = LP_NEW_ARRAY(x->arena, double, cut->slot_count);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    b.pinned[stage] = LP_NEW_ARRAY(x->arena, int8_t, x->unit_count[stage]);
    memcpy(b.pinned[stage], cut->fixed[stage], (size_t)x->unit_count[stage]);
  }
  return b;
}

void lp_cut_search_prices(lp_cut *cut, lp_cut_search *search) {
  brancher b = begin(cut, search);
  search->bound = search->lowest = ascend(&b, ROOT_STEPS, &search->duals);
  search->known = b.known;
  search->complete = search->bound >= enough(&b);
  if (!isinf(search->bound)) (void)lp_cut_solve(cut, &search->duals);
}

void lp_cut_search_parts(lp_cut *cut, lp_cut_search *search) {
  const lp_exact *x = cut->x;
  brancher b = begin(cut, search);
  double *way = LP_NEW_ARRAY(x->arena, double, cut->slot_count);
  memcpy(way, cut->way, (size_t)cut->slot_count * sizeof *way);
  open_part(&b, (part){.bound = search->bound, .duals = search->duals, .parent = -1, .unit = -1});
  int32_t next = take_least(&b);
  while (next >= 0 && b.parts.data[next].bound < enough(&b) && cut->flow.work < search->effort &&
         b.parts.count < MOST_PARTS) {
    divide(&b, next);
    next = take_least(&b);
  }
  search->known = b.known;
  search->complete = next < 0 || b.parts.data[next].bound >= enough(&b);
  search->lowest = search->complete ? b.known : b.parts.data[next].bound;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(cut->fixed[stage], b.pinned[stage], (size_t)x->unit_count[stage]);
  memcpy(cut->way, way, (size_t)cut->slot_count * sizeof *way);
  lp_vec_free(&b.parts);
  lp_vec_free(&b.open);
}
