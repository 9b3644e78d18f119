/* Maximum flow by blocking flows along shortest paths (Dinic, 1970). */
#include "passes/plan/exact/cut.h"

#include <math.h>

static const double rounding = 1e-14; /* a share of the largest capacity; a smaller rest counts as none */

void lp_flow_index(lp_flow *flow, lp_arena *arena) {
  flow->first = LP_NEW_ARRAY(arena, int32_t, flow->node_count + 1);
  flow->arc = LP_NEW_ARRAY(arena, lp_flow_arc, 2 * flow->edge_count);
  flow->level = LP_NEW_ARRAY(arena, int32_t, flow->node_count);
  flow->next = LP_NEW_ARRAY(arena, int32_t, flow->node_count);
  flow->path = LP_NEW_ARRAY(arena, int32_t, flow->node_count);
  for (int32_t i = 0; i < flow->edge_count; i++) {
    flow->first[flow->edge[i].from + 1]++;
    flow->first[flow->edge[i].to + 1]++;
  }
  for (int32_t i = 0; i < flow->node_count; i++)
    flow->first[i + 1] += flow->first[i];
  memcpy(flow->next, flow->first, (size_t)flow->node_count * sizeof *flow->next);
  for (int32_t i = 0; i < flow->edge_count; i++) {
    const lp_flow_edge *edge = &flow->edge[i];
    int32_t there = flow->next[edge->from]++, back = flow->next[edge->to]++;
    flow->arc[there] = (lp_flow_arc){.to = edge->to, .edge = i, .mate = back, .forward = true};
    flow->arc[back] = (lp_flow_arc){.to = edge->from, .edge = i, .mate = there};
  }
}

/* Computes levels, the distances from the source. False when the sink cannot be reached. */
static bool set_levels(lp_flow *flow, double least) {
  int32_t *queue = flow->path, count = 1;
  memset(flow->level, -1, (size_t)flow->node_count * sizeof *flow->level);
  flow->level[LP_FLOW_SOURCE] = 0;
  queue[0] = LP_FLOW_SOURCE;
  for (int32_t k = 0; k < count; k++) {
    int32_t node = queue[k];
    flow->work += flow->first[node + 1] - flow->first[node];
    for (int32_t i = flow->first[node]; i < flow->first[node + 1]; i++) {
      int32_t to = flow->arc[i].to;
      if (flow->arc[i].left <= least || flow->level[to] >= 0) continue;
      flow->level[to] = flow->level[node] + 1;
      queue[count++] = to;
    }
  }
  return flow->level[LP_FLOW_SINK] >= 0;
}

/* Fills the path of `length` arcs to the sink; returns the number of its arcs that still have room. */
static int32_t push(lp_flow *flow, int32_t length, double least, double *value) {
  double amount = INFINITY;
  int32_t room = length;
  for (int32_t i = 0; i < length; i++)
    if (flow->arc[flow->path[i]].left < amount) amount = flow->arc[flow->path[i]].left;
  *value += amount;
  if (isinf(amount)) return 0;
  for (int32_t i = length; i-- > 0;) {
    lp_flow_arc *arc = &flow->arc[flow->path[i]];
    flow->edge[arc->edge].flow += arc->forward ? amount : -amount;
    flow->arc[arc->mate].left += amount;
    arc->left -= amount;
    if (arc->left <= least) room = i;
  }
  return room < length ? room : 0;
}

/* Finds a blocking flow of the levels. */
static double block(lp_flow *flow, double least) {
  int32_t length = 0, node = LP_FLOW_SOURCE;
  double value = 0;
  memcpy(flow->next, flow->first, (size_t)flow->node_count * sizeof *flow->next);
  while (!isinf(value)) {
    if (node == LP_FLOW_SINK) {
      length = push(flow, length, least, &value);
      node = length ? flow->arc[flow->path[length - 1]].to : LP_FLOW_SOURCE;
      continue;
    }
    int32_t i = flow->next[node], end = flow->first[node + 1];
    while (i < end && (flow->arc[i].left <= least || flow->level[flow->arc[i].to] != flow->level[node] + 1))
      i++;
    flow->work += i - flow->next[node] + 1;
    flow->next[node] = i;
    if (i < end) {
      flow->path[length++] = i;
      node = flow->arc[i].to;
    } else if (length) { /* a dead end */
      flow->level[node] = -2;
      node = flow->arc[flow->arc[flow->path[--length]].mate].to;
    } else {
      break;
    }
  }
  return value;
}

double lp_flow_solve(lp_flow *flow) {
  double most = 0, value = 0;
  LP_FOR_EACH(lp_flow_edge, edge, flow->edge, flow->edge_count) {
    edge->flow = 0;
    if (!isinf(edge->capacity)) most = fmax(most, edge->capacity);
    if (!isinf(edge->back)) most = fmax(most, edge->back);
  }
  LP_FOR_EACH(lp_flow_arc, arc, flow->arc, 2 * flow->edge_count)
    arc->left = arc->forward ? flow->edge[arc->edge].capacity : flow->edge[arc->edge].back;
  while (!isinf(value) && set_levels(flow, rounding * most))
    value += block(flow, rounding * most);
  return value;
}
