/* Circuit breakers: what opens them, whom they let through, and how long they pause. Times are compared with the clock
 * before and after, so that no test depends on how long it takes. */
#include "base/clock.h"
#include "runtime/serve/place/breaker.h"
#include "tests/suite.h"

static lp_breaker breaker;

static void setup(void) {
  lp_breaker_init(&breaker);
}

static void teardown(void) {
  lp_breaker_destroy(&breaker);
}

LP_CASE(.setup = setup, .teardown = teardown);

static void note(lp_outcome outcome, int times) {
  while (times-- > 0)
    lp_breaker_note(&breaker, outcome);
}

/* A failed request opens it for this long. */
static void fails_for(double pause_ms) {
  double before = lp_now_ms();
  lp_breaker_note(&breaker, LP_OUTCOME_FAILED);
  ck_assert_double_ge(breaker.until_ms, before + pause_ms);
  ck_assert_double_le(breaker.until_ms, lp_now_ms() + pause_ms);
  ck_assert(lp_breaker_is_open(&breaker));
  breaker.until_ms = 0; /* the pause is over */
}

LP_TEST(three_failures_in_a_row_open_it) {
  note(LP_OUTCOME_FAILED, 2);
  ck_assert(!lp_breaker_is_open(&breaker));
  ck_assert(lp_breaker_admits(&breaker) && lp_breaker_admits(&breaker));
  note(LP_OUTCOME_GOOD, 5);
  note(LP_OUTCOME_FAILED, 2);
  note(LP_OUTCOME_UNKNOWN, 5); /* says nothing */
  ck_assert(!lp_breaker_is_open(&breaker) && lp_breaker_admits(&breaker));
  note(LP_OUTCOME_FAILED, 1);
  ck_assert(lp_breaker_is_open(&breaker) && !lp_breaker_admits(&breaker));
}

LP_TEST(one_probe_at_a_time) {
  note(LP_OUTCOME_FAILED, 3);
  breaker.until_ms = 0;
  ck_assert(lp_breaker_admits(&breaker));
  ck_assert(!lp_breaker_admits(&breaker)); /* its outcome is awaited */
  note(LP_OUTCOME_UNKNOWN, 1);
  ck_assert(lp_breaker_is_open(&breaker) && lp_breaker_admits(&breaker));
  note(LP_OUTCOME_GOOD, 1);
  ck_assert(!lp_breaker_is_open(&breaker));
  ck_assert(lp_breaker_admits(&breaker) && lp_breaker_admits(&breaker));
}

LP_TEST(pauses_double) {
  note(LP_OUTCOME_FAILED, 2);
  for (double pause_ms = 500; pause_ms <= 16000; pause_ms *= 2)
    fails_for(pause_ms);
  for (int i = 0; i < 100; i++)
    fails_for(30000);
}
