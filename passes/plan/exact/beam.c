/* The beam search of the exact scheduler. Sums are exact, so equal placements of layers in another order are one. */
#include "passes/plan/exact/beam.h"
#include "base/side.h"

#include <math.h>

/* The most placements that are evaluated at the end of a search. */
enum { MOST_SEEN = 50 };

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
static const double allowance = 1e-9;

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static void add_prices(lp_beam_bounds *b, const lp_exact_state_prices *at) {
  const lp_exact_states *s = b->s;
  const int lane = b->count;
  double offset = 0;
  for (int i = 0; i < b->limits; i++) {
    offset += at->price[b->limited[i]] * s->limit[b->limited[i]];
    b->weight[1 + i][lane / LP_BEAM_WIDE][lane % LP_BEAM_WIDE] = at->price[b->limited[i]];
  }
  b->weight[0][lane / LP_BEAM_WIDE][lane % LP_BEAM_WIDE] = at->objective;
  b->at[b->count] = *at;
  b->offset[b->count++] = offset;
}

/* Adds bounds of the least amounts of a limit, or of a sum of limits, that a placement needs. */
static void add_needs(lp_beam_bounds *b, const double price[LP_EXACT_LIMITS]) {
  lp_exact_state_prices all = {0};
  int priced = 0;
  for (int i = 0; i < b->limits; i++) {
    const int q = b->limited[i];
    lp_exact_state_prices one = {0};
    one.price[q] = 1;
    add_prices(b, &one);
    all.price[q] = price[q];
    priced += price[q] > 0;
  }
  if (priced > 1) add_prices(b, &all);
  b->needs = b->count - 1;
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

static int first_of(const lp_beam_bounds *b, int level) {
  return level ? b->end[level - 1] : 0;
}

/* Fills the bounds of a level and of those before it. */
static void fill_levels(lp_beam_bounds *b, int level) {
  const size_t states = b->s->first[b->s->x->step_count + 1];
  for (int i = 0; i <= level; i++) {
    if (b->rest[i]) continue;
    const int first = first_of(b, i), count = b->end[i] - first;
    b->rest[i] = lp_alloc((states * (size_t)count + 1) * sizeof **b->rest);
    lp_exact_states_fill(b->s, b->at + first, count, b->rest[i]);
  }
}

void lp_beam_bounds_create(const lp_exact_states *s, const double price[LP_EXACT_LIMITS], int levels,
                           lp_beam_bounds *out) {
  static const double factor[2 * LP_BEAM_LEVELS] = {1.5, 1 / 1.5, 4, 1.0 / 4, 1.1, 1 / 1.1};
  *out = (lp_beam_bounds){.s = s};
  for (int q = 0; q < LP_EXACT_LIMITS; q++)
    if (s->limit[q] > 0) out->limited[out->limits++] = q;
  add_scaled(out, price, 0, 1);
  add_needs(out, price);
  const size_t factors = count_factors(out, price, 2 * (size_t)levels);
  for (size_t i = 0; i < factors; i += 2, out->end[out->levels++] = out->count)
    for (int q = 0; q < LP_EXACT_LIMITS; q++)
      for (size_t k = i; k < i + 2 && price[q] > 0; k++)
        add_scaled(out, price, q, factor[k]);
}

void lp_beam_bounds_free(lp_beam_bounds *b) {
  for (int i = 0; i < LP_BEAM_LEVELS; i++)
    free(b->rest[i]);
  *b = (lp_beam_bounds){0};
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* A placement of the units so far. */
typedef struct {
  double objective, amount[LP_EXACT_LIMITS], activation[LP_SIDE_COUNT], bound;
  int32_t at;    /* its state */
  int32_t trace; /* twice the number of the label before it, and its last side */
} label;

typedef LP_VEC(label) labels;

/* Labels of one state that come from one state before it, with the least objectives first. */
typedef struct {
  size_t next, end; /* those that are not yet merged */
  int32_t other;    /* the number of another run of the state + 1; 0: none */
} run;

typedef struct {
  const lp_beam_bounds *b;
  lp_beam_search *search;
  labels now, next; /* those of a state are neighbours */
  LP_VEC(run) run;  /* of `next` */
  LP_VEC(int32_t) state;
  int32_t *last; /* [state] the number of its last run + 1; 0: none */
  LP_VEC(double) bound;
  int32_t **traces; /* [step][label] */
} searcher;

static void drop(searcher *s, double bound) {
  if (bound < s->search->lowest) s->search->lowest = bound;
}

/* Fills the part of each bound that all labels in a state share. */
static void find_shares(const searcher *s, size_t state, lp_beam_lanes *share) {
  const lp_beam_bounds *b = s->b;
  for (int level = 0; level <= s->search->level; level++) {
    const int first = first_of(b, level), count = b->end[level] - first;
    const float *rest = b->rest[level] + state * (size_t)count;
    for (int i = first; i < first + count; i++)
      share[i / LP_BEAM_WIDE][i % LP_BEAM_WIDE] = (double)rest[i - first] - b->offset[i];
  }
}

/* Sets a label's bound, the greatest one of the level; false when it cannot become a wanted placement. `share`: of each
 * bound, what all labels in its state have. */
static bool set_bound(const searcher *s, const lp_beam_lanes *restrict share, label *l) {
  const lp_beam_bounds *b = s->b;
  const int end = b->end[s->search->level];
  double own[LP_BEAM_WIDES * LP_BEAM_WIDE];
  int i = 0;
  do { /* there is a bound at least */
    lp_beam_lanes sum = share[i] + b->weight[0][i] * l->objective;
    for (int k = 0; k < b->limits; k++)
      sum += b->weight[1 + k][i] * l->amount[b->limited[k]];
    memcpy(&own[i * LP_BEAM_WIDE], &sum, sizeof sum);
  } while (++i * LP_BEAM_WIDE < end);
  for (i = 1; i <= b->needs; i++)
    if (own[i] > b->offset[i] * allowance) return false;
  l->bound = own[0] > l->objective ? own[0] : l->objective;
  for (i = 1 + b->needs; i < end; i++)
    l->bound = own[i] > l->bound ? own[i] : l->bound;
  return l->bound < s->search->most;
}

/* Tells whether the label exceeds the memory of a side. */
static bool is_too_large(const lp_exact_states *s, const label *l) {
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    const double limit = s->limit[LP_STAGE_COUNT + side];
    if (limit > 0 && l->amount[LP_STAGE_COUNT + side] + 2 * l->activation[side] > limit * (1 + allowance)) return true;
  }
  return false;
}

/* Extends the labels [first, end), which share a state, by a step on a side. */
static void extend(searcher *s, int32_t k, size_t first, size_t end, int side) {
  const lp_exact_states *graph = s->b->s;
  const lp_exact_step *step = &graph->order[k];
  const lp_exact_state_arc *arc = &graph->step[k].arc[s->now.data[first].at][side];
  const lp_exact_state_cost *cost = &graph->step[k].cost[arc->cost];
  const double activation = graph->x->unit[step->stage][step->unit].activation[side];
  lp_beam_lanes share[LP_BEAM_WIDES] = {0};
  if (!arc->cost) return;
  find_shares(s, graph->first[k + 1] + (size_t)arc->to, share);
  const size_t begin = s->next.count;
  for (size_t i = first; i < end; i++) {
    lp_vec_push(&s->next, s->now.data[i]);
    label *l = &s->next.data[s->next.count - 1];
    l->objective += cost->objective;
    for (int q = 0; q < LP_EXACT_LIMITS; q++)
      l->amount[q] += cost->amount[q];
    if (activation > l->activation[side]) l->activation[side] = activation;
    l->at = arc->to;
    l->trace = 2 * (int32_t)i + side;
    if (is_too_large(graph, l) || !set_bound(s, share, l)) s->next.count--;
  }
  if (s->next.count == begin) return;
  if (!s->last[arc->to]) lp_vec_push(&s->state, arc->to);
  lp_vec_push(&s->run, ((run){begin, s->next.count, s->last[arc->to]}));
  s->last[arc->to] = (int32_t)s->run.count;
}

/* The last 31 or 32 labels that were kept of a state: older ones are not compared. Half or twice changes no plan. */
enum { BLOCKS = 16, COMPARED_AMOUNTS = LP_EXACT_LIMITS + LP_SIDE_COUNT };
typedef struct {
  lp_beam_lanes amount[BLOCKS][COMPARED_AMOUNTS];
  size_t count; /* of all labels that were kept */
} kept_labels;

/* Fills what matters to a label besides its objective and state, and returns how much: its limited amounts, and
 * memories with activations; a 0 where nothing is limited. */
static int list_amounts(const lp_beam_bounds *b, const label *l, double amount[COMPARED_AMOUNTS]) {
  int count = 0;
  amount[0] = 0;
  for (int i = 0; i < b->limits; i++)
    amount[count++] = l->amount[b->limited[i]];
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (b->s->limit[LP_STAGE_COUNT + side] > 0)
      amount[count++] = l->amount[LP_STAGE_COUNT + side] + 2 * l->activation[side];
  return count ? count : 1;
}

/* Tells whether one of a block of labels has at most these amounts. */
static bool has_less(const lp_beam_lanes *amount, const double *own, int amounts) {
  int64_t all = -1;
  __typeof__(amount[0] > amount[0]) more = amount[0] > own[0];
  for (int q = 1; q < amounts; q++)
    more |= amount[q] > own[q];
  for (int i = 0; i < LP_BEAM_WIDE; i++)
    all &= more[i];
  return all == 0;
}

/* Adds a label to those of its state, which have no greater objectives, unless one of them has at most its amounts;
 * false: there is such a one. */
static bool keep_useful(const lp_beam_bounds *b, const label *l, kept_labels *kept) {
  double own[COMPARED_AMOUNTS];
  const int amounts = list_amounts(b, l, own);
  for (size_t i = 0; i < BLOCKS && LP_BEAM_WIDE * i < kept->count; i++)
    if (has_less(kept->amount[i], own, amounts)) return false;
  const size_t at = kept->count++ % (BLOCKS * LP_BEAM_WIDE);
  for (int q = 0; q < amounts; q++) {
    lp_beam_lanes *block = &kept->amount[at / LP_BEAM_WIDE][q];
    for (int i = 0; i < LP_BEAM_WIDE && at % LP_BEAM_WIDE == 0; i++)
      (*block)[i] = INFINITY;
    (*block)[at % LP_BEAM_WIDE] = own[q];
  }
  return true;
}

/* Takes the label with the least objective from the runs of a state; NULL when all are taken. */
static const label *take_cheapest(searcher *s, int32_t last) {
  run *from = NULL;
  for (int32_t i = last; i; i = s->run.data[i - 1].other) {
    run *r = &s->run.data[i - 1];
    if (r->next < r->end && (!from || s->next.data[r->next].objective <= s->next.data[from->next].objective)) from = r;
  }
  return from ? &s->next.data[from->next++] : NULL;
}

/* Merges the runs of each state without the labels that another one beats. */
static void merge(searcher *s) {
  s->now.count = 0;
  for (size_t i = 0; i < s->state.count; i++) {
    int32_t *last = &s->last[s->state.data[i]];
    kept_labels kept;
    kept.count = 0; /* the amounts are filled as labels come */
    for (const label *l; (l = take_cheapest(s, *last)) != NULL;)
      if (keep_useful(s->b, l, &kept)) lp_vec_push(&s->now, *l);
    *last = 0;
  }
}

static void swap_doubles(double *a, double *b) {
  const double kept = *a;
  *a = *b;
  *b = kept;
}

/* The value of which `rank` others are not greater (Hoare's selection). Changes the order of the values. */
static double select_value(double *value, size_t count, size_t rank) {
  size_t low = 0, high = count - 1;
  while (low < high) {
    const double pivot = value[low + (high - low) / 2];
    size_t i = low, j = high;
    for (;; i++, j--) {
      while (value[i] < pivot)
        i++;
      while (value[j] > pivot)
        j--;
      if (i >= j) break;
      swap_doubles(&value[i], &value[j]);
    }
    if (rank <= j)
      high = j;
    else
      low = j + 1;
  }
  return value[rank];
}

/* Keeps the labels with the least bounds. */
static void narrow(searcher *s) {
  const size_t width = s->search->width;
  if (s->now.count <= width) return;
  s->bound.count = 0;
  for (size_t i = 0; i < s->now.count; i++)
    lp_vec_push(&s->bound, s->now.data[i].bound);
  const double least = select_value(s->bound.data, s->bound.count, width);
  size_t equal = width, kept = 0;
  for (size_t i = 0; i < s->now.count; i++)
    equal -= s->now.data[i].bound < least;
  for (size_t i = 0; i < s->now.count; i++) {
    const double bound = s->now.data[i].bound;
    if (bound > least || (bound == least && equal == 0)) continue;
    equal -= bound == least;
    s->now.data[kept++] = s->now.data[i];
  }
  s->now.count = kept;
  drop(s, least);
}

static void do_step(searcher *s, int32_t k) {
  s->next.count = s->run.count = s->state.count = 0;
  for (size_t first = 0, end; first < s->now.count; first = end) {
    for (end = first + 1; end < s->now.count && s->now.data[end].at == s->now.data[first].at;)
      end++;
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      extend(s, k, first, end, side);
  }
  merge(s);
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

static int compare_objectives(const void *left, const void *right) {
  const label *const *a = left, *const *b = right;
  if ((*a)->objective != (*b)->objective) return (*a)->objective < (*b)->objective ? -1 : 1;
  return *a < *b ? -1 : 1;
}

/* Passes the placements found to `see` until one is feasible. */
static void show_best(searcher *s) {
  const lp_exact *x = s->b->s->x;
  unsigned char *side[LP_STAGE_COUNT];
  const label **rank = lp_alloc(s->now.count * sizeof *rank);
  for (size_t i = 0; i < s->now.count; i++)
    rank[i] = &s->now.data[i];
  qsort(rank, s->now.count, sizeof *rank, compare_objectives);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = lp_alloc((size_t)x->unit_count[stage] + 1);
  drop(s, rank[0]->objective);
  for (size_t i = 0; i < s->now.count && i < MOST_SEEN; i++) {
    trace_back(s, (int32_t)(rank[i] - s->now.data), side);
    if (s->search->see(s->search->user, side)) break;
    s->search->refused++;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    free(side[stage]);
  free(rank);
}

/* The most states between two steps. */
static size_t most_states(const lp_exact_states *s) {
  size_t most = 0;
  for (int32_t k = 0; k <= s->x->step_count; k++)
    if (s->first[k + 1] - s->first[k] > most) most = s->first[k + 1] - s->first[k];
  return most;
}

void lp_beam_run(lp_beam_bounds *b, lp_beam_search *search) {
  fill_levels(b, search->level);
  const int32_t count = b->s->x->step_count;
  searcher s = {.b = b, .search = search, .traces = lp_alloc(((size_t)count + 1) * sizeof *s.traces)};
  s.last = lp_alloc(most_states(b->s) * sizeof *s.last);
  search->lowest = search->most;
  search->refused = 0;
  lp_vec_push(&s.now, ((label){0}));
  int32_t k = 0;
  for (; k < count && s.now.count; k++)
    do_step(&s, k);
  if (s.now.count) show_best(&s);
  while (k-- > 0)
    free(s.traces[k]);
  free(s.traces);
  free(s.last);
  lp_vec_free(&s.now);
  lp_vec_free(&s.next);
  lp_vec_free(&s.run);
  lp_vec_free(&s.state);
  lp_vec_free(&s.bound);
}
