/* Chains of segments of the exact scheduler: layers, or halves of layers, between two places where few frontiers are
 * possible. Equal segments share the list of their useful placements, the modes. */
#include "base/map.h"
#include "base/side.h"
#include "passes/plan/exact/chain.h"

#include <math.h>
#include <stdlib.h>

/* MOST_ENTRIES: the most pairs of frontiers of both stages where a segment may begin, times the numbers of messages
 * that frontiers count. MOST_STEPS: the most steps of a segment; with a longer one there is no chain. MOST_MODES: the
 * most modes that are listed for one entry; TIGHT_MODES: where memory binds, because then there are joint bounds, whose
 * work grows with all modes. COUNTED_MODES: where messages are counted as well, because joint bounds are then less
 * needed. */
enum { MOST_ENTRIES = 64, MOST_STEPS = 64, MOST_MODES = 40000, TIGHT_MODES = 4000, COUNTED_MODES = 12000 };

/* The widths of the cells of all segments, as shares of the limits and of the objective. */
static const double least_coarse = 2.5e-4, most_coarse = 4e-3;

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static bool is_slotted(const lp_exact_chain *c, int32_t holding) {
  return c->slot_of[holding] >= 0;
}

/* The numbers of messages that frontiers of a stage tell apart. */
static int64_t counts_of(const lp_exact *x, int stage) {
  return 1 + (x->most_messages[stage] < 0 ? x->least_messages[stage] : x->most_messages[stage]);
}

/* Tells whether a segment may begin before step `k`, after done[stage] units. */
static bool may_begin(const lp_exact_chain *c, int32_t k, const int32_t done[LP_STAGE_COUNT]) {
  const lp_exact *x = c->x;
  int64_t entries = (int64_t)c->graph[0].count[done[0]] * c->graph[1].count[done[1]];
  if (entries > MOST_ENTRIES * counts_of(x, 0) * counts_of(x, 1)) return false;
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *h = &x->holding[i];
    if (h->is_state && h->first_step < k && h->last_step >= k) return false;
  }
  return true;
}

static void note_place(lp_exact_chain *c, int32_t k, const int32_t done[LP_STAGE_COUNT]) {
  const lp_exact *x = c->x;
  lp_chain_place p = {.done = {done[0], done[1]}, .live = LP_NEW_ARRAY(x->arena, int32_t, LP_EXACT_SHARED)};
  for (int32_t i = 0; i < x->holding_count; i++)
    if (is_slotted(c, i) && x->holding[i].first_step < k && x->holding[i].last_step >= k &&
        p.live_count < LP_EXACT_SHARED)
      p.live[p.live_count++] = i;
  lp_vec_push(&c->place, p);
}

/* Writes everything that the modes of a segment depend on, except its entry, as text. */
static void describe(const lp_exact_chain *c, const lp_exact_segment *segment, lp_buf *out) {
  const lp_exact *x = c->x;
  for (int32_t k = segment->from; k < segment->to; k++) {
    const lp_exact_step *step = &x->step[k];
    const lp_exact_unit *u = &x->unit[step->stage][step->unit];
    lp_buf_printf(out, "%d %p %a %a %a %a:", (int)step->stage, (void *)c->graph[step->stage].arc[step->unit], u->ms[0],
                  u->ms[1], u->activation[0], u->activation[1]);
    for (int32_t i = 0; i < u->hold_count; i++) {
      const lp_exact_holding *h = &x->holding[u->hold[i]];
      lp_buf_printf(out, "%d %d %d %a %a %a %a %a %a %a,", c->slot_of[u->hold[i]],
                    h->first_step < segment->from ? -1 : (int)(h->first_step - segment->from),
                    h->last_step >= segment->to ? -1 : (int)(h->last_step - segment->from), h->bytes[0], h->bytes[1],
                    h->ms[0][0], h->ms[0][1], h->ms[1][0], h->ms[1][1], h->move_bytes);
    }
  }
}

