/* Helpers of the tests of hwmodels/. */
#ifndef LP_TESTS_HWMODELS_EXPECT_H
#define LP_TESTS_HWMODELS_EXPECT_H

#include "hwmodels/hwmodels.h"

#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

/* Fails unless the one error of `diag` prints as `wanted`, and the entry after it, if any, as `note`; frees `diag`. */
void expect_error(lp_diag *diag, const char *wanted, const char *note);

#endif
