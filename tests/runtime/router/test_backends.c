/* The backends of the routes: constraints, estimates, corrections by experience, and invalid files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/router/backends.h"
#include "tests/suite.h"

static lp_backends two(void) {
  lp_backends backends = {.up_bps = INFINITY, .down_bps = INFINITY, .token_bytes = 4};
  backends.of[LP_ROUTE_EDGE] = (lp_route_backend){
      .there = true, .healthy = true, .model = {.ttft_s = 0.2, .tpot_s = 0.01}, .context = 2048, .slots = 2};
  backends.of[LP_ROUTE_CLOUD] = (lp_route_backend){
      .there = true, .healthy = true, .model = {.ttft_s = 0.4, .tpot_s = 0.03}, .backhaul_s = 0.1, .usd_per_mtok = 10};
  return backends;
}

static const lp_demand plain = {.prompt_tokens = 100, .tokens = 101, .budget_usd = INFINITY};

static void expect_admitted(const lp_backends *backends, const lp_demand *demand, unsigned offered, const char *said) {
  lp_buf why = {0};
  ck_assert_uint_eq(lp_backends_admit(backends, demand, &why), offered);
  ck_assert_msg(strstr(lp_buf_text(&why), said) != NULL, "'%s' says nothing of '%s'", lp_buf_text(&why), said);
  lp_buf_free(&why);
}

LP_TEST(constraints_say_what_speaks_against_a_route) {
  enum { EDGE = 1u << LP_ROUTE_EDGE, CLOUD = 1u << LP_ROUTE_CLOUD };
  lp_backends backends = two();
  expect_admitted(&backends, &plain, EDGE | CLOUD, "split: is not configured");
  lp_demand demand = plain;
  demand.local_only = true;
  expect_admitted(&backends, &demand, EDGE, "cloud: the request may not leave the edge; split");
  demand = plain;
  demand.most_tokens = 2000;
  expect_admitted(&backends, &demand, CLOUD, "edge: 2100 tokens do not fit a context of 2048");
  demand.most_tokens = 1948; /* just fits */
  expect_admitted(&backends, &demand, EDGE | CLOUD, "");
  demand = plain;
  demand.budget_usd = 0.002;
  expect_admitted(&backends, &demand, EDGE, "cloud: costs up to 0.00201 USD, the budget is 0.002 USD");
  backends.of[LP_ROUTE_EDGE].healthy = false;
  expect_admitted(&backends, &plain, CLOUD, "edge: is down");
  expect_admitted(&backends, &demand, 0, "edge: is down; cloud: costs");
}

/* Of the places that may answer, one that has no room for the prompt tells that it is too long. */
LP_TEST(prompts_are_too_long_for_places_that_may_answer) {
  lp_backends backends = two();
  lp_demand demand = plain;
  demand.most_tokens = 2000;
  ck_assert(!lp_backends_is_too_long(&backends, &plain));
  ck_assert(lp_backends_is_too_long(&backends, &demand));
  backends.of[LP_ROUTE_EDGE].healthy = false;
  ck_assert(!lp_backends_is_too_long(&backends, &demand));
  backends.of[LP_ROUTE_CLOUD].context = 2048;
  ck_assert(lp_backends_is_too_long(&backends, &demand));
  demand.local_only = true;
  ck_assert(!lp_backends_is_too_long(&backends, &demand));
}

