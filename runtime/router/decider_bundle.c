/* A decider that gives the prompt's text to a language model compiled by llmpart. It needs only the ratios of
 * first-token probabilities, so it compares logits without the sum over the vocabulary. */
#include <math.h>

#include "base/clock.h"
#include "runtime/router/decider_session.h"
#include "runtime/router/labels.h"
#include "runtime/runtime.h"

typedef struct {
  lp_decider decider;
  lp_reader reader;
  lp_tokens first[LP_ROUTE_COUNT]; /* distinct first tokens of the route's spellings */
  lp_session *writer;              /* NULL: nothing was written yet */
  double write_ms, until_ms;       /* the time to write, and its end */
  int32_t threads;
} language_model;

static bool holds(const lp_tokens *tokens, int32_t token) {
  for (size_t i = 0; i < tokens->count; i++)
    if (tokens->data[i] == token) return true;
  return false;
}

static lp_status find_labels(language_model *self, const char *bundle, lp_diag *diag) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(self->reader.bundle);
  lp_loc loc = {.file = bundle};
  if (!tokenizer) return lp_error(diag, loc, "the bundle has no tokenizer; compile it with --tokenizer=FILE");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    for (int n = 0; n < LP_LABEL_SPELLINGS; n++) {
      char text[16];
      lp_tokens ids = {0};
      (void)lp_label_spelling(route, n, text);
      lp_status status = lp_tokenizer_encode(tokenizer, text, strlen(text), false, &ids, diag);
      if (status == LP_OK && ids.count > 0 && !holds(&self->first[route], ids.data[0]))
        lp_vec_push(&self->first[route], ids.data[0]);
      lp_vec_free(&ids);
      if (status != LP_OK) return status;
    }
    for (lp_route other = 0; other < route; other++)
      for (size_t i = 0; i < self->first[route].count; i++)
        if (holds(&self->first[other], self->first[route].data[i]))
          return lp_error(diag, loc, "'%s' and '%s' begin with the same token, so this model cannot tell them apart",
                          lp_route_name(other), lp_route_name(route));
  }
  return LP_OK;
}

static lp_status encode(const language_model *self, const char *text, lp_tokens *out, lp_diag *diag) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(self->reader.bundle);
  const lp_chat_message message = {"user", text};
  return lp_tokenizer_has_chat_template(tokenizer)
             ? lp_tokenizer_encode_chat(tokenizer, &message, 1, NULL, out, diag)
             : lp_tokenizer_encode_typed(tokenizer, text, strlen(text), true, out, diag);
}

static lp_status score(lp_decider *decider, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT],
                       lp_diag *diag) {
  language_model *self = (language_model *)decider;
  lp_tokens ids = {0};
  const float *logits = NULL;
  lp_buf text = {0};
  lp_prompt_text(prompt, &text);
  lp_status status = encode(self, lp_buf_text(&text), &ids, diag);
  lp_buf_free(&text);
  if (status == LP_OK) status = lp_reader_logits(&self->reader, ids.data, ids.count, &logits, diag);
  lp_vec_free(&ids);
  if (status != LP_OK) return status;
  double greatest = -INFINITY;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    for (size_t i = 0; i < self->first[route].count; i++)
      greatest = fmax(greatest, (double)logits[self->first[route].data[i]]);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    probability[route] = 0;
    for (size_t i = 0; i < self->first[route].count; i++)
      probability[route] += exp((double)logits[self->first[route].data[i]] - greatest);
  }
  return lp_label_normalise(prompt->offered, probability, diag);
}

static bool is_late(void *user) {
  return lp_now_ms() >= ((language_model *)user)->until_ms;
}

/* The session for texts differs from the reader's in the number of tokens. */
static lp_status open_writer(language_model *self, lp_diag *diag) {
  const lp_generate_options options = {
      .max_tokens = LP_KEYWORD_TOKENS, .threads = self->threads, .is_abandoned = is_late, .abandon_user = self};
  return self->writer ? LP_OK : lp_session_open(self->reader.bundle, &options, &self->writer, diag);
}

/* An answer that is not complete in time is none. */
static lp_status write_text(lp_decider *decider, const char *prompt, lp_buf *out, lp_diag *diag) {
  language_model *self = (language_model *)decider;
  LP_OWNED(lp_free_at) lp_tokens ids = {0}, made = {0};
  lp_generation answer = {0};
  LP_TRY(open_writer(self, diag));
  self->until_ms = lp_now_ms() + self->write_ms;
  lp_status status = encode(self, prompt, &ids, diag);
  if (status == LP_OK)
    status = lp_session_generate(self->writer, ids.data, 1, (int64_t)ids.count, NULL, NULL, &answer, diag);
  if (status == LP_OK && is_late(self))
    status = lp_error(diag, LP_LOC_NONE, "the model has taken more than %g ms", self->write_ms);
  for (size_t i = 0; i < answer.tokens.count; i++)
    if (answer.tokens.data[i].token >= 0) lp_vec_push(&made, answer.tokens.data[i].token);
  if (status == LP_OK) lp_tokenizer_decode(lp_bundle_tokenizer(self->reader.bundle), made.data, made.count, true, out);
  lp_generation_free(&answer);
  return status;
}

static void close_language_model(lp_decider *decider) {
  LP_OWNED(lp_free_at) language_model *self = (language_model *)decider;
  lp_session_close(self->writer);
  lp_reader_close(&self->reader);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    lp_vec_free(&self->first[route]);
}

lp_status lp_decider_bundle(const char *bundle, int32_t threads, double write_ms, lp_decider **out, lp_diag *diag) {
  language_model *self = lp_alloc(sizeof *self);
  *self = (language_model){.decider = {"bundle", score, close_language_model, false, write_text},
                           .threads = threads,
                           .write_ms = write_ms > 0 ? write_ms : 300};
  lp_status status = lp_reader_open(bundle, threads, &self->reader, diag);
  if (status == LP_OK) status = find_labels(self, bundle, diag);
  if (status == LP_OK)
    *out = &self->decider;
  else
    close_language_model(&self->decider);
  return status;
}
