/* The label search of the exact scheduler along a chain of segments: layers, or halves of layers, between two places
 * where few frontiers are possible. Equal segments share the list of their useful placements, the modes. Sums are
 * exact, so that the same modes in another order are one label. A label's bound adds the fronts of both stages. The
 * search keeps the least bound of the labels that it drops, so that it proves a bound in any case. */
#include "base/map.h"
#include "base/side.h"
#include "passes/plan/exact/dominance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_ENTRIES: the most pairs of frontiers of both stages where a segment may begin. MOST_STEPS: the most steps of a
 * segment; with a longer one there is no chain. MOST_MODES: the most modes that are listed for one entry. */
enum { MOST_ENTRIES = 64, MOST_STEPS = 64, MOST_MODES = 40000 };

/* Points of a front: COARSE to compare prices, FINE to search. */
enum { COARSE = 100, FINE = 2000 };

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
static const double allowance = 1e-9;

/* The most placements that are evaluated at the end of a search. */
enum { MOST_SEEN = 50 };

/* The number of labels that are compared with one another, as a multiple of the width. */
enum { MOST_CANDIDATES = 4 };

/* The modes after one entry of one kind of segment. */
typedef struct {
  lp_exact_modes_list list;
  double rest; /* the least price of the modes that the list lacks, above the least of all placements */
} mode_list;

typedef struct {
  int32_t kind, done[LP_STAGE_COUNT]; /* done: units before it, by stage */
  int32_t *live;                      /* shared holdings that are live before it */
  int32_t live_count;
} place;

typedef struct {
  int32_t parent;
  uint64_t sides;
} chain_trace;

struct lp_exact_chain {
  const lp_exact *x;
  const lp_exact_graph *graph;
  int32_t *slot_of;
  LP_VEC(lp_exact_segment) segment;
  LP_VEC(place) place; /* before each segment */
  LP_VEC(mode_list *) lists;
  lp_map *kinds, *modes;
  double slack; /* the slack of the pass that made the modes */
  lp_exact_front **front[LP_STAGE_COUNT];
  const lp_exact_prices *front_prices; /* of the fronts; NULL: there are none */
  double front_slack;
};

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static bool is_slotted(const lp_exact_chain *c, int32_t holding) {
  return c->slot_of[holding] >= 0;
}

/* Tells whether a segment may begin before step `k`, after done[stage] units. */
static bool may_begin(const lp_exact_chain *c, int32_t k, const int32_t done[LP_STAGE_COUNT]) {
  const lp_exact *x = c->x;
  if ((int64_t)c->graph[0].count[done[0]] * c->graph[1].count[done[1]] > MOST_ENTRIES) return false;
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *h = &x->holding[i];
    if (h->is_state && h->first_step < k && h->last_step >= k) return false;
  }
  return true;
}

static void note_place(lp_exact_chain *c, int32_t k, const int32_t done[LP_STAGE_COUNT]) {
  const lp_exact *x = c->x;
  place p = {.done = {done[0], done[1]}, .live = LP_NEW_ARRAY(x->arena, int32_t, LP_EXACT_SHARED)};
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

static double grid_of(double total) {
  int exponent = 0;
  if (!(total > 0) || isinf(total)) return 0;
  (void)frexp(total, &exponent);
  return ldexp(1, exponent - 46);
}

/* Sets grids: a power of two that is small against a stage's time, and one that is small against the objective. */
static void set_grids(const lp_exact *x, lp_exact_segment *segment) {
  double objective = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double total = 0;
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        total += x->unit[stage][i].ms[side];
        objective += x->weights.busy[stage][side] * x->unit[stage][i].ms[side];
      }
    segment->grid_ms[stage] = grid_of(total + x->limit_ms[stage]);
    objective += x->weights.link[stage] * total;
  }
  segment->grid_objective = grid_of(objective);
}

