/* Limits of keys, at given times. */
#include "runtime/serve/limits.h"
#include "tests/suite.h"

static lp_serve_key keys[] = {{.name = "few", .key = "a", .requests = 60},
                              {.name = "short", .key = "ab", .tokens = 600},
                              {.name = "narrow", .key = "b", .parallel = 2},
                              {.key = "free"}};
static const lp_serve_config config = {.keys = {keys, 4}};
enum { FEW, SHORT, NARROW, FREE };

static bool takes(lp_limits *limits, int32_t key, double now_ms, double *retry_s) {
  double ignored;
  return !lp_limits_begin(limits, &keys[key], 1, now_ms, retry_s ? retry_s : &ignored);
}

LP_TEST(keys_are_found) {
  static const char *const none[] = {"", "c", "aa", "abb", "A", "fre", "freee"};
  for (size_t i = 0; i < LP_COUNT(none); i++)
    ck_assert_ptr_null(lp_limits_find_key(&config, none[i]));
  ck_assert_ptr_null(lp_limits_find_key(&config, NULL));
  for (int32_t i = 0; i < 4; i++)
    ck_assert_ptr_eq(lp_limits_find_key(&config, keys[i].key), &keys[i]);
}

/* Sixty at once, then one each second; what is not used for a minute is not saved. */
LP_TEST(requests_per_minute) {
  lp_limits *limits = lp_limits_create();
  double retry_s = 0, now_ms = 5e6;
  for (int i = 0; i < 60; i++) {
    ck_assert(takes(limits, FEW, now_ms, NULL));
    lp_limits_end(limits, &keys[FEW], 1, now_ms, 1000000);
  }
  ck_assert(!takes(limits, FEW, now_ms, &retry_s));
  ck_assert_double_eq_tol(retry_s, 1, 1e-9);
  ck_assert(!takes(limits, FEW, now_ms + 400, &retry_s));
  ck_assert_double_eq_tol(retry_s, 0.6, 1e-9);
  ck_assert(takes(limits, FEW, now_ms + 1001, NULL));
  ck_assert(!takes(limits, FEW, now_ms + 1002, NULL));
  now_ms += 3600e3;
  for (int i = 0; i < 60; i++)
    ck_assert(takes(limits, FEW, now_ms, NULL));
  ck_assert(!takes(limits, FEW, now_ms, NULL));
  ck_assert(takes(limits, FREE, now_ms, NULL));
  lp_limits_free(limits);
}

/* An answer may overdraw the tokens; the key then waits until they have come back. */
LP_TEST(tokens_per_minute) {
  lp_limits *limits = lp_limits_create();
  double retry_s = 0, now_ms = 1e3;
  ck_assert(takes(limits, SHORT, now_ms, NULL));
  ck_assert(takes(limits, SHORT, now_ms, NULL)); /* nothing is used before the first one ends */
  lp_limits_end(limits, &keys[SHORT], 1, now_ms, 500);
  ck_assert(takes(limits, SHORT, now_ms, NULL));
  lp_limits_end(limits, &keys[SHORT], 1, now_ms, 400);
  ck_assert(!takes(limits, SHORT, now_ms, &retry_s));
  ck_assert_double_eq_tol(retry_s, 30.1, 1e-9); /* 301 tokens at 10 a second */
  ck_assert(!takes(limits, SHORT, now_ms + 29e3, NULL));
  ck_assert(takes(limits, SHORT, now_ms + 30.2e3, NULL));
  lp_limits_free(limits);
}

LP_TEST(requests_at_a_time) {
  lp_limits *limits = lp_limits_create();
  lp_buf metrics = {0};
  ck_assert(takes(limits, NARROW, 0, NULL));
  ck_assert(takes(limits, NARROW, 0, NULL));
  ck_assert(!takes(limits, NARROW, 0, NULL));
  lp_limits_end(limits, &keys[NARROW], 1, 0, 1);
  ck_assert(takes(limits, NARROW, 0, NULL));
  lp_limits_print(limits, &config.keys, &metrics);
  static const char *const wanted[] = {"# TYPE llmpart_limited_total counter\n", "{key=\"narrow\"} 1\n",
                                       "# TYPE llmpart_key_requests gauge\n", "_requests{key=\"narrow\"} 2\n"};
  const char *at = lp_buf_text(&metrics);
  for (size_t i = 0; i < LP_COUNT(wanted); i++)
    ck_assert_msg((at = strstr(at, wanted[i])) != NULL, "%s is missing: %s", wanted[i], lp_buf_text(&metrics));
  lp_buf_free(&metrics);
  lp_limits_free(limits);
}

/* Each answer counts as a request, and more than the key may ever have are refused for good. */
LP_TEST(answers_count) {
  lp_limits *limits = lp_limits_create();
  double retry_s = 0;
  ck_assert_ptr_null(lp_limits_begin(limits, &keys[FEW], 59, 1e3, &retry_s));
  ck_assert_ptr_nonnull(lp_limits_begin(limits, &keys[FEW], 2, 1e3, &retry_s));
  ck_assert_double_eq_tol(retry_s, 1, 1e-9);
  ck_assert_ptr_nonnull(lp_limits_begin(limits, &keys[FEW], 61, 1e3, &retry_s));
  ck_assert_double_infinite(retry_s);
  ck_assert_ptr_nonnull(lp_limits_begin(limits, &keys[NARROW], 3, 1e3, &retry_s));
  ck_assert_double_infinite(retry_s);
  ck_assert_ptr_null(lp_limits_begin(limits, &keys[NARROW], 2, 1e3, &retry_s));
  ck_assert_ptr_nonnull(lp_limits_begin(limits, &keys[NARROW], 1, 1e3, &retry_s));
  ck_assert_double_finite(retry_s);
  lp_limits_end(limits, &keys[NARROW], 2, 1e3, 0);
  ck_assert_ptr_null(lp_limits_begin(limits, &keys[NARROW], 2, 1e3, &retry_s));
  lp_limits_free(limits);
}

/* What a key has used counts under limits that it gets later; without a limit nothing is used. */
LP_TEST(limits_change) {
  lp_limits *limits = lp_limits_create();
  lp_serve_key more = keys[FEW], none = keys[FEW];
  double retry_s = 0;
  more.requests = 62;
  none.requests = 0;
  ck_assert_ptr_null(lp_limits_begin(limits, &keys[FEW], 60, 1e3, &retry_s));
  ck_assert_ptr_nonnull(lp_limits_begin(limits, &more, 1, 1e3, &retry_s));
  ck_assert_ptr_null(lp_limits_begin(limits, &more, 62, 61e3, &retry_s));
  ck_assert_ptr_null(lp_limits_begin(limits, &keys[FEW], 60, 122e3, &retry_s)); /* at most what it may have now */
  ck_assert_ptr_nonnull(lp_limits_begin(limits, &keys[FEW], 1, 122e3, &retry_s));
  ck_assert_ptr_null(lp_limits_begin(limits, &none, 1000, 122e3, &retry_s));
  ck_assert_ptr_null(lp_limits_begin(limits, &keys[FEW], 60, 122e3, &retry_s));
  lp_limits_free(limits);
}
