#include "tests/runtime/radio/test_radio.h"

int main(void) {
  Suite *suite = suite_create("radio");
  TCase *(*const cases[])(void) = {propagation_case, network_case, scheduler_case};
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    suite_add_tcase(suite, cases[i]());
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
