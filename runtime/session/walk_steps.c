/* The steps that a walk executes alike, whether the cloud's side is in this process or a worker's. */

#include "base/base.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/trace.h"
#include "runtime/session/walk.h"

lp_status lp_walk_fill(lp_walk *walk, lp_executor *executor, const lp_step *step, lp_diag *diag) {
  lp_span input = walk->input[step->port];
  return lp_executor_fill(executor, step->buffer, step, input.data, input.size, diag);
}

/* A program may have several outputs with logits (early exits); tokens are sampled from the first. */
bool lp_walk_wants(const lp_session *session, const lp_walk *walk, const lp_step *step) {
  if (walk->output) return true;
  return step->port == session->logits;
}

static void keep_logits(lp_walk *walk, const lp_executor *executor, const lp_span *span) {
  size_t rows = (size_t)executor->sym[LP_SYM_R];
  size_t row = (size_t)executor->bundle->manifest.vocab * sizeof(float);
  lp_buf_clear(walk->logits);
  lp_buf_append(walk->logits, (const char *)span->data + (rows - 1) * row, row);
}

lp_status lp_walk_output(lp_session *session, lp_walk *walk, lp_executor *executor, const lp_step *step,
                         lp_diag *diag) {
  if (!lp_walk_wants(session, walk, step)) return LP_OK;
  if (walk->output) {
    lp_span span;
    LP_TRY(lp_executor_buffer(executor, step->buffer, &step->tensor, &span, diag));
    lp_span *out = &walk->output[step->port];
    free(out->data);
    *out = (lp_span){.data = lp_alloc(span.size + 1), .size = span.size};
    if (span.size > 0) memcpy(out->data, span.data, span.size);
    return LP_OK;
  }
  LP_TRY(lp_executor_sample(executor, step, &session->options.sampling, walk->sample, &session->scratch, diag));
  walk->sampled_on = executor->side;
  if (!walk->logits) return LP_OK;
  lp_span span;
  LP_TRY(lp_executor_buffer(executor, step->buffer, &step->tensor, &span, diag));
  keep_logits(walk, executor, &span);
  return LP_OK;
}

void lp_walk_trace(const lp_session *session, const lp_walk *walk, const lp_step *step, double begin_ms,
                   double end_ms) {
  if (!session->options.trace || step->kind != LP_STEP_RUN) return;
  lp_trace_slice slice = {.name = walk->sym[LP_SYM_P] == 0 ? "prefill" : "pass",
                          .begin_ms = begin_ms,
                          .end_ms = end_ms,
                          .position = walk->sym[LP_SYM_P],
                          .tokens = walk->sym[LP_SYM_S],
                          .bytes = -1,
                          .place = step->side};
  lp_trace_put(session->options.trace, step->side == LP_SIDE_DEVICE ? LP_LANE_DEVICE : LP_LANE_CLOUD, &slice);
}
