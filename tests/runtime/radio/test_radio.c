#include "tests/runtime/radio/test_radio.h"
#include "tests/suite.h"

int main(void) {
  Suite *suite = suite_create("radio");
  TCase *(*const cases[])(void) = {propagation_case, network_case, scheduler_case};
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    suite_add_tcase(suite, cases[i]());
  return run_suite(suite);
}
