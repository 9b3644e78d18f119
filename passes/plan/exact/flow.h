/* Maximum flow between two nodes, and the cut that it finds. */
#pragma once

#include "base/base.h"

enum { LP_FLOW_SOURCE, LP_FLOW_SINK, LP_FLOW_FIRST };

typedef struct {
  int32_t from, to;
  double capacity, back; /* from -> to, to -> from; infinite ones are allowed */
  double flow;           /* out: the net flow, from -> to */
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
  double work;                  /* number of arcs visited so far */
} lp_flow;

/* Lists the arcs of each node. Call it once, when all edges are there. */
void lp_flow_index(lp_flow *flow, lp_arena *arena);
/* The value of a maximum flow, up to rounding; infinite when no cut separates the two. */
double lp_flow_solve(lp_flow *flow);
