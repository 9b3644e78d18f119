/* Delays and rewards: Eq. (1) to (4). */
#include "runtime/service/service.h"

#include <math.h>

const char *const lp_site_names[LP_SITE_COUNT] = {"edge", "cloud", "split"};
const char *const lp_counting_names[LP_COUNTINGS] = {"once", "paper"};

double lp_generation_s(const lp_service_model *model, double prompt_tokens, double tokens, lp_counting counting) {
  double more = counting == LP_COUNT_PAPER ? tokens : fmax(tokens - 1, 0);
  return model->ttft_s + prompt_tokens * model->prompt_s + more * model->tpot_s;
}

double lp_transmission_s(double tokens, double token_bytes, double bps, lp_site site, double backhaul_s) {
  return 8 * tokens * token_bytes / bps + (site == LP_SITE_CLOUD ? backhaul_s : 0);
}

double lp_service_reward(double target_s, double total_s, double penalty, bool missed_quality) {
  return target_s - total_s - (missed_quality ? penalty : 0);
}

double lp_service_slope_s(const lp_service *service, double tokens, double backhaul_s, lp_counting counting) {
  return lp_generation_s(&service->at[LP_SITE_CLOUD], 0, tokens, counting) + backhaul_s -
         lp_generation_s(&service->at[LP_SITE_EDGE], 0, tokens, counting);
}

double lp_service_break_even(const lp_service *service, double penalty, double backhaul_s, lp_counting counting) {
  const lp_service_model *edge = &service->at[LP_SITE_EDGE], *cloud = &service->at[LP_SITE_CLOUD];
  double per_token = cloud->tpot_s - edge->tpot_s;
  if (per_token <= 0) return INFINITY;
  double tokens = (penalty - (cloud->ttft_s - edge->ttft_s) - backhaul_s) / per_token;
  return counting == LP_COUNT_PAPER ? tokens : tokens + 1;
}
