#include "tests/runtime/simulate/scenarios.h"
#include "tests/suite.h"

LP_CASE(.timeout = 120);

#define HEAD "simulate: s\narrivals: { poisson: 1 }\n"
#define TASK "tasks: [{ class: a, tokens: 10 }]\n"

/* A scenario, and the error and the note that it gets. */
typedef struct {
  const char *text, *wanted, *note;
} bad_scenario;

static const bad_scenario bad_scenarios[] = {
    {"", "s.yaml: error: holds no YAML document", NULL},
    {"simulate: s\n", "s.yaml:1:1: error: the scenario lacks 'arrivals'", NULL},
    {HEAD "taks: 1\n", "s.yaml:3:1: error: unknown key 'taks'", "s.yaml:3:1: note: did you mean 'tasks'?"},
    {HEAD "tasks: []\n", "s.yaml:3:8: error: 'tasks' is not a list of at least one", NULL},
    {HEAD "tasks: [{ class: a }]\n", "s.yaml:3:9: error: the task lacks 'tokens'", NULL},
    {HEAD "tasks:\n  - { class: a, tokens: 10, sahre: 1 }\n", "s.yaml:4:29: error: unknown key 'sahre'",
     "s.yaml:4:29: note: did you mean 'share'?"},
    {HEAD "tasks: [{ class: a, tokens: -5 }]\n", "s.yaml:3:29: error: 'tokens' is '-5', not a number from 0 to 1e+09",
     NULL},
    {HEAD "tasks: [{ class: a, tokens: { fixed: 1, geometric: 2 } }]\n",
     "s.yaml:3:29: error: 'tokens' wants one of 'fixed', 'uniform', 'exponential', 'lognormal', 'geometric'", NULL},
    {HEAD "tasks: [{ class: a, tokens: { uniform: [5] } }]\n", "s.yaml:3:40: error: 'uniform' is not [least, most]",
     NULL},
    {HEAD "tasks: [{ class: a, tokens: 1 }, { class: a, tokens: 1 }]\n",
     "s.yaml:3:34: error: the class 'a' occurs twice", NULL},
    {HEAD "tasks: [{ class: a, tokens: 1, share: 0 }]\n", "s.yaml:3:8: error: the shares of all tasks are 0", NULL},
    {"simulate: s\narrivals: { poisson: 1, every: 1s }\n" TASK,
     "s.yaml:2:11: error: 'arrivals' wants one of 'poisson', 'poisson_per_user', 'every', 'trace'", NULL},
    {HEAD TASK "edge: { slots: none }\n",
     "s.yaml:4:16: error: 'slots' is 'none', neither 'unlimited' nor a whole number from 1 to 1000000", NULL},
    {HEAD TASK "service: lama3\n", "error: unknown service 'lama3'", "note: did you mean 'llama3'?"},
    {HEAD TASK "link: { up: 1Mbit/s }\n", "s.yaml:4:7: error: 'link' lacks 'down'", NULL},
    {HEAD TASK "link: { radio: two-cell, up: 1Mbit/s, down: 1Mbit/s }\n",
     "s.yaml:4:7: error: 'link' wants either 'radio' or the rates 'up' and 'down'", NULL},
    {HEAD TASK "policies: [clas]\n",
     "s.yaml:4:12: error: 'policies' is 'clas', not one of class, queue-aware, edge-only, cloud-only, split-only, "
     "random, oracle",
     "s.yaml:4:12: note: did you mean 'class'?"},
    {HEAD TASK "vary: { rate: [2, 1] }\n", "s.yaml:4:19: error: 'rate' does not ascend", NULL},
    {HEAD TASK "vary: { rat: [1] }\n", "s.yaml:4:9: error: unknown key 'rat'",
     "s.yaml:4:9: note: did you mean 'rate'?"},
    {HEAD TASK "vary: { rate: [1], slots: [1] }\n",
     "s.yaml:4:20: error: 'vary' takes one key, and 'rate' is there already", NULL},
    {HEAD TASK "vary: { quality_share: [0.5] }\n",
     "s.yaml:4:7: error: to vary 'quality_share', there must be tasks with and without 'quality'", NULL},
    {"simulate: s\narrivals: { every: 1s }\n" TASK "vary: { rate: [1] }\n",
     "s.yaml:4:7: error: to vary 'rate', 'arrivals' must be 'poisson'", NULL},
    {HEAD TASK "requests: 10\nwarm_up: 10\n",
     "s.yaml:1:1: error: 'warm_up' leaves nothing to count: it is 10 of 10 requests", NULL},
    {"simulate: s\narrivals: { trace: ./none.csv }\n" TASK,
     "././none.csv: error: cannot open: No such file or directory", "s.yaml:2:11: note: it is named here, by 'trace'"},
    {HEAD TASK "service:\n  - llama3\n  - ./none.yaml\n",
     "././none.yaml: error: cannot open: No such file or directory",
     "s.yaml:6:5: note: it is named here, by 'service'"},
    {HEAD TASK "split: { slots: 1 }\n",
     "s.yaml:4:8: error: 'split' has no times: it wants 'passes', or a 'service' with a split", NULL},
    {HEAD TASK "edge: { passes: { rows: [1, 2], ms: [1] } }\n", "s.yaml:4:37: error: 'ms' has 1 numbers for 2 'rows'",
     NULL},
    {HEAD TASK "edge: { exits: { share: 1, depth: 1 } }\n",
     "s.yaml:4:7: error: only 'split' has 'worker', 'link' and 'exits'", NULL},
    {HEAD TASK "split: { passes: { rows: [1], ms: [1] } }\n",
     "s.yaml:4:8: error: 'passes' of the device want those of the 'worker'", NULL},
    {HEAD TASK "edge: { slowdown: 1, passes: { rows: [1], ms: [1] } }\n",
     "s.yaml:4:7: error: 'passes' and 'slowdown' are two ways of batching", NULL},
    {HEAD TASK "edge: { prompt_stretch: 2 }\n", "s.yaml:4:7: error: 'prompt_stretch' wants 'passes'", NULL},
    {HEAD TASK "vary: { users: [1] }\n",
     "s.yaml:4:7: error: to vary 'users', there must be a 'radio' network, or 'arrivals' 'poisson_per_user'", NULL},
    {"simulate: s\narrivals: { poisson_per_user: 1 }\n" TASK,
     "s.yaml:2:11: error: 'poisson_per_user' wants 'users' in 'link'", NULL},
    {HEAD TASK "drift: { penalty: 1 }\n", "s.yaml:4:8: error: 'drift' lacks 'after'", NULL},
    {HEAD TASK "drift: { after: 5 }\n", "s.yaml:4:8: error: 'drift' changes nothing: it wants 'service' or 'penalty'",
     NULL},
    {HEAD TASK "requests: 10\ndrift: { after: 10, penalty: 1 }\n",
     "s.yaml:5:8: error: 'drift' comes after request 10 of 10", NULL},
    {HEAD TASK "decision: long\n", "s.yaml:4:11: error: 'decision': 'long' is not a time such as 400ms, 0.1s or 20us",
     NULL},
};

