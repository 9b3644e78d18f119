/* Units of time, size and rate: "400ms", "4GiB", "100Mbit/s". */
#pragma once

#include "base/base.h"

/* Each function reads the whole of `text`, which must be a finite number that is not negative. Otherwise it reports the
 * text and the allowed forms at `loc`. */
/* 400ms 0.1s 20us 2min; bare: ms */
LP_MUST_USE lp_status lp_parse_time_ms(const char *text, double *ms, lp_diag *diag, lp_loc loc);
/* 4GiB 512MB 1024; a fraction of a byte is rounded */
LP_MUST_USE lp_status lp_parse_size(const char *text, int64_t *bytes, lp_diag *diag, lp_loc loc);
/* 100Mbit/s 1Gbit/s 12MB/s; bare: bit/s */
LP_MUST_USE lp_status lp_parse_rate_bps(const char *text, double *bps, lp_diag *diag, lp_loc loc);
/* Reads a number followed by one of `units`. `wanted` completes the message "'12 parsecs' is not ...": "a time such as
 * 400ms". */
typedef struct {
  const char *name; /* "" for none */
  double factor;
} lp_unit;
LP_MUST_USE lp_status lp_parse_unit(const char *text, const lp_unit *units, size_t count, const char *wanted,
                                    double *value, lp_diag *diag, lp_loc loc);
LP_MUST_USE lp_status lp_parse_double(const char *text, double *value, lp_diag *diag, lp_loc loc);
/* Also takes percentages: 1% is 0.01. */
LP_MUST_USE lp_status lp_parse_share(const char *text, double *value, lp_diag *diag, lp_loc loc);
/* Also takes negative numbers. */
LP_MUST_USE lp_status lp_parse_signed(const char *text, double *value, lp_diag *diag, lp_loc loc);
LP_MUST_USE lp_status lp_parse_i64(const char *text, int64_t min, int64_t max, int64_t *value, lp_diag *diag,
                                   lp_loc loc);
/* Writes "4.0 GiB", "100 Mbit/s", "40.3 ns", "12.5 s" or a price of three digits, "0.0125" or "0.00000230", to the
 * caller's buffer and returns it. A value that is not finite is "-". */
const char *lp_format_bytes(double bytes, char out[32]);
const char *lp_format_rate(double bps, char out[32]);
const char *lp_format_ms(double ms, char out[32]);
const char *lp_format_usd(double usd, char out[32]);
