/* The label search of the exact scheduler: all placements of the units so far, unit by unit through both stages,
 * without those that another one dominates and those that the bound excludes. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A label: the sums of a placement of the units so far. */
typedef struct {
  double objective, price; /* price: the objective with prices for limits, as the bound counts it */
  double ms[LP_STAGE_COUNT], bytes[LP_SIDE_COUNT], activation[LP_SIDE_COUNT];
  int32_t at[LP_STAGE_COUNT]; /* frontiers */
  uint64_t shared; /* 4 bits for each live holding of both stages, then the directions that caches moved in */
  int32_t parent;  /* label of the step before */
  int32_t next;    /* the next label of its group; -1 ends the list */
  uint64_t sides;  /* of the steps of a segment, bit by bit */
  unsigned char side;
  bool dropped;
} label;

typedef LP_VEC(label) labels;

/* The part of a step that is kept when the next step is made. */
typedef struct {
  int32_t parent;
  unsigned char side;
} trace;

typedef struct {
  const lp_exact *x;
  const lp_exact_graph *graph;
  const lp_exact_prices *prices, *fastest;
  lp_exact_search *search;
  int8_t *slot;                 /* [holding] position in `shared`, -1: not live, or not of both stages */
  int32_t done[LP_STAGE_COUNT]; /* units placed */
  labels now, next;
  int32_t *group; /* hash table of next: first label + 1 */
  size_t groups;
  trace **traces;
  lp_exact_segment *segment; /* set while modes are listed */
  double rest;               /* the least bound of a label beyond the width */
} searcher;

/* ---- groups: labels of one situation ----------------------------------------------------------------------------- */

static bool same_group(const label *a, const label *b) {
  return a->at[0] == b->at[0] && a->at[1] == b->at[1] && a->shared == b->shared;
}

static size_t hash_of(const label *l) {
  const uint64_t key[] = {(uint64_t)(uint32_t)l->at[0] << 32 | (uint32_t)l->at[1], l->shared};
  return (size_t)lp_hash_bytes(key, sizeof key, 1);
}

/* Tells whether `a` is at least as good as `b` in everything that can still matter. */
static bool beats(const searcher *s, const label *a, const label *b) {
  if (a->objective > b->objective) return false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (s->x->limit_ms[stage] > 0 && a->ms[stage] > b->ms[stage]) return false;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (s->x->limit_bytes[side] > 0 &&
        (a->bytes[side] > b->bytes[side] ||
         a->bytes[side] + 2 * a->activation[side] > b->bytes[side] + 2 * b->activation[side]))
      return false;
  return true;
}

static void grow_groups(searcher *s) {
  s->groups = s->groups ? 4 * s->groups : 1024;
  free(s->group);
  s->group = lp_alloc(s->groups * sizeof *s->group);
  for (size_t i = 0; i < s->next.count; i++) {
    label *l = &s->next.data[i];
    if (l->dropped) continue;
    size_t at = hash_of(l) % s->groups;
    while (s->group[at] && !same_group(&s->next.data[s->group[at] - 1], l))
      at = (at + 1) % s->groups;
    l->next = s->group[at] - 1;
    s->group[at] = (int32_t)i + 1;
  }
}

static bool same_cell(double a, double b, double width) {
  return floor(a / width) == floor(b / width);
}

/* Tells whether the labels are so much alike that one stands for both. */
static bool are_near(const searcher *s, const label *a, const label *b) {
  const lp_exact_segment *segment = s->segment;
  if (!segment || !(segment->cell_objective > 0)) return false;
  if (!same_cell(a->objective, b->objective, segment->cell_objective)) return false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (s->x->limit_ms[stage] > 0 && !same_cell(a->ms[stage], b->ms[stage], segment->cell_ms[stage])) return false;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (s->x->limit_bytes[side] > 0 && !same_cell(a->bytes[side], b->bytes[side], segment->cell_bytes[side]))
      return false;
  return true;
}

