/* Draws a token: adjusts the logits in the order of vLLM, samples, and reads log probabilities. */
#include "runtime/engine/decoder.h"

#include <math.h>

#include "runtime/exec/sampler.h"

static bool repeats(const lp_decoding *how) {
  return how->repetition_penalty != 1;
}

static bool counts(const lp_decoding *how) {
  return how->presence_penalty != 0 || how->frequency_penalty != 0;
}

lp_vocabulary *engine_vocabulary_create(const lp_bundle *bundle) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(bundle);
  const int32_t vocab = lp_bundle_vocab(bundle);
  lp_vocabulary *vocabulary = lp_vocabulary_begin();
  lp_buf bytes = {0};
  for (int32_t i = 0; i < vocab; i++) {
    bool special = false;
    lp_buf_clear(&bytes);
    lp_tokenizer_token_bytes(tokenizer, i, &bytes, &special);
    if (special) lp_buf_clear(&bytes);
    lp_vocabulary_add(vocabulary, lp_buf_text(&bytes), bytes.size, lp_bundle_is_stop(bundle, i));
  }
  lp_buf_free(&bytes);
  lp_vocabulary_end(vocabulary);
  return vocabulary;
}

/* Notes a token of the answer. */
static lp_match note(engine_decoder *d, int32_t token) {
  lp_match match = LP_MATCH_YES;
  if (d->automaton && !lp_bundle_is_stop(d->bundle, token)) {
    size_t size = 0;
    const char *bytes = lp_vocabulary_bytes(lp_masks_vocabulary(d->masks), token, &size);
    match = lp_automaton_take(d->automaton, bytes, size);
  }
  if (match == LP_MATCH_LATER) return match;
  if (d->made) d->made[token]++;
  if (d->seen) d->seen[token] = true;
  return match;
}

