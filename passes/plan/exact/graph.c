/* The frontiers of a stage: every situation that earlier decisions can lead to, each once. */
#include "base/item_set.h"
#include "base/map.h"
#include "base/side.h"
#include "passes/plan/exact/exact.h"

enum { MOST_LIVE = 64, MOST_TURNS = 60, MOST_FRONTIERS = 6000, CROSSED = 0x80 };

/* A frontier. Turns count from the oldest turn that still matters, which is even. */
typedef struct {
  unsigned char value[MOST_LIVE]; /* by position in the live list: turn, and CROSSED */
  unsigned char held[MOST_LIVE];  /* bit 1 << side */
  uint64_t paid;                  /* bit t: the message of turn t is paid for */
} frontier;

/* The values and holdings that are live between two units. */
typedef struct {
  int32_t value[MOST_LIVE], hold[MOST_LIVE];
  int32_t value_count, hold_count;
} boundary;

/* A remembered step. Layers are alike: the same frontiers before the same unit lead to the same frontiers after it. */
typedef struct {
  int32_t before, after; /* sets */
  lp_exact_arc (*arc)[LP_SIDE_COUNT];
} memo_step;

typedef struct {
  const lp_exact *x;
  lp_stage stage;
  int32_t anchor;    /* the last unit that reads nothing; up to it, turns keep their numbers */
  bool link_is_free; /* neither the objective nor a limit counts messages */
  lp_item_sets set;  /* of the frontiers that can occur between two units */
  LP_VEC(memo_step) step;
  lp_map *steps; /* the unit's form and the set before it -> step + 1 */
} grapher;

static int compare(const void *left, const void *right) {
  const frontier *f = *(const frontier *const *)left, *g = *(const frontier *const *)right;
  int order = memcmp(f->value, g->value, sizeof f->value);
  if (!order) order = memcmp(f->held, g->held, sizeof f->held);
  return order ? order : (f->paid > g->paid) - (f->paid < g->paid);
}

/* Sorts frontiers; rank[i] is the new position of frontier i. Sets with the same ones are equal then. */
static void sort_set(lp_item_set *set, int32_t *rank) {
  const frontier *from = set->data;
  LP_OWNED(lp_free_at) const frontier **order = lp_alloc((set->count + 1) * sizeof *order);
  frontier *sorted = lp_alloc((set->count + 1) * sizeof *sorted);
  for (size_t i = 0; i < set->count; i++)
    order[i] = &from[i];
  qsort(order, set->count, sizeof *order, compare);
  for (size_t i = 0; i < set->count; i++) {
    sorted[i] = *order[i];
    rank[order[i] - from] = (int32_t)i;
  }
  free(set->data);
  set->data = sorted;
}

/* ---- live values and holdings ------------------------------------------------------------------------------------ */

/* Tells whether it matters to later units of the stage that the side holds this. Bytes are counted over both stages
 * (state_graph.c). */
static bool is_tracked_on(const lp_exact_holding *holding, lp_stage stage, int side) {
  return holding->is_state || holding->ms[stage][side] > 0;
}

static bool is_tracked(const lp_exact_holding *holding, lp_stage stage) {
  return holding->first[stage] != holding->last[stage] &&
         (is_tracked_on(holding, stage, LP_SIDE_DEVICE) || is_tracked_on(holding, stage, LP_SIDE_CLOUD));
}

/* Lists the live values and holdings after unit `index` of `before`: those that its successors read or share. False
 * when they are too many. */
