/* Minimum cuts: the exact scheduler for graphs of any form, where frontiers are too many.
 *
 * At given prices of the limits, the cheapest placement of both stages is nearly a minimum cut: operators' times,
 * bytes that cross, weights that several operators share and KV caches that move are all submodular. The fixed cost of
 * messages is not. A stage sends at least as many messages as sides change along any one path through it, so each read
 * is charged its share of a mixture of paths, the `way`. Any mixture gives a valid bound. Branch and bound closes the
 * remaining gap. */
#pragma once

#include "passes/plan/exact/exact.h"
#include "passes/plan/exact/flow.h"

/* The network. A unit's share of the bound is kept in slots: one for each value that it reads, each value that it
 * makes, each holding, and one for the returning token. */
typedef struct {
  const lp_exact *x;
  lp_flow flow;
  struct lp_cut_edge *edge; /* the amounts and prices from which capacities are computed */
  int32_t *first_slot[LP_STAGE_COUNT], slot_count;
  int32_t *maker[LP_STAGE_COUNT];      /* [value] the unit that makes it; -1: an input, on the device */
  int32_t first_node[LP_STAGE_COUNT];  /* of units */
  int32_t *unit_edge[LP_STAGE_COUNT];  /* the edge from the source; the edge to the sink follows it */
  double *way;                         /* [slot] share of the paths that use a read or the return */
  int8_t *fixed[LP_STAGE_COUNT];       /* [unit] the side on which it is fixed, -1: any */
  unsigned char *side[LP_STAGE_COUNT]; /* [unit] its side in the last cut */
  lp_exact_duals excess;               /* amounts by which that cut exceeds the limits */
} lp_cut;

/* Creates the network, with each stage's longest path as its way. */
void lp_cut_create(const lp_exact *x, lp_cut *out);
/* The bound at given prices; infinite when the fixed sides contradict each other. */
double lp_cut_solve(lp_cut *cut, const lp_exact_duals *duals);
/* Mixes `share` of the path on which the last cut changes sides most often into each stage's way. */
void lp_cut_mix_way(lp_cut *cut, double share);
/* Returns, by slot, the flow that the last solution moves between a unit and the slot's term. The minima of all terms,
 * and of the units after these transfers, add up to the flow's value, which proves it without a flow. */
double *lp_cut_splits(const lp_cut *cut);
