/* llmpart link: prints link models, as a table or as YAML. */
#include "tools/tools.h"

#include "hwmodels/hwmodels.h"

static lp_status list(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  (void)command, (void)args;
  lp_buf out = {0};
  lp_link_list(&out);
  return lp_tool_write("-", &out, diag);
}

static lp_status show(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  (void)command;
  lp_link *link = NULL;
  lp_buf out = {0};
  LP_TRY(lp_link_load(args->data[1], &link, diag));
  lp_link_print(link, &out);
  lp_status status = lp_tool_write("-", &out, diag);
  lp_link_free(link);
  return status;
}

static lp_status act(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  static const lp_tool_action actions[] = {{"list", list, 0}, {"show", show, 1}};
  return lp_tool_choose(actions, LP_COUNT(actions), command, args, diag);
}

int lp_tool_link(int argc, char **argv) {
  static const lp_command command = {.usage = "llmpart link list | llmpart link show NAME",
                                     .summary = "Lists the link models, or prints one. NAME is a name of the list, a "
                                                "YAML file, or figures:\nrtt=10ms,up=50Mbit/s,down=200Mbit/s.",
                                     .args = {1, 2},
                                     .act = act};
  return lp_tool_main(&command, argc, argv);
}
