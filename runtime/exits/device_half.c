/* Runs passes of the device's half in stages. A stage ends at an exit, unless the steps after the exit read something
 * that has no row for each token. Each stage has passed a number of positions of its own; the open rows of a stage are
 * those that the stages before it have passed and it has not. */
#include "runtime/exits/device_half.h"

#include <assert.h>

#include "base/side.h"
#include "runtime/bundle/bundle.h"

/* A stage is entered once this many rows are open, even if it could wait. Up to about here rows share the time in which
 * the weights are read; and the cloud, which needs all rows for an answer, is never further behind. */
enum { MOST_OPEN = 8 };

/* Steps [begin, end) of a program. */
typedef struct {
  int32_t begin, end;
  const lp_step *entry; /* the exit before it, whose `open` it reads; NULL: the first stage */
} stage;

enum { MOST_STAGES = LP_MOST_EXITS + 1, MOST_OPEN_TENSORS = 32 };

/* The rows of one tensor that a stage has not read yet. */
typedef struct {
  size_t bytes; /* of a row */
  lp_buf rows;
} open_tensor;

struct lp_device_half {
  const lp_halves *halves;
  lp_executor *executor;
  int32_t stage_count;
  stage prefill[MOST_STAGES], decode[MOST_STAGES];
  int64_t passed[MOST_STAGES];
  open_tensor open[MOST_STAGES][MOST_OPEN_TENSORS];
  float *rows; /* [rows_room][width]: of the positions from `sent` on */
  int64_t rows_room, sent;
  lp_buf ids, scratch;
};

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static bool runs_layers(const lp_program *program, int32_t from) {
  for (int32_t i = from; i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    if (step->kind == LP_STEP_RUN && step->side == LP_SIDE_DEVICE && step->exit < 0) return true;
  }
  return false;
}

static int32_t find_stages(const lp_program *program, stage out[MOST_STAGES]) {
  int32_t count = 1;
  out[0] = (stage){.begin = 0};
  for (int32_t i = 0; i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    bool ends = step->kind == LP_STEP_OUTPUT && step->side == LP_SIDE_DEVICE && step->open_count > 0 &&
                step->open_count <= MOST_OPEN_TENSORS && count < MOST_STAGES && runs_layers(program, i + 1);
    if (!ends) continue;
    out[count - 1].end = i + 1;
    out[count++] = (stage){.begin = i + 1, .entry = step};
  }
  out[count - 1].end = program->step_count;
  return count;
}

static size_t row_bytes(const lp_halves *halves, const lp_tensor_desc *tensor) {
  const int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_S] = 1};
  size_t bytes = 0;
  return lp_tensor_bytes(tensor, sym, halves->bundle->manifest.symbol_count, &bytes) ? bytes : 0;
}

/* Tells whether prefill and decode leave the same rows open before stage `index`, so that either can read the other's.
 */
static bool is_alike(const lp_device_half *half, int32_t index) {
  const lp_step *a = half->prefill[index].entry, *b = half->decode[index].entry;
  if (a->open_count != b->open_count) return false;
  for (int32_t i = 0; i < a->open_count; i++) {
    size_t bytes = row_bytes(half->halves, &a->open[i].tensor);
    if (bytes == 0 || bytes != row_bytes(half->halves, &b->open[i].tensor)) return false;
  }
  return true;
}

lp_device_half *lp_device_half_create(const lp_halves *halves, lp_executor *executor) {
  lp_device_half *half = lp_alloc(sizeof *half);
  const lp_program *program = halves->bundle->manifest.programs;
  *half = (lp_device_half){.halves = halves, .executor = executor};
  int32_t prefill = find_stages(&program[halves->prefill], half->prefill);
  half->stage_count = find_stages(&program[halves->decode], half->decode);
  bool alike = prefill == half->stage_count;
  for (int32_t i = 1; alike && i < half->stage_count; i++)
    alike = is_alike(half, i);
  if (!alike) {
    half->stage_count = 1;
    half->prefill[0].end = program[halves->prefill].step_count;
    half->decode[0].end = program[halves->decode].step_count;
  }
  for (int32_t i = 1; i < half->stage_count; i++)
    for (int32_t k = 0; k < half->decode[i].entry->open_count; k++)
      half->open[i][k].bytes = row_bytes(halves, &half->decode[i].entry->open[k].tensor);
  return half;
}

void lp_device_half_free(lp_device_half *half) {
  if (!half) return;
  for (int32_t i = 0; i < half->stage_count; i++)
    for (int32_t k = 0; k < MOST_OPEN_TENSORS; k++)
      lp_buf_free(&half->open[i][k].rows);
  lp_buf_free(&half->ids);
  lp_buf_free(&half->scratch);
  free(half->rows);
  free(half);
}

/* ---- open rows --------------------------------------------------------------------------------------------------- */

