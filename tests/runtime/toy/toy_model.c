/* The code of a hand-made bundle: a small model with KV caches, in which the next token depends on every token before
 * it.
 *
 *   h = E[token];  per layer: append h to the cache, h = tanh(W (h + a mixture of the cache's rows up to here));
 *   logits of token t = E[(7 t + 3) mod V] h
 *
 * One segment per layer, all working in place on buffer 1, so that any layer can be put on either side. In a pass of
 * several sequences the rows of tokens, hidden states and logits of all sequences are in one buffer; everything else
 * belongs to one sequence. */
#include <math.h>
#include <sched.h>
#include <stddef.h>

#include "base/abi.h"
#include "tests/runtime/toy/toy_model.h"

_Static_assert(TOY_LAYERS == 4, "one segment is declared for each layer");

extern const uint32_t lp_abi;
const uint32_t lp_abi = LP_ABI_VERSION;
extern const uint32_t lp_sequences;
const uint32_t lp_sequences = 1;

/* Waits as emitted code does: see lp_barrier. */
static void wait_all(const lp_frame *frame) {
  lp_barrier *barrier = frame->barrier;
  int32_t phase = __atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == frame->threads) {
    barrier->arrived = 0;
    __atomic_store_n(&barrier->phase, phase + 1, __ATOMIC_RELEASE);
    return;
  }
  for (int spins = 0; __atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE) == phase; spins++)
    if (spins > 1000) sched_yield();
}

static int64_t align(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

int64_t lp_layout_0(const int64_t *sym, int64_t *offset);
int64_t lp_layout_0(const int64_t *sym, int64_t *offset) {
  int64_t rows = sym[LP_SYM_B] * sym[LP_SYM_S];
  offset[TOY_TOKENS] = 0;
  offset[TOY_HIDDEN] = align(rows * (int64_t)sizeof(int64_t));
  offset[TOY_LOGITS] = offset[TOY_HIDDEN] + align(rows * TOY_WIDTH * (int64_t)sizeof(float));
  offset[TOY_SCRATCH] = offset[TOY_LOGITS] + align(sym[LP_SYM_B] * sym[LP_SYM_R] * TOY_VOCAB * (int64_t)sizeof(float));
  return offset[TOY_SCRATCH] + align(rows * TOY_WIDTH * (int64_t)sizeof(float));
}

/* The sequences of a pass, one at a time: `one` is the frame of sequence i, or the only one. */
static const lp_frame *sequence(const lp_frame *all, int64_t i) {
  if (all->sequences == 0) return i == 0 ? all : NULL;
  return i < all->sequences ? &all->sequence[i] : NULL;
}

static void *buffer(const lp_frame *all, const lp_frame *one, int index) {
  static const int64_t row[TOY_BUFFERS] = {[TOY_TOKENS] = sizeof(int64_t),
                                           [TOY_HIDDEN] = TOY_WIDTH * sizeof(float),
                                           [TOY_LOGITS] = TOY_VOCAB * sizeof(float)};
  if (index == TOY_SCRATCH) return one->arena + one->offset[index];
  return all->arena + all->offset[index] + (index == TOY_LOGITS ? one->last_row : one->row) * row[index];
}
static const float *embedding(const lp_frame *frame) {
  return (const float *)(const void *)frame->weights;
}

void lp_segment_embed(const lp_frame *all, int64_t thread);
void lp_segment_embed(const lp_frame *all, int64_t thread) {
  const lp_frame *frame;
  for (int64_t n = 0; (frame = sequence(all, n)); n++) {
    const int64_t *token = buffer(all, frame, TOY_TOKENS);
    float *hidden = buffer(all, frame, TOY_HIDDEN);
    int64_t rows = frame->sym[LP_SYM_B] * frame->sym[LP_SYM_S];
    for (int64_t row = thread; row < rows; row += frame->threads)
      for (int64_t i = 0; i < TOY_WIDTH; i++)
        hidden[row * TOY_WIDTH + i] = embedding(frame)[token[row] * TOY_WIDTH + i];
  }
}

static void mix_row(const float *weight, const float *cache, int64_t rows, const float *in, float *out) {
  float sum[TOY_WIDTH];
  for (int64_t i = 0; i < TOY_WIDTH; i++) {
    float mean = 0;
    for (int64_t row = 0; row < rows; row++)
      mean += cache[row * TOY_WIDTH + i] * (float)((row * 37 + i) % 11 - 5);
    sum[i] = in[i] + mean / 4.0f;
  }
  for (int64_t i = 0; i < TOY_WIDTH; i++) {
    float dot = 0;
    for (int64_t j = 0; j < TOY_WIDTH; j++)
      dot += weight[i * TOY_WIDTH + j] * sum[j];
    out[i] = tanhf(dot);
  }
}

static void run_layer(const lp_frame *all, const lp_frame *frame, int64_t thread, int64_t layer) {
  const int64_t *sym = frame->sym;
  int64_t s = sym[LP_SYM_S], p = sym[LP_SYM_P], c = sym[LP_SYM_C], rows = sym[LP_SYM_B] * s;
  float *hidden = buffer(all, frame, TOY_HIDDEN), *scratch = buffer(all, frame, TOY_SCRATCH);
  float *cache = frame->state[layer];
  const float *weight = embedding(frame) + TOY_VOCAB * TOY_WIDTH + layer * TOY_WIDTH * TOY_WIDTH;
  for (int64_t row = thread; row < rows; row += frame->threads)
    for (int64_t i = 0; i < TOY_WIDTH; i++)
      cache[(row / s * c + p + row % s) * TOY_WIDTH + i] = hidden[row * TOY_WIDTH + i];
  wait_all(frame);
  for (int64_t row = thread; row < rows; row += frame->threads)
    mix_row(weight, cache + row / s * c * TOY_WIDTH, p + row % s + 1, hidden + row * TOY_WIDTH,
            scratch + row * TOY_WIDTH);
  wait_all(frame);
  for (int64_t row = thread; row < rows; row += frame->threads)
    for (int64_t i = 0; i < TOY_WIDTH; i++)
      hidden[row * TOY_WIDTH + i] = scratch[row * TOY_WIDTH + i];
}

#define LAYER(n)                                                                                                       \
  void lp_segment_##n(const lp_frame *all, int64_t thread);                                                            \
  void lp_segment_##n(const lp_frame *all, int64_t thread) {                                                           \
    const lp_frame *frame;                                                                                             \
    for (int64_t i = 0; (frame = sequence(all, i)); i++)                                                               \
      run_layer(all, frame, thread, n);                                                                                \
  }
