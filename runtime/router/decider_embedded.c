/* The embedded model: a small transformer that was trained to learn from examples in its prompt
 * (examples/router-model/). */
#include <math.h>

#include "runtime/router/decider_session.h"
#include "runtime/router/router.h"
#include "runtime/runtime.h"

typedef struct {
  lp_decider decider;
  lp_reader reader;
} embedded;

static void softmax_over_offered(const float *logits, unsigned offered, double probability[LP_ROUTE_COUNT]) {
  double greatest = -INFINITY, sum = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route)) greatest = fmax(greatest, (double)logits[lp_prompt_route_token(route)]);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    probability[route] =
        lp_route_offered(offered, route) ? exp((double)logits[lp_prompt_route_token(route)] - greatest) : 0;
    sum += probability[route];
  }
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    probability[route] /= sum;
}

static lp_status score(lp_decider *decider, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT],
                       lp_diag *diag) {
  embedded *self = (embedded *)decider;
  int32_t tokens[LP_PROMPT_TOKENS];
  const float *logits = NULL;
  lp_status status = lp_reader_logits(&self->reader, tokens, lp_prompt_tokens(prompt, tokens), &logits, diag);
  if (status == LP_OK) softmax_over_offered(logits, prompt->offered, probability);
  return status;
}

static void close_embedded(lp_decider *decider) {
  lp_reader_close(&((embedded *)decider)->reader);
  free(decider);
}

lp_status lp_decider_embedded(const char *bundle, lp_decider **out, lp_diag *diag) {
  embedded *self = lp_alloc(sizeof *self);
  *self = (embedded){.decider = {"embedded", score, close_embedded, false, NULL}};
  lp_status status = lp_reader_open(bundle, 1, &self->reader, diag);
  if (status == LP_OK && lp_bundle_vocab(self->reader.bundle) != LP_PROMPT_VOCAB)
    status = lp_error(diag, (lp_loc){.file = bundle}, "a vocabulary of %d tokens, where the router's model has %d",
                      (int)lp_bundle_vocab(self->reader.bundle), (int)LP_PROMPT_VOCAB);
  if (status == LP_OK)
    *out = &self->decider;
  else
    close_embedded(&self->decider);
  return status;
}
