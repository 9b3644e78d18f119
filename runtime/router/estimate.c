/* Estimates delays from queue, link and experience. */
#include <math.h>

#include "runtime/router/backends.h"

lp_estimator lp_estimator_make(double rate, double half_life_s) {
  lp_estimator estimator = {.rate = rate > 0 ? rate : 0.2, .half_life_s = half_life_s > 0 ? half_life_s : 300};
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    estimator.of[route].ratio = 1;
  return estimator;
}

/* Observations lose weight with age: the ratio returns to 1, so that the backend is tried again. */
static double ratio_at(const lp_estimator *estimator, lp_route route, double at_s) {
  const lp_load *load = &estimator->of[route];
  double age = fmax(0, at_s - load->seen_s);
  return 1 + (load->ratio - 1) * exp2(-age / estimator->half_life_s);
}

static double service_s(const lp_route_backend *backend, const lp_demand *demand) {
  return lp_generation_s(&backend->model, demand->prompt_tokens, demand->tokens, LP_COUNT_ONCE);
}

/* Each request ahead takes their mean time, and `slots` of them run at a time. */
static double queue_s(const lp_route_backend *backend, const lp_load *load) {
  if (backend->slots == 0 || load->here < backend->slots) return 0;
  double ahead = (double)(load->here - backend->slots + 1), mean = load->work_s / (double)load->here;
  return ahead * mean / (double)backend->slots;
}

static double up_bps(const lp_backends *backends, const lp_demand *demand) {
  if (demand->up_bps > 0) return demand->up_bps;
  return demand->user > 0 ? backends->user_up_bps[demand->user - 1] : backends->up_bps;
}

static double down_bps(const lp_backends *backends, const lp_demand *demand) {
  if (demand->down_bps > 0) return demand->down_bps;
  return demand->user > 0 ? backends->user_down_bps[demand->user - 1] : backends->down_bps;
}

void lp_delay_estimate(const lp_backends *backends, const lp_estimator *estimator, const lp_demand *demand, double at_s,
                       double wait_s[LP_ROUTE_COUNT], double delay_s[LP_ROUTE_COUNT]) {
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    const lp_route_backend *backend = &backends->of[route];
    wait_s[route] = delay_s[route] = 0;
    if (!backend->there) continue;
    double ratio = ratio_at(estimator, route, at_s);
    lp_site site = backend->backhaul_s > 0 ? LP_SITE_CLOUD : LP_SITE_EDGE;
    wait_s[route] = ratio * queue_s(backend, &estimator->of[route]);
    double rows = demand->prompt_tokens + fmax(demand->tokens - 1, 0), bytes = backends->token_bytes;
    double up = up_bps(backends, demand), down = down_bps(backends, demand);
    delay_s[route] = wait_s[route] + ratio * service_s(backend, demand) +
                     lp_transmission_s(demand->prompt_tokens, bytes, up, site, backend->backhaul_s) +
                     lp_transmission_s(demand->tokens, bytes, down, LP_SITE_EDGE, 0) +
                     lp_transmission_s(rows, backend->row_bytes, up, LP_SITE_EDGE, 0);
  }
}

void lp_estimator_begin(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand, lp_route route) {
  estimator->of[route].here++;
  estimator->of[route].work_s += service_s(&backends->of[route], demand);
}

void lp_estimator_end(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand, lp_route route,
                      double at_s, double observed_s) {
  lp_load *load = &estimator->of[route];
  double predicted = service_s(&backends->of[route], demand);
  load->here--;
  load->work_s = load->here > 0 ? fmax(0, load->work_s - predicted) : 0;
  if (observed_s < 0 || predicted <= 0) return;
  double before = ratio_at(estimator, route, at_s);
  load->ratio = before + estimator->rate * (observed_s / predicted - before);
  load->seen_s = at_s;
}

void lp_estimator_answer(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand,
                         const lp_demand *made, lp_route route, double at_s, double observed_s) {
  const lp_route_backend *backend = &backends->of[route];
  double expected = service_s(backend, demand), seen = service_s(backend, made);
  bool counts = observed_s >= 0 && seen > 0;
  lp_estimator_end(estimator, backends, demand, route, at_s, counts ? observed_s * expected / seen : -1);
}

void lp_size_keyword(double tokens, lp_buf *keywords) {
  lp_buf_printf(keywords, ", about %.0f tokens", exp2(round(log2(fmax(tokens, 1)))));
}

const char *lp_queue_keyword(double wait_s, double edge_s, double cloud_s) {
  double longer = cloud_s - (edge_s - wait_s);
  if (wait_s <= 0 || longer <= 0) return NULL;
  double part = wait_s / longer;
  return part < 0.25 ? "queue short" : part < 0.5 ? "queue middle" : part < 1 ? "queue long" : "queue overlong";
}

void lp_backends_weigh(const lp_backends *backends, const lp_demand *demand, int64_t busy, lp_router_request *request,
                       lp_buf *keywords, lp_buf *why) {
  double wait_s[LP_ROUTE_COUNT], *delay_s = request->delay_s;
  lp_estimator estimator = lp_estimator_make(0, 0);
  for (int64_t i = 0; i < busy; i++)
    lp_estimator_begin(&estimator, backends, demand, LP_ROUTE_EDGE);
  lp_delay_estimate(backends, &estimator, demand, 0, wait_s, delay_s);
  const char *queue = lp_queue_keyword(wait_s[LP_ROUTE_EDGE], delay_s[LP_ROUTE_EDGE], delay_s[LP_ROUTE_CLOUD]);
  if (queue) lp_buf_printf(keywords, ", %s", queue);
  request->offered &= lp_backends_admit(backends, demand, why);
}
