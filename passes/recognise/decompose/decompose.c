/* decompose: rewrites the operators of com.microsoft, and forms of Attention, by the standard's own, so that the
 * rest of the compiler knows one vocabulary. Each function below rewrites one operator of ONNX Runtime's
 * ContribOperators.md. */
#include "passes/recognise/decompose/rewrite.h"

/* ---- activations and products ------------------------------------------------------------------------------------ */

static lp_value *gelu(lp_rewrite *r, lp_value *x, const char *approximate) {
  lp_value *y = lp_rw_op(r, LP_ONNX_Gelu, x, NULL);
  if (y) lp_op_set_str(r->b.module, y->def, "approximate", approximate);
  return y;
}

static lp_status rewrite_fast_gelu(lp_rewrite *r) {
  return lp_rw_give(r, gelu(r, lp_rw_add(r, lp_op_in(r->op, 0), lp_op_in(r->op, 1)), "tanh"));
}

static lp_status rewrite_gelu(lp_rewrite *r) {
  return lp_rw_give(r, gelu(r, lp_rw_add(r, lp_op_in(r->op, 0), lp_op_in(r->op, 1)), "none"));
}

static lp_status rewrite_quick_gelu(lp_rewrite *r) {
  lp_value *y = lp_rw_op(r, LP_ONNX_Swish, lp_op_in(r->op, 0), NULL);
  if (y) lp_op_set_f64(r->b.module, y->def, "alpha", lp_op_f64(r->op, "alpha", 1.702));
  return lp_rw_give(r, y);
}

/* x with its last two axes exchanged; a vector has nothing to transpose. */
static lp_value *turned(lp_rewrite *r, lp_value *x, const char *flag) {
  int32_t rank = x->type.rank;
  int64_t perm[LP_MAX_RANK];
  if (!lp_op_i64(r->op, flag, 0) || rank < 2) return x;
  for (int32_t i = 0; i < rank; i++)
    perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  return lp_rw_transpose(r, x, rank, perm);
}

static lp_status rewrite_fused_matmul(lp_rewrite *r) {
  double alpha = lp_op_f64(r->op, "alpha", 1);
  lp_value *a = turned(r, lp_op_in(r->op, 0), "transA"), *b = turned(r, lp_op_in(r->op, 1), "transB");
  lp_value *y = a && b ? lp_rw_op(r, LP_ONNX_MatMul, a, b) : NULL;
  if (y && alpha != 1) y = lp_rw_op(r, LP_ONNX_Mul, y, lp_rw_cast(r, lp_build_f32(&r->b, (float)alpha), y->type.dtype));
  return lp_rw_give(r, y);
}

/* ---- causal convolutions ----------------------------------------------------------------------------------------- */

/* CausalConvWithState convolves each channel along the last axis. It becomes a sum of shifted inputs: kernels have few
 * taps, and one loop over all of them reads the input once. The sum is one operator, because an Add of two values would
 * look like one to the residual stream. */
enum { X, WEIGHT, BIAS, PAST, MOST_TAPS = 64 };

/* The columns before the input (or zeros), then the input: [b, channels, k - 1 + s]. */
static lp_value *padded(lp_rewrite *r, int64_t taps) {
  lp_value *x = lp_op_in(r->op, X), *past = lp_op_in(r->op, PAST);
  if (past) return lp_rw_concat(r, 2, (lp_value *[]){past, x}, 2);
  return lp_rw_op(r, LP_ONNX_Pad, x, LP_RW_INTS(r, 0, 0, taps - 1, 0, 0, 0));
}

/* Attributes that only com.microsoft's operator has. */
static lp_status check_causal_conv(const lp_rewrite *r) {
  static const struct {
    const char *name;
    int64_t usual;
  } attributes[] = {{"ndim", 1}, {"dilation", 1}, {"channels_last", 0}, {"state_window", 0}};
  for (size_t i = 0; i < LP_COUNT(attributes); i++)
    if (lp_op_i64(r->op, attributes[i].name, attributes[i].usual) != attributes[i].usual)
      return lp_rw_refuse(r, lp_arena_format(r->b.module->arena, "with another %s than %" PRId64 " is not supported",
                                             attributes[i].name, attributes[i].usual));
  return LP_OK;
}

