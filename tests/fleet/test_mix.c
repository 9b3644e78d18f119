/* Mixes with spot machines against all subsets of machines that may be away, and all mixes. */
#include "base/random.h"
#include "fleet/mix.h"
#include "tests/suite.h"

#include <math.h>

enum { MOST = 12 };

/* The probability that `wanted` of `spot` machines are there: over every subset that is away. */
static double there(int64_t spot, int64_t wanted, double away) {
  double sum = 0;
  for (unsigned subset = 0; subset < 1u << spot; subset++) {
    double chance = 1;
    int64_t left = spot;
    for (int64_t i = 0; i < spot; i++) {
      chance *= subset >> i & 1 ? away : 1 - away;
      left -= subset >> i & 1;
    }
    if (left >= wanted) sum += chance;
  }
  return sum;
}

static double drawn(int seed, int position, double from, double to) {
  return from + (to - from) * lp_random_uniform((uint64_t)seed, (uint64_t)position, 3);
}

static lp_fleet_kind kind_of(int seed) {
  return (lp_fleet_kind){.usd_per_hour = 1,
                         .spot_usd_per_hour = drawn(seed, 0, 0.3, 1.1),
                         .most_spot = seed % 3 ? MOST : 4,
                         .losses = {drawn(seed, 1, 100, 1000), drawn(seed, 2, 1, 60)}};
}

LP_LOOP_TEST(every_mix_was_tried, 0, 40) {
  const lp_fleet_kind kind = kind_of(_i);
  const double away = kind.losses.restart_s / (kind.losses.every_s + kind.losses.restart_s);
  const double availability = drawn(_i, 3, 0.9, 0.9999);
  lp_fleet_swap swap[LP_FLEET_MOST_SPOT + 1];
  lp_fleet_swaps_find(&kind, availability, swap);
  for (int64_t wanted = 1; wanted <= 7; wanted++) {
    const lp_fleet_mix found = lp_fleet_mix_of(&kind, swap, wanted);
    double best = (double)wanted;
    for (int64_t spot = 1; spot <= kind.most_spot; spot++)
      for (int64_t firm = 0; firm < wanted; firm++)
        if (there(spot, wanted - firm, away) >= availability)
          best = fmin(best, (double)firm + kind.spot_usd_per_hour * (double)spot);
    ck_assert_double_eq_tol(found.usd_per_hour, best, 1e-9);
    ck_assert_double_eq_tol(found.usd_per_hour,
                            (double)(found.count - found.spot) + kind.spot_usd_per_hour * (double)found.spot, 1e-9);
    ck_assert_double_ge(there(found.spot, wanted - (found.count - found.spot), away), availability * (1 - 2e-9));
    ck_assert_double_gt(found.usd_per_hour, lp_fleet_mix_of(&kind, swap, wanted - 1).usd_per_hour);
  }
}

/* Machines that are never away need no others; a spot market that is dearer is not used. */
LP_TEST(prices_decide) {
  lp_fleet_kind kind = {.usd_per_hour = 1, .spot_usd_per_hour = 0.5, .most_spot = 1000, .losses = {1e9, 1e-3}};
  static lp_fleet_swap swap[LP_FLEET_MOST_SPOT + 1];
  lp_fleet_swaps_find(&kind, 0.999, swap);
  const lp_fleet_mix all = lp_fleet_mix_of(&kind, swap, 1000), more = lp_fleet_mix_of(&kind, swap, 5000);
  ck_assert(all.count == 1000 && all.spot == 1000);
  ck_assert(more.count == 5000 && more.spot == 1000);
  ck_assert_double_eq(lp_fleet_least_usd(&kind), 0.5);
  kind.spot_usd_per_hour = 1.5;
  lp_fleet_swaps_find(&kind, 0.999, swap);
  ck_assert_int_eq(lp_fleet_mix_of(&kind, swap, 1000).spot, 0);
  ck_assert_int_eq(lp_fleet_mix_of(&kind, NULL, 3).count, 3);
  ck_assert_double_eq(lp_fleet_least_usd(&kind), 1);
}
