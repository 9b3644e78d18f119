/* The number of drafts before a question: chances of drafts, their cost, and the fit of rounds. */
#include <math.h>

#include "base/base.h"
#include "runtime/exits/window.h"
#include "tests/suite.h"

static lp_window window;

static void setup(void) {
  lp_window_init(&window);
}

LP_CASE(.setup = setup);

/* Each tenth of confidence begins with four drafts of that share. */
LP_TEST(chances_are_shares) {
  ck_assert_double_eq(lp_window_chance(&window, 0.25), 0.25);
  lp_window_note_verdict(&window, 0.21, true);
  lp_window_note_verdict(&window, 0.29, false);
  ck_assert_double_eq_tol(lp_window_chance(&window, 0.25), (4 * 0.25 + 1) / (4 + 2), 1e-12);
  ck_assert_double_eq(lp_window_chance(&window, 0.35), 0.35);
  ck_assert_double_eq(lp_window_chance(&window, 0.15), 0.15);
  lp_window_note_verdict(&window, 1, true); /* the last tenth includes its end */
  ck_assert_double_eq_tol(lp_window_chance(&window, 0.95), (4 * 0.95 + 1) / (4 + 1), 1e-12);
  lp_window_note_verdict(&window, -0.5, true);
  ck_assert_double_eq_tol(lp_window_chance(&window, 0.05), (4 * 0.05 + 1) / (4 + 1), 1e-12);
}

LP_TEST(a_draft_must_be_worth_its_time) {
  ck_assert(lp_window_goes_on(&window, 0.5) && !lp_window_goes_on(&window, 0.49)); /* before the first round */
  lp_window_note_draft(&window, 2);
  ck_assert_double_eq(window.draft_ms, 2);
  lp_window_note_draft(&window, 7);
  ck_assert_double_eq_tol(window.draft_ms, 0.8 * 2 + 0.2 * 7, 1e-12);
  lp_window_note_round(&window, 2, 3, 30); /* 0.1 tokens per ms, 3 ms for a draft */
  ck_assert_double_eq_tol(window.rate, 0.1, 1e-12);
  ck_assert(lp_window_goes_on(&window, 0.31) && !lp_window_goes_on(&window, 0.29));
  window.fit.slope = 5; /* a narrow link */
  ck_assert(lp_window_goes_on(&window, 0.51) && !lp_window_goes_on(&window, 0.49));
}

enum { ROUNDS = 6 };

/* The slope by weighted least squares around the means, less its standard error. */
static double slope_of(const double *drafts, const double *ms, int count) {
  double weight[ROUNDS], all = 0, x = 0, y = 0, var = 0, cov = 0, rest = 0;
  for (int i = 0; i < count; i++)
    all += weight[i] = pow(0.9, count - 1 - i);
  for (int i = 0; i < count; i++)
    x += weight[i] / all * drafts[i], y += weight[i] / all * ms[i];
  for (int i = 0; i < count; i++) {
    var += weight[i] / all * (drafts[i] - x) * (drafts[i] - x);
    cov += weight[i] / all * (drafts[i] - x) * (ms[i] - y);
  }
  for (int i = 0; i < count; i++) {
    double off = ms[i] - y - cov / var * (drafts[i] - x);
    rest += weight[i] / all * off * off;
  }
  return cov / var - sqrt(rest / var / (all - 2));
}

LP_TEST(slopes) {
  static const double drafts[ROUNDS] = {1, 4, 2, 6, 3, 5}, ms[ROUNDS] = {13, 17, 14.5, 22, 15, 21};
  for (int i = 0; i < ROUNDS; i++) {
    lp_window_note_round(&window, (int64_t)drafts[i], 1, ms[i]);
    if (i < 2)
      ck_assert_double_eq(window.fit.slope, 0); /* too few to fit */
    else
      ck_assert_double_eq_tol(window.fit.slope, slope_of(drafts, ms, i + 1), 1e-9);
  }
}

/* On a line there is no error; rounds with equal numbers of drafts tell no slope, and the old one shrinks. */
LP_TEST(lines_and_points) {
  for (int i = 0; i < 8; i++)
    lp_window_note_round(&window, i % 4, 1, 10 + 3 * (i % 4));
  ck_assert_double_eq_tol(window.fit.slope, 3, 1e-6);
  double before = window.fit.slope;
  for (int i = 0; i < 40; i++)
    lp_window_note_round(&window, 2, 1, 16);
  ck_assert_double_lt(window.fit.slope, before);
  before = window.fit.slope;
  lp_window_note_round(&window, 2, 1, 16);
  ck_assert_double_eq_tol(window.fit.slope, 0.98 * before, 1e-12);
}
