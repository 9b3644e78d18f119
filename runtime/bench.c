/* Measures a session: prompt processing and token generation, as llama-bench counts them. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "runtime/runtime_internal.h"

typedef struct {
  lp_session *session;
  const lp_bench_options *options;
  int32_t prefill, decode;
  int64_t capacity;
  int64_t *ids; /* [capacity], any tokens */
  lp_diag *diag;
} bench_run;

static lp_status walk(bench_run *run, int64_t past, int64_t count) {
  const lp_manifest *manifest = &run->session->bundle->manifest;
  lp_span input[1] = {{.data = run->ids, .size = (size_t)count * lp_element_size(manifest->inputs[0].tensor.dtype)}};
  lp_sample sample;
  lp_walk step = {.program = past == 0 ? run->prefill : run->decode, .input = input, .sample = &sample};
  step.sym[LP_SYM_B] = step.sym[LP_SYM_R] = 1;
  step.sym[LP_SYM_S] = count;
  step.sym[LP_SYM_P] = past;
  step.sym[LP_SYM_C] = run->capacity;
  return lp_session_walk(run->session, &step, run->diag);
}

static lp_status time_prompt(bench_run *run, double *ms) {
  int64_t depth = run->options->depth;
  if (depth > 0) LP_TRY(walk(run, 0, depth));
  double begin = lp_now_ms();
  LP_TRY(walk(run, depth, run->options->prompt));
  *ms = lp_now_ms() - begin;
  return LP_OK;
}

/* Generation goes on from a context of at least one token. */
static lp_status time_generation(bench_run *run, double *ms) {
  int64_t depth = run->options->depth > 0 ? run->options->depth : 1;
  LP_TRY(walk(run, 0, depth));
  double begin = lp_now_ms();
  for (int64_t i = 0; i < run->options->generate; i++)
    LP_TRY(walk(run, depth + i, 1));
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

static void name_row(lp_bench_row *row, const char *kind, int64_t tokens, int64_t depth) {
  if (depth > 0)
    snprintf(row->name, sizeof(row->name), "%s%" PRId64 " @ d%" PRId64, kind, tokens, depth);
  else
    snprintf(row->name, sizeof(row->name), "%s%" PRId64, kind, tokens);
}

static lp_status measure_rows(bench_run *run, lp_bench_result *out) {
  const lp_bench_options *options = run->options;
  if (options->prompt > 0) {
    lp_bench_row *row = &out->row[out->rows++];
    name_row(row, "pp", options->prompt, options->depth);
    LP_TRY(measure(run, time_prompt, options->prompt, row));
  }
  if (options->generate > 0) {
    lp_bench_row *row = &out->row[out->rows++];
    name_row(row, "tg", options->generate, options->depth);
    LP_TRY(measure(run, time_generation, options->generate, row));
    row->gbytes_per_s = row->tokens_per_s * (double)out->weight_bytes / 1e9;
  }
  return LP_OK;
}

static int64_t weight_bytes(const lp_manifest *manifest) {
  int64_t total = 0;
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    if (manifest->side[i].present && manifest->side[i].weights != NULL) total += manifest->side[i].weights->bytes;
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
  if (manifest->context > 0 && run->capacity - 1 > manifest->context)
    return lp_error(run->diag, loc, "%" PRId64 " tokens exceed the model's context of %" PRId64, run->capacity - 1,
                    manifest->context);
  run->ids = lp_alloc((size_t)run->capacity * sizeof(*run->ids));
  uint32_t state = 1;
  bool narrow = manifest->inputs[0].tensor.dtype == LP_DT_I32;
  for (int64_t i = 0; i < run->capacity; i++) {
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
  bench_run run = {.session = session, .options = options, .diag = diag};
  *out = (lp_bench_result){.threads = lp_pool_threads(session->pool),
                           .weight_bytes = weight_bytes(&session->bundle->manifest)};
  lp_status status = prepare(&run);
  if (status == LP_OK) status = measure_rows(&run, out);
  free(run.ids);
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) out->peak_bytes = usage.ru_maxrss * 1024;
  return status;
}

/* ---- parts ---- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof(*values), by_value);
  return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Where the first repetition begins. Tokens are generated one behind the other, around `past`: a place of the KV cache that
 * was just written is no place for the next one. */
static int64_t first_past(int64_t past, int64_t count, int64_t repetitions, int64_t context) {
  if (count > 1 || past == 0) return past;
  int64_t first = past - repetitions / 2;
  if (context > 0 && first + repetitions >= context) first = context - repetitions - 1;
  return first < 1 ? 1 : first;
}

/* `times` is [repetition][step], `totals` [repetition]. `next`: how much further each repetition begins. */
static lp_status time_parts(bench_run *run, int64_t past, int64_t count, int64_t next, size_t repetitions, size_t steps,
                            double *times, double *totals) {
  if (past > 0) LP_TRY(walk(run, 0, past));
  LP_TRY(walk(run, past, count)); /* warm-up */
  LP_TRY(lp_bundle_await_check(run->session->bundle, run->diag));
  lp_status status = LP_OK;
  for (size_t r = 0; r < repetitions && status == LP_OK; r++) {
    run->session->step_ms = times + r * steps;
    double begin = lp_now_ms();
    status = walk(run, past + (int64_t)r * next, count);
    totals[r] = lp_now_ms() - begin;
  }
  run->session->step_ms = NULL;
  return status;
}

static void collect_parts(const lp_program *program, const double *times, size_t repetitions, lp_profile *out) {
  double *column = lp_alloc(repetitions * sizeof(*column));
  double *other = lp_alloc(repetitions * sizeof(*other));
  size_t steps = (size_t)program->step_count;
  for (size_t s = 0; s < steps; s++) {
    const lp_step *step = &program->step[s];
    if (step->kind != LP_STEP_RUN) {
      for (size_t r = 0; r < repetitions; r++)
        other[r] += times[r * steps + s];
      continue;
    }
    for (size_t r = 0; r < repetitions; r++)
      column[r] = times[r * steps + s];
    lp_part_time part = {step->name != NULL ? step->name : step->segment, median(column, repetitions)};
    lp_vec_push(&out->parts, part);
  }
  out->other_ms = median(other, repetitions);
  free(other);
  free(column);
}

lp_status lp_session_profile(lp_session *session, int64_t past, int64_t count, int64_t repetitions, lp_profile *out,
                             lp_diag *diag) {
  int64_t context = session->bundle->manifest.context, first = first_past(past, count, repetitions, context);
  bool one_by_one = count == 1 && past > 0;
  const lp_bench_options options = {.prompt = count, .depth = one_by_one ? first + repetitions : past};
  bench_run run = {.session = session, .options = &options, .diag = diag};
  *out = (lp_profile){0};
  if (session->link != NULL)
    return lp_error(diag, LP_LOC_FILE(session->bundle->manifest.file), "parts are timed in one process only");
  lp_status status = prepare(&run);
  if (status == LP_OK) {
    const lp_program *program = &session->bundle->manifest.programs[past == 0 ? run.prefill : run.decode];
    size_t steps = (size_t)program->step_count, rounds = (size_t)repetitions;
    double *times = lp_alloc(rounds * steps * sizeof(*times) + sizeof(*times));
    double *totals = lp_alloc(rounds * sizeof(*totals));
    status = time_parts(&run, first, count, one_by_one, rounds, steps, times, totals);
    if (status == LP_OK) {
      collect_parts(program, times, rounds, out);
      out->total_ms = median(totals, rounds);
    }
    free(times);
    free(totals);
  }
  free(run.ids);
  return status;
}
