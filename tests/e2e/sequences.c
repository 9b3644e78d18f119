/* sequences BUNDLE [ROWS [NEAR]]: compares several sequences in one pass with each by itself, on the cloud's side of a
 * compiled bundle. Sequences begin and end in different rounds, miss some, and have parts of different lengths and
 * positions. The results of each must be equal to the bit, or within NEAR (1e-3) from its first pass of more than ROWS
 * rows on. Prints the number of passes and parts that were compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/runtime.h"

enum { SEQUENCES = 9, ROUNDS = 14, CAPACITY = 160, MOST_PART = 40 };

/* One sequence: by itself, and as a member of passes. */
typedef struct {
  lp_executor *alone, *member;
  int64_t batch, past, capacity;
  bool exact; /* its caches are the same to the bit */
} sequence;

typedef struct {
  const lp_bundle *bundle;
  lp_pool *pool;
  lp_batch *batch;
  sequence all[SEQUENCES];
  uint64_t random;    /* numbers drawn */
  int64_t exact_rows; /* the most rows of a pass that must give results equal to the bit */
  float near;         /* absolute and relative tolerance in larger passes */
  bool small;         /* the most rows of a pass */
  lp_diag *diag;
  long passes, parts, differences;
} run;

static int64_t draw(run *r, int64_t below) {
  return (int64_t)(lp_random_bits(7, 0, r->random++) % (uint64_t)below);
}

static void must(const run *r, lp_status status) {
  if (status == LP_OK) return;
  const lp_diag_entry *entry = lp_diag_get(r->diag, 0);
  fprintf(stderr, "sequences: %s\n", entry ? entry->text : "failed");
  exit(1);
}

static bool takes(const lp_step *step) {
  return step->to == LP_SIDE_CLOUD && (step->kind == LP_STEP_INPUT || step->side == LP_SIDE_DEVICE);
}

static bool gives(const lp_step *step) {
  return step->side == LP_SIDE_CLOUD && (step->kind == LP_STEP_SEND || step->kind == LP_STEP_OUTPUT);
}

static void invent(run *r, const lp_step *step, lp_span to) {
  lp_element dtype = step->tensor.dtype;
  if (dtype == LP_DT_I64)
    for (size_t i = 0; i < to.size / sizeof(int64_t); i++)
      ((int64_t *)to.data)[i] = draw(r, r->bundle->manifest.vocab);
  else if (dtype == LP_DT_I32)
    for (size_t i = 0; i < to.size / sizeof(int32_t); i++)
      ((int32_t *)to.data)[i] = (int32_t)draw(r, r->bundle->manifest.vocab);
  else
    for (size_t i = 0; i < to.size / sizeof(float); i++)
      ((float *)to.data)[i] = (float)draw(r, 2001) / 1000 - 1;
}

static int32_t buffer_of(const lp_step *step) {
  return takes(step) && step->kind == LP_STEP_SEND ? step->to_buffer : step->buffer;
}

/* Runs a part by itself; `io` receives its inputs and outputs step by step. */
static void run_alone(run *r, sequence *s, int32_t program, const int64_t *sym, lp_span *io) {
  const lp_program *desc = &r->bundle->manifest.programs[program];
  must(r, lp_executor_begin(s->alone, program, sym, r->diag));
  for (int32_t i = 0; i < desc->step_count; i++) {
    const lp_step *step = &desc->step[i];
    lp_span span = {0};
    if (step->kind == LP_STEP_RUN && step->side == LP_SIDE_CLOUD) must(r, lp_executor_run(s->alone, step, r->diag));
    if (!takes(step) && !gives(step)) continue;
    must(r, lp_executor_buffer(s->alone, buffer_of(step), &step->tensor, &span, r->diag));
    io[i] = (lp_span){.data = lp_alloc(span.size + 1), .size = span.size};
    if (gives(step) && span.size > 0) memcpy(io[i].data, span.data, span.size);
    if (!takes(step)) continue;
    invent(r, step, io[i]);
    must(r, lp_executor_fill(s->alone, buffer_of(step), step, io[i].data, io[i].size, r->diag));
  }
}

static bool is_near(const run *r, const lp_step *step, const lp_span *wanted, const lp_span *found) {
  const float *x = wanted->data, *y = found->data;
  bool near = step->tensor.dtype == LP_DT_F32 && wanted->size == found->size;
  for (size_t i = 0; near && i < found->size / sizeof(float); i++)
    near = fabsf(x[i] - y[i]) <= r->near + r->near * fabsf(x[i]);
  return near;
}

static void compare(run *r, const lp_step *step, bool exact, const lp_span *wanted, const lp_span *found,
                    const int64_t *sym) {
  if (wanted->size == found->size && (found->size == 0 || memcmp(wanted->data, found->data, found->size) == 0)) return;
  if (!exact && is_near(r, step, wanted, found)) return;
  size_t at = 0;
  while (at < found->size && ((const char *)wanted->data)[at] == ((const char *)found->data)[at])
    at++;
  r->differences++;
  fprintf(stderr, "sequences: '%s' of b = %d, s = %d, p = %d, r = %d differs from byte %zu of %zu on\n",
          step->tensor.name, (int)sym[LP_SYM_B], (int)sym[LP_SYM_S], (int)sym[LP_SYM_P], (int)sym[LP_SYM_R], at,
          wanted->size);
}

