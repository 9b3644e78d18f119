/* Measures a session: prompt processing and token generation as llama-bench counts them, and the parts of a pass. */
#include <math.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"
#include "runtime/session/walk.h"

enum { MOST_IDS = 1 << 28 };

typedef struct {
  lp_session *session;
  const lp_bench_options *options;
  int32_t prefill, decode;
  int64_t capacity, batch;
  int64_t *ids;      /* [batch * capacity], any tokens */
  lp_sample *sample; /* [batch] */
  lp_diag *diag;
} bench_run;

static lp_status walk_over(bench_run *run, int64_t past, int64_t count) {
  const lp_manifest *manifest = &run->session->bundle->manifest;
  lp_span input[1] = {
      {.data = run->ids, .size = (size_t)(run->batch * count) * lp_element_size(manifest->inputs[0].tensor.dtype)}};
  lp_walk walk = {.program = past == 0 ? run->prefill : run->decode, .input = input, .sample = run->sample};
  walk.sym[LP_SYM_B] = run->batch;
  walk.sym[LP_SYM_R] = 1;
  walk.sym[LP_SYM_S] = count;
  walk.sym[LP_SYM_P] = past;
  walk.sym[LP_SYM_C] = run->capacity;
  return lp_session_walk(run->session, &walk, run->diag);
}

static lp_status time_prompt(bench_run *run, double *ms) {
  int64_t depth = run->options->depth;
  if (depth > 0) LP_TRY(walk_over(run, 0, depth));
  double begin = lp_now_ms();
  LP_TRY(walk_over(run, depth, run->options->prompt));
  *ms = lp_now_ms() - begin;
  return LP_OK;
}

/* Generation continues a text of at least one token. */
static lp_status time_generation(bench_run *run, double *ms) {
  int64_t depth = run->options->depth > 0 ? run->options->depth : 1;
  LP_TRY(walk_over(run, 0, depth));
  double begin = lp_now_ms();
  for (int64_t i = 0; i < run->options->generate; i++)
    LP_TRY(walk_over(run, depth + i, 1));
  *ms = lp_now_ms() - begin;
  return LP_OK;
}

static lp_status measure(bench_run *run, lp_status (*time_once)(bench_run *, double *), int64_t tokens,
                         lp_bench_row *row) {
  int64_t repetitions = run->options->repetitions;
  double sum = 0, squares = 0, ms = 0;
  LP_TRY(time_once(run, &ms)); /* warm-up */
  LP_TRY(lp_bundle_await_check(run->session->bundle, run->diag));
  for (int64_t i = 0; i < repetitions; i++) {
    LP_TRY(time_once(run, &ms));
    double speed = (double)tokens / (ms / 1e3);
    sum += speed;
    squares += speed * speed;
  }
  double mean = sum / (double)repetitions;
  double variance = repetitions > 1 ? (squares - sum * mean) / (double)(repetitions - 1) : 0;
  row->tokens = tokens;
  row->tokens_per_s = mean;
  row->deviation = variance > 0 ? sqrt(variance) : 0;
  return LP_OK;
}

static void name_row(lp_bench_row *row, const char *kind, int64_t tokens, const bench_run *run) {
  int length = snprintf(row->name, sizeof row->name, "%s%" PRId64, kind, tokens);
  if (run->batch > 1)
    length += snprintf(row->name + length, sizeof row->name - (size_t)length, " x %" PRId64, run->batch);
  if (run->options->depth > 0)
    snprintf(row->name + length, sizeof row->name - (size_t)length, " @ d%" PRId64, run->options->depth);
}

static lp_status measure_rows(bench_run *run, lp_bench_result *out) {
  const lp_bench_options *options = run->options;
  if (options->prompt > 0) {
    lp_bench_row *row = &out->row[out->rows++];
    name_row(row, "pp", options->prompt, run);
    LP_TRY(measure(run, time_prompt, run->batch * options->prompt, row));
  }
  if (options->generate > 0) {
    lp_bench_row *row = &out->row[out->rows++];
    name_row(row, "tg", options->generate, run);
    LP_TRY(measure(run, time_generation, run->batch * options->generate, row));
    row->gbytes_per_s = row->tokens_per_s / (double)run->batch * (double)out->weight_bytes / 1e9;
  }
  return LP_OK;
}

static int64_t weight_bytes(const lp_manifest *manifest) {
  int64_t total = 0;
  for (lp_place i = 0; i < manifest->place_count; i++)
    if (manifest->side[i].present && manifest->side[i].weights) total += manifest->side[i].weights->bytes;
  return total;
}

