/* Serves /metrics and /readyz of a worker, and sends the spans of its sessions. */
#include "tools/run/worker_metrics.h"

#include <math.h>

#ifdef LP_HAS_HTTP
#include "runtime/http/texts.h"

struct worker_metrics {
  lp_worker_figures *figures;
  lp_http_texts_options options;
  lp_http_texts *texts;
};

static unsigned write_metrics(void *user, lp_buf *out) {
  lp_worker_figures_print(user, out);
  return 200;
}

static unsigned write_ready(void *user, lp_buf *out) {
  const char *why = lp_worker_figures_unready(user);
  lp_buf_printf(out, why ? "{\"status\":\"down\",\"reason\":\"%s\"}" : "{\"status\":\"ready\"}", why);
  return why ? 503 : 200;
}

static const lp_http_text texts[] = {{"/metrics", "text/plain; version=0.0.4", write_metrics, false},
                                     {"/readyz", "application/json", write_ready, true}};

lp_status worker_metrics_open(const char *address, worker_metrics **out, lp_worker_figures **figures, lp_diag *diag) {
  *out = NULL;
  *figures = NULL;
  if (!address) return LP_OK;
  worker_metrics *self = lp_alloc(sizeof *self);
  LP_OWNED(lp_free_at) char *host = NULL;
  int port = 0;
  *self = (worker_metrics){.figures = lp_worker_figures_create()};
  self->options = (lp_http_texts_options){.listen = address,
                                          .key = getenv("LLMPART_METRICS_KEY"),
                                          .text = texts,
                                          .count = LP_COUNT(texts),
                                          .user = self->figures};
  lp_status status = lp_http_texts_open(&self->options, &self->texts, &host, &port, diag);
  if (status == LP_OK) {
    fprintf(stderr, "metrics at http://%s:%d/metrics\n", host, port);
    *out = self;
    *figures = self->figures;
  } else {
    worker_metrics_close(self);
  }
  return status;
}

void worker_metrics_close(worker_metrics *self) {
  if (!self) return;
  lp_http_texts_close(self->texts);
  lp_worker_figures_free(self->figures);
  free(self);
}
#else
lp_status worker_metrics_open(const char *address, worker_metrics **out, lp_worker_figures **figures, lp_diag *diag) {
  *out = NULL;
  *figures = NULL;
  return address ? lp_error(diag, LP_LOC_NONE, "--metrics: this program was built without libmicrohttpd") : LP_OK;
}

void worker_metrics_close(worker_metrics *self) {
  (void)self;
}
#endif

/* ---- spans ------------------------------------------------------------------------------------------------------- */

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