LP_TEST(delays_are_queue_service_backhaul_and_air) {
  lp_backends backends = two();
  lp_estimator estimator = lp_estimator_make(0, 0);
  double wait[LP_ROUTE_COUNT], delay[LP_ROUTE_COUNT];
  lp_delay_estimate(&backends, &estimator, &plain, 0, wait, delay);
  ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], 0.2 + 100 * 0.01, 1e-12);
  ck_assert_double_eq_tol(delay[LP_ROUTE_CLOUD], 0.4 + 100 * 0.03 + 0.1, 1e-12);
  ck_assert_double_eq(delay[LP_ROUTE_SPLIT], 0);
  backends.up_bps = 3200; /* 100 tokens of 32 bits: 1 s */
  backends.down_bps = 6464;
  for (int i = 0; i < 5; i++)
    lp_estimator_begin(&estimator, &backends, &plain, LP_ROUTE_EDGE);
  lp_delay_estimate(&backends, &estimator, &plain, 0, wait, delay);
  /* five requests are at the backend, two at a time */
  ck_assert_double_eq_tol(wait[LP_ROUTE_EDGE], 4 * 1.2 / 2, 1e-12);
  ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], 2.4 + 1.2 + 1 + 0.5, 1e-12);
  lp_demand own = plain;
  own.up_bps = 32000; /* the user's own link: a tenth, a twentieth */
  own.down_bps = 129280;
  lp_delay_estimate(&backends, &estimator, &own, 0, wait, delay);
  ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], 2.4 + 1.2 + 0.1 + 0.025, 1e-12);
  for (int i = 0; i < 5; i++)
    lp_estimator_end(&estimator, &backends, &plain, LP_ROUTE_EDGE, 0, 1.2);
  lp_delay_estimate(&backends, &estimator, &plain, 0, wait, delay);
  ck_assert_double_eq(wait[LP_ROUTE_EDGE], 0);
}

LP_TEST(a_user_of_a_radio_profile_has_its_own_rates) {
  double up[] = {3200, 32000}, down[] = {6464, 129280}, wait[LP_ROUTE_COUNT], delay[LP_ROUTE_COUNT];
  lp_backends backends = two();
  backends.up_bps = backends.down_bps = 1e12;
  backends.users = 2;
  backends.user_up_bps = up;
  backends.user_down_bps = down;
  lp_estimator estimator = lp_estimator_make(0, 0);
  const double want[] = {1.2, 1.2 + 1 + 0.5, 1.2 + 0.1 + 0.025};
  lp_demand demand = plain;
  for (demand.user = 0; demand.user <= 2; demand.user++) {
    lp_delay_estimate(&backends, &estimator, &demand, 0, wait, delay);
    ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], want[demand.user], 1e-6);
    ck_assert_int_eq(lp_backends_check_user(&backends, demand.user, LP_LOC_NONE, NULL), LP_OK);
  }
  ck_assert_int_eq(lp_backends_check_user(&backends, 3, LP_LOC_NONE, NULL), LP_FAILED);
  demand.user = 1;
  demand.up_bps = demand.down_bps = 1e12; /* what the client says comes first */
  lp_delay_estimate(&backends, &estimator, &demand, 0, wait, delay);
  ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], 1.2, 1e-6);
}

LP_TEST(experience_corrects_the_figures_and_is_forgotten) {
  lp_backends backends = two();
  lp_estimator estimator = lp_estimator_make(0.5, 100);
  double wait[LP_ROUTE_COUNT], delay[LP_ROUTE_COUNT];
  for (int i = 0; i < 20; i++) {
    lp_estimator_begin(&estimator, &backends, &plain, LP_ROUTE_EDGE);
    lp_estimator_end(&estimator, &backends, &plain, LP_ROUTE_EDGE, 10, 3.6); /* three times as long as it says */
  }
  lp_delay_estimate(&backends, &estimator, &plain, 10, wait, delay);
  ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], 3.6, 1e-4);
  lp_delay_estimate(&backends, &estimator, &plain, 110, wait, delay);
  ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], 2.4, 1e-4); /* half of the excess */
  lp_delay_estimate(&backends, &estimator, &plain, 2010, wait, delay);
  ck_assert_double_eq_tol(delay[LP_ROUTE_EDGE], 1.2, 1e-4);
  lp_estimator_begin(&estimator, &backends, &plain, LP_ROUTE_CLOUD);
  lp_estimator_end(&estimator, &backends, &plain, LP_ROUTE_CLOUD, 10, -1); /* failed: tells no time */
  ck_assert_double_eq(estimator.of[LP_ROUTE_CLOUD].ratio, 1);
  ck_assert_int_eq(estimator.of[LP_ROUTE_CLOUD].here, 0);
}

LP_TEST(a_queue_is_named_by_what_it_costs) {
  ck_assert_ptr_null(lp_queue_keyword(0, 13, 31));
  ck_assert_str_eq(lp_queue_keyword(4, 17, 31), "queue short");
  ck_assert_str_eq(lp_queue_keyword(5, 18, 31), "queue middle");
  ck_assert_str_eq(lp_queue_keyword(9, 22, 31), "queue long");
  ck_assert_str_eq(lp_queue_keyword(18, 31, 31), "queue overlong");
  ck_assert_ptr_null(lp_queue_keyword(1, 32, 31)); /* the queue makes them equal */
  ck_assert_ptr_null(lp_queue_keyword(1, 40, 31)); /* the cloud is quicker at any rate */
}

