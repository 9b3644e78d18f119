/* Branch and bound on minimum cuts: closes the gap between the bound and the best placement found. */
#ifndef LP_PLAN_BRANCH_H
#define LP_PLAN_BRANCH_H

#include "passes/plan/exact/cut.h"

typedef struct lp_cut_search {
  /* Called with each cut, at prices that prove `bound`; returns the least objective known so far, infinite when there
   * is none. */
  double (*see)(struct lp_cut_search *search, unsigned char *const side[LP_STAGE_COUNT], double bound);
  double known;         /* the least objective, as `see` returns it */
  double effort;        /* the arcs that the flows may look at in all */
  bool complete;        /* out: no placement below `known` is left */
  double bound;         /* out: what the prices prove */
  double lowest;        /* out: what the search proves */
  lp_exact_duals duals; /* the best prices; the way that belongs to them is the cut's */
} lp_cut_search;
/* Searches for the best prices from `duals` on. Sets bound, duals, the cut's way and last flow. */
void lp_cut_search_prices(lp_cut *cut, lp_cut_search *search);
/* Divides the placements until no part is left or the effort is spent. Leaves the cut as it was. */
void lp_cut_search_parts(lp_cut *cut, lp_cut_search *search);

#endif
