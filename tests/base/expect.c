/* expect: a diagnostic as the text that a user sees. */
#include "tests/base/expect.h"

char *formatted(const lp_diag *diag, size_t index) {
  ck_assert_uint_lt(index, lp_diag_count(diag));
  lp_buf text = {0};
  lp_diag_format(lp_diag_get(diag, index), &text);
  return text.data;
}
