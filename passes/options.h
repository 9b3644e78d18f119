/* The options of a pass in a pipeline, as the runner checks them. Passes read them by lp_pass_option. */
#pragma once

#include "passes/passes.h"

/* Reports an option of `text` ("a=1,b=2", or NULL) that the pass does not take; the message names those that it
 * takes. */
LP_MUST_USE lp_status lp_pass_options_check(const lp_pass *pass, const char *text, lp_diag *diag);
