#include "base/clock.h"
#include "base/digest.h"
#include "base/minifloat.h"
#include "base/number.h"

#include "tests/base/expect.h"
#include "tests/suite.h"

#include <math.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Independent of the code under test: from the definition of the format. */
static double f16_value(uint32_t half) {
  int exponent = (int)(half >> 10 & 31);
  double mantissa = half & 0x3ff, sign = half & 0x8000 ? -1 : 1;
  return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

LP_TEST(every_f16_reads_exactly_and_returns) {
  for (uint32_t half = 0; half <= 0xffff; half++) {
    float value = lp_f16_to_f32((uint16_t)half);
    if ((half & 0x7c00) == 0x7c00) {
      expect_true(half & 0x3ff ? isnan(value) : isinf(value));
      expect_true((signbit(value) != 0) == (half >> 15));
      if (half & 0x3ff) { /* a NaN comes back quiet */
        expect_true(lp_f32_to_f16(value) == (half | 0x200));
        continue;
      }
    } else {
      expect_true((double)value == f16_value(half) && (signbit(value) != 0) == (half >> 15));
    }
    expect_true(lp_f32_to_f16(value) == half);
  }
}

/* Around each boundary between two neighbours: below the middle goes down, above goes up, the middle to the even
 * one. */
LP_TEST(f16_rounds_to_nearest_even) {
  for (uint32_t half = 0; half < 0x7c00; half++) {
    double low = f16_value(half), high = half == 0x7bff ? 65536 : f16_value(half + 1);
    float middle = (float)((low + high) / 2); /* exact: f32 has the bits */
    uint32_t even = half & 1 ? half + 1 : half;
    expect_true(lp_f32_to_f16(middle) == even);
    expect_true(lp_f32_to_f16(-middle) == (even | 0x8000));
    expect_true(lp_f32_to_f16(nextafterf(middle, 0)) == half);
    expect_true(lp_f32_to_f16(nextafterf(middle, INFINITY)) == (half + 1));
  }
  ck_assert_uint_eq(lp_f32_to_f16(1e30f), 0x7c00);
  ck_assert_uint_eq(lp_f32_to_f16(-INFINITY), 0xfc00);
  ck_assert_uint_eq(lp_f32_to_f16(1e-30f), 0);
}

LP_TEST(every_bf16_reads_exactly_and_rounds) {
  for (uint32_t bits = 0; bits <= 0xffff; bits++) {
    float value = lp_bf16_to_f32((uint16_t)bits);
    expect_true(bits_of(value) == (bits << 16));
    if (isnan(value)) {
      expect_true(lp_f32_to_bf16(value) == (bits | 0x40));
      continue;
    }
    expect_true(lp_f32_to_bf16(value) == bits);
    if (isinf(value)) continue;
    uint32_t even = bits & 1 ? bits + 1 : bits;
    expect_true(lp_f32_to_bf16(float_of(bits << 16 | 0x8000)) == even);
    expect_true(lp_f32_to_bf16(float_of(bits << 16 | 0x7fff)) == bits);
    expect_true(lp_f32_to_bf16(float_of(bits << 16 | 0x8001)) == (bits + 1));
  }
  ck_assert_uint_eq(lp_f32_to_bf16(float_of(0x7f800001)) & 0x7fff, 0x7fc0); /* a NaN that loses its payload */
}

static void digest(const char *text, size_t repeat, size_t step, const char *wanted) {
  lp_sha256 sha;
  lp_sha256_init(&sha);
  size_t length = strlen(text);
  for (size_t r = 0; r < repeat; r++)
    for (size_t i = 0; i < length; i += step)
      lp_sha256_update(&sha, text + i, length - i < step ? length - i : step);
  char out[65];
  lp_sha256_hex(&sha, out);
  ck_assert_str_eq(out, wanted);
}

/* ---- floats of 8 and 4 bits ---- */

static float mini(uint32_t code, lp_mini form) {
  return lp_mini_decode(code, form);
}

LP_TEST(every_small_float_returns) {
  static const lp_mini forms[] = {LP_MINI_E4M3FN, LP_MINI_E4M3FNUZ, LP_MINI_E5M2, LP_MINI_E5M2FNUZ, LP_MINI_E2M1};
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    for (uint32_t code = 0; code < (forms[i] == LP_MINI_E2M1 ? 16 : 256); code++)
      if (!isnan(mini(code, forms[i])) && !isinf(mini(code, forms[i])))
        ck_assert_uint_eq(lp_mini_encode(mini(code, forms[i]), forms[i], false), code);
  for (uint32_t code = 0; code < 255; code++)
    for (int rounding = LP_E8M0_UP; rounding <= LP_E8M0_NEAREST; rounding++)
      ck_assert_uint_eq(lp_e8m0_encode(mini(code, LP_MINI_E8M0), (lp_e8m0_rounding)rounding, true), code);
}

/* Values of the standard's tables. */
LP_TEST(small_floats_have_the_standards_values) {
  ck_assert_float_eq(mini(0x7e, LP_MINI_E4M3FN), 448);
  ck_assert_float_eq(mini(0x01, LP_MINI_E4M3FN), 0x1p-9f);
  ck_assert_float_eq(mini(0x7f, LP_MINI_E4M3FNUZ), 240);
  ck_assert_float_eq(mini(0xfb, LP_MINI_E5M2), -57344);
  ck_assert_float_eq(mini(0x7f, LP_MINI_E5M2FNUZ), 57344);
  ck_assert_float_eq(mini(0x5, LP_MINI_E2M1), 3);
  ck_assert_float_eq(mini(0xf, LP_MINI_E2M1), -6);
  ck_assert_float_eq(mini(127, LP_MINI_E8M0), 1);
  ck_assert(isnan(mini(0xff, LP_MINI_E4M3FN)) && isnan(mini(0x80, LP_MINI_E5M2FNUZ)));
  ck_assert(isinf(mini(0x7c, LP_MINI_E5M2)) && isnan(mini(0x7d, LP_MINI_E5M2)));
}

LP_TEST(small_floats_round_and_saturate) {
  ck_assert_uint_eq(lp_mini_encode(1.0625f, LP_MINI_E4M3FN, true), 0x38); /* a tie: to even */
  ck_assert_uint_eq(lp_mini_encode(1.1875f, LP_MINI_E4M3FN, true), 0x3a);
  ck_assert_uint_eq(lp_mini_encode(1e6f, LP_MINI_E4M3FN, true), 0x7e);
  ck_assert_uint_eq(lp_mini_encode(-1e6f, LP_MINI_E4M3FN, false), 0xff);
  ck_assert_uint_eq(lp_mini_encode(INFINITY, LP_MINI_E5M2, false), 0x7c);
  ck_assert_uint_eq(lp_mini_encode(INFINITY, LP_MINI_E5M2, true), 0x7b);
  ck_assert_uint_eq(lp_mini_encode(-INFINITY, LP_MINI_E5M2FNUZ, false), 0x80);
  ck_assert_uint_eq(lp_mini_encode(-1e-9f, LP_MINI_E4M3FNUZ, true), 0);
  ck_assert_uint_eq(lp_mini_encode(-1e-9f, LP_MINI_E4M3FN, true), 0x80);
  ck_assert_uint_eq(lp_mini_encode(2.5f, LP_MINI_E2M1, true), 0x4);
  ck_assert_uint_eq(lp_e8m0_encode(3.0f, LP_E8M0_UP, true), 129);
  ck_assert_uint_eq(lp_e8m0_encode(3.0f, LP_E8M0_DOWN, true), 128);
}

/* FIPS 180-4's examples, in pieces of every size. */
LP_TEST(sha256_examples) {
  static const char *const two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  digest("", 1, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  digest("abc", 1, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (size_t step = 1; step <= 64; step++)
    digest(two_blocks, 1, step, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  digest("aaaaaaaaaa", 100000, 7, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

LP_TEST(the_clock_does_not_go_back) {
  double before = lp_now_ms();
  for (int i = 0; i < 1000; i++) {
    double now = lp_now_ms();
    ck_assert(now >= before);
    before = now;
  }
}
