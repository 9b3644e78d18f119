/* Orders the units of both stages, lists the states between them, each once, and the arcs from state to state. */
#include "passes/plan/exact/state_graph.h"
#include "base/item_set.h"
#include "base/map.h"
#include "base/side.h"

#include <math.h>

/* The most states at one place. */
enum { MOST_STATES = 60000 };

/* The most holdings of both stages that can be live at once. With 14 a random problem of 30 units (seed 5056 of
 * passes_monotone) does not fit. */
enum { MOST_SHARED = 30 };

typedef struct {
  int32_t at[LP_STAGE_COUNT];            /* frontiers */
  unsigned char shared[MOST_SHARED / 2]; /* the sides' holdings: 4 bits for each slot */
  unsigned char moved;                   /* bit 1 << side: caches have moved from it */
} state;

typedef struct {
  int32_t after; /* the set after it */
  int32_t step;  /* the first step of its form */
} memo_step;

/* Powers of two, by stage and for the objectives: sums of their multiples are exact, so equal choices in another order
 * have equal sums. 0: a quantity stays as it is. */
typedef struct {
  double ms[LP_STAGE_COUNT], objective, limited;
} sum_grids;

typedef struct {
  const lp_exact *x;
  const lp_exact_graph *graph; /* [LP_STAGE_COUNT] */
  const lp_exact_step *order;
  int32_t *first, *last; /* [holding] the first and the last step that uses it */
  int32_t *slot;         /* [holding] its bits in `shared`, -1: none */
  sum_grids grid;
  lp_item_sets set; /* of states */
  lp_map *memo;     /* numbers of steps + 1, by form */
  LP_VEC(memo_step) step;
} lister;

/* ---- the order of steps ------------------------------------------------------------------------------------------ */

/* Returns, for each unit of prefill, the last one of its block. At most one value crosses the end of a block. */
static int32_t *list_block_ends(const lp_exact *x, lp_arena *arena) {
  const int32_t count = x->unit_count[LP_STAGE_PREFILL];
  int32_t *live = LP_NEW_ARRAY(arena, int32_t, count + 1), *end = LP_NEW_ARRAY(arena, int32_t, count + 1);
  for (int32_t i = 0; i < count; i++) {
    const lp_exact_unit *u = &x->unit[LP_STAGE_PREFILL][i];
    for (int32_t k = 0; k < u->out_count; k++)
      for (int32_t at = i; at < x->value[LP_STAGE_PREFILL][u->out[k]].last; at++)
        live[at]++;
  }
  for (int32_t i = count, at = count - 1; i-- > 0;) {
    if (live[i] <= 1) at = i;
    end[i] = at;
  }
  return end;
}

/* Users of a holding are to be near each other: a unit of decode follows the block of the last unit of prefill that
 * shares a holding with it or with a unit of decode before it. Between blocks a stage has few frontiers, so that the
 * units of the other stage multiply few. */
static lp_exact_step *list_order(const lp_exact *x, lp_arena *arena) {
  lp_exact_step *order = LP_NEW_ARRAY(arena, lp_exact_step, x->step_count);
  const int32_t *end = list_block_ends(x, arena);
  int32_t next = 0, rank = -1, count = 0;
  for (int32_t i = 0; i < x->unit_count[LP_STAGE_DECODE]; i++) {
    const lp_exact_unit *u = &x->unit[LP_STAGE_DECODE][i];
    for (int32_t k = 0; k < u->hold_count; k++) {
      const int32_t first = x->holding[u->hold[k]].first[LP_STAGE_PREFILL];
      if (first > rank) rank = end[first];
    }
    for (; next <= rank; next++)
      order[count++] = (lp_exact_step){LP_STAGE_PREFILL, next};
    order[count++] = (lp_exact_step){LP_STAGE_DECODE, i};
  }
  for (; next < x->unit_count[LP_STAGE_PREFILL]; next++)
    order[count++] = (lp_exact_step){LP_STAGE_PREFILL, next};
  return order;
}

static const lp_exact_unit *unit_of(const lister *l, int32_t k) {
  return &l->x->unit[l->order[k].stage][l->order[k].unit];
}

/* ---- slots of holdings ------------------------------------------------------------------------------------------- */