static bool are_alike(const lp_exact_holding *a, const lp_exact_holding *b) {
  return a->is_state == b->is_state && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0 &&
         a->move_bytes == b->move_bytes;
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
        if ((done[k] && !pass) || h->first[0] < 0 || h->first[1] < 0 || !are_alike(own, h)) continue;
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
  int32_t done[LP_STAGE_COUNT] = {0, 0};
  set_grids(x, &segment);
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
  for (size_t i = 0; i < c->lists.count; i++) {
    lp_vec_free(&c->lists.data[i]->list);
    free(c->lists.data[i]);
  }
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

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* The part of a label's bound that a mode adds, without the fronts after it. */
typedef struct {
  double price, ms[LP_STAGE_COUNT];
  const lp_exact_front *front[LP_STAGE_COUNT];
  double least; /* the least addition of this mode and the modes after it, with their fronts */
} mode_price;

typedef struct {
  lp_exact_chain *c;
  const lp_exact *x;
  const lp_exact_prices *prices;
  lp_exact_chain_search *search;
  const mode_list *modes; /* of the label at hand, and their prices */
  LP_VEC(mode_price) price;
  lp_exact_front **front[LP_STAGE_COUNT];
  double offset;       /* prices times limits */
  double least, slack; /* at the listing prices: the bound, and the largest difference of a placement's price from it */
  lp_chain_labels now, next;
  chain_trace **traces;
} chain_searcher;

/* Fills least[stage][unit][frontier] of a segment for an entry: the least over all segments of its kind. */
static void set_least(const chain_searcher *s, size_t index, const lp_exact_mode *entry, lp_arena *arena,
                      lp_exact_segment *segment) {
  const lp_exact_chain *c = s->c;
  const place *own = &c->place.data[index];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    int32_t units = c->place.data[index + 1].done[stage] - own->done[stage];
    segment->least[stage] = lp_arena_array(arena, (size_t)units + 1, sizeof(double *));
    for (int32_t u = 0; u <= units; u++) {
      int32_t count = c->graph[stage].count[own->done[stage] + u];
      double *least = segment->least[stage][u] = LP_NEW_ARRAY(arena, double, count);
      for (int32_t f = 0; f < count; f++)
        least[f] = INFINITY;
      for (size_t i = 0; i < c->segment.count; i++) {
        const place *p = &c->place.data[i];
        if (p->kind != own->kind) continue;
        const double *potential = s->search->listing->potential[stage][p->done[stage] + u];
        double from = s->search->listing->potential[stage][p->done[stage]][entry->at[stage]];
        for (int32_t f = 0; f < count && !isinf(from); f++)
          if (potential[f] - from < least[f]) least[f] = potential[f] - from;
      }
    }
  }
}

/* The modes of a segment after a label. */
static const mode_list *modes_after(chain_searcher *s, size_t index, const lp_exact_mode *entry) {
  lp_exact_chain *c = s->c;
  lp_buf key = {0};
  lp_buf_printf(&key, "%d %d %d %" PRIx64, (int)c->place.data[index].kind, (int)entry->at[0], (int)entry->at[1],
                entry->shared);
  mode_list *found = lp_map_get(c->modes, lp_buf_text(&key));
  if (!found) {
    found = lp_alloc(sizeof *found);
    lp_vec_push(&c->lists, found);
    lp_arena *arena = lp_arena_create();
    lp_exact_segment segment = c->segment.data[index];
    segment.slack = s->slack;
    set_least(s, index, entry, arena, &segment);
    found->rest = lp_exact_modes(c->x, c->graph, s->search->listing, &segment, entry, &found->list);
    lp_map_put(c->modes, lp_buf_text(&key), found);
    lp_arena_free(arena);
  }
  lp_buf_free(&key);
  return found;
}

/* The price of a label's or a mode's sums. */
static double price_of(const chain_searcher *s, const lp_exact_mode *l) {
  double price = l->objective;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    price += s->prices->duals.per_ms[stage] * l->ms[stage];
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    price += s->prices->duals.per_byte[side] * l->bytes[side];
  return price;
}

