/* Draws tokens from logits: greedy, or temperature, then top-k, then top-p, in the order of transformers.
 *
 * A NaN counts as minus infinity, so that a damaged logit is never drawn. Of equal logits the lower id wins. */
#include <assert.h>
#include <math.h>

#include "base/random.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/sampler.h"
#include "runtime/runtime.h"

typedef struct {
  double weight; /* exp((logit - greatest) / temperature), at most 1 */
  int32_t id;
} candidate;

static float clean(float logit) {
  return isnan(logit) ? -INFINITY : logit;
}

/* For infinities the result is 0 or infinite, never NaN. */
static double difference(float logit, float greatest) {
  return logit == greatest ? 0 : (double)logit - (double)greatest;
}

/* ---- one look at the vocabulary ---------------------------------------------------------------------------------- */

/* A scalar loop over a vocabulary of 32000 takes as long as a layer of a small model. These loops therefore run over
 * LANES logits at once, which compilers turn into vector code, and are compiled for each target. The order of
 * additions is the same on all targets, and so are the sums. */
enum { LANES = 16, BLOCK = 1024 };
#define INLINE static inline __attribute__((always_inline)) /* so that each target's function has code of its own */

/* The greatest logit of a block; a NaN is never greater. */
INLINE float block_greatest(const float *logits, int32_t count) {
  float most[LANES], greatest = -INFINITY;
  for (int32_t lane = 0; lane < LANES; lane++)
    most[lane] = -INFINITY;
  int32_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int32_t lane = 0; lane < LANES; lane++)
      most[lane] = logits[i + lane] > most[lane] ? logits[i + lane] : most[lane];
  for (int32_t lane = 0; lane < LANES; lane++)
    greatest = most[lane] > greatest ? most[lane] : greatest;
  for (; i < count; i++)
    greatest = logits[i] > greatest ? logits[i] : greatest;
  return greatest;
}

INLINE int32_t find_greatest(const float *logits, int32_t vocab) {
  float greatest = -INFINITY;
  int32_t from = 0;
  for (int32_t i = 0; i < vocab; i += BLOCK) {
    float here = block_greatest(logits + i, vocab - i < BLOCK ? vocab - i : BLOCK);
    if (here > greatest) greatest = here, from = i;
  }
  while (clean(logits[from]) < greatest)
    from++;
  return from;
}

/* exp(x) for x in (-40, 0] as 2^n times the Taylor series around 0; 0 for lower x, since terms below exp(-40) cannot
 * change the sum over a vocabulary by more than 1e-12; and 0 for a NaN. */
INLINE float small_exp(float x) {
  const float magic = 0x1.8p23f; /* added to a small number, rounds it to a whole one */
  float within = x > -40 ? x : -40;
  float n = within * 0x1.715476p0f + magic - magic;
  float r = within - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f; /* x - n ln 2, with ln 2 in two parts */
  float p = r * (1.f / 720) + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * r + 1;
  p = p * r + 1;
  int32_t bits;
  memcpy(&bits, &p, sizeof bits);
  bits += (int32_t)n * (1 << 23);
  memcpy(&p, &bits, sizeof p);
  return x > -40 ? p : 0;
}

INLINE double block_sum(const float *logits, int32_t count, float greatest) {
  float sum[LANES] = {0};
  int32_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int32_t lane = 0; lane < LANES; lane++)
      sum[lane] += small_exp(logits[i + lane] - greatest);
  double total = 0;
  for (int32_t lane = 0; lane < LANES; lane++)
    total += (double)sum[lane];
  for (; i < count; i++)
    total += (double)small_exp(logits[i] - greatest);
  return total;
}

INLINE double sum_exponentials(const float *logits, int32_t vocab, float greatest) {
  double sum = 0;
  for (int32_t i = 0; i < vocab; i += BLOCK)
    sum += block_sum(logits + i, vocab - i < BLOCK ? vocab - i : BLOCK, greatest);
  return sum;
}

/* When the greatest logit is infinite, the equal ones share the whole probability. */
static double count_equals(const float *logits, int32_t vocab, float greatest) {
  double count = 0;
  for (int32_t i = 0; i < vocab; i++)
    count += clean(logits[i]) == greatest;
  return count;
}

