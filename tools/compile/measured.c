/* The run that --measured names: it must be of the plan that the report is of, and over the same link. */
#include "passes/plan/plan.h"
#include "tools/compile/compile.h"

#include <math.h>

lp_status lp_compile_read_measured(lp_compile *compile, lp_diag *diag) {
  if (!compile->measured) return LP_OK;
  LP_TRY(lp_json_load(compile->measured, 0, &compile->run, diag));
  lp_json root = lp_json_root(compile->measured, compile->run), schema = lp_json_member(&root, "schema");
  if (!lp_json_equals(&schema, "llmpart.run/1"))
    return lp_json_error(&root, diag, "this is no run: wanted schema llmpart.run/1");
  LP_TRY(lp_json_number(LP_MEMBER(&root, "ttft_ms"), 1e-9, 1e12, &compile->request.measured_ttft_ms, diag));
  return lp_json_number(LP_MEMBER(&root, "tpot_ms"), 1e-9, 1e12, &compile->request.measured_tpot_ms, diag);
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static lp_status check_name(const lp_json *planned, const char *role, const char *name, lp_diag *diag) {
  lp_json at = lp_json_member(planned, role);
  const char *found = lp_json_text_or(&at, "none");
  if (lp_streq(found, name ? name : "none")) return LP_OK;
  return lp_json_error(&at, diag, "the run is of another plan: its %s is '%s', that of this plan is '%s'", role, found,
                       name ? name : "none");
}

static lp_status check_plan(const lp_compile *compile, const lp_json *root, const lp_report *report, lp_diag *diag) {
  const lp_compile_request *request = &compile->request;
  lp_json planned = lp_json_member(root, "planned"), placement = lp_json_member(&planned, "placement"),
          plan = lp_json_member(root, "plan"), number = lp_json_member(&plan, "plan");
  char own[17];
  int64_t taken = 0;
  if (!lp_json_is_given(&placement))
    return lp_json_error(root, diag, "the run does not say which plan it is of: its bundle had no report");
  LP_TRY(check_name(&planned, "device", request->device->name, diag));
  LP_TRY(check_name(&planned, "cloud", request->cloud ? request->cloud->name : NULL, diag));
  lp_report_placement(report, own);
  if (!lp_json_equals(&placement, own))
    return lp_json_error(&placement, diag,
                         "the run is of another plan: its operators have other sides, or their data other types");
  LP_TRY(lp_json_i64(&number, 0, INT32_MAX, &taken, diag));
  if (taken == 0) return LP_OK;
  return lp_json_error(&number, diag, "the run took plan %" PRId64 " of its bundle, the report is of plan 0: --plan=0",
                       taken);
}

/* ---- the workload ------------------------------------------------------------------------------------------------ */

static lp_status check_workload(const lp_compile *compile, const lp_json *root, lp_diag *diag) {
  const lp_compile_request *request = &compile->request;
  lp_json prompt = lp_json_member(root, "prompt_tokens"), batch = lp_json_member(root, "batch");
  int64_t isl = 0, rows = 0, osl = (int64_t)lp_json_count(LP_MEMBER(root, "tokens"));
  LP_TRY(lp_json_i64(&prompt, 0, INT64_MAX, &isl, diag));
  LP_TRY(lp_json_i64(&batch, 0, INT64_MAX, &rows, diag));
  if (isl != request->isl)
    return lp_json_error(&prompt, diag,
                         "the run's prompt has %" PRId64 " tokens, the plan is for %" PRId64 ": --isl=%" PRId64, isl,
                         request->isl, isl);
  if (rows != request->batch)
    return lp_json_error(&batch, diag,
                         "the run's batch has %" PRId64 " sequences, the plan is for %" PRId64 ": --batch=%" PRId64,
                         rows, request->batch, rows);
  if (osl != request->osl)
    lp_warning(diag, LP_LOC_FILE(compile->measured),
               "the run generated %" PRId64 " tokens, the plan is for %" PRId64 ": --osl=%" PRId64, osl, request->osl,
               osl);
  return LP_OK;
}

/* ---- the link ---------------------------------------------------------------------------------------------------- */

/* How much two figures of one link may differ: measurements of a round trip vary by some tenths, and of a short one by
 * the wake-ups of two processes. Half of that refuses runs over the same link; twice lets 5G pass for Wi-Fi. */
static const double most_share = 0.25, most_ms = 0.5;

static lp_status check_figure(const lp_json *link, const char *key, double wanted, double slack, double scale,
                              const char *unit, lp_diag *diag) {
  lp_json at = lp_json_member(link, key);
  double found = 0;
  if (!lp_json_is_given(&at)) return LP_OK;
  LP_TRY(lp_json_number(&at, 0, INFINITY, &found, diag));
  if (fabs(found - wanted) <= fmax(slack, most_share * wanted)) return LP_OK;
  return lp_json_error(&at, diag, "the run was over another link: its '%s' is %.3g %s, the plan's %.3g %s", key,
                       found / scale, unit, wanted / scale, unit);
}

static lp_status check_link(const lp_compile *compile, const lp_json *root, lp_diag *diag) {
  const lp_link *wanted = compile->request.link;
  lp_json link = lp_json_member(root, "link"), kind = lp_json_member(&link, "kind"),
          measured = lp_json_member(&link, "measured"), rtt = lp_json_member(&link, "rtt_ms");
  const char *found = lp_json_text_or(&kind, "unknown");
  if (lp_streq(found, "none"))
    return lp_json_error(&kind, diag, "the run was over no link, the plan is for '%s'", wanted->name);
  if (!lp_json_is_given(&rtt)) {
    if (lp_streq(found, "loopback") && wanted->figure[LP_LINK_RTT] > most_ms)
      return lp_json_error(&kind, diag, "the run was over another link: 'loopback', the plan is for '%s'",
                           wanted->name);
    lp_warning(diag, LP_LOC_FILE(compile->measured), "the run's link is not known: run --stats measures it");
    return LP_OK;
  }
  LP_TRY(check_figure(&link, "rtt_ms", wanted->figure[LP_LINK_RTT], most_ms, 1, "ms", diag));
  if (lp_json_is_true(&measured)) return LP_OK; /* bandwidth is measured roughly */
  LP_TRY(check_figure(&link, "up_bps", wanted->figure[LP_LINK_UP], 0, 1e6, "Mbit/s", diag));
  return check_figure(&link, "down_bps", wanted->figure[LP_LINK_DOWN], 0, 1e6, "Mbit/s", diag);
}

lp_status lp_compile_check_measured(const lp_compile *compile, const lp_report *report, lp_diag *diag) {
  if (!compile->run) return LP_OK;
  const lp_json root = lp_json_root(compile->measured, compile->run);
  LP_TRY(check_plan(compile, &root, report, diag));
  LP_TRY(check_workload(compile, &root, diag));
  return lp_report_crosses(report) ? check_link(compile, &root, diag) : LP_OK;
}
