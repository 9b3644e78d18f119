/* llmpart diff: tells what changed between two reports, and whether it is worse. */
#include "tools/gate/gate.h"
#include "tools/tools.h"

typedef struct {
  double regression;
  const char *form;
} diff_flags;

static lp_status compare(const diff_flags *flags, const lp_texts *args, lp_gate_report reports[2], lp_changes *changes,
                         lp_buf *text, lp_diag *diag) {
  for (size_t i = 0; i < 2; i++)
    LP_TRY(lp_gate_report_load(args->data[i], &reports[i], diag));
  LP_TRY(lp_gate_compare(&reports[0], &reports[1], flags->regression, changes, diag));
  lp_gate_write(changes, &reports[0], &reports[1], flags->regression, flags->form, text);
  LP_TRY(lp_tool_write("-", text, diag));
  return changes->is_worse ? LP_MISMATCH : LP_OK;
}

static lp_status diff(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  lp_gate_report reports[2] = {0};
  lp_changes changes = {0};
  lp_buf text = {0};
  lp_status status = compare(command->user, args, reports, &changes, &text, diag);
  lp_buf_free(&text);
  lp_changes_free(&changes);
  for (size_t i = 0; i < 2; i++)
    lp_gate_report_free(&reports[i]);
  return status;
}

int lp_tool_diff(int argc, char **argv) {
  diff_flags flags = {.form = "text"};
  const lp_option options[] = {{"--max-regression", LP_OPTION_SHARE, &flags.regression, "SHARE",
                                "allow figures to become worse by this share, 0.05 or 5% (0)"},
                               {"-o", LP_OPTION_CHOICE, &flags.form, LP_GATE_FORMS, "set the format (text)"}};
  const lp_command command = {
      .usage = "llmpart diff OLD.json NEW.json [--max-regression=SHARE] [-o " LP_GATE_FORMS "]",
      .summary = "Compares two reports of `compile`, or two of `bench`: the figures, the settings, and the operators\n"
                 "that moved to the other side. Exit status 4: a figure (TTFT, TPOT, cost, memory, traffic, energy,\n"
                 "speed) is worse by more than --max-regression, or the new plan misses an SLA that the old one meets.",
      LP_OPTIONS(options),
      .args = {2, 2},
      .act = diff,
      .user = &flags};
  return lp_tool_main(&command, argc, argv);
}