static bool list_live(const grapher *g, const boundary *before, int32_t index, boundary *out) {
  const lp_exact *x = g->x;
  const lp_exact_unit *unit = &x->unit[g->stage][index];
  if (before->value_count + unit->out_count > MOST_LIVE || before->hold_count + unit->hold_count > MOST_LIVE)
    return false;
  for (int32_t i = 0; i < before->value_count; i++)
    if (x->value[g->stage][before->value[i]].last > index) out->value[out->value_count++] = before->value[i];
  for (int32_t i = 0; i < unit->out_count; i++)
    if (x->value[g->stage][unit->out[i]].last > index) out->value[out->value_count++] = unit->out[i];
  for (int32_t i = 0; i < before->hold_count; i++)
    if (x->holding[before->hold[i]].last[g->stage] > index) out->hold[out->hold_count++] = before->hold[i];
  for (int32_t i = 0; i < unit->hold_count; i++) {
    const lp_exact_holding *holding = &x->holding[unit->hold[i]];
    if (is_tracked(holding, g->stage) && holding->first[g->stage] == index)
      out->hold[out->hold_count++] = unit->hold[i];
  }
  return true;
}

static bool list_inputs(const grapher *g, boundary *out) {
  const lp_plan_problem *problem = &g->x->problem[g->stage];
  const lp_exact_value *value = g->x->value[g->stage];
  LP_OWNED(lp_free_at) bool *seen = lp_alloc((size_t)problem->value_count + 1);
  bool fits = true;
  for (int32_t i = 0; i < problem->edge_count && fits; i++) {
    const lp_plan_edge *edge = &problem->edges[i];
    if (edge->producer >= 0 || seen[edge->value] || value[edge->value].last < 0) continue;
    seen[edge->value] = true;
    fits = out->value_count < MOST_LIVE;
    if (fits) out->value[out->value_count++] = edge->value;
  }
  return fits;
}

static int32_t place_of(const int32_t *list, int32_t count, int32_t item) {
  for (int32_t i = 0; i < count; i++)
    if (list[i] == item) return i;
  return -1;
}

/* ---- one unit on one side ---------------------------------------------------------------------------------------- */

/* Turns and crossings by value while a unit is placed; the unit's own outputs follow those before it. */
typedef struct {
  const grapher *g;
  const boundary *before, *after;
  const lp_exact_unit *unit;
  int32_t index;
  frontier at;
} placing;

static void pay(placing *p, int turn, double bytes, lp_exact_arc *arc) {
  const lp_exact *x = p->g->x;
  arc->link_ms += bytes * x->ms_per_byte[turn % 2];
  if (p->at.paid >> turn & 1) return;
  p->at.paid |= (uint64_t)1 << turn;
  arc->link_ms += x->rtt_half;
}

static int turn_on(const placing *p, lp_side side) {
  int turn = 0;
  for (int32_t i = 0; i < p->unit->in_count; i++) {
    int32_t at = place_of(p->before->value, p->before->value_count, p->unit->in[i]);
    int made = p->at.value[at] & ~CROSSED;
    if (made > turn) turn = made;
  }
  return turn + (turn % 2 != (int)side);
}

static void read_inputs(placing *p, lp_side side, lp_exact_arc *arc) {
  const lp_exact_value *value = p->g->x->value[p->g->stage];
  for (int32_t i = 0; i < p->unit->in_count; i++) {
    int32_t at = place_of(p->before->value, p->before->value_count, p->unit->in[i]);
    int turn = p->at.value[at] & ~CROSSED;
    if (turn % 2 == (int)side || (p->at.value[at] & CROSSED)) continue;
    p->at.value[at] |= CROSSED;
    pay(p, turn, value[p->unit->in[i]].bytes, arc);
  }
}

/* Makes the side hold what the unit holds; false when a KV cache is on the other side. */
static bool hold_all(placing *p, lp_side side, unsigned char *held_new, lp_exact_arc *arc) {
  for (int32_t i = 0; i < p->unit->hold_count; i++) {
    int32_t at = place_of(p->before->hold, p->before->hold_count, p->unit->hold[i]);
    const lp_exact_holding *holding = &p->g->x->holding[p->unit->hold[i]];
    unsigned char *mask = at < 0 ? &held_new[i] : &p->at.held[at];
    if (holding->is_state && *mask && !(*mask & 1u << side)) return false;
    if (!(*mask & 1u << side)) arc->fresh |= 1u << i;
    if (is_tracked_on(holding, p->g->stage, (int)side)) *mask |= (unsigned char)(1u << side);
  }
  return true;
}

