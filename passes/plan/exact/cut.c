/* Both stages as one network with placements as cuts: the source's side is the device. */
#include "passes/plan/exact/cut.h"
#include "base/side.h"

#include <math.h>

/* The price by which an edge's amount is multiplied. The entries of stages and sides follow one another. */
enum {
  PRICE_NONE,
  PRICE_FOREVER, /* infinite: both ends must be on one side, or in one order */
  PRICE_BUSY,    /* [stage][side] per ms of operators */
  PRICE_LINK = PRICE_BUSY + (int)LP_STAGE_COUNT * (int)LP_SIDE_COUNT, /* [stage] per ms of messages */
  PRICE_BYTES = PRICE_LINK + LP_STAGE_COUNT,                          /* [side] */
  PRICE_MOVE = PRICE_BYTES + LP_SIDE_COUNT,                           /* per ms of moving KV caches */
  PRICE_COUNT
};
typedef int price_kind;

enum { DEVICE = LP_SIDE_DEVICE, CLOUD = LP_SIDE_CLOUD, FORWARD = 0, BACK = 1 };

/* A capacity is an amount times a price. For a read's share of a way, the amount is that of a whole path. */
struct lp_cut_edge {
  price_kind kind[2];
  double amount[2];
  int32_t way;     /* slot of the share, -1: none */
  int32_t slot[2]; /* the slots of the units at `from` and `to` in this edge's term, -1: no unit */
};

typedef struct lp_cut_edge cut_edge;

/* State of the construction of the network. */
typedef struct {
  lp_cut *cut;
  const lp_exact *x;
  LP_VEC(cut_edge) edge;
  LP_VEC(lp_flow_edge) flow;
  int32_t node_count;
} network;

typedef struct {
  int32_t node, slot;
  int8_t stage;
} user;

typedef LP_VEC(user) users;

static price_kind busy_kind(int stage, int side) {
  return (int)PRICE_BUSY + (int)LP_SIDE_COUNT * stage + side;
}

static cut_edge *add_edge(network *n, user from, user to) {
  lp_vec_push(&n->flow, ((lp_flow_edge){.from = from.node, .to = to.node}));
  lp_vec_push(&n->edge, ((cut_edge){.way = -1, .slot = {from.slot, to.slot}}));
  return &n->edge.data[n->edge.count - 1];
}

static void set_way(cut_edge *edge, price_kind kind, double amount, int32_t way, int direction) {
  edge->kind[direction] = kind;
  edge->amount[direction] = amount;
  edge->way = way;
}

static void set(cut_edge *edge, price_kind kind, double amount, int direction) {
  set_way(edge, kind, amount, -1, direction);
}

static user new_node(network *n) {
  return (user){n->node_count++, -1, 0};
}

static const user source = {LP_FLOW_SOURCE, -1, 0}, sink = {LP_FLOW_SINK, -1, 0};

/* ---- units and values -------------------------------------------------------------------------------------------- */

static int32_t slots_of(const lp_exact_unit *unit) {
  return unit->in_count + unit->out_count + unit->hold_count + 1;
}

static void number_slots(network *n) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    n->cut->first_slot[stage] = LP_NEW_ARRAY(n->x->arena, int32_t, n->x->unit_count[stage]);
    for (int32_t i = 0; i < n->x->unit_count[stage]; i++) {
      n->cut->first_slot[stage][i] = n->cut->slot_count;
      n->cut->slot_count += slots_of(&n->x->unit[stage][i]);
    }
  }
  n->cut->way = LP_NEW_ARRAY(n->x->arena, double, n->cut->slot_count);
}

static int32_t return_slot(const lp_cut *cut, int stage, int32_t unit) {
  return cut->first_slot[stage][unit] + slots_of(&cut->x->unit[stage][unit]) - 1;
}

static void add_unit(network *n, int stage, int32_t index) {
  const lp_exact_unit *unit = &n->x->unit[stage][index];
  user self = {n->cut->first_node[stage] + index, -1, (int8_t)stage};
  n->cut->unit_edge[stage][index] = (int32_t)n->edge.count;
  set(add_edge(n, source, self), busy_kind(stage, CLOUD), unit->ms[CLOUD], FORWARD);
  set(add_edge(n, self, sink), busy_kind(stage, DEVICE), unit->ms[DEVICE], FORWARD);
  if (!unit->is_result) return;
  price_kind link = (int)PRICE_LINK + stage;
  double ms = n->x->problem[stage].result_bytes * n->x->ms_per_byte[CLOUD];
  set(add_edge(n, source, self), link, ms, FORWARD);
  set_way(add_edge(n, source, self), link, n->x->rtt_half, return_slot(n->cut, stage, index), FORWARD);
}

