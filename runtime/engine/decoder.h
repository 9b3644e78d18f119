/* Draws the tokens of one sequence: penalties, bias, grammar and sampling, and log probabilities. */
#ifndef LP_ENGINE_DECODER_H
#define LP_ENGINE_DECODER_H

#include "runtime/engine/engine.h"
#include "runtime/grammar/grammar.h"

/* The bytes of all tokens. */
typedef struct {
  lp_buf bytes;
  size_t *end; /* [vocab] of each token's bytes; those of special tokens are none */
} engine_texts;
engine_texts *engine_texts_create(const lp_tokenizer *tokenizer, int32_t vocab);
void engine_texts_free(engine_texts *texts); /* NULL is allowed */

typedef struct {
  const lp_decoding *how;    /* borrowed */
  const lp_bundle *bundle;   /* borrowed */
  const engine_texts *texts; /* borrowed; NULL: there is no grammar */
  int32_t vocab, choice;
  int32_t *made;           /* [vocab] the times that each token is in the answer; NULL: no penalty needs them */
  bool *seen;              /* [vocab] tokens of the prompt and the answer; NULL: no penalty needs them */
  float *row;              /* [vocab] adjusted logits; NULL until they are needed */
  lp_grammar_state *state; /* of the grammar; NULL: there is none */
  lp_buf scratch;
} engine_decoder;

/* Takes over the first members of `decoder`, which the caller has set up to `choice`. The last `answered` tokens of
 * the prompt are the beginning of the answer. */
void engine_decoder_init(engine_decoder *decoder, const int32_t *prompt, size_t length, size_t answered);
void engine_decoder_free(engine_decoder *decoder);
/* Tells whether a draw needs more than lp_sampling and the number of the first sequence, which a worker has. */
bool engine_decoder_needs_logits(const engine_decoder *decoder);
/* Draws the token at `position` from logits[vocab]. `complete`: none was drawn, because
 * the grammar's text is complete and no token continues it. */
LP_MUST_USE lp_status engine_decoder_draw(engine_decoder *decoder, const float *logits, uint64_t position,
                                          lp_drawn *out, bool *complete, lp_diag *diag);

#endif