LP_TEST(bad_scenarios_are_refused) {
  LP_FOR_EACH(const bad_scenario, bad, bad_scenarios, LP_COUNT(bad_scenarios)) {
    lp_diag *diag = lp_diag_create();
    lp_sim_scenario *scenario = NULL;
    lp_status status =
        lp_sim_scenario_parse("s.yaml", bad->text, strlen(bad->text), &lp_sim_plain_policies, &scenario, diag);
    ck_assert_msg(status == LP_FAILED && !scenario, "accepted: %s", bad->text);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    for (size_t n = 0; n < (bad->note ? 2 : 1); n++) {
      lp_buf found = {0};
      lp_diag_format(lp_diag_get(diag, n), &found);
      ck_assert_str_eq(found.data, n == 0 ? bad->wanted : bad->note);
      lp_buf_free(&found);
    }
    lp_diag_free(diag);
  }
}

static void print_all(const char *text, int32_t threads, lp_buf *out) {
  lp_sim_scenario *scenario = scenario_of(text);
  const lp_sim_options options = {.threads = threads};
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, &options, &result, NULL), LP_OK);
  lp_sim_print_json(&result, out);
  lp_sim_print_csv(&result, out);
  lp_sim_print_html(&result, out);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

LP_TEST(the_same_under_a_seed) {
  static const char text[] = HEAD "requests: 2000\nruns: 3\nedge: { slots: 2 }\npolicies: [random, class]\n"
                                  "tasks: [{ class: a, tokens: { lognormal: 100 } }, "
                                  "{ class: b, quality: true, tokens: { geometric: 50 }, prompt: 20 }]\n"
                                  "link: { radio: two-cell, users: 20, intervals: 20 }\nvary: { rate: [1, 2] }\n";
  lp_buf a = {0}, b = {0}, c = {0}, other = {0};
  print_all(text, 1, &a);
  print_all(text, 4, &b); /* nor do threads change it */
  ck_assert_str_eq(a.data, b.data);
  lp_buf_printf(&other, "%sseed: 2\n", text);
  print_all(other.data, 1, &c);
  ck_assert_str_ne(a.data, c.data);
  lp_buf_free(&a);
  lp_buf_free(&b);
  lp_buf_free(&c);
  lp_buf_free(&other);
}

