/* Rows that choose their weights: what the products with f32 and with integer activations share. Each thread sorts
 * the rows by expert for itself, which takes less time than a barrier, and takes its share of the panels of all experts
 * that have rows: those of few rows as well as those of many. */
#pragma once

#include "backend/cpu/kernels/linear_form.h"

/* The time to read a panel from memory, in times of multiplying it with one row. Half or twice the value shifts a
 * little work between threads. */
enum { READ_ROWS = 16 };

typedef struct {
  const float *x;
  const int64_t *index;
  int64_t m, experts, shared;
} mixture;

/* The order of the rows by expert, and the end of each expert's in it. */
typedef struct {
  int32_t *row, *end;
} expert_order;

/* The next rows: from row `row` of expert `expert`. Costs count rows of a panel. */
typedef struct {
  expert_order order;
  float *gathered; /* [LPK_MC][k] */
  int64_t expert, row;
  int64_t cost, from, to; /* of the experts before; the thread's share */
} expert_walk;

INLINE int is_inside(const mixture *x, int64_t row) {
  return x->index[row] >= 0 && x->index[row] < x->experts;
}

/* The thread's order, of which `all` are those of all threads. */
INLINE expert_order order_of(const mixture *x, char *all, int64_t thread) {
  int32_t *end = (int32_t *)(void *)(all + thread * LPK_EXPERTS_ORDER_BYTES(x->m, x->experts));
  return (expert_order){end + x->experts, end};
}

/* Sorts the rows, and finds the thread's share. The last `LPK_MC` rows of its `bytes` of scratch are for gathering. */
INLINE expert_walk walk_experts(const mixture *x, const form *f, char *scratch, expert_order order, int64_t bytes,
                                int64_t thread, int64_t threads) {
  int64_t cost = 0, at = 0;
  for (int64_t e = 0; e < x->experts; e++)
    order.end[e] = 0;
  for (int64_t r = 0; r < x->m; r++)
    if (is_inside(x, r)) order.end[x->index[r]]++;
  for (int64_t e = 0; e < x->experts; e++) {
    int32_t count = order.end[e];
    cost += count ? (count + READ_ROWS) * LPK_PANELS(f->n) : 0;
    order.end[e] = (int32_t)at;
    at += count;
  }
  for (int64_t r = 0; r < x->m; r++)
    if (is_inside(x, r)) order.row[order.end[x->index[r]]++] = (int32_t)r;
  float *gathered = (float *)(void *)(scratch + bytes) - LPK_MC * f->k;
  return (expert_walk){order, gathered, 0, 0, 0, share(cost, thread, threads), share(cost, thread + 1, threads)};
}

/* Clears the thread's share of the rows that choose none of these experts. */
INLINE void clear_outside(float *y, const mixture *x, int64_t n, int64_t thread, int64_t threads) {
  for (int64_t r = share(x->m, thread, threads); r < share(x->m, thread + 1, threads); r++)
    if (!is_inside(x, r)) __builtin_memset(y + r * n, 0, (size_t)n * sizeof(float));
}

/* The number of panels of an expert, each of cost `each`, that begin before `bound`. */
INLINE int64_t panels_before(int64_t bound, int64_t each, int64_t panels) {
  return bound <= 0 ? 0 : min64(panels, (bound + each - 1) / each);
}

/* Gathers `count` rows of x. A single one stays where it is. */
INLINE const float *gather_rows(const expert_walk *w, const mixture *x, const int32_t *rows, int64_t count, int64_t k) {
  if (count == 1) return x->x + rows[0] / x->shared * k;
  for (int64_t r = 0; r < count; r++)
    __builtin_memcpy(w->gathered + r * k, x->x + rows[r] / x->shared * k, (size_t)k * sizeof(float));
  return w->gathered;
}

/* Finds the thread's next rows of one expert, at most LPK_MC, and its panels first .. last of them. 0: none is left.
 * `size`: bytes of a panel. */
INLINE int next_rows(expert_walk *w, linear *l, const mixture *x, const void *weights, const float *bias, int64_t size,
                     const form *f, int64_t *first, int64_t *last) {
  int64_t panels = LPK_PANELS(f->n), stored = f->gated ? 2 * panels : panels;
  for (; w->expert < x->experts; w->expert++, w->row = 0) {
    int64_t start = w->expert ? w->order.end[w->expert - 1] : 0, count = w->order.end[w->expert] - start;
    int64_t each = count + READ_ROWS;
    if (count == 0) continue;
    *first = panels_before(w->from - w->cost, each, panels);
    *last = panels_before(w->to - w->cost, each, panels);
    if (*first < *last && w->row < count) {
      l->rows = w->order.row + start + w->row;
      l->m = min64(LPK_MC, count - w->row);
      l->x = gather_rows(w, x, l->rows, l->m, f->k);
      l->w = (const char *)weights + w->expert * stored * size;
      l->bias = bias ? bias + w->expert * stored * LPK_PANEL : 0;
      w->row += l->m;
      return 1;
    }
    w->cost += each * panels;
  }
  return 0;
}
