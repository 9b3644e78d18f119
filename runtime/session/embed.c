/* Computes the embedding of a text from its hidden states. */
#include <math.h>
#include <stdlib.h>

#include "runtime/bundle/bundle.h"
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

/* The tokens as an array of the input's type, which the caller frees with free(array->data). */
static lp_data array_of(const lp_tensor_desc *input, const int32_t *tokens, size_t count) {
  bool wide = input->dtype == LP_DT_I64;
  lp_data array = {.name = input->name,
                   .dtype = lp_element_name(input->dtype),
                   .rank = 2,
                   .shape = {1, (int64_t)count},
                   .size = count * (wide ? sizeof(int64_t) : sizeof(int32_t))};
  array.data = lp_alloc(array.size);
  for (size_t i = 0; i < count; i++)
    if (wide)
      ((int64_t *)array.data)[i] = tokens[i];
    else
      ((int32_t *)array.data)[i] = tokens[i];
  return array;
}

/* Makes the embedding from an output, once its shape is as expected. */
static lp_status take(const lp_manifest *manifest, const lp_data *found, int64_t rows, int64_t width, float *out,
                      lp_diag *diag) {
  bool hidden = manifest->outputs[output_of(manifest)].role == LP_ROLE_HIDDEN;
  size_t wanted = (size_t)(hidden ? rows : 1) * (size_t)width * sizeof(float);
  if (found->size != wanted)
    return lp_error(diag, LP_LOC_FILE(manifest->file), "output '%.80s' has %zu bytes, wanted %zu", found->name,
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
  if (status == LP_OK) status = take(manifest, &found[output_of(manifest)], (int64_t)count, width, out, diag);
  for (int32_t i = 0; i < manifest->output_count; i++)
    free(found[i].data);
  free(found);
  free(given.data);
  return status;
}