/* Makes the frontier of everything that is live after the unit, with turns counted anew. */
static bool settle(const placing *p, int turn, const unsigned char *held_new, frontier *out) {
  const boundary *before = p->before, *after = p->after;
  int oldest = MOST_TURNS + 2;
  *out = (frontier){0};
  for (int32_t i = 0; i < after->value_count && !p->g->link_is_free; i++) {
    int32_t at = place_of(before->value, before->value_count, after->value[i]);
    out->value[i] = at < 0 ? (unsigned char)turn : p->at.value[at];
    int made = out->value[i] & ~CROSSED;
    if (made > MOST_TURNS) return false;
    if (made < oldest) oldest = made;
  }
  for (int32_t i = 0; i < after->hold_count; i++) {
    int32_t at = place_of(before->hold, before->hold_count, after->hold[i]);
    int32_t own = at < 0 ? place_of(p->unit->hold, p->unit->hold_count, after->hold[i]) : -1;
    out->held[i] = at < 0 ? held_new[own] : p->at.held[at];
  }
  if (p->g->link_is_free) return true; /* turns and crossings do not matter */
  oldest = p->index < p->g->anchor ? 0 : oldest & ~1;
  for (int32_t i = 0; i < after->value_count; i++)
    out->value[i] = (unsigned char)(out->value[i] - oldest);
  out->paid = after->value_count || p->index < p->g->anchor ? p->at.paid >> oldest : 0;
  return true;
}

