/* The label search over places: labels of sums, part by part. A label is dropped if another one in the same state is no
 * worse in any sum, if its bound shows that no wanted plan follows, or if there are too many; then the search remembers
 * the least bound that it dropped, and so proves a bound in any case. */
#include "passes/plan/places/model.h"

#include <math.h>

/* A limit that is exceeded by less than this share counts as met: sums of times differ with the order of terms. */
static const double allowance = 1e-12;

/* Plans that are better by less than this share are not looked for. */
static const double too_close = 1e-9;

/* The most labels of a state with which a label is compared, LANES of them at a time. */
enum { LANES = 40, MOST_COMPARED = 10 * LANES };

/* The most sums that are compared. */
enum { KEYS = 1 + LP_STAGE_COUNT + 2 * LP_PLACES_MAX };

/* ---- sums -------------------------------------------------------------------------------------------------------- */

lp_places_sum lp_places_sum_begin(void) {
  return (lp_places_sum){0};
}

/* Terms are multiples of a power of two, so that sums are exact and the same terms in another order are one label. */
static double on_grid(double value, double grid) {
  return grid > 0 ? rint(value / grid) * grid : value;
}

static void add_time(const lp_places_model *m, int stage, double ms, double price, lp_places_sum *sum) {
  sum->ms[stage] += on_grid(ms, m->grid_ms[stage]);
  sum->objective += on_grid(price * ms, m->grid_objective);
}

static void add_link(const lp_places_model *m, int stage, int from, int to, double bytes, lp_places_sum *sum) {
  if (from != to) add_time(m, stage, lp_places_hop_ms(m, from, to, bytes), m->link[stage], sum);
}

static void add_busy(const lp_places_model *m, int stage, int place, double ms, lp_places_sum *sum) {
  if (ms > 0) add_time(m, stage, ms, m->busy[stage][place], sum);
}

/* Adds what parts share where the place has not used it yet. */
static void add_shared(const lp_places_model *m, int32_t index, int stage, int place, lp_places_sum *sum) {
  for (int32_t h = 0; h < m->holding_count; h++) {
    if (!(m->part[index].shared[stage] >> h & 1)) continue;
    const lp_places_holding *holding = &m->holding[h];
    uint8_t *held = sum->held[h];
    if (!((held[0] | held[1]) >> place & 1)) sum->bytes[place] += holding->bytes[place];
    if (!(held[stage] >> place & 1)) add_busy(m, stage, place, holding->ms[stage][place], sum);
    held[stage] = (uint8_t)(held[stage] | (1U << place));
  }
}

static void add_move(const lp_places_model *m, const lp_places_part *part, int from, int to, lp_places_sum *sum) {
  const uint64_t bit = (uint64_t)1 << (from * LP_PLACES_MAX + to);
  if (from == to || !(part->move_bytes > 0)) return;
  const double ms = part->move_bytes * m->ms_per_byte[from][to] + (sum->moves & bit ? 0 : m->message_ms[from][to]);
  sum->moves |= bit;
  add_time(m, LP_STAGE_PREFILL, ms, m->move, sum);
}

static void add_bytes(const lp_places_part *part, const uint8_t at[LP_STAGE_COUNT], lp_places_sum *sum) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const int p = at[stage];
    sum->bytes[p] += part->weight_bytes[stage][p];
    if (stage == 0 || at[0] != at[1]) sum->bytes[p] += part->weight_bytes[LP_PLACES_BOTH][p] + part->cache_bytes[p];
    sum->activation[p] = fmax(sum->activation[p], part->activation[stage][p]);
    sum->used = (uint16_t)(sum->used | (1U << p));
  }
}

/* What no later part uses is forgotten, so that more labels compare. */
static void forget(const lp_places_model *m, int32_t index, lp_places_sum *sum) {
  for (int32_t h = 0; h < m->holding_count; h++)
    if (m->holding[h].last[0] <= index && m->holding[h].last[1] <= index) sum->held[h][0] = sum->held[h][1] = 0;
}

void lp_places_sum_add(const lp_places_model *m, int32_t index, const uint8_t at[LP_STAGE_COUNT], lp_places_sum *sum) {
  const lp_places_part *part = &m->part[index];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    if (index > 0 || m->has_input[stage]) add_link(m, stage, sum->at[stage], at[stage], part->hop_bytes[stage], sum);
    add_busy(m, stage, at[stage], part->ms[stage][at[stage]], sum);
    add_shared(m, index, stage, at[stage], sum);
    sum->at[stage] = at[stage];
    if (index == m->part_count - 1 && m->has_result[stage])
      add_link(m, stage, at[stage], 0, m->result_bytes[stage], sum);
  }
  add_move(m, part, at[0], at[1], sum);
  add_bytes(part, at, sum);
  forget(m, index, sum);
}

