/* Recognises x / sqrt(mean(x^2) + eps) * w as RMSNormalization and (x - mean(x)) / sqrt(...) * w + b as
 * LayerNormalization, in any order and with any casts. */
#include "base/poly.h"
#include "passes/recognise/recognise.h"

/* x of x^2, written as Pow or Mul. */
static lp_value *squared(lp_value *value) {
  lp_op *pow = lp_match_def(value, LP_ONNX_Pow), *mul = lp_match_def(value, LP_ONNX_Mul);
  double exponent;
  if (pow && lp_scalar_constant(lp_match_peel(lp_op_in(pow, 1)), &exponent) && exponent == 2.0)
    return lp_match_peel(lp_op_in(pow, 0));
  if (mul && lp_match_peel(lp_op_in(mul, 0)) == lp_match_peel(lp_op_in(mul, 1))) return lp_match_peel(lp_op_in(mul, 0));
  return NULL;
}

/* Tells whether it is the product of `x` and `factor`. Other products scale the inverse root itself, by a weight. */
static bool is_product(const lp_op *op, lp_value *x, lp_value *factor) {
  return op && op->kind == LP_ONNX_Mul && lp_match_peel(lp_match_other(op, factor)) == x;
}

/* The operator that divides `x` by the square root of `sum`, in any spelling. */
static lp_op *quotient_of(lp_op *sum, lp_value *x) {
  lp_op *root = lp_match_user(sum->out[0]);
  double number;
  if (!root) return NULL;
  lp_op *next = lp_match_user(root->out[0]);
  if (root->kind == LP_ONNX_Pow) {
    bool inverse = lp_scalar_constant(lp_match_peel(lp_op_in(root, 1)), &number) && number == -0.5;
    return inverse && is_product(next, x, root->out[0]) ? next : NULL;
  }
  if (root->kind != LP_ONNX_Sqrt || !next) return NULL;
  if (next->kind == LP_ONNX_Div && lp_match_peel(lp_op_in(next, 0)) == x) return next;
  bool inverse = next->kind == LP_ONNX_Reciprocal ||
                 (next->kind == LP_ONNX_Div && lp_scalar_constant(lp_op_in(next, 0), &number) && number == 1.0);
  if (!inverse) return NULL;
  lp_op *product = lp_match_user(next->out[0]);
  return is_product(product, x, next->out[0]) ? product : NULL;
}

/* The x from which `centred` subtracts the mean. */
static lp_value *centred_of(lp_value *centred) {
  lp_op *sub = lp_match_def(centred, LP_ONNX_Sub);
  lp_op *mean = sub ? lp_match_def(lp_op_in(sub, 1), LP_ONNX_ReduceMean) : NULL;
  if (!mean || !lp_match_last_axis(mean)) return NULL;
  lp_value *x = lp_match_peel(lp_op_in(sub, 0));
  return lp_match_peel(lp_op_in(mean, 0)) == x ? x : NULL;
}

/* A parameter as long as the last axis that depends on no input. */
static bool is_parameter(lp_value *value, lp_value *x) {
  if (!value || value->type.rank < 1 || x->type.rank < 1 || !lp_match_input_free(value)) return false;
  const lp_poly *width = value->type.dim[value->type.rank - 1];
  return lp_poly_equal(width, x->type.dim[x->type.rank - 1]) &&
         lp_poly_equal(width, lp_type_numel(value->block->module, value->type));
}

/* Follows `last` to the operator of kind `kind` that applies a parameter. */
static lp_value *parameter_after(lp_op **last, lp_kind kind, lp_value *x) {
  lp_op *user = lp_match_user((*last)->out[0]);
  if (!lp_op_is(user, kind)) return NULL;
  lp_value *parameter = lp_match_other(user, (*last)->out[0]);
  if (!is_parameter(parameter, x)) return NULL;
  *last = user;
  return parameter;
}

static lp_value *ones_like_row(lp_build *b, lp_value *x) {
  int64_t width;
  if (!lp_type_static_dim(x->type, -1, &width) || width > 65536) return NULL;
  float *ones = LP_NEW_ARRAY(b->module->arena, float, width);
  for (int64_t i = 0; i < width; i++)
    ones[i] = 1.0f;
  return lp_build_constant(b, LP_F32, 1, &width, ones);
}

static lp_status raise_norm(lp_module *module, lp_op *mean, lp_diag *diag) {
  lp_value *x = lp_match_last_axis(mean) ? squared(lp_op_in(mean, 0)) : NULL;
  lp_op *sum = x ? lp_match_user(mean->out[0]) : NULL;
  double epsilon;
  lp_value *rest;
  if (!sum || !lp_op_is(sum, LP_ONNX_Add) || !lp_match_scalar(sum, &epsilon, &rest)) return LP_OK;
  lp_op *last = quotient_of(sum, x);
  if (!last) return LP_OK;
  lp_value *centred = centred_of(x), *input = centred ? centred : x;
  lp_value *scale = parameter_after(&last, LP_ONNX_Mul, input);
  lp_value *bias = centred && scale ? parameter_after(&last, LP_ONNX_Add, input) : NULL;
  lp_build b = lp_build_at(module, last, diag);
  if (!scale) scale = ones_like_row(&b, input);
  if (!scale) return LP_OK;
  lp_dtype dtype = last->out[0]->type.dtype; /* the match looked through casts */
  lp_value *in[] = {lp_build_cast(&b, input, dtype), scale, bias};
  if (!in[0]) return LP_FAILED;
  lp_op *norm = lp_op_create(module, centred ? LP_ONNX_LayerNormalization : LP_ONNX_RMSNormalization, last->loc,
                             bias ? 3 : 2, in, 1, &last->out[0]->type);
  lp_op_set_i64(module, norm, "axis", -1);
  lp_op_set_f64(module, norm, "epsilon", epsilon);
  lp_op_insert_before(last, norm);
  norm->out[0]->name = last->out[0]->name;
  lp_value_replace(last->out[0], norm->out[0]);
  return LP_OK;
}

lp_status lp_recognise_norms(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_FOR_OPS(op, block)
    if (op->kind == LP_ONNX_ReduceMean) LP_TRY(raise_norm(module, op, diag));
  return LP_OK;
}
