#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/radio/radio.h"
#include "tests/suite.h"

enum { MOST = 32 };

typedef struct {
  double rate[MOST], share[MOST], gain, sum;
} result;

static result run(lp_radio_cell cell) {
  result r = {0};
  lp_radio_schedule out = {.rate = r.rate, .share = r.share};
  lp_radio_schedule_run(&cell, &out);
  r.gain = out.gain;
  for (int32_t k = 0; k < cell.users; k++)
    r.sum += r.rate[k];
  return r;
}

/* C_k = N_RB b log2(1 + SINR_k) / K, equal shares, on static channels. */
LP_TEST(equal_shares_on_static_channels) {
  static const double signal[] = {0.1, 1, 10, 100, 1000};
  for (int32_t users = 2; users <= 5; users++) {
    lp_radio_cell cell = {.users = users,
                          .blocks = 100,
                          .block_hz = 180e3,
                          .signal = signal,
                          .beta = 0.01,
                          .intervals = 20000,
                          .warm_up = 2000};
    result r = run(cell);
    for (int32_t k = 0; k < users; k++) {
      double wanted = 100 * 180e3 * log2(1 + signal[k]) / users;
      ck_assert_double_eq_tol(r.share[k], 1.0 / users, 1e-3 / users);
      ck_assert_double_eq_tol(r.rate[k] / wanted, 1, 1e-3);
    }
    ck_assert_double_eq(r.gain, 1);
  }
}

/* Of K equal users on Rayleigh channels the best has H_K = 1 + 1/2 + ... + 1/K times the mean: 3.598 for 20. */
LP_TEST(multi_user_diversity) {
  double signal[20], harmonic = 0;
  for (int k = 0; k < 20; k++) {
    signal[k] = 1e-3; /* so weak that rates are proportional to the gain */
    harmonic += 1.0 / (k + 1);
  }
  ck_assert_double_eq_tol(harmonic, 3.598, 1e-3);
  lp_radio_cell cell = {.users = 20,
                        .blocks = 100,
                        .block_hz = 180e3,
                        .signal = signal,
                        .rayleigh = true,
                        .beta = 0.01,
                        .intervals = 2000,
                        .warm_up = 500,
                        .seed = 7};
  cell.scheduler = LP_RADIO_RR;
  result rr = run(cell);
  cell.scheduler = LP_RADIO_PF;
  result pf = run(cell);
  cell.scheduler = LP_RADIO_MAX;
  result max = run(cell);
  ck_assert_double_eq_tol(rr.gain, 1, 0.01);
  ck_assert_double_eq_tol(pf.gain / harmonic, 1, 0.02);
  ck_assert_double_eq_tol(max.gain / harmonic, 1, 0.02);
  ck_assert_double_eq_tol(pf.sum / rr.sum / harmonic, 1, 0.02);
  for (int k = 0; k < 20; k++)
    ck_assert_double_eq_tol(pf.share[k], 0.05, 0.002);
}

LP_TEST(who_is_served) {
  static const double signal[] = {1, 10, 100};
  lp_radio_cell cell = {.users = 3,
                        .blocks = 10,
                        .block_hz = 180e3,
                        .signal = signal,
                        .rayleigh = true,
                        .beta = 0.01,
                        .intervals = 3000,
                        .warm_up = 500,
                        .seed = 1,
                        .scheduler = LP_RADIO_MAX};
  result max = run(cell);
  cell.scheduler = LP_RADIO_RR;
  result rr = run(cell);
  cell.scheduler = LP_RADIO_PF;
  result pf = run(cell);
  ck_assert_double_gt(max.share[2], 0.85);
  ck_assert_double_gt(max.sum, pf.sum);
  ck_assert_double_gt(pf.sum, rr.sum);
  for (int k = 0; k < 3; k++) {
    ck_assert_double_eq_tol(rr.share[k], 1.0 / 3, 1e-3);
    ck_assert_double_gt(pf.rate[k], rr.rate[k]);
  }
  result again = run(cell);
  ck_assert_mem_eq(&again, &pf, sizeof pf);
  cell.seed = 2;
  again = run(cell);
  ck_assert_double_ne(again.sum, pf.sum);
}

/* One neighbour on half of the blocks: the mean of both capacities, not the capacity of the mean. */
LP_TEST(neighbours_that_are_active_at_times) {
  static const double signal[] = {100}, neighbour[] = {99};
  lp_radio_cell cell = {.users = 1,
                        .blocks = 100,
                        .block_hz = 1,
                        .signal = signal,
                        .interferers = 1,
                        .interference = neighbour,
                        .load = 0.5,
                        .beta = 0.01,
                        .intervals = 1000,
                        .seed = 3};
  double wanted = 100 * (log2(1 + 100) + log2(2)) / 2;
  ck_assert_double_eq_tol(run(cell).sum / wanted, 1, 0.01);
  cell.load = 1;
  ck_assert_double_eq_tol(run(cell).sum, 100, 1e-9);
  cell.load = 0;
  ck_assert_double_eq_tol(run(cell).sum, 100 * log2(101), 1e-9);
}

LP_TEST(capacity) {
  lp_radio_coding shannon = {0}, gap = {.gap_db = 3}, cap = {.cap = 7.4063};
  ck_assert_double_eq_tol(lp_radio_capacity(180e3, 3, &shannon), 360e3, 1e-6);
  ck_assert_double_eq_tol(lp_radio_capacity(180e3, 3 * pow(10, 0.3), &gap), 360e3, 1e-6);
  ck_assert_double_eq_tol(lp_radio_capacity(180e3, 1e9, &cap), 180e3 * 7.4063, 1e-6);
  ck_assert_double_eq_tol(lp_radio_capacity(180e3, 3, &cap), 360e3, 1e-6);
  /* -174 dBm/Hz + 9 dB + 10 lg 180e3 = -112.447 dBm */
  ck_assert_double_eq_tol(lp_radio_db(lp_radio_noise(180e3, -174, 9)), -112.4473, 1e-3);
  ck_assert_double_eq_tol(lp_radio_sinr(6, 1, 2), 2, 1e-12);
}
