/* Dominance among labels of the chain search, and the least of many bounds. */
#include "passes/plan/exact/dominance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ------------------------------------------------------------------------------------------------------- */

static int compare_numbers(double a, double b) {
  return (a > b) - (a < b);
}

int lp_chain_compare_groups(const lp_chain_label *a, const lp_chain_label *b) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (a->sum.at[stage] != b->sum.at[stage]) return a->sum.at[stage] < b->sum.at[stage] ? -1 : 1;
  return (a->sum.shared > b->sum.shared) - (a->sum.shared < b->sum.shared);
}

static int compare_labels(const lp_chain_label *a, const lp_chain_label *b) {
  int order = lp_chain_compare_groups(a, b);
  if (!order) order = compare_numbers(a->rank, b->rank);
  for (int i = 0; i < LP_STAGE_COUNT && !order; i++)
    order = compare_numbers(a->sum.ms[i], b->sum.ms[i]);
  for (int i = 0; i < LP_SIDE_COUNT && !order; i++)
    order = compare_numbers(a->sum.bytes[i], b->sum.bytes[i]);
  if (!order) order = compare_numbers(a->sum.objective, b->sum.objective);
  if (!order) order = (a->parent > b->parent) - (a->parent < b->parent);
  return order ? order : (a->sum.sides > b->sum.sides) - (a->sum.sides < b->sum.sides);
}

/* Tells whether `a`, with a hardly greater objective, beats or equals `b` in everything that can still matter. */
static bool beats(const lp_exact *x, double slur, const lp_exact_mode *a, const lp_exact_mode *b) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (x->limit_ms[stage] > 0 && a->ms[stage] > b->ms[stage] + slur * x->limit_ms[stage]) return false;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (x->limit_bytes[side] > 0 && (a->bytes[side] > b->bytes[side] + slur * x->limit_bytes[side] ||
                                     a->bytes[side] + 2 * a->activation[side] >
                                         b->bytes[side] + 2 * b->activation[side] + slur * x->limit_bytes[side]))
      return false;
  return true;
}

/* The number at `index` in ascending order (quickselect); reorders the list so that no greater one comes before it. */
static double select_number(double *list, size_t count, size_t index) {
  size_t low = 0, high = count - 1;
  while (low < high) {
    double pivot = list[low + (high - low) / 2];
    size_t i = low, k = high;
    for (;;) {
      while (list[i] < pivot)
        i++;
      while (list[k] > pivot)
        k--;
      if (i >= k) break;
      double swap = list[i];
      list[i++] = list[k];
      list[k--] = swap;
    }
    if (index <= k)
      high = k;
    else
      low = k + 1;
  }
  return list[index];
}

double lp_chain_narrow(lp_chain_labels *list, size_t width) {
  double lost = INFINITY;
  if (list->count <= width) return lost;
  double *bound = lp_alloc(list->count * sizeof *bound);
  for (size_t i = 0; i < list->count; i++)
    bound[i] = list->data[i].bound;
  double most = select_number(bound, list->count, width);
  size_t equal = 0, kept = 0; /* `equal`: of the labels with just this bound, the number that fit */
  for (size_t i = 0; i < width; i++)
    equal += bound[i] >= most;
  free(bound);
  for (size_t i = 0; i < list->count; i++) {
    const lp_chain_label *l = &list->data[i];
    if (l->bound < most || (l->bound <= most && equal && equal--))
      list->data[kept++] = *l;
    else
      lost = fmin(lost, l->bound - l->loss);
  }
  list->count = kept;
  return lost;
}

static int compare_pointers(const void *left, const void *right) {
  const lp_chain_label *const *a = left, *const *b = right;
  return compare_labels(*a, *b);
}

/* ---- stairs ------------------------------------------------------------------------------------------------------ */

typedef struct {
  double first, second;
  size_t label; /* in the list */
} stair_step;

/* Of the labels kept of a group those that no other beats in two of the limited quantities: the first ascends, the
 * second descends. A label that none of them beats is beaten by no other. */
typedef struct {
  int first, second; /* quantities: times of stages, then bytes of sides; -1: none is limited */
  bool is_all;       /* no other quantity is limited */
  LP_VEC(stair_step) step;
} stair;