/* A value crosses at most once in each direction: when it is made on one side and read on the other. */
static void add_value(network *n, int stage, double bytes, user maker, const users *readers) {
  price_kind link = (int)PRICE_LINK + stage;
  double up = bytes * n->x->ms_per_byte[DEVICE], down = bytes * n->x->ms_per_byte[CLOUD];
  for (size_t i = 0; i < readers->count && n->x->rtt_half > 0; i++) {
    cut_edge *edge = add_edge(n, maker, readers->data[i]);
    set_way(edge, link, n->x->rtt_half, readers->data[i].slot, FORWARD);
    set_way(edge, link, n->x->rtt_half, readers->data[i].slot, BACK);
  }
  if (readers->count == 1) {
    cut_edge *edge = add_edge(n, maker, readers->data[0]);
    set(edge, link, up, FORWARD);
    set(edge, link, down, BACK);
    return;
  }
  user above = new_node(n), below = new_node(n);
  set(add_edge(n, maker, above), link, up, FORWARD);
  set(add_edge(n, below, maker), link, down, FORWARD);
  for (size_t i = 0; i < readers->count; i++) {
    set(add_edge(n, above, readers->data[i]), PRICE_FOREVER, 1, FORWARD);
    set(add_edge(n, readers->data[i], below), PRICE_FOREVER, 1, FORWARD);
  }
}

static void add_values(network *n, int stage) {
  const lp_exact *x = n->x;
  int32_t count = x->problem[stage].value_count;
  users *readers = LP_NEW_ARRAY(x->arena, users, count);
  user *maker = LP_NEW_ARRAY(x->arena, user, count);
  n->cut->maker[stage] = LP_NEW_ARRAY(x->arena, int32_t, count);
  for (int32_t i = 0; i < count; i++) {
    maker[i] = source;
    n->cut->maker[stage][i] = -1;
  }
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    int32_t node = n->cut->first_node[stage] + i, slot = n->cut->first_slot[stage][i];
    for (int32_t k = 0; k < unit->in_count; k++)
      lp_vec_push(&readers[unit->in[k]], ((user){node, slot + k, (int8_t)stage}));
    for (int32_t k = 0; k < unit->out_count; k++) {
      maker[unit->out[k]] = (user){node, slot + unit->in_count + k, (int8_t)stage};
      n->cut->maker[stage][unit->out[k]] = i;
    }
  }
  for (int32_t i = 0; i < count; i++) {
    if (readers[i].count) add_value(n, stage, x->value[stage][i].bytes, maker[i], &readers[i]);
    lp_vec_free(&readers[i]);
  }
}

/* ---- holdings ---------------------------------------------------------------------------------------------------- */

/* Charges an amount once if any of the users is on the side. */
static void charge(network *n, const users *list, int side, price_kind kind, double amount) {
  if (!(amount > 0) || !list->count) return;
  user any = list->count == 1 ? list->data[0] : new_node(n);
  set(side == DEVICE ? add_edge(n, any, sink) : add_edge(n, source, any), kind, amount, FORWARD);
  for (size_t i = 0; i < list->count && list->count > 1; i++) {
    user u = list->data[i];
    cut_edge *edge = side == DEVICE ? add_edge(n, u, any) : add_edge(n, any, u);
    set(edge, PRICE_FOREVER, 1, FORWARD);
  }
}

/* Makes one node for all users of a KV cache in a stage, because they are on one side. */
static user tie(network *n, const users *list) {
  user all = new_node(n);
  all.stage = list->data[0].stage;
  for (size_t i = 0; i < list->count; i++) {
    cut_edge *edge = add_edge(n, all, list->data[i]);
    set(edge, PRICE_FOREVER, 1, FORWARD);
    set(edge, PRICE_FOREVER, 1, BACK);
  }
  return all;
}

static bool may_move(const lp_exact_holding *holding) {
  return holding->is_state && holding->first[0] >= 0 && holding->first[1] >= 0 && holding->move_bytes > 0;
}

/* All moves of one direction are one message; each moving cache is charged its part. */
static void add_moves(network *n, int32_t index, user before, user after) {
  const lp_exact_holding *holding = &n->x->holding[index];
  int32_t count = 0;
  for (int32_t i = 0; i < n->x->holding_count; i++)
    count += may_move(&n->x->holding[i]);
  cut_edge *edge = add_edge(n, before, after);
  for (int from = 0; from < LP_SIDE_COUNT; from++)
    set(edge, PRICE_MOVE, holding->move_bytes * n->x->ms_per_byte[from] + n->x->rtt_half / count, from);
}

