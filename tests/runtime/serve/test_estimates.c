/* Constraints and estimates of places, which learn from outcomes. */
#include <math.h>
#include <string.h>

#include "runtime/serve/estimates.h"
#include "tests/suite.h"

enum { BOTH = 1u << LP_ROUTE_EDGE | 1u << LP_ROUTE_CLOUD };

static const lp_serve_config config = {.edge = {.bundle = "a", .parallel = 1}, .url = "http://b"};
static lp_estimates *estimates;
static lp_demand demand;

static void setup(void) {
  ck_assert_int_eq(lp_estimates_open(&config, &estimates, NULL), LP_OK);
}

static void teardown(void) {
  lp_estimates_close(estimates);
}

LP_CASE(.setup = setup, .teardown = teardown);

static lp_completion completion(const char *keywords, int64_t tokens) {
  return (lp_completion){
      .prompt = "Once", .keywords = keywords, .max_tokens = tokens, .choices = 1, .budget_usd = INFINITY};
}

/* Weighs a request for 100 tokens; `why` may be NULL. */
static lp_router_request weigh(bool local_only, lp_buf *why) {
  lp_completion asked = completion(NULL, 100);
  asked.local_only = local_only;
  lp_router_request request = {.offered = BOTH};
  lp_buf keywords = {0};
  lp_estimates_weigh(estimates, &asked, &demand, &request, &keywords, why);
  lp_buf_free(&keywords);
  return request;
}

static void answer(lp_route route, double seconds) {
  const lp_usage usage = {.prompt_tokens = 1, .tokens = 100};
  lp_estimates_begin(estimates, &demand, route);
  const lp_completion asked = completion(NULL, 100);
  lp_estimates_end(estimates, &asked, &demand, route, &usage, seconds);
}

LP_TEST(learns_from_outcomes) {
  lp_router_request request = weigh(false, NULL);
  ck_assert_double_eq(request.delay_s[LP_ROUTE_EDGE], request.delay_s[LP_ROUTE_CLOUD]);
  ck_assert_double_eq(request.delay_s[LP_ROUTE_SPLIT], 0); /* there is none */
  for (int i = 0; i < 40; i++) {
    answer(LP_ROUTE_EDGE, 0.5);
    answer(LP_ROUTE_CLOUD, 8);
  }
  request = weigh(false, NULL);
  ck_assert_double_eq_tol(request.delay_s[LP_ROUTE_EDGE], 0.5, 0.05);
  ck_assert_double_eq_tol(request.delay_s[LP_ROUTE_CLOUD], 8, 0.4);
  answer(LP_ROUTE_EDGE, -1); /* a failure says nothing of the time */
  request = weigh(false, NULL);
  ck_assert_double_eq_tol(request.delay_s[LP_ROUTE_EDGE], 0.5, 0.05);
}

LP_TEST(a_queue_delays) {
  double alone_s = weigh(false, NULL).delay_s[LP_ROUTE_EDGE];
  for (int i = 0; i < 3; i++)
    lp_estimates_begin(estimates, &demand, LP_ROUTE_EDGE);
  ck_assert_double_gt(weigh(false, NULL).delay_s[LP_ROUTE_EDGE], 3 * alone_s);
}

/* The sizes of answers are learned for each kind of request, and told to the router of those without own keywords. */
LP_TEST(sizes_of_answers) {
  lp_completion brief = completion("chat, short prompt", 1000), tale = completion("text, prompt", 1000);
  lp_buf_puts(&brief.described, brief.keywords);
  for (int i = 0; i < 9; i++) {
    lp_estimates_end(estimates, &brief, &demand, LP_ROUTE_EDGE, &(lp_usage){.prompt_tokens = 1, .tokens = 15}, 1);
    lp_estimates_end(estimates, &tale, &demand, LP_ROUTE_EDGE, &(lp_usage){.prompt_tokens = 1, .tokens = 500}, 1);
  }
  lp_router_request request = {.offered = BOTH};
  lp_buf keywords = {0};
  lp_estimates_weigh(estimates, &brief, &demand, &request, &keywords, NULL);
  ck_assert_double_eq(demand.tokens, 15);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&keywords), ", about 16 tokens"));
  lp_buf_clear(&keywords);
  lp_estimates_weigh(estimates, &tale, &demand, &request, &keywords, NULL);
  ck_assert_double_eq(demand.tokens, 500);
  ck_assert_ptr_null(strstr(lp_buf_text(&keywords), "tokens"));
  tale.max_tokens = 100;
  lp_estimates_weigh(estimates, &tale, &demand, &request, &keywords, NULL);
  ck_assert_double_eq(demand.tokens, 100);
  lp_buf_free(&keywords);
  lp_buf_free(&brief.described);
}

LP_TEST(hard_constraints) {
  lp_buf why = {0};
  ck_assert_uint_eq(weigh(true, &why).offered, 1u << LP_ROUTE_EDGE);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&why), "cloud: the request may not leave the edge"));
  lp_buf_free(&why);
}
