/* The search for prices of a high bound (level.c). A bound is a concave function of the prices; `x` are prices, each
 * times its limit, so that all are amounts of the objective. */
#pragma once

#include <stdbool.h>

enum { LP_LEVEL_PRICES = 8, LP_LEVEL_CUTS = 80 };

/* No bound at any prices exceeds objective + slope * x. */
typedef struct {
  double objective, slope[LP_LEVEL_PRICES];
} lp_level_cut;

typedef struct {
  int size, cut_count, added;
  double best, most,
      at[LP_LEVEL_PRICES]; /* best: the highest bound, at prices `at`; most: not exceeded, or not needed */
  lp_level_cut cut[LP_LEVEL_CUTS];
} lp_level_method;

/* `size`: the number of prices; bounds above `enough` are not looked for. */
void lp_level_begin(lp_level_method *m, int size, double enough);
/* Adds the bound at prices `x`, where it changes by `slope`. */
void lp_level_add(lp_level_method *m, const double *x, double bound, const double *slope);
/* Sets `x` to the prices at which the next bound is to be found; false when a better one can hardly be. */
bool lp_level_next(lp_level_method *m, double *x);
