/* llmpart simulate: users, link, queues and policies of a scenario. */
#include "runtime/simulate/simulate.h"

#include <stdlib.h>
#include <string.h>

#ifdef LP_HAS_ROUTER
#include "runtime/router/simulated.h"
#include "tools/share.h"
#endif
#include "tools/tools.h"

/* "json", "csv" or "html", or the path of a file that ends so; NULL: neither. */
static const char *form_of(const char *text) {
  static const char *const forms[] = {"json", "csv", "html"};
  const char *dot = strrchr(text, '.'), *form = dot ? dot + 1 : text;
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (lp_streq(form, forms[i])) return forms[i];
  return NULL;
}

static lp_status write_result(const lp_sim_result *result, const char *where, lp_diag *diag) {
  lp_buf out = {0};
  const char *form = form_of(where);
  if (lp_streq(form, "json"))
    lp_sim_print_json(result, &out);
  else if (lp_streq(form, "csv"))
    lp_sim_print_csv(result, &out);
  else
    lp_sim_print_html(result, &out);
  lp_status status = lp_tool_write(lp_streq(where, form) ? "-" : where, lp_buf_text(&out), out.size, diag);
  lp_buf_free(&out);
  return status;
}

/* With the router's library also those that learn, and with its model the one that reads. */
static lp_status find_policies(lp_sim_policies *out, lp_diag *diag) {
#ifdef LP_HAS_ROUTER
  char *model = lp_share_path("router-model.llmpart");
  lp_status status = lp_router_sim_policies(lp_path_exists(model) ? model : NULL, out, diag);
  free(model);
  return status;
#else
  (void)diag;
  *out = lp_sim_plain_policies;
  return LP_OK;
#endif
}

static lp_status simulate(const char *path, const lp_texts *outputs, int64_t runs, int64_t seed, lp_diag *diag) {
  lp_sim_scenario *scenario = NULL;
  lp_sim_policies policies;
  LP_TRY(find_policies(&policies, diag));
  LP_TRY(lp_sim_scenario_load(path, &policies, &scenario, diag));
  if (runs > 0) scenario->runs = runs;
  if (seed >= 0) scenario->seed = seed;
  lp_sim_result result;
  lp_status status = lp_sim_run(scenario, &result, diag);
  for (size_t i = 0; i < outputs->count && status == LP_OK; i++)
    status = write_result(&result, outputs->data[i], diag);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
  return status;
}

int lp_tool_simulate(int argc, char **argv) {
  lp_texts outputs = {0};
  int64_t runs = 0, seed = -1;
  const lp_option options[] = {
      {"-o", LP_OPTION_TEXTS, &outputs, "json|csv|html|FILE", "where to, and as what; may be repeated (json)", 0},
      {"--runs", LP_OPTION_I64, &runs, "N", "instead of the scenario's", 1},
      {"--seed", LP_OPTION_I64, &seed, "N", "instead of the scenario's", 0},
  };
  const lp_command command = {
      .usage = "llmpart simulate SCENARIO.yaml [-o json|csv|html|FILE] [--runs=N] [--seed=N]",
      .summary = "Requests of users, the radio link, queues at the edge and in the cloud, and the rules that decide "
                 "between the two:\nmean delay, reward and quality of each policy with 95 % intervals, over what the "
                 "scenario varies. The same seed gives\nthe same numbers.",
      .options = options,
      .count = LP_COUNT(options),
      .min_args = 1,
      .max_args = 1};
  lp_diag *diag = lp_tool_diag();
  lp_texts args = {0};
  bool done = false;
  lp_status status = lp_options_read(&command, argc, argv, &args, &done, diag);
  if (status == LP_OK && !done && outputs.count == 0) lp_vec_push(&outputs, "json");
  for (size_t i = 0; i < outputs.count && status == LP_OK; i++)
    if (!form_of(outputs.data[i]))
      status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'-o %s' is neither json, csv, html nor a file that ends so",
                           outputs.data[i]);
  if (status == LP_OK && !done) status = simulate(args.data[0], &outputs, runs, seed, diag);
  lp_vec_free(&args);
  lp_vec_free(&outputs);
  lp_diag_free(diag);
  return (int)status;
}
