/* Pools whose machines fail, whose machines come and go, and whose rate changes, against closed forms; those of queues
 * are in tests/fleet/test_trial.c. */
#include "runtime/simulate/pool.h"
#include "tests/suite.h"

#include <math.h>

static double rows[] = {1, 512}, seconds[] = {0.001, 0.001}, slow_seconds[] = {0.02, 0.02};
static const double prompt[] = {1, 2}, first_s[] = {0, 0};
static const lp_fleet_length one_pass = {1, 1, 1}, many_passes = {1, 50, 1};

/* Every pass takes 1 ms, and a machine has all requests in it. */
static lp_sim_pool pool_of(const lp_fleet_length *length, int64_t machines, double rate, int64_t requests) {
  return (lp_sim_pool){.length = length,
                       .lengths = 1,
                       .class = {{1, {2, prompt, first_s, 0, true, 1, 1}, NULL}},
                       .classes = 1,
                       .station = {.pass = {2, rows, seconds, NULL}},
                       .machines = machines,
                       .sessions = 128,
                       .rate = rate,
                       .requests = requests,
                       .seed = 11};
}

static lp_sim_pool_result run(const lp_sim_pool *pool) {
  lp_sim_pool_result result;
  ck_assert(lp_sim_pool_run(pool, &result));
  ck_assert_int_ge(result.requests[0], pool->requests);
  return result;
}

/* Arrivals divide the passes that are done at once, and no pass is lost or done twice. */
LP_TEST(answers_take_their_passes) {
  const lp_sim_pool pool = pool_of(&many_passes, 3, 200, 20000);
  const lp_sim_pool_result result = run(&pool);
  ck_assert_double_eq_tol(result.times[0].value_s[LP_FLEET_TPOT][0], 0.001, 1e-12);
  ck_assert_double_eq_tol(result.times[0].value_s[LP_FLEET_TPOT][2], 0.001, 1e-12);
  ck_assert_double_le(result.times[0].value_s[LP_FLEET_TTFT][2], 0.002 + 1e-9);
  ck_assert_double_eq_tol(result.paid_s, 3 * result.elapsed_s, 1e-6);
  /* A third of the requests would leave a machine idle as often as M/G/infinity is empty; the one with the fewest gets
   * the next, so that it is busy more often. */
  ck_assert_double_gt(result.busy_s / result.paid_s, 1 - exp(-200 * 0.05 / 3));
  ck_assert_double_le(result.busy_s / result.paid_s, 1);
}

/* A machine fails once in its mean time between failures and a restart. */
static const struct {
  double every_s, restart_s;
} failing[] = {{5, 0.5}, {20, 5}, {60, 60}};

LP_LOOP_TEST(machines_fail_as_often_as_they_do, 0, LP_COUNT(failing)) {
  lp_sim_pool pool = pool_of(&many_passes, 4, 50, 200000);
  pool.failures = (lp_sim_pool_failures){failing[_i].every_s, failing[_i].restart_s};
  const lp_sim_pool_result result = run(&pool);
  const double expected = 4 * result.elapsed_s / (failing[_i].every_s + failing[_i].restart_s);
  ck_assert_double_eq_tol((double)result.failures / expected, 1, 4 / sqrt(expected));
  ck_assert_double_eq_tol(result.paid_s, 4 * result.elapsed_s, 1e-6);
}

/* Spot machines are lost in place of failing, and the others fail. */
LP_TEST(spot_machines_have_losses_of_their_own) {
  lp_sim_pool pool = pool_of(&many_passes, 5, 50, 200000);
  pool.spot = 2;
  pool.losses = (lp_sim_pool_failures){20, 5};
  const lp_sim_pool_result lost = run(&pool);
  const double expected = 2 * lost.elapsed_s / 25;
  ck_assert_double_eq_tol((double)lost.failures / expected, 1, 4 / sqrt(expected));
  ck_assert_double_eq_tol(lost.spot_paid_s, 2 * lost.elapsed_s, 1e-6);
  ck_assert_double_eq_tol(lost.paid_s, 5 * lost.elapsed_s, 1e-6);
  pool.failures = (lp_sim_pool_failures){10, 10};
  const lp_sim_pool_result both = run(&pool);
  const double more = 2 * both.elapsed_s / 25 + 3 * both.elapsed_s / 20;
  ck_assert_double_eq_tol((double)both.failures / more, 1, 4 / sqrt(more));
}

