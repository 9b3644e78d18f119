/* Collects the pieces of an answer that is not streamed. */
#include "runtime/serve/collect.h"

#include <stdlib.h>

static lp_whole_call *call_of(lp_whole_choice *to, int64_t index) {
  for (size_t i = 0; i < to->calls.count; i++)
    if (to->calls.data[i].index == index) return &to->calls.data[i];
  const lp_whole_call fresh = {.index = index};
  lp_vec_push(&to->calls, fresh);
  return &to->calls.data[to->calls.count - 1];
}

void lp_whole_put(lp_whole *whole, const lp_piece *piece) {
  lp_whole_choice *to = &whole->choice[piece->choice];
  lp_buf_puts(&to->text, piece->text);
  for (size_t i = 0; i < piece->logprob_count; i++) {
    lp_answer_logprob copy = lp_answer_logprob_copy(&piece->logprobs[i]);
    lp_vec_push(&to->logprobs, copy);
  }
  for (size_t i = 0; i < piece->call_count; i++) {
    const lp_tool_call *part = &piece->calls[i];
    lp_whole_call *call = call_of(to, part->index);
    if (part->id && call->id.size == 0) lp_buf_puts(&call->id, part->id);
    if (part->name) lp_buf_puts(&call->name, part->name);
    lp_buf_puts(&call->arguments, part->arguments);
  }
}

void lp_whole_drop(lp_whole *whole, int32_t first, int32_t count) {
  for (int32_t i = first; i < first + count; i++) {
    lp_whole_choice *choice = &whole->choice[i];
    for (size_t k = 0; k < choice->calls.count; k++) {
      lp_buf_free(&choice->calls.data[k].id);
      lp_buf_free(&choice->calls.data[k].name);
      lp_buf_free(&choice->calls.data[k].arguments);
    }
    lp_vec_free(&choice->calls);
    lp_logprobs_free(&choice->logprobs);
    lp_buf_free(&choice->text);
    *choice = (lp_whole_choice){0};
  }
}