static bool has_room(const lp_places_model *m, const lp_places_sum *sum) {
  for (int p = 0; p < m->count; p++)
    if (m->limit_bytes[p] > 0 && sum->bytes[p] + sum->activation[p] > m->limit_bytes[p]) return false;
  return true;
}

bool lp_places_sum_fits(const lp_places_model *m, const lp_places_sum *sum) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (m->limit_ms[stage] > 0 && sum->ms[stage] > m->limit_ms[stage] * (1 + allowance)) return false;
  return has_room(m, sum);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

typedef struct {
  lp_places_sum sum;
  double bound, rank;
  int32_t parent;
} label;

typedef struct {
  int32_t parent;
  uint8_t at[LP_STAGE_COUNT];
} trace;

typedef struct {
  const lp_places_model *m;
  const lp_places_paths *paths;
  lp_places_paths *fastest[LP_STAGE_COUNT]; /* with prices to the end: the least time of a stage; NULL: no limit */
  lp_places_search *search;
  const lp_places_rest *rest;
  double wanted; /* labels with a bound from here on are of no use */
  LP_VEC(label) now, next;
  trace **traces;
  float keys[KEYS][MOST_COMPARED]; /* of the first labels of a state */
} searcher;

static int state_of(const lp_places_model *m, const lp_places_sum *sum) {
  return sum->at[0] * (m->count + 1) + sum->at[1];
}

static double bound_of(const searcher *s, int32_t index, const lp_places_sum *sum) {
  double price = s->paths->objective * sum->objective - s->paths->offset + s->paths->to_end[index][state_of(s->m, sum)];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    price += s->paths->duals.per_ms[stage] * sum->ms[stage];
  for (int p = 0; p < s->m->count; p++) /* the offset has left out a least activation for each place */
    price += s->paths->duals.per_byte[p] * sum->bytes[p];
  /* After the last part the message of the result is in the sums and in the prices to the end. */
  return index == s->m->part_count - 1 ? s->paths->objective * sum->objective : price;
}

static bool is_in_time(const searcher *s, int32_t index, const lp_places_sum *sum) {
  const bool last = index == s->m->part_count - 1;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (s->fastest[stage] && sum->ms[stage] + (last ? 0 : s->fastest[stage]->to_end[index][state_of(s->m, sum)]) >
                                 s->m->limit_ms[stage] * (1 + allowance))
      return false;
  return true;
}

/* Machines of one kind are interchangeable, so they are taken in their order. */
static bool is_in_order(const lp_places_model *m, unsigned used, const uint8_t at[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const int p = at[stage];
    if (m->problem->places->place[p].member > 0 && !((used >> (p - 1)) & 1)) return false;
    used |= 1U << p;
  }
  return true;
}

/* The device's segment is done: the first one, and one after the way back. */
static const unsigned came_back = 1U << LP_PLACES_MAX;

/* Tells whether a chain of segments may go on at `at`. */
static bool is_segment(const lp_places_sum *from, const uint8_t at[LP_STAGE_COUNT]) {
  if (at[0] != at[1]) return false;
  if (!from->used || at[0] == from->at[0]) return true;
  return at[0] == 0 ? !(from->used & came_back) : !(from->used & came_back) && !(from->used >> at[0] & 1);
}

/* With early exits the head stays where the last layer is (solve.c). */
static bool keeps_head(const lp_places_model *m, const lp_places_part *part, const lp_places_sum *from,
                       const uint8_t at[LP_STAGE_COUNT]) {
  const lp_plan_problem *of = &m->problem->of[0][0];
  if (m->problem->exit_layer == 0 || of->ops[part->end_op - 1].layer < of->layer_count || !from->at[0]) return true;
  return at[0] == from->at[0];
}

