/* Answers of the cloud's API: events in pieces of any size, limits, and answers that are none. A stand-in for libcurl
 * gives the bytes. */
#include <stdlib.h>
#include <string.h>

#include "runtime/serve/place/site.h"
#include "tests/runtime/serve/canned_curl.h"
#include "tests/suite.h"

static lp_serve_config config;
static lp_completion request;
static lp_usage usage;
static lp_diag *diag;
static volatile int stop;

/* What the client got. */
static struct {
  lp_buf text[4], calls;
  size_t pieces, logprobs;
  int64_t most; /* of pieces; then the client leaves */
} got;

static bool take(void *user, const lp_piece *piece) {
  (void)user;
  lp_buf_puts(&got.text[piece->choice], piece->text);
  LP_FOR_EACH(const lp_tool_call, call, piece->calls, piece->call_count) {
    lp_buf_printf(&got.calls, "%d:%s:%s:%s;", (int)call->index, call->id ? call->id : "", call->name ? call->name : "",
                  call->arguments);
  }
  got.logprobs += piece->logprob_count;
  return (int64_t)++got.pieces < got.most;
}

static void setup(void) {
  config = (lp_serve_config){.url = "http://cloud/v1", .model = "large", .max_tokens = 64, .timeout_ms = 1e7};
  config.total_ms = 1e7;
  diag = lp_diag_create();
  stop = 0;
  got.most = 1000;
}

