/* The answer of one request at a bundle, token by token: see listener.h. */
#include "runtime/serve/place/listener.h"

#include <math.h>
#include <poll.h>

#include "base/clock.h"
#include "runtime/grammar/grammar.h"
#include "runtime/serve/place/logprobs.h"
#include "runtime/serve/request.h"

/* ---- what a request says to a bundle ----------------------------------------------------------------------------- */

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

/* Appends the prompt's tokens: those of the request, or of its text, or of its messages by the chat template. */
static lp_status encode_prompt(lp_listener *to, lp_tokens *out, lp_diag *diag) {
  const lp_bundle *bundle = to->bundle;
  const lp_completion *request = to->request;
  const lp_watch watch = {lp_listener_is_abandoned, to};
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(bundle);
  if (request->prompt_tokens.count > 0) return copy_tokens(bundle, &request->prompt_tokens, out, diag);
  if (!request->chat) return lp_tokenizer_encode(tokenizer, request->prompt, strlen(request->prompt), true, out, diag);
  if (request->may_be_plain && !lp_tokenizer_has_chat_template(tokenizer)) {
    const char *text = request->messages[request->count - 1].content;
    return lp_tokenizer_encode(tokenizer, text, strlen(text), true, out, diag);
  }
  if (!lp_tokenizer_has_chat_template(tokenizer))
    return lp_error(diag, LP_LOC_NONE, "the model has no chat template: use /v1/completions");
  lp_json root = lp_json_root("the request", request->document), messages = lp_json_member(&root, "messages"),
          tools = lp_json_member(&root, "tools");
  if (request->tools == LP_TOOLS_NONE && !request->has_more && !request->template_variables)
    return lp_tokenizer_encode_chat(tokenizer, request->messages, request->count, &watch, out, diag);
  return lp_tokenizer_encode_chat_json(tokenizer, messages.value, request->tools == LP_TOOLS_NONE ? NULL : tools.value,
                                       request->template_variables, &watch, out, diag);
}

/* The request's own values count. Where it has no temperature, those that the model's files state apply, and without
 * these the API's default temperature of 1. The model's top_k and top_p belong to its temperature, as in `llmpart
 * run`. */
static lp_sampling sampling_of(const lp_bundle *bundle, const lp_completion *request) {
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

/* The grammar of the answer, which the caller frees; *out stays NULL where any text will do. */
static lp_status make_grammar(const lp_completion *request, lp_grammar **out, lp_diag *diag) {
  const lp_json schema = {.value = request->schema};
  lp_json root = lp_json_root("the request", request->document), tools = lp_json_member(&root, "tools");
  if (request->tools == LP_TOOLS_REQUIRED) return lp_grammar_of_tools(&tools, request->tool, out, diag);
  return request->format == LP_FORMAT_TEXT ? LP_OK : lp_grammar_of_schema(&schema, out, diag);
}

/* LP_USAGE: `logit_bias` has a token that the model lacks. */
static lp_status check_bias(const lp_bundle *bundle, const lp_completion *request, lp_diag *diag) {
  int32_t vocab = lp_bundle_vocab(bundle);
  for (size_t i = 0; i < request->decoding.bias_count; i++)
    if (request->bias[i].token >= vocab)
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'logit_bias' has token %" PRId32 ", and the vocabulary %" PRId32,
                         request->bias[i].token, vocab);
  return LP_OK;
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static lp_status encode(lp_listener *to, lp_usage *usage, lp_diag *diag) {
  int64_t context = lp_bundle_context_length(to->bundle);
  if (encode_prompt(to, &to->prompt, diag) != LP_OK) return to->late || lp_flag_get(to->stop) ? LP_FAILED : LP_USAGE;
  int64_t length = (int64_t)to->prompt.count;
  if (length == 0) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "the prompt has no tokens");
  usage->is_too_long = context > 0 && length >= context;
  if (usage->is_too_long)
    return lp_error(diag, LP_LOC_NONE,
                    "the prompt has %" PRId64 " tokens; this model's maximum context length is %" PRId64, length,
                    context);
  if (context > 0 && to->most > context - length) to->most = context - length;
  if (to->request->tools != LP_TOOLS_NONE && !lp_tokenizer_chat_reads_tools(lp_bundle_tokenizer(to->bundle)))
    usage->note = "the model's chat template has no tools: the model does not see those of the request";
  usage->prompt_tokens = length;
  return LP_OK;
}

lp_status lp_listener_begin(lp_listener *to, lp_usage *usage, lp_diag *diag) {
  LP_TRY(encode(to, usage, diag));
  LP_TRY(check_bias(to->bundle, to->request, diag));
  if (make_grammar(to->request, &to->grammar, diag) != LP_OK) return LP_USAGE;
  to->decoding = to->request->decoding;
  to->decoding.sampling = sampling_of(to->bundle, to->request);
  to->decoding.grammar = to->grammar;
  return LP_OK;
}

