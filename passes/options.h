/* The options of a pass in a pipeline, as the runner checks them. Passes read them by lp_pass_option. */
#ifndef LP_PASSES_OPTIONS_H
#define LP_PASSES_OPTIONS_H

#include "passes/passes.h"

/* An error that names the pass's options when `text` ("a=1,b=2", or NULL) has one that the pass does not take. */
LP_MUST_USE lp_status lp_pass_options_check(const lp_pass *pass, const char *text, lp_diag *diag);

#endif
