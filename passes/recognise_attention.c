/* Recognises softmax(scale * q.k^T + mask) . v as Attention: scales before or after the product, additive masks or
 * Where, repeated key and value heads (GQA), probabilities guarded against empty rows. */
#include "passes/recognise_internal.h"

#include <math.h>
#include <string.h>

typedef struct {
  lp_value *q, *k, *v; /* [b, heads, s, d], [b, kv_heads, t, d] */
  lp_value *mask;      /* additive or bool, or NULL */
  double scale, softcap;
  lp_op *last; /* the product that Attention replaces */
} attention_match;

/* Takes scalar factors off a value. */
static lp_value *strip_scale(lp_value *value, double *scale) {
  for (;;) {
    lp_op *mul = lp_match_def(value, LP_ONNX_Mul), *div = lp_match_def(value, LP_ONNX_Div);
    double number;
    lp_value *rest;
    if (mul && lp_match_scalar(mul, &number, &rest)) {
      *scale *= number;
      value = rest;
    } else if (div && lp_scalar_constant(lp_match_peel(lp_op_in(div, 1)), &number) && number != 0) {
      *scale /= number;
      value = lp_op_in(div, 0);
    } else {
      return lp_match_peel(value);
    }
  }
}

/* A mask whose entries are 0 where attention is allowed, from Where(condition, scores, very negative). Only the
 * condition is kept: bool masks say where one may attend. */
static lp_value *where_scores(lp_build *b, lp_op *where, lp_value **mask) {
  double number;
  for (int32_t i = 1; i < 3; i++) {
    if (!lp_scalar_constant(lp_match_peel(lp_op_in(where, i)), &number) || number > -1e4) continue;
    *mask = lp_op_in(where, 0);
    if (i == 1) { /* true: masked */
      lp_op *not_op = lp_build_onnx(b, LP_ONNX_Not, 1, mask, 1);
      if (!not_op) return NULL;
      *mask = not_op->out[0];
    }
    return lp_op_in(where, 3 - i);
  }
  return NULL;
}

/* Is this side of the Add the scores (it leads to a product of two activations) rather than the mask? */
static bool leads_to_product(lp_value *value, int depth) {
  value = lp_match_peel(value);
  if (!value || !value->def || depth > 8) return false;
  lp_op *op = value->def;
  if (op->kind == LP_ONNX_MatMul) return true;
  if (op->kind == LP_ONNX_Where)
    return leads_to_product(lp_op_in(op, 1), depth + 1) || leads_to_product(lp_op_in(op, 2), depth + 1);
  if (op->kind == LP_ONNX_Add)
    return leads_to_product(lp_op_in(op, 0), depth + 1) || leads_to_product(lp_op_in(op, 1), depth + 1);
  if (op->kind == LP_ONNX_Mul || op->kind == LP_ONNX_Div || op->kind == LP_ONNX_Tanh)
    return leads_to_product(lp_op_in(op, 0), depth + 1);
  return false;
}

/* From the softmax's operand down to q.k^T; returns the product's operator. Two masks are more than Attention takes. */
static lp_op *match_scores(lp_build *b, lp_value *scores, attention_match *m) {
  for (int step = 0; step < 8; step++) {
    double scale = 1.0;
    lp_value *stripped = strip_scale(scores, &scale);
    m->scale *= scale;
    scores = stripped;
    lp_op *op = scores->def;
    if (!op) return NULL;
    if (op->kind == LP_ONNX_MatMul) return op;
    if (m->mask || m->scale != 1.0) return NULL; /* a mask is added after scaling */
    if (op->kind == LP_ONNX_Add) {
      bool first = leads_to_product(lp_op_in(op, 0), 0);
      m->mask = lp_op_in(op, first ? 1 : 0);
      scores = lp_op_in(op, first ? 0 : 1);
    } else if (op->kind == LP_ONNX_Where) {
      scores = where_scores(b, op, &m->mask);
      if (!scores) return NULL;
    } else {
      return NULL;
    }
  }
  return NULL;
}

static bool is_perm(const lp_op *op, const int64_t *wanted) {
  const lp_attr *perm = lp_op_attr(op, "perm");
  return perm && perm->count == 4 && memcmp(perm->is, wanted, 4 * sizeof *wanted) == 0;
}

/* x of Reshape(Transpose(Reshape(x), 0 2 1)): the last two axes swapped while the leading two are one. */
static lp_value *unfold_transpose(lp_value *value) {
  lp_op *outer = lp_match_def(value, LP_ONNX_Reshape);
  lp_op *transpose = outer ? lp_match_def(lp_op_in(outer, 0), LP_ONNX_Transpose) : NULL;
  lp_op *inner = transpose ? lp_match_def(lp_op_in(transpose, 0), LP_ONNX_Reshape) : NULL;
  const lp_attr *perm = transpose ? lp_op_attr(transpose, "perm") : NULL;
  lp_value *x = inner ? lp_match_peel(lp_op_in(inner, 0)) : NULL;
  if (!x || !perm || value->type.rank != 4 || perm->count != 3 || perm->is[0] != 0 || perm->is[1] != 2 ||
      x->type.rank != 4)
    return NULL;
  bool same = true;
  for (int32_t i = 0; i < 4; i++)
    same &= lp_poly_equal(x->type.dim[i], value->type.dim[i < 2 ? i : 5 - i]);
  return same && lp_poly_equal(inner->out[0]->type.dim[2], x->type.dim[3]) ? x : NULL;
}