/* Tells whether the bytes of a holding count on a side. A few bytes that all layers share would double the states. */
static bool counts_on(const lp_exact *x, const lp_exact_holding *h, int side) {
  static const double least = 1e-6; /* of a limit */
  return x->limit_bytes[side] > 0 && h->bytes[side] > least * x->limit_bytes[side];
}

/* Tells whether a state must know which sides have a holding. */
static bool is_shared(const lister *l, int32_t holding) {
  const lp_exact_holding *h = &l->x->holding[holding];
  return l->first[holding] < l->last[holding] &&
         (h->is_state || counts_on(l->x, h, LP_SIDE_DEVICE) || counts_on(l->x, h, LP_SIDE_CLOUD));
}

static void find_users(lister *l) {
  for (int32_t i = 0; i < l->x->holding_count; i++)
    l->first[i] = l->last[i] = l->slot[i] = -1;
  for (int32_t k = 0; k < l->x->step_count; k++)
    for (int32_t i = 0; i < unit_of(l, k)->hold_count; i++) {
      const int32_t holding = unit_of(l, k)->hold[i];
      if (l->first[holding] < 0) l->first[holding] = k;
      l->last[holding] = k;
    }
}

/* Gives each shared holding a slot while it is live; a slot serves several, one after the other. False when there are
 * not enough. */
static bool give_slots(lister *l) {
  bool taken[MOST_SHARED] = {false};
  find_users(l);
  for (int32_t k = 0; k < l->x->step_count; k++) {
    const lp_exact_unit *u = unit_of(l, k);
    for (int32_t i = 0; i < u->hold_count; i++) {
      int32_t slot = 0;
      if (l->first[u->hold[i]] != k || !is_shared(l, u->hold[i])) continue;
      while (slot < MOST_SHARED && taken[slot])
        slot++;
      if (slot == MOST_SHARED) return false;
      taken[slot] = true;
      l->slot[u->hold[i]] = slot;
    }
    for (int32_t i = 0; i < u->hold_count; i++)
      if (l->last[u->hold[i]] == k && l->slot[u->hold[i]] >= 0) taken[l->slot[u->hold[i]]] = false;
  }
  return true;
}

/* ---- exact sums -------------------------------------------------------------------------------------------------- */

/* A power of two, so small that rounding to its multiples changes no sum that matters, and so large that sums up to
 * `total` are exact. */
static double grid_of(double total) {
  int exponent = 0;
  if (!(total > 0) || isinf(total)) return 0;
  (void)frexp(total, &exponent);
  return ldexp(1, exponent - 46);
}

static sum_grids find_grids(const lp_exact *x) {
  sum_grids grids = {0};
  double objective = 0, limited = x->limit_objective;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double total = 0;
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        const double ms = x->unit[stage][i].ms[side];
        total += ms;
        objective += (x->weights.busy[stage][side] + x->weights.link[stage]) * ms;
        limited += (x->limited.busy[stage][side] + x->limited.link[stage]) * ms;
      }
    grids.ms[stage] = grid_of(total + x->limit_ms[stage]);
  }
  grids.objective = grid_of(objective);
  grids.limited = grid_of(limited);
  return grids;
}

/* The nearest multiple. */
static double on_grid(double value, double grid) {
  return grid > 0 ? nearbyint(value / grid) * grid : value;
}

/* ---- one unit on one side ---------------------------------------------------------------------------------------- */

static unsigned get_shared(const state *s, int32_t slot) {
  return (unsigned)s->shared[slot / 2] >> (4 * (slot % 2)) & 15;
}

static void set_shared(state *s, int32_t slot, unsigned mask) {
  const unsigned shift = 4 * ((unsigned)slot % 2);
  s->shared[slot / 2] = (unsigned char)((s->shared[slot / 2] & ~(15u << shift)) | mask << shift);
}

