/* When a server's load is beyond its prediction, and when it fits again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/serve/tracking.h"
#include "tests/suite.h"

static lp_tracking *tracking;
static double now_s;

static void setup(void) {
  tracking = lp_alloc(sizeof *tracking);
  tracking->since_s = now_s = 1000;
}

static void teardown(void) {
  free(tracking);
}

LP_CASE(.setup = setup, .teardown = teardown);

static lp_serve_prediction predicts(int figure, double value) {
  lp_serve_prediction out = {.window_s = 600};
  out.figure[figure] = value;
  return out;
}

/* So many requests, one each `apart_s`. */
static void serve(int count, double apart_s, double ttft_s, double tpot_s) {
  for (int i = 0; i < count; i++)
    lp_tracking_note(tracking, now_s += apart_s, ttft_s, tpot_s);
}

static bool holds(const lp_serve_prediction *prediction) {
  const bool before = lp_tracking_holds(tracking);
  ck_assert_int_eq(lp_tracking_judge(tracking, prediction, now_s, 0), before != lp_tracking_holds(tracking));
  return lp_tracking_holds(tracking);
}

LP_TEST(two_hundred_requests_say_more_than_fewer) {
  const lp_serve_prediction p95 = predicts(LP_PREDICTED_TTFT + 1, 1), p99 = predicts(LP_PREDICTED_TTFT + 2, 1);
  serve(199, 0.1, 9, NAN);
  ck_assert(holds(&p95));
  serve(1, 0.1, 9, NAN);
  ck_assert(!holds(&p95));
  memset(tracking->judged.beyond, 0, sizeof tracking->judged.beyond);
  ck_assert(holds(&p99));
  serve(799, 0.1, 9, NAN);
  ck_assert(holds(&p99));
  serve(1, 0.1, 9, NAN);
  ck_assert(!holds(&p99));
}

LP_TEST(percentiles_count_requests) {
  const lp_serve_prediction p95 = predicts(LP_PREDICTED_TTFT + 1, 1);
  serve(190, 0.1, 1, 5);
  serve(10, 0.1, 9, 5);
  ck_assert(holds(&p95)); /* 19 of 20 are within it */
  ck_assert_double_eq(tracking->judged.measured[LP_PREDICTED_TTFT], 1);
  ck_assert_double_eq(tracking->judged.measured[LP_PREDICTED_TTFT + 1], 1);
  ck_assert_double_eq(tracking->judged.measured[LP_PREDICTED_TTFT + 2], 9);
  ck_assert_double_eq(tracking->judged.measured[LP_PREDICTED_TPOT], 5);
  serve(1, 0.1, 9, NAN);
  ck_assert(!holds(&p95));
  ck_assert_double_eq(tracking->judged.measured[LP_PREDICTED_TTFT + 1], 9);
}

LP_TEST(times_that_are_not_there_do_not_count) {
  const lp_serve_prediction p50 = predicts(LP_PREDICTED_TPOT, 1);
  serve(199, 0.1, 1, 9);
  serve(1000, 0.1, NAN, NAN);
  ck_assert(holds(&p50));
  serve(1, 0.1, 1, 9);
  ck_assert(!holds(&p50));
}

/* Beyond above 1.25 times the prediction, and back at 1.1 times. */
LP_TEST(a_figure_does_not_flutter) {
  const lp_serve_prediction p50 = predicts(LP_PREDICTED_TTFT, 1);
  const struct {
    double ttft_s;
    bool holds;
  } steps[] = {{1.25, true}, {1.26, false}, {1.25, false}, {1.11, false}, {1.1, true}, {1.2, true}, {1.3, false}};
  for (size_t i = 0; i < LP_COUNT(steps); i++) {
    now_s += 601; /* the earlier ones have left the window */
    serve(200, 0.1, steps[i].ttft_s, NAN);
    ck_assert_int_eq(holds(&p50), steps[i].holds);
  }
}

LP_TEST(it_forgets_when_few_requests_are_left) {
  const lp_serve_prediction p50 = predicts(LP_PREDICTED_TTFT, 1);
  serve(200, 0.1, 9, NAN);
  ck_assert(!holds(&p50));
  now_s = 1000 + 0.1 * 100 + 600 - 0.05; /* a hundred and one are in it */
  ck_assert(!holds(&p50));
  ck_assert_int_eq(tracking->judged.requests, 101);
  now_s += 0.1;
  ck_assert(!holds(&p50));
  now_s += 0.1;
  ck_assert_int_eq(tracking->judged.requests, 100);
  ck_assert(holds(&p50));
}

