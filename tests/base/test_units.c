#include "base/units.h"
#include "tests/base/expect.h"
#include "tests/suite.h"

#include <math.h>

typedef lp_status parse_double(const char *text, double *value, lp_diag *diag, lp_loc loc);

static void reads(parse_double *parse, const char *text, double wanted) {
  lp_diag *diag = lp_diag_create();
  double value = -1;
  ck_assert_msg(parse(text, &value, diag, LP_LOC_NONE) == LP_OK, "'%s' is refused", text);
  ck_assert_double_eq_tol(value, wanted, 1e-12 * wanted + 1e-300);
  ck_assert_uint_eq(lp_diag_count(diag), 0);
  lp_diag_free(diag);
}

static void refuses(parse_double *parse, const char *text) {
  lp_diag *diag = lp_diag_create();
  double value = 0;
  ck_assert_msg(parse(text, &value, diag, LP_LOC_NONE) == LP_FAILED, "'%s' is read as %g", text, value);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, text));
  lp_diag_free(diag);
}

static const char *const never_numbers[] = {"",    " ",     "x",   "-1", "+1", "nan", "inf", "0x10",
                                            "1..", "1e999", "1 2", ".",  "1e", "1,5", "--",  "1 parsec"};

LP_TEST(times) {
  reads(lp_parse_time_ms, "400ms", 400);
  reads(lp_parse_time_ms, "0.1s", 100);
  reads(lp_parse_time_ms, "20us", 0.02);
  reads(lp_parse_time_ms, "20 us", 0.02);
  reads(lp_parse_time_ms, "1.5e2", 150);
  reads(lp_parse_time_ms, "0", 0);
  reads(lp_parse_time_ms, "60s", 60000);
  reads(lp_parse_time_ms, "2min", 120000);
  for (size_t i = 0; i < LP_COUNT(never_numbers); i++)
    refuses(lp_parse_time_ms, never_numbers[i]);
  refuses(lp_parse_time_ms, "4GiB");
  refuses(lp_parse_time_ms, "ms");
}

LP_TEST(rates) {
  reads(lp_parse_rate_bps, "100Mbit/s", 1e8);
  reads(lp_parse_rate_bps, "1Gbit/s", 1e9);
  reads(lp_parse_rate_bps, "12MB/s", 96e6);
  reads(lp_parse_rate_bps, "1.5 Mbps", 1.5e6);
  reads(lp_parse_rate_bps, "1MiB/s", 8388608);
  reads(lp_parse_rate_bps, "1000", 1000);
  for (size_t i = 0; i < LP_COUNT(never_numbers); i++)
    refuses(lp_parse_rate_bps, never_numbers[i]);
  refuses(lp_parse_rate_bps, "1mbit/s");
  refuses(lp_parse_rate_bps, "1e308Gbit/s");
}

static lp_status parse_size(const char *text, double *value, lp_diag *diag, lp_loc loc) {
  int64_t size = 0;
  lp_status status = lp_parse_size(text, &size, diag, loc);
  *value = (double)size;
  return status;
}

LP_TEST(sizes) {
  reads(parse_size, "4GiB", 4294967296.0);
  reads(parse_size, "512MB", 512e6);
  reads(parse_size, "1024", 1024);
  reads(parse_size, "1.5 KiB", 1536);
  for (size_t i = 0; i < LP_COUNT(never_numbers); i++)
    refuses(parse_size, never_numbers[i]);
  refuses(parse_size, "9223372036854775808");
  refuses(parse_size, "8589934592GiB");
  refuses(parse_size, "1e30");
  refuses(parse_size, "99999999999999999999999");
  int64_t exact = 0;
  ck_assert_int_eq(lp_parse_size("9223372036854775807", &exact, NULL, LP_LOC_NONE), LP_OK);
  ck_assert_int_eq(exact, INT64_MAX);
}

LP_TEST(plain_numbers) {
  reads(lp_parse_double, "0.8", 0.8);
  reads(lp_parse_double, "1e-5", 1e-5);
  for (size_t i = 0; i < LP_COUNT(never_numbers); i++)
    refuses(lp_parse_double, never_numbers[i]);
  refuses(lp_parse_double, "1ms");
  int64_t value = 0;
  ck_assert_int_eq(lp_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &value, NULL, LP_LOC_NONE), LP_OK);
  ck_assert_int_eq(value, INT64_MIN);
  static const char *const bad[] = {"", "-", "1.5", "abc", " 1", "1 ", "9223372036854775808", "101", "-1"};
  for (size_t i = 0; i < LP_COUNT(bad); i++) {
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_parse_i64(bad[i], 0, 100, &value, diag, LP_LOC_NONE), LP_FAILED);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    lp_diag_free(diag);
  }
}

LP_TEST(human_forms) {
  char text[32];
  ck_assert_str_eq(lp_format_bytes(4294967296.0, text), "4.0 GiB");
  ck_assert_str_eq(lp_format_bytes(12, text), "12 B");
  ck_assert_str_eq(lp_format_bytes(1e30, text), "888178419700125.2 PiB");
  ck_assert_str_eq(lp_format_rate(1e8, text), "100 Mbit/s");
  ck_assert_str_eq(lp_format_rate(0, text), "0 bit/s");
}

LP_TEST(times_for_people) {
  static const struct {
    double ms;
    const char *text;
  } cases[] = {{0, "0"},
               {4.031e-5, "40.3 ns"},
               {2.6e-7, "0.26 ns"},
               {0.0123, "12.3 us"},
               {0.9994, "999 us"},
               {0.9996, "1.00 ms"},
               {9.994, "9.99 ms"},
               {9.996, "10.0 ms"},
               {99.96, "100 ms"},
               {999.4, "999 ms"},
               {999.6, "1.00 s"},
               {61234, "61.2 s"},
               {1234567, "1235 s"},
               {-12.5, "-12.5 ms"},
               {INFINITY, "-"},
               {NAN, "-"}};
  char out[32];
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    ck_assert_str_eq(lp_format_ms(cases[i].ms, out), cases[i].text);
}

LP_TEST(prices_for_people) {
  static const struct {
    double usd;
    const char *text;
  } cases[] = {{0, "0"},
               {5.6e-6, "0.00000560"},
               {2.2996e-9, "0.00000000230"},
               {9.9996e-5, "0.000100"},
               {1e-20, "1.00e-20"},
               {0.0125, "0.0125"},
               {1, "1.00"},
               {12.345, "12.3"},
               {99.94, "99.9"},
               {99.96, "100"},
               {12345, "12345"},
               {NAN, "-"}};
  char out[32];
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    ck_assert_str_eq(lp_format_usd(cases[i].usd, out), cases[i].text);
}
