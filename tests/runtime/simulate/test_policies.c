#include "tests/runtime/simulate/scenarios.h"
#include "tests/suite.h"

LP_CASE(.timeout = 300);

/* The paper's setting: answers of 1,000 tokens, half of the tasks ask for quality. */
static const char paper[] = "simulate: paper\nrequests: 4000\nruns: 10\ncounting: paper\n"
                            "arrivals: { poisson: 0.5 }\npolicies: [class]\n"
                            "tasks:\n"
                            "  - { class: quality, share: 0.5, quality: true, tokens: { uniform: [500, 1500] } }\n"
                            "  - { class: plain, share: 0.5, tokens: { uniform: [500, 1500] } }\n";

/* Delay over the share of quality tasks is a straight line: from the edge's delay to the cloud's, at 0.1 s of backhaul.
 * Llama 3 is slowest and Gemma fastest everywhere. */
LP_TEST(delay_over_the_share_of_quality) {
  static const struct {
    const char *service;
    double edge, slope;
  } rows[] = {{"gemma-gemini", 6.682, 11.080}, {"llama2", 11.466, 14.054}, {"llama3", 13.563, 18.207}};
  double before[5] = {0};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    char text[1024];
    (void)snprintf(text, sizeof text, "%sservice: %s\nvary: { quality_share: [0, 0.25, 0.5, 0.75, 1] }\n", paper,
                   rows[i].service);
    lp_sim_scenario *scenario = scenario_of(text);
    lp_sim_result result;
    ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
    ck_assert_int_eq(result.points, 5);
    for (int v = 0; v < 5; v++) {
      const lp_sim_point *point = &result.point[v];
      double wanted = rows[i].edge + rows[i].slope * 0.25 * v;
      ck_assert_msg(fabs(point->delay_s.mean - wanted) <= 1.5 * point->delay_s.half + 1e-3,
                    "%s at %g: %g ± %g, wanted %g", rows[i].service, point->value, point->delay_s.mean,
                    point->delay_s.half, wanted);
      ck_assert_double_lt(point->delay_s.half, 0.2);
      ck_assert_double_gt(point->delay_s.mean, before[v]);
      before[v] = point->delay_s.mean;
      ck_assert_double_eq_tol(point->share[LP_SITE_CLOUD], 0.25 * v, 0.01);
    }
    lp_sim_result_free(&result);
    lp_sim_scenario_free(scenario);
  }
}

/* Shares that differ keep their proportions: 0.6 with and 0.3 and 0.1 without quality become 0.2, 0.6 and 0.2 at a
 * share of 0.2. Only the last task has long answers, so that the mean time of generation tells its share. */
