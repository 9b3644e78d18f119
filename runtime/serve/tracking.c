/* Measured figures of a server beside predicted ones: see tracking.h. */
#include "runtime/serve/tracking.h"

#include <math.h>

#include "base/units.h"
#include "runtime/exposition/exposition.h"

static const double beyond_from = 1.25, fits_again_at = 1.1;

static const struct {
  const char *says, *metric, *labels, *help;
  double quantile; /* 0: none */
  int64_t least;   /* requests; 0: it is not judged */
} figures[LP_PREDICTED_FIGURES] = {
    [LP_PREDICTED_RATE] = {"requests/s", "requests_per_second", "", "requests per second", 0, 200},
    [LP_PREDICTED_BUSY] = {"busy", "busy_ratio", "", "share of the time that the edge is in passes", 0, 0},
#define QUANTILES(at, name, metric, help)                                                                              \
  [(at)] = {name " p50", metric, "quantile=\"0.5\"", help, 0.5, 200},                                                  \
  [(at) + 1] = {name " p95", metric, "quantile=\"0.95\"", help, 0.95, 200},                                            \
  [(at) + 2] = {name " p99", metric, "quantile=\"0.99\"", help, 0.99, 1000}
    QUANTILES(LP_PREDICTED_TTFT, "TTFT", "ttft_seconds", "time from a request to the first piece of its answer"),
    QUANTILES(LP_PREDICTED_TPOT, "TPOT", "tpot_seconds", "time per token after the first piece"),
#undef QUANTILES
};

void lp_tracking_note(lp_tracking *tracking, double now_s, double ttft_s, double tpot_s) {
  tracking->request[tracking->count++ % LP_TRACKING_MOST_REQUESTS] =
      (lp_tracked_request){now_s, tracking->judged.busy_s, {ttft_s, tpot_s}};
}

/* ---- what the window holds --------------------------------------------------------------------------------------- */

