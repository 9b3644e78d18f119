/* Batched passes, the split, exits and users, compared with closed forms. */
#include "runtime/exec/pace.h"
#include "runtime/simulate/passes.h"
#include "tests/runtime/simulate/scenarios.h"
#include "tests/suite.h"

LP_CASE(.timeout = 120);

#define HEAD "simulate: p\nbackhaul: 0\nrequests: 200000\nwarm_up: 1000\n"
#define ONE_TOKEN "tasks: [{ class: all, prompt: 1, tokens: 1 }]\n"

static lp_sim_point run(const char *text, int32_t at) {
  lp_sim_result result;
  lp_sim_scenario *scenario = scenario_of(text);
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  lp_sim_point point = result.point[at];
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
  return point;
}

/* A server that takes all that wait, and any number in T s: a request that finds it busy waits for the rest of a
 * pass. A busy period has exp(load) passes in the mean, where load = rate x T, and an idle one lasts 1 / rate. */
LP_TEST(batch_server) {
  static const double rates[] = {0.5, 1, 2};
  for (size_t i = 0; i < LP_COUNT(rates); i++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   HEAD "arrivals: { poisson: %g }\n" ONE_TOKEN
                        "edge: { passes: { rows: [1], ms: [1000] } }\npolicies: [edge-only]\n",
                   rates[i]);
    lp_sim_point point = run(text, 0);
    double busy = exp(rates[i]), share = busy / (busy + 1 / rates[i]);
    ck_assert_double_eq_tol(point.delay_s.mean, 1 + share / 2, 0.01);
    ck_assert_double_eq_tol(point.wait_s.mean, share / 2, 0.01);
    ck_assert_double_eq_tol(point.ttft_s.mean, point.delay_s.mean, 1e-9);
  }
}

/* Passes over one request at a time are the server of queueing theory: M/D/1. */
LP_TEST(one_at_a_time) {
  lp_sim_point point = run(HEAD "arrivals: { poisson: 0.5 }\n" ONE_TOKEN
                                "edge: { slots: 1, passes: { rows: [1], ms: [1000] } }\npolicies: [edge-only]\n",
                           0);
  ck_assert_double_eq_tol(point.wait_s.mean, 0.5 / (2 * 0.5), 0.02);
  ck_assert_double_eq_tol(point.generation_s.mean, 1, 1e-6);
  ck_assert_double_eq_tol(point.utilisation[LP_SITE_EDGE], 0.5, 0.01);
}

/* Requests that are far apart: a prompt of 300 runs in parts of 256 and 44 rows, then a token in each pass. */
LP_TEST(alone) {
  static const char text[] =
      "simulate: p\nbackhaul: 0\nrequests: 100\narrivals: { every: 1000s }\ntasks: [{ class: all, prompt: 300, tokens: "
      "11 }]\n"
      "edge: { request: 2ms, passes: { rows: [1, 128], ms: [10, 137] } }\npolicies: [edge-only]\n";
  lp_sim_point point = run(text, 0);
  ck_assert_double_eq_tol(point.ttft_s.mean, 0.002 + 0.265 + 0.053, 1e-9);
  ck_assert_double_eq_tol(point.delay_s.mean, point.ttft_s.mean + 10 * 0.010, 1e-9);
  ck_assert_double_eq_tol(point.link_s.mean, 0.002, 1e-9);
}

/* A split: rows of 1,000 bytes at 1 Mbit/s take 8 ms each, a round trip 20 ms, answers of 125 bytes 1 ms and 1 ms. */
#define SPLIT                                                                                                          \
  "split: { passes: { rows: [1], ms: [3] }, worker: { rows: [1], ms: [5] }, link: { rtt: 20ms, up: 1Mbit/s, down: "    \
  "1Mbit/s, row_bytes: 1000, message_bytes: 125 } "
LP_TEST(split_alone) {
  lp_sim_point point = run("simulate: p\nbackhaul: 0\nrequests: 100\narrivals: { every: 1000s }\ntasks: [{ class: all, "
                           "prompt: 10, tokens: 6 "
                           "}]\npolicies: [split-only, cloud-only, random]\n" SPLIT "}\n",
                           0);
  ck_assert_double_eq_tol(point.ttft_s.mean, 0.003 + 0.080 + 0.001 + 0.020 + 0.005 + 0.001, 1e-9);
  ck_assert_double_eq_tol(point.delay_s.mean, point.ttft_s.mean + 5 * (0.003 + 0.008 + 0.001 + 0.020 + 0.005 + 0.001),
                          1e-9);
  ck_assert_double_eq(point.share[LP_SITE_SPLIT], 1);
}