static bool place_unit(placing *p, const frontier *from, lp_side side, lp_exact_arc *arc, frontier *out) {
  unsigned char held_new[MOST_LIVE] = {0};
  *arc = (lp_exact_arc){.to = -1};
  p->at = *from;
  if (p->unit->pin >= 0 && p->unit->pin != (int)side) return true;
  if (!hold_all(p, side, held_new, arc)) return true;
  int turn = turn_on(p, side);
  if (turn > MOST_TURNS) return false;
  read_inputs(p, side, arc);
  if (p->unit->is_result && side == LP_SIDE_CLOUD) pay(p, turn, p->g->x->problem[p->g->stage].result_bytes, arc);
  arc->to = 0;
  return settle(p, turn, held_new, out);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* Writes everything that placing the unit depends on, except the frontiers before it, as text. */
static void describe(const placing *p, int32_t set, lp_buf *out) {
  const grapher *g = p->g;
  const lp_exact_unit *unit = p->unit;
  lp_buf_printf(out, "%" PRId32 " %d %d %d:", set, unit->pin, unit->is_result, p->index < g->anchor);
  for (int32_t i = 0; i < unit->in_count; i++)
    lp_buf_printf(out, "%" PRId32 "=%a ", place_of(p->before->value, p->before->value_count, unit->in[i]),
                  g->x->value[g->stage][unit->in[i]].bytes);
  lp_buf_puts(out, ":");
  for (int32_t i = 0; i < p->after->value_count; i++)
    lp_buf_printf(out, "%" PRId32 " ", place_of(p->before->value, p->before->value_count, p->after->value[i]));
  lp_buf_puts(out, ":");
  for (int32_t i = 0; i < unit->hold_count; i++) {
    const lp_exact_holding *holding = &g->x->holding[unit->hold[i]];
    lp_buf_printf(out, "%d%d%d%" PRId32 " ", holding->is_state, is_tracked_on(holding, g->stage, LP_SIDE_DEVICE),
                  is_tracked_on(holding, g->stage, LP_SIDE_CLOUD),
                  place_of(p->before->hold, p->before->hold_count, unit->hold[i]));
  }
  lp_buf_puts(out, ":");
  for (int32_t i = 0; i < p->after->hold_count; i++)
    lp_buf_printf(out, "%" PRId32 ",%" PRId32 " ", place_of(p->before->hold, p->before->hold_count, p->after->hold[i]),
                  place_of(unit->hold, unit->hold_count, p->after->hold[i]));
}

/* Expands both ways out of every frontier of the set `before`. */
static bool expand(grapher *g, placing *p, int32_t before, memo_step *out) {
  const frontier *from = g->set.data[before].data;
  lp_item_set to = {.size = sizeof(frontier)};
  const size_t count = g->set.data[before].count;
  bool fits = true;
  out->before = before;
  out->arc = lp_arena_array(g->x->arena, count, sizeof(lp_exact_arc[LP_SIDE_COUNT]));
  for (size_t i = 0; i < count && fits; i++)
    for (int side = 0; side < LP_SIDE_COUNT && fits; side++) {
      frontier next = {0};
      fits = place_unit(p, &from[i], (lp_side)side, &out->arc[i][side], &next);
      if (fits && out->arc[i][side].to >= 0) out->arc[i][side].to = lp_item_set_add(&to, &next);
      fits = fits && to.count <= MOST_FRONTIERS;
    }
  if (!fits) {
    lp_item_set_free(&to);
    return false;
  }
  int32_t *rank = lp_alloc((to.count + 1) * sizeof *rank);
  sort_set(&to, rank);
  for (size_t i = 0; i < count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      if (out->arc[i][side].to >= 0) out->arc[i][side].to = rank[out->arc[i][side].to];
  free(rank);
  out->after = lp_item_sets_add(&g->set, &to);
  return true;
}

/* Finds the step or expands it; returns its number, or -1. */
static int32_t step_of(grapher *g, placing *p, int32_t before) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  describe(p, before, &key);
  size_t known = (size_t)(uintptr_t)lp_map_get(g->steps, lp_buf_text(&key));
  memo_step made;
  if (!known && expand(g, p, before, &made)) {
    lp_vec_push(&g->step, made);
    known = g->step.count;
    lp_map_put(g->steps, lp_buf_text(&key), (void *)(uintptr_t)known);
  }
  return (int32_t)known - 1;
}

static grapher prepare(const lp_exact *x, lp_stage stage) {
  grapher g = {.x = x, .stage = stage, .anchor = -1, .steps = lp_map_create()};
  g.link_is_free = !(x->weights.link[stage] > 0) && !(x->limit_ms[stage] > 0);
  for (int32_t i = 0; i < x->unit_count[stage]; i++)
    if (!x->unit[stage][i].in_count) g.anchor = i;
  return g;
}

static bool build(grapher *g, lp_exact_graph *out) {
  boundary before = {0};
  if (!list_inputs(g, &before)) return false;
  lp_item_set start = {.size = sizeof(frontier)};
  (void)lp_item_set_add(&start, &(frontier){0});
  int32_t set = lp_item_sets_add(&g->set, &start);
  out->count[0] = 1;
  for (int32_t i = 0; i < g->x->unit_count[g->stage]; i++) {
    boundary after = {0};
    placing p = {.g = g, .before = &before, .after = &after, .unit = &g->x->unit[g->stage][i], .index = i};
    if (p.unit->hold_count > 32 || !list_live(g, &before, i, &after)) return false;
    int32_t step = step_of(g, &p, set);
    if (step < 0) return false;
    out->arc[i] = g->step.data[step].arc;
    set = g->step.data[step].after;
    out->count[i + 1] = (int32_t)g->set.data[set].count;
    before = after;
  }
  return true;
}

bool lp_exact_graph_build(const lp_exact *exact, lp_stage stage, lp_exact_graph *out) {
  grapher g = prepare(exact, stage);
  int32_t count = exact->unit_count[stage];
  *out = (lp_exact_graph){.arc = lp_arena_array(exact->arena, (size_t)count, sizeof *out->arc),
                          .count = LP_NEW_ARRAY(exact->arena, int32_t, count + 1)};
  bool done = build(&g, out);
  lp_item_sets_free(&g.set);
  lp_vec_free(&g.step);
  lp_map_free(g.steps);
  return done;
}
