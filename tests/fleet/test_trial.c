/* The simulation of a pool against closed forms of queues, which share no code with it: M/D/1, M/M/c, and the rate that
 * a full machine carries. */
#include "fleet/trial.h"
#include "tests/suite.h"

#include <math.h>

enum { REQUESTS = 120000, MANY = 400000, POINTS = 400 };
static const double pass_s = 0.001;

/* Every pass takes as long, whatever it holds. */
static lp_load_law constant_law(void) {
  lp_load_law law = {.sessions = 128};
  for (int i = 0; i < LP_LOAD_KNOTS; i++) {
    law.rows[i] = (double)(1 << i);
    law.token_s[i] = law.prompt_s[i] = pass_s;
  }
  return law;
}

static const lp_load_user idle_device = {.streams = true, .fits = true, .prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9}};

static lp_fleet_times tried(const lp_load_law *law, const lp_fleet_length *length, size_t lengths, int64_t machines,
                            double rate, int64_t requests) {
  const lp_trial trial = {.length = length,
                          .lengths = lengths,
                          .class = {{1, &idle_device, NULL}},
                          .classes = 1,
                          .law = law,
                          .machines = machines,
                          .sessions = 1,
                          .rate = rate,
                          .requests = requests,
                          .seed = 7};
  lp_fleet_times times;
  double busy;
  ck_assert(lp_trial_run(&trial, &times, &busy));
  return times;
}

/* The share of requests that wait at most `wait` services in M/D/1 (Erlang, 1909). */
static double waits_at_most(double load, double wait) {
  double sum = 0;
  for (int k = 0; k <= (int)wait; k++) {
    const double x = load * (wait - k);
    sum += pow(-x, k) / tgamma(k + 1.0) * exp(x);
  }
  return (1 - load) * sum;
}

static const double loads[] = {0.3, 0.6, 0.8, 0.9};

LP_LOOP_TEST(a_wait_is_that_of_m_d_1, 0, LP_COUNT(loads)) {
  const lp_load_law law = constant_law();
  const lp_fleet_length one = {1, 1, 1};
  const lp_fleet_times times = tried(&law, &one, 1, 1, loads[_i] / pass_s, REQUESTS);
  for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
    const double wait = times.value_s[LP_FLEET_TTFT][k] / pass_s - 1;
    if (wait < 1e-6) /* at least so many do not wait at all */
      ck_assert_double_ge(1 - loads[_i], lp_fleet_quantiles[k] - 0.02);
    else
      ck_assert_double_eq_tol(waits_at_most(loads[_i], wait), lp_fleet_quantiles[k], 0.012);
  }
}

/* The probability that a request waits in M/M/c. */
static double erlang_c(int servers, double load) {
  double sum = 0, term = 1;
  for (int i = 0; i < servers; term *= load / ++i)
    sum += term;
  const double all = term * servers / (servers - load);
  return all / (sum + all);
}

static const struct {
  int servers;
  double load; /* of each */
} queues[] = {{1, 0.7}, {2, 0.8}, {4, 0.85}, {8, 0.9}};

LP_LOOP_TEST(a_wait_is_that_of_m_m_c, 0, LP_COUNT(queues)) {
  const lp_load_law law = constant_law();
  lp_fleet_length length[POINTS]; /* an exponential distribution by the middles of equal shares */
  const double points = POINTS;
  double mean = 0;
  for (int i = 0; i < POINTS; i++) {
    length[i] = (lp_fleet_length){1, ceil(-20 * log1p(-(i + 0.5) / points)), 1 / points};
    mean += length[i].answer * pass_s / points;
  }
  const int servers = queues[_i].servers;
  const double load = queues[_i].load * servers, waits = erlang_c(servers, load);
  const lp_fleet_times times = tried(&law, length, POINTS, servers, load / mean, MANY);
  for (int k = 1; k < LP_FLEET_QUANTILES; k++) {
    const double expected = log(waits / (1 - lp_fleet_quantiles[k])) / ((servers - load) / mean);
    ck_assert_double_eq_tol((times.value_s[LP_FLEET_TTFT][k] - pass_s) / expected, 1, 0.12);
  }
}

