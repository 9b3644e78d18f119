/* Stop sequences: a sink that passes the text before the first one of each choice on to another sink. */
#pragma once

#include "runtime/serve/place/logprobs.h"
#include "runtime/serve/place/site.h"

typedef struct {
  const lp_completion *request;
  lp_piece_sink *sink;
  void *user;
  struct {
    lp_buf held;
    lp_logprobs logprobs; /* of tokens that were not passed on */
    size_t passed, seen;  /* bytes of text that were passed on; bytes of the tokens that were passed on */
    const char *by;       /* the stop sequence that it ended at */
    bool stopped;         /* the choice has ended before a stop sequence */
  } choice[LP_MOST_CHOICES];
  bool ended; /* the client wants no more */
} lp_stopper;

/* An lp_piece_sink; its `user` is an lp_stopper. */
bool lp_stopper_put(void *stopper, const lp_piece *piece);
/* Passes held text on if the answer is complete, and frees it. */
void lp_stopper_end(lp_stopper *stopper, bool whole);
