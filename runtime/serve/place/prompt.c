/* What a bundle's model gets of a request: tokens, sampling, biases and a grammar. */
#include "runtime/serve/place/prompt.h"

#include <math.h>
#include <string.h>

static lp_status copy_tokens(const lp_bundle *bundle, const lp_tokens *from, lp_tokens *out, lp_diag *diag) {
  int32_t vocab = lp_bundle_vocab(bundle);
  for (size_t i = 0; i < from->count; i++) {
    if (from->data[i] >= vocab)
      return lp_error(diag, LP_LOC_NONE, "'prompt' has token %" PRId32 ", and the vocabulary %" PRId32, from->data[i],
                      vocab);
    lp_vec_push(out, from->data[i]);
  }
  return LP_OK;
}

lp_status lp_prompt_encode(const lp_bundle *bundle, const lp_completion *request, lp_tokens *out, lp_diag *diag) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(bundle);
  if (request->prompt_tokens.count > 0) return copy_tokens(bundle, &request->prompt_tokens, out, diag);
  if (!request->chat) return lp_tokenizer_encode(tokenizer, request->prompt, strlen(request->prompt), true, out, diag);
  if (!lp_tokenizer_has_chat_template(tokenizer))
    return lp_error(diag, LP_LOC_NONE, "the model has no chat template: use /v1/completions");
  lp_json root = lp_json_root("the request", request->document), messages = lp_json_member(&root, "messages"),
          tools = lp_json_member(&root, "tools");
  if (request->tools == LP_TOOLS_NONE && !request->has_roles)
    return lp_tokenizer_encode_chat(tokenizer, request->messages, request->count, out, diag);
  return lp_tokenizer_encode_chat_json(tokenizer, messages.value, request->tools == LP_TOOLS_NONE ? NULL : tools.value,
                                       out, diag);
}

/* The request's own values count. Where it has no temperature, those that the model's files state apply, and without
 * these the API's default temperature of 1. The model's top_k and top_p belong to its temperature, as in `llmpart
 * run`. */
lp_sampling lp_prompt_sampling(const lp_bundle *bundle, const lp_completion *request) {
  lp_sampling sampling = lp_bundle_sampling(bundle);
  if (!isnan(request->sampling.temperature))
    sampling = (lp_sampling){.temperature = request->sampling.temperature, .top_p = 1};
  else if (sampling.temperature == 0)
    sampling = (lp_sampling){.temperature = 1, .top_p = 1};
  if (!isnan(request->sampling.top_p)) sampling.top_p = request->sampling.top_p;
  if (request->sampling.top_k >= 0) sampling.top_k = (int32_t)request->sampling.top_k;
  sampling.seed = request->sampling.seed;
  return sampling;
}

lp_status lp_prompt_grammar(const lp_completion *request, lp_grammar **out, lp_diag *diag) {
  const lp_json schema = {.value = request->schema};
  lp_json root = lp_json_root("the request", request->document), tools = lp_json_member(&root, "tools");
  if (request->tools == LP_TOOLS_REQUIRED) return lp_grammar_of_tools(&tools, request->tool, out, diag);
  return request->format == LP_FORMAT_TEXT ? LP_OK : lp_grammar_of_schema(&schema, out, diag);
}

lp_status lp_prompt_check_bias(const lp_bundle *bundle, const lp_completion *request, lp_diag *diag) {
  int32_t vocab = lp_bundle_vocab(bundle);
  for (size_t i = 0; i < request->decoding.bias_count; i++)
    if (request->bias[i].token >= vocab)
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'logit_bias' has token %" PRId32 ", and the vocabulary %" PRId32,
                         request->bias[i].token, vocab);
  return LP_OK;
}