/* The only machine is away for 1/5 of the time, and requests that come then wait uniformly up to 10 s: P(wait > x) is
 * (1 - x / 10) / 5. */
LP_TEST(requests_wait_for_a_restart) {
  lp_sim_pool pool = pool_of(&one_pass, 1, 5, 200000);
  pool.failures = (lp_sim_pool_failures){40, 10};
  const lp_sim_pool_result result = run(&pool);
  ck_assert_double_eq_tol(result.times[0].value_s[LP_FLEET_TTFT][1], 7.5, 0.25);
  ck_assert_double_eq_tol(result.times[0].value_s[LP_FLEET_TTFT][2], 9.5, 0.15);
  ck_assert_double_le(result.times[0].value_s[LP_FLEET_TTFT][0], 0.002);
}

/* Of a machine that has failed, the others take over the requests: they compute the text so far again, in a pass here.
 */
LP_TEST(other_machines_go_on) {
  lp_sim_pool pool = pool_of(&many_passes, 4, 200, 100000);
  pool.failures = (lp_sim_pool_failures){1, 0.1};
  const lp_sim_pool_result result = run(&pool);
  ck_assert_double_le(result.times[0].value_s[LP_FLEET_ANSWER][2], 0.06);
  ck_assert_double_gt(result.times[0].value_s[LP_FLEET_ANSWER][2], 0.0505);
}

/* 40 requests are in flight in the mean, and more than 60 with a probability of 1 in 1000. */
LP_TEST(as_many_machines_as_are_wanted) {
  lp_sim_pool pool = pool_of(&many_passes, 20, 800, 400000);
  pool.scaling = (lp_sim_pool_scaling){.target = 10, .least = 1, .cold_s = 30, .keep_s = 60};
  const lp_sim_pool_result few = run(&pool);
  ck_assert_double_ge(few.paid_s / few.elapsed_s, 4);
  ck_assert_double_le(few.paid_s / few.elapsed_s, 8);
  pool.scaling.least = 12;
  const lp_sim_pool_result more = run(&pool);
  ck_assert_double_ge(more.paid_s / more.elapsed_s, 12);
  ck_assert_double_le(more.paid_s / more.elapsed_s, 13);
  pool.scaling.keep_s = 1e6;
  const lp_sim_pool_result all = run(&pool);
  ck_assert_double_eq_tol(all.paid_s, 20 * all.elapsed_s, 1e-6);
}

/* Every other hour has no request, so that the waits are those of M/D/1 at twice the rate. Meanwhile machines go. */
LP_TEST(a_day_has_its_hours) {
  double hour[LP_SIM_HOURS];
  for (int i = 0; i < LP_SIM_HOURS; i++)
    hour[i] = i % 2 ? 2 : 0;
  lp_sim_pool day = pool_of(&one_pass, 1, 20, 400000), twice = pool_of(&one_pass, 1, 40, 400000);
  day.station.pass.seconds = twice.station.pass.seconds = slow_seconds;
  day.hour = hour;
  day.sessions = twice.sessions = 1;
  const lp_sim_pool_result slow = run(&day), fast = run(&twice);
  for (int k = 0; k < LP_FLEET_QUANTILES; k++)
    ck_assert_double_eq_tol(slow.times[0].value_s[LP_FLEET_TTFT][k] / fast.times[0].value_s[LP_FLEET_TTFT][k], 1, 0.05);
  /* A quarter of the requests run before the counted ones. */
  ck_assert_double_eq_tol(slow.elapsed_s, 500000 / 20.0, 3600);
  day.machines = 4;
  day.sessions = 128;
  day.scaling = (lp_sim_pool_scaling){.target = 0.2, .least = 1, .cold_s = 0, .keep_s = 60};
  const lp_sim_pool_result scaled = run(&day);
  ck_assert_double_ge(scaled.paid_s / scaled.elapsed_s, 2);
  ck_assert_double_le(scaled.paid_s / scaled.elapsed_s, 2.75);
}
