/* POST /v1/embeddings: reads texts or tokens, and writes their vectors. */
#include "runtime/serve/embeddings.h"

#include "base/json/writer.h"
#include "runtime/serve/request.h"

enum { MOST_TEXTS = 2048 }; /* as in OpenAI's API */

typedef struct {
  lp_embedder *embedder;
  LP_VEC(lp_tokens) texts; /* owned */
  bool base64;
  lp_diag *diag;
} reading;

static lp_status wrong(lp_diag *diag, const char *text) {
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "%s", text);
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

static lp_status add_text(reading *r, const char *text) {
  lp_tokens tokens = {0};
  lp_status status = text[0] ? lp_embedder_encode(r->embedder, text, &tokens, r->diag)
                             : wrong(r->diag, "'input' has a text that is empty");
  lp_vec_push(&r->texts, tokens);
  return status;
}

/* [12, 345, ...] */
static lp_status add_tokens(reading *r, const lp_json *list) {
  lp_tokens tokens = {0};
  lp_status status = LP_OK;
  for (size_t i = 0; i < lp_json_count(list) && status == LP_OK; i++) {
    lp_json item = lp_json_item(list, i);
    int64_t token = 0;
    if (!lp_json_is(&item, LP_JSON_INTEGER) || lp_json_i64(&item, 0, INT32_MAX, &token, NULL) != LP_OK)
      status = wrong(r->diag, "'input' has a list that holds something else than token numbers");
    lp_vec_push(&tokens, (int32_t)token);
  }
  if (status == LP_OK) status = lp_embedder_check(r->embedder, &tokens, r->diag);
  lp_vec_push(&r->texts, tokens);
  return status;
}

/* A text, or a list of token numbers. */
static lp_status add(reading *r, const lp_json *at) {
  const char *text = lp_json_text_or(at, NULL);
  if (text) return add_text(r, text);
  if (lp_json_is(at, LP_JSON_ARRAY)) return add_tokens(r, at);
  return wrong(r->diag, "'input' must be text, a list of token numbers, or a list of these");
}

static lp_status read_input(reading *r, const lp_json *body) {
  lp_json input = lp_json_member(body, "input"), first = lp_json_item(&input, 0);
  bool is_list = lp_json_is(&input, LP_JSON_ARRAY) && !lp_json_is(&first, LP_JSON_INTEGER);
  size_t count = is_list ? lp_json_count(&input) : 1;
  if (is_list && (count == 0 || count > MOST_TEXTS))
    return lp_error_as(LP_USAGE, r->diag, LP_LOC_NONE, "'input' has %zu texts, wanted 1 to %d", count, MOST_TEXTS);
  for (size_t i = 0; i < count; i++) {
    lp_json item = lp_json_item(&input, i);
    LP_TRY(add(r, is_list ? &item : &input));
  }
  return LP_OK;
}

static lp_status read_form(reading *r, const lp_json *body) {
  lp_json format = lp_json_member(body, "encoding_format"), dimensions = lp_json_member(body, "dimensions");
  int64_t width = lp_embedder_width(r->embedder), wanted = width;
  LP_TRY(lp_members_of_embeddings(body, r->diag));
  r->base64 = lp_json_equals(&format, "base64");
  if (lp_json_is_given(&format) && !r->base64 && !lp_json_equals(&format, "float"))
    return wrong(r->diag, "'encoding_format' must be 'float' or 'base64'");
  if (!lp_json_is_given(&dimensions)) return LP_OK;
  if (lp_json_i64(&dimensions, 1, INT32_MAX, &wanted, NULL) == LP_OK && wanted == width) return LP_OK;
  return lp_error_as(LP_USAGE, r->diag, LP_LOC_NONE,
                     "'dimensions' is not supported: the model's embeddings have %" PRId64 " values", width);
}

