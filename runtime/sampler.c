/* Draws tokens from logits: greedy, or temperature, then top-k, then top-p, in the order of transformers.
 *
 * A NaN counts as minus infinity, so that a damaged logit is never drawn. Ties go to the lower id everywhere.
 */
#include <assert.h>
#include <math.h>

#include "runtime/runtime.h"

typedef struct {
  double weight; /* exp((logit - greatest) / temperature), at most 1 */
  int32_t id;
} candidate;

/* splitmix64's finalizer (Steele et al., "Fast splittable pseudorandom number generators", 2014) */
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* In [0, 1), 53 bits; a function of its arguments alone. */
static double uniform(uint64_t seed, uint64_t sequence, uint64_t position) {
  static const uint64_t step = UINT64_C(0x9E3779B97F4A7C15);
  uint64_t bits = mix(mix(mix(seed + step) + sequence + step) + position + step);
  return (double)(bits >> 11) * 0x1p-53;
}

static float clean(float logit) {
  return isnan(logit) ? -INFINITY : logit;
}

/* With infinities among them the differences are 0 or infinite, never NaN. */
static double difference(float logit, float greatest) {
  return logit == greatest ? 0 : (double)logit - (double)greatest;
}

static int32_t find_greatest(const float *logits, int32_t vocab) {
  int32_t best = 0;
  for (int32_t i = 1; i < vocab; ++i)
    if (clean(logits[i]) > clean(logits[best])) best = i;
  return best;
}

/* Terms below exp(-40) cannot change a double's sum of a vocabulary by more than 1e-12. */
static double find_confidence(const float *logits, int32_t vocab, float greatest) {
  double sum = 0;
  for (int32_t i = 0; i < vocab; ++i) {
    double below = difference(clean(logits[i]), greatest);
    if (below > -40) sum += (double)expf((float)below);
  }
  return 1 / sum;
}

static bool before(const candidate *a, const candidate *b) {
  return a->weight != b->weight ? a->weight > b->weight : a->id < b->id;
}

static void sift_down(candidate *heap, size_t count, size_t at) {
  candidate item = heap[at];
  for (size_t child; (child = at * 2 + 1) < count; at = child) {
    if (child + 1 < count && before(&heap[child + 1], &heap[child])) ++child;
    if (!before(&heap[child], &item)) break;
    heap[at] = heap[child];
  }
  heap[at] = item;
}

/* Moves the greatest to the back of the heap, one by one: the last `taken` of `all` then hold them, greatest last. */
static void take_greatest(candidate *all, size_t count, size_t taken) {
  candidate top = all[0];
  all[0] = all[count - taken - 1];
  all[count - taken - 1] = top;
  sift_down(all, count - taken - 1, 0);
}

static size_t fill(candidate *all, const float *logits, int32_t vocab, float greatest, double temperature) {
  size_t count = 0;
  for (int32_t i = 0; i < vocab; ++i) {
    double weight = exp(difference(clean(logits[i]), greatest) / temperature);
    if (weight > 0) all[count++] = (candidate){.weight = weight, .id = i};
  }
  return count;
}

static double sum_weights(const candidate *all, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += all[i].weight;
  return sum;
}

/* Keeps the `top_k` greatest, then the fewest of those whose share reaches `top_p`; they end up at the back of `all`.
 * Returns how many. Only as much is sorted as is kept. */
static size_t restrict_candidates(candidate *all, size_t count, const lp_sampling *sampling) {
  bool by_k = sampling->top_k > 0 && (size_t)sampling->top_k < count, by_p = sampling->top_p < 1;
  if (!by_k && !by_p) return count;
  for (size_t i = count / 2; i-- > 0;)
    sift_down(all, count, i);
  size_t limit = by_k ? (size_t)sampling->top_k : count, taken = 0;
  double total = by_k ? 0 : sum_weights(all, count), kept = 0;
  for (; taken < limit && (by_k || kept < total * sampling->top_p || taken == 0); ++taken) {
    take_greatest(all, count, taken);
    kept += all[count - taken - 1].weight;
  }
  if (!by_k || !by_p) return taken;
  double wanted = kept * sampling->top_p;
  kept = 0;
  for (taken = 0; taken < limit && (kept < wanted || taken == 0); ++taken)
    kept += all[count - taken - 1].weight;
  return taken;
}

static int32_t draw(const candidate *kept, size_t count, double random) {
  double left = random * sum_weights(kept, count);
  for (size_t i = 0; i < count; ++i) {
    left -= kept[i].weight;
    if (left < 0) return kept[i].id;
  }
  return kept[count - 1].id; /* the sum rounded up */
}

static void *reserve(lp_buf *scratch, size_t bytes) {
  static const char zeros[4096];
  if (scratch->capacity <= bytes) lp_buf_clear(scratch);
  while (scratch->capacity <= bytes)
    lp_buf_append(scratch, zeros, sizeof zeros);
  return scratch->data;
}

lp_sample lp_sampler_draw(const lp_sampling *sampling, const float *logits, int32_t vocab, uint64_t sequence,
                          uint64_t position, lp_buf *scratch) {
  assert(vocab > 0);
  int32_t best = find_greatest(logits, vocab);
  float greatest = clean(logits[best]);
  lp_sample sample = {.token = best, .confidence = find_confidence(logits, vocab, greatest)};
  if (!(sampling->temperature > 0)) return sample;
  candidate *all = reserve(scratch, (size_t)vocab * sizeof *all);
  size_t count = fill(all, logits, vocab, greatest, sampling->temperature);
  size_t kept = restrict_candidates(all, count, sampling);
  sample.token = draw(all + count - kept, kept, uniform(sampling->seed, sequence, position));
  return sample;
}
