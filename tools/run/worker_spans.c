/* Sends a span for each session of a request that has a trace. */
#include "tools/run/worker_spans.h"

#include <math.h>
#include <stdlib.h>

#ifdef LP_HAS_ROUTER
#include "runtime/spans/spans.h"

lp_status worker_spans_open(const char *url, lp_spans **out, lp_diag *diag) {
  const lp_spans_options options = {.url = url, .key = getenv("LLMPART_TRACES_KEY"), .service = "llmpart worker"};
  *out = NULL;
  if (!url) return LP_OK;
  if (!lp_has_prefix(url, "http://") && !lp_has_prefix(url, "https://"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--traces"), "'%s' begins neither with http:// nor https://", url);
  return lp_spans_open(&options, out, diag);
}

void worker_spans_close(lp_spans *spans) {
  lp_spans_close(spans);
}

void worker_spans_add(lp_spans *spans, const lp_worker_session *session) {
  char trace[LP_SPAN_TRACE + 1], caller[LP_SPAN_ID + 1], id[LP_SPAN_ID + 1];
  lp_traceparent_read(session->traceparent, trace, caller);
  if (caller[0] == 0) return; /* no server sent it */
  lp_span_draw_id(id);
  const lp_span_attribute attributes[] = {
      {.key = "llmpart.busy_us", .number = (int64_t)llround(session->busy_ms * 1e3)},
      {.key = "llmpart.replies", .number = session->replies},
      {.key = "llmpart.tokens", .number = session->tokens}};
  lp_spans_add(spans, &(lp_span_record){.trace = trace,
                                        .id = id,
                                        .parent = caller,
                                        .name = "session",
                                        .kind = LP_SPAN_SERVER,
                                        .begin_ms = session->begin_ms,
                                        .end_ms = session->end_ms,
                                        .attribute = attributes,
                                        .count = LP_COUNT(attributes)});
}
#else
lp_status worker_spans_open(const char *url, lp_spans **out, lp_diag *diag) {
  *out = NULL;
  return url ? lp_error(diag, LP_LOC_NONE, "--traces: this program was built without libcurl") : LP_OK;
}

void worker_spans_close(lp_spans *spans) {
  (void)spans;
}

void worker_spans_add(lp_spans *spans, const lp_worker_session *session) {
  (void)spans, (void)session;
}
#endif
