/* Helpers of the tests of base/. */
#ifndef LP_TESTS_BASE_EXPECT_H
#define LP_TESTS_BASE_EXPECT_H

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

/* For loops: ck_assert makes a system call each time. */
#define expect_true(condition)                                                                                         \
  do {                                                                                                                 \
    if (!(condition)) ck_abort_msg("%s", #condition);                                                                  \
  } while (0)

/* Returns the entry `index` of `diag` as a user sees it; release with free(). */
char *formatted(const lp_diag *diag, size_t index);

#endif
