/* Draws a token: adjusts the logits in the order of vLLM, samples, and reads log probabilities. */
#include "runtime/engine/decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/sampler.h"

static bool repeats(const lp_decoding *how) {
  return how->repetition_penalty != 1;
}

static bool counts(const lp_decoding *how) {
  return how->presence_penalty != 0 || how->frequency_penalty != 0;
}

engine_texts *engine_texts_create(const lp_tokenizer *tokenizer, int32_t vocab) {
  engine_texts *texts = lp_alloc(sizeof *texts);
  texts->end = lp_alloc((size_t)vocab * sizeof *texts->end);
  for (int32_t i = 0; i < vocab; i++) {
    bool special = false;
    size_t begin = texts->bytes.size;
    lp_tokenizer_token_bytes(tokenizer, i, &texts->bytes, &special);
    if (special) texts->bytes.size = begin;
    texts->end[i] = texts->bytes.size;
  }
  return texts;
}

void engine_texts_free(engine_texts *texts) {
  if (!texts) return;
  lp_buf_free(&texts->bytes);
  free(texts->end);
  free(texts);
}

static const char *bytes_of(const engine_decoder *d, int32_t token, size_t *size) {
  size_t begin = token > 0 ? d->texts->end[token - 1] : 0;
  *size = d->texts->end[token] - begin;
  return lp_buf_text(&d->texts->bytes) + begin;
}

/* Notes a token of the answer. */
static void note(engine_decoder *d, int32_t token) {
  if (d->made) d->made[token]++;
  if (d->seen) d->seen[token] = true;
  if (!d->state || lp_bundle_is_stop(d->bundle, token)) return;
  size_t size = 0;
  const char *bytes = bytes_of(d, token, &size);
  lp_grammar_take(d->state, bytes, size);
}

void engine_decoder_init(engine_decoder *decoder, const int32_t *prompt, size_t length, size_t answered) {
  const lp_decoding *how = decoder->how;
  int32_t vocab = decoder->vocab;
  if (counts(how)) decoder->made = lp_alloc((size_t)vocab * sizeof *decoder->made);
  if (repeats(how)) decoder->seen = lp_alloc((size_t)vocab * sizeof *decoder->seen);
  for (size_t i = 0; decoder->seen && i < length; i++)
    decoder->seen[prompt[i]] = true;
  if (how->grammar) decoder->state = lp_grammar_begin(how->grammar);
  if (decoder->made || decoder->seen || decoder->state || how->bias_count > 0)
    decoder->row = lp_alloc((size_t)vocab * sizeof *decoder->row);
  for (size_t i = length - answered; i < length; i++)
    note(decoder, prompt[i]);
}

bool engine_decoder_needs_logits(const engine_decoder *decoder) {
  const lp_decoding *how = decoder->how;
  return repeats(how) || counts(how) || how->bias_count > 0 || how->grammar || how->min_p > 0 ||
         how->top_logprobs >= 0 || (decoder->choice > 0 && how->sampling.temperature > 0);
}

void engine_decoder_free(engine_decoder *decoder) {
  free(decoder->made);
  free(decoder->seen);
  free(decoder->row);
  lp_grammar_state_free(decoder->state);
  lp_buf_free(&decoder->scratch);
}

/* ---- adjusted logits --------------------------------------------------------------------------------------------- */

static void adjust(engine_decoder *d, const float *logits) {
  const lp_decoding *how = d->how;
  memcpy(d->row, logits, (size_t)d->vocab * sizeof *d->row);
  float repetition = (float)how->repetition_penalty;
  for (int32_t i = 0; d->seen && i < d->vocab; i++)
    if (d->seen[i]) d->row[i] = d->row[i] > 0 ? d->row[i] / repetition : d->row[i] * repetition;
  for (int32_t i = 0; d->made && i < d->vocab; i++)
    if (d->made[i] > 0) d->row[i] -= (float)(how->presence_penalty + how->frequency_penalty * d->made[i]);
  for (size_t i = 0; i < how->bias_count; i++)
    d->row[how->bias[i].token] += how->bias[i].amount;
}

