#include "tests/base/test_base.h"
#include "tests/suite.h"

char *formatted(const lp_diag *diag, size_t index) {
  ck_assert_uint_lt(index, lp_diag_count(diag));
  lp_buf text = {0};
  lp_diag_format(lp_diag_get(diag, index), &text);
  return text.data;
}

int main(void) {
  Suite *suite = suite_create("base");
  TCase *(*const cases[])(void) = {arena_case, diag_case, file_case,  number_case,
                                   poly_case,  text_case, units_case, yaml_case};
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    suite_add_tcase(suite, cases[i]());
  return run_suite(suite);
}