/* Of tokens that an exit gives, half of the device's layers run and nothing crosses. With any number of rows in the
 * same time, rows that wait cost nothing later. */
LP_TEST(exits) {
  static const double shares[] = {0, 0.25, 0.5};
  for (size_t i = 0; i < LP_COUNT(shares); i++) {
    char text[512];
    (void)snprintf(
        text, sizeof text,
        "simulate: p\nbackhaul: 0\nrequests: 2000\narrivals: { every: 1000s }\ntasks: [{ class: all, prompt: 1, "
        "tokens: 101 }]\npolicies: [split-only]\nsplit: { passes: { rows: [1], ms: [4] }, worker: { rows: [1], "
        "ms: [6] }, link: { rtt: 10ms }, exits: { share: %g, depth: 0.5 } }\n",
        shares[i]);
    double token = (1 - shares[i]) * 0.020 + shares[i] * 0.002;
    ck_assert_double_eq_tol(run(text, 0).delay_s.mean / (0.020 + 100 * token), 1, 0.005);
  }
}

/* Rows of ten requests leave the device one after the other; the worker begins with the first and takes the others in a
 * second pass: 10 x 1 ms of sending, passes of 5 ms. */
LP_TEST(worker_takes_what_has_come) {
  lp_sim_passes passes = {0};
  double points[] = {1}, none[] = {0}, five[] = {0.005};
  const lp_sim_station station = {
      .slots = 64,
      .pass = {1, points, none, NULL},
      .crossing = {.worker = {1, points, five, NULL}, .rtt_s = 0.004, .up_bps = 1e6, .row_bytes = 125}};
  for (uint32_t i = 0; i < 10; i++)
    lp_sim_passes_add(&passes, i, 1, 3, i);
  /* 1 ms until the first row; its pass until 6 ms; rows 2 to 6 then until 11 ms, the rest until 16 ms */
  ck_assert_double_eq_tol(lp_sim_passes_begin(&passes, &station), 0.016 + 0.004, 1e-9);
  lp_vec_free(&passes.members);
}

static int64_t rows_of(const lp_sim_passes *passes, uint32_t job) {
  for (size_t i = 0; i < passes->members.count; i++)
    if (passes->members.data[i].job == job) return passes->members.data[i].rows;
  return -1;
}

/* Prompts fill a pass of 256 rows, a prompt at most 128 of them; beside a request that generates they take as many rows
 * as make the pass 1.4 times as long, but at least 16. */
LP_TEST(rows_of_prompts) {
  double rows[] = {1, 101}, flat[] = {1, 2}, steep[] = {1, 101};
  lp_sim_station station = {.slots = 64, .pass = {2, rows, flat, NULL}};
  lp_sim_passes passes = {0};
  for (uint32_t i = 0; i < 3; i++)
    lp_sim_passes_add(&passes, i, 1000, 5, i);
  (void)lp_sim_passes_begin(&passes, &station);
  ck_assert_int_eq(rows_of(&passes, 0) + rows_of(&passes, 1) + rows_of(&passes, 2), 256);
  ck_assert_int_eq(rows_of(&passes, 0), 128);
  lp_sim_passes_end(&passes);
  lp_sim_passes_add(&passes, 3, 1, 5, 3);
  (void)lp_sim_passes_begin(&passes, &station);
  ck_assert_int_eq(rows_of(&passes, 3), 1);
  ck_assert_int_eq(rows_of(&passes, 2), 40); /* 1 + 40 / 100 */
  lp_sim_passes_end(&passes);
  station.pass.seconds = steep;
  (void)lp_sim_passes_begin(&passes, &station);
  ck_assert_int_eq(rows_of(&passes, 3), 1);
  ck_assert_int_eq(rows_of(&passes, 0) + rows_of(&passes, 1) + rows_of(&passes, 2), 16);
  lp_vec_free(&passes.members);
}

/* The engine (runtime/exec/pace.h), once it has measured all the sizes that it tells apart, takes the largest of them
 * within the rows of the simulation: beside any number of requests that generate, not only beside one. */
