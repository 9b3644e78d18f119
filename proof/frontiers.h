/* The graph of all placements of one stage, or of both, unit by unit. A frontier is what the decisions so far mean
 * for the units to come: the turn of each value that is still to be read and whether it has crossed, the turns whose
 * message is paid for, the sides that hold weights and caches of later units, and the largest activations. A placement
 * is a path of arcs, and the sums along the path are those of lp_certificate_add_up. */
#pragma once

#include "proof/certificate.h"

/* The limited quantities: times of the stages, then bytes of the sides. */
enum { LIMIT_COUNT = 4 };

/* One unit on one side. */
typedef struct {
  double objective, amount[LIMIT_COUNT];
  int32_t to;     /* the frontier after it; -1: a pin or a cache forbids it */
  int32_t cached; /* in a graph of one stage: the caches that could move and that the arc puts on the device */
  int32_t sent;   /* messages, where their number counts */
} frontier_arc;

/* Equal steps share their arcs: layers are alike. */
typedef struct {
  int32_t count; /* frontiers before it */
  frontier_arc (*arc)[LP_SIDE_COUNT];
} frontier_step;

typedef struct {
  frontier_step *step;
  size_t step_count;
  int32_t last_count; /* frontiers after the last step */
} frontier_graph;

/* Tells whether a holding is a cache that moves when prefill and decode have it on different sides. */
bool frontiers_can_move(const lp_certificate_holding *h);
/* Makes the graph of the stages of the mask (bit 1 << stage), in the certificate's arena. A graph of one stage leaves
 * out what the other stage holds, and the moves of caches. False when there are too many frontiers. */
bool frontiers_build(const lp_certificate *c, unsigned stages, frontier_graph *out);
