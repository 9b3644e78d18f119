/* Members of a request that change how tokens are drawn, and the format of the answer. */
#include <math.h>
#include <sys/random.h>

#include "runtime/serve/request.h"

lp_status lp_request_number(const lp_json *body, const char *key, double least, double most, double *out,
                            lp_diag *diag) {
  lp_json at = lp_json_member(body, key);
  if (!lp_json_is_given(&at) || lp_json_number(&at, least, most, out, NULL) == LP_OK) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "'%s' must be a number from %g to %g", key, least, most);
}

lp_status lp_request_count(const lp_json *body, const char *key, int64_t least, int64_t most, int64_t *out,
                           lp_diag *diag) {
  double count = (double)*out;
  lp_status status = lp_request_number(body, key, (double)least, (double)most, &count, diag);
  if (status == LP_OK && count != floor(count))
    return lp_error(diag, LP_LOC_NONE, "'%s' must be a whole number from %" PRId64 " to %" PRId64, key, least, most);
  *out = (int64_t)count;
  return status;
}

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

/* {"TOKEN": AMOUNT, ...}, with amounts from -100, which bans a token, to 100. */
static lp_status read_bias(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json bias = lp_json_member(body, "logit_bias");
  if (!lp_json_is_given(&bias)) return LP_OK;
  if (!lp_json_is(&bias, LP_JSON_OBJECT))
    return lp_error(diag, LP_LOC_NONE, "'logit_bias' must be an object of token numbers and amounts");
  size_t count = lp_json_count(&bias);
  out->decoding.bias = out->bias = lp_alloc((count + 1) * sizeof *out->bias);
  for (size_t i = 0; i < count; i++) {
    lp_json entry = lp_json_entry(&bias, i);
    char *end = NULL;
    long token = strtol(entry.key, &end, 10);
    double amount = 0;
    if (end == entry.key || *end || token < 0 || token > INT32_MAX ||
        lp_json_number(&entry, -100, 100, &amount, NULL) != LP_OK)
      return lp_error(diag, LP_LOC_NONE, "'logit_bias' must have token numbers and amounts from -100 to 100");
    out->bias[out->decoding.bias_count++] = (lp_logit_bias){(int32_t)token, amount <= -100 ? -INFINITY : (float)amount};
  }
  return LP_OK;
}

/* Chats have `logprobs` true and `top_logprobs`; elsewhere `logprobs` is the number. */
static lp_status read_logprobs(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json at = lp_json_member(body, "logprobs"), top_at = lp_json_member(body, "top_logprobs");
  int64_t top = 0;
  if (!out->chat) {
    if (lp_json_is_given(&top_at))
      return lp_error(diag, LP_LOC_NONE, "'top_logprobs' belongs to chats: 'logprobs' gives the number here");
    LP_TRY(lp_request_count(body, "logprobs", 0, LP_MOST_TOP, &top, diag));
    if (lp_json_is_given(&at)) out->decoding.top_logprobs = (int32_t)top;
    return LP_OK;
  }
  if (lp_json_is_given(&at) && !lp_json_is(&at, LP_JSON_BOOL))
    return lp_error(diag, LP_LOC_NONE, "'logprobs' must be true or false");
  LP_TRY(lp_request_count(body, "top_logprobs", 0, LP_MOST_TOP, &top, diag));
  if (lp_json_is_given(&top_at) && top > 0 && !lp_json_is_true(&at))
    return lp_error(diag, LP_LOC_NONE, "'top_logprobs' requires 'logprobs' to be true");
  if (lp_json_is_true(&at)) out->decoding.top_logprobs = (int32_t)top;
  return LP_OK;
}

