/* Rows of KV caches in codes: sizes, the place of each code and scale, and the greatest error. */
#include "base/number.h"
#include "ir/ir.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

LP_TEST(sizes_of_rows) {
  ck_assert_int_eq(lp_cache_row(LP_F16, 80), 80);
  ck_assert_int_eq(lp_cache_width(LP_F16, 80), 80);
  ck_assert_int_eq(lp_cache_row(LP_I8, 64), 68);
  ck_assert_int_eq(lp_cache_row(LP_U8, 64), 36);
  ck_assert_int_eq(lp_cache_width(LP_I8, 68), 64);
  ck_assert_int_eq(lp_cache_width(LP_U8, 36), 64);
  static const int64_t bad[] = {-32, 0, 31, 33, 80};
  for (size_t i = 0; i < LP_COUNT(bad); i++)
    ck_assert_int_eq(lp_cache_row(LP_I8, bad[i]), -1);
  static const int64_t bytes[] = {-34, 0, 33, 35, 64};
  for (size_t i = 0; i < LP_COUNT(bytes); i++)
    ck_assert_int_eq(lp_cache_width(LP_I8, bytes[i]), -1);
}

LP_TEST(types_by_name) {
  lp_dtype dtype;
  ck_assert(lp_cache_dtype_parse("int8", &dtype) && dtype == LP_I8 && lp_cache_is_coded(dtype));
  ck_assert(lp_cache_dtype_parse("int4", &dtype) && dtype == LP_U8 && lp_cache_is_coded(dtype));
  ck_assert(lp_cache_dtype_parse("bf16", &dtype) && dtype == LP_BF16 && !lp_cache_is_coded(dtype));
  ck_assert(!lp_cache_dtype_parse("i8", &dtype) && !lp_cache_dtype_parse("", &dtype));
}

/* Two blocks: element i of the first is (i - 16) / 8, so that its greatest is -2; the second has one element, 1. */
static void make_row(float x[64]) {
  memset(x, 0, 64 * sizeof *x);
  for (int i = 0; i < 32; i++)
    x[i] = (float)(i - 16) / 8;
  x[32 + 20] = 1;
}

static float scale_at(const unsigned char *row, int at) {
  uint16_t bits;
  memcpy(&bits, row + at, sizeof bits);
  return lp_f16_to_f32(bits);
}

LP_TEST(bytes_of_a_row) {
  float x[64], back[64];
  unsigned char row[68];
  make_row(x);
  lp_cache_encode(LP_I8, 64, x, row);
  ck_assert_int_eq((signed char)row[0], -127);
  ck_assert_int_eq((signed char)row[16], 0);
  ck_assert_int_eq((signed char)row[24], 64); /* 1 / (2 / 127) is 63.5, less in f16's scale */
  ck_assert_int_eq((signed char)row[52], 127);
  ck_assert_double_eq_tol((double)scale_at(row, 64), 2.0 / 127, 1e-5);
  ck_assert_double_eq_tol((double)scale_at(row, 66), 1.0 / 127, 1e-5);
  lp_cache_decode(LP_I8, 64, row, back);
  for (int i = 0; i < 64; i++)
    ck_assert_double_eq_tol((double)back[i], (double)x[i], i < 32 ? 1.01 / 127 : 0.51 / 127);

  lp_cache_encode(LP_U8, 64, x, row);
  ck_assert_int_eq(row[0], 1 | 8 << 4);       /* elements 0 and 16: codes -7 and 0 */
  ck_assert_int_eq(row[8], 4 | 12 << 4);      /* -3.5 and 3.5 go to the even code, -4 and 4 */
  ck_assert_int_eq(row[16 + 4], 8 | 15 << 4); /* of the second block elements 4 and 20 */
  ck_assert_double_eq_tol((double)scale_at(row, 32), 2.0 / 7, 1e-3);
  lp_cache_decode(LP_U8, 64, row, back);
  for (int i = 0; i < 64; i++)
    ck_assert_double_eq_tol((double)back[i], (double)x[i], 1.01 / 7);
}

/* Nothing is divided by a scale of zero, and no scale is infinite. */
LP_TEST(extremes) {
  float x[32] = {0}, back[32];
  unsigned char row[34];
  lp_cache_encode(LP_I8, 32, x, row);
  lp_cache_decode(LP_I8, 32, row, back);
  ck_assert(back[0] == 0 && back[31] == 0);
  x[3] = 1e-9f;
  lp_cache_encode(LP_I8, 32, x, row);
  lp_cache_decode(LP_I8, 32, row, back);
  ck_assert(back[3] == 0);
  x[3] = 1e30f;
  lp_cache_encode(LP_U8, 32, x, row);
  lp_cache_decode(LP_U8, 32, row, back);
  ck_assert(isfinite(back[3]) && back[3] == 7 * 65504.0f);
}
