/* llmpart link: link models, as a table and as the YAML they are read from. */
#include "tools/tools.h"

#include "hwmodels/hwmodels.h"

#include <stdlib.h>

static lp_status show(const char *name, lp_buf *out, lp_diag *diag) {
  lp_link *link = NULL;
  LP_TRY(lp_link_load(name, &link, diag));
  lp_link_print(link, out);
  lp_link_free(link);
  return LP_OK;
}

int lp_tool_link(int argc, char **argv) {
  static const lp_command command = {
      .usage = "llmpart link list | llmpart link show NAME",
      .summary = "Lists the link models, or prints one. NAME is a name of the list, a YAML file, or figures:"
                 "\nrtt=10ms,up=50Mbit/s,down=200Mbit/s.",
      .min_args = 1,
      .max_args = 2};
  lp_diag *diag = lp_tool_diag();
  lp_texts args = {0};
  lp_buf out = {0};
  bool done = false;
  lp_status status = lp_options_read(&command, argc, argv, &args, &done, diag);
  if (status == LP_OK && !done) {
    if (lp_streq(args.data[0], "list") && args.count == 1)
      lp_link_list(&out);
    else if (lp_streq(args.data[0], "show") && args.count == 2)
      status = show(args.data[1], &out, diag);
    else
      status = lp_tool_cannot(&command, args.data[0], diag);
  }
  if (status == LP_OK && out.size) status = lp_tool_write("-", out.data, out.size, diag);
  lp_buf_free(&out);
  lp_vec_free(&args);
  lp_diag_free(diag);
  return (int)status;
}