void lp_listener_free(lp_listener *to) {
  for (int32_t i = 0; i < LP_MOST_CHOICES; i++) {
    lp_text_stream_free(&to->choice[i].text);
    lp_vec_free(&to->choice[i].made);
  }
  lp_vec_free(&to->prompt);
  lp_grammar_free(to->grammar);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* Hands a token's text on. `drawn` NULL: without probabilities. False: the choice ends. */
static bool take(lp_listener *to, int32_t choice, int32_t token, const lp_drawn *drawn, const char *machine) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(to->bundle);
  lp_buf text = {0};
  lp_answer_logprob logprob = {0};
  to->begun = true;
  lp_vec_push(&to->choice[choice].made, token);
  lp_text_stream_put(&to->choice[choice].text, tokenizer, token, &text);
  lp_piece piece = {.choice = choice, .text = lp_buf_text(&text), .machine = to->request->machines ? machine : NULL};
  if (drawn && to->request->decoding.top_logprobs >= 0) {
    logprob = lp_answer_logprob_of(tokenizer, drawn, to->request->chat);
    piece.logprobs = &logprob;
    piece.logprob_count = 1;
  }
  bool more = (text.size == 0 && piece.logprob_count == 0) || to->sink(to->user, &piece);
  lp_answer_logprob_free(&logprob);
  lp_buf_free(&text);
  more = more && !lp_flag_get(to->stop);
  if (!more) lp_flag_set(&to->choice[choice].enough);
  return more;
}

bool lp_listener_take_drawn(void *user, int32_t choice, const lp_drawn *drawn) {
  lp_listener *to = user;
  char exit[48];
  (void)snprintf(exit, sizeof exit, "device, exit after layer %" PRId32, drawn->exit);
  return take(to, choice, drawn->token, drawn, drawn->exit > 0 ? exit : to->machine);
}

/* What made a token: the device, a worker, or the worker of a place of more than two. */
static const char *machine_of(const lp_listener *to, const lp_generated *token) {
  if (token->side == LP_SIDE_DEVICE) return "device";
  return lp_bundle_place_count(to->bundle) > LP_SIDE_COUNT ? lp_bundle_place_name(to->bundle, token->side)
                                                           : to->machine;
}

void lp_listener_take_generated(void *user, int64_t index, const lp_generated *token) {
  lp_listener *to = user;
  if (index != 0) return;
  LP_OWNED(lp_buf_free) lp_buf machine = {0};
  lp_buf_puts(&machine, machine_of(to, token));
  if (token->exit_layer >= 0) lp_buf_printf(&machine, ", exit after layer %" PRId32, token->exit_layer);
  (void)take(to, 0, token->token, NULL, lp_buf_text(&machine));
}

bool lp_listener_is_abandoned(void *user) {
  lp_listener *to = user;
  struct pollfd client = {.fd = to->request->client, .events = POLLRDHUP};
  to->late |= lp_now_ms() >= to->until_ms;
  return lp_flag_get(to->stop) || to->late ||
         (poll(&client, 1, 0) > 0 && (client.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

/* ---- the answer so far ------------------------------------------------------------------------------------------- */

lp_tokens lp_listener_text(const lp_listener *to, int32_t choice) {
  const lp_tokens *made = &to->choice[choice].made;
  lp_tokens text = {0};
  for (size_t i = 0; i < to->prompt.count; i++)
    lp_vec_push(&text, to->prompt.data[i]);
  for (size_t i = 0; i < made->count; i++)
    lp_vec_push(&text, made->data[i]);
  return text;
}

/* Tells whether the model ended the choice. */
static bool has_ended(const lp_listener *to, int32_t choice) {
  const lp_tokens *made = &to->choice[choice].made;
  return made->count > 0 && lp_bundle_is_stop(to->bundle, made->data[made->count - 1]);
}

bool lp_listener_has_all_of(const lp_listener *to, int32_t choice) {
  return (int64_t)to->choice[choice].made.count >= to->most || lp_flag_get(&to->choice[choice].enough) ||
         to->choice[choice].too_much || has_ended(to, choice);
}

bool lp_listener_has_all(const lp_listener *to) {
  for (int32_t i = 0; i < to->request->choices; i++)
    if (!lp_listener_has_all_of(to, i)) return false;
  return true;
}

void lp_listener_count(const lp_listener *to, lp_usage *usage) {
  usage->tokens = 0;
  for (int32_t i = 0; i < to->request->choices; i++) {
    int64_t made = (int64_t)to->choice[i].made.count;
    bool cut = made >= to->most && !has_ended(to, i) && !lp_flag_get(&to->choice[i].enough);
    usage->tokens += made;
    usage->finish[i] = to->choice[i].too_much ? LP_FINISH_ERROR : cut ? LP_FINISH_LENGTH : LP_FINISH_STOP;
  }
}
