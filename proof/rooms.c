/* Divides all placements by the largest activation of each side whose memory has a price. A side holds its largest
 * activation twice, which is no sum over units: a price of bytes hardly counts it, and one stage does not know that of
 * the other. In a room it is a constant that the limit leaves no space for. */
#include "proof/rooms.h"

#include <math.h>

/* The rooms of a side: one for each of the largest activations, and one for all that are smaller. */
enum { MOST_ROOMS = 8 };

typedef struct {
  double least[MOST_ROOMS], most[MOST_ROOMS];
  int count;
} side_rooms;

static int compare_descending(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x < *y) - (*x > *y);
}

/* Lists the activations of a side, the largest first, each once. */
static size_t list_activations(const lp_certificate *c, int side, double *all) {
  size_t count = 0, kept = 0;
  for (int w = 0; w < 2; w++)
    for (size_t i = 0; i < c->stages[w].unit_count; i++)
      all[count++] = fmax(0, c->stages[w].units[i].activation[side]);
  qsort(all, count, sizeof *all, compare_descending);
  for (size_t i = 0; i < count; i++)
    if (!kept || all[i] < all[kept - 1]) all[kept++] = all[i];
  return kept;
}

static side_rooms divide_side(const lp_certificate *c, int side) {
  side_rooms r = {.least = {0}, .most = {INFINITY}, .count = 1};
  if (!(c->limit_bytes[side] > 0) || !(c->price_bytes[side] > 0)) return r;
  double *all = LP_NEW_ARRAY(c->arena, double, c->stages[0].unit_count + c->stages[1].unit_count + 1);
  const size_t count = list_activations(c, side, all);
  r.count = 0;
  for (size_t i = 0; i < count && r.count < MOST_ROOMS; i++, r.count++) {
    r.most[r.count] = all[i];
    r.least[r.count] = r.count + 1 < MOST_ROOMS ? all[i] : 0;
  }
  if (r.count < MOST_ROOMS && !(r.count && r.most[r.count - 1] <= 0)) r.count++; /* nothing runs on the side: 0 to 0 */
  return r;
}

void rooms_list(const lp_certificate *c, rooms *out) {
  const side_rooms device = divide_side(c, LP_SIDE_DEVICE), cloud = divide_side(c, LP_SIDE_CLOUD);
  for (int i = 0; i < device.count; i++)
    for (int k = 0; k < cloud.count; k++)
      lp_vec_push(out, ((room){.least = {device.least[i], cloud.least[k]},
                               .most = {device.most[i], cloud.most[k]},
                               .bound = -INFINITY}));
}

/* Restricts a unit to a room; false when it can run on neither side. */
static bool restrict_unit(const room *r, lp_certificate_unit *u) {
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    if (u->activation[side] > r->most[side]) {
      if (u->pin == side) return false;
      u->pin = !side;
    }
    u->activation[side] = fmax(0, u->activation[side] - r->least[side]);
  }
  return true;
}

bool rooms_restrict(const lp_certificate *c, const room *r, lp_certificate *out) {
  *out = *c;
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    if (!(c->limit_bytes[side] > 0)) continue;
    out->limit_bytes[side] = c->limit_bytes[side] * (1 + CERTIFICATE_ROUNDING) - 2 * r->least[side];
    if (!(out->limit_bytes[side] > 0)) return false;
  }
  for (int w = 0; w < 2; w++) {
    const lp_certificate_stage *from = &c->stages[w];
    lp_certificate_unit *units = LP_NEW_ARRAY(c->arena, lp_certificate_unit, from->unit_count);
    memcpy(units, from->units, from->unit_count * sizeof *units);
    for (size_t i = 0; i < from->unit_count; i++)
      if (!restrict_unit(r, &units[i])) return false;
    out->stages[w].units = units;
  }
  return true;
}
