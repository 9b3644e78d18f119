#include "tests/runtime/simulate/scenarios.h"

lp_sim_scenario *scenario_of(const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_sim_scenario *scenario = NULL;
  lp_status status = lp_sim_scenario_parse("s.yaml", text, strlen(text), &lp_sim_plain_policies, &scenario, diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "?");
  lp_diag_free(diag);
  return scenario;
}

void make_unit_service(lp_sim_scenario *scenario) {
  for (int site = 0; site < LP_SITE_COUNT; site++) {
    scenario->service->at[site].ttft_s = 0;
    scenario->service->at[site].tpot_s = 1e-3;
  }
  scenario->counting = LP_COUNT_PAPER;
}