static void teardown(void) {
  for (size_t i = 0; i < LP_COUNT(got.text); i++)
    lp_buf_free(&got.text[i]);
  lp_buf_free(&got.calls);
  lp_completion_free(&request);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

static const char
    chat[] = "{\"model\":\"cloud\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"keywords\":\"k\"}",
    chat_two[] = "{\"model\":\"cloud\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"n\":2,\"logprobs\":true}",
    plain[] = "{\"model\":\"cloud\",\"prompt\":\"a\",\"max_tokens\":5}";

static lp_status ask(const char *body, const char *answer) {
  lp_site_server *site = NULL;
  for (size_t i = 0; i < LP_COUNT(got.text); i++)
    lp_buf_clear(&got.text[i]);
  lp_buf_clear(&got.calls);
  got.pieces = got.logprobs = 0;
  lp_diag_clear(diag);
  lp_completion_free(&request);
  ck_assert_int_eq(lp_completion_read(&config, body != plain, body, strlen(body), &request, diag), LP_OK);
  ck_assert_int_eq(lp_site_api(&config, &site, diag), LP_OK);
  canned.data = answer;
  canned.size = strlen(answer);
  lp_status status = site->complete(site, &request, &stop, take, NULL, &usage, diag);
  lp_site_state state;
  site->tell(site, &state);
  ck_assert(state.up && state.requests == 0);
  site->close(site);
  return status;
}

static void expect_text(int choice, const char *text) {
  ck_assert_str_eq(lp_buf_text(&got.text[choice]), text);
}

/* The answer fails with this status of HTTP, and the diagnostic has the text. */
static void expect_failure(const char *body, long http, const char *answer, lp_status status, const char *text) {
  canned.status = http;
  ck_assert_int_eq(ask(body, answer), status);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const char *told = lp_diag_get(diag, 0)->text;
  ck_assert_msg(strstr(told, text), "wanted '%s' in '%s'", text, told);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Events may be cut anywhere. Comments, blank lines, carriage returns and other fields do not matter. */
LP_LOOP_TEST(a_chat_in_steps, 0, 12) {
  canned.step = (size_t)_i;
  ck_assert_int_eq(
      ask(chat, ": hello\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\r\n\r\n"
                "event: x\ndata:{\"choices\":[{\"delta\":{\"content\":\"Once \\u00e9\"}}]}\n\n"
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" upon\"},\"finish_reason\":null}]}\n\n"
                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9,"
                "\"prompt_tokens_details\":{\"cached_tokens\":3}}}\n\ndata: [DONE]\n\n"),
      LP_OK);
  expect_text(0, "Once \xc3\xa9 upon");
  ck_assert_uint_eq(got.pieces, 2);
  ck_assert_int_eq(usage.finish[0], LP_FINISH_LENGTH);
  ck_assert(usage.prompt_tokens == 7 && usage.tokens == 9 && usage.cached_tokens == 3);
}

/* Without the number of tokens the events with text count; the prompt's stays unknown. */
LP_TEST(a_completion_without_usage) {
  ck_assert_int_eq(ask(plain, "data: {\"choices\":[{\"text\":\"a\"}]}\ndata: {\"choices\":[{\"text\":\"\"}]}\n"
                              "data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"stop\"}]}\ndata: [DONE]\n"),
                   LP_OK);
  expect_text(0, "ab");
  ck_assert(usage.tokens == 2 && usage.prompt_tokens == -1 && usage.finish[0] == LP_FINISH_STOP);
}

LP_TEST(choices_with_tokens) {
  ck_assert_int_eq(
      ask(chat_two,
          "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"},\"finish_reason\":\"content_filter\","
          "\"logprobs\":{\"content\":[{\"token\":\"b\",\"logprob\":-1.5}]}},{\"index\":0,\"delta\":{\"content\":\"a\"}}"
          "]}\n"
          "data: [DONE]\n"),
      LP_OK);
  expect_text(0, "a");
  expect_text(1, "b");
  ck_assert_uint_eq(got.logprobs, 1);
  ck_assert(usage.finish[0] == LP_FINISH_STOP && usage.finish[1] == LP_FINISH_FILTER);
  ck_assert_int_eq(
      ask(chat, "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"error\"}]}\ndata: [DONE]\n"),
      LP_OK);
  ck_assert_int_eq(usage.finish[0], LP_FINISH_ERROR);
  expect_failure(chat_two, 200, "data: {\"choices\":[{\"index\":2,\"delta\":{\"content\":\"c\"}}]}\n", LP_FAILED,
                 "a choice that was not asked for");
  expect_failure(chat_two, 200, "data: {\"choices\":[{\"index\":-1,\"delta\":{\"content\":\"c\"}}]}\n", LP_FAILED,
                 "a choice that was not asked for");
  ck_assert_uint_eq(got.pieces, 0);
}

LP_TEST(calls_of_tools) {
  ck_assert_int_eq(
      ask(chat,
          "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"f\","
          "\"arguments\":\"{\"}}]}}]}\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":"
          "{\"arguments\":\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\ndata: [DONE]\n"),
      LP_OK);
  ck_assert_str_eq(lp_buf_text(&got.calls), "0:i:f:{;1:::};");
  ck_assert_int_eq(usage.finish[0], LP_FINISH_TOOLS);
}

/* ---- answers that end early -------------------------------------------------------------------------------------- */

LP_TEST(no_answers) {
  expect_failure(plain, 200, "data: {\"choices\":[{\"text\":\"a\"}]}\n", LP_FAILED, "the answer is incomplete");
  expect_text(0, "a");
  expect_failure(plain, 200, "data: {oh no\n\n", LP_FAILED, "an event is not JSON");
  expect_failure(plain, 200, "data: {\"error\":{\"message\":\"too busy\"}}\n", LP_FAILED, "too busy");
  expect_failure(plain, 500, "data: {\"choices\":[{\"text\":\"a\"}]}\n", LP_FAILED, "answers with HTTP status 500");
  ck_assert_uint_eq(got.pieces, 0);
  expect_failure(plain, 404, "not here", LP_FAILED, "answers with HTTP status 404");
  expect_failure(plain, 400, "the prompt is too long", LP_USAGE, "the prompt is too long");
  ck_assert(!usage.is_too_long);
  expect_failure(plain, 422, "the prompt is odd", LP_USAGE, "the prompt is odd");
  canned.code = CURLE_COULDNT_CONNECT;
  expect_failure(plain, 200, "", LP_FAILED, "could not connect");
}

/* A prompt beyond the cloud's context, as OpenAI, llama.cpp and vLLM say it, may fit another place. */
LP_TEST(a_context_that_is_too_short) {
  static const char *const bodies[] = {
      ("{\"error\":{\"message\":\"too many tokens\",\"type\":\"invalid_request_error\",\"param\":\"messages\","
       "\"code\":\"context_length_exceeded\"}}"),
      "{\"error\":{\"code\":400,\"message\":\"too many tokens\",\"type\":\"exceed_context_size_error\",\"n_ctx\":64}}",
      "{\"object\":\"error\",\"message\":\"This model's maximum context length is 64, too many tokens\",\"code\":400}"};
  for (size_t i = 0; i < LP_COUNT(bodies); i++) {
    expect_failure(plain, 400, bodies[i], LP_FAILED, "too many tokens");
    ck_assert(usage.is_too_long);
  }
  expect_failure(plain, 400, "{\"error\":{\"message\":\"a\",\"code\":\"other\"}}", LP_USAGE, "other");
  ck_assert(!usage.is_too_long);
  expect_failure(plain, 503, bodies[0], LP_FAILED, "503");
  ck_assert(!usage.is_too_long);
}

/* Nobody waits for the rest of an answer. */
LP_TEST(a_client_that_leaves) {
  got.most = 1;
  ck_assert_int_eq(ask(plain, "data: {\"choices\":[{\"text\":\"a\"}]}\ndata: {\"choices\":[{\"text\":\"b\"}]}\n"),
                   LP_OK);
  expect_text(0, "a");
  got.most = 2; /* the first choice of two ends with its second piece */
  ck_assert_int_eq(ask(chat_two, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}},{\"delta\":{\"content\":\"b\"}},"
                                 "{\"delta\":{\"content\":\"c\"}},{\"index\":1,\"delta\":{\"content\":\"d\"}}]}\n"
                                 "data: {\"choices\":[{\"delta\":{\"content\":\"e\"}}]}\n"),
                   LP_OK);
  expect_text(0, "ab");
  expect_text(1, "d");
}

