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

/* Weighs a request for 100 tokens; `why` may be NULL. */
static lp_router_request weigh(bool local_only, lp_buf *why) {
  const lp_completion asked = {
      .prompt = "Once", .max_tokens = 100, .choices = 1, .local_only = local_only, .budget_usd = INFINITY};
  lp_router_request request = {.offered = BOTH};
  lp_buf keywords = {0};
  lp_estimates_weigh(estimates, &asked, &demand, &request, &keywords, why);
  lp_buf_free(&keywords);
  return request;
}

static void answer(lp_route route, double seconds) {
  const lp_usage usage = {.prompt_tokens = 1, .tokens = 100};
  lp_estimates_begin(estimates, &demand, route);
  lp_estimates_end(estimates, &demand, route, &usage, seconds);
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

LP_TEST(hard_constraints) {
  lp_buf why = {0};
  ck_assert_uint_eq(weigh(true, &why).offered, 1u << LP_ROUTE_EDGE);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&why), "cloud: the request may not leave the edge"));
  lp_buf_free(&why);
}