/* k of k^T: the transpose of the last two axes, alone or together with heads first. */
static lp_value *untranspose(lp_build *b, lp_value *value) {
  static const int64_t last_two[] = {0, 1, 3, 2}, from_bshd[] = {0, 2, 3, 1}, heads_first[] = {0, 2, 1, 3};
  lp_op *transpose = lp_match_def(value, LP_ONNX_Transpose);
  if (!transpose) return value->type.rank == 4 ? unfold_transpose(value) : NULL;
  lp_value *x = lp_op_in(transpose, 0);
  if (is_perm(transpose, last_two)) return lp_match_peel(x);
  if (!is_perm(transpose, from_bshd)) return NULL;
  lp_type unknown = {LP_F32, -1, NULL};
  lp_op *op = lp_op_create(b->module, LP_ONNX_Transpose, transpose->loc, 1, &x, 1, &unknown);
  lp_op_set_i64s(b->module, op, "perm", heads_first, 4);
  return lp_build_place(b, op) == LP_OK ? op->out[0] : NULL;
}

/* The keys or values before their heads were repeated: Reshape(Expand(Unsqueeze(x, 2))) of [b, kv, t, d]. */
static lp_value *unrepeat(lp_value *value) {
  lp_op *reshape = lp_match_def(value, LP_ONNX_Reshape);
  lp_op *expand = reshape ? lp_match_def(lp_op_in(reshape, 0), LP_ONNX_Expand) : NULL;
  lp_value *wide = expand ? lp_match_peel(lp_op_in(expand, 0)) : NULL;
  lp_op *unsqueeze = wide ? wide->def : NULL;
  if (!unsqueeze || (unsqueeze->kind != LP_ONNX_Unsqueeze && unsqueeze->kind != LP_ONNX_Reshape)) return value;
  lp_value *x = lp_match_peel(lp_op_in(unsqueeze, 0));
  lp_type five = wide->type;
  int64_t one;
  bool shaped =
      x->type.rank == 4 && five.rank == 5 && value->type.rank == 4 && lp_poly_is_const(five.dim[2], &one) && one == 1;
  if (!shaped) return value;
  bool same = lp_poly_equal(x->type.dim[1], five.dim[1]) && lp_poly_equal(x->type.dim[2], five.dim[3]) &&
              lp_poly_equal(x->type.dim[3], five.dim[4]) && lp_poly_equal(x->type.dim[2], value->type.dim[2]) &&
              lp_poly_equal(x->type.dim[3], value->type.dim[3]);
  return same ? x : value;
}

/* The operator that multiplies the probabilities by v: through casts, Dropout and a guard against NaN. */
static lp_op *match_context(lp_op *softmax, lp_value **probabilities) {
  lp_value *value = softmax->out[0];
  for (int step = 0; step < 6; step++) {
    lp_op *product = NULL, *guard = NULL, *through = NULL;
    for (const lp_use *use = value->uses; use; use = use->next) {
      if (use->owner->kind == LP_ONNX_MatMul)
        product = use->owner;
      else if (use->owner->kind == LP_ONNX_Where)
        guard = use->owner;
      else if (use->owner->kind == LP_ONNX_Cast || use->owner->kind == LP_ONNX_Identity ||
               use->owner->kind == LP_ONNX_Dropout)
        through = use->owner;
      else if (use->owner->kind != LP_ONNX_IsNaN)
        return NULL;
    }
    *probabilities = value;
    if (product) return product;
    if (!guard && !through) return NULL;
    value = (guard ? guard : through)->out[0];
  }
  return NULL;
}

static bool match_attention(lp_build *b, lp_op *softmax, attention_match *m) {
  lp_value *probabilities;
  int64_t axis = lp_op_i64(softmax, "axis", -1);
  lp_type type = softmax->out[0]->type;
  if (type.rank != 4 || (axis != -1 && axis != 3)) return false;
  m->last = match_context(softmax, &probabilities);
  if (!m->last || lp_op_in(m->last, 0) != probabilities) return false;
  lp_op *product = match_scores(b, lp_op_in(softmax, 0), m);
  if (!product) return false;
  m->q = strip_scale(lp_op_in(product, 0), &m->scale);
  lp_value *k_transposed = strip_scale(lp_op_in(product, 1), &m->scale);
  lp_value *k = untranspose(b, k_transposed);
  if (!k || m->q->type.rank != 4) return false;
  m->k = unrepeat(strip_scale(k, &m->scale));
  m->v = unrepeat(lp_match_peel(lp_op_in(m->last, 1)));
  return m->k->type.rank == 4 && m->v->type.rank == 4 && lp_poly_equal(m->k->type.dim[1], m->v->type.dim[1]) &&
         lp_poly_equal(m->q->type.dim[3], m->k->type.dim[3]);
}

static void replace(lp_module *module, lp_op *softmax, const attention_match *m) {
  lp_value *in[] = {m->q, m->k, m->v, m->mask};
  lp_type types[] = {m->last->out[0]->type};
  lp_op *op = lp_op_create(module, LP_ONNX_Attention, softmax->loc, m->mask ? 4 : 3, in, 1, types);
  lp_op_set_f64(module, op, "scale", m->scale);
  lp_op_set_i64(module, op, "is_causal", 0);
  lp_op_insert_before(m->last, op);
  lp_value_replace(m->last->out[0], op->out[0]);
}

lp_status lp_recognise_attention(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_FOR_OPS(op, block) {
    if (op->kind != LP_ONNX_Softmax) continue;
    attention_match match = {.scale = 1.0};
    lp_build b = lp_build_at(module, op, diag);
    if (match_attention(&b, op, &match)) replace(module, op, &match);
  }
  return LP_OK;
}