LP_TEST(a_server_that_ends) {
  stop = 1;
  ck_assert_int_eq(ask(plain, "data: {\"choices\":[{\"text\":\"a\"}]}\n"), LP_OK);
  ck_assert_uint_eq(got.pieces, 0);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static char *repeat(const char *line, size_t bytes) {
  lp_buf out = {0};
  while (out.size < bytes)
    lp_buf_puts(&out, line);
  return out.data;
}

LP_TEST(endless_answers) {
  char *events = repeat(": comment\n", (1 << 20) + 5 * (1 << 12) + 1), *line = repeat("data: a", (1 << 20) + 2000),
       *body = repeat("sorry ", 1 << 17);
  canned.step = 1000;
  expect_failure(plain, 200, events, LP_FAILED, "the answer is too long");
  expect_failure(plain, 200, line, LP_FAILED, "the answer is too long");
  expect_failure(plain, 500, body, LP_FAILED, "the answer is too long (HTTP status 500)");
  ck_assert_uint_le(canned.taken, 1 << 16); /* the rest is not read */
  events[(1 << 20) + 5 * (1 << 12)] = 0;    /* as long as it may be, and no answer */
  expect_failure(plain, 200, events, LP_FAILED, "the answer is incomplete");
  free(events);
  free(line);
  free(body);
}

/* Comments are no progress. */
LP_TEST(slow_answers) {
  canned.step = 10;
  canned.pause_us = 20000;
  config.timeout_ms = 5;
  expect_failure(plain, 200, ": comment\n: comment\n", LP_FAILED, "no progress for 0.005 s");
  config.timeout_ms = 1e7;
  config.total_ms = 5;
  expect_failure(plain, 200, "data: {}\n\ndata: {}\n\n", LP_FAILED, "has taken more than 0.005 s");
}

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

/* The client's members go on, except those that are for this server. */
LP_TEST(the_request) {
  ck_assert_int_eq(ask(chat, "data: [DONE]\n"), LP_OK);
  ck_assert_str_eq(canned.request,
                   "{\"model\":\"large\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true,"
                   "\"stream_options\":{\"include_usage\":true},\"max_tokens\":64}");
}
