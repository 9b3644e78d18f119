/* Recognises softmax(scores of q.k^T) . v as Attention. It handles scales before the product, batch and heads on one
 * axis, keys that are transposed before or after they join the past, repeated key and value heads (GQA), sinks, and
 * probabilities guarded against empty rows. recognise_scores.c handles the operators between product and softmax. */
#include "base/poly.h"
#include "passes/recognise/recognise.h"

#include <math.h>

typedef struct {
  lp_value *q, *k, *v; /* [b, heads, s, d], [b, kv_heads, t, d] */
  lp_value *mask;      /* additive or bool, or NULL */
  lp_value *sinks;     /* f32 [heads], or NULL */
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

static bool is_perm(const lp_op *op, const int64_t *wanted) {
  const lp_attr *perm = lp_op_attr(op, "perm");
  return perm && perm->count == 4 && memcmp(perm->is, wanted, 4 * sizeof *wanted) == 0;
}

/* x of Reshape(Transpose(Reshape(x), 0 2 1)): a swap of the last two axes while the leading two are joined. */
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

static lp_value *transposed(lp_build *b, lp_value *x, const int64_t *perm) {
  lp_type unknown = {LP_F32, -1, NULL};
  if (!x) return NULL;
  lp_op *op = lp_op_create(b->module, LP_ONNX_Transpose, b->loc, 1, &x, 1, &unknown);
  lp_op_set_i64s(b->module, op, "perm", perm, x->type.rank);
  return lp_build_place(b, op) == LP_OK ? op->out[0] : NULL;
}

/* k of k^T that a transpose makes, which may also put heads first. */
static lp_value *untransposed(lp_build *b, lp_value *value) {
  static const int64_t last_two[] = {0, 1, 3, 2};
  lp_op *transpose = lp_match_def(value, LP_ONNX_Transpose);
  const lp_attr *perm = transpose ? lp_op_attr(transpose, "perm") : NULL;
  if (!transpose) return unfold_transpose(value);
  if (is_perm(transpose, last_two)) return lp_match_peel(lp_op_in(transpose, 0));
  if (!perm || perm->count != 4) return NULL;
  const int64_t order[] = {perm->is[0], perm->is[1], perm->is[3], perm->is[2]};
  return transposed(b, lp_op_in(transpose, 0), order);
}

/* k of k^T = concat(past^T, new^T): transposed keys joined along their last axis. */
static lp_value *untransposed_parts(lp_build *b, lp_value *value) {
  static const int64_t last_two[] = {0, 1, 3, 2};
  lp_op *concat = lp_match_def(value, LP_ONNX_Concat);
  lp_value *part[2];
  if (!concat || concat->in_count != 2 || (lp_op_i64(concat, "axis", 0) != 3 && lp_op_i64(concat, "axis", 0) != -1))
    return NULL;
  for (int32_t i = 0; i < 2; i++) {
    part[i] = untransposed(b, lp_op_in(concat, i));
    if (!part[i]) part[i] = transposed(b, lp_op_in(concat, i), last_two);
    if (!part[i]) return NULL;
  }
  lp_type unknown = {LP_F32, -1, NULL};
  lp_op *joined = lp_op_create(b->module, LP_ONNX_Concat, b->loc, 2, part, 1, &unknown);
  lp_op_set_i64(b->module, joined, "axis", 2);
  return lp_build_place(b, joined) == LP_OK ? joined->out[0] : NULL;
}

static lp_value *untranspose(lp_build *b, lp_value *value) {
  if (value->type.rank != 4) return NULL;
  lp_value *k = untransposed(b, value);
  return k ? k : untransposed_parts(b, value);
}

/* ---- batch and heads on one axis --------------------------------------------------------------------------------- */

/* The [b, h, m, n] of a reshape to [b * h, m, n]; the value itself when it has four axes; NULL for another form. */
static lp_value *four_axes(lp_value *value) {
  value = lp_match_peel(value);
  if (value->type.rank == 4) return value;
  lp_op *reshape = lp_match_def(value, LP_ONNX_Reshape);
  lp_value *x = reshape ? lp_match_peel(lp_op_in(reshape, 0)) : NULL;
  if (!x || value->type.rank != 3 || x->type.rank != 4) return NULL;
  for (int32_t i = 1; i < 3; i++)
    if (!lp_poly_equal(x->type.dim[i + 1], value->type.dim[i])) return NULL;
  return x;
}

/* [b * h, m, n] as [b, h, m, n], where the size is a multiple of the heads. */
static lp_value *split_first(lp_build *b, lp_value *value) {
  lp_type type = value->type;
  const lp_poly *first = type.rank == 3 ? type.dim[0] : NULL;
  if (!first || first->count != 1 || first->term[0].coef < 1) return NULL;
  const lp_poly *heads = lp_dim_const(b->module, first->term[0].coef);
  const lp_poly *dims[] = {lp_poly_div(b->module->arena, first, heads), heads, type.dim[1], type.dim[2]};
  lp_value *in[] = {value, lp_build_sizes(b, lp_type_make(b->module, type.dtype, 4, dims))};
  lp_op *view = lp_build_onnx(b, LP_ONNX_Reshape, 2, in, 1);
  return view ? view->out[0] : NULL;
}

static lp_value *with_heads(lp_build *b, lp_value *value) {
  lp_value *four = four_axes(value);
  return four ? four : split_first(b, lp_match_peel(value));
}

/* The keys of k^T with batch and heads on one axis: a transpose of the reshape, or a reshape of the transpose. */
static lp_value *folded_keys(lp_build *b, lp_value *value) {
  static const int64_t last_two[] = {0, 2, 1};
  lp_op *transpose = lp_match_def(value, LP_ONNX_Transpose);
  const lp_attr *perm = transpose ? lp_op_attr(transpose, "perm") : NULL;
  if (perm && perm->count == 3 && perm->is[0] == 0 && perm->is[1] == 2) return with_heads(b, lp_op_in(transpose, 0));
  lp_value *four = four_axes(value);
  if (four) return untranspose(b, four);
  lp_value *keys = transposed(b, value, last_two);
  return keys ? split_first(b, keys) : NULL;
}

/* ---- repeated heads ---------------------------------------------------------------------------------------------- */

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

/* Finds the operator that multiplies the probabilities by v, through casts, views, Dropout and a guard against NaN. */
static lp_op *match_context(lp_value *value, lp_value **probabilities) {
  for (int step = 0; step < 6; step++) {
    lp_op *product = NULL, *guard = NULL, *through = NULL;
    for (const lp_use *use = value->uses; use; use = use->next)
      if (use->owner->kind == LP_ONNX_MatMul)
        product = use->owner;
      else if (use->owner->kind == LP_ONNX_Where)
        guard = use->owner;
      else if (lp_op_has(use->owner, LP_IN_ORDER))
        through = use->owner;
      else if (use->owner->kind != LP_ONNX_IsNaN)
        return NULL;
    *probabilities = value;
    if (product) return product;
    if (!guard && !through) return NULL;
    value = (guard ? guard : through)->out[0];
  }
  return NULL;
}

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

/* A sink is a logit of a head that takes part in the softmax and has no value: softmax(concat(scores, sinks))[:-1]. */
typedef struct {
  lp_value *scores;  /* before the sinks join them */
  lp_value *weights; /* without those of the sinks */
  lp_value *sinks;   /* f32 [heads]; NULL: none */
} sink_match;

/* x of x - max(x): a shift that leaves the softmax as it is. */
static lp_value *unshifted(lp_value *x) {
  lp_op *sub = lp_match_def(x, LP_ONNX_Sub);
  lp_op *max = sub ? lp_match_def(lp_op_in(sub, 1), LP_ONNX_ReduceMax) : NULL;
  bool same = max && lp_match_last_axis(max) && lp_match_peel(lp_op_in(max, 0)) == lp_match_peel(lp_op_in(sub, 0));
  return same ? lp_op_in(sub, 0) : x;
}

/* The logits of [b, heads, s, 1] that are equal for all sequences and rows, as f32 [heads]; NULL for another form. */
static lp_value *head_logits(lp_build *b, lp_value *column) {
  int64_t heads, width, own, size;
  lp_type type = column->type;
  if (!lp_type_static_dim(type, 1, &heads) || !lp_type_static_dim(type, 3, &width) || width != 1) return NULL;
  lp_value *x = lp_match_peel(column);
  while (lp_op_is(x->def, LP_ONNX_Expand))
    x = lp_match_peel(lp_op_in(x->def, 0));
  if (x->type.rank < 3 || !lp_type_static_dim(x->type, -3, &own) || own != heads) return NULL;
  if (!lp_type_static_numel(x->type, &size) || size != heads || !lp_match_input_free(x)) return NULL;
  lp_value *in[] = {x, lp_build_i64s(b, &heads, 1)};
  return lp_build_cast(b, lp_build_value(b, LP_ONNX_Reshape, 2, in), LP_F32);
}

static bool all_known(const lp_value *value, int64_t wanted) {
  int64_t number;
  for (int32_t i = 0; i < value->known_count; i++)
    if (!lp_known_i64(value, i, &number) || number != wanted) return false;
  return value->known_count > 0;
}

static bool same_shape(lp_type a, lp_type b) {
  bool same = a.rank == b.rank;
  for (int32_t i = 0; i < a.rank && same; i++)
    same = lp_poly_equal(a.dim[i], b.dim[i]);
  return same;
}

/* The leading part of the softmax that has the shape of the scores; NULL when the graph takes another. */
static lp_value *weights_of_keys(lp_op *softmax, const lp_value *scores) {
  lp_op *slice = lp_match_user(softmax->out[0]);
  if (!lp_op_is(slice, LP_ONNX_Slice) || !same_shape(slice->out[0]->type, scores->type)) return NULL;
  bool ahead = slice->in_count < 5 || !lp_op_in(slice, 4) || all_known(lp_op_in(slice, 4), 1);
  return ahead && all_known(lp_op_in(slice, 1), 0) ? slice->out[0] : NULL;
}

/* Fails when logits join the scores that are not sinks. */
static bool match_sinks(lp_build *b, lp_op *softmax, sink_match *m) {
  lp_op *concat = lp_match_def(unshifted(lp_op_in(softmax, 0)), LP_ONNX_Concat);
  *m = (sink_match){.scores = lp_op_in(softmax, 0), .weights = softmax->out[0]};
  if (!concat) return true;
  int64_t axis = lp_op_i64(concat, "axis", 0);
  if (concat->in_count != 2 || concat->out[0]->type.rank != 4 || (axis != 3 && axis != -1)) return false;
  m->scores = lp_op_in(concat, 0);
  m->weights = weights_of_keys(softmax, m->scores);
  m->sinks = m->weights ? head_logits(b, lp_op_in(concat, 1)) : NULL;
  return m->sinks != NULL;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* [b, h, s, t] or, with batch and heads on one axis, [b * h, s, t] of the same sizes. */
static bool same_rows(lp_type scores, lp_type product) {
  for (int32_t i = 1; i <= 2; i++)
    if (!lp_poly_equal(scores.dim[scores.rank - i], product.dim[product.rank - i])) return false;
  return true;
}

static bool match_attention(lp_build *b, lp_op *softmax, attention_match *m) {
  lp_value *probabilities;
  int64_t axis = lp_op_i64(softmax, "axis", -1);
  lp_type type = softmax->out[0]->type;
  lp_scores scores;
  sink_match sink;
  if (type.dtype == LP_F64) return false; /* attention is computed in f32 */
  if (type.rank < 3 || type.rank > 4 || (axis != -1 && axis != type.rank - 1)) return false;
  if (!match_sinks(b, softmax, &sink)) return false;
  type = sink.weights->type;
  m->sinks = sink.sinks;
  m->last = match_context(sink.weights, &probabilities);
  if (!m->last || lp_op_in(m->last, 0) != probabilities || !same_rows(type, probabilities->type)) return false;
  if (!lp_match_scores(b, sink.scores, &scores)) return false;
  lp_type product = scores.product->out[0]->type;
  if (product.rank < 3 || product.rank > 4 || !same_rows(type, product)) return false;
  if (scores.mask && scores.mask->type.rank == 0) return false;
  m->mask = scores.mask;
  m->softcap = scores.softcap;
  m->scale = scores.scale;
  if (m->mask && m->mask->type.rank > 2 && type.rank == 3) {
    m->mask = lp_poly_equal(m->mask->type.dim[0], type.dim[0]) ? split_first(b, m->mask) : NULL;
    if (!m->mask) return false; /* the rows that belong to each head are unknown */
  }
  m->q = with_heads(b, strip_scale(lp_op_in(scores.product, 0), &m->scale));
  lp_value *k_transposed = strip_scale(lp_op_in(scores.product, 1), &m->scale);
  lp_value *k = product.rank == 4 ? untranspose(b, k_transposed) : folded_keys(b, k_transposed);
  if (!k || !m->q) return false;
  m->q = strip_scale(m->q, &m->scale);
  m->k = unrepeat(strip_scale(k, &m->scale));
  m->v = with_heads(b, lp_op_in(m->last, 1));
  if (!m->v) return false;
  m->v = unrepeat(m->v);
  return m->k->type.rank == 4 && m->v->type.rank == 4 && lp_poly_equal(m->k->type.dim[1], m->v->type.dim[1]) &&
         lp_poly_equal(m->q->type.dim[3], m->k->type.dim[3]);
}

/* Gives the result the product's type and form, with batch and heads on one axis where the product has them so. The
 * graph may cast keys of f16 to compute scores and product in f32; the operator takes one type and computes in f32
 * itself. */
static lp_status replace(lp_build *b, const attention_match *m) {
  lp_dtype dtype = m->k->type.dtype;
  b->before = m->last;
  lp_value *in[] = {
      lp_build_cast(b, m->q, dtype), m->k, lp_build_cast(b, m->v, dtype), m->mask, NULL, NULL, NULL, m->sinks};
  lp_value *old = m->last->out[0];
  if (!in[0] || !in[2]) return LP_FAILED;
  const lp_poly *dims[] = {m->q->type.dim[0], m->q->type.dim[1], m->q->type.dim[2], m->v->type.dim[3]};
  lp_type type = lp_type_make(b->module, dtype, 4, old->type.rank == 4 ? old->type.dim : dims);
  lp_op *op = lp_op_create(b->module, LP_ONNX_Attention, b->loc, m->sinks ? 8 : m->mask ? 4 : 3, in, 1, &type);
  lp_op_set_f64(b->module, op, "scale", m->scale);
  lp_op_set_i64(b->module, op, "is_causal", 0);
  if (m->softcap != 0) lp_op_set_f64(b->module, op, "softcap", fabs(m->softcap));
  lp_op_insert_before(m->last, op);
  lp_value *shaped[] = {op->out[0], old->type.rank == 3 ? lp_build_sizes(b, old->type) : NULL};
  lp_op *view = shaped[1] ? lp_build_onnx(b, LP_ONNX_Reshape, 2, shaped, 1) : op;
  lp_value *result = view ? lp_build_cast(b, view->out[0], old->type.dtype) : NULL;
  if (!result) return LP_FAILED;
  lp_value_replace(old, result);
  return LP_OK;
}

lp_status lp_recognise_attention(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_FOR_OPS(op, block) {
    if (op->kind != LP_ONNX_Softmax) continue;
    attention_match match = {.scale = 1.0};
    lp_build b = lp_build_at(module, op, diag);
    if (match_attention(&b, op, &match)) LP_TRY(replace(&b, &match));
  }
  return LP_OK;
}
