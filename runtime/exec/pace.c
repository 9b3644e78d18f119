/* The time of passes: see pace.h. */
#include "runtime/exec/pace.h"

#include <stdbool.h>

/* Each pass moves the time of its size by this share at most, so that one that was interrupted counts as any other. */
static const double step = 0.05;
/* Each pass makes the times of all other sizes count less. Sizes that were too slow are tried again so; and the time
 * without prompts, while there are always some, shrinks until passes are so short that it is measured again. */
static const double fade = 0.999;
/* The rows that are added while nothing is known. */
enum { FIRST_ROWS = 7 };

/* A pass counts as one of the next size. */
static const int64_t size[LP_PACE_SIZES] = {1,   2,   3,   4,   5,   6,   7,   8,   10,  12,  14,  16,
                                            20,  24,  28,  32,  40,  48,  56,  64,  80,  96,  112, 128,
                                            160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, LP_PASS_MOST_ROWS};

static int index_of(int64_t rows) {
  int i = 0;
  while (i < LP_PACE_SIZES && size[i] < rows)
    i++;
  return i;
}

static bool is_known(const lp_pace *pace, int i) {
  return pace->of[i].passes > 0;
}

void lp_pace_note(lp_pace *pace, int64_t rows, double ms) {
  int at = index_of(rows);
  if (at == LP_PACE_SIZES) return;
  for (int i = 0; i < LP_PACE_SIZES; i++)
    if (i != at) pace->of[i].ms *= fade;
  double share = 1 / (double)++pace->of[at].passes, *known = &pace->of[at].ms;
  if (share < step) share = step;
  if (*known <= 0 || share >= 1)
    *known = ms;
  else if (ms > *known * (1 + share))
    *known *= 1 + share;
  else
    *known = ms < *known * (1 - share) ? *known * (1 - share) : ms;
}

/* The time of `rows` rows, or a lower bound: that of fewer rows, or the same time for each row as in a longer pass. 0:
 * nothing is known. */
static double time_of(const lp_pace *pace, int64_t rows) {
  int at = index_of(rows);
  for (int i = at; i >= 0; i--)
    if (is_known(pace, i)) return pace->of[i].ms;
  for (int i = at + 1; i < LP_PACE_SIZES; i++)
    if (is_known(pace, i)) return pace->of[i].ms * (double)rows / (double)size[i];
  return 0;
}

/* The rows of a pass that lasts at most `limit` ms, never fewer than `least`. */
static int64_t rows_within(const lp_pace *pace, int from, int64_t least, double limit) {
  int64_t most = least, next = 0; /* next: the first size after `most` that no pass had */
  for (int i = from + 1; i < LP_PACE_SIZES; i++) {
    if (!is_known(pace, i)) {
      if (next == 0) next = size[i];
    } else if (pace->of[i].ms <= limit) {
      most = size[i];
      next = 0;
    } else {
      break;
    }
  }
  return next > 0 ? next : most;
}

int64_t lp_pace_rows(const lp_pace *pace, int64_t least) {
  return lp_pace_rows_stretched(pace, least, pace->stretch > 0 ? pace->stretch : LP_PROMPT_STRETCH);
}

int64_t lp_pace_rows_stretched(const lp_pace *pace, int64_t least, double stretch) {
  int from = index_of(least);
  if (from == LP_PACE_SIZES) return least;
  double limit = stretch * time_of(pace, least);
  return limit <= 0 ? least + FIRST_ROWS : rows_within(pace, from, least, limit);
}

int64_t lp_pace_most(const lp_pace *pace) {
  int from = index_of(LP_PASS_ROWS);
  bool is_short = is_known(pace, from) && pace->of[from].ms <= LP_PASS_SHORT_MS;
  return is_short ? rows_within(pace, from, LP_PASS_ROWS, LP_PASS_SHORT_MS) : LP_PASS_ROWS;
}
