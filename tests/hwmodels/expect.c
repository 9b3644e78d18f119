#include "tests/hwmodels/expect.h"

static void expect_entry(const lp_diag *diag, size_t index, const char *wanted) {
  ck_assert_uint_lt(index, lp_diag_count(diag));
  lp_buf text = {0};
  lp_diag_format(lp_diag_get(diag, index), &text);
  ck_assert_str_eq(lp_buf_text(&text), wanted);
  lp_buf_free(&text);
}

void expect_error(lp_diag *diag, const char *wanted, const char *note) {
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  expect_entry(diag, 0, wanted);
  if (note) expect_entry(diag, 1, note);
  lp_diag_free(diag);
}