/* The price of the holdings that are live before segment `index` and that a stage has not paid yet. The stage's front
 * contains it too. */
static double paid_twice(const chain_searcher *s, size_t index, uint64_t shared) {
  const lp_exact *x = s->x;
  const place *p = &s->c->place.data[index];
  double price = 0;
  for (int32_t i = 0; i < p->live_count; i++) {
    unsigned mask = (unsigned)(shared >> (4 * s->c->slot_of[p->live[i]])) & 15;
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
        if (((mask | mask >> 2) >> side & 1) && !(mask >> (2 * stage) >> side & 1))
          price += s->prices->duals.per_byte[side] * s->prices->share[stage][side][p->live[i]] *
                   x->holding[p->live[i]].bytes[side];
  }
  return price;
}

/* The part of a stage's limit that a label leaves. */
static double time_left(const chain_searcher *s, int stage, const lp_exact_mode *l) {
  double limit = s->x->limit_ms[stage];
  return limit > 0 ? limit * (1 + allowance) - l->ms[stage] : 1;
}

/* Fills the prices of the modes after a label, which come before segment `index` + 1. */
static void price_modes(chain_searcher *s, size_t index) {
  const place *p = &s->c->place.data[index + 1];
  double least = INFINITY;
  s->price.count = 0;
  for (size_t i = 0; i < s->modes->list.count; i++)
    lp_vec_push(&s->price, ((mode_price){0}));
  for (size_t i = s->modes->list.count; i-- > 0;) {
    const lp_exact_mode *mode = &s->modes->list.data[i];
    mode_price *price = &s->price.data[i];
    price->price = price_of(s, mode) - paid_twice(s, index + 1, mode->shared);
    double whole = price->price;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      const lp_exact_front *front = price->front[stage] = &s->front[stage][p->done[stage]][mode->at[stage]];
      price->ms[stage] = s->x->limit_ms[stage] > 0 ? mode->ms[stage] : 0;
      whole += front->count ? front->price[front->count - 1] : INFINITY;
    }
    least = price->least = whole < least ? whole : least;
  }
}

static void drop(chain_searcher *s, double bound) {
  if (bound < s->search->lowest) s->search->lowest = bound;
}

/* Tells whether a label exceeds the memory of a side. */
static bool is_too_large(const lp_exact *x, const lp_exact_mode *l) {
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (x->limit_bytes[side] > 0 && l->bytes[side] + 2 * l->activation[side] > x->limit_bytes[side]) return true;
  return false;
}

/* Adds a mode to a label. */
static void push_label(chain_searcher *s, const lp_chain_label *from, int32_t parent, const lp_exact_mode *mode,
                       double bound) {
  lp_chain_label l = {.sum = *mode, .parent = parent, .loss = from->loss, .bound = bound};
  l.sum.objective += from->sum.objective;
  for (int k = 0; k < 2; k++) {
    l.sum.ms[k] += from->sum.ms[k];
    l.sum.bytes[k] += from->sum.bytes[k];
    l.sum.activation[k] = fmax(l.sum.activation[k], from->sum.activation[k]);
  }
  if (is_too_large(s->x, &l.sum)) return;
  l.rank = s->search->step > 0 ? floor(l.sum.objective / s->search->step) : l.sum.objective;
  lp_vec_push(&s->next, l);
}

static void extend(chain_searcher *s, int32_t parent) {
  const lp_chain_label from = s->now.data[parent];
  double wanted = s->search->most - s->search->close * fabs(s->search->most);
  double price = price_of(s, &from.sum) - s->offset;
  double left[] = {time_left(s, LP_STAGE_PREFILL, &from.sum), time_left(s, LP_STAGE_DECODE, &from.sum)};
  s->search->work += (double)s->price.count;
  for (size_t i = 0; i < s->price.count; i++) {
    const mode_price *mode = &s->price.data[i];
    if (price + mode->least >= wanted) { /* and so do all that follow */
      drop(s, price + mode->least - from.loss);
      return;
    }
    double bound = price + mode->price;
    for (int stage = 0; stage < LP_STAGE_COUNT && bound < INFINITY; stage++)
      bound += lp_exact_front_price(mode->front[stage], left[stage] - mode->ms[stage]);
    if (bound < wanted)
      push_label(s, &from, parent, &s->modes->list.data[i], bound);
    else
      drop(s, bound - from.loss);
  }
}

