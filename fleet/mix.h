/* The cheapest machines of a kind of which enough are there: some rented for the whole month, some on the spot market.
 * Spot machines are lost and replaced independently of each other. For the share `availability` of the time at least as
 * many machines are there as are wanted. */
#pragma once

#include "fleet/fleet.h"

enum { LP_FLEET_MOST_SPOT = 1024 }; /* of a pool */

typedef struct {
  int64_t count, spot; /* machines in all, and those of them on the spot market */
  double usd_per_hour; /* of all */
} lp_fleet_mix;

/* Spot machines in place of others. */
typedef struct {
  int64_t spot, replaced;
} lp_fleet_swap;

/* Fills swap[LP_FLEET_MOST_SPOT + 1]: swap[n] is the cheapest swap that replaces at most n machines. */
void lp_fleet_swaps_find(const lp_fleet_kind *kind, double availability, lp_fleet_swap *swap);
/* The cheapest mix with `wanted` machines available; swap NULL: no spot machines. Its price rises with `wanted`. */
lp_fleet_mix lp_fleet_mix_of(const lp_fleet_kind *kind, const lp_fleet_swap *swap, int64_t wanted);
/* The lowest price of one more machine, in USD per hour. */
double lp_fleet_least_usd(const lp_fleet_kind *kind);
