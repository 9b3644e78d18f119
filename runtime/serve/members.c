/* The members that a request may have: those that are read, those that change no answer, and those of other servers
 * with the value that means their absence. All others are refused, as OpenAI's API does: a member that is ignored would
 * give another answer than its author expects, without a word. */
#include "runtime/serve/request.h"

/* Values that a member may have, one bit each. Null is always one of them. */
enum {
  READ = 1 << 0, /* whatever it is: the member is read, or changes no answer */
  FALSE = 1 << 1,
  TRUE = 1 << 2,
  ZERO = 1 << 3,
  ONE = 1 << 4,
  EMPTY = 1 << 5, /* a text, list or object without content */
  NONE = 1 << 6,  /* the text "none" */
  TEXT = 1 << 7   /* ["text"] */
};

typedef struct {
  const char *key;
  unsigned allowed;
} member;

/* In the order of the alphabet. */
static const member of_completions[] = {
    {"add_generation_prompt", TRUE},
    {"add_special_tokens", 0},
    {"allowed_token_ids", EMPTY},
    {"audio", EMPTY},
    {"bad_words", EMPTY},
    {"best_of", ONE},
    {"budget_usd", READ},
    {"cache_prompt", READ}, /* llama.cpp: prompts are always kept */
    {"chat_template", 0},
    {"chat_template_kwargs", READ},
    {"continue_final_message", FALSE},
    {"detokenize", TRUE},
    {"documents", EMPTY},
    {"dry_multiplier", ZERO},
    {"early_stopping", FALSE},
    {"echo", FALSE},
    {"frequency_penalty", READ},
    {"function_call", NONE},
    {"functions", EMPTY},
    {"grammar", EMPTY},
    {"guided_choice", EMPTY},
    {"guided_grammar", EMPTY},
    {"guided_json", EMPTY},
    {"guided_regex", EMPTY},
    {"ignore_eos", FALSE},
    {"include_stop_str_in_output", FALSE},
    {"json_schema", EMPTY},
    {"keywords", READ},
    {"length_penalty", ONE},
    {"local_only", READ},
    {"logit_bias", READ},
    {"logits_processors", EMPTY},
    {"logprobs", READ},
    {"machines", READ},
    {"max_completion_tokens", READ},
    {"max_tokens", READ},
    {"messages", READ},
    {"metadata", READ},
    {"min_p", READ},
    {"min_tokens", ZERO},
    {"mirostat", ZERO},
    {"modalities", TEXT | EMPTY},
    {"model", READ},
    {"n", READ},
    {"no_repeat_ngram_size", ZERO},
    {"num_beams", ONE},
    {"parallel_tool_calls", READ},
    {"prediction", EMPTY},
    {"presence_penalty", READ},
    {"prompt", READ},
    {"prompt_cache_key", READ},
    {"prompt_cache_retention", READ},
    {"prompt_logprobs", ZERO | FALSE},
    {"reasoning_effort", NONE},
    {"regex", EMPTY},
    {"repeat_penalty", ONE},
    {"repetition_penalty", READ},
    {"request_id", READ},
    {"response_format", READ},
    {"return_token_ids", FALSE},
    {"safety_identifier", READ},
    {"seed", READ},
    {"service_tier", READ},
    {"skip_special_tokens", TRUE},
    {"spaces_between_special_tokens", TRUE},
    {"stop", READ},
    {"stop_token_ids", EMPTY},
    {"store", READ},
    {"stream", READ},
    {"stream_options", READ},
    {"structured_outputs", EMPTY},
    {"suffix", EMPTY},
    {"temperature", READ},
    {"tfs_z", ONE},
    {"tool_choice", READ},
    {"tools", READ},
    {"top_k", READ},
    {"top_logprobs", READ},
    {"top_p", READ},
    {"truncate_prompt_tokens", 0},
    {"typical_p", ONE},
    {"use_beam_search", FALSE},
    {"user", READ},
    {"verbosity", 0},
    {"web_search_options", 0},
    {"xtc_probability", ZERO},
};

static const member of_embeddings[] = {
    {"dimensions", READ}, {"encoding_format", READ},   {"input", READ},        {"metadata", READ}, {"model", READ},
    {"request_id", READ}, {"safety_identifier", READ}, {"service_tier", READ}, {"user", READ},
};

static bool is_number(const lp_json *at, double wanted) {
  double found = 0;
  return lp_json_number(at, wanted, wanted, &found, NULL) == LP_OK;
}

static bool is_empty(const lp_json *at) {
  bool holds = lp_json_is(at, LP_JSON_ARRAY) || lp_json_is(at, LP_JSON_OBJECT);
  return holds ? lp_json_count(at) == 0 : lp_json_equals(at, "");
}

static bool is_allowed(const lp_json *at, unsigned allowed) {
  lp_json first = lp_json_item(at, 0);
  bool is_bool = lp_json_is(at, LP_JSON_BOOL);
  return !lp_json_is_given(at) || (allowed & READ) || ((allowed & FALSE) && is_bool && !lp_json_is_true(at)) ||
         ((allowed & TRUE) && lp_json_is_true(at)) || ((allowed & ZERO) && is_number(at, 0)) ||
         ((allowed & ONE) && is_number(at, 1)) || ((allowed & EMPTY) && is_empty(at)) ||
         ((allowed & NONE) && lp_json_equals(at, "none")) ||
         ((allowed & TEXT) && lp_json_count(at) == 1 && lp_json_equals(&first, "text"));
}

static lp_status check(const lp_json *body, const member *known, size_t count, lp_diag *diag) {
  for (size_t i = 0; i < lp_json_count(body); i++) {
    lp_json at = lp_json_entry(body, i);
    unsigned allowed = 0;
    for (size_t k = 0; k < count; k++)
      if (lp_streq(known[k].key, at.key)) allowed = known[k].allowed;
    if (!is_allowed(&at, allowed)) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'%.60s' is not supported", at.key);
  }
  return LP_OK;
}

lp_status lp_members_of_completion(const lp_json *body, lp_diag *diag) {
  return check(body, of_completions, LP_COUNT(of_completions), diag);
}

lp_status lp_members_of_embeddings(const lp_json *body, lp_diag *diag) {
  return check(body, of_embeddings, LP_COUNT(of_embeddings), diag);
}
