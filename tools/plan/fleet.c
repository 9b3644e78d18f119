/* llmpart fleet: the machines, plans and money for a load and limits at percentiles. */
#include "fleet/fleet.h"
#include "tools/compile/link.h"
#include "tools/gate/gate.h"
#include "tools/plan/model.h"
#include "tools/tools.h"

typedef struct {
  lp_texts outputs;   /* empty: text */
  const char *deploy; /* a folder; NULL: none */
  lp_texts fail_if;
} fleet_flags;

/* NULL: none. */
static const char *format_of(const char *output) {
  static const char *const formats[] = {"text", "json", "csv", "html"};
  for (size_t i = 0; i < LP_COUNT(formats); i++)
    if (lp_tool_wants(output, formats[i])) return formats[i];
  return NULL;
}

static lp_status check_flags(fleet_flags *flags, lp_diag *diag) {
  if (flags->outputs.count == 0) lp_vec_push(&flags->outputs, "text");
  for (size_t i = 0; i < flags->outputs.count; i++)
    if (!format_of(flags->outputs.data[i]))
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("-o"),
                         "'%s' is none of text, json, csv, html and does not end in one", flags->outputs.data[i]);
  for (size_t i = 0; i < flags->fail_if.count; i++)
    LP_TRY(lp_limit_check_syntax("--fail-if", flags->fail_if.data[i], diag));
  return flags->deploy ? lp_fleet_check_folder(flags->deploy, diag) : LP_OK;
}

static lp_status check_limits(const fleet_flags *flags, const lp_fleet_spec *spec, const lp_fleet_plan *plan,
                              lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf json = {0};
  lp_gate_report report;
  lp_fleet_write(spec, plan, "json", &json);
  lp_status status = lp_gate_report_read(spec->path, lp_buf_text(&json), json.size, &report, diag);
  for (size_t i = 0; i < flags->fail_if.count && status == LP_OK; i++)
    status = lp_limit_check("--fail-if", flags->fail_if.data[i], &report, diag);
  lp_gate_report_free(&report);
  return status;
}

static lp_status run(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  fleet_flags *flags = command->user;
  lp_fleet_spec spec;
  lp_fleet_plan plan = {0};
  lp_module *module = NULL;
  LP_TRY(check_flags(flags, diag));
  lp_status status = lp_fleet_spec_read(args->data[0], lp_tool_load_link, &spec, diag);
  if (status == LP_OK) {
    const lp_compile_request request = lp_fleet_request(&spec);
    status = lp_tool_plan_model(spec.model, &spec.decoder, spec.model_loc, &request, &module, diag);
  }
  if (status == LP_OK) status = lp_fleet_find(&spec, module, &plan, diag);
  const lp_status limits = status == LP_OK ? check_limits(flags, &spec, &plan, diag) : LP_OK;
  if (status == LP_OK && limits == LP_OK && flags->deploy) status = lp_fleet_deploy(&spec, &plan, flags->deploy, diag);
  for (size_t i = 0; i < flags->outputs.count && status == LP_OK; i++) {
    lp_buf text = {0};
    lp_fleet_write(&spec, &plan, format_of(flags->outputs.data[i]), &text);
    status = lp_tool_write_as(flags->outputs.data[i], &text, diag);
  }
  lp_fleet_free(&plan);
  lp_module_free(module);
  lp_fleet_spec_free(&spec);
  return status == LP_OK ? limits : status;
}

int lp_tool_fleet(int argc, char **argv) {
  fleet_flags flags = {0};
  const lp_option options[] = {
      {"-o", LP_OPTION_TEXTS, &flags.outputs, "text|json|csv|html|FILE",
       "write the fleet in a form to stdout, or to a file of that ending; repeatable (text)"},
      {"--deploy", LP_OPTION_TEXT, &flags.deploy, "FOLDER",
       "write what deploys the fleet: compile commands, serve.yaml, systemd units, Kubernetes manifests"},
      {"--fail-if", LP_OPTION_TEXTS, &flags.fail_if, "EXPRESSION",
       "exit with status 4 if it holds of the fleet, as in 'usd_per_month > 1000'; repeatable"}};
  const lp_command command = {
      .usage = "llmpart fleet SPEC.yaml [-o text|json|csv|html|FILE]... [--deploy=FOLDER] [--fail-if=EXPRESSION]...",
      .summary =
          "Plans the machines that serve a load within limits at percentiles, and what runs where, for the least\n"
          "USD a month; with a lower bound. Exit status 3: no fleet keeps the limits.",
      LP_OPTIONS(options),
      .args = {1, 1},
      .act = run,
      .user = &flags};
  const int status = lp_tool_main(&command, argc, argv);
  lp_vec_free(&flags.outputs);
  lp_vec_free(&flags.fail_if);
  return status;
}
