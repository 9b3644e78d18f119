/* Draws the tokens of one sequence: penalties, bias, grammar and sampling, and log probabilities. */
#pragma once

#include "runtime/engine/engine.h"
#include "runtime/grammar/masks.h"

/* The tokens of the bundle's tokenizer; special ones have no bytes. */
lp_vocabulary *engine_vocabulary_create(const lp_bundle *bundle);

typedef enum {
  ENGINE_DRAW_TOKEN,
  ENGINE_DRAW_COMPLETE, /* none was drawn, because the grammar's text is complete and no token continues it */
  ENGINE_DRAW_LATER,    /* the grammar takes more steps: engine_decoder_go_on */
  ENGINE_DRAW_TOO_MUCH  /* the grammar takes more than a request may */
} engine_draw;

/* What a draw under a grammar does next. */
typedef enum { ENGINE_DRAW_CHECKS, ENGINE_DRAW_MASKS, ENGINE_DRAW_TAKES } engine_draw_stage;

typedef struct {
  const lp_decoding *how;  /* borrowed */
  const lp_bundle *bundle; /* borrowed */
  lp_masks *masks;         /* borrowed; NULL: there is no grammar */
  int32_t vocab, choice;
  int32_t *made;           /* [vocab] the times that each token is in the answer; NULL: no penalty needs them */
  bool *seen;              /* [vocab] tokens of the prompt and the answer; NULL: no penalty needs them */
  float *row;              /* [vocab] adjusted logits; NULL until they are needed */
  lp_automaton *automaton; /* of the grammar; NULL: there is none */
  lp_masking masking;
  lp_buf scratch;
  /* Of the current draw: */
  engine_draw_stage stage;
  int32_t token;
  uint64_t position;
  float *logits; /* [vocab] the model's own, where a later step tells probabilities; NULL: none does */
} engine_decoder;

/* Takes over the first members of `decoder`, which the caller has set up to `choice`. The last `answered` tokens of
 * the prompt are the beginning of the answer. */
void engine_decoder_init(engine_decoder *decoder, const int32_t *prompt, size_t length, size_t answered);
void engine_decoder_free(engine_decoder *decoder);
/* Tells whether a draw needs more than lp_sampling and the number of the first sequence, which a worker has. */
bool engine_decoder_needs_logits(const engine_decoder *decoder);
/* Draws the token at `position` from logits[vocab], with as little work for the grammar as a pass allows. */
LP_MUST_USE lp_status engine_decoder_draw(engine_decoder *decoder, const float *logits, uint64_t position,
                                          lp_drawn *out, engine_draw *result, lp_diag *diag);
/* Goes on with a draw, for one to three milliseconds. */
LP_MUST_USE lp_status engine_decoder_go_on(engine_decoder *decoder, lp_drawn *out, engine_draw *result, lp_diag *diag);
