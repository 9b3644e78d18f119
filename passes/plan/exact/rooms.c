/* Parts of the exact scheduler's placements by the activations that a side has room for. A side holds twice its largest
 * activation; a part bounds that from above by pins and from below by a smaller limit, so that the rest of the limit is
 * left for sums. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>
#include <string.h>

/* Activations that differ by less than this share of the limit are in one part. */
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

int32_t lp_exact_rooms(const lp_exact *x, lp_exact_room *out) {
  levels l[LP_SIDE_COUNT];
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    l[side] = find_levels(x, side);
  if (l[0].count * l[1].count > LP_EXACT_ROOMS) l[1] = (levels){.high = {INFINITY}, .count = 1};
  int32_t count = 0;
  for (int32_t i = l[0].count; i-- > 0;)
    for (int32_t k = l[1].count; k-- > 0;)
      out[count++] = (lp_exact_room){{l[0].low[i], l[1].low[k]}, {l[0].high[i], l[1].high[k]}};
  return count;
}

void lp_exact_restrict(const lp_exact *x, const lp_exact_room *room, lp_exact *out) {
  *out = *x;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    out->unit[stage] = LP_NEW_ARRAY(x->arena, lp_exact_unit, x->unit_count[stage]);
    for (int32_t i = 0; i < x->unit_count[stage]; i++) {
      lp_exact_unit *unit = &out->unit[stage][i];
      *unit = x->unit[stage][i];
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        if (unit->activation[side] > room->high[side] && unit->pin == side) out->limit_bytes[side] = -1;
        if (unit->activation[side] > room->high[side] && unit->pin < 0) unit->pin = !side;
        unit->activation[side] = fmax(unit->activation[side] - room->low[side], 0);
      }
    }
  }
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (x->limit_bytes[side] > 0) out->limit_bytes[side] -= 2 * room->low[side];
}
