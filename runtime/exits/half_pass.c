/* Runs passes of either half. Both halves are the bundle's own programs; each side has its own symbol values. */
#include <string.h>

#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/sampler.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

static const lp_program *program_at(const lp_halves *halves, int64_t past) {
  return &halves->bundle->manifest.programs[lp_halves_program(halves, past)];
}

static void set_symbols(int64_t *sym, int64_t past, int64_t count, int64_t rows, int64_t capacity) {
  memset(sym, 0, LP_MAX_SYMBOLS * sizeof *sym);
  sym[LP_SYM_B] = 1;
  sym[LP_SYM_S] = count;
  sym[LP_SYM_P] = past;
  sym[LP_SYM_R] = rows;
  sym[LP_SYM_C] = capacity;
}

static lp_status fill_tokens(const lp_halves *halves, lp_executor *executor, const lp_step *step,
                             const lp_device_pass *pass, lp_buf *ids, lp_diag *diag) {
  bool narrow = halves->bundle->manifest.inputs[halves->tokens].tensor.dtype == LP_DT_I32;
  size_t size = (size_t)pass->count * (narrow ? sizeof(int32_t) : sizeof(int64_t));
  lp_buf_reserve(ids, size);
  for (int64_t i = 0; i < pass->count; i++) {
    int64_t wide = pass->token[i];
    if (narrow)
      memcpy(ids->data + (size_t)i * sizeof(int32_t), &pass->token[i], sizeof(int32_t));
    else
      memcpy(ids->data + (size_t)i * sizeof wide, &wide, sizeof wide);
  }
  return lp_executor_fill(executor, step->buffer, step, ids->data, size, diag);
}

/* Copies `part` floats of each of `count` rows, which are `to_width` and `from_width` floats apart. */
static void copy_columns(float *to, size_t to_width, const float *from, size_t from_width, size_t part, size_t count) {
  for (size_t i = 0; i < count; i++)
    memcpy(to + i * to_width, from + i * from_width, part * sizeof(float));
}

/* Draws the sample after each of the last `wanted` positions before `end`, from their logits. */
static void sample_rows(const lp_logits *logits, int64_t end, int64_t wanted, const lp_sampling *sampling,
                        lp_sample *out, lp_buf *scratch) {
  for (int64_t i = 0; i < wanted; i++)
    out[i] = lp_logits_draw(logits, i, sampling, 0, (uint64_t)(end - wanted + i + 1), scratch);
}

/* Reads the logits of `wanted` positions from an executor; none when `wanted` is 0. */
static lp_status read_logits(lp_executor *executor, const lp_step *step, int64_t wanted, lp_logits *out,
                             lp_diag *diag) {
  lp_span span;
  *out = (lp_logits){0};
  if (wanted == 0) return LP_OK;
  LP_TRY(lp_executor_buffer(executor, step->buffer, &step->tensor, &span, diag));
  const int64_t sym[] = {[LP_SYM_B] = 1, [LP_SYM_R] = wanted};
  return lp_logits_read(&executor->bundle->manifest, sym, &span, out, diag);
}

static int32_t exit_of(const lp_manifest *manifest, int32_t output) {
  for (int32_t i = 0; i < manifest->exit_count; i++)
    if (manifest->exits[i].output == output) return i;
  return -1;
}

typedef struct {
  const lp_halves *halves;
  lp_executor *executor;
  const lp_device_pass *pass;
  const lp_sampling *sampling;
  float *rows;
  size_t column;
  lp_buf *ids, *scratch;
  lp_diag *diag;
  bool wanted[LP_MOST_EXITS], asked[LP_MOST_EXITS];
} device_run;

static bool wants(device_run *run, int32_t exit) {
  if (!run->asked[exit]) run->wanted[exit] = run->pass->wants(run->pass->user, exit);
  run->asked[exit] = true;
  return run->wanted[exit];
}

static lp_status take_exit(device_run *run, const lp_step *step) {
  int32_t exit = exit_of(&run->halves->bundle->manifest, step->port);
  if (exit < 0 || !wants(run, exit)) return LP_OK;
  const lp_device_pass *pass = run->pass;
  lp_logits logits;
  LP_TRY(read_logits(run->executor, step, pass->wanted, &logits, run->diag));
  sample_rows(&logits, pass->past + pass->count, pass->wanted, run->sampling, pass->samples, run->scratch);
  pass->take(pass->user, exit, pass->samples);
  return LP_OK;
}

