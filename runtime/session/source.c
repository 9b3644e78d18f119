/* Makes the inputs of an encoder: tokens padded to one length and their mask, or features. */
#include "runtime/session/source.h"

#include "base/poly.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"

typedef struct {
  const lp_manifest *manifest;
  const lp_source *source;
  int64_t batch, longest; /* longest: tokens of the longest sequence; 0 for features */
  lp_source_inputs *out;
  lp_diag *diag;
} reading;

static lp_loc loc_of(const reading *r) {
  return LP_LOC_FILE(r->manifest->file);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static lp_status check_tokens(reading *r) {
  size_t total = 0;
  for (int64_t i = 0; i < r->batch; i++) {
    int64_t length = r->source->lengths[i];
    if (length < 1) return lp_error(r->diag, loc_of(r), "sequence %" PRId64 " of the encoder's text is empty", i);
    if (length > r->longest) r->longest = length;
    total += (size_t)length;
  }
  int64_t limit = r->manifest->source_context;
  if (limit > 0 && r->longest > limit)
    return lp_error(r->diag, loc_of(r), "a text of %" PRId64 " tokens exceeds the %" PRId64 " that the encoder takes",
                    r->longest, limit);
  for (size_t i = 0; i < total; i++)
    if (r->source->tokens[i] < 0 || r->source->tokens[i] >= r->manifest->vocab)
      return lp_error(r->diag, loc_of(r), "token %" PRId32 " lies outside of the vocabulary of %" PRId32,
                      r->source->tokens[i], r->manifest->vocab);
  return LP_OK;
}

static lp_status check_source(reading *r, const lp_bundle *bundle) {
  bool reads = lp_bundle_reads_source(bundle), features = lp_bundle_reads_features(bundle);
  if (!reads && !r->source) return LP_OK;
  if (!reads) return lp_error(r->diag, loc_of(r), "the model has no encoder that could read a source");
  if (!r->source || (features ? !r->source->features : !r->source->tokens))
    return lp_error(r->diag, loc_of(r), "the model has an encoder, which needs %s to read",
                    features ? "features" : "a text");
  return features ? LP_OK : check_tokens(r);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static void put_number(void *data, lp_element dtype, size_t index, int32_t number) {
  switch (dtype) {
  case LP_DT_I64:
    ((int64_t *)data)[index] = number;
    break;
  case LP_DT_I32:
    ((int32_t *)data)[index] = number;
    break;
  case LP_DT_F32:
    ((float *)data)[index] = (float)number;
    break;
  default:
    ((uint8_t *)data)[index] = (uint8_t)number;
  }
}

static bool takes_numbers(lp_element dtype) {
  return dtype == LP_DT_I64 || dtype == LP_DT_I32 || dtype == LP_DT_F32 || lp_element_size(dtype) == 1;
}

/* Writes the tokens of each sequence and pads it to the longest; for a mask 1 for each token and 0 for padding. */
static void put_rows(const reading *r, const lp_port *port, void *data) {
  bool mask = port->role == LP_ROLE_SOURCE_MASK;
  const int32_t *token = r->source->tokens;
  for (int64_t i = 0; i < r->batch; i++)
    for (int64_t k = 0; k < r->longest; k++) {
      bool is_token = k < r->source->lengths[i];
      int32_t number = is_token ? (mask ? 1 : *token) : (mask ? 0 : r->manifest->pad);
      put_number(data, port->tensor.dtype, (size_t)(i * r->longest + k), number);
      token += is_token;
    }
}

/* Sets the symbol of the second axis of [batch, longest], and checks that the input takes `bytes` bytes at these
 * sizes. */
static lp_status settle_sizes(reading *r, const lp_port *port, size_t bytes) {
  int64_t sym[LP_MAX_SYMBOLS];
  const lp_tensor_desc *tensor = &port->tensor;
  int32_t length = port->role != LP_ROLE_SOURCE_FEATURES && tensor->rank == 2
                       ? (int32_t)lp_poly_lone_symbol(tensor->shape[1]) - 1
                       : -1;
  if (length >= LP_SYM_COUNT) r->out->sym[length] = r->longest;
  memcpy(sym, r->out->sym, sizeof sym);
  sym[LP_SYM_B] = r->batch;
  size_t wanted = 0;
  if (lp_tensor_bytes(tensor, sym, r->manifest->symbol_count, &wanted) && wanted == bytes) return LP_OK;
  return lp_error(r->diag, loc_of(r), "input '%.80s' takes %zu bytes for this batch, found %zu", tensor->name, wanted,
                  bytes);
}

static lp_status make_input(reading *r, int32_t index) {
  const lp_port *port = &r->manifest->inputs[index];
  bool features = port->role == LP_ROLE_SOURCE_FEATURES;
  lp_element dtype = port->tensor.dtype;
  if (features ? dtype != LP_DT_F32 : !takes_numbers(dtype))
    return lp_error(r->diag, loc_of(r), "input '%.80s' is %s, which cannot be made", port->tensor.name,
                    lp_element_name(dtype));
  size_t count = features ? r->source->feature_count : (size_t)(r->batch * r->longest);
  lp_span *input = &r->out->input[index];
  *input = (lp_span){.data = lp_alloc((count + 1) * lp_element_size(dtype)), .size = count * lp_element_size(dtype)};
  if (features)
    memcpy(input->data, r->source->features, input->size);
  else
    put_rows(r, port, input->data);
  return settle_sizes(r, port, input->size);
}

lp_status lp_source_read(const lp_session *session, int64_t batch, lp_source_inputs *out, lp_diag *diag) {
  reading r = {.manifest = &session->bundle->manifest,
               .source = session->options.source,
               .batch = batch,
               .out = out,
               .diag = diag};
  out->count = r.manifest->input_count;
  out->input = lp_alloc(((size_t)out->count + 1) * sizeof *out->input);
  memset(out->input, 0, ((size_t)out->count + 1) * sizeof *out->input);
  LP_TRY(check_source(&r, session->bundle));
  for (int32_t i = 0; i < out->count; i++) {
    lp_role role = r.manifest->inputs[i].role;
    if (role == LP_ROLE_SOURCE_TOKENS || role == LP_ROLE_SOURCE_MASK || role == LP_ROLE_SOURCE_FEATURES)
      LP_TRY(make_input(&r, i));
  }
  return LP_OK;
}

void lp_source_inputs_free(lp_source_inputs *inputs) {
  for (int32_t i = 0; i < inputs->count; i++)
    free(inputs->input[i].data);
  free(inputs->input);
}