/* Adds the move of a group of caches, at the end of prefill, as soon as its two sides are known to differ. */
static void move_caches(const lister *l, const lp_exact_holding *h, unsigned mask, state *to,
                        lp_exact_state_cost *cost) {
  const unsigned before = mask & 3, after = mask >> 2;
  if (!before || !after || before == after) return;
  const int from = before >> 1 & 1;
  const unsigned char flag = (unsigned char)(1 << from);
  double ms = h->move_bytes * l->x->ms_per_byte[from];
  if (!(to->moved & flag) && h->move_bytes > 0) {
    ms += l->x->rtt_half;
    to->moved |= flag;
  }
  cost->amount[LP_STAGE_PREFILL] += on_grid(ms, l->grid.ms[LP_STAGE_PREFILL]);
  cost->objective += on_grid(l->x->weights.move * ms, l->grid.objective);
  cost->amount[LP_EXACT_LIMITED_OBJECTIVE] += on_grid(l->x->limited.move * ms, l->grid.limited);
}

/* Notes that the side holds the unit's weights and caches. A state stores the sides of a cache for each stage, and the
 * sides of a weight only where the side's memory is limited. */
static void hold(const lister *l, int32_t k, int side, state *to, lp_exact_state_cost *cost) {
  const lp_exact_step *step = &l->order[k];
  const lp_exact_unit *unit = unit_of(l, k);
  for (int32_t i = 0; i < unit->hold_count; i++) {
    const lp_exact_holding *h = &l->x->holding[unit->hold[i]];
    const int32_t slot = l->slot[unit->hold[i]];
    unsigned mask = slot >= 0 ? get_shared(to, slot) : 0;
    const bool was_open = (mask >> (2 * step->stage) & 3) == 0, is_held = ((mask | mask >> 2) >> side & 1) != 0;
    const bool counts = counts_on(l->x, h, side);
    if (counts && !is_held) cost->amount[LP_STAGE_COUNT + side] += h->bytes[side];
    if (slot < 0) continue;
    if (h->is_state || counts) mask |= 1u << side << (h->is_state ? 2 * step->stage : 0);
    set_shared(to, slot, mask);
    if (h->is_state && was_open) move_caches(l, h, mask, to, cost);
    if (l->last[unit->hold[i]] == k) set_shared(to, slot, 0);
  }
}

