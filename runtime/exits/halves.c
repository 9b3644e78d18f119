/* A bundle as two halves that run apart: the device's up to its last exit, the cloud's on the rows that the device sent,
 * whenever and however many at a time. Both are the bundle's own programs, each side at symbol values of its own. */
#include <string.h>

#include "base/poly.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/logits.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

/* ---- does it come apart? ----------------------------------------------------------------------------------------- */

static bool is_symbol(const lp_poly *poly, lp_symbol symbol) {
  return poly->count == 1 && poly->term[0].coef == 1 && poly->term[0].symbol[0] == symbol &&
         poly->term[0].symbol[1] == 0;
}

/* Floats of one position in a tensor [b][s][..] of f32; 0 when it is something else. */
static size_t row_width(const lp_tensor_desc *tensor) {
  size_t width = 1;
  if (tensor->dtype != LP_DT_F32 || tensor->rank < 2 || !is_symbol(tensor->shape[0], LP_SYM_B + 1) ||
      !is_symbol(tensor->shape[1], LP_SYM_S + 1))
    return 0;
  for (int32_t i = 2; i < tensor->rank; i++) {
    int64_t dim = 0;
    if (!lp_poly_is_const(tensor->shape[i], &dim) || dim < 1 || !lp_size_mul(width, (size_t)dim, &width)) return 0;
  }
  return width;
}

static const char *step_problem(const lp_manifest *manifest, const lp_step *step) {
  bool crosses_up = step->kind == LP_STEP_SEND && step->side == LP_SIDE_DEVICE;
  if (step->kind == LP_STEP_MOVE) return "a KV cache moves between the sides";
  if (step->kind == LP_STEP_SEND && !crosses_up) return "the cloud sends more than tokens back";
  if (step->kind == LP_STEP_SEND && row_width(&step->tensor) == 0) return "what crosses is not one row per position";
  if (step->kind == LP_STEP_INPUT && step->side != LP_SIDE_DEVICE) return "the cloud reads the tokens itself";
  if (step->kind != LP_STEP_OUTPUT) return NULL;
  bool logits = manifest->outputs[step->port].role == LP_ROLE_LOGITS;
  for (int32_t i = 0; i < manifest->exit_count; i++)
    if (manifest->exits[i].output == step->port && step->side != LP_SIDE_DEVICE)
      return "an exit is computed in the cloud";
  return logits && step->side != LP_SIDE_CLOUD ? "the device computes the whole model" : NULL;
}

/* The widths of what crosses, one after the other, must be the same in both programs. */
static const char *program_problem(const lp_manifest *manifest, const lp_program *program, lp_halves *out,
                                   uint64_t *shape) {
  size_t width = 0;
  *shape = 0;
  for (int32_t i = 0; i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    const char *problem = step_problem(manifest, step);
    if (problem) return problem;
    if (step->kind != LP_STEP_SEND) continue;
    width += row_width(&step->tensor);
    *shape = lp_hash_bytes(&width, sizeof width, *shape + 1);
  }
  out->width = width;
  return width > 0 ? NULL : "nothing crosses to the cloud";
}

bool lp_halves_find(const lp_bundle *bundle, lp_halves *out, const char **why) {
  const lp_manifest *manifest = &bundle->manifest;
  *out = (lp_halves){.bundle = bundle,
                     .prefill = lp_manifest_program(manifest, "prefill"),
                     .decode = lp_manifest_program(manifest, "decode"),
                     .tokens = lp_manifest_input(manifest, LP_ROLE_TOKENS)};
  *why = "the bundle has no early exits (compile --exits)";
  if (manifest->exit_count == 0) return false;
  *why = "the bundle does not generate text";
  if (out->prefill < 0 || out->decode < 0 || out->tokens < 0 || manifest->input_count != 1 ||
      manifest->exit_count > LP_MOST_EXITS || lp_manifest_output(manifest, LP_ROLE_LOGITS) < 0)
    return false;
  uint64_t shape[2];
  *why = program_problem(manifest, &manifest->programs[out->prefill], out, &shape[0]);
  if (!*why) *why = program_problem(manifest, &manifest->programs[out->decode], out, &shape[1]);
  if (!*why && shape[0] != shape[1]) *why = "prefill and decode send different rows";
  return *why == NULL;
}

bool lp_bundle_allows(const lp_bundle *bundle, lp_mode mode, const char **why) {
  lp_halves halves;
  *why = "";
  return mode == LP_MODE_FULL || mode == LP_MODE_EXACT || lp_halves_find(bundle, &halves, why);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

int32_t lp_halves_program(const lp_halves *halves, int64_t past) {
  return past == 0 ? halves->prefill : halves->decode;
}

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

/* Between a tensor [1][count][part] and columns [at, at + part) of rows [count][width]. */
static void copy_columns(float *to, size_t to_width, const float *from, size_t from_width, size_t part, size_t count) {
  for (size_t i = 0; i < count; i++)
    memcpy(to + i * to_width, from + i * from_width, part * sizeof(float));
}

/* Samples behind each of the last `wanted` positions up to `end`, from their logits. */
static void sample_rows(const lp_logits *logits, int64_t end, int64_t wanted, const lp_sampling *sampling,
                        lp_sample *out, lp_buf *scratch) {
  for (int64_t i = 0; i < wanted; i++)
    out[i] = lp_logits_draw(logits, i, sampling, 0, (uint64_t)(end - wanted + i + 1), scratch);
}

/* An executor's logits of `wanted` positions. */
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
    part = row_width(&step->tensor);
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

/* A pass of which nothing is asked computes the logits of one row all the same: no rows at all are no size for a GPU. */
static int64_t logit_rows(const lp_cloud_pass *pass) {
  return pass->wanted > 0 ? pass->wanted : 1;
}

void lp_cloud_pass_symbols(const lp_cloud_pass *pass, int64_t sym[]) {
  set_symbols(sym, pass->past, pass->count, logit_rows(pass), pass->capacity);
}

size_t lp_cloud_pass_fill(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                          void *to) {
  size_t part = row_width(&step->tensor);
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
