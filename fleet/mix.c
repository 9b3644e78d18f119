/* Machines on the spot market: see mix.h. */
#include "fleet/mix.h"

#include <math.h>

/* The probability that at most `most` of `spot` machines are away at a time: a binomial distribution. */
static double at_most_away(int64_t spot, double away, int64_t most) {
  double term = exp((double)spot * log1p(-away)), sum = term;
  for (int64_t i = 0; i < most; i++)
    sum += term *= (double)(spot - i) / (double)(i + 1) * away / (1 - away);
  return sum;
}

void lp_fleet_swaps_find(const lp_fleet_kind *kind, double availability, lp_fleet_swap *swap) {
  const double away = kind->losses.restart_s / (kind->losses.every_s + kind->losses.restart_s);
  double best = 0;
  swap[0] = (lp_fleet_swap){0, 0};
  for (int64_t replaced = 1, spot = 0; replaced <= LP_FLEET_MOST_SPOT; replaced++) {
    for (spot++; spot <= kind->most_spot; spot++)
      if (at_most_away(spot, away, spot - replaced) >= availability * (1 - 1e-9)) break;
    const double saves = kind->usd_per_hour * (double)replaced - kind->spot_usd_per_hour * (double)spot;
    swap[replaced] = swap[replaced - 1];
    if (spot > kind->most_spot || saves <= best) continue;
    best = saves;
    swap[replaced] = (lp_fleet_swap){spot, replaced};
  }
}

lp_fleet_mix lp_fleet_mix_of(const lp_fleet_kind *kind, const lp_fleet_swap *swap, int64_t wanted) {
  const lp_fleet_swap one = swap ? swap[wanted < LP_FLEET_MOST_SPOT ? wanted : LP_FLEET_MOST_SPOT] : (lp_fleet_swap){0};
  const int64_t firm = wanted - one.replaced;
  return (lp_fleet_mix){firm + one.spot, one.spot,
                        kind->usd_per_hour * (double)firm + kind->spot_usd_per_hour * (double)one.spot};
}

double lp_fleet_least_usd(const lp_fleet_kind *kind) {
  const bool is_spot = kind->spot_usd_per_hour > 0 && kind->spot_usd_per_hour < kind->usd_per_hour;
  return is_spot ? kind->spot_usd_per_hour : kind->usd_per_hour;
}
