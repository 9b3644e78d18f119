/* Pauses between attempts to reach a worker. */
#include <time.h>

#include "base/clock.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

lp_backoff lp_backoff_begin(const lp_patience *patience, double timeout_ms) {
  return (lp_backoff){
      .pause_ms = patience->pause_ms, .longest_ms = patience->longest_pause_ms, .until_ms = lp_now_ms() + timeout_ms};
}

bool lp_backoff_wait(lp_backoff *backoff) {
  double left = backoff->until_ms - lp_now_ms();
  if (left <= 0) return false;
  double ms = backoff->pause_ms < left ? backoff->pause_ms : left;
  (void)nanosleep(
      &(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)((int64_t)(ms * 1e6) % 1000000000)}, NULL);
  backoff->pause_ms = 2 * backoff->pause_ms < backoff->longest_ms ? 2 * backoff->pause_ms : backoff->longest_ms;
  return lp_now_ms() < backoff->until_ms;
}