static int32_t kind_of(lp_exact_chain *c, const lp_exact_segment *segment) {
  lp_buf key = {0};
  describe(c, segment, &key);
  size_t known = (size_t)(uintptr_t)lp_map_get(c->kinds, lp_buf_text(&key));
  if (!known) {
    known = lp_map_count(c->kinds) + 1;
    lp_map_put(c->kinds, lp_buf_text(&key), (void *)(uintptr_t)known);
  }
  lp_buf_free(&key);
  return (int32_t)known;
}

void lp_exact_chain_level(const lp_exact *x, lp_exact_prices *prices) {
  bool *done = LP_NEW_ARRAY(x->arena, bool, x->holding_count);
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *own = &x->holding[i];
    if (done[i] || own->first[0] < 0 || own->first[1] < 0) continue;
    double share[LP_SIDE_COUNT] = {0, 0}, residence = 0;
    int32_t count = 0;
    for (int pass = 0; pass < 2; pass++)
      for (int32_t k = i; k < x->holding_count; k++) {
        const lp_exact_holding *h = &x->holding[k];
        if ((done[k] && !pass) || h->first[0] < 0 || h->first[1] < 0 || !lp_exact_are_alike(own, h)) continue;
        done[k] = true;
        count += !pass;
        for (int side = 0; side < LP_SIDE_COUNT; side++) {
          if (!pass) share[side] += prices->share[0][side][k];
          if (pass) prices->share[0][side][k] = share[side] / count;
          if (pass) prices->share[1][side][k] = 1 - share[side] / count;
        }
        if (!pass) residence += prices->residence[k];
        if (pass) prices->residence[k] = residence / count;
      }
  }
}

static bool divide(lp_exact_chain *c) {
  const lp_exact *x = c->x;
  lp_exact_segment segment = {.slot_of = c->slot_of, .most = MOST_MODES};
  if (x->limit_bytes[LP_SIDE_DEVICE] > 0 || x->limit_bytes[LP_SIDE_CLOUD] > 0)
    segment.most = counts_of(x, 0) * counts_of(x, 1) > 1 ? COUNTED_MODES : TIGHT_MODES;
  int32_t done[LP_STAGE_COUNT] = {0, 0};
  segment.grid = lp_exact_grids_of(x);
  note_place(c, 0, done);
  for (int32_t k = 1; k <= x->step_count; k++) {
    done[x->step[k - 1].stage]++;
    if (k < x->step_count && !may_begin(c, k, done)) continue;
    segment.to = k;
    if (segment.to - segment.from > MOST_STEPS) return false;
    c->place.data[c->place.count - 1].kind = kind_of(c, &segment);
    lp_vec_push(&c->segment, segment);
    segment.from = k;
    note_place(c, k, done);
  }
  return true;
}

lp_exact_chain *lp_exact_chain_create(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT]) {
  lp_exact_chain *c = LP_NEW(x->arena, lp_exact_chain);
  *c = (lp_exact_chain){.x = x, .graph = graph, .slot_of = LP_NEW_ARRAY(x->arena, int32_t, x->holding_count)};
  c->kinds = lp_map_create();
  c->modes = lp_map_create();
  if (lp_exact_slots(x, c->slot_of) && divide(c)) return c;
  lp_exact_chain_free(c);
  return NULL;
}

void lp_exact_chain_free(lp_exact_chain *c) {
  if (!c) return;
  lp_joint_free(c->joint);
  lp_chain_forget(c);
  lp_vec_free(&c->lists);
  lp_vec_free(&c->segment);
  lp_vec_free(&c->place);
  lp_map_free(c->kinds);
  lp_map_free(c->modes);
}

const lp_exact *lp_exact_chain_problem(const lp_exact_chain *chain) {
  return chain->x;
}

const lp_exact_graph *lp_exact_chain_graph(const lp_exact_chain *chain) {
  return chain->graph;
}