/* Makes `to` as small and as cheap as both labels are. */
static void join_labels(label *to, const label *l) {
  if (l->price < to->price) {
    to->price = l->price;
    to->parent = l->parent;
    to->side = l->side;
    to->sides = l->sides;
  }
  to->objective = fmin(to->objective, l->objective);
  for (int i = 0; i < 2; i++) {
    to->ms[i] = fmin(to->ms[i], l->ms[i]);
    to->bytes[i] = fmin(to->bytes[i], l->bytes[i]);
    to->activation[i] = fmin(to->activation[i], l->activation[i]);
  }
}

static void add_label(searcher *s, label *l) {
  if (2 * (s->next.count + 1) > s->groups) grow_groups(s);
  assert(s->group);
  size_t at = hash_of(l) % s->groups;
  while (s->group[at] && !same_group(&s->next.data[s->group[at] - 1], l))
    at = (at + 1) % s->groups;
  for (int32_t i = s->group[at] - 1, *link = NULL; i >= 0;) {
    label *other = &s->next.data[i];
    if (beats(s, other, l)) return;
    if (are_near(s, other, l)) {
      join_labels(other, l);
      return;
    }
    if (beats(s, l, other)) {
      other->dropped = true;
      if (link)
        *link = other->next;
      else
        s->group[at] = other->next + 1;
    } else {
      link = &other->next;
    }
    i = other->next;
  }
  l->next = s->group[at] - 1;
  lp_vec_push(&s->next, *l);
  s->group[at] = (int32_t)s->next.count;
}

/* ---- holdings of both stages ------------------------------------------------------------------------------------- */

static bool searches_both(const searcher *s) {
  return s->search->stages == 3;
}

/* Tells whether a label must remember which sides have this holding between the first and the last of its users. */
static bool is_shared(const searcher *s, const lp_exact_holding *holding) {
  if (!searches_both(s) || holding->first_step == holding->last_step) return false;
  if (holding->is_state) return true;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (s->x->limit_bytes[side] > 0 && holding->bytes[side] > 0) return true;
  return false;
}

/* Gives each holding that begins to live at step `k` a position; false when there is none left. */
static bool open_slots(searcher *s, int32_t k, const lp_exact_unit *unit) {
  if (s->segment) return true; /* a segment has its slots already */
  for (int32_t i = 0; i < unit->hold_count; i++) {
    int32_t index = unit->hold[i];
    const lp_exact_holding *holding = &s->x->holding[index];
    if (!is_shared(s, holding) || holding->first_step != k) continue;
    bool taken[LP_EXACT_SHARED] = {false};
    for (int32_t h = 0; h < s->x->holding_count; h++)
      if (s->slot[h] >= 0) taken[s->slot[h]] = true;
    int8_t slot = 0;
    while (slot < LP_EXACT_SHARED && taken[slot])
      slot++;
    if (slot == LP_EXACT_SHARED) return false;
    s->slot[index] = slot;
  }
  return true;
}

static unsigned mask_of(const label *l, int8_t slot) {
  return (unsigned)(l->shared >> (4 * slot)) & 15;
}

static double grid_ms(const searcher *s, lp_stage stage) {
  return s->segment ? s->segment->grid.ms[stage] : 0;
}

static double grid_objective(const searcher *s) {
  return s->segment ? s->segment->grid.objective : 0;
}

/* Adds the move of a group of caches, at the end of prefill, as soon as its two stages are known to be on different
 * sides. */
static void move_caches(const searcher *s, int32_t index, unsigned mask, label *l) {
  const lp_exact_holding *holding = &s->x->holding[index];
  unsigned before = mask & 3, after = mask >> 2;
  if (!before || !after || before == after) return;
  double residence = lp_exact_residence(s->x, s->prices, index);
  l->price -= before == 1u << LP_SIDE_DEVICE ? residence : -residence;
  int from = before >> 1 & 1;
  uint64_t flag = (uint64_t)1 << (4 * LP_EXACT_SHARED + from);
  double ms = holding->move_bytes * s->x->ms_per_byte[from];
  if (!(l->shared & flag) && holding->move_bytes > 0) {
    ms += s->x->rtt_half;
    l->shared |= flag;
  }
  l->ms[LP_STAGE_PREFILL] += lp_exact_on_grid(ms, grid_ms(s, LP_STAGE_PREFILL));
  l->objective += lp_exact_on_grid(s->x->weights.move * ms, grid_objective(s));
  l->price += (s->x->weights.move + s->prices->duals.per_ms[LP_STAGE_PREFILL]) * ms;
}

