/* suite: the end of every test program's main. */
#ifndef LP_TESTS_SUITE_H
#define LP_TESTS_SUITE_H

#include <check.h>

/* Runs and releases `suite`; returns main's exit status. CK_VERBOSITY and CK_RUN_CASE are Check's own. */
static inline int run_suite(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed > 0;
}

#endif
