/* One request at a bundle: its prompt, how its tokens are drawn, and the answer, as its tokens come. A listener belongs
 * to the thread of its request. */
#pragma once

#include "runtime/grammar/grammar.h"
#include "runtime/serve/place/site.h"

typedef struct {
  const lp_bundle *bundle;
  const lp_completion *request;
  lp_piece_sink *sink;
  void *user;
  const volatile int *stop;
  char traceparent[LP_TRACE_CONTEXT + 1];
  const char *machine; /* that draws the tokens; in sessions, those that the device does not draw */
  double until_ms;     /* the answer's deadline */
  bool late;           /* it has passed before the answer was complete */
  bool begun;          /* a token was made */
  lp_tokens prompt;
  int64_t most; /* tokens of each choice, at most */
  lp_decoding decoding;
  lp_grammar *grammar; /* of `decoding` */
  struct {
    lp_text_stream text;
    lp_tokens made;
    volatile int enough; /* the client wants no more, has disconnected, or the server ends */
    bool too_much;       /* the grammar takes more work than a request may */
  } choice[LP_MOST_CHOICES];
} lp_listener;

/* Encodes the prompt, limits `most` to the model's context, and sets the decoding. LP_USAGE: the request is wrong. The
 * caller sets the first members, and `most` to those that the client wants. */
LP_MUST_USE lp_status lp_listener_begin(lp_listener *to, lp_usage *usage, lp_diag *diag);
void lp_listener_free(lp_listener *to);

/* ---- tokens: sinks, with the listener as `user` ------------------------------------------------------------------ */

bool lp_listener_take_drawn(void *user, int32_t choice, const lp_drawn *drawn);
void lp_listener_take_generated(void *user, int64_t index, const lp_generated *token);
/* Tells whether the client has disconnected, the server ends, or the deadline has passed. It is called while the
 * prompt is rendered, and before each part of it and each token. */
bool lp_listener_is_abandoned(void *user);

/* ---- the answer so far ------------------------------------------------------------------------------------------- */

/* The prompt and what was made of a choice, to be freed by the caller. */
lp_tokens lp_listener_text(const lp_listener *to, int32_t choice);
/* Tells whether a choice, or all of them, need no more tokens. */
bool lp_listener_has_all_of(const lp_listener *to, int32_t choice);
bool lp_listener_has_all(const lp_listener *to);
/* Counts the tokens and notes how the choices ended. */
void lp_listener_count(const lp_listener *to, lp_usage *usage);
