/* runtime/exposition: figures in the text format of Prometheus (version 0.0.4). It knows no program's figures. Every
 * name gets the prefix "llmpart_". Nothing here locks: a histogram belongs to whoever holds its owner's lock. */
#pragma once

#include "base/base.h"

/* The upper bounds of a histogram's buckets: 0.5 ms to 120 s, or 1 to 256 rows of a pass. */
typedef enum { LP_BOUNDS_SECONDS, LP_BOUNDS_ROWS } lp_bounds;
enum { LP_HISTOGRAM_BOUNDS = 16 };

/* A histogram of all zeros is one of seconds without observations. */
typedef struct {
  lp_bounds bounds;
  uint64_t below[LP_HISTOGRAM_BOUNDS + 1]; /* observations in each bucket, the last one without a bound */
  double sum;
} lp_histogram;

/* Notes a value; NaN is none. */
void lp_histogram_observe(lp_histogram *histogram, double value);

/* Writes the lines HELP and TYPE of a metric, before all of its values. */
void lp_exposition_head(lp_buf *out, const char *name, const char *type, const char *help);
/* Writes a value. `labels`: `route="edge"`, whose values have no quotes, backslashes or line ends; "": none. */
void lp_exposition_count(lp_buf *out, const char *name, const char *labels, uint64_t value);
void lp_exposition_number(lp_buf *out, const char *name, const char *labels, double value);
/* The same with labels in the format of printf. */
void lp_exposition_labelled(lp_buf *out, const char *name, uint64_t value, const char *labels, ...) LP_PRINTF(4, 5);
/* Writes a metric that has one value and no labels. */
void lp_exposition_single(lp_buf *out, const char *name, const char *type, const char *help, uint64_t value);
void lp_exposition_histogram(lp_buf *out, const char *name, const char *labels, const lp_histogram *histogram);