/* Sessions that a pass serves together wait for no other, so that the time of an answer is that of its passes. */
LP_TEST(sessions_share_passes) {
  const lp_load_law law = constant_law();
  const lp_fleet_length one = {1, 50, 1};
  const lp_trial trial = {.length = &one,
                          .lengths = 1,
                          .class = {{1, &idle_device, NULL}},
                          .classes = 1,
                          .law = &law,
                          .machines = 1,
                          .sessions = 128,
                          .rate = 800, /* 40 at a time */
                          .requests = 20000};
  lp_fleet_times times;
  double busy;
  ck_assert(lp_trial_run(&trial, &times, &busy));
  ck_assert_double_eq_tol(times.value_s[LP_FLEET_TPOT][2], pass_s, 1e-9);
  ck_assert_double_le(times.value_s[LP_FLEET_TTFT][2], 2 * pass_s * (1 + 1e-9));
  ck_assert_double_gt(busy, 0.99);
}

/* Of a split, a token's rows are away between two passes. */
LP_TEST(tokens_of_a_split_come_from_the_device) {
  const lp_load_law law = constant_law();
  const lp_load_user device = {.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .token_s = 0.05, .fits = true};
  const lp_fleet_length one = {1, 20, 1};
  const lp_fleet_class limits = {.limit_s[LP_FLEET_TPOT][0] = 0.0505};
  lp_trial trial = {.length = &one,
                    .lengths = 1,
                    .class = {{1, &device, NULL}},
                    .classes = 1,
                    .law = &law,
                    .machines = 2,
                    .sessions = 64,
                    .rate = 2,
                    .requests = 2000};
  lp_fleet_times times;
  double busy;
  ck_assert(lp_trial_run(&trial, &times, &busy));
  ck_assert_double_ge(times.value_s[LP_FLEET_TPOT][0], 0.051 - 1e-9);
  ck_assert_double_le(times.value_s[LP_FLEET_TPOT][2], 0.052);
  ck_assert_double_eq_tol(busy, 2 * 20 * pass_s / 2, 0.004);
  trial.class[0].limits = &limits;
  ck_assert(!lp_trial_run(&trial, &times, &busy));
}

/* The exit gives three tokens of four. The cloud's pass for the fourth has all four rows: 25 passes for 100 tokens. */
LP_TEST(exits_leave_few_passes) {
  lp_load_user user = idle_device;
  lp_load_law law = constant_law();
  const lp_fleet_length one = {1, 101, 1};
  lp_trial trial = {.length = &one,
                    .lengths = 1,
                    .class = {{1, &user, NULL}},
                    .classes = 1,
                    .law = &law,
                    .machines = 1,
                    .sessions = 1,
                    .rate = 1,
                    .requests = 200,
                    .seed = 7};
  lp_fleet_times alone, run;
  double busy;
  user.streams = false;
  user.asks = 0.25;
  user.token_s = 0.002;
  for (int i = 0; i < LP_LOAD_KNOTS; i++)
    law.token_s[i] = pass_s * (1 + law.rows[i]);
  lp_trial_alone(&one, 1, 1, &user, &law, &alone);
  ck_assert(lp_trial_run(&trial, &run, &busy));
  ck_assert_double_eq_tol(alone.value_s[LP_FLEET_TPOT][0], 0.25 * (0.002 + 5 * pass_s), 1e-9);
  ck_assert_double_eq_tol(run.value_s[LP_FLEET_TPOT][1], 0.25 * (0.002 + 5 * pass_s), 1e-9);
  ck_assert_double_eq_tol(busy, 1 * (25 * 5 + 1) * pass_s, 0.02);
  user.question_rows = 6; /* two more, of refused drafts */
  lp_trial_alone(&one, 1, 1, &user, &law, &alone);
  ck_assert(lp_trial_run(&trial, &run, &busy));
  ck_assert_double_eq_tol(alone.value_s[LP_FLEET_TPOT][0], 0.25 * (0.002 + 7 * pass_s), 1e-9);
  ck_assert_double_eq_tol(run.value_s[LP_FLEET_TPOT][1], 0.25 * (0.002 + 7 * pass_s), 1e-9);
}