/* Means of the distributions, and times on the air: 8 bits a byte, 4 bytes a token. */
LP_TEST(lengths_and_links) {
  static const char *const lengths[] = {"1000",
                                        "{ fixed: 1000 }",
                                        "{ exponential: 1000 }",
                                        "{ geometric: 1000 }",
                                        "{ uniform: [500, 1500] }",
                                        "{ lognormal: 1000, sigma: 0.5 }"};
  for (size_t i = 0; i < LP_COUNT(lengths); i++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   HEAD "requests: 100000\nlink: { up: 8kbit/s, down: 80kbit/s }\npolicies: [cloud-only]\n"
                        "tasks: [{ class: a, prompt: 100, tokens: %s }]\n",
                   lengths[i]);
    lp_sim_scenario *scenario = scenario_of(text);
    make_unit_service(scenario);
    lp_sim_result result;
    ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
    ck_assert_double_eq_tol(result.point[0].generation_s.mean, 1, 0.02);
    ck_assert_double_eq_tol(result.point[0].link_s.mean, 0.4 + 0.4 + 0.1, 0.01);
    ck_assert_double_eq_tol(result.point[0].delay_s.mean,
                            result.point[0].generation_s.mean + result.point[0].link_s.mean, 1e-9);
    lp_sim_result_free(&result);
    lp_sim_scenario_free(scenario);
  }
}

/* Two slots, three requests at once: the third waits for the first to end. With a batch of two, each is slowed down. */
LP_TEST(by_hand) {
  static const struct {
    const char *edge;
    double delay, wait;
  } rows[] = {{"{ slots: 2 }", (1 + 1 + 2) / 3.0, 1 / 3.0},
              {"{ slots: 1, replicas: 2 }", (1 + 1 + 2) / 3.0, 1 / 3.0},
              {"{ slots: 1 }", 2, 1},
              {"{ slots: 2, slowdown: 0.5 }", (1.5 + 1.5 + 2.5) / 3.0, 0.5},
              {"{ slots: unlimited, slowdown: 1 }", 3, 0},
              {"{ slots: 1, queue: 1 }", (1 + 2 + 1) / 3.0, 1 / 3.0}}; /* the third overflows to the cloud */
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    char text[512];
    (void)snprintf(
        text, sizeof text,
        "simulate: h\nrequests: 3\narrivals: { every: 1ns }\nbackhaul: 0\ntasks: [{ class: a, tokens: 1000 }]\n"
        "policies: [edge-only]\nedge: %s\n",
        rows[i].edge);
    lp_sim_scenario *scenario = scenario_of(text);
    make_unit_service(scenario);
    lp_sim_result result;
    ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
    ck_assert_double_eq_tol(result.point[0].delay_s.mean, rows[i].delay, 1e-6);
    ck_assert_double_eq_tol(result.point[0].wait_s.mean, rows[i].wait, 1e-6);
    ck_assert_double_eq_tol(result.point[0].ttft_s.mean, rows[i].wait, 5e-3); /* and one of 1000 tokens */
    ck_assert_int_eq(result.point[0].requests, 3);
    lp_sim_result_free(&result);
    lp_sim_scenario_free(scenario);
  }
}

