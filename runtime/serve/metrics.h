/* Counts and times of requests, in the format of Prometheus. Any number of threads may use them. */
#pragma once

#include <pthread.h>

#include "runtime/exposition/exposition.h"
#include "runtime/router/router.h"
#include "runtime/serve/place/site.h"
#include "runtime/serve/tracking.h"

/* The times of a request. NaN: there is none. */
typedef enum { LP_TIME_TTFT, LP_TIME_TPOT, LP_TIME_QUEUE, LP_TIME_DECISION, LP_TIME_TOTAL, LP_TIME_COUNT } lp_time;

/* A finished request. */
typedef struct {
  uint64_t number; /* counts from 1 */
  double at_s;     /* Unix time of its end */
  lp_route route;  /* that answered, or failed last */
  bool good, fell_back;
  bool refused; /* the request was wrong, which is no failure of the route */
  lp_decision decided;
  int64_t decision;               /* the number in the pool; 0: none is kept */
  unsigned offered;               /* the routes from which the router chose */
  double delay_s[LP_ROUTE_COUNT]; /* estimates of the offered routes; 0: unknown */
  int64_t prompt_tokens, cached_tokens, tokens;
  double seconds[LP_TIME_COUNT];
} lp_recent;
enum { LP_MOST_RECENT = 64 };

typedef struct {
  int64_t in_flight;
  uint64_t answers[LP_ROUTE_COUNT][2], tokens[LP_ROUTE_COUNT], fallbacks;
  size_t count;
  lp_recent recent[LP_MOST_RECENT]; /* [count], the last one first */
} lp_metrics_now;

typedef struct {
  pthread_mutex_t lock; /* guards all members; the owner initialises and destroys it */
  int64_t in_flight;
  uint64_t answers[LP_ROUTE_COUNT][2], tokens[LP_ROUTE_COUNT], prompt_tokens[LP_ROUTE_COUNT];
  uint64_t cached_tokens[LP_ROUTE_COUNT], refused[LP_ROUTE_COUNT], fallbacks;
  uint64_t not_kept; /* decisions and outcomes that the pool did not take */
  bool degraded;     /* the pool did not take the last one */
  lp_histogram time[LP_ROUTE_COUNT][LP_TIME_COUNT];
  lp_tracking tracking;
  uint64_t ended;                   /* requests */
  lp_recent recent[LP_MOST_RECENT]; /* a ring: request `number` is at number % LP_MOST_RECENT */
} lp_metrics;

void lp_metrics_begin(lp_metrics *metrics);
/* Sets the number and the time itself. A request that was refused is only counted. */
void lp_metrics_end(lp_metrics *metrics, const lp_recent *request);
void lp_metrics_read(lp_metrics *metrics, lp_metrics_now *out);
void lp_metrics_keep(lp_metrics *metrics, bool kept); /* a decision or an outcome was written to the pool, or not */
bool lp_metrics_degraded(lp_metrics *metrics);
/* Judges the load as lp_tracking_judge does; one thread does so. */
bool lp_metrics_judge(lp_metrics *metrics, const lp_serve_prediction *prediction, double busy_s);
/* Appends lp_tracking_say, and tells lp_tracking_holds, of the load as it was last judged. */
bool lp_metrics_say(lp_metrics *metrics, const lp_serve_prediction *prediction, lp_buf *out);
/* `offered`, `up`: a bit for each route. `prediction` NULL: there is none. */
void lp_metrics_print(lp_metrics *metrics, const lp_serve_prediction *prediction, unsigned offered, unsigned up,
                      lp_buf *out);