LAYER(0)
LAYER(1)
LAYER(2)
LAYER(3)

static void run_head(const lp_frame *all, const lp_frame *frame, int64_t thread) {
  const int64_t *sym = frame->sym;
  const float *hidden = buffer(all, frame, TOY_HIDDEN);
  float *logits = buffer(all, frame, TOY_LOGITS);
  int64_t r = sym[LP_SYM_R], s = sym[LP_SYM_S];
  for (int64_t row = thread; row < sym[LP_SYM_B] * r; row += frame->threads) {
    const float *in = hidden + (row / r * s + s - r + row % r) * TOY_WIDTH;
    for (int64_t token = 0; token < TOY_VOCAB; token++) {
      float dot = 0;
      for (int64_t i = 0; i < TOY_WIDTH; i++)
        dot += in[i] * embedding(frame)[(token * 7 + 3) % TOY_VOCAB * TOY_WIDTH + i];
      logits[row * TOY_VOCAB + token] = dot;
    }
  }
}

void lp_segment_head(const lp_frame *all, int64_t thread);
void lp_segment_head(const lp_frame *all, int64_t thread) {
  const lp_frame *frame;
  for (int64_t i = 0; (frame = sequence(all, i)); i++)
    run_head(all, frame, thread);
}

/* Does nothing, so that only the runtime's own time remains. */
void lp_segment_nothing(const lp_frame *frame, int64_t thread);
void lp_segment_nothing(const lp_frame *frame, int64_t thread) {
  (void)frame, (void)thread;
}