/* The answer of the edge fails: 40 too much, from the second request on 5. Had they gone to the cloud: 31.77 s each. */
LP_TEST(drift_and_regret_by_hand) {
  lp_sim_scenario *scenario =
      scenario_of("simulate: h\nrequests: 2\ncounting: paper\narrivals: { every: 60s }\npolicies: [edge-only]\n"
                  "tasks: [{ class: a, quality: true, tokens: 1000 }]\ndrift: { after: 1, penalty: 5 }\n");
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  const lp_sim_point *point = &result.point[0];
  double edge = 0.23 + 1000 / 75.0, cloud = 0.42 + 1000 / 32.0 + 0.1;
  ck_assert_double_eq_tol(point->reward.mean, 60 - edge - 22.5, 1e-9);
  ck_assert_double_eq_tol(point->regret.mean, (edge + 40 - cloud) / 2, 1e-9); /* then the edge is better */
  ck_assert_double_eq_tol(point->part[0].reward.mean, 60 - edge - 40, 1e-9);
  ck_assert_double_eq_tol(point->part[LP_SIM_PARTS / 2].reward.mean, 60 - edge - 5, 1e-9);
  ck_assert_double_eq(point->part[0].reward.half, 0);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

/* The parts of the course divide the requests after the warm-up, of which nothing counts. */
LP_TEST(parts_begin_after_the_warm_up) {
  lp_sim_scenario *scenario = scenario_of(
      "simulate: h\nrequests: 24\nwarm_up: 4\ncounting: paper\narrivals: { every: 60s }\npolicies: [edge-only]\n"
      "tasks: [{ class: a, quality: true, tokens: 1000 }]\ndrift: { after: 14, penalty: 5 }\n");
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  const lp_sim_point *point = &result.point[0];
  const double edge = 0.23 + 1000 / 75.0;
  ck_assert_int_eq(point->requests, 20);
  for (int32_t i = 0; i < LP_SIM_PARTS; i++)
    ck_assert_double_eq_tol(point->part[i].reward.mean, 60 - edge - (i < 10 ? 40 : 5), 1e-9);

  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

LP_TEST(drift_of_the_models) {
  lp_sim_scenario *scenario =
      scenario_of("simulate: h\nrequests: 2\ncounting: paper\narrivals: { every: 60s }\npolicies: [edge-only]\n"
                  "tasks: [{ class: a, tokens: 1000 }]\ndrift: { after: 1, service: gemma-gemini }\n");
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  ck_assert_double_eq_tol(result.point[0].delay_s.mean, (13.5633 + 6.682) / 2, 1e-3);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

LP_TEST(services_are_experiments_of_their_own) {
  lp_sim_scenario *scenario = scenario_of(
      "simulate: h\nrequests: 20\ncounting: paper\narrivals: { every: 60s }\npolicies: [edge-only, cloud-only]\n"
      "service: [gemma-gemini, llama2, llama3]\ntasks: [{ class: a, tokens: 1000 }]\nvary: { penalty: [1, 2] }\n");
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  ck_assert_int_eq(result.points, 12);
  ck_assert_str_eq(result.point[4].service, "llama2");
  ck_assert_str_eq(result.point[4].policy, "edge-only");
  ck_assert_double_eq(result.point[5].value, 2);
  const double wanted[] = {6.682, 17.761, 11.466, 25.520, 13.563, 31.770}; /* the cloud's with 0.1 s of backhaul */
  for (size_t i = 0; i < LP_COUNT(wanted); i++)
    ck_assert_double_eq_tol(result.point[2 * i].delay_s.mean, wanted[i], 1e-3);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

LP_TEST(rejections) {
  lp_sim_scenario *scenario =
      scenario_of("simulate: h\nrequests: 10\narrivals: { every: 1ns }\ntasks: [{ class: a, tokens: 1000 }]\n"
                  "policies: [edge-only]\nedge: { slots: 1, queue: 2 }\ncloud: { slots: 1, queue: 0 }\nbackhaul: 0\n");
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  ck_assert_int_eq(result.point[0].requests, 4);
  ck_assert_int_eq(result.point[0].overflowed, 1);
  ck_assert_int_eq(result.point[0].rejected, 6);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

/* Under maximum rate, the weaker users of a cell without fading get nothing. */
LP_TEST(users_that_are_never_served) {
  lp_sim_scenario *scenario = scenario_of(HEAD TASK "link: { radio: two-cell, users: 10, intervals: 5 }\n");
  scenario->radio->scheduler = LP_RADIO_MAX;
  lp_diag *diag = lp_diag_create();
  lp_sim_result result;
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "is never served in 5 intervals of its scheduler, 'max'"));
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
  lp_diag_free(diag);
}