static void keep_traces(chain_searcher *s, size_t index) {
  s->traces[index] = lp_alloc((s->now.count + 1) * sizeof **s->traces);
  for (size_t i = 0; i < s->now.count; i++)
    s->traces[index][i] = (chain_trace){s->now.data[i].parent, s->now.data[i].sum.sides};
}

static void narrow(chain_searcher *s, lp_chain_labels *list, size_t width) {
  drop(s, lp_chain_narrow(list, width));
}

/* Extends all labels by the segment. They are sorted by groups, which have the same modes. */
static void extend_all(chain_searcher *s, size_t index, size_t candidates) {
  for (size_t k = 0; k < s->now.count; k++) {
    if (!k || lp_chain_compare_groups(&s->now.data[k - 1], &s->now.data[k])) {
      s->modes = modes_after(s, index, &s->now.data[k].sum);
      drop(s, s->least + s->modes->rest);
      price_modes(s, index);
    }
    extend(s, (int32_t)k);
    if (s->next.count > 2 * candidates) narrow(s, &s->next, candidates); /* this bounds the memory */
  }
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static void trace_back(const chain_searcher *s, int32_t label, unsigned char *const side[LP_STAGE_COUNT]) {
  for (size_t i = s->c->segment.count; i-- > 0;) {
    const lp_exact_segment *segment = &s->c->segment.data[i];
    const chain_trace *t = &s->traces[i][label];
    for (int32_t k = segment->from; k < segment->to; k++) {
      const lp_exact_step *step = &s->x->step[k];
      side[step->stage][step->unit] = t->sides >> (k - segment->from) & 1;
    }
    label = t->parent;
  }
}

/* Passes the placements found to `see` until one is feasible. */
static void show_best(chain_searcher *s) {
  unsigned char *side[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(s->x->arena, unsigned char, s->x->unit_count[stage]);
  for (int seen = 0; seen < MOST_SEEN; seen++) {
    int32_t best = -1;
    for (size_t i = 0; i < s->now.count; i++)
      if (!isinf(s->now.data[i].bound) && (best < 0 || s->now.data[i].sum.objective < s->now.data[best].sum.objective))
        best = (int32_t)i;
    if (best < 0) return;
    trace_back(s, best, side);
    if (s->search->see(s->search->user, side)) return;
    s->now.data[best].bound = INFINITY;
  }
}

/* The sum of the limits, each times its price. */
static double offset_of(const lp_exact *x, const lp_exact_prices *prices) {
  double sum = 0;
  for (int i = 0; i < 2; i++)
    sum += prices->duals.per_ms[i] * x->limit_ms[i] + prices->duals.per_byte[i] * x->limit_bytes[i];
  return sum;
}

/* The largest difference between a wanted placement's price and the least price. */
static double slack_of(const chain_searcher *s, const lp_exact_prices *prices) {
  return fmax(s->search->most - lp_exact_least(s->x, prices), 0) * (1 + 1e-6) + 1e-9 * fabs(s->search->most);
}

/* Makes the fronts of all places. Later passes with the same prices use them again. */
static void make_fronts(chain_searcher *s, double slack) {
  const lp_exact *x = s->x;
  lp_exact_chain *c = s->c;
  c->front_prices = s->prices;
  c->front_slack = slack;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    bool *keep = LP_NEW_ARRAY(x->arena, bool, x->unit_count[stage] + 1);
    for (size_t i = 0; i < c->place.count; i++)
      keep[c->place.data[i].done[stage]] = true;
    c->front[stage] = LP_NEW_ARRAY(x->arena, lp_exact_front *, x->unit_count[stage] + 1);
    lp_exact_fronts(&(lp_exact_front_task){.x = x,
                                           .graph = &c->graph[stage],
                                           .stage = (lp_stage)stage,
                                           .prices = s->prices,
                                           .pruning = s->search->pruning,
                                           .slack = slack,
                                           .points = FINE,
                                           .keep = keep},
                    c->front[stage]);
  }
}

static void set_bounds(chain_searcher *s) {
  const lp_exact *x = s->x;
  s->offset = offset_of(x, s->prices);
  s->slack = slack_of(s, s->search->listing);
  s->least = lp_exact_least(x, s->search->listing);
  double slack = fmax(s->search->greatest - lp_exact_least(x, s->search->pruning), 0) * (1 + 1e-6) +
                 1e-9 * fabs(s->search->greatest);
  if (s->c->front_prices != s->prices || slack > s->c->front_slack) make_fronts(s, slack);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->front[stage] = s->c->front[stage];
}

double lp_exact_chain_bound(const lp_exact_chain *chain, const lp_exact_prices *prices, const lp_exact_prices *pruning,
                            double slack, double *work) {
  const lp_exact *x = chain->x;
  double bound = 0;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    bound -= prices->duals.per_byte[side] * x->limit_bytes[side];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double limit = x->limit_ms[stage];
    bool *keep = LP_NEW_ARRAY(x->arena, bool, x->unit_count[stage] + 1);
    lp_exact_front **front = LP_NEW_ARRAY(x->arena, lp_exact_front *, x->unit_count[stage] + 1);
    keep[0] = true;
    lp_exact_fronts(&(lp_exact_front_task){.x = x,
                                           .graph = &chain->graph[stage],
                                           .stage = (lp_stage)stage,
                                           .prices = prices,
                                           .pruning = pruning,
                                           .slack = slack,
                                           .points = COARSE,
                                           .keep = keep,
                                           .work = work},
                    front);
    bound += lp_exact_front_price(&front[0][0], limit > 0 ? limit * (1 + allowance) : 1) -
             prices->duals.per_ms[stage] * limit;
  }
  return bound;
}