LP_TEST(a_share_of_quality_keeps_proportions) {
  lp_sim_scenario *scenario =
      scenario_of("simulate: shares\nrequests: 20000\nruns: 5\narrivals: { poisson: 0.001 }\npolicies: [class]\n"
                  "tasks:\n"
                  "  - { class: q, share: 0.6, quality: true, tokens: 1 }\n"
                  "  - { class: a, share: 0.3, tokens: 1 }\n"
                  "  - { class: b, share: 0.1, tokens: 1001 }\n"
                  "vary: { quality_share: [0.2, 0.9] }\n");
  lp_sim_result result;
  make_unit_service(scenario);
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  ck_assert_double_eq_tol(result.point[0].share[LP_SITE_CLOUD], 0.2, 0.01);
  ck_assert_double_eq_tol(result.point[1].share[LP_SITE_CLOUD], 0.9, 0.01);
  for (int v = 0; v < 2; v++) {
    double long_answers = (1 - result.point[v].value) / 4;
    ck_assert_double_eq_tol(result.point[v].generation_s.mean, 1e-3 + long_answers, 0.01);
  }
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

/* On 8 slots the class rule saturates at 8 / 13.563 / 0.5 = 1.18 requests/s; shortly before, its delays explode, while
 * a rule that looks at the queue holds them. */
LP_TEST(the_loaded_edge) {
  lp_sim_scenario *scenario =
      scenario_of("simulate: loaded\nrequests: 20000\nruns: 10\ncounting: paper\narrivals: { poisson: 1.16 }\n"
                  "tasks: [{ class: q, quality: true, tokens: 1000 }, { class: p, tokens: 1000 }]\n"
                  "edge: { slots: 8 }\npolicies: [class, queue-aware]\nvary: { rate: [0.6, 1.16, 1.3] }\n");
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  const lp_sim_point *by_class = result.point, *by_queue = result.point + 3;
  ck_assert_double_eq_tol(by_class[0].delay_s.mean, 22.67, 0.2);
  ck_assert_double_eq_tol(by_queue[0].delay_s.mean, 22.67, 0.2);
  /* So near to saturation runs differ widely; the reference's 41.7 s lies within the interval of their mean. */
  ck_assert_double_le(fabs(by_class[1].delay_s.mean - 41.7), by_class[1].delay_s.half);
  ck_assert_double_eq_tol(by_queue[1].delay_s.mean, 25.5, 0.3);
  ck_assert_double_eq_tol(by_class[1].utilisation[LP_SITE_EDGE], 1.16 / 1.18, 0.01);
  /* Above saturation the delay grows with the length of the run. */
  ck_assert_double_gt(by_class[2].delay_s.mean, 300);
  ck_assert_double_lt(by_queue[2].delay_s.mean, 28);
  ck_assert_double_eq(by_queue[2].quality.mean, 1);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

LP_TEST(rewards) {
  lp_sim_scenario *scenario =
      scenario_of("simulate: r\nrequests: 2000\ncounting: paper\narrivals: { every: 1s }\nbackhaul: 0.1s\npenalty: "
                  "10\ntarget: 60s\n"
                  "tasks: [{ class: q, quality: true, tokens: 1000, edge_success: 0.3, cloud_success: 0.9 }]\n"
                  "policies: [edge-only, cloud-only, random, oracle]\nvary: { penalty: [10, 40] }\n");
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  const lp_sim_point *point = result.point;
  ck_assert_double_eq_tol(point[0].quality.mean, 0.3, 0.03);
  ck_assert_double_eq_tol(point[0].reward.mean, 60 - 13.5633 - 10 * (1 - point[0].quality.mean), 1e-3);
  ck_assert_double_eq_tol(point[2].quality.mean, 0.9, 0.03);
  ck_assert_double_eq_tol(point[2].reward.mean, 60 - 31.77 - 10 * (1 - point[2].quality.mean), 1e-3);
  ck_assert_double_eq_tol(point[4].share[LP_SITE_EDGE], 0.5, 0.03);
  /* At a penalty of 10, 1,000 tokens are too long for the cloud to pay; at 40 they pay where the edge would fail. */
  ck_assert_double_eq(point[6].share[LP_SITE_EDGE], 1);
  ck_assert_double_eq_tol(point[7].share[LP_SITE_CLOUD], 0.7 * 0.9, 0.04);
  for (int p = 0; p < 3; p++)
    for (int v = 0; v < 2; v++)
      ck_assert_double_ge(point[6 + v].reward.mean, point[2 * p + v].reward.mean);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

/* ---- a policy from outside, that learns ---- */

typedef struct {
  int64_t decided, told;
  double reward[LP_SITE_COUNT];
} learner;

static learner last;

static void *learner_create(const void *context, uint64_t seed) {
  (void)context;
  (void)seed;
  return lp_alloc(sizeof(learner));
}

static lp_site learner_decide(void *state, const lp_sim_request *request) {
  learner *l = state;
  ck_assert_int_eq(request->index, l->decided);
  ck_assert_str_eq(request->task_name, "p");
  l->decided++;
  return l->decided < 20                                      ? (lp_site)(l->decided % 2)
         : l->reward[LP_SITE_CLOUD] > l->reward[LP_SITE_EDGE] ? LP_SITE_CLOUD
                                                              : LP_SITE_EDGE;
}

static void learner_learn(void *state, const lp_sim_request *request, const lp_sim_outcome *outcome) {
  learner *l = state;
  ck_assert_double_eq_tol(outcome->delay_s, request->delay_s[outcome->site], 1e-9); /* nothing waits */
  l->told++;
  l->reward[outcome->site] = outcome->reward;
}

static void learner_free(void *state) {
  last = *(learner *)state;
  free(state);
}

LP_TEST(policies_plug_in) {
  static const lp_sim_policy mine = {.name = "mine",
                                     .summary = "",
                                     .create = learner_create,
                                     .decide = learner_decide,
                                     .learn = learner_learn,
                                     .free = learner_free};
  static const lp_sim_policy *const list[] = {&mine};
  static const char text[] = "simulate: l\nrequests: 500\narrivals: { every: 20s }\n"
                             "tasks: [{ class: p, tokens: 1000 }]\npolicies: [mine]\n";
  lp_sim_scenario *scenario = NULL;
  ck_assert_int_eq(lp_sim_scenario_parse("l", text, strlen(text), &(lp_sim_policies){list, 1}, &scenario, NULL), LP_OK);
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  ck_assert_int_eq(last.decided, 500);
  ck_assert_int_eq(last.told, 500);
  ck_assert_double_gt(result.point[0].share[LP_SITE_EDGE], 0.95);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

static lp_site always_edge(void *state, const lp_sim_request *request) {
  (void)state;
  (void)request;
  return LP_SITE_EDGE;
}

/* Deciding by a model takes its time, also before the queue. */
LP_TEST(a_decision_takes_its_time) {
  static const lp_sim_policy slow = {.name = "slow", .asks_model = true, .decide = always_edge};
  static const lp_sim_policy quick = {.name = "quick", .decide = always_edge};
  static const lp_sim_policy *const list[] = {&slow, &quick};
  static const char text[] = "simulate: l\nrequests: 40\narrivals: { every: 20s }\ncounting: paper\ndecision: 2s\n"
                             "link: { up: 1Mbit/s, down: 32kbit/s }\n"
                             "tasks: [{ class: p, tokens: 1000 }]\npolicies: [slow, quick]\n";
  lp_sim_scenario *scenario = NULL;
  ck_assert_int_eq(lp_sim_scenario_parse("l", text, strlen(text), &(lp_sim_policies){list, 2}, &scenario, NULL), LP_OK);
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  ck_assert_double_eq_tol(result.point[0].delay_s.mean, 2 + 13.5633 + 1, 1e-3);
  ck_assert_double_eq_tol(result.point[1].delay_s.mean, 13.5633 + 1, 1e-3);
  ck_assert_double_eq_tol(result.point[0].generation_s.mean, 13.5633, 1e-3);
  ck_assert_double_eq_tol(result.point[0].link_s.mean, 1, 1e-3);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}
