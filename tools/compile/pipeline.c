/* Code that the subcommands with passes share: their options, printing after passes, timing. */
#include "tools/compile/pipeline.h"

static void print_module(void *user, const char *pass, const lp_module *module) {
  (void)user;
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_module_print(module, false, &text);
  fprintf(stderr, "// -----// IR after %s //----- //\n%s", pass, lp_buf_text(&text));
}

static void print_time(void *user, const char *pass, double ms) {
  (void)user;
  fprintf(stderr, "%10.3f ms  %s\n", ms, pass);
}

lp_run_options lp_tool_run_options(const lp_pass_flags *flags) {
  return (lp_run_options){.verify_each = true,
                          .print_after_all = flags->print_after_all,
                          .print_after = flags->print_after,
                          .print = print_module,
                          .time = flags->timing ? print_time : NULL};
}

lp_status lp_tool_check_pass(const lp_pass_flags *flags, lp_diag *diag) {
  if (!flags->print_after || lp_pass_find(flags->print_after)) return LP_OK;
  const lp_pass *const *list;
  size_t count = lp_pass_list(&list);
  const char *names[64];
  for (size_t i = 0; i < count && i < LP_COUNT(names); i++)
    names[i] = list[i]->name;
  lp_status status =
      lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--print-ir-after"), "unknown pass '%s'", flags->print_after);
  lp_note_near(diag, LP_LOC_NONE, flags->print_after, names, count < LP_COUNT(names) ? count : LP_COUNT(names));
  return status;
}

lp_status lp_tool_write_module(const lp_module *module, bool with_locations, const char *path, lp_diag *diag) {
  lp_buf text = {0};
  lp_module_print(module, with_locations, &text);
  return lp_tool_write(path, &text, diag);
}

int64_t lp_tool_vocab(const lp_module *module) {
  const lp_op *func = lp_module_find_func(module, "prefill");
  const lp_op *end = func ? lp_block_terminator(func->region) : NULL;
  const lp_value *logits = end ? lp_op_in(end, 0) : NULL;
  int64_t vocab = func ? lp_op_i64(func, "vocab", 0) : 0; /* of a model that gives hidden states */
  if (vocab > 0) return vocab;
  return logits && lp_type_static_dim(logits->type, -1, &vocab) ? vocab : 0;
}
