/* bench_steps BUNDLE SESSIONS GENERATE DEPTH REPETITIONS: measures tokens of SESSIONS sessions after DEPTH tokens of
 * context each, as a worker generates them: one pass over all sessions for each token, from copying tokens to the GPU
 * to drawing greedy tokens. Prints tokens/s of all sessions and the deviation. For one session it also prints the share
 * of a step that the GPU does not take: it compares the step's time with that of its recorded kernels, replayed one
 * after the other without waiting. Caches hold zeros, since their content does not affect the time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/sampler.h"
#include "runtime/gpu/code.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/memory.h"
#include "runtime/runtime.h"

typedef struct {
  const lp_bundle *bundle;
  const lp_program *program;
  int32_t number; /* of the program */
  lp_batch *batch;
  lp_executor **session;
  lp_batch_member *member;
  size_t count;
  int64_t capacity;
  lp_sampling greedy;
  lp_buf scratch;
  lp_diag *diag;
} bench;

static void must(const bench *b, lp_status status) {
  if (status == LP_OK) return;
  const lp_diag_entry *entry = lp_diag_get(b->diag, 0);
  fprintf(stderr, "bench_steps: %s\n", entry ? entry->text : "failed");
  exit(1);
}

static void draw(bench *b, const lp_step *step, bool found) {
  for (size_t i = 0; i < b->count; i++) {
    lp_logits logits;
    must(b, lp_batch_logits(b->batch, i, step, found, &logits, b->diag));
    (void)lp_logits_draw(&logits, 0, &b->greedy, 0, 0, &b->scratch);
  }
}

static void do_step(bench *b, const lp_step *step) {
  lp_span span;
  bool top = lp_batch_finds_top(b->batch, step);
  switch (step->kind) {
  case LP_STEP_INPUT:
    for (size_t i = 0; i < b->count; i++) {
      must(b, lp_batch_buffer(b->batch, i, step->buffer, step, &span, b->diag));
      memset(span.data, 0, span.size);
    }
    must(b, lp_batch_bring(b->batch, step->buffer, step, b->diag));
    break;
  case LP_STEP_RUN:
    must(b, lp_batch_run(b->batch, step, b->diag));
    break;
  case LP_STEP_OUTPUT:
    must(b, top ? lp_batch_find_top(b->batch, step, 1, b->diag)
                : lp_batch_fetch(b->batch, step->buffer, step, NULL, b->diag));
    draw(b, step, top);
    break;
  case LP_STEP_SEND:
  case LP_STEP_MOVE:
  case LP_STEP_GATHER:
    break;
  }
}

static void bring_tokens(bench *b) {
  for (int32_t i = 0; i < b->program->step_count; i++)
    if (b->program->step[i].kind == LP_STEP_INPUT) do_step(b, &b->program->step[i]);
}

/* One token more for each session; their positions are `apart`. */
static void make_tokens(bench *b, int64_t past) {
  enum { APART = 7 };
  for (size_t i = 0; i < b->count; i++) {
    int64_t *sym = b->member[i].sym;
    memset(sym, 0, sizeof b->member[i].sym);
    sym[LP_SYM_B] = sym[LP_SYM_S] = sym[LP_SYM_R] = 1;
    sym[LP_SYM_P] = past + (int64_t)i % APART;
    sym[LP_SYM_C] = b->capacity + APART;
  }
  must(b, lp_batch_begin(b->batch, b->number, b->member, b->count, b->diag));
  for (int32_t i = 0; i < b->program->step_count; i++)
    do_step(b, &b->program->step[i]);
  must(b, lp_batch_end(b->batch, b->diag));
}

/* Milliseconds of the recorded kernels of one step; 0: nothing was recorded. */
static double replay_ms(bench *b) {
  enum { REPLAYS = 20 };
  lp_gpu *gpu = b->bundle->side[LP_SIDE_CLOUD].gpu;
  lp_gpu_memory *memory = gpu ? lp_batch_gpu_memory(b->batch) : NULL;
  if (!memory || memory->recordings.count != 1 || !memory->recordings.data[0].recording) return 0;
  must(b, lp_gpu_wait(gpu, memory, b->diag));
  double begin = lp_now_ms();
  bool well = true;
  for (int i = 0; i < REPLAYS && well; i++) {
    bring_tokens(b); /* other activations took their place */
    well = gpu->api->replay(memory->queue, memory->recordings.data[0].recording);
  }
  well = gpu->api->finish(memory->queue) && well;
  return well ? (lp_now_ms() - begin) / (double)REPLAYS : 0;
}

static void measure(bench *b, int64_t generate, int64_t depth, int64_t repetitions) {
  double sum = 0, squares = 0, ms = 0;
  for (int64_t i = -1; i < repetitions; i++) { /* the first is to warm up */
    double begin = lp_now_ms();
    for (int64_t k = 0; k < generate; k++)
      make_tokens(b, depth + k);
    ms = (lp_now_ms() - begin) / (double)generate;
    if (i < 0) continue;
    sum += (double)b->count / ms * 1e3;
    squares += (double)b->count / ms * 1e3 * ((double)b->count / ms * 1e3);
  }
  double mean = sum / (double)repetitions, variance = squares / (double)repetitions - mean * mean;
  printf("decode x %zu|%.2f|%.2f\n", b->count, mean, variance > 0 ? sqrt(variance) : 0);
  double kernels = b->count == 1 ? replay_ms(b) : 0, step = 1e3 / mean;
  if (kernels > 0) printf("launch overhead|%.2f|%.4f|%.4f\n", 100 * fmax(1 - kernels / step, 0), step, kernels);
}

int main(int argc, char **argv) {
  if (argc != 6) return LP_USAGE;
  bench b = {.diag = lp_diag_create(), .greedy = {.top_p = 1}, .count = (size_t)atoll(argv[2])};
  lp_bundle *bundle = NULL;
  must(&b, lp_bundle_load(argv[1], &(lp_bundle_options){.load = LP_LOAD_CLOUD}, &bundle, b.diag));
  lp_pool *pool = lp_pool_create(1);
  b.bundle = bundle;
  b.number = lp_manifest_program(&bundle->manifest, "decode");
  b.batch = lp_batch_create(bundle, LP_SIDE_CLOUD, pool);
  if (b.number < 0 || !b.batch || b.count == 0)
    return fprintf(stderr, "bench_steps: no cloud's code for several sessions at once\n"), 1;
  b.program = &bundle->manifest.programs[b.number];
  b.capacity = atoll(argv[4]) + atoll(argv[3]) + 1;
  b.session = lp_alloc(b.count * sizeof *b.session);
  b.member = lp_alloc(b.count * sizeof *b.member);
  for (size_t i = 0; i < b.count; i++) {
    b.session[i] = lp_executor_create(bundle, LP_SIDE_CLOUD, pool);
    b.member[i].states = &b.session[i]->states;
  }
  measure(&b, atoll(argv[3]), atoll(argv[4]), atoll(argv[5]));
  for (size_t i = 0; i < b.count; i++)
    lp_executor_free(b.session[i]);
  free(b.session);
  free(b.member);
  lp_buf_free(&b.scratch);
  lp_batch_free(b.batch);
  lp_pool_free(pool);
  lp_bundle_free(bundle);
  lp_diag_free(b.diag);
  return 0;
}