static char path[] = "/tmp/llmpart-backends-XXXXXX";

static lp_status load(const char *text, lp_backends **out, lp_diag *diag) {
  memset(path + strlen(path) - 6, 'X', 6);
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  FILE *to = fdopen(file, "w");
  ck_assert_ptr_nonnull(to);
  (void)fputs(text, to);
  (void)fclose(to);
  lp_status status = lp_backends_load(path, out, diag);
  (void)remove(path);
  return status;
}

LP_TEST(a_radio_profile_gives_rates) {
  lp_diag *diag = lp_diag_create();
  lp_backends *backends = NULL;
  ck_assert_int_eq(load("service: llama3\nlink: { radio: two-cell, users: 5 }\n", &backends, diag), LP_OK);
  ck_assert_int_eq(backends->users, 5);
  int slower = 0, faster = 0; /* than the median of five users */
  for (int i = 0; i < 5; i++) {
    slower += backends->user_up_bps[i] < backends->up_bps;
    faster += backends->user_down_bps[i] > backends->down_bps;
  }
  ck_assert_int_eq(slower, 2);
  ck_assert_int_eq(faster, 2);
  lp_backends_free(backends);
  static const char *const refused[] = {"{ radio: two-cell, up: 1Mbit/s }", "{ users: 5 }", "{ radio: none-such }"};
  for (size_t i = 0; i < LP_COUNT(refused); i++) {
    char text[128];
    (void)snprintf(text, sizeof text, "service: llama3\nlink: %s\n", refused[i]);
    ck_assert_int_eq(load(text, &backends, diag), LP_FAILED);
  }
  lp_diag_free(diag);
}

LP_TEST(a_file_says_what_is_there) {
  lp_diag *diag = lp_diag_create();
  lp_backends *backends = NULL;
  ck_assert_int_eq(load("service: llama3\nbackhaul: 50ms\nedge: { context: 8192, slots: 8 }\n"
                        "cloud: { usd_per_mtok: 15, down: true }\nlink: { up: 10Mbit/s }\n",
                        &backends, diag),
                   LP_OK);
  ck_assert_int_eq(backends->of[LP_ROUTE_EDGE].slots, 8);
  ck_assert_str_eq(backends->of[LP_ROUTE_EDGE].model.model, "Llama-3-8B");
  ck_assert_double_eq(backends->of[LP_ROUTE_CLOUD].backhaul_s, 0.05);
  ck_assert(!backends->of[LP_ROUTE_CLOUD].healthy);
  ck_assert(!backends->of[LP_ROUTE_SPLIT].there);
  ck_assert_double_eq(backends->up_bps, 1e7);
  lp_backends_free(backends);
  lp_diag_free(diag);
}

LP_TEST(a_bad_file_is_refused_with_its_line) {
  static const struct {
    const char *text, *said;
    int line;
  } bad[] = {
      {"edge: { slots: 8 }\n", "service", 1},
      {"service: llama3\nedge:\n  slots: 0\n", "'slots'", 3},
      {"service: llama3\nedge:\n  contxt: 8\n", "'contxt'", 3},
      {"service: llama3\ncloud: 7\n", "cloud", 2},
      {"service: llama3\n\nsplit_plan: { slots: 1 }\n", "there is no 'split'", 3},
      {"service: llama3\nlink: { up: fast }\n", "'up'", 2},
  };
  for (size_t i = 0; i < LP_COUNT(bad); i++) {
    lp_diag *diag = lp_diag_create();
    lp_backends *backends = NULL;
    ck_assert_int_eq(load(bad[i].text, &backends, diag), LP_FAILED);
    const lp_diag_entry *entry = lp_diag_get(diag, 0);
    ck_assert_msg(strstr(entry->text, bad[i].said) && entry->loc.line == bad[i].line, "%zu: line %d: %s", i,
                  (int)entry->loc.line, entry->text);
    lp_diag_free(diag);
  }
}