static lp_status device_step(device_run *run, const lp_step *step) {
  size_t part = 0;
  lp_span span;
  switch (step->kind) {
  case LP_STEP_INPUT:
    return fill_tokens(run->halves, run->executor, step, run->pass, run->ids, run->diag);
  case LP_STEP_RUN:
    return step->exit < 0 || wants(run, step->exit) ? lp_executor_run(run->executor, step, run->diag) : LP_OK;
  case LP_STEP_OUTPUT:
    return take_exit(run, step);
  case LP_STEP_SEND:
    LP_TRY(lp_executor_buffer(run->executor, step->buffer, &step->tensor, &span, run->diag));
    part = lp_halves_row_width(&step->tensor);
    copy_columns(run->rows + run->column, run->halves->width, span.data, part, part, (size_t)run->pass->count);
    run->column += part;
    return LP_OK;
  case LP_STEP_MOVE:
    break;
  }
  return LP_OK;
}

lp_status lp_halves_run_device(const lp_halves *halves, lp_executor *executor, const lp_device_pass *pass,
                               const lp_sampling *sampling, float *rows, lp_buf *ids, lp_buf *scratch, lp_diag *diag) {
  const lp_program *program = program_at(halves, pass->past);
  device_run run = {.halves = halves,
                    .executor = executor,
                    .pass = pass,
                    .sampling = sampling,
                    .rows = rows,
                    .ids = ids,
                    .scratch = scratch,
                    .diag = diag};
  int64_t sym[LP_MAX_SYMBOLS];
  set_symbols(sym, pass->past, pass->count, pass->wanted, pass->capacity);
  LP_TRY(lp_executor_begin(executor, lp_halves_program(halves, pass->past), sym, diag));
  for (int32_t i = 0; i < program->step_count; i++)
    if (program->step[i].side == LP_SIDE_DEVICE) LP_TRY(device_step(&run, &program->step[i]));
  return LP_OK;
}

/* A pass without samples computes the logits of one row all the same, since a GPU cannot launch a kernel over 0 rows.
 */
static int64_t logit_rows(const lp_cloud_pass *pass) {
  return pass->wanted > 0 ? pass->wanted : 1;
}

void lp_cloud_pass_symbols(const lp_cloud_pass *pass, int64_t sym[LP_MAX_SYMBOLS]) {
  set_symbols(sym, pass->past, pass->count, logit_rows(pass), pass->capacity);
}

size_t lp_cloud_pass_fill(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                          void *to) {
  size_t part = lp_halves_row_width(&step->tensor);
  if (to) {
    copy_columns(to, part, pass->rows + *column, halves->width, part, (size_t)pass->count);
    *column += part;
  }
  return part * (size_t)pass->count * sizeof(float);
}

void lp_cloud_pass_sample(const lp_cloud_pass *pass, const lp_sampling *sampling, const lp_logits *logits,
                          lp_sample *out, lp_buf *scratch) {
  sample_rows(logits, pass->past + pass->count, pass->wanted, sampling, out, scratch);
}

lp_status lp_halves_run_cloud(const lp_halves *halves, lp_executor *executor, const lp_cloud_pass *pass,
                              const lp_sampling *sampling, lp_sample *out, lp_buf *scratch, lp_diag *diag) {
  const lp_program *program = program_at(halves, pass->past);
  int32_t logits = lp_manifest_output(&halves->bundle->manifest, LP_ROLE_LOGITS);
  size_t column = 0;
  int64_t sym[LP_MAX_SYMBOLS];
  lp_cloud_pass_symbols(pass, sym);
  LP_TRY(lp_executor_begin(executor, lp_halves_program(halves, pass->past), sym, diag));
  for (int32_t i = 0; i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    if (step->kind == LP_STEP_SEND) {
      size_t bytes = lp_cloud_pass_fill(halves, pass, step, &column, NULL);
      lp_buf_reserve(scratch, bytes);
      (void)lp_cloud_pass_fill(halves, pass, step, &column, scratch->data);
      LP_TRY(lp_executor_fill(executor, step->to_buffer, step, scratch->data, bytes, diag));
    } else if (step->kind == LP_STEP_RUN && step->side == LP_SIDE_CLOUD) {
      LP_TRY(lp_executor_run(executor, step, diag));
    } else if (step->kind == LP_STEP_OUTPUT && step->port == logits && pass->wanted > 0) {
      lp_logits all;
      LP_TRY(read_logits(executor, step, pass->wanted, &all, diag));
      lp_cloud_pass_sample(pass, sampling, &all, out, scratch);
    }
  }
  return LP_OK;
}
