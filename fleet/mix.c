/* Machines that stay, come and go, or are of the spot market: see mix.h. */
#include "fleet/mix.h"

#include <math.h>

/* ---- the spot market --------------------------------------------------------------------------------------------- */

/* The probability that at most `most` of `spot` machines are away at a time: a binomial distribution. */
static double at_most_away(int64_t spot, double away, int64_t most) {
  double term = exp((double)spot * log1p(-away)), sum = term;
  for (int64_t i = 0; i < most; i++)
    sum += term *= (double)(spot - i) / (double)(i + 1) * away / (1 - away);
  return sum;
}

void lp_fleet_spots_find(const lp_fleet_kind *kind, double availability, int32_t *spots) {
  const double away = kind->losses.restart_s / (kind->losses.every_s + kind->losses.restart_s);
  int32_t spot = 0;
  spots[0] = 0;
  for (int32_t there = 1; there <= LP_FLEET_MOST_SPOT; there++) {
    for (spot++; spot <= kind->most_spot; spot++)
      if (at_most_away(spot, away, spot - there) >= availability * (1 - 1e-9)) break;
    spots[there] = spot <= kind->most_spot ? spot : 0;
  }
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* Machines that are wanted in the same hours. */
typedef struct {
  int64_t count;
  double hours;        /* that are paid of each if it comes and goes */
  double firm, saving; /* of each: what it costs without the spot market; how much less on it */
  bool stays;          /* without the spot market */
} layer;

static int descending(const void *a, const void *b) {
  const double x = ((const layer *)a)->saving, y = ((const layer *)b)->saving;
  return (x < y) - (x > y);
}

/* Of the least number above `from` that is wanted in an hour; count 0: there is none. */
static layer layer_above(const lp_fleet_day *day, const int64_t *wanted, int64_t from) {
  layer out = {0};
  const int32_t hours = lp_fleet_hours(day);
  int64_t least = INT64_MAX;
  for (int32_t h = 0; h < hours; h++) {
    if (wanted[h] <= from) continue;
    if (wanted[h] < least) least = wanted[h];
    out.hours += 1 + (wanted[(h + hours - 1) % hours] <= from ? day->start_hours : 0);
  }
  out.count = least < INT64_MAX ? least - from : 0;
  return out;
}

lp_fleet_rent lp_fleet_rent_of(const lp_fleet_kind *kind) {
  return (lp_fleet_rent){kind->usd_per_hour, kind->usd_by_hour > 0 ? kind->usd_by_hour : INFINITY,
                         kind->spot_usd_per_hour};
}

lp_fleet_mix lp_fleet_mix_of(const lp_fleet_rent *rent, const int32_t *spots, const lp_fleet_day *day,
                             const int64_t *wanted) {
  const int32_t hours = lp_fleet_hours(day);
  layer layers[LP_SIM_HOURS];
  int32_t groups = 0;
  int64_t most = 0;
  double firm = 0, saved = 0, best = 0;
  lp_fleet_mix out = {0};
  for (layer l = layer_above(day, wanted, 0); l.count > 0; l = layer_above(day, wanted, most)) {
    l.stays = rent->stays * hours <= rent->comes * l.hours;
    l.firm = l.stays ? rent->stays * hours : rent->comes * l.hours;
    l.saving = l.firm - rent->spot * l.hours;
    firm += l.firm * (double)l.count;
    most += l.count;
    layers[groups++] = l;
  }
  qsort(layers, (size_t)groups, sizeof *layers, descending);
  int64_t there = 0; /* layers of the spot market in the best mix */
  for (int64_t i = 0, n = 1; spots && i < groups && layers[i].saving > 0; i++)
    for (int64_t k = 0; k < layers[i].count && n <= LP_FLEET_MOST_SPOT && spots[n] > 0; k++, n++) {
      saved += layers[i].saving;
      const double net = saved - rent->spot * hours * (double)(spots[n] - n);
      if (net > best) best = net, there = n;
    }
  out.spot = there > 0 ? spots[there] : 0;
  out.count = most - there + out.spot;
  out.rented = (double)(out.spot - there);
  for (int32_t i = 0; i < groups; i++) {
    const int64_t spot = layers[i].count < there ? layers[i].count : there;
    if (layers[i].stays) out.stay += layers[i].count - spot;
    out.rented += (double)spot * layers[i].hours / hours;
    out.rented += (double)(layers[i].count - spot) * (layers[i].stays ? 1 : layers[i].hours / hours);
    there -= spot;
  }
  out.usd_per_hour = (firm - best) / hours;
  return out;
}

double lp_fleet_least_usd(const lp_fleet_kind *kind) {
  const bool is_spot = kind->spot_usd_per_hour > 0 && kind->spot_usd_per_hour < kind->usd_per_hour;
  return is_spot ? kind->spot_usd_per_hour : kind->usd_per_hour;
}
