/* The cheapest machines of a kind that are there when they are wanted: some stay all month, some come and go with the
 * hours of a day, some are of the spot market.
 *
 * A layer is one machine of those wanted: layer k is wanted in the hours in which at least k machines are. A layer that
 * comes and goes is paid for these hours, and for lp_fleet_day.start_hours more each time that it comes, which is less
 * than an hour: so no layer stays through an hour in which it is not wanted, and the cheapest market of each layer on
 * its own is the cheapest mix. Spot machines are lost and replaced independently of each other. Those that stand in for
 * lost ones stay all day, so that for the share `availability` of the time, in each hour, as many are there as are
 * wanted. */
#pragma once

#include "fleet/fleet.h"

enum { LP_FLEET_MOST_SPOT = 1024 }; /* of a pool */

/* Prices of a machine in USD per hour, or other costs. */
typedef struct {
  double stays, comes, spot; /* comes: by the hour; INFINITY: it cannot be had so. spot 0: none */
} lp_fleet_rent;

typedef struct {
  int64_t count, stay, spot; /* machines in all, and of these: that stay; of the spot market */
  double rented;             /* machines in the mean of the hours, also while they start and drain */
  double usd_per_hour;       /* of all, in the mean of the hours */
} lp_fleet_mix;

lp_fleet_rent lp_fleet_rent_of(const lp_fleet_kind *kind);
/* Fills spots[LP_FLEET_MOST_SPOT + 1]: of spots[n] spot machines n are available; 0: no number that the kind has. */
void lp_fleet_spots_find(const lp_fleet_kind *kind, double availability, int32_t *spots);
/* The cheapest mix with wanted[lp_fleet_hours(day)] machines available by hour; spots NULL: no spot machines. It costs
 * no less with more of them. */
lp_fleet_mix lp_fleet_mix_of(const lp_fleet_rent *rent, const int32_t *spots, const lp_fleet_day *day,
                             const int64_t *wanted);
/* The lowest price of one more machine, in USD per hour. */
double lp_fleet_least_usd(const lp_fleet_kind *kind);
