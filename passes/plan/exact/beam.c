/* The beam search of the exact scheduler. Sums are exact, so equal placements of layers in another order are one. */
#include "passes/plan/exact/beam.h"
#include "base/side.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The most placements that are evaluated at the end of a search. */
enum { MOST_SEEN = 50 };

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
static const double allowance = 1e-9;

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static void add_prices(lp_beam_bounds *b, const lp_exact_state_prices *at) {
  const lp_exact_states *s = b->s;
  double offset = 0;
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    offset += at->price[q] * s->limit[q];
  b->at[b->count] = *at;
  b->offset[b->count++] = offset;
}

/* Adds bounds of the least amounts of a limit, or of a sum of limits, that a placement needs. */
static void add_needs(lp_beam_bounds *b, const double price[LP_EXACT_LIMITS]) {
  lp_exact_state_prices all = {0};
  int priced = 0;
  for (int q = 0; q < LP_EXACT_LIMITS; q++) {
    if (!(b->s->limit[q] > 0)) continue;
    lp_exact_state_prices one = {0};
    one.price[q] = 1;
    add_prices(b, &one);
    all.price[q] = price[q];
    priced += price[q] > 0;
  }
  if (priced > 1) add_prices(b, &all);
}

/* Adds the bound at prices of which that of one limit is changed by a factor. */
static void add_scaled(lp_beam_bounds *b, const double price[LP_EXACT_LIMITS], int limit, double factor) {
  lp_exact_state_prices at = {.objective = 1};
  memcpy(at.price, price, sizeof at.price);
  at.price[limit] *= factor;
  add_prices(b, &at);
}

/* The number of factors of prices for which the bounds have room. */
static size_t count_factors(const lp_beam_bounds *b, const double price[LP_EXACT_LIMITS], size_t most) {
  enum { MOST_RESTS = 100000000 }; /* 400 MB */
  const size_t states = b->s->first[b->s->x->step_count + 1];
  size_t priced = 0;
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    priced += price[q] > 0;
  while (most > 2 && states * ((size_t)b->count + most * priced) > MOST_RESTS)
    most -= 2;
  return most;
}

/* Fills the bounds of a level and of those before it. */
static void fill_level(lp_beam_bounds *b, int level) {
  const int end = b->end[level];
  if (end <= b->filled) return;
  lp_exact_states_fill(b->s, b->at, b->count, b->filled, end, b->rest);
  b->filled = end;
}

void lp_beam_bounds_create(const lp_exact_states *s, const double price[LP_EXACT_LIMITS], int levels,
                           lp_beam_bounds *out) {
  static const double factor[2 * LP_BEAM_LEVELS] = {1.5, 1 / 1.5, 4, 1.0 / 4, 1.1, 1 / 1.1};
  *out = (lp_beam_bounds){.s = s};
  add_scaled(out, price, 0, 1);
  add_needs(out, price);
  const size_t factors = count_factors(out, price, 2 * (size_t)levels);
  for (size_t i = 0; i < factors; i += 2, out->end[out->levels++] = out->count)
    for (int q = 0; q < LP_EXACT_LIMITS; q++)
      for (size_t k = i; k < i + 2 && price[q] > 0; k++)
        add_scaled(out, price, q, factor[k]);
  const size_t states = s->first[s->x->step_count + 1];
  out->rest = lp_alloc((states * (size_t)out->count + 1) * sizeof *out->rest);
  fill_level(out, 0);
}

void lp_beam_bounds_free(lp_beam_bounds *b) {
  free(b->rest);
  b->rest = NULL;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* A placement of the units so far. */
typedef struct {
  double objective, amount[LP_EXACT_LIMITS], activation[LP_SIDE_COUNT], bound;
  int32_t at;    /* its state */
  int32_t trace; /* twice the number of the label before it, and its last side */
} label;

typedef LP_VEC(label) labels;

/* A label to be sorted. */
typedef struct {
  double key;
  int32_t at, index;
} ranked;

typedef struct {
  const lp_beam_bounds *b;
  lp_beam_search *search;
  labels now, next;
  LP_VEC(ranked) rank;
  int32_t **traces; /* [step][label] */
} searcher;

static void drop(searcher *s, double bound) {
  if (bound < s->search->lowest) s->search->lowest = bound;
}

/* Sets a label's bound, the greatest one of the level; false when it cannot become a wanted placement. */
static bool set_bound(const searcher *s, size_t state, label *l) {
  const lp_beam_bounds *b = s->b;
  const float *rest = b->rest + state * (size_t)b->count;
  l->bound = l->objective;
  if (l->bound >= s->search->most) return false;
  for (int i = 0; i < b->end[s->search->level]; i++) {
    const lp_exact_state_prices *at = &b->at[i];
    double sum = at->objective * l->objective + (double)rest[i];
    for (int q = 0; q < LP_EXACT_LIMITS; q++)
      sum += at->price[q] * l->amount[q];
    if (!(at->objective > 0) && sum > b->offset[i] * (1 + allowance)) return false;
    if (!(at->objective > 0)) continue;
    sum -= b->offset[i];
    if (sum >= s->search->most) return false;
    if (sum > l->bound) l->bound = sum;
  }
  return true;
}

/* Tells whether the label exceeds the memory of a side. */
static bool is_too_large(const lp_exact_states *s, const label *l) {
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    const double limit = s->limit[LP_STAGE_COUNT + side];
    if (limit > 0 && l->amount[LP_STAGE_COUNT + side] + 2 * l->activation[side] > limit * (1 + allowance)) return true;
  }
  return false;
}

