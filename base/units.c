/* Numbers with units, from text and to text. */
#include "base/units.h"
#include "base/base.h"

#include <errno.h>
#include <math.h>

/* Reads digits, fraction and exponent; unlike strtod it reads no hex, infinities, signs or leading space. `rest`
 * receives the rest of the text. */
static bool read_number(const char *text, double *value, const char **rest) {
  const char *p = text;
  size_t digits = strspn(p, "0123456789");
  p += digits;
  if (*p == '.') {
    size_t fraction = strspn(++p, "0123456789");
    digits += fraction;
    p += fraction;
  }
  if (digits == 0) return false;
  if (*p == 'e' || *p == 'E') {
    const char *exponent = p + 1 + (p[1] == '+' || p[1] == '-');
    size_t length = strspn(exponent, "0123456789");
    if (length) p = exponent + length;
  }
  *value = strtod(text, NULL);
  *rest = p;
  return isfinite(*value);
}

static const lp_unit *find_unit(const char *text, const lp_unit *units, size_t count) {
  while (*text == ' ')
    text++;
  for (size_t i = 0; i < count; i++)
    if (strcmp(text, units[i].name) == 0) return &units[i];
  return NULL;
}

lp_status lp_parse_unit(const char *text, const lp_unit *units, size_t count, const char *wanted, double *value,
                        lp_diag *diag, lp_loc loc) {
  const char *rest = NULL;
  double number = 0;
  const lp_unit *u = NULL;
  if (read_number(text, &number, &rest)) u = find_unit(rest, units, count);
  if (!u || !isfinite(number * u->factor)) return lp_error(diag, loc, "'%s' is not %s", text, wanted);
  *value = number * u->factor;
  return LP_OK;
}

lp_status lp_parse_time_ms(const char *text, double *ms, lp_diag *diag, lp_loc loc) {
  static const lp_unit units[] = {{"", 1},     {"ms", 1},        {"us", 1e-3}, {"ns", 1e-6},
                                  {"s", 1000}, {"min", 60000.0}, {"h", 3.6e6}};
  return lp_parse_unit(text, units, LP_COUNT(units), "a time such as 400ms, 0.1s or 20us", ms, diag, loc);
}

lp_status lp_parse_rate_bps(const char *text, double *bps, lp_diag *diag, lp_loc loc) {
  static const lp_unit units[] = {{"", 1},
                                  {"bit/s", 1},
                                  {"kbit/s", 1e3},
                                  {"Mbit/s", 1e6},
                                  {"Gbit/s", 1e9},
                                  {"bps", 1},
                                  {"kbps", 1e3},
                                  {"Mbps", 1e6},
                                  {"Gbps", 1e9},
                                  {"kb/s", 1e3},
                                  {"Mb/s", 1e6},
                                  {"Gb/s", 1e9},
                                  {"B/s", 8},
                                  {"kB/s", 8e3},
                                  {"MB/s", 8e6},
                                  {"GB/s", 8e9},
                                  {"KiB/s", 8192},
                                  {"MiB/s", 8.0 * 1048576},
                                  {"GiB/s", 8.0 * 1073741824},
                                  {"Tbit/s", 1e12}};
  return lp_parse_unit(text, units, LP_COUNT(units), "a rate such as 100Mbit/s, 1Gbit/s or 12MB/s", bps, diag, loc);
}

/* Whole numbers are multiplied exactly; fractions go through double. */
lp_status lp_parse_size(const char *text, int64_t *bytes, lp_diag *diag, lp_loc loc) {
  static const lp_unit units[] = {
      {"", 1},      {"B", 1},      {"kB", 1e3},      {"KB", 1e3},         {"MB", 1e6},   {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"kiB", 1024}, {"TiB", 1099511627776.0}};
  const char *rest = NULL;
  double number = 0;
  const lp_unit *u = NULL;
  if (read_number(text, &number, &rest)) u = find_unit(rest, units, LP_COUNT(units));
  if (!u) return lp_error(diag, loc, "'%s' is not a size such as 4GiB, 512MB or 1024", text);
  char *end = NULL;
  errno = 0;
  long long whole = strtoll(text, &end, 10);
  bool fits = errno == 0;
  if (end == rest) {
    fits = fits && lp_i64_mul(whole, (int64_t)u->factor, bytes);
  } else {
    double size = round(number * u->factor);
    fits = size < 9223372036854775808.0;
    if (fits) *bytes = (int64_t)size;
  }
  if (!fits) return lp_error(diag, loc, "'%s' is more than a size can be: 2^63 bytes", text);
  return LP_OK;
}