/* Sets what a step from a state on a side costs, and the state after it; false: not allowed. */
static bool take_side(const lister *l, int32_t k, const state *from, int side, state *to, lp_exact_state_cost *cost) {
  const lp_exact *x = l->x;
  const lp_exact_step *step = &l->order[k];
  const lp_exact_unit *unit = unit_of(l, k);
  const lp_exact_arc *own = &l->graph[step->stage].arc[step->unit][from->at[step->stage]][side];
  *cost = (lp_exact_state_cost){0};
  if (own->to < 0) return false;
  const double busy = lp_exact_arc_ms(x, step->stage, unit, side, own->fresh);
  cost->amount[step->stage] = on_grid(busy + own->link_ms, l->grid.ms[step->stage]);
  cost->objective = on_grid(x->weights.busy[step->stage][side] * busy + x->weights.link[step->stage] * own->link_ms,
                            l->grid.objective);
  cost->amount[LP_EXACT_LIMITED_OBJECTIVE] =
      on_grid(x->limited.busy[step->stage][side] * busy + x->limited.link[step->stage] * own->link_ms, l->grid.limited);
  *to = *from;
  to->at[step->stage] = own->to;
  hold(l, k, side, to, cost);
  return true;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* Writes everything on which the arcs of a step depend besides the states before it, as text. */
static void describe(const lister *l, int32_t k, int32_t before, lp_buf *out) {
  const lp_exact *x = l->x;
  const lp_exact_step *step = &l->order[k];
  const lp_exact_unit *u = unit_of(l, k);
  lp_buf_printf(out, "%" PRId32 " %d %p %a %a:", before, (int)step->stage,
                (void *)l->graph[step->stage].arc[step->unit], u->ms[0], u->ms[1]);
  for (int32_t i = 0; i < u->hold_count; i++) {
    const lp_exact_holding *h = &x->holding[u->hold[i]];
    lp_buf_printf(out, "%" PRId32 " %d %d %a %a %a %a %a,", l->slot[u->hold[i]], h->is_state, l->last[u->hold[i]] == k,
                  h->bytes[0], h->bytes[1], h->ms[step->stage][0], h->ms[step->stage][1], h->move_bytes);
  }
}

/* Lists the states after a step and the arcs to them; false when they are too many. */
static bool list_step(lister *l, int32_t k, int32_t before, lp_arena *arena, int32_t *after, lp_exact_state_step *out) {
  const size_t count = l->set.data[before].count;
  const state *from = l->set.data[before].data;
  lp_item_set to = {.size = sizeof(state)}, costs = {.size = sizeof(lp_exact_state_cost)};
  out->arc = lp_arena_array(arena, count, sizeof *out->arc);
  for (size_t i = 0; i < count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      state next = {0};
      lp_exact_state_cost cost;
      if (take_side(l, k, &from[i], side, &next, &cost))
        out->arc[i][side] = (lp_exact_state_arc){lp_item_set_add(&to, &next), 1 + lp_item_set_add(&costs, &cost)};
    }
  out->cost_count = 1 + (int32_t)costs.count;
  out->cost = lp_arena_array(arena, 1 + costs.count, sizeof *out->cost);
  if (costs.count) memcpy(out->cost + 1, costs.data, costs.count * sizeof *out->cost);
  lp_item_set_free(&costs);
  if (to.count > MOST_STATES) {
    lp_item_set_free(&to);
    return false;
  }
  *after = lp_item_sets_add(&l->set, &to);
  return true;
}

/* Sets the arcs of a step, from an equal step where there is one, and the number of the set after it. */
static bool add_step(lister *l, int32_t k, int32_t *set, lp_exact_states *out) {
  LP_OWNED(lp_buf_free) lp_buf form = {0};
  describe(l, k, *set, &form);
  size_t number = (size_t)(uintptr_t)lp_map_get(l->memo, lp_buf_text(&form));
  bool fits = true;
  out->step[k].count = (int32_t)l->set.data[*set].count;
  if (number) {
    out->step[k] = out->step[l->step.data[number - 1].step];
    *set = l->step.data[number - 1].after;
  } else {
    memo_step step = {.step = k};
    out->step[k].alike = k;
    fits = list_step(l, k, *set, out->arena, &step.after, &out->step[k]);
    if (fits) *set = step.after;
    lp_vec_push(&l->step, step);
    lp_map_put(l->memo, lp_buf_text(&form), (void *)(uintptr_t)l->step.count);
  }
  return fits;
}

static bool list_all(lister *l, size_t most, lp_exact_states *out) {
  lp_item_set start = {.size = sizeof(state)};
  bool fits = true;
  (void)lp_item_set_add(&start, &(state){0});
  int32_t set = lp_item_sets_add(&l->set, &start);
  for (int32_t k = 0; k < l->x->step_count && fits; k++) {
    fits = add_step(l, k, &set, out) && out->first[k] <= most;
    out->first[k + 1] = out->first[k] + (size_t)out->step[k].count;
  }
  out->first[l->x->step_count + 1] = out->first[l->x->step_count] + l->set.data[set].count;
  return fits;
}

bool lp_exact_states_create(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], size_t most,
                            lp_exact_states *out) {
  *out = (lp_exact_states){.x = x, .arena = lp_arena_create()};
  out->step = LP_NEW_ARRAY(out->arena, lp_exact_state_step, x->step_count);
  out->first = LP_NEW_ARRAY(out->arena, size_t, x->step_count + 2);
  for (int i = 0; i < 2; i++) {
    out->limit[i] = x->limit_ms[i];
    out->limit[LP_STAGE_COUNT + i] = x->limit_bytes[i];
  }
  out->limit[LP_EXACT_LIMITED_OBJECTIVE] = x->limit_objective;
  out->order = list_order(x, out->arena);
  lister l = {.x = x, .graph = graph, .order = out->order, .memo = lp_map_create()};
  l.first = LP_NEW_ARRAY(out->arena, int32_t, x->holding_count);
  l.last = LP_NEW_ARRAY(out->arena, int32_t, x->holding_count);
  l.slot = LP_NEW_ARRAY(out->arena, int32_t, x->holding_count);
  l.grid = find_grids(x);
  const bool fits = give_slots(&l) && list_all(&l, most, out);
  lp_item_sets_free(&l.set);
  lp_vec_free(&l.step);
  lp_map_free(l.memo);
  return fits;
}

void lp_exact_states_free(lp_exact_states *s) {
  lp_arena_free(s->arena);
  s->arena = NULL;
}
