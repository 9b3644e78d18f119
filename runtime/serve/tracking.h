/* Whether a server has the load for which it was planned: measured figures beside predicted ones. A measured figure is
 * beyond its prediction above 1.25 times it, once at least 200 requests of the window have one, or 1,000 for a p99; it
 * is no longer from 1.1 times down, or with fewer than half as many requests. Nothing here locks. Times in s. */
#pragma once

#include "base/base.h"

/* Requests per s; the share of the time in passes, which is only told; p50, p95 and p99 of TTFT and TPOT in s. */
enum {
  LP_PREDICTED_RATE,
  LP_PREDICTED_BUSY,
  LP_PREDICTED_TTFT,
  LP_PREDICTED_QUANTILES = 3,
  LP_PREDICTED_TPOT = LP_PREDICTED_TTFT + LP_PREDICTED_QUANTILES,
  LP_PREDICTED_FIGURES = LP_PREDICTED_TPOT + LP_PREDICTED_QUANTILES
};

typedef struct {
  double window_s;                     /* 0: nothing is predicted */
  double figure[LP_PREDICTED_FIGURES]; /* 0: not predicted */
} lp_serve_prediction;

enum { LP_TRACKING_MOST_REQUESTS = 4096 };
typedef struct {
  double at_s, busy_s, time_s[2]; /* at its end; time: TTFT and TPOT, NaN: it has none */
} lp_tracked_request;

/* Figures as they were last judged; only lp_tracking_judge changes them. */
typedef struct {
  double told_busy_s, busy_s;
  int64_t requests; /* of the last `span_s`, which are the window, or less for more than the most requests */
  double span_s;
  double measured[LP_PREDICTED_FIGURES]; /* NaN: unknown */
  bool beyond[LP_PREDICTED_FIGURES];
} lp_tracking_judged;

/* Zero at the beginning, but for `since_s`. */
typedef struct {
  lp_tracked_request
      request[LP_TRACKING_MOST_REQUESTS]; /* the last ones: `number` is at number % LP_TRACKING_MOST_REQUESTS */
  uint64_t count;
  double since_s;
  lp_tracking_judged judged;
} lp_tracking;

/* A request has ended. */
void lp_tracking_note(lp_tracking *tracking, double now_s, double ttft_s, double tpot_s);
/* Measures the figures of the window. `busy_s`: in passes since they began to be counted, at 0 after a new beginning.
 * True: whether the load fits has changed. */
bool lp_tracking_judge(lp_tracking *tracking, const lp_serve_prediction *prediction, double now_s, double busy_s);
bool lp_tracking_holds(const lp_tracking *tracking);
/* Appends a sentence that names the figures beyond their predictions. */
void lp_tracking_say(const lp_tracking *tracking, const lp_serve_prediction *prediction, lp_buf *out);
/* Appends both figures for Prometheus. */
void lp_tracking_print(const lp_tracking *tracking, const lp_serve_prediction *prediction, lp_buf *out);
