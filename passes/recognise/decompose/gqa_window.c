/* Caches that keep only the rows of a window: com.microsoft.GroupQueryAttention with sliding_window_cache
 * (ContribOperators.md). Past and present have C rows each. After T tokens the first L(T) of them are the last L(T)
 * positions in order, and the others mean nothing:
 *
 *   L(T) = T if T <= C, else T - G * ceil((T - C) / G), where G = C - window + 1
 *
 * Attention reads the past rows and the new ones, and the present takes its rows from both. */
#include "passes/recognise/decompose/rewrite.h"

static lp_value *plus(lp_rewrite *r, lp_value *x, lp_value *y) {
  return lp_rw_op(r, LP_ONNX_Add, x, y);
}

static lp_value *minus(lp_rewrite *r, lp_value *x, lp_value *y) {
  return lp_rw_op(r, LP_ONNX_Sub, x, y);
}

/* L(T) of `tokens` [b, 1]. */
static lp_value *resident(const lp_rw_window *w, lp_value *tokens) {
  lp_rewrite *r = w->r;
  lp_value *one = lp_rw_int(r, 1), *capacity = lp_rw_size(r, w->past[0], 2);
  lp_value *group = lp_rw_op(r, LP_ONNX_Max, minus(r, capacity, lp_rw_int(r, w->window - 1)), one);
  lp_value *over = lp_rw_op(r, LP_ONNX_Max, minus(r, tokens, capacity), lp_rw_int(r, 0));
  lp_value *times = lp_rw_op(r, LP_ONNX_Div, plus(r, over, minus(r, group, one)), group);
  return minus(r, tokens, lp_rw_op(r, LP_ONNX_Mul, times, group));
}

static lp_value *as_column(const lp_rw_window *w, lp_value *of_sequence) {
  return lp_rw_unsqueeze(w->r, of_sequence, LP_RW_INTS(w->r, 2, 3));
}

/* Positions of the joined rows. Past rows that mean nothing get the first position after the sequence, which no query
 * sees. */
static lp_value *positions(const lp_rw_window *w, lp_value *rows, lp_value *kept) {
  lp_rewrite *r = w->r;
  lp_value *capacity = lp_rw_size(r, w->past[0], 2), *before = as_column(w, w->before);
  lp_value *old = plus(r, minus(r, before, kept), rows), *fresh = plus(r, minus(r, rows, capacity), before);
  old = lp_rw_op3(r, LP_ONNX_Where, lp_rw_op(r, LP_ONNX_Less, rows, kept), old, as_column(w, w->after));
  return lp_rw_op3(r, LP_ONNX_Where, lp_rw_op(r, LP_ONNX_Less, rows, capacity), old, fresh);
}

/* Picks the present's rows out of the joined ones; rows after them are zero. `left` is L(T) before the step and `kept`
 * after it. */
static lp_value *present(const lp_rw_window *w, int which, lp_value *left, lp_value *kept) {
  lp_rewrite *r = w->r;
  lp_value *capacity = lp_rw_size(r, w->past[0], 2), *before = as_column(w, w->before);
  lp_value *row = lp_rw_unsqueeze(r, lp_rw_count(r, capacity), LP_RW_INTS(r, 0, 1, 3)); /* [1, 1, C, 1] */
  lp_value *position = plus(r, minus(r, as_column(w, w->after), kept), row);
  lp_value *offset = minus(r, position, before);
  lp_value *is_new = lp_rw_op(r, LP_ONNX_GreaterOrEqual, offset, lp_rw_int(r, 0));
  lp_value *from = lp_rw_op3(r, LP_ONNX_Where, is_new, plus(r, offset, capacity), plus(r, offset, left));
  lp_value *last = minus(r, lp_rw_size(r, w->joined[which], 2), lp_rw_int(r, 1));
  from = lp_rw_op(r, LP_ONNX_Min, lp_rw_op(r, LP_ONNX_Max, from, lp_rw_int(r, 0)), last);
  lp_value *in[] = {w->joined[which],
                    lp_rw_op(r, LP_ONNX_Expand, from, lp_rw_op(r, LP_ONNX_Shape, w->past[which], NULL))};
  if (!in[0] || !in[1]) return NULL;
  lp_value *taken = lp_rw_with(r, LP_ONNX_GatherElements, 2, in, (lp_rw_attr){"axis", 2});
  lp_value *nothing = lp_build_float(&r->b, w->past[which]->type.dtype, 0);
  return lp_rw_op3(r, LP_ONNX_Where, lp_rw_op(r, LP_ONNX_Less, row, kept), taken, nothing);
}

lp_status lp_rw_join_window(lp_rw_window *w) {
  lp_rewrite *r = w->r;
  for (int i = 0; i < 2; i++) {
    lp_value *in[] = {w->past[i], w->fresh[i]};
    w->joined[i] = lp_rw_concat(r, 2, in, 2);
    if (!w->joined[i]) return LP_FAILED;
  }
  lp_value *left = as_column(w, resident(w, w->before)), *kept = as_column(w, resident(w, w->after));
  w->position = positions(w, lp_rw_count(r, lp_rw_size(r, w->joined[0], 2)), left);
  for (int i = 0; i < 2; i++)
    w->present[i] = present(w, i, left, kept);
  return w->position && w->present[0] && w->present[1] ? LP_OK : LP_FAILED;
}