static lp_status prepare(bench_run *run) {
  const lp_manifest *manifest = &run->session->bundle->manifest;
  lp_loc loc = LP_LOC_FILE(manifest->file);
  const lp_bench_options *options = run->options;
  run->prefill = lp_manifest_program(manifest, "prefill");
  run->decode = lp_manifest_program(manifest, "decode");
  if (run->prefill < 0 || run->decode < 0 || manifest->input_count != 1 || manifest->inputs[0].role != LP_ROLE_TOKENS ||
      run->session->logits < 0 || manifest->vocab < 1)
    return lp_error(run->diag, loc, "the bundle does not generate text, so there is nothing to measure");
  int64_t most = options->prompt > options->generate ? options->prompt : options->generate;
  run->capacity = options->depth + most + 1;
  if (manifest->context_length > 0 && run->capacity - 1 > manifest->context_length)
    return lp_error(run->diag, loc, "%" PRId64 " tokens exceed the model's context of %" PRId64, run->capacity - 1,
                    manifest->context_length);
  size_t ids = 0;
  if (run->batch < 1 || !lp_size_mul((size_t)run->batch, (size_t)run->capacity, &ids) || ids > MOST_IDS)
    return lp_error(run->diag, loc, "%" PRId64 " sequences of %" PRId64 " tokens are too many", run->batch,
                    run->capacity);
  run->ids = lp_alloc(ids * sizeof *run->ids);
  run->sample = lp_alloc((size_t)run->batch * sizeof *run->sample);
  uint32_t state = 1;
  bool narrow = manifest->inputs[0].tensor.dtype == LP_DT_I32;
  for (size_t i = 0; i < ids; i++) {
    state = state * 1664525u + 1013904223u;
    int32_t token = (int32_t)((state >> 8) % (uint32_t)manifest->vocab);
    if (narrow)
      ((int32_t *)run->ids)[i] = token;
    else
      run->ids[i] = token;
  }
  return LP_OK;
}

lp_status lp_session_bench(lp_session *session, const lp_bench_options *options, lp_bench_result *out, lp_diag *diag) {
  bench_run run = {
      .session = session, .options = options, .diag = diag, .batch = options->batch > 0 ? options->batch : 1};
  *out = (lp_bench_result){.threads = lp_pool_threads(session->pool),
                           .weight_bytes = weight_bytes(&session->bundle->manifest)};
  lp_status status = prepare(&run);
  if (status == LP_OK) status = measure_rows(&run, out);
  free(run.ids);
  free(run.sample);
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) out->peak_bytes = usage.ru_maxrss * 1024;
  return status;
}

/* ---- parts of a pass --------------------------------------------------------------------------------------------- */

/* The position of the first repetition. Repetitions of a single token take consecutive positions around `past`, as
 * generation does, rather than overwrite one position of the KV cache. */
static int64_t first_past(int64_t past, int64_t count, int64_t repetitions, int64_t context) {
  if (count > 1 || past == 0) return past;
  int64_t first = past - repetitions / 2;
  if (context > 0 && first + repetitions >= context) first = context - repetitions - 1;
  return first < 1 ? 1 : first;
}

/* The times of the repetitions, less those of the marks themselves. */
typedef struct {
  size_t rounds, parts;
  double *part_ms;             /* [round][part] */
  double *total_ms, *other_ms; /* [round] */
} part_times;

static void mark(lp_clock *clock) {
  lp_stopwatch *watch = (lp_stopwatch *)clock;
  if (watch->marks < watch->most) watch->mark[watch->marks] = lp_now_ms();
  watch->marks++;
}

/* The time of one mark: the least of a few means. */
static double mark_ms(lp_stopwatch *watch) {
  enum { RUNS = 5, MARKS = 200 };
  double least = INFINITY;
  for (int run = 0; run < RUNS; run++) {
    watch->marks = 0;
    double begin = lp_now_ms();
    for (int i = 0; i < MARKS; i++)
      watch->clock.mark(&watch->clock);
    least = fmin(least, (lp_now_ms() - begin) / (double)MARKS);
  }
  return least;
}

static size_t parts_of(const lp_step *step) {
  return step->part_count > 0 ? (size_t)step->part_count : 1;
}

/* Takes the time of the marks off the parts and the total, and computes the time that belongs to no part. */
static void settle_round(const lp_program *program, double mark_cost, double *part_ms, double *total_ms,
                         double *other_ms) {
  double known = 0;
  LP_FOR_EACH(const lp_step, step, program->step, program->step_count) {
    for (size_t i = 0; i < parts_of(step); i++, part_ms++) {
      if (step->part_count > 0) *part_ms = fmax(*part_ms - mark_cost, 0);
      if (step->part_count > 0) *total_ms -= mark_cost;
      if (step->kind == LP_STEP_RUN) known += *part_ms;
    }
  }
  *other_ms = fmax(*total_ms - known, 0);
}