size_t lp_exact_chain_length(const lp_exact_chain *chain) {
  return chain->segment.count;
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

/* Fills least[stage][unit][frontier] of a segment for an entry: the least over all segments of its kind. A stage
 * without units in the segment stays at its entry, and its other frontiers differ between segments of a kind. */
static void set_least(const lp_exact_chain *c, const lp_exact_prices *listing, size_t index, const lp_exact_mode *entry,
                      lp_arena *arena, lp_exact_segment *segment) {
  const lp_chain_place *own = &c->place.data[index];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    int32_t units = c->place.data[index + 1].done[stage] - own->done[stage];
    segment->least[stage] = lp_arena_array(arena, (size_t)units + 1, sizeof(double *));
    for (int32_t u = 0; u <= units; u++) {
      int32_t count = c->graph[stage].count[own->done[stage] + u];
      double *least = segment->least[stage][u] = LP_NEW_ARRAY(arena, double, count);
      for (int32_t f = 0; f < count; f++)
        least[f] = INFINITY;
      if (units == 0) least[entry->at[stage]] = 0;
      for (size_t i = 0; units > 0 && i < c->segment.count; i++) {
        const lp_chain_place *p = &c->place.data[i];
        if (p->kind != own->kind) continue;
        const double *potential = listing->potential[stage][p->done[stage] + u];
        double from = listing->potential[stage][p->done[stage]][entry->at[stage]];
        for (int32_t f = 0; f < count && !isinf(from); f++)
          if (potential[f] - from < least[f]) least[f] = potential[f] - from;
      }
    }
  }
}

/* The amount of a limited quantity that is worth as much as the objective, at most the limit. */
static double worth(const lp_exact_chain *c, double limit, double price) {
  return price > 0 ? fmin(limit, c->scale / price) : limit;
}

/* Lists modes, in wider and wider cells until they are few enough. Each cell may be wrong by its width, so the widths
 * of all segments together are a small share of the limits. */
static void list_modes(lp_exact_chain *c, const lp_exact_prices *listing, lp_exact_segment *segment,
                       const lp_exact_mode *entry, lp_chain_modes *out) {
  const bool is_short = c->segment.count <= LP_EXACT_SHORT_CHAIN;
  for (;; c->coarse = c->coarse > 0 ? 4 * c->coarse : least_coarse) {
    const double share = c->coarse / (double)c->segment.count;
    for (int i = 0; i < 2; i++) {
      segment->cell_ms[i] = share * worth(c, c->x->limit_ms[i], listing->duals.per_ms[i]);
      segment->cell_bytes[i] = share * worth(c, c->x->limit_bytes[i], listing->duals.per_byte[i]);
    }
    segment->cell_objective = share * c->scale;
    out->list.count = 0;
    out->rest = lp_exact_modes(c->x, c->graph, listing, segment, entry, &out->list);
    c->work += segment->work;
    if (isinf(out->rest) || c->coarse >= most_coarse || !(c->scale > 0) || is_short) return;
  }
}

const lp_chain_modes *lp_chain_modes_after(lp_exact_chain *c, const lp_exact_prices *listing, size_t index,
                                           const lp_exact_mode *entry) {
  lp_buf key = {0};
  lp_buf_printf(&key, "%d %d %d %" PRIx64, (int)c->place.data[index].kind, (int)entry->at[0], (int)entry->at[1],
                entry->shared);
  lp_chain_modes *found = lp_map_get(c->modes, lp_buf_text(&key));
  if (!found) {
    found = lp_alloc(sizeof *found);
    lp_vec_push(&c->lists, found);
    lp_arena *arena = lp_arena_create();
    lp_exact_segment segment = c->segment.data[index];
    segment.slack = c->slack;
    set_least(c, listing, index, entry, arena, &segment);
    list_modes(c, listing, &segment, entry, found);
    c->has_all = c->has_all && segment.has_all;
    lp_map_put(c->modes, lp_buf_text(&key), found);
    lp_arena_free(arena);
  }
  lp_buf_free(&key);
  return found;
}

void lp_chain_forget(lp_exact_chain *c) {
  for (size_t i = 0; i < c->lists.count; i++) {
    lp_vec_free(&c->lists.data[i]->list);
    free(c->lists.data[i]);
  }
  c->lists.count = 0;
  c->has_all = true;
  lp_map_free(c->modes);
  c->modes = lp_map_create();
}
