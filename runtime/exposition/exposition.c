/* Buckets of times and rows, and lines of the text format. */
#include "runtime/exposition/exposition.h"

#include <math.h>

/* In s, and in rows. Times per token are shorter than the others. */
static const double bounds[][LP_HISTOGRAM_BOUNDS] = {
    [LP_BOUNDS_SECONDS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120},
    [LP_BOUNDS_ROWS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}};

void lp_histogram_observe(lp_histogram *histogram, double value) {
  int at = 0;
  if (isnan(value)) return;
  while (at < LP_HISTOGRAM_BOUNDS && value > bounds[histogram->bounds][at])
    at++;
  histogram->below[at]++;
  histogram->sum += value;
}

void lp_exposition_head(lp_buf *out, const char *name, const char *type, const char *help) {
  lp_buf_printf(out, "# HELP llmpart_%s %s\n# TYPE llmpart_%s %s\n", name, help, name, type);
}

/* `suffix`: "_sum"; "": none. */
static void put_name(lp_buf *out, const char *name, const char *suffix, const char *labels) {
  lp_buf_printf(out, labels[0] ? "llmpart_%s%s{%s} " : "llmpart_%s%s%s ", name, suffix, labels);
}

void lp_exposition_count(lp_buf *out, const char *name, const char *labels, uint64_t value) {
  put_name(out, name, "", labels);
  lp_buf_printf(out, "%" PRIu64 "\n", value);
}

void lp_exposition_number(lp_buf *out, const char *name, const char *labels, double value) {
  put_name(out, name, "", labels);
  lp_buf_printf(out, "%.9g\n", value);
}

void lp_exposition_labelled(lp_buf *out, const char *name, uint64_t value, const char *labels, ...) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  va_list args;
  va_start(args, labels);
  lp_buf_vprintf(&text, labels, args);
  va_end(args);
  lp_exposition_count(out, name, lp_buf_text(&text), value);
}

void lp_exposition_single(lp_buf *out, const char *name, const char *type, const char *help, uint64_t value) {
  lp_exposition_head(out, name, type, help);
  lp_exposition_count(out, name, "", value);
}

/* `bound` INFINITY: the last bucket. */
static void put_bucket(lp_buf *out, const char *name, const char *labels, double bound, uint64_t count) {
  lp_buf_printf(out, "llmpart_%s_bucket{%s%sle=\"", name, labels, labels[0] ? "," : "");
  lp_buf_printf(out, isinf(bound) ? "+Inf" : "%g", bound);
  lp_buf_printf(out, "\"} %" PRIu64 "\n", count);
}

void lp_exposition_histogram(lp_buf *out, const char *name, const char *labels, const lp_histogram *histogram) {
  uint64_t count = 0;
  for (int i = 0; i <= LP_HISTOGRAM_BOUNDS; i++) {
    count += histogram->below[i];
    put_bucket(out, name, labels, i < LP_HISTOGRAM_BOUNDS ? bounds[histogram->bounds][i] : INFINITY, count);
  }
  put_name(out, name, "_sum", labels);
  lp_buf_printf(out, "%.9g\n", histogram->sum);
  put_name(out, name, "_count", labels);
  lp_buf_printf(out, "%" PRIu64 "\n", count);
}
