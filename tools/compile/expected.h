/* Expected diagnostics, as mlir-opt --verify-diagnostics has them:
 *   // expected-error@+1 {{part of the text}}      also @-1, @unknown (no line), none (this line); -warning, -note */
#ifndef LP_TOOLS_EXPECTED_H
#define LP_TOOLS_EXPECTED_H

#include "base/base.h"

/* Reports on `diag` each message of `found` that the text does not expect, and each expectation that no message
 * meets. */
LP_MUST_USE lp_status lp_expected_check(const char *file, const char *text, size_t size, const lp_diag *found,
                                        lp_diag *diag);

#endif
