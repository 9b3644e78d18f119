/* Planning graphs of any form: the exact scheduler where frontiers are too many.
 *
 * At given prices of the limits, the cheapest placement of both stages is nearly a minimum cut: operators' times, bytes
 * that cross, weights that several share and KV caches that move are all submodular. What is not is the fixed cost of
 * messages. A stage sends at least as many as sides change along any one path through it, so each read is charged its
 * share of a mixture of paths, the `way`; any mixture gives a valid bound. Branch and bound closes what is left.
 */
#ifndef LP_PLAN_CUT_H
#define LP_PLAN_CUT_H

#include "passes/plan/exact/exact.h"

/* ---- maximum flow (flow.c) --------------------------------------------------------------------------------------- */

enum { LP_FLOW_SOURCE, LP_FLOW_SINK, LP_FLOW_FIRST };

typedef struct {
  int32_t from, to;
  double capacity, back; /* from -> to, to -> from; infinite ones are allowed */
  double flow;           /* found: net, from -> to */
} lp_flow_edge;

/* An edge seen from one of its ends. */
typedef struct {
  int32_t to, edge, mate; /* mate: the arc the other way */
  bool forward;
  double left; /* capacity that no flow uses yet */
} lp_flow_arc;

typedef struct {
  lp_flow_edge *edge;
  int32_t node_count, edge_count;
  lp_flow_arc *arc;
  int32_t *first;               /* [node + 1] arcs by the node that they leave */
  int32_t *level, *next, *path; /* level: not negative on the source's side of the cut that was found */
  double work;                  /* arcs looked at, in all */
} lp_flow;

/* Lists the arcs of each node; once, when all edges are there. */
void lp_flow_index(lp_flow *flow, lp_arena *arena);
/* The value of a maximum flow, up to rounding; infinite when no cut separates the two. */
double lp_flow_solve(lp_flow *flow);

/* ---- cuts (cut.c) -------------------------------------------------------------------------------------------------- */

/* What a unit's share of the bound is kept in: a slot for each value read, each value made, each holding, and one for the
 * token that returns. */
typedef struct {
  const lp_exact *x;
  lp_flow flow;
  struct lp_cut_edge *edge; /* what capacities are made of */
  int32_t *first_slot[LP_STAGE_COUNT], slot_count;
  int32_t *maker[LP_STAGE_COUNT];      /* [value] unit, -1: an input, on the device */
  int32_t first_node[LP_STAGE_COUNT];  /* of units */
  int32_t *unit_edge[LP_STAGE_COUNT];  /* from the source; the next one goes to the sink */
  double *way;                         /* [slot] share of the paths that go through a read, or through the return */
  int8_t *fixed[LP_STAGE_COUNT];       /* [unit] the side that it must have, -1: any */
  unsigned char *side[LP_STAGE_COUNT]; /* [unit] of the cut found last */
  lp_exact_duals excess;               /* how far that cut is above the limits */
} lp_cut;

/* The network, with each stage's longest path as its way. */
void lp_cut_create(const lp_exact *x, lp_cut *out);
/* The bound at given prices; infinite when what is fixed contradicts itself. */
double lp_cut_solve(lp_cut *cut, const lp_exact_duals *duals);
/* Mixes `share` of the path on which the last cut changes sides most often into each stage's way. */
void lp_cut_mix_way(lp_cut *cut, double share);
/* What both stages hold, divided among them as the last flow has it: shares and residence. */
void lp_cut_divide(const lp_cut *cut, lp_exact_prices *prices);
/* By slot: what the last flow moves between a unit and the term that the slot belongs to. Minima of all terms, and of the
 * units with what was moved, add up to the flow's value: a proof that needs no flow. */
double *lp_cut_splits(const lp_cut *cut);

/* ---- branch and bound (branch.c) ---------------------------------------------------------------------------------- */

typedef struct lp_cut_search {
  /* Sees the cut at prices that prove `bound`; returns the least objective known so far, infinite when none. */
  double (*see)(struct lp_cut_search *search, unsigned char *const side[LP_STAGE_COUNT], double bound);
  double known;         /* the least objective, as `see` returns it */
  double effort;        /* arcs of flows that may have been looked at in the end */
  bool complete;        /* out: nothing below what is known is left */
  double bound;         /* out: what the prices prove */
  double lowest;        /* out: what the search proves */
  lp_exact_duals duals; /* the best prices; the way that goes with them is the cut's */
} lp_cut_search;
/* Looks for the best prices from `duals` on: bound, duals, the cut's way and last flow. */
void lp_cut_search_prices(lp_cut *cut, lp_cut_search *search);
/* Divides the placements until nothing is left or the effort is spent; the cut is left as it was. */
void lp_cut_search_parts(lp_cut *cut, lp_cut_search *search);

#endif
