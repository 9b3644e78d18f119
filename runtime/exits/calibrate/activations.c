/* Measures what a model's weights are multiplied by over the tokens of documents: the mean squares of the elements
 * along each product's inner axis, or how often tokens choose each expert of a mixture. The clock of a profiled bundle
 * says when each operator begins; its operand is complete then. */

#include "base/json/writer.h"
#include "base/map.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/exits/calibrate/calibrate_internal.h"

enum { LONGEST = 512 }; /* tokens of a pass */

/* Of one weight: the squares of its operand's elements, or how often each expert was chosen. */
typedef struct {
  int64_t width, rows;
  double *sum; /* [width] */
} tally;

typedef struct {
  lp_clock clock; /* first: the code is handed its address */
  lp_executor *executor;
  const lp_step *step; /* that runs */
  int32_t marks;       /* of the step so far */
  int32_t operands;    /* of the step so far */
  lp_map *all;         /* weight -> tally *, in order of first use */
  bool experts;        /* counts the experts that are chosen, else adds squares */
  lp_status status;    /* the first failure of a mark */
  lp_diag *diag;
} observer;

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static void add_rows(tally *to, const float *x, int64_t rows) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < to->width; i++)
      to->sum[i] += (double)x[r * to->width + i] * (double)x[r * to->width + i];
  to->rows += rows;
}

static void add_choices(tally *to, const int64_t *expert, int64_t rows, int64_t chosen) {
  for (int64_t i = 0; i < rows * chosen; i++)
    if (expert[i] >= 0 && expert[i] < to->width) to->sum[expert[i]]++;
  to->rows += rows;
}

static tally *tally_of(observer *o, const char *weight, int64_t width) {
  tally *found = lp_map_get(o->all, weight);
  if (found) return found->width == width ? found : NULL;
  found = lp_alloc(sizeof *found);
  *found = (tally){.width = width, .sum = lp_alloc((size_t)width * sizeof(double) + 1)};
  lp_map_put(o->all, weight, found);
  return found;
}

static lp_status take_operand(observer *o, const lp_operand *operand) {
  const lp_tensor_desc *tensor = &operand->tensor;
  const lp_manifest *manifest = &o->executor->bundle->manifest;
  if (tensor->rank == 0 || (operand->experts > 0) != o->experts ||
      tensor->dtype != (o->experts ? LP_DT_I64 : LP_DT_F32))
    return LP_OK;
  int64_t last = lp_poly_eval(tensor->shape[tensor->rank - 1], o->executor->sym, (size_t)manifest->symbol_count);
  const int64_t width = o->experts ? operand->experts : last;
  tally *to = last > 0 && width > 0 ? tally_of(o, tensor->name, width) : NULL;
  lp_span span;
  if (!to) return LP_OK;
  LP_TRY(lp_executor_buffer(o->executor, operand->buffer, tensor, &span, o->diag));
  if (o->experts)
    add_choices(to, span.data, (int64_t)(span.size / sizeof(int64_t)) / last, last);
  else
    add_rows(to, span.data, (int64_t)(span.size / sizeof(float)) / last);
  return LP_OK;
}

static void observe(lp_clock *clock) {
  observer *o = (observer *)clock;
  for (; o->operands < o->step->operand_count && o->step->operand[o->operands].part == o->marks; o->operands++)
    if (o->status == LP_OK) o->status = take_operand(o, &o->step->operand[o->operands]);
  o->marks++;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static lp_status fill_tokens(observer *o, const lp_step *step, const int32_t *ids, int64_t count) {
  if (step->tensor.dtype == LP_DT_I32)
    return lp_executor_fill(o->executor, step->buffer, step, ids, (size_t)count * sizeof *ids, o->diag);
  LP_OWNED(lp_free_at) int64_t *wide = lp_alloc((size_t)count * sizeof *wide);
  for (int64_t i = 0; i < count; i++)
    wide[i] = ids[i];
  return lp_executor_fill(o->executor, step->buffer, step, wide, (size_t)count * sizeof *wide, o->diag);
}

static lp_status run_step(observer *o, const lp_step *step) {
  o->step = step;
  o->marks = o->operands = 0;
  o->executor->frame.clock = &o->clock;
  lp_status status = lp_executor_run(o->executor, step, o->diag);
  o->executor->frame.clock = NULL;
  return status == LP_OK ? o->status : status;
}

/* Runs a piece of a document as a prompt. */
static lp_status run_piece(observer *o, const int32_t *ids, int64_t count) {
  const lp_manifest *manifest = &o->executor->bundle->manifest;
  int32_t prefill = lp_manifest_program(manifest, "prefill");
  int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_S] = count, [LP_SYM_R] = count, [LP_SYM_C] = count};
  lp_executor_forget(o->executor);
  LP_TRY(lp_executor_begin(o->executor, prefill, sym, o->diag));
  for (int32_t i = 0; i < manifest->programs[prefill].step_count; i++) {
    const lp_step *step = &manifest->programs[prefill].step[i];
    if (step->kind == LP_STEP_INPUT) LP_TRY(fill_tokens(o, step, ids, count));
    if (step->kind == LP_STEP_RUN) LP_TRY(run_step(o, step));
  }
  return LP_OK;
}