static bool may_extend(const searcher *s, const lp_places_part *part, const lp_places_sum *from,
                       const uint8_t at[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (part->allowed[stage] && !(part->allowed[stage] >> at[stage] & 1)) return false;
  return (!s->search->segments || (is_segment(from, at) && keeps_head(s->m, part, from, at))) &&
         is_in_order(s->m, from->used, at);
}

/* The places that a chain of segments has left for good. */
static unsigned closed_places(const searcher *s, const lp_places_sum *sum) {
  if (!s->search->segments) return 0;
  const unsigned here = 1U << sum->at[0], all = came_back - 1;
  if (sum->used & came_back) return all & ~here;
  return sum->used & all & ~here & ~1U;
}

static void extend(searcher *s, int32_t index, int32_t parent) {
  const lp_places_model *m = s->m;
  const label from = s->now.data[parent];
  for (int p = 0; p < m->count; p++)
    for (int d = 0; d < m->count; d++) {
      const uint8_t at[] = {(uint8_t)p, (uint8_t)d};
      if (!may_extend(s, &m->part[index], &from.sum, at)) continue;
      label l = {.sum = from.sum, .parent = parent};
      lp_places_sum_add(m, index, at, &l.sum);
      if (s->search->segments && p == 0 && from.sum.used && from.sum.at[0])
        l.sum.used = (uint16_t)(l.sum.used | came_back);
      if (!has_room(m, &l.sum) || !is_in_time(s, index, &l.sum)) continue;
      l.bound = fmax(from.bound, bound_of(s, index, &l.sum));
      l.rank = lp_places_estimate(s->paths, &s->rest[index], &l.sum, closed_places(s, &l.sum));
      if (l.bound < s->wanted) lp_vec_push(&s->next, l);
    }
}

static int compare_labels(const void *left, const void *right) {
  const label *a = left, *b = right;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (a->sum.at[stage] != b->sum.at[stage]) return (int)a->sum.at[stage] - (int)b->sum.at[stage];
  if (a->bound != b->bound) return a->bound < b->bound ? -1 : 1;
  return a->sum.objective < b->sum.objective ? -1 : a->sum.objective > b->sum.objective;
}

static int compare_ranks(const void *left, const void *right) {
  const label *a = left, *b = right;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  if (a->bound != b->bound) return a->bound < b->bound ? -1 : 1;
  return compare_labels(left, right);
}

/* Tells whether whatever follows `b` would be no worse after `a`. */
static bool dominates(const searcher *s, const lp_places_sum *a, const lp_places_sum *b) {
  const lp_places_model *m = s->m;
  if (s->search->segments && a->used != b->used) return false;
  if (a->objective > b->objective || a->ms[0] > b->ms[0] || a->ms[1] > b->ms[1]) return false;
  for (int p = 0; p < m->count; p++)
    if (m->limit_bytes[p] > 0 && (a->bytes[p] > b->bytes[p] || a->activation[p] > b->activation[p])) return false;
  if ((b->moves & ~a->moves) || (b->used & ~a->used)) return false;
  for (int32_t h = 0; h < m->holding_count; h++)
    if ((b->held[h][0] & ~a->held[h][0]) || (b->held[h][1] & ~a->held[h][1])) return false;
  return true;
}

/* ---- filter ------------------------------------------------------------------------------------------------------ */

/* The keys of a label are its sums as floats. Rounding keeps their order, so a label with a greater key than another
 * does not dominate it, and most pairs need no other comparison. */
static int fill_keys(const lp_places_model *m, const lp_places_sum *sum, float out[KEYS]) {
  int count = 0;
  out[count++] = (float)sum->objective;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    out[count++] = (float)sum->ms[stage];
  for (int p = 0; p < m->count; p++) {
    if (!(m->limit_bytes[p] > 0)) continue;
    out[count++] = (float)sum->bytes[p];
    out[count++] = (float)sum->activation[p];
  }
  return count;
}

/* Marks the keys that are greater than `own`. */
static void mark_greater(const float *restrict key, float own, int32_t *restrict mark) {
  for (int k = 0; k < LANES; k++)
    mark[k] |= -(key[k] > own);
}

static bool are_all_marked(const int32_t *mark) {
  int32_t all = -1;
  for (int k = 0; k < LANES; k++)
    all &= mark[k];
  return all;
}

/* Tells whether one of the labels of `now` from `begin` on dominates the label with these keys. */
static bool is_dominated(const searcher *s, size_t begin, const lp_places_sum *sum, const float key[KEYS], int keys) {
  const size_t count = s->now.count - begin < MOST_COMPARED ? s->now.count - begin : MOST_COMPARED;
  for (size_t first = 0; first < count; first += LANES) {
    int32_t greater[LANES] = {0};
    bool all = false;
    for (int d = 0; d < keys && !all; d++) {
      mark_greater(&s->keys[d][first], key[d], greater);
      all = are_all_marked(greater);
    }
    for (size_t k = 0; !all && k < LANES && first + k < count; k++)
      if (!greater[k] && dominates(s, &s->now.data[begin + first + k].sum, sum)) return true;
  }
  return false;
}

/* Moves the labels that no other dominates from `next` to `now`. */
static void filter(searcher *s) {
  if (s->next.count) qsort(s->next.data, s->next.count, sizeof *s->next.data, compare_labels);
  s->now.count = 0;
  size_t begin = 0;
  for (size_t i = 0; i < s->next.count; i++) {
    const label *l = &s->next.data[i];
    float key[KEYS];
    const int keys = fill_keys(s->m, &l->sum, key);
    if (i == 0 || state_of(s->m, &l->sum) != state_of(s->m, &s->next.data[i - 1].sum)) begin = s->now.count;
    if (is_dominated(s, begin, &l->sum, key, keys)) continue;
    for (int d = 0; d < keys && s->now.count - begin < MOST_COMPARED; d++)
      s->keys[d][s->now.count - begin] = key[d];
    lp_vec_push(&s->now, *l);
  }
  s->next.count = 0;
}

/* Keeps the labels with the least estimates. */
static void narrow(searcher *s) {
  if (s->now.count <= s->search->width) return;
  qsort(s->now.data, s->now.count, sizeof *s->now.data, compare_ranks);
  s->search->complete = false;
  for (size_t i = s->search->width; i < s->now.count; i++)
    s->search->dropped = fmin(s->search->dropped, s->now.data[i].bound);
  s->now.count = s->search->width;
}

static void keep_traces(searcher *s, int32_t index) {
  s->traces[index] = lp_alloc((s->now.count + 1) * sizeof **s->traces);
  for (size_t i = 0; i < s->now.count; i++) {
    const label *l = &s->now.data[i];
    s->traces[index][i] = (trace){l->parent, {l->sum.at[0], l->sum.at[1]}};
  }
}

/* Takes the best label after the last part. */
static void conclude(searcher *s, uint8_t *path[LP_STAGE_COUNT]) {
  int32_t best = -1;
  for (size_t i = 0; i < s->now.count; i++)
    if (best < 0 || s->now.data[i].sum.objective < s->now.data[best].sum.objective) best = (int32_t)i;
  if (best < 0) return;
  s->search->found = s->now.data[best].sum.objective;
  for (int32_t i = s->m->part_count; i-- > 0;) {
    const trace *at = &s->traces[i][best];
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      path[stage][i] = at->at[stage];
    best = at->parent;
  }
}

static lp_places_paths *find_fastest(const lp_places_model *m, int stage) {
  if (!(m->limit_ms[stage] > 0)) return NULL;
  lp_places_paths *paths = lp_places_paths_create(m, false);
  paths->objective = 0;
  paths->duals.per_ms[stage] = 1;
  lp_places_paths_solve(paths);
  lp_places_paths_back(paths);
  return paths;
}

void lp_places_search_run(const lp_places_paths *paths, lp_places_search *search, uint8_t *path[LP_STAGE_COUNT]) {
  const lp_places_model *m = paths->model;
  searcher s = {.m = m, .paths = paths, .search = search};
  search->complete = true;
  search->dropped = search->found = INFINITY;
  s.wanted = isinf(search->known) ? INFINITY : search->known - too_close * fabs(search->known);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s.fastest[stage] = find_fastest(m, stage);
  s.rest = lp_places_rest_create(paths);
  s.traces = lp_alloc(((size_t)m->part_count + 1) * sizeof *s.traces);
  const label first = {.sum = lp_places_sum_begin(), .bound = lp_places_paths_bound(paths), .parent = -1};
  if (first.bound < s.wanted) lp_vec_push(&s.now, first);
  for (int32_t i = 0; i < m->part_count; i++) {
    for (size_t k = 0; k < s.now.count; k++)
      extend(&s, i, (int32_t)k);
    filter(&s);
    narrow(&s);
    keep_traces(&s, i);
  }
  conclude(&s, path);
  for (int32_t i = 0; i < m->part_count; i++)
    free(s.traces[i]);
  free(s.traces);
  lp_vec_free(&s.now);
  lp_vec_free(&s.next);
}