INLINE lp_sample look(const float *logits, int32_t vocab) {
  int32_t best = find_greatest(logits, vocab);
  float greatest = clean(logits[best]);
  double sum = isinf(greatest) ? count_equals(logits, vocab, greatest) : sum_exponentials(logits, vocab, greatest);
  return (lp_sample){.token = best, .confidence = 1 / sum};
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static lp_sample look_avx2(const float *logits, int32_t vocab) {
  return look(logits, vocab);
}
__attribute__((target("avx512f"))) static lp_sample look_avx512(const float *logits, int32_t vocab) {
  return look(logits, vocab);
}
#endif

static lp_sample look_best(const float *logits, int32_t vocab) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return look_avx512(logits, vocab);
  if (__builtin_cpu_supports("avx2")) return look_avx2(logits, vocab);
#endif
  return look(logits, vocab);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static bool before(const candidate *a, const candidate *b) {
  return a->weight != b->weight ? a->weight > b->weight : a->id < b->id;
}

static void sift_down(candidate *heap, size_t count, size_t at) {
  candidate item = heap[at];
  for (size_t child; (child = at * 2 + 1) < count; at = child) {
    if (child + 1 < count && before(&heap[child + 1], &heap[child])) child++;
    if (!before(&heap[child], &item)) break;
    heap[at] = heap[child];
  }
  heap[at] = item;
}

/* Moves the greatest candidate of the heap after the `taken` earlier ones, which lie at the end of `all` in ascending
 * order. */
static void take_greatest(candidate *all, size_t count, size_t taken) {
  candidate top = all[0];
  all[0] = all[count - taken - 1];
  all[count - taken - 1] = top;
  sift_down(all, count - taken - 1, 0);
}

/* `least`: the least weight of a candidate. */
static size_t fill(candidate *all, const float *logits, int32_t vocab, float greatest, double temperature,
                   double least) {
  size_t count = 0;
  for (int32_t i = 0; i < vocab; i++) {
    double weight = exp(difference(clean(logits[i]), greatest) / temperature);
    if (weight > 0 && weight >= least) all[count++] = (candidate){.weight = weight, .id = i};
  }
  return count;
}

static double sum_weights(const candidate *all, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += all[i].weight;
  return sum;
}

/* Keeps the `top_k` greatest candidates, and of these the fewest with a share of at least `top_p`. Moves them to the
 * end of `all` and returns their number. Sorts only the candidates that it keeps. */
static size_t restrict_candidates(candidate *all, size_t count, const lp_sampling *sampling) {
  bool by_k = sampling->top_k > 0 && (size_t)sampling->top_k < count, by_p = sampling->top_p < 1;
  if (!by_k && !by_p) return count;
  for (size_t i = count / 2; i-- > 0;)
    sift_down(all, count, i);
  size_t limit = by_k ? (size_t)sampling->top_k : count, taken = 0;
  double total = by_k ? 0 : sum_weights(all, count), kept = 0;
  for (; taken < limit && (by_k || kept < total * sampling->top_p || taken == 0); taken++) {
    take_greatest(all, count, taken);
    kept += all[count - taken - 1].weight;
  }
  if (!by_k || !by_p) return taken;
  double wanted = kept * sampling->top_p;
  kept = 0;
  for (taken = 0; taken < limit && (kept < wanted || taken == 0); taken++)
    kept += all[count - taken - 1].weight;
  return taken;
}

static int32_t draw(const candidate *kept, size_t count, double random) {
  double left = random * sum_weights(kept, count);
  for (size_t i = 0; i < count; i++) {
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
  return lp_sampler_draw_likely(sampling, 0, logits, vocab, sequence, position, scratch);
}

lp_sample lp_sampler_draw_likely(const lp_sampling *sampling, double min_p, const float *logits, int32_t vocab,
                                 uint64_t sequence, uint64_t position, lp_buf *scratch) {
  assert(vocab > 0);
  lp_sample sample = look_best(logits, vocab);
  if (!(sampling->temperature > 0)) return sample;
  float greatest = clean(logits[sample.token]);
  candidate *all = reserve(scratch, (size_t)vocab * sizeof *all);
  size_t count = fill(all, logits, vocab, greatest, sampling->temperature, min_p);
  size_t kept = restrict_candidates(all, count, sampling);
  sample.token = draw(all + count - kept, kept, lp_random_uniform(sampling->seed, sequence, position));
  return sample;
}

/* ---- from the greatest logits ------------------------------------------------------------------------------------ */

enum { MOST_TOP = 64 };

/* One logit more than top-k keeps, so that restrict_candidates cuts as it does when it has all logits. */
int32_t lp_sampler_wants(const lp_sampling *sampling, int32_t vocab) {
  if (!(sampling->temperature > 0)) return 1;
  return sampling->top_k > 0 && sampling->top_k <= MOST_TOP && sampling->top_k < vocab ? sampling->top_k + 1 : 0;
}

/* Orders the candidates by id, as fill does. */
static size_t fill_top(candidate *all, const lp_sampler_top *top, double temperature) {
  size_t count = 0;
  for (int32_t i = 0; i < top->count; i++) {
    double weight = exp(difference(top->logit[i], top->logit[0]) / temperature);
    if (top->id[i] < 0 || !(weight > 0)) continue;
    size_t at = count++;
    for (; at > 0 && all[at - 1].id > top->id[i]; at--)
      all[at] = all[at - 1];
    all[at] = (candidate){.weight = weight, .id = top->id[i]};
  }
  return count;
}

lp_sample lp_sampler_draw_top(const lp_sampling *sampling, const lp_sampler_top *top, uint64_t sequence,
                              uint64_t position, lp_buf *scratch) {
  assert(top->count > 0);
  lp_sample sample = {.token = top->id[0], .confidence = 1 / top->sum};
  if (!(sampling->temperature > 0)) return sample;
  candidate *all = reserve(scratch, (size_t)top->count * sizeof *all);
  size_t count = fill_top(all, top, sampling->temperature);
  size_t kept = restrict_candidates(all, count, sampling);
  sample.token = draw(all + count - kept, kept, lp_random_uniform(sampling->seed, sequence, position));
  return sample;
}

/* ---- logits of an output step ------------------------------------------------------------------------------------ */

/* Draws from found[1 + 2 * all], the result of lp_gpu_find_top for one row, of which `wanted` logits are needed. */
static lp_sample draw_found(const float *found, int32_t wanted, int32_t vocab, const lp_sampling *sampling,
                            uint64_t sequence, uint64_t position, int64_t all, lp_buf *scratch) {
  LP_OWNED(lp_free_at) int32_t *id = lp_alloc((size_t)wanted * sizeof *id);
  memcpy(id, found + 1 + all, (size_t)wanted * sizeof *id);
  for (int32_t k = 0; k < wanted; k++)
    if (id[k] >= vocab) id[k] = -1;
  const lp_sampler_top from = {.count = wanted, .logit = found + 1, .id = id, .sum = (double)found[0]};
  return lp_sampler_draw_top(sampling, &from, sequence, position, scratch);
}

lp_sample lp_logits_draw(const lp_logits *logits, int64_t row, const lp_sampling *sampling, uint64_t sequence,
                         uint64_t position, lp_buf *scratch) {
  int32_t vocab = logits->vocab;
  if (!logits->found) return lp_sampler_draw(sampling, logits->row + row * vocab, vocab, sequence, position, scratch);
  const float *found = logits->found + row * (1 + 2 * logits->wanted);
  return draw_found(found, lp_sampler_wants(sampling, vocab), vocab, sampling, sequence, position, logits->wanted,
                    scratch);
}

lp_status lp_logits_read(const lp_manifest *manifest, const int64_t *sym, const lp_span *bytes, lp_logits *out,
                         lp_diag *diag) {
  size_t batch = (size_t)sym[LP_SYM_B], rows = (size_t)sym[LP_SYM_R], vocab = (size_t)manifest->vocab;
  size_t wanted = 0;
  *out = (lp_logits){.row = bytes->data, .vocab = manifest->vocab};
  if (!lp_size_mul(batch * sizeof(float), rows, &wanted) || !lp_size_mul(wanted, vocab, &wanted) ||
      wanted != bytes->size || wanted == 0)
    return lp_error(diag, LP_LOC_FILE(manifest->file), "logits of %zu bytes; batch %zu, %zu rows and %zu ids take %zu",
                    bytes->size, batch, rows, vocab, wanted);
  return LP_OK;
}

void lp_logits_sample(const lp_logits *logits, const int64_t *sym, int64_t first, const lp_sampling *sampling,
                      lp_sample *out, lp_buf *scratch) {
  uint64_t position = (uint64_t)(sym[LP_SYM_P] + sym[LP_SYM_S]);
  for (int64_t i = 0; i < sym[LP_SYM_B]; i++)
    out[i] = lp_logits_draw(logits, (i + 1) * sym[LP_SYM_R] - 1, sampling, (uint64_t)(first + i), position, scratch);
}