static lp_status run_document(observer *o, const lp_corpus_document *document, int64_t longest) {
  const int64_t count = (int64_t)document->ids.count;
  for (int64_t at = 0; at < count; at += longest)
    LP_TRY(run_piece(o, document->ids.data + at, count - at < longest ? count - at : longest));
  return LP_OK;
}

/* The bundle must run in this process as a whole, read nothing but tokens, and say which operator begins. */
static lp_status check_bundle(const observer *o, const lp_bundle *bundle) {
  const lp_manifest *manifest = &bundle->manifest;
  lp_loc loc = LP_LOC_FILE(manifest->file);
  int32_t prefill = lp_manifest_program(manifest, "prefill"), operands = 0;
  if (prefill < 0 || lp_bundle_is_split(bundle) || !manifest->side[LP_SIDE_DEVICE].present)
    return lp_error(o->diag, loc, "activations are measured of a model that is wholly on the device");
  for (int32_t i = 0; i < manifest->programs[prefill].step_count; i++) {
    const lp_step *step = &manifest->programs[prefill].step[i];
    for (int32_t k = 0; k < step->operand_count; k++)
      operands += (step->operand[k].experts > 0) == o->experts;
    if (step->kind == LP_STEP_INPUT && !step->carries_tokens)
      return lp_error(o->diag, loc, "the input '%.80s' is not the tokens", step->tensor.name);
  }
  if (operands > 0) return LP_OK;
  lp_status status = lp_error(o->diag, loc,
                              o->experts ? "the code does not say which experts tokens choose"
                                         : "the code does not say which of its products begins");
  lp_note(o->diag, loc,
          o->experts ? "compile a mixture of experts with --profile for a CPU"
                     : "compile the model with --profile for a CPU, its weights in f32, f16 or bf16");
  return status;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* The mean squares, or of each expert the share of tokens that choose it. */
static void put_tally(const observer *o, lp_json_writer *w, const char *weight, const tally *of) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "name", weight);
  lp_json_put_flat_array(w, o->experts ? "chosen" : "mean_squares");
  for (int64_t i = 0; i < of->width; i++)
    lp_json_put_number(w, NULL, of->sum[i] / (double)of->rows);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

static void print(const observer *o, const lp_calibration_report *report, lp_buf *out) {
  lp_json_writer w = lp_json_document_begin(out, (lp_json_style){.indent = 1, .digits = 6, .marks_reals = true},
                                            o->experts ? "llmpart.experts/1" : "llmpart.activations/1");
  lp_json_put_text(&w, "bundle", o->executor->bundle->manifest.hash);
  lp_json_put_text(&w, "data_sha256", report->data_sha256);
  lp_json_put_integer(&w, "documents", report->documents[0]);
  lp_json_put_integer(&w, "tokens", report->tokens[0]);
  lp_json_put_array(&w, "weights");
  for (size_t i = 0; i < lp_map_count(o->all); i++)
    put_tally(o, &w, lp_map_key_at(o->all, i), lp_map_value_at(o->all, i));
  lp_json_put_end(&w);
  lp_json_document_end(&w);
}

static lp_status run_documents(observer *o, const lp_calibrate_options *options, const lp_documents *documents,
                               lp_calibration_report *report) {
  int64_t context = o->executor->bundle->manifest.context_length;
  int64_t longest = context > 0 && context < LONGEST ? context : LONGEST;
  if (documents->count == 0) return lp_error(o->diag, LP_LOC_FILE(options->data), "there is no document in it");
  for (size_t i = 0; i < documents->count; i++) {
    LP_TRY(run_document(o, &documents->data[i], longest));
    report->documents[0]++;
    report->tokens[0] += (int64_t)documents->data[i].ids.count;
    if (options->progress) options->progress(options->user, i + 1, documents->count);
  }
  return LP_OK;
}

lp_status lp_calibrate_activations(const lp_bundle *bundle, const lp_calibrate_options *options, bool experts,
                                   lp_buf *out, lp_diag *diag) {
  observer o = {.clock = {observe}, .experts = experts, .diag = diag};
  LP_TRY(check_bundle(&o, bundle));
  lp_documents documents = {0};
  lp_calibration_report report = {0};
  lp_pool *pool = lp_pool_create(options->threads);
  o.all = lp_map_create();
  o.executor = lp_executor_create(bundle, LP_SIDE_DEVICE, pool);
  lp_status status = lp_documents_read(options->data, bundle, &documents, &report, diag);
  if (status == LP_OK) status = run_documents(&o, options, &documents, &report);
  if (status == LP_OK) print(&o, &report, out);
  for (size_t i = 0; i < lp_map_count(o.all); i++) {
    LP_OWNED(lp_free_at) tally *of = lp_map_value_at(o.all, i);
    free(of->sum);
  }
  lp_map_free(o.all);
  lp_executor_free(o.executor);
  lp_pool_free(pool);
  lp_documents_free(&documents);
  return status;
}