/* Times the walks; each begins `next` positions after the one before it. */
static lp_status time_parts(bench_run *run, int64_t past, int64_t count, int64_t next, part_times *out) {
  const lp_program *program = &run->session->bundle->manifest.programs[past == 0 ? run->prefill : run->decode];
  if (past > 0) LP_TRY(walk_over(run, 0, past));
  LP_TRY(walk_over(run, past, count)); /* warm-up */
  LP_TRY(lp_bundle_await_check(run->session->bundle, run->diag));
  lp_stopwatch watch = {.clock = {mark}, .most = 1};
  for (int32_t s = 0; s < program->step_count; s++)
    watch.most = program->step[s].part_count > watch.most ? program->step[s].part_count : watch.most;
  watch.mark = lp_alloc((size_t)watch.most * sizeof *watch.mark);
  double mark_cost = mark_ms(&watch);
  lp_status status = LP_OK;
  run->session->watch = &watch;
  for (size_t r = 0; r < out->rounds && status == LP_OK; r++) {
    watch.part_ms = out->part_ms + r * out->parts;
    watch.parts = 0;
    double begin = lp_now_ms();
    status = walk_over(run, past + (int64_t)r * next, count);
    out->total_ms[r] = lp_now_ms() - begin;
    if (status == LP_OK) settle_round(program, mark_cost, watch.part_ms, &out->total_ms[r], &out->other_ms[r]);
  }
  run->session->watch = NULL;
  free(watch.mark);
  return status;
}

typedef struct {
  double total_ms;
  size_t index;
} round_time;

static int by_time(const void *a, const void *b) {
  double x = ((const round_time *)a)->total_ms, y = ((const round_time *)b)->total_ms;
  return (x > y) - (x < y);
}

/* Keeps the middle half of the rounds by total time at the front of `order` and returns its size. Means over these
 * rounds sum to the time of a pass; medians of the parts would omit delays that hit different parts in different
 * rounds. */
static size_t keep_middle(const part_times *times, round_time *order) {
  for (size_t r = 0; r < times->rounds; r++)
    order[r] = (round_time){times->total_ms[r], r};
  qsort(order, times->rounds, sizeof *order, by_time);
  size_t first = times->rounds / 4, kept = times->rounds - 2 * first;
  memmove(order, order + first, kept * sizeof *order);
  return kept;
}

static void collect_parts(const lp_program *program, const part_times *times, lp_profile *out) {
  LP_OWNED(lp_free_at) round_time *order = lp_alloc(times->rounds * sizeof *order);
  size_t kept = keep_middle(times, order), at = 0;
  LP_FOR_EACH(const lp_step, step, program->step, program->step_count) {
    for (size_t i = 0; i < parts_of(step); i++, at++) {
      if (step->kind != LP_STEP_RUN) continue;
      lp_part_time part = {step->part_count > 0 ? step->part[i] : step->segment, 0};
      for (size_t r = 0; r < kept; r++)
        part.ms += times->part_ms[order[r].index * times->parts + at] / (double)kept;
      lp_vec_push(&out->parts, part);
    }
  }
  for (size_t r = 0; r < kept; r++) {
    out->total_ms += order[r].total_ms / (double)kept;
    out->other_ms += times->other_ms[order[r].index] / (double)kept;
  }
}

lp_status lp_session_profile(lp_session *session, int64_t batch, int64_t past, int64_t count, int64_t repetitions,
                             lp_profile *out, lp_diag *diag) {
  int64_t context = session->bundle->manifest.context_length, first = first_past(past, count, repetitions, context);
  bool one_by_one = count == 1 && past > 0;
  const lp_bench_options options = {.prompt = count, .depth = one_by_one ? first + repetitions : past};
  bench_run run = {.session = session, .options = &options, .diag = diag, .batch = batch};
  *out = (lp_profile){0};
  if (lp_session_is_connected(session))
    return lp_error(diag, LP_LOC_FILE(session->bundle->manifest.file), "parts are timed in one process only");
  lp_status status = prepare(&run);
  if (status == LP_OK) {
    const lp_program *program = &session->bundle->manifest.programs[past == 0 ? run.prefill : run.decode];
    part_times times = {.rounds = (size_t)repetitions};
    for (int32_t s = 0; s < program->step_count; s++)
      times.parts += parts_of(&program->step[s]);
    times.part_ms = lp_alloc((times.rounds * times.parts + 1) * sizeof(double));
    times.total_ms = lp_alloc(times.rounds * sizeof(double));
    times.other_ms = lp_alloc(times.rounds * sizeof(double));
    status = time_parts(&run, first, count, one_by_one, &times);
    if (status == LP_OK) collect_parts(program, &times, out);
    free(times.part_ms);
    free(times.total_ms);
    free(times.other_ms);
  }
  free(run.ids);
  free(run.sample);
  return status;
}