static void add_holding(network *n, int32_t index, users of_stage[LP_STAGE_COUNT]) {
  const lp_exact_holding *holding = &n->x->holding[index];
  LP_OWNED(lp_free_at) users all = {0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      charge(n, &of_stage[stage], side, busy_kind(stage, side), holding->ms[stage][side]);
    if (holding->is_state && of_stage[stage].count) {
      user tied = tie(n, &of_stage[stage]);
      of_stage[stage].count = 0;
      lp_vec_push(&of_stage[stage], tied);
    }
    for (size_t i = 0; i < of_stage[stage].count; i++)
      lp_vec_push(&all, of_stage[stage].data[i]);
  }
  if (may_move(holding)) add_moves(n, index, of_stage[0].data[0], of_stage[1].data[0]);
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (n->x->limit_bytes[side] > 0) charge(n, &all, side, (int)PRICE_BYTES + side, holding->bytes[side]);
}

static void add_holdings(network *n) {
  const lp_exact *x = n->x;
  users(*list)[LP_STAGE_COUNT] = lp_alloc(((size_t)x->holding_count + 1) * sizeof *list);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++) {
      const lp_exact_unit *unit = &x->unit[stage][i];
      int32_t slot = n->cut->first_slot[stage][i] + unit->in_count + unit->out_count;
      for (int32_t k = 0; k < unit->hold_count; k++)
        lp_vec_push(&list[unit->hold[k]][stage], ((user){n->cut->first_node[stage] + i, slot + k, (int8_t)stage}));
    }
  for (int32_t i = 0; i < x->holding_count; i++) {
    add_holding(n, i, list[i]);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      lp_vec_free(&list[i][stage]);
  }
  free(list);
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

/* Finds the path through a stage on which the last cut changes sides most often; of several the longest. */
typedef struct {
  double *length; /* [unit] up to it */
  int32_t *read;  /* [unit] the read by which the path arrives, -1: it begins here */
} paths;

static const double per_change = 1e6; /* in addition to 1 for each unit of the path */

static paths find_paths(const lp_cut *cut, int stage) {
  const lp_exact *x = cut->x;
  paths p = {.length = lp_alloc(((size_t)x->unit_count[stage] + 1) * sizeof *p.length),
             .read = lp_alloc(((size_t)x->unit_count[stage] + 1) * sizeof *p.read)};
  const unsigned char *side = cut->side[stage];
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    const lp_exact_unit *unit = &x->unit[stage][i];
    p.read[i] = -1;
    for (int32_t k = 0; k < unit->in_count; k++) {
      int32_t maker = cut->maker[stage][unit->in[k]];
      double length = maker < 0 ? 0 : p.length[maker];
      if (side[i] != (maker < 0 ? DEVICE : side[maker])) length += per_change;
      if (p.read[i] >= 0 && length <= p.length[i]) continue;
      p.length[i] = length;
      p.read[i] = k;
    }
    p.length[i]++;
  }
  return p;
}

static void mix_stage(lp_cut *cut, int stage, double share) {
  const lp_exact *x = cut->x;
  paths p = find_paths(cut, stage);
  int32_t last = -1;
  bool returns = false;
  double most = 0;
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    bool result = x->unit[stage][i].is_result;
    double length = p.length[i] + (result && cut->side[stage][i] == CLOUD ? per_change : 0);
    if (length < most) continue;
    last = i;
    most = length;
    returns = result;
  }
  if (returns) cut->way[return_slot(cut, stage, last)] += share;
  while (last >= 0 && p.read[last] >= 0) {
    cut->way[cut->first_slot[stage][last] + p.read[last]] += share;
    last = cut->maker[stage][x->unit[stage][last].in[p.read[last]]];
  }
  free(p.length);
  free(p.read);
}

void lp_cut_mix_way(lp_cut *cut, double share) {
  for (int32_t i = 0; i < cut->slot_count; i++)
    cut->way[i] *= 1 - share;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    mix_stage(cut, stage, share);
}

/* ---- the cut ----------------------------------------------------------------------------------------------------- */

void lp_cut_create(const lp_exact *x, lp_cut *out) {
  *out = (lp_cut){.x = x};
  network n = {.cut = out, .x = x, .node_count = LP_FLOW_FIRST};
  number_slots(&n);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    int32_t count = x->unit_count[stage];
    out->first_node[stage] = n.node_count;
    n.node_count += count;
    out->unit_edge[stage] = LP_NEW_ARRAY(x->arena, int32_t, count);
    out->fixed[stage] = LP_NEW_ARRAY(x->arena, int8_t, count);
    out->side[stage] = LP_NEW_ARRAY(x->arena, unsigned char, count);
    for (int32_t i = 0; i < count; i++) {
      out->fixed[stage][i] = (int8_t)x->unit[stage][i].pin;
      add_unit(&n, stage, i);
    }
    add_values(&n, stage);
  }
  add_holdings(&n);
  out->flow.node_count = n.node_count;
  out->flow.edge_count = (int32_t)n.edge.count;
  if (n.edge.count) {
    out->edge = lp_arena_copy(x->arena, n.edge.data, n.edge.count * sizeof *n.edge.data);
    out->flow.edge = lp_arena_copy(x->arena, n.flow.data, n.flow.count * sizeof *n.flow.data);
  }
  lp_vec_free(&n.edge);
  lp_vec_free(&n.flow);
  lp_flow_index(&out->flow, x->arena);
  lp_cut_mix_way(out, 1);
}

