#include "runtime/serve/metrics.h"

void lp_metrics_begin(lp_metrics *metrics) {
  (void)pthread_mutex_lock(&metrics->lock);
  metrics->in_flight++;
  (void)pthread_mutex_unlock(&metrics->lock);
}

void lp_metrics_end(lp_metrics *metrics, lp_route route, const lp_usage *usage, bool good, bool fell_back,
                    double seconds) {
  (void)pthread_mutex_lock(&metrics->lock);
  metrics->in_flight--;
  metrics->fallbacks += fell_back;
  metrics->answers[route][good]++;
  metrics->seconds[route] += seconds;
  if (good) {
    metrics->tokens[route] += (uint64_t)usage->tokens;
    if (usage->prompt_tokens > 0) metrics->prompt_tokens[route] += (uint64_t)usage->prompt_tokens;
  }
  (void)pthread_mutex_unlock(&metrics->lock);
}

void lp_metrics_keep(lp_metrics *metrics, bool kept) {
  (void)pthread_mutex_lock(&metrics->lock);
  metrics->degraded = !kept;
  metrics->not_kept += !kept;
  (void)pthread_mutex_unlock(&metrics->lock);
}

bool lp_metrics_degraded(lp_metrics *metrics) {
  (void)pthread_mutex_lock(&metrics->lock);
  bool degraded = metrics->degraded;
  (void)pthread_mutex_unlock(&metrics->lock);
  return degraded;
}

static void head(lp_buf *out, const char *name, const char *type, const char *help) {
  lp_buf_printf(out, "# HELP llmpart_%s %s\n# TYPE llmpart_%s %s\n", name, help, name, type);
}

static void counts(lp_buf *out, const char *name, const char *help, const uint64_t of[LP_ROUTE_COUNT]) {
  head(out, name, "counter", help);
  for (lp_route route = 0; route < LP_ROUTE_SPLIT; route++)
    lp_buf_printf(out, "llmpart_%s{route=\"%s\"} %" PRIu64 "\n", name, lp_route_name(route), of[route]);
}

void lp_metrics_print(lp_metrics *metrics, lp_buf *out) {
  (void)pthread_mutex_lock(&metrics->lock);
  head(out, "requests_total", "counter", "Finished requests, by the place that answered last and the result.");
  for (lp_route route = 0; route < LP_ROUTE_SPLIT; route++)
    for (int good = 0; good < 2; good++)
      lp_buf_printf(out, "llmpart_requests_total{route=\"%s\",outcome=\"%s\"} %" PRIu64 "\n", lp_route_name(route),
                    good ? "answered" : "failed", metrics->answers[route][good]);
  counts(out, "generated_tokens_total", "Tokens of answers (pieces of text, if the place does not count tokens).",
         metrics->tokens);
  counts(out, "prompt_tokens_total", "Tokens of prompts, if they are known.", metrics->prompt_tokens);
  head(out, "request_seconds", "summary", "Time from a request to the end of its answer.");
  for (lp_route route = 0; route < LP_ROUTE_SPLIT; route++)
    lp_buf_printf(out,
                  "llmpart_request_seconds_sum{route=\"%s\"} %.9g\nllmpart_request_seconds_count{route=\"%s\"} %" PRIu64
                  "\n",
                  lp_route_name(route), metrics->seconds[route], lp_route_name(route),
                  metrics->answers[route][0] + metrics->answers[route][1]);
  head(out, "fallbacks_total", "counter", "Requests that another place took over.");
  lp_buf_printf(out, "llmpart_fallbacks_total %" PRIu64 "\n", metrics->fallbacks);
  head(out, "not_kept_total", "counter", "Decisions and outcomes that the pool could not keep.");
  lp_buf_printf(out, "llmpart_not_kept_total %" PRIu64 "\n", metrics->not_kept);
  head(out, "requests_in_flight", "gauge", "Requests that are being answered or wait.");
  lp_buf_printf(out, "llmpart_requests_in_flight %" PRId64 "\n", metrics->in_flight);
  (void)pthread_mutex_unlock(&metrics->lock);
}