/* Drops the open rows of a stage but for the first `count`. */
static void cut_open(lp_device_half *half, int32_t index, int64_t count) {
  for (int32_t k = 0; k < half->decode[index].entry->open_count; k++)
    half->open[index][k].rows.size = (size_t)count * half->open[index][k].bytes;
}

/* Forgets all positions from `past` on. */
static void rewind_to(lp_device_half *half, int64_t past) {
  if (half->sent > past) half->sent = past;
  for (int32_t i = 0; i < half->stage_count; i++) {
    if (half->passed[i] > past) half->passed[i] = past;
    if (i > 0) cut_open(half, i, half->passed[i - 1] - half->passed[i]);
  }
}

/* ---- a pass ------------------------------------------------------------------------------------------------------ */

typedef struct {
  lp_device_half *half;
  const lp_device_pass *pass;
  const lp_sampling *sampling;
  lp_diag *diag;
  int64_t past, count; /* the positions of the layout in force */
  const stage *stages; /* of its program */
  bool wanted[LP_MOST_EXITS], asked[LP_MOST_EXITS];
} device_run;

/* Lays out a run of the stages from `index` on over all positions that stage `index` has not passed. */
static lp_status begin(device_run *run, int32_t index, int64_t end) {
  lp_device_half *half = run->half;
  int64_t sym[LP_MAX_SYMBOLS], past = half->passed[index];
  int32_t program = lp_halves_program(half->halves, past);
  run->past = past;
  run->count = end - past;
  run->stages = program == half->halves->prefill ? half->prefill : half->decode;
  lp_halves_symbols(sym, past, run->count, run->pass->wanted, run->pass->capacity);
  return lp_executor_begin(half->executor, program, sym, run->diag);
}

/* Adds the rows of the layout in force to those that are open before a stage. */
static lp_status save_open(device_run *run, int32_t index) {
  const lp_step *entry = run->stages[index].entry;
  for (int32_t k = 0; k < entry->open_count; k++) {
    open_tensor *open = &run->half->open[index][k];
    const lp_tensor_desc *tensor = &entry->open[k].tensor;
    lp_span span;
    LP_TRY(lp_executor_buffer(run->half->executor, entry->open[k].buffer, tensor, &span, run->diag));
    if (span.size != (size_t)run->count * open->bytes)
      return lp_error(run->diag, LP_LOC_FILE(run->half->halves->bundle->manifest.file),
                      "'%.80s' does not have one row for each token", tensor->name);
    lp_buf_append(&open->rows, span.data, span.size);
  }
  return LP_OK;
}

/* Begins a run of stage `index` over its open rows. */
static lp_status resume(device_run *run, int32_t index, int64_t end) {
  LP_TRY(begin(run, index, end));
  const lp_step *entry = run->stages[index].entry;
  for (int32_t k = 0; k < entry->open_count; k++) {
    const lp_row_buffer *open = &entry->open[k];
    const lp_buf *rows = &run->half->open[index][k].rows;
    const lp_step step = {.side = LP_SIDE_DEVICE, .buffer = open->buffer, .tensor = open->tensor};
    LP_TRY(lp_executor_fill(run->half->executor, open->buffer, &step, rows->data, rows->size, run->diag));
  }
  return LP_OK;
}

static lp_status fill_tokens(device_run *run, const lp_step *step) {
  const lp_device_pass *pass = run->pass;
  lp_buf *ids = &run->half->ids;
  bool narrow = step->tensor.dtype == LP_DT_I32;
  size_t size = (size_t)pass->count * (narrow ? sizeof(int32_t) : sizeof(int64_t));
  lp_buf_reserve(ids, size);
  for (int64_t i = 0; i < pass->count; i++) {
    int64_t wide = pass->token[i];
    if (narrow)
      memcpy(ids->data + (size_t)i * sizeof(int32_t), &pass->token[i], sizeof(int32_t));
    else
      memcpy(ids->data + (size_t)i * sizeof wide, &wide, sizeof wide);
  }
  return lp_executor_fill(run->half->executor, step->buffer, step, ids->data, size, run->diag);
}

static bool wants(device_run *run, int32_t exit) {
  if (!run->asked[exit]) run->wanted[exit] = run->pass->wants(run->pass->user, exit);
  run->asked[exit] = true;
  return run->wanted[exit];
}

static lp_status take_exit(device_run *run, const lp_step *step) {
  const lp_device_pass *pass = run->pass;
  int32_t exit = lp_manifest_exit(&run->half->halves->bundle->manifest, step->port);
  if (exit < 0 || !wants(run, exit)) return LP_OK;
  LP_TRY(lp_halves_sample(run->half->executor, step, run->past + run->count, pass->wanted, run->sampling, pass->samples,
                          &run->half->scratch, run->diag));
  assert(pass->take); /* who wants an exit takes it */
  pass->take(pass->user, exit, pass->samples);
  return LP_OK;
}