static lp_status read_seed(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json at = lp_json_member(body, "seed");
  double seed = 0;
  if (!lp_json_is_given(&at)) {
    if (getrandom(&out->sampling.seed, sizeof out->sampling.seed, 0) < 0) out->sampling.seed = 0;
    return LP_OK;
  }
  int64_t whole = 0;
  if (lp_json_i64(&at, INT64_MIN, INT64_MAX, &whole, NULL) == LP_OK) {
    out->sampling.seed = (uint64_t)whole;
    return LP_OK;
  }
  /* 5.0 is whole, too; of numbers from 2^63 to 2^64 the reader keeps 53 bits */
  LP_TRY(lp_request_number(body, "seed", -0x1p63, 0x1p64, &seed, diag));
  if (seed != floor(seed)) return lp_error(diag, LP_LOC_NONE, "'seed' must be a whole number");
  out->sampling.seed = seed < 0 ? (uint64_t)(int64_t)seed : seed < 0x1p64 ? (uint64_t)seed : UINT64_MAX;
  return LP_OK;
}

static lp_status read_sampling(const lp_json *body, lp_completion *out, lp_diag *diag) {
  double temperature = NAN, top_p = NAN, top_k = -1;
  LP_TRY(lp_request_number(body, "temperature", 0, 2, &temperature, diag));
  LP_TRY(lp_request_number(body, "top_p", 0, 1, &top_p, diag));
  if (top_p < 1e-6) top_p = 1e-6; /* the likeliest token, as 0 */
  LP_TRY(lp_request_number(body, "top_k", -1, INT32_MAX, &top_k, diag));
  lp_json k = lp_json_member(body, "top_k");
  if (top_k != floor(top_k)) return lp_error(diag, LP_LOC_NONE, "'top_k' must be a whole number");
  out->sampling.temperature = temperature;
  out->sampling.top_p = top_p;
  out->sampling.top_k = lp_json_is_given(&k) && top_k < 0 ? 0 : (int64_t)top_k; /* others say -1 for "off" */
  return read_seed(body, out, diag);
}

static lp_status read_penalties(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_decoding *to = &out->decoding;
  LP_TRY(lp_request_number(body, "min_p", 0, 1, &to->min_p, diag));
  LP_TRY(lp_request_number(body, "repetition_penalty", 1e-2, 100, &to->repetition_penalty, diag));
  LP_TRY(lp_request_number(body, "presence_penalty", -2, 2, &to->presence_penalty, diag));
  LP_TRY(lp_request_number(body, "frequency_penalty", -2, 2, &to->frequency_penalty, diag));
  return read_bias(body, out, diag);
}

/* ---- format ------------------------------------------------------------------------------------------------------ */

static lp_status read_format(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json format = lp_json_member(body, "response_format"), type = lp_json_member(&format, "type"),
          named = lp_json_member(&format, "json_schema"), schema = lp_json_member(&named, "schema");
  if (!lp_json_is_given(&format) || lp_json_equals(&type, "text")) return LP_OK;
  if (lp_json_equals(&type, "json_object")) {
    out->format = LP_FORMAT_OBJECT;
    return LP_OK;
  }
  if (!lp_json_equals(&type, "json_schema"))
    return lp_error(diag, LP_LOC_NONE, "'response_format' must have the type text, json_object or json_schema");
  if (!lp_json_is(&schema, LP_JSON_OBJECT))
    return lp_error(diag, LP_LOC_NONE, "'response_format' must have 'json_schema' with an object 'schema'");
  out->format = LP_FORMAT_SCHEMA;
  out->schema = schema.value;
  return LP_OK;
}

static bool has_function(const lp_json *tools, const char *name) {
  for (size_t i = 0; i < lp_json_count(tools); i++) {
    lp_json tool = lp_json_item(tools, i), function = lp_json_member(&tool, "function");
    if (lp_json_equals(LP_MEMBER(&function, "name"), name)) return true;
  }
  return false;
}

static lp_status check_tools(const lp_json *tools, lp_diag *diag) {
  for (size_t i = 0; i < lp_json_count(tools); i++) {
    lp_json tool = lp_json_item(tools, i), type = lp_json_member(&tool, "type"),
            function = lp_json_member(&tool, "function"), name = lp_json_member(&function, "name");
    if (!lp_json_equals(&type, "function") || !lp_json_text_or(&name, NULL))
      return lp_error(diag, LP_LOC_NONE, "'tools[%zu]' must have the type function, and 'function' with a 'name'", i);
  }
  return LP_OK;
}

