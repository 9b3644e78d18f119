/* Finds what repeats: the layers of a model are equal runs of calls. */
#include "backend/gpu/gpu_internal.h"

enum { LONGEST_PERIOD = 1024 };

/* How often the calls [first, first + period) follow one another. */
static size_t repeats(const gpu_segment *segment, size_t first, size_t period) {
  size_t equal = 0;
  while (first + period + equal < segment->calls.count &&
         segment->calls.data[first + equal].launcher == segment->calls.data[first + period + equal].launcher)
    equal++;
  return 1 + equal / period;
}

/* The run from `first` that covers most calls; of equal ones that of the shortest period. */
static gpu_run longest_run(const gpu_segment *segment, size_t first) {
  gpu_run best = {first, 1, 1};
  size_t left = segment->calls.count - first, most = left / 2 < LONGEST_PERIOD ? left / 2 : LONGEST_PERIOD;
  for (size_t period = 1; period <= most; period++) {
    size_t count = repeats(segment, first, period);
    if (count > 1 && count * period > best.count * best.period) best = (gpu_run){first, period, count};
  }
  return best;
}

/* From each call on the run that covers most, unless one that begins a little later covers more. */
void gpu_find_runs(const gpu_segment *segment, gpu_runs *out) {
  for (size_t at = 0; at < segment->calls.count;) {
    gpu_run run = longest_run(segment, at);
    for (size_t later = at + 1; later < at + run.period && later < segment->calls.count; later++) {
      gpu_run other = longest_run(segment, later);
      if (other.count * other.period > run.count * run.period + run.period) run = (gpu_run){at, 1, 1};
    }
    lp_vec_push(out, run);
    at += run.period * run.count;
  }
}
