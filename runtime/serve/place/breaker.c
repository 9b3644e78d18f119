/* The states of a circuit breaker: closed, open for a time that doubles, one probe. */
#include "runtime/serve/place/breaker.h"

#include <math.h>

#include "base/clock.h"

/* Failures in a row that open a breaker. The first pause, which doubles with each failed probe, and the longest. */
enum { MOST_FAILURES = 3 };
static const double first_pause_ms = 500, longest_pause_ms = 30000;

void lp_breaker_init(lp_breaker *breaker) {
  *breaker = (lp_breaker){.failures = 0};
  (void)pthread_mutex_init(&breaker->lock, NULL);
}

void lp_breaker_destroy(lp_breaker *breaker) {
  (void)pthread_mutex_destroy(&breaker->lock);
}

bool lp_breaker_admits(lp_breaker *breaker) {
  (void)pthread_mutex_lock(&breaker->lock);
  bool open = breaker->failures >= MOST_FAILURES;
  bool admits = !open || (!breaker->probes && lp_now_ms() >= breaker->until_ms);
  if (open && admits) breaker->probes = true;
  (void)pthread_mutex_unlock(&breaker->lock);
  return admits;
}

void lp_breaker_note(lp_breaker *breaker, lp_outcome outcome) {
  (void)pthread_mutex_lock(&breaker->lock);
  breaker->probes = false;
  if (outcome == LP_OUTCOME_GOOD) breaker->failures = 0;
  if (outcome == LP_OUTCOME_FAILED && ++breaker->failures >= MOST_FAILURES) {
    double pause_ms = first_pause_ms * exp2(fmin(breaker->failures - MOST_FAILURES, 16));
    breaker->until_ms = lp_now_ms() + fmin(pause_ms, longest_pause_ms);
  }
  (void)pthread_mutex_unlock(&breaker->lock);
}

bool lp_breaker_is_open(lp_breaker *breaker) {
  (void)pthread_mutex_lock(&breaker->lock);
  bool open = breaker->failures >= MOST_FAILURES;
  (void)pthread_mutex_unlock(&breaker->lock);
  return open;
}