LP_TEST(prompts_are_paced_as_by_the_engine) {
  static const int64_t size[LP_PACE_SIZES] = {1,   2,   3,   4,   5,   6,   7,   8,   10,  12,  14,  16,
                                              20,  24,  28,  32,  40,  48,  56,  64,  80,  96,  112, 128,
                                              160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};
  static const double stretches[] = {0, 1, 2, 6};
  double rows[] = {1, 40, 80, 256}, time[] = {10, 12, 30, 60};
  int16_t table[LP_PASS_MOST_SEQUENCES];
  for (size_t k = 0; k < LP_COUNT(stretches); k++) {
    lp_sim_station station = {.pass = {4, rows, time, NULL}, .prompt_stretch = stretches[k]};
    lp_pace pace = {.stretch = stretches[k]};
    for (int i = 0; i < LP_PACE_SIZES; i++) {
      pace.of[i].ms = lp_sim_pass_s(&station.pass, (double)size[i], 0);
      pace.of[i].passes = 1;
    }
    lp_sim_pace(&station, table);
    ck_assert_int_eq(lp_pace_most(&pace), LP_PASS_ROWS);
    ck_assert_int_eq(station.most_rows, LP_PASS_ROWS);
    for (int i = 0; size[i] <= LP_PASS_MOST_SEQUENCES; i++) {
      int next = i;
      while (next < LP_PACE_SIZES && size[next] <= size[i] + table[size[i] - 1])
        next++;
      ck_assert_int_eq(lp_pace_rows(&pace, size[i]), size[next - 1]);
    }
  }
}

/* Passes of 20 ms at most have up to 1024 rows, of which a prompt has half. */
LP_TEST(short_passes_have_more_rows) {
  static const struct {
    double ms; /* of 1024 rows; one row takes 4 ms */
    int64_t rows;
  } fast[] = {{20, 1024}, {20.02, 1022}, {36, 512}, {66, 265}, {68, 256}};
  double rows[] = {1, 1025}, time[2];
  for (size_t i = 0; i < LP_COUNT(fast); i++) {
    time[0] = 0.004, time[1] = 0.004 + 1e-3 * (fast[i].ms - 4) * 1024 / 1023 * (1 - 1e-9);
    lp_sim_station station = {.slots = 64, .pass = {2, rows, time, NULL}};
    lp_sim_passes passes = {0};
    ck_assert_int_eq(lp_sim_most_rows(&station.pass), fast[i].rows);
    for (uint32_t k = 0; k < 3; k++)
      lp_sim_passes_add(&passes, k, 4096, 5, k);
    (void)lp_sim_passes_begin(&passes, &station);
    ck_assert_int_eq(rows_of(&passes, 0), fast[i].rows / 2);
    ck_assert_int_eq(rows_of(&passes, 0) + rows_of(&passes, 1) + rows_of(&passes, 2), fast[i].rows);
    lp_vec_free(&passes.members);
  }
}

/* 256 requests generate in one pass, as in runtime/engine/choose.c; further ones wait in the queue. */
LP_TEST(most_requests) {
  double rows[] = {1}, time[] = {1};
  const lp_sim_station station = {.slots = 300, .pass = {1, rows, time, NULL}};
  lp_sim_passes passes = {0};
  for (uint32_t i = 0; i < 262; i++)
    lp_sim_passes_add(&passes, i, 1, 9, i);
  int64_t taken = 0;
  (void)lp_sim_passes_begin(&passes, &station);
  for (uint32_t i = 0; i < 262; i++)
    taken += rows_of(&passes, i);
  ck_assert_int_eq(taken, 256);
  lp_sim_passes_end(&passes);
  (void)lp_sim_passes_begin(&passes, &station); /* those that had to wait come first */
  for (uint32_t i = 256; i < 262; i++)
    ck_assert_int_eq(rows_of(&passes, i), 1);
  lp_vec_free(&passes.members);
}

/* Beside a request that generates, prompts have a row for each that waits, and the one that was begun ends before the
 * next one begins. */
LP_TEST(prompts_that_wait) {
  enum { PROMPTS = 40 };
  double rows[] = {1, 100}, time[] = {1, 100};
  const lp_sim_station station = {.slots = 100, .pass = {2, rows, time, NULL}};
  lp_sim_passes passes = {0};
  lp_sim_passes_add(&passes, 0, 1, 1000, 0);
  for (uint32_t i = 1; i <= PROMPTS; i++)
    lp_sim_passes_add(&passes, i, 15, 1000, i);
  for (int waiting = PROMPTS; waiting > 0;) {
    int64_t taken = 0, all = 0;
    int begun = 0, next = 0;
    (void)lp_sim_passes_begin(&passes, &station);
    for (size_t i = 0; i < passes.members.count; i++) {
      taken += passes.members.data[i].left > 1 ? passes.members.data[i].rows : 0;
      all += passes.members.data[i].left > 1 ? passes.members.data[i].left : 0;
    }
    ck_assert_int_ge(taken, all < waiting ? all : waiting);
    lp_sim_passes_end(&passes);
    for (size_t i = 0; i < passes.members.count; i++) {
      next += !passes.members.data[i].generates;
      begun += !passes.members.data[i].generates && passes.members.data[i].served > passes.members.data[i].turn &&
               passes.members.data[i].turn > 0;
    }
    ck_assert_int_le(begun, 1);
    waiting = next;
  }
  lp_vec_free(&passes.members);
}