LP_TEST(the_rate_is_that_of_the_window) {
  const lp_serve_prediction two = predicts(LP_PREDICTED_RATE, 2);
  serve(1500, 0.5, NAN, NAN);
  ck_assert(holds(&two));
  ck_assert_double_eq_tol(tracking->judged.measured[LP_PREDICTED_RATE], 2, 1e-9);
  ck_assert_double_eq(tracking->judged.span_s, 600);
  serve(1500, 0.41, NAN, NAN); /* 2.44 a second */
  ck_assert(holds(&two));
  serve(1600, 0.39, NAN, NAN); /* 2.56 */
  ck_assert(!holds(&two));
}

/* Since the server began, and of at most 4096 requests. */
LP_TEST(the_window_may_be_shorter) {
  const lp_serve_prediction two = predicts(LP_PREDICTED_RATE, 2);
  serve(200, 0.25, NAN, NAN);
  ck_assert(!holds(&two));
  ck_assert_double_eq(tracking->judged.span_s, 50);
  ck_assert_double_eq(tracking->judged.measured[LP_PREDICTED_RATE], 4);
  serve(6000, 0.0625, NAN, NAN);
  ck_assert(!holds(&two));
  ck_assert_double_eq(tracking->judged.measured[LP_PREDICTED_RATE], 16);
  ck_assert_double_eq(tracking->judged.span_s, 4095 * 0.0625);
}

LP_TEST(the_first_request_that_is_dropped_shortens_it) {
  const lp_serve_prediction two = predicts(LP_PREDICTED_RATE, 2);
  serve(4097, 0.125, NAN, NAN);
  ck_assert(!holds(&two));
  ck_assert_int_eq(tracking->judged.requests, 4095);
  ck_assert_double_eq(tracking->judged.span_s, 4095 * 0.125);
}

LP_TEST(the_share_of_passes_outlives_a_new_engine) {
  const lp_serve_prediction busy = predicts(LP_PREDICTED_BUSY, 0.1);
  (void)lp_tracking_judge(tracking, &busy, now_s, 2);
  serve(200, 0.1, NAN, NAN); /* from 1000.1 to 1020 */
  now_s = 1010.1;
  (void)lp_tracking_judge(tracking, &busy, now_s, 6);
  ck_assert_double_eq_tol(tracking->judged.measured[LP_PREDICTED_BUSY], 0.4, 1e-9);
  (void)lp_tracking_judge(tracking, &busy, now_s, 1); /* another engine, which was a second in passes */
  ck_assert_double_eq_tol(tracking->judged.measured[LP_PREDICTED_BUSY], 0.5, 1e-9);
  ck_assert(lp_tracking_holds(tracking)); /* it is only told */
}

LP_TEST(it_says_what_is_beyond) {
  lp_serve_prediction both = predicts(LP_PREDICTED_TTFT + 1, 0.25);
  lp_buf out = {0};
  both.figure[LP_PREDICTED_RATE] = 20;
  serve(300, 0.1, 0.5, NAN);
  ck_assert(!holds(&both));
  lp_tracking_say(tracking, &both, &out);
  ck_assert_str_eq(lp_buf_text(&out), "the load is beyond the prediction: TTFT p95 500 ms, predicted 250 ms; 300 "
                                      "requests in the last 30 s");
  out.size = 0;
  lp_tracking_print(tracking, &both, &out);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&out), "\nllmpart_predicted_ttft_seconds{quantile=\"0.95\"} 0.25\n"));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&out), "\nllmpart_measured_ttft_seconds{quantile=\"0.95\"} 0.5\n"));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&out), "\nllmpart_predicted_requests_per_second 20\n"));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&out), "\nllmpart_prediction_fits 0\n"));
  ck_assert_ptr_null(strstr(lp_buf_text(&out), "tpot"));
  both.figure[LP_PREDICTED_TTFT + 1] = 1;
  ck_assert(holds(&both));
  out.size = 0;
  lp_tracking_say(tracking, &both, &out);
  ck_assert_str_eq(lp_buf_text(&out), "the load fits the prediction; 300 requests in the last 30 s");
  lp_buf_free(&out);
}
