/* Serves /metrics and /readyz of a worker. */
#include "tools/run/worker_metrics.h"

#include <stdlib.h>

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
  char *host = NULL;
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
  free(host);
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