static lp_status read_tool_choice(const lp_json *body, const lp_json *tools, lp_completion *out, lp_diag *diag) {
  lp_json choice = lp_json_member(body, "tool_choice"), function = lp_json_member(&choice, "function");
  out->tools = LP_TOOLS_AUTO;
  if (!lp_json_is_given(&choice) || lp_json_equals(&choice, "auto")) return LP_OK;
  if (lp_json_equals(&choice, "none")) {
    out->tools = LP_TOOLS_NONE;
    return LP_OK;
  }
  out->tools = LP_TOOLS_REQUIRED;
  if (lp_json_equals(&choice, "required")) return LP_OK;
  out->tool = lp_json_text_or(LP_MEMBER(&function, "name"), NULL);
  if (out->tool && has_function(tools, out->tool)) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "'tool_choice' must be none, auto, required, or name a function of 'tools'");
}

static lp_status read_tools(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json tools = lp_json_member(body, "tools"), choice = lp_json_member(body, "tool_choice");
  if (!lp_json_is_given(&tools) || (lp_json_is(&tools, LP_JSON_ARRAY) && lp_json_count(&tools) == 0)) {
    bool usual = !lp_json_is_given(&choice) || lp_json_equals(&choice, "none") || lp_json_equals(&choice, "auto");
    return usual ? LP_OK : lp_error(diag, LP_LOC_NONE, "'tool_choice' requires 'tools'");
  }
  if (!out->chat) return lp_error(diag, LP_LOC_NONE, "'tools' belongs to chats");
  if (!lp_json_is(&tools, LP_JSON_ARRAY)) return lp_error(diag, LP_LOC_NONE, "'tools' must be a list");
  LP_TRY(check_tools(&tools, diag));
  LP_TRY(read_tool_choice(body, &tools, out, diag));
  if (out->tools != LP_TOOLS_NONE && out->format != LP_FORMAT_TEXT)
    return lp_error(diag, LP_LOC_NONE, "'response_format' with 'tools' requires the 'tool_choice' none");
  lp_json parallel = lp_json_member(body, "parallel_tool_calls");
  out->one_call = lp_json_is(&parallel, LP_JSON_BOOL) && !lp_json_is_true(&parallel);
  return LP_OK;
}

/* The first member that lp_sampling does not express. */
static const char *find_only_engine(const lp_completion *request) {
  const lp_decoding *how = &request->decoding;
  if (request->choices > 1) return "n";
  if (how->min_p > 0) return "min_p";
  if (how->repetition_penalty != 1) return "repetition_penalty";
  if (how->presence_penalty != 0) return "presence_penalty";
  if (how->frequency_penalty != 0) return "frequency_penalty";
  if (how->bias_count > 0) return "logit_bias";
  if (how->top_logprobs >= 0) return "logprobs";
  if (request->format != LP_FORMAT_TEXT) return "response_format";
  if (request->tools == LP_TOOLS_REQUIRED) return "tool_choice";
  return NULL;
}

lp_status lp_request_options(const lp_json *body, lp_completion *out, lp_diag *diag) {
  int64_t choices = 1;
  out->decoding = (lp_decoding){.repetition_penalty = 1, .top_logprobs = -1};
  LP_TRY(lp_request_count(body, "n", 1, LP_MOST_CHOICES, &choices, diag));
  out->choices = (int32_t)choices;
  LP_TRY(read_sampling(body, out, diag));
  LP_TRY(read_penalties(body, out, diag));
  LP_TRY(read_logprobs(body, out, diag));
  LP_TRY(read_format(body, out, diag));
  LP_TRY(read_tools(body, out, diag));
  out->only_engine = find_only_engine(out);
  return LP_OK;
}