/* Completes the price of a holding: the bound divides it among the stages, but where they disagree it is due in
 * full. */
static void settle_price(const searcher *s, int32_t index, unsigned mask, label *l) {
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    double paid = 0, due = (mask | mask >> 2) & (1u << side) ? 1 : 0;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      if (mask >> (2 * stage) & (1u << side)) paid += s->prices->share[stage][side][index];
    l->price += (due - paid) * s->prices->duals.per_byte[side] * s->x->holding[index].bytes[side];
  }
}

static void hold(const searcher *s, int32_t k, const lp_exact_unit *unit, const lp_exact_arc *arc, label *l) {
  const lp_exact_step *step = &s->x->step[k];
  for (int32_t i = 0; i < unit->hold_count; i++) {
    int32_t index = unit->hold[i];
    const lp_exact_holding *holding = &s->x->holding[index];
    int8_t slot = s->slot[index];
    unsigned mask = slot >= 0 ? mask_of(l, slot) : 0, side = 1u << l->side;
    bool is_new = slot >= 0 ? !((mask | mask >> 2) & side) : (arc->fresh >> i & 1) != 0;
    if (is_new) l->bytes[l->side] += holding->bytes[l->side];
    if (slot < 0) continue;
    bool was_open = (mask >> (2 * step->stage) & 3) == 0;
    mask |= side << (2 * step->stage);
    l->shared |= (uint64_t)mask << (4 * slot);
    if (holding->is_state && was_open) move_caches(s, index, mask, l);
    if (holding->last_step != k) continue;
    settle_price(s, index, mask, l);
    l->shared &= ~((uint64_t)15 << (4 * slot));
  }
}

static void close_slots(searcher *s, int32_t k, const lp_exact_unit *unit) {
  for (int32_t i = 0; i < unit->hold_count; i++)
    if (s->x->holding[unit->hold[i]].last_step == k) s->slot[unit->hold[i]] = -1;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static const double rounding = 1e-13; /* the error of a sum of times in another order */

/* Tells whether the label can still become a wanted placement. */
static bool may_live(const searcher *s, const label *l) {
  double bound = l->price;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    if (!(s->search->stages >> stage & 1)) continue;
    int32_t unit = s->done[stage];
    bound += s->prices->potential[stage][unit][l->at[stage]];
    double limit = s->x->limit_ms[stage];
    if (limit > 0 && l->ms[stage] + s->fastest->potential[stage][unit][l->at[stage]] > limit * (1 - rounding))
      return false;
    bound -= s->prices->duals.per_ms[stage] * limit;
  }
  for (int side = 0; side < LP_SIDE_COUNT && searches_both(s); side++) {
    double limit = s->x->limit_bytes[side];
    if (limit > 0 && l->bytes[side] + 2 * l->activation[side] > limit) return false;
    bound -= s->prices->duals.per_byte[side] * limit;
  }
  return bound < s->search->most;
}

/* The label's price in its segment, minus the least price. */
static double excess_of(const searcher *s, const label *l) {
  double price = l->price;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    price += s->segment->least[stage][s->done[stage]][l->at[stage]];
  return price;
}

static void extend(searcher *s, int32_t k, const lp_exact_unit *unit, int32_t parent, int side) {
  const lp_exact *x = s->x;
  const lp_exact_step *step = &x->step[k];
  label l = s->now.data[parent];
  const lp_exact_arc *arc = &s->graph[step->stage].arc[step->unit][l.at[step->stage]][side];
  if (arc->to < 0) return;
  double busy = lp_exact_arc_ms(x, step->stage, unit, side, arc->fresh);
  double objective = x->weights.busy[step->stage][side] * busy + x->weights.link[step->stage] * arc->link_ms;
  l.objective += lp_exact_on_grid(objective, grid_objective(s));
  l.ms[step->stage] += lp_exact_on_grid(busy + arc->link_ms, grid_ms(s, step->stage));
  l.price += lp_exact_arc_price(x, step->stage, s->prices, unit, side, arc);
  if (s->segment) l.sides |= (uint64_t)side << (k - s->segment->from);
  l.activation[side] = fmax(l.activation[side], unit->activation[side]);
  l.at[step->stage] = arc->to;
  l.parent = parent;
  l.side = (unsigned char)side;
  if (searches_both(s)) hold(s, k, unit, arc, &l);
  bool wanted = s->segment ? excess_of(s, &l) <= s->segment->slack : may_live(s, &l);
  if (wanted) add_label(s, &l);
  if (!s->segment) return;
  s->segment->work++;
  if (!wanted) s->segment->has_all = false;
}

