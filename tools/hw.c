/* llmpart hw, llmpart link: machine and link models, as tables and as the YAML they are read from. */
#include "tools/tools.h"

#include "hwmodels/hwmodels.h"

#include <stdlib.h>

static lp_status show_machine(const char *name, lp_buf *out, lp_diag *diag) {
  lp_machine *machine = NULL;
  LP_TRY(lp_hw_load(name, &machine, diag));
  lp_hw_print(machine, out);
  lp_hw_free(machine);
  return LP_OK;
}

static lp_status show_link(const char *name, lp_buf *out, lp_diag *diag) {
  lp_link *link = NULL;
  LP_TRY(lp_link_load(name, &link, diag));
  lp_link_print(link, out);
  lp_link_free(link);
  return LP_OK;
}

/* One kind of model: its list and its show. */
typedef struct {
  lp_command command;
  void (*list)(lp_buf *out);
  lp_status (*show)(const char *name, lp_buf *out, lp_diag *diag);
} model_kind;

static lp_status do_action(const model_kind *kind, const lp_texts *args, lp_buf *out, lp_diag *diag) {
  const char *action = args->data[0];
  if (lp_streq(action, "list") && args->count == 1) {
    kind->list(out);
    return LP_OK;
  }
  if (lp_streq(action, "show") && args->count == 2) return kind->show(args->data[1], out, diag);
  lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "cannot do '%s'", action);
  lp_note(diag, LP_LOC_NONE, "usage: %s", kind->command.usage);
  return status;
}

static int run_tool(const model_kind *kind, int argc, char **argv) {
  lp_diag *diag = lp_tool_diag();
  lp_texts args = {0};
  lp_buf out = {0};
  bool done = false;
  lp_status status = lp_options_read(&kind->command, argc, argv, &args, &done, diag);
  if (status == LP_OK && !done) status = do_action(kind, &args, &out, diag);
  if (status == LP_OK && out.size) status = lp_tool_write("-", out.data, out.size, diag);
  lp_buf_free(&out);
  lp_vec_free(&args);
  lp_diag_free(diag);
  return (int)status;
}

int lp_tool_hw(int argc, char **argv) {
  static const model_kind kind = {
      .command = {.usage = "llmpart hw list | llmpart hw show NAME",
                  .summary =
                      "Lists the machine models, or prints one with the source of each figure. NAME is a name of "
                      "the list,\n`host` (this machine, measured) or a YAML file; figures may be changed: "
                      "a100,price_usd_per_s=4e-5.",
                  .min_args = 1,
                  .max_args = 2},
      .list = lp_hw_list,
      .show = show_machine};
  return run_tool(&kind, argc, argv);
}

int lp_tool_link(int argc, char **argv) {
  static const model_kind kind = {
      .command = {.usage = "llmpart link list | llmpart link show NAME",
                  .summary =
                      "Lists the link models, or prints one. NAME is a name of the list, a YAML file, or figures:"
                      "\nrtt=10ms,up=50Mbit/s,down=200Mbit/s.",
                  .min_args = 1,
                  .max_args = 2},
      .list = lp_link_list,
      .show = show_link};
  return run_tool(&kind, argc, argv);
}
