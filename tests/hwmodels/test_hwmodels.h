/* The cases of the hwmodels tests, one per file. */
#ifndef TEST_HWMODELS_H
#define TEST_HWMODELS_H

#include "hwmodels/hwmodels.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

TCase *machine_case(void);
TCase *link_case(void);
TCase *fit_case(void);

/* Fails unless the one error of `diag` prints as `wanted`, and the entry after it, if any, as `note`; frees `diag`. */
void expect_error(lp_diag *diag, const char *wanted, const char *note);

#endif