/* The model's own name, "embeddings" or "auto"; *none: it is another. */
static lp_status check_model(const lp_embedder *embedder, const char *asked, bool *none, lp_diag *diag) {
  if (!asked) return wrong(diag, "'model' must be text");
  *none = !embedder;
  if (*none)
    return wrong(diag, "the server has no model for embeddings: the models of its places give logits, and embeddings "
                       "are made from hidden states; 'embeddings' of its configuration names a bundle that gives them");
  if (lp_streq(asked, lp_embedder_model(embedder)) || lp_streq(asked, "embeddings") || lp_streq(asked, "auto"))
    return LP_OK;
  *none = true;
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "there is no model for embeddings '%.80s': wanted '%s'", asked,
                     lp_embedder_model(embedder));
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void put_base64(lp_json_writer *json, const float *values, int64_t count) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *bytes = (const unsigned char *)values; /* of little-endian machines, as the API wants them */
  size_t size = (size_t)count * sizeof *values;
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i;
    uint32_t group =
        (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
    char four[] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
                   left > 2 ? digits[group & 63] : '='};
    lp_buf_append(&text, four, sizeof four);
  }
  lp_json_put_text(json, "embedding", lp_buf_text(&text));
}

static void put_floats(lp_json_writer *json, const float *values, int64_t count) {
  lp_json_put_array(json, "embedding");
  for (int64_t i = 0; i < count; i++)
    lp_json_put_number(json, NULL, (double)values[i]);
  lp_json_put_end(json);
}

static char *write_answer(const reading *r, const float *values, int64_t tokens) {
  int64_t width = lp_embedder_width(r->embedder);
  static const lp_json_style style = {.has_no_space = true, .marks_reals = true, .digits = 9}; /* of a float */
  lp_buf out = {0};
  lp_json_writer json = lp_json_writer_begin(&out, style);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "object", "list");
  lp_json_put_array(&json, "data");
  for (size_t i = 0; i < r->texts.count; i++) {
    lp_json_put_object(&json, NULL);
    lp_json_put_text(&json, "object", "embedding");
    lp_json_put_integer(&json, "index", (int64_t)i);
    (r->base64 ? put_base64 : put_floats)(&json, values + i * (size_t)width, width);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  lp_json_put_text(&json, "model", lp_embedder_model(r->embedder));
  lp_json_put_object(&json, "usage");
  lp_json_put_integer(&json, "prompt_tokens", tokens);
  lp_json_put_integer(&json, "total_tokens", tokens);
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}

static lp_status answer(reading *r, const lp_embeddings_request *request, lp_embeddings_answer *out) {
  const lp_embedder_request run = {
      .text = r->texts.data, .count = r->texts.count, .client = request->client, .stop = request->stop};
  LP_OWNED(lp_free_at)
  float *values = lp_alloc(r->texts.count * (size_t)lp_embedder_width(r->embedder) * sizeof *values);
  for (size_t i = 0; i < r->texts.count; i++)
    out->tokens += (int64_t)r->texts.data[i].count;
  lp_status status = lp_embedder_run(r->embedder, &run, values, &out->queue_ms, r->diag);
  if (status == LP_OK) out->json = write_answer(r, values, out->tokens);
  return status;
}

lp_status lp_embeddings_answer_to(lp_embedder *embedder, const lp_embeddings_request *request,
                                  lp_embeddings_answer *out, lp_diag *diag) {
  lp_json_document *document = NULL;
  reading r = {.embedder = embedder, .diag = diag};
  if (lp_body_parse(request->body, request->size, &document, diag) != LP_OK) return LP_USAGE;
  lp_json body = lp_json_root("the request", document), model = lp_json_member(&body, "model");
  const char *asked = lp_json_is_given(&model) ? lp_json_text_or(&model, NULL) : "embeddings";
  out->model = asked ? lp_strdup(asked) : NULL;
  lp_status status = check_model(embedder, asked, &out->no_model, diag);
  if (status == LP_OK) status = read_form(&r, &body);
  if (status == LP_OK) status = read_input(&r, &body);
  if (status == LP_OK) status = answer(&r, request, out);
  for (size_t i = 0; i < r.texts.count; i++)
    lp_vec_free(&r.texts.data[i]);
  lp_vec_free(&r.texts);
  lp_json_free(document);
  return status;
}
