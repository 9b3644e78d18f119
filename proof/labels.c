/* The placements so far, in a search through a graph of frontiers. */
#include "base/number.h"
#include "proof/seeker.h"

#include <math.h>

static int compare_labels(const void *a, const void *b) {
  const label *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  if (x->cached != y->cached) return x->cached < y->cached ? -1 : 1;
  if (x->sent != y->sent) return x->sent < y->sent ? -1 : 1;
  if (x->objective < y->objective || x->objective > y->objective) return x->objective < y->objective ? -1 : 1;
  for (int i = 0; i < LIMIT_COUNT; i++)
    if (x->amount[i] < y->amount[i] || x->amount[i] > y->amount[i]) return x->amount[i] < y->amount[i] ? -1 : 1;
  return 0;
}

static bool dominates(const seeker *s, const label *a, const label *b) {
  for (int i = 0; i < LIMIT_COUNT; i++)
    if (s->limit[i] > 0 && a->amount[i] > b->amount[i]) return false;
  return true;
}

static bool is_comparable(const label *a, const label *b) {
  return a->at == b->at && a->cached == b->cached && a->sent == b->sent;
}

/* Drops the labels that another one at the same frontier dominates. Looks at the last ones only, to save time. */
static void filter(const seeker *s, labels *list) {
  enum { MOST_COMPARED = 100 };
  size_t kept = 0, first = 0;
  if (list->count == 0) return;
  qsort(list->data, list->count, sizeof *list->data, compare_labels);
  LP_FOR_VEC(const label, l, list) {
    bool useless = false;
    if (kept > 0 && !is_comparable(&list->data[kept - 1], l)) first = kept;
    for (size_t k = kept; k > first && kept - k < MOST_COMPARED && !useless; k--)
      useless = dominates(s, &list->data[k - 1], l);
    if (!useless) list->data[kept++] = *l;
  }
  list->count = kept;
}

/* Keeps at most `width` labels, and lowers the target to the least bound of the others. */
static void narrow(labels *list, size_t width, double *target) {
  if (list->count <= width) return;
  double *bound = lp_alloc(list->count * sizeof *bound);
  for (size_t i = 0; i < list->count; i++)
    bound[i] = list->data[i].bound;
  qsort(bound, list->count, sizeof *bound, lp_compare_doubles);
  *target = fmin(*target, bound[width]);
  free(bound);
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++)
    if (list->data[i].bound < *target) list->data[kept++] = list->data[i];
  list->count = kept;
}

/* A power of two, so small that rounding down to its multiples changes no sum by a share of 1e-11 of `scale`, and so
 * large that sums up to `scale` are exact. Then the same times in another order are the same sum. */
static double grid_of(double scale) {
  int exponent;
  (void)frexp(scale, &exponent);
  return ldexp(1, exponent - 50);
}

static double round_down(double value, double grid) {
  return floor(value / grid) * grid;
}

/* The bound of a label at a frontier of all steps by the stage's front. */
static double bound_by_front(const seeker *s, const label *l, int32_t at) {
  const front *f = s->front;
  double bound = l->objective + f->residence * l->cached + s->beside - f->offset, left = 0;
  for (int i = 0; i < LIMIT_COUNT; i++)
    bound += f->price[i] * l->amount[i];
  if (f->of >= 0) left = s->limit[f->of] * (1 + 2 * CERTIFICATE_ROUNDING) - l->amount[f->of];
  return bound + front_least(f, at, left);
}

/* Adds a label's successor on a side unless it breaks a limit or reaches the target. */
static void extend(seeker *s, size_t step, const label *from, const frontier_arc *arc, double target, labels *out) {
  if (arc->to < 0) return;
  label next = {.objective = from->objective + round_down(arc->objective, s->grid_objective),
                .at = arc->to,
                .cached = from->cached,
                .sent = from->sent};
  if (!seeker_count(s, arc, &next.cached, &next.sent)) return;
  next.bound = next.objective + seeker_potentials(s, step + 1, arc->to)[seeker_index(s, next.cached, next.sent)];
  for (int i = 0; i < LIMIT_COUNT; i++) {
    if (!(s->limit[i] > 0)) continue;
    next.amount[i] = from->amount[i] + round_down(arc->amount[i], s->grid[i]);
    next.bound += s->price[i] * (next.amount[i] - s->limit[i]);
    if (next.amount[i] + s->least[i][s->first[step + 1] + arc->to] > s->limit[i] * (1 + CERTIFICATE_ROUNDING)) return;
  }
  if (s->front && next.bound < target)
    next.bound = fmax(next.bound, bound_by_front(s, &next, s->first[step + 1] + arc->to));
  if (next.bound < target) lp_vec_push(out, next);
}

void labels_search(seeker *s, const double *ending, labels_task *task, labels *out) {
  LP_OWNED(lp_free_at) labels next = {0};
  const lp_certificate_effort *most = lp_certificate_effort_of(s->c);
  size_t effort = task->effort;
  task->reach = NAN;
  seeker_fill(s, ending);
  s->grid_objective = grid_of(fabs(task->target));
  for (int i = 0; i < LIMIT_COUNT; i++)
    s->grid[i] = grid_of(s->limit[i]);
  lp_vec_push(out, ((label){.at = 0}));
  for (size_t i = 0; i < s->graph.step_count && out->count && task->target > task->known; i++) {
    next.count = 0;
    for (size_t k = 0; k < out->count; k++)
      for (int side = 0; side < 2; side++)
        extend(s, i, &out->data[k], &s->graph.step[i].arc[out->data[k].at][side], task->target, &next);
    if (isnan(task->reach) && next.count >= effort) task->reach = task->target;
    effort -= next.count < effort ? next.count : effort;
    *s->left -= next.count < *s->left ? next.count : *s->left;
    filter(s, &next);
    narrow(&next, effort > 0 && *s->left > 0 ? most->most_width : most->least_width, &task->target);
    labels swap = *out;
    *out = next;
    next = swap;
  }
}
