/* A beam search through the graph of both stages (state_graph.h): of the placements of the units so far it keeps those
 * with the least bounds. A bound is the greatest of several, each at prices of its own. At the prices with the highest
 * bound of all, many placements of which none keeps the limits are as good as those that do; where a limit has another
 * price, those that spend too much or too little of it have a greater bound. */
#pragma once

#include "passes/plan/exact/state_graph.h"

/* The most levels, of which twice as many make one plan of the sample (subproblems.c) 0.04 % dearer, and the most
 * bounds: at the best prices, of the least amounts, and two for each price at each level. */
enum { LP_BEAM_LEVELS = 3, LP_BEAM_PRICES = 1 + (LP_EXACT_LIMITS + 1) + 2 * LP_EXACT_LIMITS * LP_BEAM_LEVELS };
/* Several numbers at a time, in the processor's vectors. */
enum { LP_BEAM_WIDE = 2, LP_BEAM_WIDES = (LP_BEAM_PRICES + LP_BEAM_WIDE - 1) / LP_BEAM_WIDE };
typedef double lp_beam_lanes __attribute__((vector_size(LP_BEAM_WIDE * sizeof(double))));

/* Bounds at several prices: first the best ones, then least amounts of limits, then prices around the best. */
typedef struct {
  const lp_exact_states *s;
  lp_exact_state_prices at[LP_BEAM_PRICES];
  double offset[LP_BEAM_PRICES]; /* the sum of the limits, each times its price; of a least amount that limit */
  int count, needs;              /* of all bounds, of the least amounts */
  /* The first end[level] bounds are those of a level: each level adds other prices. */
  int end[LP_BEAM_LEVELS], levels;
  float *rest[LP_BEAM_LEVELS]; /* [state][the bounds that the level adds]; owned; NULL until a beam needs it */
  /* The weights in a bound of a label's objective and limited amounts: the prices by quantity. */
  lp_beam_lanes weight[1 + LP_EXACT_LIMITS][LP_BEAM_WIDES];
  int limited[LP_EXACT_LIMITS], limits; /* the quantities that have a limit */
} lp_beam_bounds;

/* Makes bounds at `price`, which has a high bound, and at prices around it, for at most `levels` levels. Release with
 * lp_beam_bounds_free. */
void lp_beam_bounds_create(const lp_exact_states *s, const double price[LP_EXACT_LIMITS], int levels,
                           lp_beam_bounds *out);
void lp_beam_bounds_free(lp_beam_bounds *b);

typedef struct {
  double most;  /* the search looks only for placements with a smaller objective */
  size_t width; /* placements kept after each step */
  int level;    /* of the bounds */
  /* Called with each placement found, the cheapest first, until it returns true: that placement is feasible. */
  bool (*see)(void *user, unsigned char *const side[LP_STAGE_COUNT]);
  void *user;
  double lowest; /* out: no placement has a smaller objective than this, or `most` */
  int refused;   /* out: placements that were found and were not feasible */
} lp_beam_search;
/* Each step multiplies the placements so far by two sides, and drops those that break a limit, that cost at least
 * `most` or that another one in the same state beats; then those beyond the width. Ends early where none is left. */
void lp_beam_run(lp_beam_bounds *b, lp_beam_search *search);
