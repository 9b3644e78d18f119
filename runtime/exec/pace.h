/* The time of batched passes as a function of their rows, which tells how many rows of prompts a pass may take while
 * others wait for their next token. It is a table and not a line, because kernels for few rows and for many differ: ten
 * rows may take three times as long as six. */
#pragma once

#include <stdint.h>

#include "runtime/pass_rules.h"

enum { LP_PACE_SIZES = 36 };

/* The time of passes of about so many rows: the median of those that ran lately. Zero it first. */
typedef struct {
  struct {
    double ms;
    int64_t passes;
  } of[LP_PACE_SIZES];
  double stretch; /* see lp_pace_rows; 0: LP_PROMPT_STRETCH */
} lp_pace;

/* Notes that a pass over `rows` rows, at least one, took `ms`. */
void lp_pace_note(lp_pace *pace, int64_t rows, double ms);
/* The rows of a pass that lasts at most `stretch` times as long as one of `least` rows, which are at least one: never
 * fewer than `least`. Sizes that no pass had are tried one after the other; while nothing is known, a few more rows. */
int64_t lp_pace_rows(const lp_pace *pace, int64_t least);
/* The same with another `stretch`. */
int64_t lp_pace_rows_stretched(const lp_pace *pace, int64_t least, double stretch);
/* The most rows of a pass: LP_PASS_ROWS, or as many as take LP_PASS_SHORT_MS; larger sizes are tried likewise. */
int64_t lp_pace_most(const lp_pace *pace);