static void run_together(run *r, int32_t program, const lp_batch_member *member, sequence *const *who, size_t count,
                         lp_span *const *io) {
  int64_t rows = 0;
  const lp_program *desc = &r->bundle->manifest.programs[program];
  must(r, lp_batch_begin(r->batch, program, member, count, r->diag));
  for (size_t i = 0; i < count; i++)
    rows += member[i].sym[LP_SYM_B] * member[i].sym[LP_SYM_S];
  for (size_t i = 0; i < count; i++)
    who[i]->exact &= rows <= r->exact_rows;
  for (int32_t k = 0; k < desc->step_count; k++) {
    const lp_step *step = &desc->step[k];
    if (step->kind == LP_STEP_RUN && step->side == LP_SIDE_CLOUD) must(r, lp_batch_run(r->batch, step, r->diag));
    if (gives(step)) must(r, lp_batch_fetch(r->batch, buffer_of(step), step, NULL, r->diag));
    for (size_t i = 0; (takes(step) || gives(step)) && i < count; i++) {
      lp_span span;
      must(r, lp_batch_buffer(r->batch, i, buffer_of(step), step, &span, r->diag));
      if (gives(step)) compare(r, step, who[i]->exact, &io[i][k], &span, member[i].sym);
      if (takes(step) && span.size > 0) memcpy(span.data, io[i][k].data, span.size);
    }
    if (takes(step)) must(r, lp_batch_bring(r->batch, buffer_of(step), step, r->diag));
  }
  must(r, lp_batch_end(r->batch, r->diag));
  r->passes++;
  r->parts += (long)count;
}

static void begin_sequence(run *r, sequence *s) {
  lp_executor_free(s->alone);
  lp_executor_free(s->member);
  s->alone = lp_executor_create(r->bundle, LP_SIDE_CLOUD, r->pool);
  s->member = lp_executor_create(r->bundle, LP_SIDE_CLOUD, r->pool);
  s->batch = 1 + (draw(r, 6) == 0);
  s->past = 0;
  s->exact = true;
  s->capacity = CAPACITY + draw(r, 50);
}

/* A part of the sequence; false: none in this round. */
static bool choose_part(run *r, sequence *s, bool first, int64_t *sym) {
  static const int64_t lengths[] = {1, 1, 1, 1, 2, 5, 13, MOST_PART};
  if (!s->alone || s->past + MOST_PART > CAPACITY) begin_sequence(r, s);
  if ((s->past == 0) != first || draw(r, 4) == 0) return false;
  memset(sym, 0, LP_MAX_SYMBOLS * sizeof *sym);
  sym[LP_SYM_B] = s->batch;
  sym[LP_SYM_S] = lengths[draw(r, 8)];
  int64_t most = r->exact_rows / (2 * SEQUENCES) + (r->exact_rows < 2 * SEQUENCES);
  if (r->small && sym[LP_SYM_S] > most) sym[LP_SYM_S] = most;
  sym[LP_SYM_P] = s->past;
  sym[LP_SYM_R] = 1 + draw(r, sym[LP_SYM_S]);
  sym[LP_SYM_C] = s->capacity;
  return true;
}

/* Runs the sequences that begin (`first`), or those that continue. If both programs have the same code, they run
 * together (`mixed`). */
static void run_round(run *r, int32_t program, bool first, bool mixed) {
  lp_batch_member member[SEQUENCES] = {0};
  sequence *who[SEQUENCES];
  lp_span *io[SEQUENCES];
  size_t count = 0, steps = (size_t)r->bundle->manifest.programs[program].step_count;
  for (size_t i = 0; i < SEQUENCES; i++) {
    sequence *s = &r->all[i];
    if (!choose_part(r, s, mixed ? s->past == 0 : first, member[count].sym)) continue;
    io[count] = lp_alloc(steps * sizeof *io[count]);
    run_alone(r, s, program, member[count].sym, io[count]);
    who[count] = s;
    member[count++].states = &s->member->states;
    s->past += member[count - 1].sym[LP_SYM_S];
  }
  if (count > 0) run_together(r, program, member, who, count, io);
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < steps; k++)
      free(io[i][k].data);
    free(io[i]);
  }
}

int main(int argc, char **argv) {
  run r = {.diag = lp_diag_create()};
  if (argc < 2 || argc > 4) return 2;
  r.exact_rows = argc > 2 ? atoll(argv[2]) : INT64_MAX;
  r.near = argc > 3 ? strtof(argv[3], NULL) : 1e-3f;
  lp_bundle *bundle = NULL;
  must(&r, lp_bundle_load(argv[1], &(lp_bundle_options){.load = LP_LOAD_CLOUD}, &bundle, r.diag));
  r.bundle = bundle;
  r.pool = lp_pool_create(2);
  lp_pool_share_all(r.pool);
  r.batch = lp_batch_create(bundle, LP_SIDE_CLOUD, r.pool);
  if (!r.batch) return fprintf(stderr, "sequences: the code runs one sequence at a time\n"), 1;
  int32_t prefill = lp_manifest_program(&bundle->manifest, "prefill");
  int32_t decode = lp_manifest_program(&bundle->manifest, "decode");
  bool mixed = lp_program_code(bundle, LP_SIDE_CLOUD, prefill) == lp_program_code(bundle, LP_SIDE_CLOUD, decode);
  for (int i = 0; i < ROUNDS; i++) {
    r.small = argc > 2 && i < ROUNDS / 2;
    if (!mixed) run_round(&r, prefill, true, false);
    run_round(&r, decode, false, mixed);
  }
  printf("%ld passes, %ld parts, %ld differ\n", r.passes, r.parts, r.differences);
  for (size_t i = 0; i < SEQUENCES; i++) {
    lp_executor_free(r.all[i].alone);
    lp_executor_free(r.all[i].member);
  }
  lp_batch_free(r.batch);
  lp_pool_free(r.pool);
  lp_bundle_free(bundle);
  lp_diag_free(r.diag);
  return r.differences != 0;
}
