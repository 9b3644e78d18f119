/* Opens a policy by its name. */

#include "runtime/router/router.h"

enum { CACHED = 1024 };

/* A language model is slow, so its answers are kept. */
static bool is_slow(const char *model) {
  return model && !lp_streq(model, "lookup") && !lp_streq(model, "embedded");
}

static lp_status open_decider(const lp_policy_spec *spec, lp_decider **out, lp_diag *diag) {
  if (lp_streq(spec->model, "lookup")) {
    *out = lp_decider_lookup();
    return LP_OK;
  }
  if (!spec->model || lp_streq(spec->model, "embedded")) return lp_decider_embedded(spec->embedded, out, diag);
  if (!lp_has_prefix(spec->model, "http://") && !lp_has_prefix(spec->model, "https://"))
    return lp_decider_bundle(spec->model, 0, spec->timeout_ms, out, diag);
  lp_endpoint_options options = {spec->model, spec->model_name, spec->key, spec->timeout_ms};
  if (!options.model) return lp_error(diag, (lp_loc){.file = spec->model}, "the model's name at the API is missing");
  return lp_decider_endpoint(&options, out, diag);
}

lp_status lp_policy_open(const lp_policy_spec *spec, lp_policy **out, lp_diag *diag) {
  static const char *const names[] = {"router", "latest", "greedy", "q-table", "dqn",    "rule",
                                      "edge",   "cloud",  "split",  "random",  "oracle", "quickest"};
  lp_router_options options = spec->options;
  double rate = options.rate > 0 ? options.rate : 0.1;
  *out = lp_policy_fixed(spec->policy, options.exploration.seed);
  if (!*out && lp_streq(spec->policy, "q-table")) *out = lp_policy_table(rate, &options.exploration);
  if (!*out && lp_streq(spec->policy, "dqn")) *out = lp_policy_network(&options.exploration);
  if (*out) return LP_OK;
  if (lp_streq(spec->policy, "latest")) {
    options.replay = LP_REPLAY_LATEST;
  } else if (lp_streq(spec->policy, "greedy")) {
    options.exploration.epsilon = 0;
  } else if (!lp_streq(spec->policy, "router")) {
    lp_report_error(diag, spec->loc, "there is no policy '%s'", spec->policy);
    lp_note_near(diag, spec->loc, spec->policy, names, LP_COUNT(names));
    return LP_FAILED;
  }
  lp_decider *decider = NULL;
  lp_status status = open_decider(spec, &decider, diag);
  if (options.cache == 0 && is_slow(spec->model)) options.cache = CACHED;
  if (status == LP_OK) *out = lp_router_create(&options, decider);
  return status;
}
