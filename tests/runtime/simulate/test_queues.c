/* Compares the simulator with queueing theory. The mean service time is 1 s. */
#include "tests/runtime/simulate/scenarios.h"
#include "tests/suite.h"

LP_CASE(.timeout = 300);

typedef struct {
  const char *tokens; /* of a request: 1,000 in the mean */
  int64_t slots, queue;
  double slowdown, load;
  int64_t requests;
} queue;

static lp_sim_point run(const queue *q, lp_sim_result *result, lp_sim_scenario **scenario) {
  char text[512];
  (void)snprintf(text, sizeof text,
                 "simulate: q\nrequests: %" PRId64 "\nwarm_up: %" PRId64 "\nbackhaul: 0\narrivals: { poisson: %.9g }\n"
                 "tasks: [{ class: all, tokens: %s }]\nedge: { slots: 1, slowdown: %g }\npolicies: [edge-only]\n",
                 q->requests, q->requests / 50, q->load * (q->slowdown > 0 ? 1 : (double)q->slots), q->tokens,
                 q->slowdown);
  *scenario = scenario_of(text);
  (*scenario)->station[LP_SITE_EDGE].slots = q->slots;
  (*scenario)->station[LP_SITE_EDGE].queue = q->queue;
  make_unit_service(*scenario);
  ck_assert_int_eq(lp_sim_run(*scenario, NULL, result, NULL), LP_OK);
  return result->point[0];
}

/* Probability that all c servers are busy: with a queue (Erlang C), and without (Erlang B). */
static double erlang_b(int64_t c, double a) {
  double b = 1;
  for (int64_t k = 1; k <= c; k++)
    b = a * b / ((double)k + a * b);
  return b;
}

static double erlang_c(int64_t c, double a) {
  double b = erlang_b(c, a), load = a / (double)c;
  return b / (1 - load * (1 - b));
}

static void waits(const queue *q, double wanted_s) {
  lp_sim_result result;
  lp_sim_scenario *scenario = NULL;
  lp_sim_point point = run(q, &result, &scenario);
  ck_assert_msg(fabs(point.wait_s.mean / wanted_s - 1) < 0.02, "%s, %d slots, load %g: waits %g s, wanted %g s",
                q->tokens, (int)q->slots, q->load, point.wait_s.mean, wanted_s);
  ck_assert_double_eq_tol(point.generation_s.mean, 1, 0.01);
  ck_assert_double_eq_tol(point.utilisation[LP_SITE_EDGE], q->load, 0.01);
  /* Little: the mean queue is the rate times the mean wait. */
  double rate = q->load * (double)q->slots;
  ck_assert_double_eq_tol(point.queue_length[LP_SITE_EDGE] / (rate * point.wait_s.mean), 1, 0.02);
  ck_assert_double_le(fabs(point.wait_s.mean - wanted_s), 3 * point.wait_s.half);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

static const struct {
  double load;
  int64_t requests;
} loads[] = {{0.3, 500000}, {0.5, 500000}, {0.8, 3000000}};

LP_TEST(markov_one_server) {
  for (size_t i = 0; i < LP_COUNT(loads); i++) {
    queue q = {"{ exponential: 1000 }", 1, LP_SIM_UNLIMITED, 0, loads[i].load, loads[i].requests};
    waits(&q, q.load / (1 - q.load));
  }
}

LP_TEST(deterministic_one_server) {
  for (size_t i = 0; i < LP_COUNT(loads); i++) {
    queue q = {"1000", 1, LP_SIM_UNLIMITED, 0, loads[i].load, loads[i].requests / 2};
    waits(&q, q.load / (2 * (1 - q.load)));
  }
}

LP_TEST(markov_eight_servers) {
  static const double some[] = {0.6, 0.8};
  for (size_t i = 0; i < LP_COUNT(some); i++) {
    queue q = {"{ exponential: 1000 }", 8, LP_SIM_UNLIMITED, 0, some[i], 2000000};
    waits(&q, erlang_c(8, 8 * q.load) / (8 * (1 - q.load)));
  }
}

/* Without a queue, requests that find all servers busy go to the other site: Erlang B. */
LP_TEST(losses_overflow) {
  queue q = {"{ exponential: 1000 }", 8, 0, 0, 0.8, 500000};
  lp_sim_result result;
  lp_sim_scenario *scenario = NULL;
  lp_sim_point point = run(&q, &result, &scenario);
  ck_assert_double_eq_tol(point.share[LP_SITE_CLOUD] / erlang_b(8, 6.4), 1, 0.02);
  ck_assert_double_eq(point.share[LP_SITE_CLOUD] * (double)point.requests, (double)point.overflowed);
  ck_assert_double_eq(point.wait_s.mean, 0);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

/* A server that all requests share equally (slowdown 1, any number at a time) holds a request for 1 / (1 - load) s in
 * the mean, for any distribution of lengths. */
LP_TEST(sharing_one_server) {
  static const char *const tokens[] = {"{ exponential: 1000 }", "1000", "{ uniform: [0, 2000] }"};
  for (size_t i = 0; i < LP_COUNT(tokens); i++) {
    queue q = {tokens[i], LP_SIM_UNLIMITED, LP_SIM_UNLIMITED, 1, 0.6, 400000};
    lp_sim_result result;
    lp_sim_scenario *scenario = NULL;
    lp_sim_point point = run(&q, &result, &scenario);
    ck_assert_double_eq_tol(point.delay_s.mean, 2.5, 0.05);
    ck_assert_double_eq(point.wait_s.mean, 0);
    lp_sim_result_free(&result);
    lp_sim_scenario_free(scenario);
  }
}