static void extend(searcher *s, int32_t k, int32_t parent, int side) {
  const lp_exact_states *graph = s->b->s;
  const lp_exact_step *step = &graph->order[k];
  const lp_exact_state_arc *arc = &graph->step[k].arc[s->now.data[parent].at][side];
  if (arc->to < 0) return;
  label l = s->now.data[parent];
  l.objective += arc->objective;
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    l.amount[q] += arc->amount[q];
  l.activation[side] = fmax(l.activation[side], graph->x->unit[step->stage][step->unit].activation[side]);
  l.at = arc->to;
  l.trace = 2 * parent + side;
  if (!is_too_large(graph, &l) && set_bound(s, graph->first[k + 1] + (size_t)arc->to, &l)) lp_vec_push(&s->next, l);
}

static int compare_ranked(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->key < b->key || a->key > b->key) return a->key < b->key ? -1 : 1;
  return a->index - b->index;
}

/* Tells whether `a`, which is not dearer, is at least as good as `b` in everything that can still matter. */
static bool beats(const lp_exact_states *s, const label *a, const label *b) {
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    if (s->limit[q] > 0 && a->amount[q] > b->amount[q]) return false;
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    const int q = LP_STAGE_COUNT + side;
    if (s->limit[q] > 0 && a->amount[q] + 2 * a->activation[side] > b->amount[q] + 2 * b->activation[side])
      return false;
  }
  return true;
}

/* Drops the labels that another one in the same state beats. Looks at the last ones only, to save time. */
static void filter(searcher *s) {
  enum { MOST_COMPARED = 100 };
  size_t kept = 0, first = 0;
  s->rank.count = 0;
  s->now.count = 0;
  for (size_t i = 0; i < s->next.count; i++)
    lp_vec_push(&s->rank, ((ranked){s->next.data[i].objective, s->next.data[i].at, (int32_t)i}));
  if (s->rank.count) qsort(s->rank.data, s->rank.count, sizeof *s->rank.data, compare_ranked);
  for (size_t i = 0; i < s->rank.count; i++) {
    const label *l = &s->next.data[s->rank.data[i].index];
    bool useless = false;
    if (kept > 0 && s->now.data[kept - 1].at != l->at) first = kept;
    for (size_t k = kept; k > first && kept - k < MOST_COMPARED && !useless; k--)
      useless = beats(s->b->s, &s->now.data[k - 1], l);
    if (useless) continue;
    lp_vec_push(&s->now, *l);
    kept++;
  }
}

/* Keeps the labels with the least bounds. */
static void narrow(searcher *s) {
  const size_t width = s->search->width;
  if (s->now.count <= width) return;
  s->rank.count = 0;
  for (size_t i = 0; i < s->now.count; i++)
    lp_vec_push(&s->rank, ((ranked){.key = s->now.data[i].bound, .index = (int32_t)i}));
  qsort(s->rank.data, s->rank.count, sizeof *s->rank.data, compare_ranked);
  drop(s, s->rank.data[width].key);
  s->next.count = 0;
  for (size_t i = 0; i < width; i++)
    lp_vec_push(&s->next, s->now.data[s->rank.data[i].index]);
  labels swap = s->now;
  s->now = s->next;
  s->next = swap;
}

static void do_step(searcher *s, int32_t k) {
  s->next.count = 0;
  for (size_t i = 0; i < s->now.count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      extend(s, k, (int32_t)i, side);
  filter(s);
  narrow(s);
  s->traces[k] = lp_alloc((s->now.count + 1) * sizeof **s->traces);
  for (size_t i = 0; i < s->now.count; i++)
    s->traces[k][i] = s->now.data[i].trace;
}

/* ---- placements -------------------------------------------------------------------------------------------------- */

static void trace_back(const searcher *s, int32_t at, unsigned char *const side[LP_STAGE_COUNT]) {
  const lp_exact *x = s->b->s->x;
  for (int32_t k = x->step_count; k-- > 0;) {
    const int32_t trace = s->traces[k][at];
    const lp_exact_step *step = &s->b->s->order[k];
    side[step->stage][step->unit] = (unsigned char)(trace & 1);
    at = trace / 2;
  }
}

/* Passes the placements found to `see` until one is feasible. */
static void show_best(searcher *s) {
  const lp_exact *x = s->b->s->x;
  unsigned char *side[LP_STAGE_COUNT];
  s->rank.count = 0;
  for (size_t i = 0; i < s->now.count; i++)
    lp_vec_push(&s->rank, ((ranked){.key = s->now.data[i].objective, .index = (int32_t)i}));
  if (s->rank.count) qsort(s->rank.data, s->rank.count, sizeof *s->rank.data, compare_ranked);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = lp_alloc((size_t)x->unit_count[stage] + 1);
  for (size_t i = 0; i < s->rank.count && i < MOST_SEEN; i++) {
    trace_back(s, s->rank.data[i].index, side);
    if (s->search->see(s->search->user, side)) break;
    s->search->refused++;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    free(side[stage]);
}

void lp_beam_run(lp_beam_bounds *b, lp_beam_search *search) {
  fill_level(b, search->level);
  const int32_t count = b->s->x->step_count;
  searcher s = {.b = b, .search = search, .traces = lp_alloc(((size_t)count + 1) * sizeof *s.traces)};
  search->lowest = search->most;
  search->refused = 0;
  lp_vec_push(&s.now, ((label){0}));
  int32_t k = 0;
  for (; k < count && s.now.count; k++)
    do_step(&s, k);
  if (s.now.count) {
    double least = INFINITY;
    for (size_t i = 0; i < s.now.count; i++)
      least = fmin(least, s.now.data[i].objective);
    drop(&s, least);
    show_best(&s);
  }
  while (k-- > 0)
    free(s.traces[k]);
  free(s.traces);
  lp_vec_free(&s.now);
  lp_vec_free(&s.next);
  lp_vec_free(&s.rank);
}