static void set_prices(const lp_exact *x, const lp_exact_duals *duals, double price[PRICE_COUNT]) {
  const double limited = duals->per_objective;
  price[PRICE_NONE] = 0;
  price[PRICE_FOREVER] = INFINITY;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      price[busy_kind(stage, side)] =
          x->weights.busy[stage][side] + duals->per_ms[stage] + limited * x->limited.busy[stage][side];
    price[PRICE_LINK + stage] = x->weights.link[stage] + duals->per_ms[stage] + limited * x->limited.link[stage];
  }
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    price[PRICE_BYTES + side] = duals->per_byte[side];
  price[PRICE_MOVE] = x->weights.move + duals->per_ms[LP_STAGE_PREFILL] + limited * x->limited.move;
}

static double amount_of(const lp_cut *cut, const cut_edge *edge, int direction) {
  return edge->amount[direction] * (edge->way < 0 ? 1 : cut->way[edge->way]);
}

/* Returns the sum that every cut has to pay: the cheaper side of each unit. */
static double set_capacities(lp_cut *cut, const double price[PRICE_COUNT]) {
  double paid = 0;
  for (int32_t i = 0; i < cut->flow.edge_count; i++) {
    const cut_edge *edge = &cut->edge[i];
    cut->flow.edge[i].capacity = price[edge->kind[FORWARD]] * amount_of(cut, edge, FORWARD);
    cut->flow.edge[i].back = price[edge->kind[BACK]] * amount_of(cut, edge, BACK);
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < cut->x->unit_count[stage]; i++) {
      lp_flow_edge *edge = &cut->flow.edge[cut->unit_edge[stage][i]];
      if (cut->fixed[stage][i] >= 0) edge[cut->fixed[stage][i] == CLOUD].capacity = INFINITY;
      double least = fmin(edge[0].capacity, edge[1].capacity);
      edge[0].capacity -= least;
      edge[1].capacity -= least;
      paid += least;
    }
  return paid;
}

/* Sums the amount of each limited quantity that the cut uses. */
static void measure(lp_cut *cut) {
  const lp_exact *x = cut->x;
  double used[PRICE_COUNT] = {0};
  for (int32_t i = 0; i < cut->flow.edge_count; i++) {
    const lp_flow_edge *edge = &cut->flow.edge[i];
    bool from = cut->flow.level[edge->from] >= 0, to = cut->flow.level[edge->to] >= 0;
    if (from != to) used[cut->edge[i].kind[to]] += amount_of(cut, &cut->edge[i], to);
  }
  cut->excess.per_objective = x->limited.move * used[PRICE_MOVE] - x->limit_objective;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const double device = used[busy_kind(stage, DEVICE)], cloud = used[busy_kind(stage, CLOUD)];
    const double link = used[PRICE_LINK + stage];
    cut->excess.per_ms[stage] = device + cloud + link - x->limit_ms[stage];
    cut->excess.per_objective +=
        x->limited.busy[stage][DEVICE] * device + x->limited.busy[stage][CLOUD] * cloud + x->limited.link[stage] * link;
  }
  cut->excess.per_ms[LP_STAGE_PREFILL] += used[PRICE_MOVE];
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    cut->excess.per_byte[side] = used[PRICE_BYTES + side] - x->limit_bytes[side];
}

double lp_cut_solve(lp_cut *cut, const lp_exact_duals *duals) {
  const lp_exact *x = cut->x;
  double price[PRICE_COUNT];
  set_prices(x, duals, price);
  double bound = set_capacities(cut, price);
  bound += lp_flow_solve(&cut->flow);
  if (isinf(bound)) return bound;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      cut->side[stage][i] = cut->flow.level[cut->first_node[stage] + i] >= 0 ? DEVICE : CLOUD;
    bound -= duals->per_ms[stage] * x->limit_ms[stage];
  }
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    bound -= duals->per_byte[side] * x->limit_bytes[side];
  bound -= duals->per_objective * x->limit_objective;
  measure(cut);
  return bound;
}

double *lp_cut_splits(const lp_cut *cut) {
  double *split = LP_NEW_ARRAY(cut->x->arena, double, cut->slot_count);
  for (int32_t i = 0; i < cut->flow.edge_count; i++) {
    const cut_edge *edge = &cut->edge[i];
    if (edge->slot[0] >= 0) split[edge->slot[0]] -= cut->flow.edge[i].flow;
    if (edge->slot[1] >= 0) split[edge->slot[1]] += cut->flow.edge[i].flow;
  }
  return split;
}