lp_status lp_parse_double(const char *text, double *value, lp_diag *diag, lp_loc loc) {
  const char *rest = NULL;
  double number = 0;
  if (!read_number(text, &number, &rest) || *rest) return lp_error(diag, loc, "'%s' is not a number >= 0", text);
  *value = number;
  return LP_OK;
}

lp_status lp_parse_share(const char *text, double *value, lp_diag *diag, lp_loc loc) {
  static const lp_unit units[] = {{"", 1}, {"%", 0.01}};
  return lp_parse_unit(text, units, LP_COUNT(units), "a share such as 0.01 or 1%", value, diag, loc);
}

lp_status lp_parse_signed(const char *text, double *value, lp_diag *diag, lp_loc loc) {
  const char *digits = text + (*text == '-');
  if (lp_parse_double(digits, value, NULL, loc) != LP_OK) return lp_error(diag, loc, "'%s' is not a number", text);
  if (*text == '-') *value = -*value;
  return LP_OK;
}

lp_status lp_parse_i64(const char *text, int64_t min, int64_t max, int64_t *value, lp_diag *diag, lp_loc loc) {
  const char *digits = text + (*text == '-' || *text == '+');
  size_t length = strspn(digits, "0123456789");
  errno = 0;
  long long number = strtoll(text, NULL, 10);
  if (length == 0 || digits[length]) return lp_error(diag, loc, "'%s' is not a whole number", text);
  if (errno || number < min || number > max)
    return lp_error(diag, loc, "'%s' is not in the range %" PRId64 " to %" PRId64, text, min, max);
  *value = number;
  return LP_OK;
}

const char *lp_format_bytes(double bytes, char out[32]) {
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t i = 0;
  while (fabs(bytes) >= 1024 && i + 1 < LP_COUNT(names)) {
    bytes /= 1024;
    i++;
  }
  snprintf(out, 32, i ? "%.1f %s" : "%.0f %s", bytes, names[i]);
  return out;
}

const char *lp_format_rate(double bps, char out[32]) {
  static const char *const names[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  size_t i = 0;
  while (fabs(bps) >= 1000 && i + 1 < LP_COUNT(names)) {
    bps /= 1000;
    i++;
  }
  snprintf(out, 32, "%.4g %s", bps, names[i]);
  return out;
}

const char *lp_format_ms(double ms, char out[32]) {
  static const lp_unit units[] = {{"s", 1e3}, {"ms", 1}, {"us", 1e-3}, {"ns", 1e-6}};
  size_t i = 0;
  if (!isfinite(ms) || ms == 0) {
    (void)snprintf(out, 32, isfinite(ms) ? "0" : "-");
    return out;
  }
  /* 999.5 of a unit would round to four digits. */
  while (i + 1 < LP_COUNT(units) && fabs(ms) < 0.9995 * units[i].factor)
    i++;
  const double value = ms / units[i].factor;
  const int decimals = fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;
  (void)snprintf(out, 32, "%.*f %s", decimals, value, units[i].name);
  return out;
}

const char *lp_format_usd(double usd, char out[32]) {
  enum { MOST_DECIMALS = 15 };
  const double size = fabs(usd);
  /* Prices below a hundredth of a cent have no exponent. 0.000099996 is rounded to 0.000100. */
  const int decimals = size > 0 && size < 1e-4 ? 2 - (int)floor(log10(size * (1 + 5e-4))) : 0;
  if (!isfinite(usd) || usd == 0)
    (void)snprintf(out, 32, isfinite(usd) ? "0" : "-");
  else if (decimals > 0 && decimals <= MOST_DECIMALS)
    (void)snprintf(out, 32, "%.*f", decimals, usd);
  else
    (void)snprintf(out, 32, size >= 99.95 ? "%.0f" : "%#.3g", usd);
  return out;
}
