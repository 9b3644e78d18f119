/* A dispatcher with a cloud's API: which failures count against a place, and which do not. A stand-in for libcurl gives
 * the answers. */
#include <string.h>

#include "runtime/serve/dispatch.h"
#include "tests/runtime/serve/canned_curl.h"
#include "tests/suite.h"

static lp_serve_config config = {.url = "http://cloud/v1",
                                 .model = "large",
                                 .max_tokens = 64,
                                 .timeout_ms = 1e7,
                                 .total_ms = 1e7,
                                 .policy.policy = "rule"};
static lp_dispatcher *dispatcher;
static lp_completion request;
static lp_dispatched out;
static lp_diag *diag;
static volatile int stop;

static void setup(void) {
  static const char body[] = "{\"model\":\"cloud\",\"prompt\":\"a\",\"max_tokens\":5}";
  diag = lp_diag_create();
  stop = 0;
  ck_assert_int_eq(lp_dispatcher_open(&config, NULL, &dispatcher, NULL, diag), LP_OK);
  ck_assert_int_eq(lp_completion_read(&config, false, body, strlen(body), &request, diag), LP_OK);
}

static void teardown(void) {
  lp_completion_free(&request);
  lp_dispatcher_close(dispatcher);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

static bool take(void *user, const lp_piece *piece) {
  lp_buf_puts(user, piece->text);
  return true;
}

/* Asks once; the diagnostic of a failure has the text `why`. */
static void ask(long http, const char *answer, lp_status status, const char *why) {
  lp_buf text = {0};
  lp_diag_clear(diag);
  canned.status = http;
  canned.data = answer;
  canned.size = strlen(answer);
  const lp_taker taker = {.sink = take, .user = &text};
  ck_assert_int_eq(lp_dispatch(dispatcher, &request, &stop, &taker, &out, diag), status);
  ck_assert_uint_eq(lp_diag_error_count(diag), status != LP_OK);
  if (status != LP_OK) ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, why));
  lp_buf_free(&text);
}

static const char good[] = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\ndata: [DONE]\n";

static bool is_up(void) {
  lp_site_state state;
  lp_dispatcher_tell(dispatcher, LP_ROUTE_CLOUD, &state);
  return state.up;
}

LP_TEST(only_what_is_there_is_offered) {
  ck_assert_uint_eq(lp_dispatcher_offered(dispatcher), 1u << LP_ROUTE_CLOUD);
  ck_assert_str_eq(lp_dispatcher_model(dispatcher, LP_ROUTE_CLOUD), "large");
  ck_assert_ptr_null(lp_dispatcher_model(dispatcher, LP_ROUTE_EDGE));
  ck_assert_ptr_null(lp_dispatcher_embedder(dispatcher));
  ask(200, good, LP_OK, NULL);
  ck_assert_int_eq(out.route, LP_ROUTE_CLOUD);
  ck_assert(!out.fell_back && out.usage.finish[0] == LP_FINISH_STOP);
}

/* A request that is wrong says nothing about the place. */
LP_TEST(wrong_requests_do_not_stop_a_place) {
  for (int i = 0; i < 5; i++)
    ask(400, "the prompt is odd", LP_USAGE, "cloud: ");
  ck_assert(is_up());
  ask(200, good, LP_OK, NULL);
}

LP_TEST(failures_in_a_row_stop_a_place) {
  for (int i = 0; i < 2; i++)
    ask(500, "broken", LP_FAILED, "500");
  ck_assert(is_up());
  ask(200, good, LP_OK, NULL); /* the count begins anew */
  for (int i = 0; i < 3; i++)
    ask(500, "broken", LP_FAILED, "500");
  ck_assert(!is_up());
  ck_assert_uint_eq(lp_dispatcher_up(dispatcher), 0);
  ask(200, good, LP_FAILED, "it has failed several times");
}

/* A server that ends abandons its requests; that one ended says nothing about the place. */
LP_TEST(a_server_that_ends) {
  for (int i = 0; i < 2; i++)
    ask(500, "broken", LP_FAILED, "500");
  stop = 1;
  ask(200, good, LP_OK, NULL);
  stop = 0;
  ck_assert(is_up());
  ask(500, "broken", LP_FAILED, "500");
  ck_assert(!is_up());
}