static double limit_of(const lp_exact *x, int quantity) {
  if (quantity < 0) return 0;
  return quantity < LP_STAGE_COUNT ? x->limit_ms[quantity] : x->limit_bytes[quantity - LP_STAGE_COUNT];
}

static double quantity_of(const lp_exact_mode *l, int quantity) {
  if (quantity < 0) return 0;
  return quantity < LP_STAGE_COUNT ? l->ms[quantity] : l->bytes[quantity - LP_STAGE_COUNT];
}

static stair make_stair(const lp_exact *x) {
  stair s = {.first = -1, .second = -1, .is_all = true};
  for (int i = 0; i < (int)LP_STAGE_COUNT + (int)LP_SIDE_COUNT; i++) {
    if (!(limit_of(x, i) > 0)) continue;
    if (s.second >= 0 || i >= LP_STAGE_COUNT) s.is_all = false; /* with a limit on bytes, the active set counts too */
    if (s.first < 0)
      s.first = i;
    else if (s.second < 0)
      s.second = i;
  }
  return s;
}

/* Returns the number of steps with a first quantity of at most `most`. */
static size_t steps_up_to(const stair *s, double most) {
  size_t low = 0, high = s->step.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (s->step.data[middle].first <= most)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The step that beats a label in both quantities, NULL: none does. */
static const stair_step *find_step(const stair *s, const lp_exact *x, double slur, const lp_exact_mode *l) {
  size_t count = steps_up_to(s, quantity_of(l, s->first) + slur * limit_of(x, s->first));
  double most = quantity_of(l, s->second) + slur * limit_of(x, s->second);
  return count && s->step.data[count - 1].second <= most ? &s->step.data[count - 1] : NULL;
}

static void add_step(stair *s, const lp_exact_mode *l, size_t label) {
  stair_step own = {quantity_of(l, s->first), quantity_of(l, s->second), label};
  size_t at = steps_up_to(s, own.first), end = at;
  if (at && s->step.data[at - 1].second <= own.second) return;
  if (at && s->step.data[at - 1].first >= own.first) at--;
  while (end < s->step.count && s->step.data[end].second >= own.second)
    end++;
  if (at == end) lp_vec_push(&s->step, own); /* this makes room */
  size_t moved = (at == end ? s->step.count - 1 : s->step.count) - end, to = at + 1;
  memmove(&s->step.data[to], &s->step.data[end], moved * sizeof own);
  s->step.data[at] = own;
  s->step.count = to + moved;
}

/* ---- the filter -------------------------------------------------------------------------------------------------- */

/* The label of a group, kept since `begin`, that dominates `l`; NULL: none does. */
static lp_chain_label *find_better(const lp_exact *x, double slur, const stair *s, lp_chain_labels *kept, size_t begin,
                                   const lp_chain_label *l) {
  const stair_step *step = find_step(s, x, slur, &l->sum);
  if (!step) return NULL;
  if (s->is_all || beats(x, slur, &kept->data[step->label].sum, &l->sum)) return &kept->data[step->label];
  for (size_t k = kept->count; k-- > begin;)
    if (beats(x, slur, &kept->data[k].sum, &l->sum)) return &kept->data[k];
  return NULL;
}

void lp_chain_filter(const lp_exact *x, double slur, lp_chain_labels *from, lp_chain_labels *to) {
  const lp_chain_label **order = lp_alloc((from->count + 1) * sizeof *order);
  for (size_t i = 0; i < from->count; i++)
    order[i] = &from->data[i];
  qsort(order, from->count, sizeof *order, compare_pointers);
  size_t begin = 0;
  stair s = make_stair(x);
  to->count = 0;
  for (size_t i = 0; i < from->count; i++) {
    const lp_chain_label *l = order[i];
    if (!to->count || lp_chain_compare_groups(&to->data[to->count - 1], l)) {
      begin = to->count;
      s.step.count = 0;
    }
    lp_chain_label *other = find_better(x, slur, &s, to, begin, l);
    if (other) {
      other->loss = fmax(other->loss, l->loss + other->sum.objective - l->sum.objective);
      continue;
    }
    lp_vec_push(to, *l);
    add_step(&s, &l->sum, to->count - 1);
  }
  from->count = 0;
  free(order);
  lp_vec_free(&s.step);
}
