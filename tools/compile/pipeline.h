/* Declarations that the subcommands with passes share: their options, printing after passes, timing. */
#pragma once

#include "passes/passes.h"
#include "tools/tools.h"

typedef struct {
  const char *print_after;
  bool print_after_all, timing;
} lp_pass_flags;

#define LP_PASS_FLAG_OPTIONS(flags)                                                                                    \
  {"--print-ir-after", LP_OPTION_TEXT, &(flags).print_after, "PASS", "print the IR on stderr after a pass"},           \
      {"--print-ir-after-all", LP_OPTION_FLAG, &(flags).print_after_all, NULL,                                         \
       "print the IR on stderr after every pass"},                                                                     \
      {"--timing", LP_OPTION_FLAG, &(flags).timing, NULL, "print the time of every pass on stderr"}

lp_run_options lp_tool_run_options(const lp_pass_flags *flags);
LP_MUST_USE lp_status lp_tool_check_pass(const lp_pass_flags *flags, lp_diag *diag);
LP_MUST_USE lp_status lp_tool_write_module(const lp_module *module, bool with_locations, const char *path,
                                           lp_diag *diag);
/* The width of the logits of a module with a prefill program: the last dimension of its first result; 0: none. */
int64_t lp_tool_vocab(const lp_module *module);
