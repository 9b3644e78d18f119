/* The time of batched passes as a function of their rows, which tells how many rows of one client a pass may take while
 * others wait for their next token. */
#ifndef LP_PACE_H
#define LP_PACE_H

#include <stdint.h>

/* The time that passes take, as a straight line over their rows: weighted sums of the last passes. Zero it first. */
typedef struct {
  double weight, rows, ms, rows_rows, rows_ms;
} lp_pace;

/* Notes that a pass over `rows` rows took `ms`. */
void lp_pace_note(lp_pace *pace, int64_t rows, double ms);
/* The rows with which a pass lasts about 1.6 times as long as with one; INT64_MAX: rows take no time. While
 * nothing is known, a few. */
int64_t lp_pace_rows(const lp_pace *pace);

#endif
