/* Computes the embeddings of texts from their hidden states. */
#include <math.h>

#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/session/session.h"

/* The output that embeddings are made from: the model's own, or else its hidden states; -1: there is none. */
static int32_t output_of(const lp_manifest *manifest) {
  int32_t own = lp_manifest_output(manifest, LP_ROLE_EMBEDDING);
  return own >= 0 ? own : lp_manifest_output(manifest, LP_ROLE_HIDDEN);
}

lp_status lp_bundle_embedding_width(const lp_bundle *bundle, int64_t *width, lp_diag *diag) {
  const lp_manifest *manifest = &bundle->manifest;
  const lp_loc loc = LP_LOC_FILE(manifest->file);
  int32_t index = output_of(manifest);
  if (index < 0)
    return lp_error(diag, loc, "the model gives %s, and embeddings are made from hidden states",
                    lp_manifest_output(manifest, LP_ROLE_LOGITS) >= 0 ? "logits" : "no hidden states");
  const lp_port *port = &manifest->outputs[index];
  if (manifest->lacks && port->role == LP_ROLE_HIDDEN)
    return lp_error(diag, loc, "embeddings of the model need %.80s, which the bundle lacks", manifest->lacks);
  int32_t rank = port->tensor.rank;
  if (rank != (port->role == LP_ROLE_HIDDEN ? 3 : 2) || !lp_poly_is_const(port->tensor.shape[rank - 1], width) ||
      *width <= 0)
    return lp_error(diag, loc, "output '%.80s' does not have the shape of %s", port->tensor.name,
                    port->role == LP_ROLE_HIDDEN ? "hidden states" : "embeddings");
  return LP_OK;
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

static double weight_of(lp_pooling pooling, int64_t row, int64_t rows) {
  switch (pooling) {
  case LP_POOLING_FIRST:
    return row == 0;
  case LP_POOLING_LAST:
    return row == rows - 1;
  case LP_POOLING_MEAN_SQRT:
    return 1 / sqrt((double)rows);
  case LP_POOLING_WEIGHTED_MEAN:
    return 2 * (double)(row + 1) / ((double)rows * (double)(rows + 1));
  default:
    return 1 / (double)rows;
  }
}

/* Sums in double precision, so that the result does not depend on the order. hidden[rows][width] */
static void pool(lp_pooling pooling, const float *hidden, int64_t rows, int64_t width, float *out) {
  for (int64_t i = 0; i < width; i++) {
    double sum = pooling == LP_POOLING_MAX ? -INFINITY : 0;
    for (int64_t row = 0; row < rows; row++) {
      double value = (double)hidden[row * width + i];
      sum = pooling == LP_POOLING_MAX ? fmax(sum, value) : sum + weight_of(pooling, row, rows) * value;
    }
    out[i] = (float)sum;
  }
}

static void normalise(float *values, int64_t width) {
  double squares = 0;
  for (int64_t i = 0; i < width; i++)
    squares += (double)values[i] * (double)values[i];
  for (int64_t i = 0; i < width && squares > 0; i++)
    values[i] = (float)((double)values[i] / sqrt(squares));
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static size_t token_bytes(const lp_tensor_desc *input) {
  return input->dtype == LP_DT_I64 ? sizeof(int64_t) : sizeof(int32_t);
}

static void put_tokens(const lp_tensor_desc *input, const int32_t *tokens, size_t count, void *out) {
  for (size_t i = 0; i < count; i++)
    if (input->dtype == LP_DT_I64)
      ((int64_t *)out)[i] = tokens[i];
    else
      ((int32_t *)out)[i] = tokens[i];
}

/* The tokens as an array of the input's type, which the caller frees with free(array->data). */
static lp_data array_of(const lp_tensor_desc *input, const int32_t *tokens, size_t count) {
  lp_data array = {.name = input->name,
                   .dtype = lp_element_name(input->dtype),
                   .rank = 2,
                   .shape = {1, (int64_t)count},
                   .size = count * token_bytes(input)};
  array.data = lp_alloc(array.size);
  put_tokens(input, tokens, count, array.data);
  return array;
}

/* Makes the embedding from an output, once its shape is as expected. */
static lp_status take(const lp_manifest *manifest, const lp_span *found, int64_t rows, int64_t width, float *out,
                      lp_diag *diag) {
  const lp_port *port = &manifest->outputs[output_of(manifest)];
  bool hidden = port->role == LP_ROLE_HIDDEN;
  size_t wanted = (size_t)(hidden ? rows : 1) * (size_t)width * sizeof(float);
  if (found->size != wanted)
    return lp_error(diag, LP_LOC_FILE(manifest->file), "output '%.80s' has %zu bytes, wanted %zu", port->tensor.name,
                    found->size, wanted);
  const float *values = found->data;
  pool(hidden ? manifest->pooling : LP_POOLING_FIRST, values, hidden ? rows : 1, width, out);
  if (manifest->normalises) normalise(out, width);
  return LP_OK;
}

lp_status lp_session_embed(lp_session *session, const int32_t *tokens, size_t count, float *out, lp_diag *diag) {
  const lp_manifest *manifest = &session->bundle->manifest;
  int64_t width = 0;
  LP_TRY(lp_bundle_embedding_width(session->bundle, &width, diag));
  int32_t input = lp_manifest_input(manifest, LP_ROLE_TOKENS);
  if (input < 0 || count == 0)
    return lp_error(diag, LP_LOC_FILE(manifest->file), "%s",
                    input < 0 ? "the model reads no tokens" : "the text has no tokens");
  lp_data given = array_of(&manifest->inputs[input].tensor, tokens, count);
  lp_data *found = lp_alloc((size_t)manifest->output_count * sizeof *found);
  for (int32_t i = 0; i < manifest->output_count; i++)
    found[i] = (lp_data){0};
  lp_status status = lp_session_run(session, NULL, &given, 1, found, diag);
  const lp_data *states = &found[output_of(manifest)];
  const lp_span span = {.data = states->data, .size = states->size};
  if (status == LP_OK) status = take(manifest, &span, (int64_t)count, width, out, diag);
  for (int32_t i = 0; i < manifest->output_count; i++)
    free(found[i].data);
  free(found);
  free(given.data);
  return status;
}

/* ---- several texts in a pass ------------------------------------------------------------------------------------- */

typedef struct {
  lp_session *session;
  const lp_manifest *manifest;
  const lp_embed_text *text; /* [count] */
  size_t count;
  int64_t width;
  lp_executor **executor; /* [count] each with the KV caches of a text, if the model has some */
} texts_run;

static int32_t program_of(const lp_manifest *manifest) {
  int32_t prefill = lp_manifest_program(manifest, "prefill");
  return prefill < 0 && manifest->program_count == 1 ? 0 : prefill;
}

/* Tells whether a pass may have several texts, and sets the session's batch. */
static bool can_share(lp_session *session) {
  const lp_manifest *manifest = &session->bundle->manifest;
  int32_t program = program_of(manifest);
  if (session->remote || lp_bundle_is_split(session->bundle) || program < 0) return false;
  for (int32_t k = 0; k < manifest->programs[program].step_count; k++) {
    const lp_step *step = &manifest->programs[program].step[k];
    bool other = step->kind == LP_STEP_INPUT && step->port != lp_manifest_input(manifest, LP_ROLE_TOKENS);
    if (other || step->kind == LP_STEP_SEND || step->kind == LP_STEP_MOVE) return false;
  }
  if (!session->batch) session->batch = lp_batch_create(session->bundle, LP_SIDE_DEVICE, session->pool);
  return session->batch != NULL;
}

static lp_status fill_all(const texts_run *run, const lp_step *step, lp_diag *diag) {
  for (size_t i = 0; i < run->count; i++) {
    const lp_embed_text *text = &run->text[i];
    size_t size = text->count * token_bytes(&step->tensor);
    lp_span to;
    LP_TRY(lp_batch_buffer(run->session->batch, i, step->buffer, step, &to, diag));
    if (to.size == size) put_tokens(&step->tensor, text->token, text->count, to.data);
    LP_TRY(lp_payload_check(run->manifest, step, to.size, to.data, size, diag));
  }
  return lp_batch_bring(run->session->batch, step->buffer, step, diag);
}

static lp_status take_all(const texts_run *run, const lp_step *step, lp_diag *diag) {
  if (step->port != output_of(run->manifest)) return LP_OK;
  LP_TRY(lp_batch_fetch(run->session->batch, step->buffer, step, NULL, diag));
  for (size_t i = 0; i < run->count; i++) {
    lp_span found;
    LP_TRY(lp_batch_buffer(run->session->batch, i, step->buffer, step, &found, diag));
    LP_TRY(take(run->manifest, &found, (int64_t)run->text[i].count, run->width, run->text[i].out, diag));
  }
  return LP_OK;
}

static lp_status run_steps(const texts_run *run, const lp_program *program, lp_diag *diag) {
  lp_batch *batch = run->session->batch;
  LP_FOR_EACH(const lp_step, step, program->step, program->step_count) {
    if (step->kind == LP_STEP_INPUT) LP_TRY(fill_all(run, step, diag));
    if (step->kind == LP_STEP_RUN) LP_TRY(lp_batch_run(batch, step, diag));
    if (step->kind == LP_STEP_GATHER) LP_TRY(lp_batch_gather(batch, step, diag));
    if (step->kind == LP_STEP_OUTPUT) LP_TRY(take_all(run, step, diag));
  }
  return LP_OK;
}

static lp_status run_pass(const texts_run *run, lp_diag *diag) {
  lp_batch *batch = run->session->batch;
  int32_t program = program_of(run->manifest);
  LP_OWNED(lp_free_at) lp_batch_member *member = lp_alloc(run->count * sizeof *member);
  for (size_t i = 0; i < run->count; i++) {
    int64_t rows = (int64_t)run->text[i].count;
    member[i] = (lp_batch_member){.states = &run->executor[i]->states,
                                  .sym = {[LP_SYM_B] = 1, [LP_SYM_S] = rows, [LP_SYM_R] = rows, [LP_SYM_C] = rows}};
  }
  lp_status status = lp_batch_begin(batch, program, member, run->count, diag);
  if (status == LP_OK) {
    status = run_steps(run, &run->manifest->programs[program], diag);
    LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
    lp_status ended = lp_batch_end(batch, status == LP_OK ? diag : quiet);
    if (status == LP_OK) status = ended;
  }
  return status;
}

lp_status lp_session_embed_all(lp_session *session, const lp_embed_text *text, size_t count, int64_t *passes,
                               lp_diag *diag) {
  texts_run run = {.session = session, .manifest = &session->bundle->manifest, .text = text, .count = count};
  bool together = count > 1 && can_share(session);
  *passes += together ? 1 : (int64_t)count;
  if (!together) {
    for (size_t i = 0; i < count; i++)
      LP_TRY(lp_session_embed(session, text[i].token, text[i].count, text[i].out, diag));
    return LP_OK;
  }
  LP_TRY(lp_bundle_embedding_width(session->bundle, &run.width, diag));
  for (size_t i = 0; i < count; i++)
    if (text[i].count == 0) return lp_error(diag, LP_LOC_FILE(run.manifest->file), "a text has no tokens");
  run.executor = lp_alloc(count * sizeof *run.executor);
  for (size_t i = 0; i < count; i++)
    run.executor[i] = lp_executor_create(session->bundle, LP_SIDE_DEVICE, session->pool);
  lp_status status = run_pass(&run, diag);
  if (status == LP_OK) status = lp_bundle_await_check(session->bundle, diag);
  for (size_t i = 0; i < count; i++)
    lp_executor_free(run.executor[i]);
  free(run.executor);
  return status;
}
