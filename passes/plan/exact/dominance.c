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

/* ---- piles ------------------------------------------------------------------------------------------------------- */

/* The labels that are kept of a group, by blocks, so that one comparison excludes a block and a label is compared with
 * a whole block at once. The quantities are those that can matter after a label: limited times, and for each limited
 * side its bytes with and without the largest activation. */
enum { IN_BLOCK = 32, MOST_QUANTITIES = 2 * LP_SIDE_COUNT + LP_STAGE_COUNT };

typedef struct {
  double least[MOST_QUANTITIES], amount[MOST_QUANTITIES][IN_BLOCK];
} pile_block;

typedef struct {
  const lp_exact *x;
  double slur;
  LP_VEC(pile_block) block;
  size_t count; /* labels */
} pile;

/* Fills the quantities of a label, each with its `slur` added; returns their number. */
static int list_quantities(const lp_exact *x, double slur, const lp_exact_mode *l, double out[MOST_QUANTITIES]) {
  int count = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (x->limit_ms[stage] > 0) out[count++] = l->ms[stage] + slur * x->limit_ms[stage];
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    if (!(x->limit_bytes[side] > 0)) continue;
    out[count++] = l->bytes[side] + slur * x->limit_bytes[side];
    out[count++] = l->bytes[side] + 2 * l->activation[side] + slur * x->limit_bytes[side];
  }
  return count;
}

static void add_to_pile(pile *p, const lp_exact_mode *l) {
  double own[MOST_QUANTITIES];
  const int quantities = list_quantities(p->x, 0, l, own);
  const size_t at = p->count++ % IN_BLOCK;
  if (at == 0) {
    lp_vec_push(&p->block, ((pile_block){{0}, {{0}}}));
    pile_block *fresh = &p->block.data[p->block.count - 1];
    for (int i = 0; i < quantities; i++) {
      fresh->least[i] = INFINITY;
      for (int k = 0; k < IN_BLOCK; k++)
        fresh->amount[i][k] = INFINITY;
    }
  }
  pile_block *b = &p->block.data[p->block.count - 1];
  for (int i = 0; i < quantities; i++) {
    b->amount[i][at] = own[i];
    b->least[i] = fmin(b->least[i], own[i]);
  }
}

/* Tells whether a label of a block can have no more of any quantity than `most`. */
static bool may_beat(const pile_block *b, int quantities, const double most[MOST_QUANTITIES]) {
  for (int i = 0; i < quantities; i++)
    if (!(b->least[i] <= most[i])) return false;
  return true;
}

/* The last label of a block that has no more of any quantity than `most`; -1: none. */
static int find_in_block(const pile_block *b, int quantities, const double most[MOST_QUANTITIES]) {
  double excess[IN_BLOCK]; /* the greatest of all quantities */
  for (int k = 0; k < IN_BLOCK; k++)
    excess[k] = -INFINITY;
  for (int i = 0; i < quantities; i++)
    for (int k = 0; k < IN_BLOCK; k++) {
      const double own = b->amount[i][k] - most[i];
      excess[k] = own > excess[k] ? own : excess[k];
    }
  for (int k = IN_BLOCK; k-- > 0;)
    if (excess[k] <= 0) return k;
  return -1;
}

/* The last label of the pile that beats `l`, by its number; SIZE_MAX: none does. */
static size_t find_in_pile(const pile *p, const lp_exact_mode *l) {
  double most[MOST_QUANTITIES];
  const int quantities = list_quantities(p->x, p->slur, l, most);
  for (size_t i = p->block.count; i-- > 0;) {
    if (!may_beat(&p->block.data[i], quantities, most)) continue;
    const int at = find_in_block(&p->block.data[i], quantities, most);
    if (at >= 0) return i * IN_BLOCK + (size_t)at;
  }
  return SIZE_MAX;
}

/* ---- the filter -------------------------------------------------------------------------------------------------- */

/* Tells whether `a`, with a hardly greater objective, beats or equals `b` in everything that can still matter. */
static bool beats(const lp_exact *x, double slur, const lp_exact_mode *a, const lp_exact_mode *b) {
  double own[MOST_QUANTITIES], most[MOST_QUANTITIES];
  const int quantities = list_quantities(x, 0, a, own);
  (void)list_quantities(x, slur, b, most);
  for (int i = 0; i < quantities; i++)
    if (own[i] > most[i]) return false;
  return true;
}

/* The label of a group, kept since `begin`, that dominates `l`; NULL: none does. */
static lp_chain_label *find_better(const stair *s, const pile *p, lp_chain_labels *kept, size_t begin,
                                   const lp_chain_label *l) {
  const stair_step *step = find_step(s, p->x, p->slur, &l->sum);
  if (!step) return NULL;
  if (s->is_all || beats(p->x, p->slur, &kept->data[step->label].sum, &l->sum)) return &kept->data[step->label];
  const size_t found = find_in_pile(p, &l->sum);
  return found == SIZE_MAX ? NULL : &kept->data[begin + found];
}

void lp_chain_filter(const lp_exact *x, double slur, lp_chain_labels *from, lp_chain_labels *to) {
  const lp_chain_label **order = lp_alloc((from->count + 1) * sizeof *order);
  for (size_t i = 0; i < from->count; i++)
    order[i] = &from->data[i];
  qsort(order, from->count, sizeof *order, compare_pointers);
  size_t begin = 0;
  stair s = make_stair(x);
  pile p = {.x = x, .slur = slur};
  to->count = 0;
  for (size_t i = 0; i < from->count; i++) {
    const lp_chain_label *l = order[i];
    if (!to->count || lp_chain_compare_groups(&to->data[to->count - 1], l)) {
      begin = to->count;
      s.step.count = p.block.count = p.count = 0;
    }
    lp_chain_label *other = find_better(&s, &p, to, begin, l);
    if (other) {
      other->loss = fmax(other->loss, l->loss + other->sum.objective - l->sum.objective);
      continue;
    }
    lp_vec_push(to, *l);
    add_step(&s, &l->sum, to->count - 1);
    if (!s.is_all) add_to_pile(&p, &l->sum);
  }
  from->count = 0;
  free(order);
  lp_vec_free(&s.step);
  lp_vec_free(&p.block);
}
