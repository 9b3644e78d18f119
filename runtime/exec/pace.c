/* The time of passes: see pace.h. */
#include "runtime/exec/pace.h"

#include "runtime/exec/batch.h"

/* A pass may last this many times as long as one with a single row. With the row of another client and the gaps between
 * its tokens, its time per token stays within twice the time without the others. */
static const double stretch = 1.6;
/* Each pass makes earlier ones count less by this factor. */
static const double keep = 0.98;
/* The least spread of rows, as a variance, from which a line is drawn. */
static const double least_spread = 0.25;
/* The rows of a client in a pass while their price is not known. */
enum { FIRST_ROWS = 8 };

void lp_pace_note(lp_pace *pace, int64_t rows, double ms) {
  double r = (double)rows;
  pace->weight = keep * pace->weight + 1;
  pace->rows = keep * pace->rows + r;
  pace->ms = keep * pace->ms + ms;
  pace->rows_rows = keep * pace->rows_rows + r * r;
  pace->rows_ms = keep * pace->rows_ms + r * ms;
}

/* Least squares: ms = fixed + slope * rows. */
int64_t lp_pace_rows(const lp_pace *pace) {
  double n = pace->weight, rows = pace->rows / (n > 0 ? n : 1), ms = pace->ms / (n > 0 ? n : 1);
  double spread = n > 0 ? pace->rows_rows / n - rows * rows : 0;
  if (spread < least_spread) return FIRST_ROWS;
  double slope = (pace->rows_ms / n - rows * ms) / spread, fixed = ms - slope * rows;
  if (slope <= 0) return INT64_MAX;
  double most = stretch + (stretch - 1) * fixed / slope; /* fixed + most * slope = stretch * (fixed + slope) */
  return most<1 ? 1 : most>(double) LP_PASS_ROWS ? (int64_t)LP_PASS_ROWS : (int64_t)most;
}
