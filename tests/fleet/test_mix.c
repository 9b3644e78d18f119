/* Mixes with spot machines against all subsets of machines that may be away, and all mixes; mixes by the hour against
 * all schedules. */
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
  const lp_fleet_rent rent = lp_fleet_rent_of(&kind);
  const lp_fleet_day day = {0};
  int32_t spots[LP_FLEET_MOST_SPOT + 1];
  lp_fleet_spots_find(&kind, availability, spots);
  for (int64_t wanted = 1; wanted <= 7; wanted++) {
    const lp_fleet_mix found = lp_fleet_mix_of(&rent, spots, &day, &wanted);
    const int64_t fewer = wanted - 1;
    double best = (double)wanted;
    for (int64_t spot = 1; spot <= kind.most_spot; spot++)
      for (int64_t firm = 0; firm < wanted; firm++)
        if (there(spot, wanted - firm, away) >= availability)
          best = fmin(best, (double)firm + kind.spot_usd_per_hour * (double)spot);
    ck_assert_double_eq_tol(found.usd_per_hour, best, 1e-9);
    ck_assert_double_eq_tol(found.usd_per_hour,
                            (double)(found.count - found.spot) + kind.spot_usd_per_hour * (double)found.spot, 1e-9);
    ck_assert_double_ge(there(found.spot, wanted - (found.count - found.spot), away), availability * (1 - 2e-9));
    ck_assert_double_gt(found.usd_per_hour, lp_fleet_mix_of(&rent, spots, &day, &fewer).usd_per_hour);
  }
}

/* Machines that are never away need no others; a spot market that is dearer is not used. */
LP_TEST(prices_decide) {
  lp_fleet_kind kind = {.usd_per_hour = 1, .spot_usd_per_hour = 0.5, .most_spot = 1000, .losses = {1e9, 1e-3}};
  const lp_fleet_day day = {0};
  lp_fleet_rent rent = lp_fleet_rent_of(&kind);
  int32_t spots[LP_FLEET_MOST_SPOT + 1];
  const int64_t some = 1000, many = 5000, few = 3;
  lp_fleet_spots_find(&kind, 0.999, spots);
  const lp_fleet_mix all = lp_fleet_mix_of(&rent, spots, &day, &some),
                     more = lp_fleet_mix_of(&rent, spots, &day, &many);
  ck_assert(all.count == 1000 && all.spot == 1000 && all.stay == 0);
  ck_assert(more.count == 5000 && more.spot == 1000 && more.stay == 4000);
  ck_assert_double_eq(lp_fleet_least_usd(&kind), 0.5);
  kind.spot_usd_per_hour = 1.5;
  rent = lp_fleet_rent_of(&kind);
  ck_assert_int_eq(lp_fleet_mix_of(&rent, spots, &day, &some).spot, 0);
  ck_assert_int_eq(lp_fleet_mix_of(&rent, NULL, &day, &few).count, 3);
  ck_assert_double_eq(lp_fleet_least_usd(&kind), 1);
}

/* ---- by the hour ------------------------------------------------------------------------------------------------- */

enum { WANTED = 4, STATES = (WANTED + 1) * (WANTED + 1) };

/* The cheapest schedule of machines that come and go, and spot ones of which at most `spots` are there, above `stay`
 * that stay: over all pairs of counts in each hour, with the first hour's pair before it. */
static double scheduled(const lp_fleet_rent *rent, const lp_fleet_day *day, const int64_t *wanted, int64_t stay,
                        int64_t spots) {
  double best = INFINITY;
  for (int first = 0; first < STATES; first++) {
    double usd[STATES], next[STATES];
    for (int k = 0; k < STATES; k++)
      usd[k] = k == first ? 0 : INFINITY;
    for (int h = 1; h <= LP_SIM_HOURS; h++) {
      for (int k = 0; k < STATES; k++) {
        const int comes = k / (WANTED + 1), spot = k % (WANTED + 1);
        next[k] = INFINITY;
        if (spot > spots || stay + comes + spot < wanted[h % LP_SIM_HOURS]) continue;
        for (int b = 0; b < STATES; b++) {
          const int came = b / (WANTED + 1), spots_before = b % (WANTED + 1);
          const double starts = day->start_hours * fmax(0, comes - came),
                       spot_starts = day->start_hours * fmax(0, spot - spots_before);
          const double comes_usd = comes + starts > 0 ? rent->comes * (comes + starts) : 0;
          next[k] = fmin(next[k], usd[b] + comes_usd + rent->spot * (spot + spot_starts));
        }
      }
      memcpy(usd, next, sizeof usd);
    }
    best = fmin(best, usd[first]);
  }
  return best + rent->stays * (double)LP_SIM_HOURS * (double)stay;
}

LP_LOOP_TEST(every_schedule_was_tried, 0, 24) {
  const lp_fleet_rent rent = {drawn(_i, 0, 0.3, 1), _i % 6 == 5 ? INFINITY : 1, drawn(_i, 1, 0.1, 1.1)};
  const int32_t spots[LP_FLEET_MOST_SPOT + 1] = {0, 2, 3, 5, _i % 2 ? 6 : 0};
  const bool has_spot = _i % 3 > 0;
  lp_fleet_day day = {.given = true, .start_hours = drawn(_i, 2, 0, 0.99)};
  int64_t wanted[LP_SIM_HOURS];
  double best = INFINITY;
  for (int h = 0; h < LP_SIM_HOURS; h++)
    wanted[h] = 1 + (int64_t)drawn(_i, 3 + (_i % 4 ? h / 5 : h), 0, WANTED);
  for (int64_t stay = 0; stay <= WANTED; stay++)
    for (int64_t there = 0; there <= (has_spot ? WANTED : 0); there++)
      if (there == 0 || spots[there] > 0)
        best = fmin(best, scheduled(&rent, &day, wanted, stay, there) +
                              rent.spot * (double)LP_SIM_HOURS * (double)(spots[there] - there));
  const lp_fleet_mix found = lp_fleet_mix_of(&rent, has_spot ? spots : NULL, &day, wanted);
  ck_assert_double_eq_tol(found.usd_per_hour * (double)LP_SIM_HOURS, best, 1e-9);
  ck_assert_int_le(found.stay + found.spot, found.count);
}

/* Half a day of two machines and half a day of one: the second one starts once, or stays if that is cheaper. */
LP_TEST(one_machine_stays) {
  const lp_fleet_day day = {.given = true, .start_hours = 0.25};
  int64_t wanted[LP_SIM_HOURS];
  for (int h = 0; h < LP_SIM_HOURS; h++)
    wanted[h] = h < 12 ? 1 : 2;
  lp_fleet_rent rent = {0.5, 1, 0};
  lp_fleet_mix mix = lp_fleet_mix_of(&rent, NULL, &day, wanted);
  ck_assert(mix.count == 2 && mix.stay == 2 && mix.spot == 0);
  rent.stays = 0.6;
  mix = lp_fleet_mix_of(&rent, NULL, &day, wanted);
  ck_assert(mix.count == 2 && mix.stay == 1);
  ck_assert_double_eq_tol(mix.usd_per_hour, (24 * 0.6 + 12.25) / 24, 1e-12);
}
