/* The best prices of the limits for minimum cuts. */
#pragma once

#include "passes/plan/exact/cut.h"

typedef struct lp_cut_search {
  /* Called with each cut, at prices that prove `bound`. Returns the least objective known so far, or infinity when none
   * is known. */
  double (*see)(struct lp_cut_search *search, unsigned char *const side[LP_STAGE_COUNT], double bound);
  double known;         /* the least objective, as `see` returns it */
  double effort;        /* the number of arcs that all flows together may visit */
  bool complete;        /* out: no placement below `known` is left */
  double bound;         /* out: the bound that the prices prove */
  lp_exact_duals duals; /* the best prices; the cut holds the way that belongs to them */
} lp_cut_search;
/* Searches for the best prices from `duals` on. Sets bound, duals, the cut's way and last flow. */
void lp_cut_search_prices(lp_cut *cut, lp_cut_search *search);
