/* Classes of placements by their largest activations. A side holds twice its largest activation, which is no sum; a
 * class bounds it from above by pins and from below by a smaller limit, so that the rest of the limit is left for
 * sums. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>

/* Activations that differ by less than this share of the limit are in one class; the most sizes of activations that
 * are told apart. */
static const double close_together = 2e-3;
enum { MOST_LEVELS = 12 };

/* Activations from low[i] to high[i] are alike. */
typedef struct {
  double low[MOST_LEVELS], high[MOST_LEVELS];
  int32_t count;
} levels;

/* The least activation above `above`; infinite: none. */
static double next_activation(const lp_exact *x, int side, double above) {
  double next = INFINITY;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      if (x->unit[stage][i].activation[side] > above) next = fmin(next, x->unit[stage][i].activation[side]);
  return next;
}

/* A side without a limit has one level. Nothing may run on a side, so the first level begins at 0. */
static levels find_levels(const lp_exact *x, int side) {
  levels l = {.count = 1};
  double limit = x->limit_bytes[side];
  for (double own = next_activation(x, side, 0); limit > 0 && !isinf(own); own = next_activation(x, side, own)) {
    if (2 * (own - l.low[l.count - 1]) > close_together * limit && l.count < MOST_LEVELS) l.low[l.count++] = own;
    l.high[l.count - 1] = own;
  }
  if (!(limit > 0)) l.high[0] = INFINITY;
  return l;
}

int32_t lp_exact_activation_classes(const lp_exact *x, lp_exact_activation_class *out) {
  levels l[LP_SIDE_COUNT];
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    l[side] = find_levels(x, side);
  if (l[0].count * l[1].count > LP_EXACT_CLASSES) l[1] = (levels){.high = {INFINITY}, .count = 1};
  int32_t count = 0;
  for (int32_t i = l[0].count; i-- > 0;)
    for (int32_t k = l[1].count; k-- > 0;)
      out[count++] = (lp_exact_activation_class){{l[0].low[i], l[1].low[k]}, {l[0].high[i], l[1].high[k]}};
  return count;
}

void lp_exact_restrict(const lp_exact *x, const lp_exact_activation_class *activations, lp_exact *out) {
  *out = *x;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    out->unit[stage] = LP_NEW_ARRAY(x->arena, lp_exact_unit, x->unit_count[stage]);
    for (int32_t i = 0; i < x->unit_count[stage]; i++) {
      lp_exact_unit *unit = &out->unit[stage][i];
      *unit = x->unit[stage][i];
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        if (unit->activation[side] > activations->high[side] && unit->pin == side) out->limit_bytes[side] = -1;
        if (unit->activation[side] > activations->high[side] && unit->pin < 0) unit->pin = !side;
        unit->activation[side] = fmax(unit->activation[side] - activations->low[side], 0);
      }
    }
  }
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (x->limit_bytes[side] > 0) out->limit_bytes[side] -= 2 * activations->low[side];
}

/* ---- all holdings ------------------------------------------------------------------------------------------------ */

/* Fills the sides on which a user of each holding is pinned: bit 1 << side. */
static unsigned char *list_pinned(const lp_exact *x) {
  unsigned char *pinned = LP_NEW_ARRAY(x->arena, unsigned char, x->holding_count);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++) {
      const lp_exact_unit *unit = &x->unit[stage][i];
      for (int32_t k = 0; k < unit->hold_count && unit->pin >= 0; k++)
        pinned[unit->hold[k]] |= (unsigned char)(1u << unit->pin);
    }
  return pinned;
}

/* First those that spare the cloud the most for each byte on the device. */
static int compare_holdings(const void *left, const void *right) {
  const lp_exact_holding *const *a = left, *const *b = right;
  const double first = (*a)->bytes[LP_SIDE_CLOUD] * (*b)->bytes[LP_SIDE_DEVICE];
  const double next = (*b)->bytes[LP_SIDE_CLOUD] * (*a)->bytes[LP_SIDE_DEVICE];
  return (first < next) - (first > next);
}

bool lp_exact_has_room(const lp_exact *x) {
  static const double rounding = 1e-9;
  const unsigned char *pinned = list_pinned(x);
  const lp_exact_holding **free_ones = LP_NEW_ARRAY(x->arena, const lp_exact_holding *, x->holding_count);
  double left[LP_SIDE_COUNT];
  size_t count = 0;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    left[side] = x->limit_bytes[side] > 0 ? x->limit_bytes[side] * (1 + rounding) : INFINITY;
  for (int32_t i = 0; i < x->holding_count; i++) {
    if (!pinned[i]) free_ones[count++] = &x->holding[i];
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      if (pinned[i] >> side & 1) left[side] -= x->holding[i].bytes[side];
  }
  if (count) qsort(free_ones, count, sizeof *free_ones, compare_holdings);
  for (size_t i = 0; i < count; i++) {
    const double *bytes = free_ones[i]->bytes;
    if (left[LP_SIDE_DEVICE] < 0) return false;
    double share = bytes[LP_SIDE_DEVICE] > 0 ? fmin(1, left[LP_SIDE_DEVICE] / bytes[LP_SIDE_DEVICE]) : 1;
    left[LP_SIDE_DEVICE] = fmax(0, left[LP_SIDE_DEVICE] - share * bytes[LP_SIDE_DEVICE]);
    left[LP_SIDE_CLOUD] -= (1 - share) * bytes[LP_SIDE_CLOUD];
  }
  return left[LP_SIDE_DEVICE] >= 0 && left[LP_SIDE_CLOUD] >= 0;
}