/* The first request of the window; sets its length. */
static uint64_t first_of(lp_tracking *tracking, double window_s, double now_s) {
  uint64_t first = tracking->count > LP_TRACKING_MOST_REQUESTS ? tracking->count - LP_TRACKING_MOST_REQUESTS : 0;
  double from_s = fmax(now_s - window_s, tracking->since_s);
  if (first > 0) from_s = fmax(from_s, tracking->request[first % LP_TRACKING_MOST_REQUESTS].at_s);
  while (first < tracking->count && tracking->request[first % LP_TRACKING_MOST_REQUESTS].at_s <= from_s)
    first++;
  tracking->judged.requests = (int64_t)(tracking->count - first);
  tracking->judged.span_s = now_s - from_s;
  return first;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Percentiles from figure `at` on: a share `quantile` of the requests has at most this time. Returns their number. */
static int64_t measure_times(lp_tracking *tracking, uint64_t first, int at, double *sorted) {
  int64_t count = 0;
  for (uint64_t i = first; i < tracking->count; i++) {
    const double time_s = tracking->request[i % LP_TRACKING_MOST_REQUESTS].time_s[at == LP_PREDICTED_TPOT];
    if (isfinite(time_s)) sorted[count++] = time_s;
  }
  qsort(sorted, (size_t)count, sizeof *sorted, compare);
  for (int i = at; count > 0 && i < at + LP_PREDICTED_QUANTILES; i++)
    tracking->judged.measured[i] = sorted[(int64_t)ceil(figures[i].quantile * (double)count) - 1];
  return count;
}

/* Sets measured[], and of[]: the requests that have each figure. */
static void measure(lp_tracking *tracking, double window_s, double now_s, int64_t of[LP_PREDICTED_FIGURES]) {
  const uint64_t first = first_of(tracking, window_s, now_s);
  LP_OWNED(lp_free_at) double *sorted = lp_alloc((size_t)(tracking->judged.requests + 1) * sizeof *sorted);
  for (int i = 0; i < LP_PREDICTED_FIGURES; i++)
    tracking->judged.measured[i] = NAN;
  tracking->judged.measured[LP_PREDICTED_RATE] =
      tracking->judged.span_s > 0 ? (double)tracking->judged.requests / tracking->judged.span_s : NAN;
  of[LP_PREDICTED_RATE] = of[LP_PREDICTED_BUSY] = tracking->judged.requests;
  for (int at = LP_PREDICTED_TTFT; at < LP_PREDICTED_FIGURES; at += LP_PREDICTED_QUANTILES)
    of[at] = of[at + 1] = of[at + 2] = measure_times(tracking, first, at, sorted);
  const lp_tracked_request *oldest = &tracking->request[first % LP_TRACKING_MOST_REQUESTS];
  if (tracking->judged.requests > 0 && now_s > oldest->at_s)
    tracking->judged.measured[LP_PREDICTED_BUSY] =
        fmin(1, (tracking->judged.busy_s - oldest->busy_s) / (now_s - oldest->at_s));
}

/* ---- judgement --------------------------------------------------------------------------------------------------- */

bool lp_tracking_holds(const lp_tracking *tracking) {
  bool holds = true;
  for (int i = 0; i < LP_PREDICTED_FIGURES; i++)
    holds = holds && !tracking->judged.beyond[i];
  return holds;
}

bool lp_tracking_judge(lp_tracking *tracking, const lp_serve_prediction *prediction, double now_s, double busy_s) {
  const bool before = lp_tracking_holds(tracking);
  int64_t of[LP_PREDICTED_FIGURES];
  tracking->judged.busy_s += busy_s < tracking->judged.told_busy_s ? busy_s : busy_s - tracking->judged.told_busy_s;
  tracking->judged.told_busy_s = busy_s;
  measure(tracking, prediction->window_s, now_s, of);
  for (int i = 0; i < LP_PREDICTED_FIGURES; i++) {
    const double ratio = prediction->figure[i] > 0 ? tracking->judged.measured[i] / prediction->figure[i] : 0;
    const bool was = tracking->judged.beyond[i];
    tracking->judged.beyond[i] = figures[i].least > 0 && ratio > (was ? fits_again_at : beyond_from) &&
                                 of[i] >= (was ? figures[i].least / 2 : figures[i].least);
  }
  return before != lp_tracking_holds(tracking);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_value(double value, int figure, lp_buf *out) {
  char text[32];
  if (figures[figure].quantile > 0)
    lp_buf_puts(out, lp_format_ms(1e3 * value, text));
  else
    lp_buf_printf(out, "%.3g", value);
}

void lp_tracking_say(const lp_tracking *tracking, const lp_serve_prediction *prediction, lp_buf *out) {
  lp_buf_puts(out, lp_tracking_holds(tracking) ? "the load fits the prediction" : "the load is beyond the prediction:");
  for (int i = 0; i < LP_PREDICTED_FIGURES; i++) {
    if (!tracking->judged.beyond[i]) continue;
    lp_buf_printf(out, " %s ", figures[i].says);
    put_value(tracking->judged.measured[i], i, out);
    lp_buf_puts(out, ", predicted ");
    put_value(prediction->figure[i], i, out);
    lp_buf_puts(out, ";");
  }
  lp_buf_printf(out, "%s %" PRId64 " requests in the last %.0f s", lp_tracking_holds(tracking) ? ";" : "",
                tracking->judged.requests, tracking->judged.span_s);
}

/* of[LP_PREDICTED_FIGURES], those that are predicted. */
static void print_figures(const char *what, const char *about, const double *of, const lp_serve_prediction *prediction,
                          lp_buf *out) {
  const char *last = "";
  char name[64], help[128];
  for (int i = 0; i < LP_PREDICTED_FIGURES; i++) {
    if (prediction->figure[i] <= 0 || isnan(of[i])) continue;
    (void)snprintf(name, sizeof name, "%s_%s", what, figures[i].metric);
    (void)snprintf(help, sizeof help, "%s: %s.", about, figures[i].help);
    if (!lp_streq(last, figures[i].metric)) lp_exposition_head(out, name, "gauge", help);
    last = figures[i].metric;
    lp_exposition_number(out, name, figures[i].labels, of[i]);
  }
}

void lp_tracking_print(const lp_tracking *tracking, const lp_serve_prediction *prediction, lp_buf *out) {
  print_figures("predicted", "What the server was planned for", prediction->figure, prediction, out);
  print_figures("measured", "Over the requests of the window", tracking->judged.measured, prediction, out);
  lp_exposition_single(out, "measured_requests", "gauge", "Requests that ended in the window.",
                       (uint64_t)tracking->judged.requests);
  lp_exposition_head(out, "measured_window_seconds", "gauge", "The length of the window.");
  lp_exposition_number(out, "measured_window_seconds", "", tracking->judged.span_s);
  lp_exposition_single(out, "prediction_fits", "gauge", "Whether no measured figure is beyond its prediction.",
                       lp_tracking_holds(tracking));
}
