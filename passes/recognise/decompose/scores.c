/* Rewrites the standard's Attention into the form of op.attention: one mask, causal over the last s of all
 * positions, a window before a causal row. Other restrictions (padded keys, windows on both sides, short masks, rows
 * aligned otherwise) become part of the mask; scores that the model asks for are computed in addition. */
#include "base/poly.h"
#include "passes/recognise/decompose/rewrite.h"

#include <math.h>

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS };
enum { SCORES = 3 };
enum { MODE_PRODUCT, MODE_CAPPED, MODE_MASKED, MODE_SOFTMAX };

typedef struct {
  lp_rewrite *r;
  lp_op *op;
  bool causal;
  int64_t left, right; /* -1: all positions */
  const lp_poly *s, *fresh, *total;
  lp_value *mask;
} standard;

static const lp_poly *rows_of(const lp_value *x) {
  return x->type.dim[x->type.rank == 3 ? 1 : 2];
}

static lp_status read_form(lp_rewrite *r, standard *f) {
  lp_op *op = r->op;
  *f = (standard){.r = r, .op = op, .causal = lp_op_i64(op, "is_causal", 0) != 0, .mask = lp_op_in(op, MASK)};
  f->left = lp_op_i64(op, "left_window_size", -1);
  f->right = lp_op_i64(op, "right_window_size", -1);
  f->s = rows_of(lp_op_in(op, Q));
  f->fresh = f->total = rows_of(lp_op_in(op, K));
  const int64_t mode = lp_op_i64(op, "qk_matmul_output_mode", MODE_PRODUCT);
  if (mode < MODE_PRODUCT || mode > MODE_SOFTMAX)
    return lp_rw_refuse(r, "has a qk_matmul_output_mode that is not known");
  if (f->left < -1 || f->right < -1) return lp_rw_refuse(r, "has a window size below -1");
  if (!lp_op_in(op, PAST_K) != !lp_op_in(op, PAST_V)) return lp_rw_refuse(r, "has past keys without values");
  if (lp_op_in(op, PAST_K) && lp_op_in(op, LENGTHS)) return lp_rw_refuse(r, "has both past keys and nonpad_kv_seqlen");
  if (lp_op_in(op, PAST_K)) f->total = lp_poly_add(r->b.module->arena, f->fresh, lp_op_in(op, PAST_K)->type.dim[2]);
  if (f->causal && f->right >= 0) f->right = -1;
  if (f->right == 0) f->causal = true, f->right = -1;
  return LP_OK;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* Missing columns of a mask hide their keys. */
static lp_status widen_mask(standard *f) {
  lp_rewrite *r = f->r;
  int64_t width, total;
  lp_type type = f->mask->type;
  if (type.rank < 1 || type.rank > 4) return lp_rw_refuse(r, "has a mask that has not 1 to 4 axes");
  if (!lp_type_static_dim(type, -1, &width) || !lp_poly_is_const(f->total, &total) || width >= total) return LP_OK;
  int64_t pads[8] = {0};
  pads[2 * type.rank - 1] = total - width;
  bool is_bool = type.dtype == LP_BOOL;
  lp_value *mask = is_bool ? lp_rw_cast(r, f->mask, LP_I32) : f->mask;
  int32_t none = 0;
  lp_value *fill =
      is_bool ? lp_build_constant(&r->b, LP_I32, 0, NULL, &none) : lp_build_float(&r->b, type.dtype, -INFINITY);
  f->mask = lp_rw_op3(r, LP_ONNX_Pad, mask, lp_rw_ints(r, 2 * type.rank, pads), fill);
  if (is_bool) f->mask = lp_rw_cast(r, f->mask, LP_BOOL);
  return f->mask ? LP_OK : LP_FAILED;
}

static lp_value *both(lp_rewrite *r, lp_value *may, lp_value *also) {
  if (!may || !also) return may ? may : also;
  return lp_rw_op(r, LP_ONNX_And, may, also);
}

/* Positions of the rows: [s, 1], or [b, 1, s, 1] where each sequence has a length of its own. */
static lp_value *row_positions(standard *f) {
  lp_rewrite *r = f->r;
  lp_value *q = lp_op_in(f->op, Q), *past = lp_op_in(f->op, PAST_K), *lengths = lp_op_in(f->op, LENGTHS);
  lp_value *s = lp_rw_size(r, q, q->type.rank == 3 ? 1 : 2);
  lp_value *rows = lp_rw_unsqueeze(r, lp_rw_count(r, s), LP_RW_INTS(r, 1));
  if (past) return lp_rw_add(r, rows, lp_rw_size(r, past, 2));
  if (!lengths) return rows;
  lp_value *length = lp_rw_unsqueeze(r, lp_rw_cast(r, lengths, LP_I64), LP_RW_INTS(r, 1, 2, 3));
  lp_value *offset = length && s ? lp_rw_op(r, LP_ONNX_Sub, length, s) : NULL;
  return offset ? lp_rw_add(r, rows, offset) : NULL;
}

static lp_value *key_positions(standard *f) {
  lp_rewrite *r = f->r;
  lp_value *k = lp_op_in(f->op, K), *past = lp_op_in(f->op, PAST_K);
  lp_value *total = lp_rw_size(r, k, k->type.rank == 3 ? 1 : 2);
  return lp_rw_count(r, past ? lp_rw_add(r, total, lp_rw_size(r, past, 2)) : total);
}

/* Computes which keys each row may see, apart from the mask; *out is NULL when it may see all. */
static lp_status visible(standard *f, lp_value **out) {
  lp_rewrite *r = f->r;
  lp_value *lengths = lp_op_in(f->op, LENGTHS), *may = NULL;
  *out = NULL;
  if (!f->causal && f->left < 0 && f->right < 0 && !lengths) return LP_OK;
  lp_value *rows = row_positions(f), *keys = key_positions(f);
  if (!rows || !keys) return LP_FAILED;
  if (f->causal) may = lp_rw_op(r, LP_ONNX_LessOrEqual, keys, rows);
  if (f->left >= 0) {
    lp_value *oldest = lp_rw_op(r, LP_ONNX_Sub, rows, LP_RW_INTS(r, f->left));
    may = both(r, may, oldest ? lp_rw_op(r, LP_ONNX_GreaterOrEqual, keys, oldest) : NULL);
  }
  if (f->right >= 0) {
    lp_value *newest = lp_rw_op(r, LP_ONNX_Add, rows, LP_RW_INTS(r, f->right));
    may = both(r, may, newest ? lp_rw_op(r, LP_ONNX_LessOrEqual, keys, newest) : NULL);
  }
  if (lengths) {
    lp_value *end = lp_rw_unsqueeze(r, lp_rw_cast(r, lengths, LP_I64), LP_RW_INTS(r, 1, 2, 3));
    may = both(r, may, end ? lp_rw_op(r, LP_ONNX_Less, keys, end) : NULL);
  }
  *out = may;
  return may ? LP_OK : LP_FAILED;
}

/* All restrictions as one mask, bool or additive. */
static lp_status fold_into_mask(standard *f) {
  lp_rewrite *r = f->r;
  lp_value *may;
  LP_TRY(visible(f, &may));
  f->causal = false;
  f->left = f->right = -1;
  if (!may) return LP_OK;
  if (!f->mask || f->mask->type.dtype == LP_BOOL)
    f->mask = both(r, may, f->mask);
  else
    f->mask = lp_rw_op3(r, LP_ONNX_Where, may, f->mask, lp_build_float(&r->b, f->mask->type.dtype, -INFINITY));
  return f->mask ? LP_OK : LP_FAILED;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

/* q . k^T over heads first; query heads that share a key head are grouped. */
static lp_value *products(lp_rewrite *r, lp_value *q, lp_value *k) {
  static const int64_t swap[] = {0, 1, 3, 2};
  int64_t heads, kv_heads;
  lp_value *transposed = lp_rw_transpose(r, k, 4, swap);
  if (!lp_poly_is_const(q->type.dim[1], &heads) || !lp_poly_is_const(k->type.dim[1], &kv_heads) || kv_heads < 1) {
    (void)lp_rw_refuse(r, "has a number of heads that is not constant");
    return NULL;
  }
  if (!transposed || heads == kv_heads) return transposed ? lp_rw_op(r, LP_ONNX_MatMul, q, transposed) : NULL;
  lp_value *first = lp_rw_slice(r, lp_rw_op(r, LP_ONNX_Shape, q, NULL), 0, LP_RW_INTS(r, 0), LP_RW_INTS(r, 1));
  lp_value *rows = lp_rw_slice(r, lp_rw_op(r, LP_ONNX_Shape, q, NULL), 0, LP_RW_INTS(r, 2), LP_RW_INTS(r, 4));
  lp_value *in[] = {first, LP_RW_INTS(r, kv_heads, heads / kv_heads), rows};
  lp_value *groups = lp_rw_reshape(r, q, lp_rw_concat(r, 3, in, 0));
  transposed = lp_rw_unsqueeze(r, transposed, LP_RW_INTS(r, 2));
  lp_value *grouped = groups && transposed ? lp_rw_op(r, LP_ONNX_MatMul, groups, transposed) : NULL;
  if (!grouped) return NULL;
  lp_value *tail = lp_rw_slice(r, lp_rw_op(r, LP_ONNX_Shape, grouped, NULL), 0, LP_RW_INTS(r, 3), LP_RW_INTS(r, 5));
  lp_value *back[] = {first, LP_RW_INTS(r, heads), tail};
  return lp_rw_reshape(r, grouped, lp_rw_concat(r, 3, back, 0));
}

static lp_value *times(lp_rewrite *r, lp_value *x, double factor) {
  return x ? lp_rw_op(r, LP_ONNX_Mul, x, lp_build_float(&r->b, x->type.dtype, factor)) : NULL;
}

/* The mask as a summand: 0 or minus infinity where it is bool. */
static lp_value *additive(lp_rewrite *r, lp_value *mask, lp_dtype dtype) {
  if (mask->type.dtype != LP_BOOL) return mask;
  return lp_rw_op3(r, LP_ONNX_Where, mask, lp_build_float(&r->b, dtype, 0), lp_build_float(&r->b, dtype, -INFINITY));
}

/* Softmax of the scores; rows that see no key are zero. */
static lp_value *probabilities(lp_rewrite *r, lp_value *scores, lp_value *bias) {
  lp_value *weights = lp_rw_with(r, LP_ONNX_Softmax, 1, &scores, (lp_rw_attr){"axis", -1});
  if (!bias || !weights) return weights;
  lp_value *in[] = {bias, LP_RW_INTS(r, -1)};
  lp_value *best = lp_rw_with(r, LP_ONNX_ReduceMax, 2, in, (lp_rw_attr){"keepdims", 1});
  lp_value *lowest = lp_build_float(&r->b, bias->type.dtype, -INFINITY);
  lp_value *blind = best ? lp_rw_op(r, LP_ONNX_Equal, best, lowest) : NULL;
  return lp_rw_op3(r, LP_ONNX_Where, blind, lp_build_float(&r->b, weights->type.dtype, 0), weights);
}

/* The result qk_matmul_output. `keys`: all keys, heads first. */
static lp_value *build_scores(standard *f, lp_value *keys, lp_value *mask) {
  lp_rewrite *r = f->r;
  int64_t mode = lp_op_i64(f->op, "qk_matmul_output_mode", 0), d;
  double softcap = lp_op_f64(f->op, "softcap", 0);
  lp_value *q = lp_rw_split_heads(r, lp_op_in(f->op, Q), lp_op_i64(f->op, "q_num_heads", 0));
  if (!q || !keys || !lp_type_static_dim(q->type, 3, &d)) return NULL;
  lp_value *scores = products(r, times(r, q, lp_op_f64(f->op, "scale", 1 / sqrt((double)d))), keys);
  if (mode >= MODE_CAPPED && softcap > 0)
    scores = times(r, lp_rw_op(r, LP_ONNX_Tanh, times(r, scores, 1 / softcap), NULL), softcap);
  if (mode <= MODE_CAPPED || !scores) return scores;
  lp_value *bias = mask ? additive(r, mask, q->type.dtype) : NULL;
  if (bias) scores = lp_rw_op(r, LP_ONNX_Add, scores, bias);
  return mode == MODE_MASKED || !scores ? scores : probabilities(r, scores, bias);
}

/* ---- driver ------------------------------------------------------------------------------------------------------ */

static void remove_windows(lp_op *op) {
  if (lp_op_attr(op, "left_window_size")) lp_op_remove_attr(op, "left_window_size");
  if (lp_op_attr(op, "right_window_size")) lp_op_remove_attr(op, "right_window_size");
}

/* Another Attention like the current one, of the rewritten form. */
static lp_status replace(standard *f, bool wants_scores) {
  lp_rewrite *r = f->r;
  lp_module *m = r->b.module;
  lp_type types[3] = {{.rank = -1}, {.rank = -1}, {.rank = -1}};
  lp_value *in[8] = {NULL};
  for (int32_t i = 0; i < f->op->in_count; i++)
    in[i] = lp_op_in(f->op, i);
  in[MASK] = f->mask;
  in[LENGTHS] = NULL;
  int32_t count = 8;
  while (count > 3 && !in[count - 1])
    count--;
  lp_op *op = lp_op_create(m, LP_ONNX_Attention, r->b.loc, count, in, 3, types);
  for (int32_t i = 0; i < f->op->attr_count; i++)
    lp_op_set_attr(m, op, &f->op->attr[i]);
  remove_windows(op);
  lp_op_set_i64(m, op, "is_causal", f->causal);
  if (f->causal) lp_op_set_i64(m, op, "bottom_right", 1);
  if (f->left >= 0) lp_op_set_i64(m, op, "window", f->left + 1);
  LP_TRY(lp_build_place(&r->b, op));
  for (int32_t i = 0; i < 3; i++)
    r->result[i] = op->out[i];
  if (!wants_scores) return LP_OK;
  r->result[SCORES] = build_scores(f, op->out[1], f->mask);
  return r->result[SCORES] ? LP_OK : LP_FAILED;
}

/* Tells whether op.attention takes the operator as it is. */
static bool is_plain(const standard *f, bool wants_scores) {
  bool windows = f->left >= 0 || f->right >= 0;
  bool aligned = lp_op_i64(f->op, "bottom_right", 0) || lp_poly_equal(f->s, f->fresh);
  return !wants_scores && !lp_op_in(f->op, LENGTHS) && f->right < 0 && (!windows || f->causal) &&
         (!f->causal || aligned);
}

lp_status lp_rewrite_standard_attention(lp_rewrite *r) {
  standard f;
  LP_TRY(read_form(r, &f));
  bool wants_scores = lp_op_out(r->op, SCORES) && lp_op_out(r->op, SCORES)->uses;
  if (f.mask && f.mask->type.dtype != LP_BOOL && f.mask->type.dtype != lp_op_in(r->op, Q)->type.dtype)
    f.mask = lp_rw_cast(r, f.mask, lp_op_in(r->op, Q)->type.dtype);
  if (f.mask) LP_TRY(widen_mask(&f));
  if (!is_plain(&f, wants_scores)) LP_TRY(fold_into_mask(&f));
  return replace(&f, wants_scores);
}
