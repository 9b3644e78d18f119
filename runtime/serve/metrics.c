#include "runtime/serve/metrics.h"

#include <time.h>

#include "base/clock.h"

void lp_metrics_begin(lp_metrics *metrics) {
  (void)pthread_mutex_lock(&metrics->lock);
  metrics->in_flight++;
  (void)pthread_mutex_unlock(&metrics->lock);
}

/* With the lock held. */
static void note_end(lp_metrics *metrics, const lp_recent *request) {
  struct timespec now;
  const lp_route route = request->route;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  metrics->answers[route][request->good]++;
  for (lp_time time = 0; time < LP_TIME_COUNT; time++)
    lp_histogram_observe(&metrics->time[route][time], request->seconds[time]);
  if (request->good) {
    metrics->tokens[route] += (uint64_t)request->tokens;
    if (request->prompt_tokens > 0) metrics->prompt_tokens[route] += (uint64_t)request->prompt_tokens;
    metrics->cached_tokens[route] += (uint64_t)request->cached_tokens;
  }
  lp_recent *entry = &metrics->recent[++metrics->ended % LP_MOST_RECENT];
  *entry = *request;
  entry->number = metrics->ended;
  lp_tracking_note(&metrics->tracking, lp_now_ms() / 1000, request->seconds[LP_TIME_TTFT],
                   request->seconds[LP_TIME_TPOT]);
  entry->at_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void lp_metrics_end(lp_metrics *metrics, const lp_recent *request) {
  (void)pthread_mutex_lock(&metrics->lock);
  metrics->in_flight--;
  metrics->fallbacks += request->fell_back;
  if (request->refused)
    metrics->refused[request->route]++;
  else
    note_end(metrics, request);
  (void)pthread_mutex_unlock(&metrics->lock);
}

void lp_metrics_read(lp_metrics *metrics, lp_metrics_now *out) {
  *out = (lp_metrics_now){.count = 0};
  (void)pthread_mutex_lock(&metrics->lock);
  out->in_flight = metrics->in_flight;
  out->fallbacks = metrics->fallbacks;
  memcpy(out->answers, metrics->answers, sizeof out->answers);
  memcpy(out->tokens, metrics->tokens, sizeof out->tokens);
  for (; out->count < LP_MOST_RECENT && out->count < metrics->ended; out->count++)
    out->recent[out->count] = metrics->recent[(metrics->ended - out->count) % LP_MOST_RECENT];
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

bool lp_metrics_judge(lp_metrics *metrics, const lp_serve_prediction *prediction, double busy_s) {
  lp_tracking *copy = lp_alloc(sizeof *copy); /* requests do not wait for what takes a millisecond */
  (void)pthread_mutex_lock(&metrics->lock);
  *copy = metrics->tracking;
  (void)pthread_mutex_unlock(&metrics->lock);
  const bool changed = lp_tracking_judge(copy, prediction, lp_now_ms() / 1000, busy_s);
  (void)pthread_mutex_lock(&metrics->lock);
  metrics->tracking.judged = copy->judged;
  (void)pthread_mutex_unlock(&metrics->lock);
  free(copy);
  return changed;
}

bool lp_metrics_say(lp_metrics *metrics, const lp_serve_prediction *prediction, lp_buf *out) {
  (void)pthread_mutex_lock(&metrics->lock);
  lp_tracking_say(&metrics->tracking, prediction, out);
  const bool holds = lp_tracking_holds(&metrics->tracking);
  (void)pthread_mutex_unlock(&metrics->lock);
  return holds;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void counts(lp_buf *out, const char *name, const char *help, const uint64_t of[LP_ROUTE_COUNT]) {
  lp_exposition_head(out, name, "counter", help);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    lp_exposition_labelled(out, name, of[route], "route=\"%s\"", lp_route_name(route));
}

static void print_times(const lp_metrics *metrics, lp_buf *out) {
  static const char *const names[LP_TIME_COUNT][2] = {
      [LP_TIME_TTFT] = {"ttft_seconds", "Time from a request to the first piece of its answer."},
      [LP_TIME_TPOT] = {"tpot_seconds", "Time per token after the first piece."},
      [LP_TIME_QUEUE] = {"queue_seconds", "Time that a request waited at its place before work on it began."},
      [LP_TIME_DECISION] = {"decision_seconds", "Time of the router's decision."},
      [LP_TIME_TOTAL] = {"request_seconds", "Time from a request to the end of its answer."}};
  char labels[32];
  for (lp_time time = 0; time < LP_TIME_COUNT; time++) {
    lp_exposition_head(out, names[time][0], "histogram", names[time][1]);
    for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
      (void)snprintf(labels, sizeof labels, "route=\"%s\"", lp_route_name(route));
      lp_exposition_histogram(out, names[time][0], labels, &metrics->time[route][time]);
    }
  }
}

void lp_metrics_print(lp_metrics *metrics, const lp_serve_prediction *prediction, unsigned offered, unsigned up,
                      lp_buf *out) {
  (void)pthread_mutex_lock(&metrics->lock);
  lp_exposition_head(out, "requests_total", "counter",
                     "Finished requests, by the place that answered last and the result.");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    const char *name = lp_route_name(route);
    for (int good = 0; good < 2; good++)
      lp_exposition_labelled(out, "requests_total", metrics->answers[route][good], "route=\"%s\",outcome=\"%s\"", name,
                             good ? "answered" : "failed");
    lp_exposition_labelled(out, "requests_total", metrics->refused[route], "route=\"%s\",outcome=\"refused\"", name);
  }
  counts(out, "generated_tokens_total", "Tokens of answers (pieces of text, if the place does not count tokens).",
         metrics->tokens);
  counts(out, "prompt_tokens_total", "Tokens of prompts, if they are known.", metrics->prompt_tokens);
  counts(out, "cached_tokens_total", "Those of them that needed no computing, since an earlier prompt began alike.",
         metrics->cached_tokens);
  print_times(metrics, out);
  lp_exposition_head(out, "place_up", "gauge", "Whether a place takes requests, as far as is known.");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route))
      lp_exposition_labelled(out, "place_up", lp_route_offered(up, route), "route=\"%s\"", lp_route_name(route));
  lp_exposition_single(out, "fallbacks_total", "counter", "Requests that another place took over.", metrics->fallbacks);
  lp_exposition_single(out, "not_kept_total", "counter", "Decisions and outcomes that the pool could not keep.",
                       metrics->not_kept);
  lp_exposition_single(out, "requests_in_flight", "gauge", "Requests that are being answered or wait.",
                       (uint64_t)metrics->in_flight);
  if (prediction) lp_tracking_print(&metrics->tracking, prediction, out);
  (void)pthread_mutex_unlock(&metrics->lock);
}