void engine_decoder_init(engine_decoder *decoder, const int32_t *prompt, size_t length, size_t answered) {
  const lp_decoding *how = decoder->how;
  int32_t vocab = decoder->vocab;
  if (counts(how)) decoder->made = lp_alloc((size_t)vocab * sizeof *decoder->made);
  if (repeats(how)) decoder->seen = lp_alloc((size_t)vocab * sizeof *decoder->seen);
  for (size_t i = 0; decoder->seen && i < length; i++)
    decoder->seen[prompt[i]] = true;
  if (how->grammar) {
    decoder->automaton = lp_automaton_create(how->grammar, lp_masks_pool(decoder->masks));
    lp_automaton_grant(decoder->automaton, INT64_MAX, true);
  }
  if (decoder->made || decoder->seen || decoder->automaton || how->bias_count > 0)
    decoder->row = lp_alloc((size_t)vocab * sizeof *decoder->row);
  for (size_t i = length - answered; i < length; i++)
    (void)note(decoder, prompt[i]); /* what is too much now is so later, too */
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
  free(decoder->logits);
  lp_automaton_free(decoder->automaton);
  lp_masking_release(&decoder->masking);
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

static lp_match allows(engine_decoder *d, int32_t token) {
  size_t size = 0;
  if (lp_bundle_is_stop(d->bundle, token)) return lp_automaton_can_end(d->automaton) ? LP_MATCH_YES : LP_MATCH_NO;
  const char *bytes = lp_vocabulary_bytes(lp_masks_vocabulary(d->masks), token, &size);
  return size > 0 ? lp_automaton_allows(d->automaton, bytes, size) : LP_MATCH_NO;
}

/* Gives all tokens that the grammar does not allow the logit -infinity. False: it allows none. */
static bool apply(engine_decoder *d, const lp_mask *mask) {
  bool any = false;
  for (int32_t word = 0; word < (d->vocab + 63) / 64; word++) {
    const int32_t most = d->vocab - word * 64 < 64 ? d->vocab - word * 64 : 64;
    const uint64_t bits = mask->bits[word];
    for (int32_t i = 0; i < most; i++) {
      float *logit = &d->row[word * 64 + i];
      const bool may = (bits >> i & 1) && *logit > -INFINITY;
      if (!may) *logit = -INFINITY;
      any |= may;
    }
  }
  return any;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static lp_sample sample(engine_decoder *d, const float *logits, uint64_t sequence, uint64_t position) {
  return lp_sampler_draw_likely(&d->how->sampling, d->how->min_p, logits, d->vocab, sequence, position, &d->scratch);
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

/* Restricts the draw to the tokens that the grammar allows, and repeats it. */
static lp_match draw_again(engine_decoder *d, engine_draw *result, lp_diag *diag, lp_status *status) {
  static const uint64_t again = UINT64_C(1) << 32;
  lp_mask *mask;
  const lp_match match = lp_masks_find(d->masks, d->automaton, &d->masking, &mask);
  if (match != LP_MATCH_YES) return match;
  if (apply(d, mask))
    d->token = sample(d, d->row, (uint64_t)d->choice + again, d->position).token;
  else if (lp_automaton_can_end(d->automaton))
    *result = ENGINE_DRAW_COMPLETE;
  else
    *status = lp_error(diag, LP_LOC_NONE, "no token of the model continues an answer of this format");
  lp_masks_return(d->masks, mask);
  return LP_MATCH_YES;
}

/* Draws under the grammar. A token that the grammar allows is taken as it is drawn; otherwise the draw is repeated over
 * the allowed tokens, with another random number. Together these draws have the distribution over the allowed tokens
 * unless top_k or top_p is set: these then count all tokens in the first draw, and the allowed ones in the second. */
static lp_status draw_allowed(engine_decoder *d, engine_draw *result, lp_diag *diag) {
  lp_status status = LP_OK;
  lp_match match = LP_MATCH_YES;
  *result = ENGINE_DRAW_TOKEN;
  if (d->stage == ENGINE_DRAW_CHECKS) {
    match = allows(d, d->token);
    if (match == LP_MATCH_YES) d->stage = ENGINE_DRAW_TAKES;
    if (match == LP_MATCH_NO) d->stage = ENGINE_DRAW_MASKS;
  }
  if (d->stage == ENGINE_DRAW_MASKS) {
    match = draw_again(d, result, diag, &status);
    if (match == LP_MATCH_YES) d->stage = ENGINE_DRAW_TAKES;
    if (status != LP_OK || *result == ENGINE_DRAW_COMPLETE) return status;
  }
  if (d->stage == ENGINE_DRAW_TAKES) match = note(d, d->token);
  if (match == LP_MATCH_LATER) *result = ENGINE_DRAW_LATER;
  if (match == LP_MATCH_TOO_MUCH) *result = ENGINE_DRAW_TOO_MUCH;
  return LP_OK;
}

/* A pass waits for less than 0.1 ms; what takes longer happens beside the passes, in slices of one to three
 * milliseconds. */
enum { PASS_STEPS = 2000, SLICE_STEPS = 60000 };

lp_status engine_decoder_draw(engine_decoder *d, const float *logits, uint64_t position, lp_drawn *out,
                              engine_draw *result, lp_diag *diag) {
  *out = (lp_drawn){.token = -1, .logprob = NAN};
  *result = ENGINE_DRAW_TOKEN;
  d->position = position;
  d->stage = ENGINE_DRAW_CHECKS;
  if (d->row) adjust(d, logits);
  d->token = sample(d, d->row ? d->row : logits, (uint64_t)d->choice, position).token;
  if (d->automaton) {
    lp_automaton_grant(d->automaton, PASS_STEPS, false);
    LP_TRY(draw_allowed(d, result, diag));
  } else {
    (void)note(d, d->token);
  }
  const bool tells = d->how->top_logprobs >= 0;
  if (*result == ENGINE_DRAW_LATER && tells) {
    if (!d->logits) d->logits = lp_alloc((size_t)d->vocab * sizeof *d->logits);
    memcpy(d->logits, logits, (size_t)d->vocab * sizeof *d->logits);
  }
  if (*result != ENGINE_DRAW_TOKEN) return LP_OK;
  out->token = d->token;
  if (tells) tell(d, logits, out, &d->scratch);
  return LP_OK;
}

lp_status engine_decoder_go_on(engine_decoder *d, lp_drawn *out, engine_draw *result, lp_diag *diag) {
  lp_automaton_grant(d->automaton, SLICE_STEPS, true);
  LP_TRY(draw_allowed(d, result, diag));
  if (*result != ENGINE_DRAW_TOKEN) return LP_OK;
  *out = (lp_drawn){.token = d->token, .logprob = NAN};
  if (d->how->top_logprobs >= 0) tell(d, d->logits, out, &d->scratch);
  return LP_OK;
}