static double bound_of(const searcher *s, const label *l) {
  double bound = l->price;
  if (s->segment) return excess_of(s, l);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (s->search->stages >> stage & 1) bound += s->prices->potential[stage][s->done[stage]][l->at[stage]];
  return bound;
}

typedef struct {
  double bound;
  int32_t index;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->bound < y->bound) return -1;
  if (x->bound > y->bound) return 1;
  return (x->index > y->index) - (x->index < y->index);
}

/* Makes `next` the current labels, without dropped ones; beyond the width only the most promising stay. */
static void take_next(searcher *s) {
  size_t count = 0;
  for (size_t i = 0; i < s->next.count; i++)
    if (!s->next.data[i].dropped) s->next.data[count++] = s->next.data[i];
  s->next.count = count;
  labels swap = s->now;
  s->now = s->next;
  s->next = swap;
  s->next.count = 0;
  if (count <= s->search->width) return;
  s->search->complete = false;
  ranked *rank = lp_alloc(count * sizeof *rank);
  for (size_t i = 0; i < count; i++)
    rank[i] = (ranked){bound_of(s, &s->now.data[i]), (int32_t)i};
  qsort(rank, count, sizeof *rank, compare_ranked);
  if (rank[s->search->width].bound < s->rest) s->rest = rank[s->search->width].bound;
  for (size_t i = 0; i < s->search->width; i++)
    lp_vec_push(&s->next, s->now.data[rank[i].index]);
  free(rank);
  swap = s->now;
  s->now = s->next;
  s->next = swap;
  s->next.count = 0;
}

static void keep_trace(searcher *s, int32_t k) {
  trace *kept = lp_alloc((s->now.count + 1) * sizeof *kept);
  for (size_t i = 0; i < s->now.count; i++)
    kept[i] = (trace){s->now.data[i].parent, s->now.data[i].side};
  s->traces[k] = kept;
}