static lp_status rewrite_causal_conv(lp_rewrite *r) {
  const char *activation = lp_op_str(r->op, "activation", "none");
  bool silu = lp_streq(activation, "silu") || lp_streq(activation, "swish");
  int64_t taps;
  lp_value *x = lp_op_in(r->op, X), *bias = lp_op_in(r->op, BIAS), *parts[MOST_TAPS];
  LP_TRY(check_causal_conv(r));
  if (!silu && !lp_streq(activation, "none")) return lp_rw_refuse(r, "has an activation that is not known");
  if (!lp_type_static_dim(lp_op_in(r->op, WEIGHT)->type, 2, &taps) || taps < 1 || taps > MOST_TAPS)
    return lp_rw_refuse(r, "needs a kernel of a constant width up to 64");
  lp_value *columns = padded(r, taps), *size = lp_rw_unsqueeze(r, lp_rw_size(r, x, 2), LP_RW_INTS(r, 0));
  for (int64_t tap = 0; tap < taps; tap++) {
    lp_value *weight = lp_rw_slice(r, lp_op_in(r->op, WEIGHT), 2, LP_RW_INTS(r, tap), LP_RW_INTS(r, tap + 1));
    weight = lp_rw_reshape(r, weight, LP_RW_INTS(r, -1, 1));
    lp_value *from = LP_RW_INTS(r, tap);
    parts[tap] = lp_rw_slice(r, columns, 2, from, lp_rw_op(r, LP_ONNX_Add, size, from));
    parts[tap] = parts[tap] && weight ? lp_rw_op(r, LP_ONNX_Mul, parts[tap], weight) : NULL;
    if (!parts[tap]) return LP_FAILED;
  }
  lp_value *sum = lp_rw_with(r, LP_ONNX_Sum, (int32_t)taps, parts, (lp_rw_attr){0});
  if (bias) sum = lp_rw_add(r, sum, lp_rw_unsqueeze(r, bias, LP_RW_INTS(r, 1)));
  r->result[0] = silu ? lp_rw_op(r, LP_ONNX_Swish, sum, NULL) : sum;
  lp_value *end = lp_rw_unsqueeze(r, lp_rw_size(r, columns, 2), LP_RW_INTS(r, 0));
  r->result[1] = lp_rw_slice(r, columns, 2, size, end);
  return r->result[0] && r->result[1] ? LP_OK : LP_FAILED;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static const struct {
  lp_kind kind;
  lp_rewrite_rule *run;
} rewrites[] = {{LP_ONNX_MsFastGelu, rewrite_fast_gelu},
                {LP_ONNX_MsFusedMatMul, rewrite_fused_matmul},
                {LP_ONNX_MsGelu, rewrite_gelu},
                {LP_ONNX_MsBiasGelu, rewrite_gelu},
                {LP_ONNX_MsQuickGelu, rewrite_quick_gelu},
                {LP_ONNX_MsSkipLayerNormalization, lp_rewrite_skip_norm},
                {LP_ONNX_MsSkipSimplifiedLayerNormalization, lp_rewrite_skip_norm},
                {LP_ONNX_MsEmbedLayerNormalization, lp_rewrite_embed_norm},
                {LP_ONNX_MsQEmbedLayerNormalization, lp_rewrite_qembed_norm},
                {LP_ONNX_SwiGLU, lp_rewrite_swiglu},
                {LP_ONNX_InstanceNormalization, lp_rewrite_instance_norm},
                {LP_ONNX_GroupNormalization, lp_rewrite_group_norm},
                {LP_ONNX_BatchNormalization, lp_rewrite_batch_norm},
                {LP_ONNX_MeanVarianceNormalization, lp_rewrite_mean_variance},
                {LP_ONNX_LpNormalization, lp_rewrite_lp_norm},
                {LP_ONNX_MsAttention, lp_rewrite_ms_attention},
                {LP_ONNX_MsQAttention, lp_rewrite_ms_attention},
                {LP_ONNX_MsMultiHeadAttention, lp_rewrite_multi_head},
                {LP_ONNX_MsDecoderMaskedMultiHeadAttention, lp_rewrite_decoder_masked},
                {LP_ONNX_MsGroupQueryAttention, lp_rewrite_group_query},
                {LP_ONNX_MsRotaryEmbedding, lp_rewrite_ms_rotary},
                {LP_ONNX_MsMoE, lp_rewrite_mixture},
                {LP_ONNX_MsQMoE, lp_rewrite_mixture},
                {LP_ONNX_MatMul, lp_rewrite_gathered_matmul},
                {LP_ONNX_CausalConvWithState, rewrite_causal_conv},
                {LP_ONNX_MsCausalConvWithState, rewrite_causal_conv},
                {LP_ONNX_Attention, lp_rewrite_standard_attention},
                {LP_ONNX_OneHot, lp_rewrite_one_hot},
                {LP_ONNX_ReverseSequence, lp_rewrite_reverse_sequence},
                {LP_ONNX_DepthToSpace, lp_rewrite_depth_to_space},
                {LP_ONNX_SpaceToDepth, lp_rewrite_depth_to_space},
                {LP_ONNX_EyeLike, lp_rewrite_eye_like},
                {LP_ONNX_Compress, lp_rewrite_compress},
                {LP_ONNX_TensorScatter, lp_rewrite_tensor_scatter},
                {LP_ONNX_DynamicQuantizeLinear, lp_rewrite_dynamic_quantize},
                {LP_ONNX_MatMulInteger, lp_rewrite_matmul_integer},
                {LP_ONNX_QLinearMatMul, lp_rewrite_qlinear_matmul},
                {LP_ONNX_MsQuantizeLinear, lp_rewrite_ms_quantize},
                {LP_ONNX_MsDequantizeLinear, lp_rewrite_ms_quantize},
                {LP_ONNX_MsMatMulNBits, lp_rewrite_matmul_nbits},
                {LP_ONNX_MsMatMulBnb4, lp_rewrite_matmul_bnb4},
                {LP_ONNX_MsDynamicQuantizeMatMul, lp_rewrite_dynamic_matmul},
                {LP_ONNX_MsMatMulIntegerToFloat, lp_rewrite_matmul_to_float},
                {LP_ONNX_MsQLinearAdd, lp_rewrite_qlinear_binary},
                {LP_ONNX_MsQLinearMul, lp_rewrite_qlinear_binary},
                {LP_ONNX_MsQLinearSigmoid, lp_rewrite_qlinear_unary},
                {LP_ONNX_MsQLinearLeakyRelu, lp_rewrite_qlinear_unary},
                {LP_ONNX_MsQLinearSoftmax, lp_rewrite_qlinear_unary},
                {LP_ONNX_MsQLinearConcat, lp_rewrite_qlinear_concat},
                {LP_ONNX_MsQGemm, lp_rewrite_qgemm},
                {LP_ONNX_MsGatherBlockQuantized, lp_rewrite_gather_block}};

static lp_status decompose(lp_module *module, lp_op *op, lp_diag *diag) {
  for (size_t i = 0; i < LP_COUNT(rewrites); i++) {
    if (rewrites[i].kind != op->kind) continue;
    lp_rewrite r = {.b = lp_build_at(module, op, diag), .op = op};
    LP_TRY(rewrites[i].run(&r));
    if (op->kind == LP_ONNX_MatMul && !r.result[0]) return LP_OK; /* most products are the standard's own */
    for (int32_t k = 0; k < op->out_count; k++) {
      if (!op->out[k]->uses) continue;
      if (k >= (int32_t)LP_COUNT(r.result) || !r.result[k])
        return lp_error(diag, op->loc, "'%s' has a result %d that is not supported", lp_op_info_get(op->kind)->name, k);
      lp_value_replace(op->out[k], r.result[k]);
    }
    lp_op_erase(op);
    return LP_OK;
  }
  return LP_OK;
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  lp_op *func = lp_module_find_func(module, "main");
  if (!func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to decompose");
  LP_TRY(lp_check_scales(module, func->region, context->diag));
  lp_note_activations(func->region, context->diag);
  for (int sweep = 0; sweep < 2;
       sweep++) /* the first round makes Attention of com.microsoft's operators, the second rewrites Attention */
    for (lp_op *op = func->region->first, *next; op; op = next) {
      next = op->next;
      if ((op->kind == LP_ONNX_Attention) == (sweep == 1)) LP_TRY(decompose(module, op, context->diag));
    }
  lp_build_remove_dead(func->region);
  lp_block_renumber(func->region);
  return LP_OK;
}

const lp_pass lp_pass_decompose = {
    .name = "decompose",
    .summary = "rewrite com.microsoft operators by the standard's",
    .needs = LP_STATE_IMPORTED,
    .makes = LP_STATE_IMPORTED,
    .breaks = LP_STATE_RAISED,
    .run = run,
};
