/* Stop sequences: a sink that passes the text before the first one on to another sink. */
#ifndef LP_SERVE_STOP_H
#define LP_SERVE_STOP_H

#include "runtime/serve/site.h"

typedef struct {
  const lp_completion *request;
  lp_piece_sink *sink;
  void *user;
  lp_buf held;
  bool stopped; /* the answer has ended, or the client has disconnected */
} lp_stopper;

/* An lp_piece_sink; its `user` is an lp_stopper. */
bool lp_stopper_put(void *stopper, const char *text);
/* Passes held text on if the answer is complete, and frees it. */
void lp_stopper_end(lp_stopper *stopper, bool whole);

#endif