/* Drops the modes when a pass needs longer lists, because it wants placements farther from the least price. */
static void forget_modes(lp_exact_chain *c) {
  for (size_t i = 0; i < c->lists.count; i++) {
    lp_vec_free(&c->lists.data[i]->list);
    free(c->lists.data[i]);
  }
  c->lists.count = 0;
  lp_map_free(c->modes);
  c->modes = lp_map_create();
}

void lp_exact_chain_run(lp_exact_chain *chain, const lp_exact_prices *prices, lp_exact_chain_search *search) {
  chain_searcher s = {.c = chain, .x = chain->x, .prices = prices, .search = search};
  size_t count = chain->segment.count, candidates = MOST_CANDIDATES * search->width;
  search->lowest = search->most;
  search->work = 0;
  set_bounds(&s);
  if (s.slack > chain->slack) forget_modes(chain);
  chain->slack = s.slack;
  s.traces = lp_alloc((count + 1) * sizeof *s.traces);
  lp_chain_label start = {.parent = -1};
  start.bound = -s.offset;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    start.bound += lp_exact_front_price(&s.front[stage][0][0], time_left(&s, stage, &start.sum));
  search->least = start.bound;
  lp_vec_push(&s.now, start);
  for (size_t i = 0; i < count; i++) {
    extend_all(&s, i, candidates);
    narrow(&s, &s.next, candidates);
    lp_chain_filter(s.x, search->slur, &s.next, &s.now);
    narrow(&s, &s.now, search->width);
    keep_traces(&s, i);
  }
  for (size_t i = 0; i < s.now.count; i++)
    drop(&s, s.now.data[i].sum.objective - s.now.data[i].loss);
  show_best(&s);
  for (size_t i = 0; i < count; i++)
    free(s.traces[i]);
  free(s.traces);
  lp_vec_free(&s.price);
  lp_vec_free(&s.now);
  lp_vec_free(&s.next);
}