static bool is_allowed(engine_decoder *d, int32_t token) {
  size_t size = 0;
  if (lp_bundle_is_stop(d->bundle, token)) return lp_grammar_can_end(d->state);
  const char *bytes = bytes_of(d, token, &size);
  return size > 0 && lp_grammar_allows(d->state, bytes, size);
}

/* Gives all tokens that the grammar does not allow the logit -infinity. False: it allows none. */
static bool mask(engine_decoder *d) {
  bool first[256], any = false;
  lp_grammar_first_bytes(d->state, first);
  for (int32_t i = 0; i < d->vocab; i++) {
    size_t size = 0;
    const char *bytes = bytes_of(d, i, &size);
    bool may = lp_bundle_is_stop(d->bundle, i) || (size > 0 && first[(uint8_t)bytes[0]]);
    may = may && d->row[i] > -INFINITY && is_allowed(d, i);
    if (!may) d->row[i] = -INFINITY;
    any |= may;
  }
  return any;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static lp_sample sample(engine_decoder *d, const float *logits, uint64_t sequence, uint64_t position) {
  return lp_sampler_draw_likely(&d->how->sampling, d->how->min_p, logits, d->vocab, sequence, position, &d->scratch);
}

/* Draws under the grammar. A token that the grammar allows is taken as it is drawn; otherwise the draw is repeated over
 * the allowed tokens, with another random number. Together these draws have the distribution over the allowed tokens
 * unless top_k or top_p is set: these then count all tokens in the first draw, and the allowed ones in the second. */
static lp_status draw_allowed(engine_decoder *d, const float *logits, uint64_t position, int32_t *token, bool *complete,
                              lp_diag *diag) {
  static const uint64_t again = UINT64_C(1) << 32;
  *token = sample(d, logits, (uint64_t)d->choice, position).token;
  if (is_allowed(d, *token)) return LP_OK;
  if (!mask(d)) {
    *complete = lp_grammar_can_end(d->state);
    return *complete ? LP_OK : lp_error(diag, LP_LOC_NONE, "no token of the model continues an answer of this format");
  }
  *token = sample(d, d->row, (uint64_t)d->choice + again, position).token;
  return LP_OK;
}

/* Sets the probabilities in the model's own distribution. */
static void tell(const engine_decoder *d, const float *logits, lp_drawn *out, lp_buf *scratch) {
  int32_t wanted = d->how->top_logprobs;
  const lp_sampling greedy = {.top_p = 1};
  const lp_sample best = lp_sampler_draw(&greedy, logits, d->vocab, 0, 0, scratch);
  float base = logits[best.token] - (float)log(best.confidence); /* logit - base is the log probability */
  out->logprob = logits[out->token] - base;
  for (int32_t i = 0; i < d->vocab; i++) {
    float logprob = logits[i] - base;
    if (wanted == 0 || isnan(logprob)) continue;
    if (out->top_count == wanted && logprob <= out->top[wanted - 1].logprob) continue;
    int32_t at = out->top_count < wanted ? out->top_count++ : wanted - 1;
    for (; at > 0 && out->top[at - 1].logprob < logprob; at--)
      out->top[at] = out->top[at - 1];
    out->top[at] = (lp_token_logprob){i, logprob};
  }
}

lp_status engine_decoder_draw(engine_decoder *d, const float *logits, uint64_t position, lp_drawn *out, bool *complete,
                              lp_diag *diag) {
  *out = (lp_drawn){.token = -1, .logprob = NAN};
  *complete = false;
  if (d->row) adjust(d, logits);
  const float *from = d->row ? d->row : logits;
  if (d->state)
    LP_TRY(draw_allowed(d, from, position, &out->token, complete, diag));
  else
    out->token = sample(d, from, (uint64_t)d->choice, position).token;
  if (*complete) return LP_OK;
  if (d->how->top_logprobs >= 0) tell(d, logits, out, &d->scratch);
  note(d, out->token);
  return LP_OK;
}