/* Copies what a step sends into its columns of the rows. */
static lp_status keep_columns(device_run *run, const lp_step *step, size_t column) {
  const lp_device_half *half = run->half;
  size_t part = lp_halves_row_width(&step->tensor), width = half->halves->width[0];
  lp_span span;
  LP_TRY(lp_executor_buffer(half->executor, step->buffer, &step->tensor, &span, run->diag));
  float *to = half->rows + (size_t)(run->past - half->sent) * width + column;
  lp_halves_copy_columns(to, width, span.data, part, part, (size_t)run->count);
  return LP_OK;
}

static lp_status run_step(device_run *run, const lp_step *step, size_t column) {
  switch (step->kind) {
  case LP_STEP_INPUT:
    return fill_tokens(run, step);
  case LP_STEP_RUN:
    return step->exit < 0 || wants(run, step->exit) ? lp_executor_run(run->half->executor, step, run->diag) : LP_OK;
  case LP_STEP_OUTPUT:
    return take_exit(run, step);
  case LP_STEP_SEND:
    return keep_columns(run, step, column);
  case LP_STEP_MOVE:
  case LP_STEP_GATHER:
    break;
  }
  return LP_OK;
}

static lp_status run_stage(device_run *run, int32_t index) {
  const lp_halves *halves = run->half->halves;
  const lp_program *program = &halves->bundle->manifest.programs[lp_halves_program(halves, run->past)];
  size_t column = 0;
  for (int32_t i = 0; i < run->stages[index].end; i++) {
    const lp_step *step = &program->step[i];
    if (step->side != LP_SIDE_DEVICE) continue;
    if (i >= run->stages[index].begin) LP_TRY(run_step(run, step, column));
    if (step->kind == LP_STEP_SEND) column += lp_halves_row_width(&step->tensor);
  }
  run->half->passed[index] = run->past + run->count;
  return LP_OK;
}

/* Runs the stages after the first, up to one that waits. `count` of the run is 0 if no token is new. */
static lp_status go_on(device_run *run, int64_t end) {
  lp_device_half *half = run->half;
  for (int32_t i = 1; i < half->stage_count; i++) {
    int64_t waiting = run->past - half->passed[i]; /* before this pass */
    assert(waiting >= 0);
    bool waits = waiting < MOST_OPEN && run->pass->may_wait && run->pass->may_wait(run->pass->user);
    if (run->count == 0 && waiting == 0) continue;
    if (run->count > 0 && (waits || waiting > 0)) LP_TRY(save_open(run, i));
    if (waits) return LP_OK;
    if (waiting > 0) LP_TRY(resume(run, i, end));
    LP_TRY(run_stage(run, i));
    cut_open(half, i, 0);
  }
  return LP_OK;
}

/* Forgets the rows that the last pass finished, and makes room for those of the positions up to `end`. */
static void move_rows(lp_device_half *half, int64_t end) {
  size_t width = half->halves->width[0];
  int64_t done = half->passed[half->stage_count - 1] - half->sent, kept = half->passed[0] - half->sent - done;
  if (done > 0 && kept > 0)
    memmove(half->rows, half->rows + (size_t)done * width, (size_t)kept * width * sizeof(float));
  half->sent += done;
  int64_t count = end - half->sent;
  if (count <= half->rows_room) return;
  half->rows_room = count;
  half->rows = lp_realloc(half->rows, (size_t)count * width * sizeof(float));
}

static lp_device_rows finished_rows(const lp_device_half *half) {
  int64_t passed = half->passed[half->stage_count - 1];
  return (lp_device_rows){.row = half->rows, .first = half->sent, .count = passed - half->sent};
}

lp_status lp_device_half_pass(lp_device_half *half, const lp_device_pass *pass, const lp_sampling *sampling,
                              lp_device_rows *out, lp_diag *diag) {
  device_run run = {.half = half, .pass = pass, .sampling = sampling, .diag = diag};
  int64_t end = pass->past + pass->count;
  rewind_to(half, pass->past);
  move_rows(half, end);
  LP_TRY(begin(&run, 0, end));
  LP_TRY(run_stage(&run, 0));
  LP_TRY(go_on(&run, end));
  *out = finished_rows(half);
  return LP_OK;
}

static bool wants_none(void *user, int32_t exit) {
  (void)user, (void)exit;
  return false;
}

lp_status lp_device_half_finish(lp_device_half *half, int64_t capacity, lp_device_rows *out, lp_diag *diag) {
  const lp_device_pass pass = {.past = half->passed[0], .wanted = 1, .capacity = capacity, .wants = wants_none};
  device_run run = {.half = half, .pass = &pass, .diag = diag, .past = pass.past};
  move_rows(half, pass.past);
  LP_TRY(go_on(&run, pass.past));
  *out = finished_rows(half);
  return LP_OK;
}