/* Users with a rate of their own: M/M/1 at loads of 0.3 and 0.6. */
LP_TEST(users) {
  static const double loads[] = {0.3, 0.6};
  for (int32_t i = 0; i < 2; i++) {
    lp_sim_scenario *scenario = scenario_of(
        HEAD "arrivals: { poisson_per_user: 0.01 }\nlink: { up: 1Gbit/s, down: 1Gbit/s, users: 1 }\ntasks: [{ "
             "class: a, tokens: { exponential: 1000 } }]\nedge: { slots: 1 }\npolicies: [edge-only]\nvary: { users: "
             "[30, 60] }\n");
    lp_sim_result result;
    make_unit_service(scenario);
    ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
    ck_assert_double_eq_tol(result.point[i].wait_s.mean / (loads[i] / (1 - loads[i])), 1, 0.05);
    lp_sim_result_free(&result);
    lp_sim_scenario_free(scenario);
  }
}

/* More users in the same cells: each has less of the radio link. */
LP_TEST(users_share_the_radio) {
  static const char text[] =
      "simulate: u\nrequests: 2000\narrivals: { every: 1s }\nbackhaul: 0\ntoken_bytes: 400\ntasks: [{ class: "
      "a, tokens: 1000 }]\nlink: { radio: two-cell, intervals: 1000 }\npolicies: [edge-only]\nvary: { users: "
      "[10, 40] }\n";
  double few = run(text, 0).link_s.mean, many = run(text, 1).link_s.mean;
  ck_assert_double_gt(many, 2 * few);
  ck_assert_double_lt(many, 8 * few);
}

/* The hidden states of a split without passes load the user's link: 8 bits x 100 bytes x (10 + 9) rows at 1 Mbit/s. */
LP_TEST(hidden_states_on_the_air) {
  lp_sim_scenario *scenario =
      scenario_of("simulate: u\nrequests: 40\narrivals: { every: 100s }\nbackhaul: 0\ntoken_bytes: 0\ntasks: [{ "
                  "class: a, prompt: 10, tokens: 10 }]\nlink: { up: 1Mbit/s, down: 1Mbit/s }\npolicies: "
                  "[edge-only, split-only]\nsplit: { passes: { rows: [1], ms: [1] }, worker: { rows: [1], "
                  "ms: [1] }, link: { row_bytes: 100 } }\n");
  lp_sim_result result;
  make_unit_service(scenario);
  scenario->service->at[LP_SITE_SPLIT].model = "split";
  scenario->station[LP_SITE_SPLIT].pass.count = 0; /* figures instead */
  ck_assert_int_eq(lp_sim_run(scenario, NULL, &result, NULL), LP_OK);
  ck_assert_double_eq_tol(result.point[0].link_s.mean, 0, 1e-12);
  ck_assert_double_eq_tol(result.point[1].link_s.mean, 19 * 800 / 1e6, 1e-12);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
}

/* Rows of prompts may take other times: a pass over both kinds takes the sum, less the time of one row. */
LP_TEST(times_of_prompts) {
  double rows[] = {1, 11}, seconds[] = {0.010, 0.020}, prompts[] = {0.004, 0.044};
  const lp_sim_times apart = {2, rows, seconds, prompts}, alike = {2, rows, seconds, NULL};
  ck_assert_double_eq_tol(lp_sim_pass_s(&apart, 6, 0), 0.015, 1e-12);
  ck_assert_double_eq_tol(lp_sim_pass_s(&apart, 0, 6), 0.024, 1e-12);
  ck_assert_double_eq_tol(lp_sim_pass_s(&apart, 6, 21), 0.015 + 0.084 - 0.004, 1e-12);
  ck_assert_double_eq_tol(lp_sim_pass_s(&alike, 6, 5), 0.020, 1e-12);
}