static bool do_step(searcher *s, int32_t k) {
  const lp_exact_step *step = &s->x->step[k];
  if (!(s->search->stages >> step->stage & 1)) return true;
  const lp_exact_unit *unit = &s->x->unit[step->stage][step->unit];
  if (!open_slots(s, k, unit)) return false;
  s->done[step->stage]++;
  if (s->group) memset(s->group, 0, s->groups * sizeof *s->group);
  for (size_t i = 0; i < s->now.count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      extend(s, k, unit, (int32_t)i, side);
  close_slots(s, k, unit);
  take_next(s);
  keep_trace(s, k);
  return true;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void trace_back(const searcher *s, int32_t best, unsigned char *side[LP_STAGE_COUNT]) {
  for (int32_t k = s->x->step_count; k-- > 0;) {
    if (!s->traces[k]) continue;
    side[s->x->step[k].stage][s->x->step[k].unit] = s->traces[k][best].side;
    best = s->traces[k][best].parent;
  }
}

static void take_best(searcher *s, unsigned char *side[LP_STAGE_COUNT]) {
  int32_t best = -1;
  for (size_t i = 0; i < s->now.count; i++)
    if (best < 0 || s->now.data[i].objective < s->now.data[best].objective) best = (int32_t)i;
  s->search->found = best >= 0 && s->now.data[best].objective < s->search->most;
  if (!s->search->found) return;
  s->search->objective = s->now.data[best].objective;
  trace_back(s, best, side);
}

void lp_exact_search_run(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], const lp_exact_prices *prices,
                         const lp_exact_prices *fastest, lp_exact_search *search, unsigned char *side[LP_STAGE_COUNT]) {
  searcher s = {.x = x, .graph = graph, .prices = prices, .fastest = fastest, .search = search};
  s.slot = lp_alloc((size_t)x->holding_count + 1);
  memset(s.slot, -1, (size_t)x->holding_count);
  s.traces = lp_alloc(((size_t)x->step_count + 1) * sizeof *s.traces);
  search->complete = true;
  search->found = false;
  lp_vec_push(&s.now, (label){.parent = -1});
  bool fits = true;
  for (int32_t k = 0; k < x->step_count && fits && s.now.count; k++)
    fits = do_step(&s, k);
  search->complete &= fits;
  if (fits) take_best(&s, side);
  for (int32_t k = 0; k < x->step_count; k++)
    free(s.traces[k]);
  free(s.traces);
  free(s.slot);
  free(s.group);
  lp_vec_free(&s.now);
  lp_vec_free(&s.next);
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* Gives each shared holding the slot that it has at the start of the segment, or will have in it. */
bool lp_exact_slots(const lp_exact *x, int32_t *slot_of) {
  searcher s = {.x = x, .search = &(lp_exact_search){.stages = 3}};
  bool fits = true;
  s.slot = lp_alloc((size_t)x->holding_count + 1);
  memset(s.slot, -1, (size_t)x->holding_count);
  for (int32_t i = 0; i < x->holding_count; i++)
    slot_of[i] = -1;
  for (int32_t k = 0; k < x->step_count && fits; k++) {
    const lp_exact_unit *unit = &x->unit[x->step[k].stage][x->step[k].unit];
    fits = open_slots(&s, k, unit);
    for (int32_t i = 0; i < unit->hold_count; i++)
      if (s.slot[unit->hold[i]] >= 0) slot_of[unit->hold[i]] = s.slot[unit->hold[i]];
    close_slots(&s, k, unit);
  }
  free(s.slot);
  return fits;
}

static int compare_modes(const void *left, const void *right) {
  const lp_exact_mode *a = left, *b = right;
  if (a->excess != b->excess) return a->excess < b->excess ? -1 : 1;
  return (a->sides > b->sides) - (a->sides < b->sides);
}

/* Labels within a segment, as a multiple of the modes at its end: frontiers are many there. */
enum { WITHIN = 6 };

double lp_exact_modes(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], const lp_exact_prices *prices,
                      lp_exact_segment *segment, const lp_exact_mode *entry, lp_exact_modes_list *out) {
  segment->has_all = true;
  segment->work = 0;
  searcher s = {.x = x,
                .graph = graph,
                .prices = prices,
                .search = &(lp_exact_search){.stages = 3, .width = segment->most},
                .segment = segment,
                .rest = INFINITY};
  s.slot = lp_alloc((size_t)x->holding_count + 1);
  for (int32_t i = 0; i < x->holding_count; i++)
    s.slot[i] = (int8_t)segment->slot_of[i];
  label start = {.at = {entry->at[0], entry->at[1]}, .shared = entry->shared};
  lp_vec_push(&s.now, start);
  for (int32_t k = segment->from; k < segment->to; k++) {
    const lp_exact_step *step = &x->step[k];
    s.done[step->stage]++;
    if (s.group) memset(s.group, 0, s.groups * sizeof *s.group);
    for (size_t i = 0; i < s.now.count; i++)
      for (int side = 0; side < LP_SIDE_COUNT; side++)
        extend(&s, k, &x->unit[step->stage][step->unit], (int32_t)i, side);
    s.search->width = k + 1 < segment->to ? WITHIN * segment->most : segment->most;
    take_next(&s);
  }
  for (size_t i = 0; i < s.now.count; i++) {
    const label *l = &s.now.data[i];
    lp_exact_mode mode = {
        .objective = l->objective, .shared = l->shared, .sides = l->sides, .excess = excess_of(&s, l)};
    memcpy(mode.ms, l->ms, sizeof mode.ms);
    memcpy(mode.bytes, l->bytes, sizeof mode.bytes);
    memcpy(mode.activation, l->activation, sizeof mode.activation);
    memcpy(mode.at, l->at, sizeof mode.at);
    lp_vec_push(out, mode);
  }
  if (out->count) qsort(out->data, out->count, sizeof *out->data, compare_modes);
  free(s.slot);
  free(s.group);
  lp_vec_free(&s.now);
  lp_vec_free(&s.next);
  return s.rest;
}
