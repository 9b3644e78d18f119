/* Runs passes of the cloud's half, and holds what passes of both halves share. Both halves are the bundle's own
 * programs; each side has its own symbol values. */

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/sampler.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

void lp_halves_symbols(int64_t sym[LP_MAX_SYMBOLS], int64_t past, int64_t count, int64_t rows, int64_t capacity) {
  memset(sym, 0, LP_MAX_SYMBOLS * sizeof *sym);
  sym[LP_SYM_B] = 1;
  sym[LP_SYM_S] = count;
  sym[LP_SYM_P] = past;
  sym[LP_SYM_R] = rows;
  sym[LP_SYM_C] = capacity;
}

void lp_halves_copy_columns(float *to, size_t to_width, const float *from, size_t from_width, size_t part,
                            size_t count) {
  for (size_t i = 0; i < count; i++)
    memcpy(to + i * to_width, from + i * from_width, part * sizeof(float));
}

/* Draws the sample after each of the last `wanted` positions before `end`, from their logits. */
static void draw_rows(const lp_logits *logits, int64_t end, int64_t wanted, const lp_sampling *sampling, lp_sample *out,
                      lp_buf *scratch) {
  for (int64_t i = 0; i < wanted; i++)
    out[i] = lp_logits_draw(logits, i, sampling, 0, (uint64_t)(end - wanted + i + 1), scratch);
}

lp_status lp_halves_sample(lp_executor *executor, const lp_step *step, int64_t end, int64_t wanted,
                           const lp_sampling *sampling, lp_sample *out, lp_buf *scratch, lp_diag *diag) {
  lp_span span;
  lp_logits logits;
  const int64_t sym[] = {[LP_SYM_B] = 1, [LP_SYM_R] = wanted};
  LP_TRY(lp_executor_buffer(executor, step->buffer, &step->tensor, &span, diag));
  LP_TRY(lp_logits_read(&executor->bundle->manifest, sym, &span, &logits, diag));
  draw_rows(&logits, end, wanted, sampling, out, scratch);
  return LP_OK;
}

/* A pass without samples computes the logits of one row all the same, since a GPU cannot launch a kernel over 0 rows.
 */
static int64_t logit_rows(const lp_cloud_pass *pass) {
  return pass->wanted > 0 ? pass->wanted : 1;
}

void lp_cloud_pass_symbols(const lp_cloud_pass *pass, int64_t sym[LP_MAX_SYMBOLS]) {
  lp_halves_symbols(sym, pass->past, pass->count, logit_rows(pass), pass->capacity);
}

size_t lp_cloud_pass_fill(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                          void *to) {
  size_t part = lp_halves_row_width(&step->tensor);
  if (to) {
    lp_halves_copy_columns(to, part, pass->rows + *column, halves->width[pass->link], part, (size_t)pass->count);
    *column += part;
  }
  return part * (size_t)pass->count * sizeof(float);
}

void lp_cloud_pass_take(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                        const void *from) {
  size_t part = lp_halves_row_width(&step->tensor);
  lp_halves_copy_columns(pass->made + *column, lp_halves_made_width(halves, pass->link), from, part, part,
                         (size_t)pass->count);
  *column += part;
}

void lp_cloud_pass_sample(const lp_cloud_pass *pass, const lp_sampling *sampling, const lp_logits *logits,
                          lp_sample *out, lp_buf *scratch) {
  draw_rows(logits, pass->past + pass->count, pass->wanted, sampling, out, scratch);
}

typedef struct {
  const lp_halves *halves;
  lp_executor *executor;
  const lp_cloud_pass *pass;
  size_t taken, given; /* columns that earlier steps took, and gave */
  lp_buf *scratch;
} cloud_run;

static lp_status take_rows(cloud_run *run, const lp_step *step, lp_diag *diag) {
  size_t bytes = lp_cloud_pass_fill(run->halves, run->pass, step, &run->taken, NULL);
  lp_buf_reserve(run->scratch, bytes);
  (void)lp_cloud_pass_fill(run->halves, run->pass, step, &run->taken, run->scratch->data);
  return lp_executor_fill(run->executor, step->to_buffer, step, run->scratch->data, bytes, diag);
}

static lp_status give_rows(cloud_run *run, const lp_step *step, lp_diag *diag) {
  lp_span made;
  LP_TRY(lp_executor_buffer(run->executor, step->buffer, &step->tensor, &made, diag));
  lp_cloud_pass_take(run->halves, run->pass, step, &run->given, made.data);
  return LP_OK;
}

lp_status lp_halves_run_cloud(const lp_halves *halves, lp_executor *executor, const lp_cloud_pass *pass,
                              const lp_sampling *sampling, lp_sample *out, lp_buf *scratch, lp_diag *diag) {
  const lp_program *program = &halves->bundle->manifest.programs[lp_halves_program(halves, pass->past)];
  const lp_place here = halves->chain[pass->link];
  cloud_run run = {.halves = halves, .executor = executor, .pass = pass, .scratch = scratch};
  int32_t logits = lp_manifest_output(&halves->bundle->manifest, LP_ROLE_LOGITS);
  int64_t sym[LP_MAX_SYMBOLS];
  lp_cloud_pass_symbols(pass, sym);
  LP_TRY(lp_executor_begin(executor, lp_halves_program(halves, pass->past), sym, diag));
  LP_FOR_EACH(const lp_step, step, program->step, program->step_count) {
    if (step->kind == LP_STEP_SEND && step->to == here)
      LP_TRY(take_rows(&run, step, diag));
    else if (step->kind == LP_STEP_SEND && step->side == here)
      LP_TRY(give_rows(&run, step, diag));
    else if (step->kind == LP_STEP_RUN && step->side == here)
      LP_TRY(lp_executor_run(executor, step, diag));
    else if (step->kind == LP_STEP_OUTPUT && step->side == here && step->port == logits && pass->wanted > 0)
      LP_TRY(lp_halves_sample(executor, step, pass->past + pass->count, pass->wanted, sampling, out, scratch, diag));
  }
  return LP_OK;
}
