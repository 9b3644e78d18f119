/* Collects the pieces of an answer that is not streamed. */
#ifndef LP_SERVE_COLLECT_H
#define LP_SERVE_COLLECT_H

#include "runtime/serve/place/logprobs.h"

typedef struct {
  int64_t index;
  lp_buf id, name, arguments;
} lp_whole_call;

typedef struct {
  lp_buf text;
  lp_logprobs logprobs;
  LP_VEC(lp_whole_call) calls;
  size_t characters; /* of the tokens that were streamed */
  lp_finish finish;
} lp_whole_choice;

typedef struct {
  lp_whole_choice choice[LP_MOST_ANSWERS];
} lp_whole;

void lp_whole_put(lp_whole *whole, const lp_piece *piece);
/* Frees the choices [first, first + count), and leaves them empty. */
void lp_whole_drop(lp_whole *whole, int32_t first, int32_t count);

#endif
