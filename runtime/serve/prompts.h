/* Answers requests with several prompts. Each prompt is a request of its own to the dispatcher, and several are under
 * way at the same time. */
#pragma once

#include "runtime/serve/dispatch.h"

/* Takes the answers, numbered as lp_completion_answers counts them; the calls exclude each other. `forget`: see
 * lp_taker; NULL: the client has the pieces. */
typedef struct {
  lp_piece_sink *sink;
  void (*forget)(void *user, int32_t first, int32_t count);
  void (*end)(void *user, int32_t choice, lp_finish finish);
  void *user;
} lp_prompts_taker;

/* As lp_dispatch. `out` has the route and the decision of the prompt with the first piece, and what all prompts used.
 * When one of them fails the others end, and the request fails. */
LP_MUST_USE lp_status lp_prompts_answer(lp_dispatcher *dispatcher, const lp_completion *request,
                                        const volatile int *stop, const lp_prompts_taker *taker, lp_dispatched *out,
                                        lp_diag *diag);
