/* The cases of the base tests, one per file. */
#ifndef TEST_BASE_H
#define TEST_BASE_H

#include "base/base.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

TCase *arena_case(void);
TCase *diag_case(void);
TCase *file_case(void);
TCase *number_case(void);
TCase *poly_case(void);
TCase *text_case(void);
TCase *units_case(void);
TCase *yaml_case(void);

/* For loops: ck_assert makes a system call each time. */
#define expect_true(condition)                                                                                         \
  do {                                                                                                                 \
    if (!(condition)) ck_abort_msg("%s", #condition);                                                                  \
  } while (0)

/* What the entry `index` of `diag` looks like; release with free(). */
char *formatted(const lp_diag *diag, size_t index);

#endif
