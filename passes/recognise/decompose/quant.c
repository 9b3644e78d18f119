/* decompose: quantised operators. Integer products become products of int32, which are exact; packed weights become a
 * DequantizeLinear, which products read through (lower/lower_model.c). */
#include "passes/recognise/decompose/rewrite.h"

#include <math.h>

static lp_value *one(lp_rewrite *r, lp_kind kind, lp_value *x) {
  return lp_build_value(&r->b, kind, 1, &x);
}

static lp_value *two(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *y) {
  lp_value *in[] = {x, y};
  return lp_build_value(&r->b, kind, 2, in);
}

static bool is_vector(const lp_value *value) {
  int64_t size;
  return value->type.rank == 1 && !(lp_type_static_dim(value->type, 0, &size) && size == 1);
}

/* One number per row of a matrix: [m] as [m, 1]. */
static lp_value *per_row(lp_rewrite *r, lp_value *x) {
  int64_t last = 1;
  if (!x || !is_vector(x)) return x;
  return two(r, LP_ONNX_Unsqueeze, x, lp_build_i64s(&r->b, &last, 1));
}

/* ---- products of integers ---------------------------------------------------------------------------------------- */

static lp_value *centred(lp_rewrite *r, lp_value *x, lp_value *zero) {
  lp_value *wide = lp_build_cast(&r->b, x, LP_I32);
  return zero ? two(r, LP_ONNX_Sub, wide, lp_build_cast(&r->b, zero, LP_I32)) : wide;
}

static lp_value *integer_product(lp_rewrite *r, lp_value *a, lp_value *a_zero, lp_value *b, lp_value *b_zero) {
  return two(r, LP_ONNX_MatMul, centred(r, a, per_row(r, a_zero)), centred(r, b, b_zero));
}

lp_status lp_rewrite_matmul_integer(lp_rewrite *r) {
  const lp_op *op = r->op;
  return lp_rw_give(r, integer_product(r, lp_op_in(op, 0), lp_op_in(op, 2), lp_op_in(op, 1), lp_op_in(op, 3)));
}

static lp_value *with_scale(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *scale, lp_value *zero, int64_t axis,
                            int64_t block, lp_dtype result) {
  lp_type unknown = {result, -1, NULL};
  lp_value *in[] = {x, scale, zero};
  if (!x || !scale) return NULL;
  lp_op *op = lp_op_create(r->b.module, kind, r->b.loc, zero ? 3 : 2, in, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "axis", axis);
  if (block > 0) lp_op_set_i64(r->b.module, op, "block_size", block);
  if (kind == LP_ONNX_DequantizeLinear && result != scale->type.dtype)
    lp_op_set_i64(r->b.module, op, "output_dtype", lp_dtype_onnx(result));
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

/* The product of the scales: one per row times one per column. */
static lp_value *scales(lp_rewrite *r, lp_value *a, lp_value *b) {
  return two(r, LP_ONNX_Mul, per_row(r, a), b);
}

lp_status lp_rewrite_qlinear_matmul(lp_rewrite *r) {
  lp_value *in[8], *real;
  for (int32_t i = 0; i < 8; i++)
    in[i] = lp_op_in(r->op, i);
  lp_dtype dtype = in[6]->type.dtype;
  int32_t rank = r->op->out[0]->type.rank;
  if (lp_dtype_is_mini(in[0]->type.dtype))
    real = two(r, LP_ONNX_MatMul, with_scale(r, LP_ONNX_DequantizeLinear, in[0], in[1], in[2], -2, 0, dtype),
               with_scale(r, LP_ONNX_DequantizeLinear, in[3], in[4], in[5], -1, 0, dtype));
  else
    real = two(r, LP_ONNX_Mul, lp_build_cast(&r->b, integer_product(r, in[0], in[2], in[3], in[5]), dtype),
               scales(r, in[1], in[4]));
  return lp_rw_give(
      r, with_scale(r, LP_ONNX_QuantizeLinear, real, in[6], in[7], rank > 1 ? -2 : -1, 0, r->op->out[0]->type.dtype));
}

lp_value *lp_rw_product(lp_rewrite *r, const lp_rw_integers *p, lp_value *bias, double times) {
  bool exact = bias && bias->type.dtype == LP_I32;
  lp_value *sum = integer_product(r, p->a, p->a_zero, p->b, p->b_zero);
  if (exact) sum = two(r, LP_ONNX_Add, sum, bias);
  lp_value *y = two(r, LP_ONNX_Mul, lp_build_cast(&r->b, sum, LP_F32), scales(r, p->a_scale, p->b_scale));
  if (times != 1) y = two(r, LP_ONNX_Mul, y, lp_build_f32(&r->b, (float)times));
  return bias && !exact ? two(r, LP_ONNX_Add, y, bias) : y;
}

lp_status lp_rewrite_matmul_to_float(lp_rewrite *r) {
  lp_value *in[7];
  for (int32_t i = 0; i < 7; i++)
    in[i] = lp_op_in(r->op, i);
  return lp_rw_give(r, lp_rw_product(r, &(lp_rw_integers){in[0], in[2], in[4], in[1], in[3], in[5]}, in[6], 1));
}

lp_value *lp_rw_scaled(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *scale, lp_value *zero, lp_dtype result) {
  return with_scale(r, kind, x, scale, zero, 0, 0, result);
}

/* ---- quantising at run time -------------------------------------------------------------------------------------- */

static lp_value *extreme(lp_rewrite *r, lp_kind reduce, lp_kind join, lp_value *x) {
  lp_type unknown = {LP_F32, -1, NULL};
  lp_op *op = lp_op_create(r->b.module, reduce, r->b.loc, 1, &x, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "keepdims", 0);
  return lp_build_place(&r->b, op) == LP_OK ? two(r, join, op->out[0], lp_build_f32(&r->b, 0)) : NULL;
}

/* Scale and zero point that map [min(x, 0), max(x, 0)] to [0, 255]; all zeros have the scale 1. */
static bool dynamic_scale(lp_rewrite *r, lp_value *x, lp_value **scale, lp_value **zero) {
  lp_value *low = extreme(r, LP_ONNX_ReduceMin, LP_ONNX_Min, x), *high = extreme(r, LP_ONNX_ReduceMax, LP_ONNX_Max, x);
  lp_value *width = two(r, LP_ONNX_Div, two(r, LP_ONNX_Sub, high, low), lp_build_f32(&r->b, 255));
  lp_value *choose[] = {two(r, LP_ONNX_Equal, width, lp_build_f32(&r->b, 0)), lp_build_f32(&r->b, 1), width};
  *scale = lp_build_value(&r->b, LP_ONNX_Where, 3, choose);
  lp_value *at = one(r, LP_ONNX_Round, two(r, LP_ONNX_Div, low ? one(r, LP_ONNX_Neg, low) : NULL, *scale));
  lp_value *clip[] = {at, lp_build_f32(&r->b, 0), lp_build_f32(&r->b, 255)};
  *zero = lp_build_cast(&r->b, lp_build_value(&r->b, LP_ONNX_Clip, 3, clip), LP_U8);
  return *scale && *zero;
}

lp_status lp_rewrite_dynamic_quantize(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0);
  if (!dynamic_scale(r, x, &r->result[1], &r->result[2])) return LP_FAILED;
  return lp_rw_give(r, with_scale(r, LP_ONNX_QuantizeLinear, x, r->result[1], r->result[2], 0, 0, LP_U8));
}

lp_status lp_rewrite_dynamic_matmul(lp_rewrite *r) {
  const lp_op *op = r->op;
  lp_value *a = lp_op_in(op, 0), *scale, *zero;
  if (!dynamic_scale(r, a, &scale, &zero)) return LP_FAILED;
  lp_value *quantised = with_scale(r, LP_ONNX_QuantizeLinear, a, scale, zero, 0, 0, LP_U8);
  if (!quantised) return LP_FAILED;
  lp_rw_integers p = {quantised, scale, zero, lp_op_in(op, 1), lp_op_in(op, 2), lp_op_in(op, 3)};
  return lp_rw_give(r, lp_rw_product(r, &p, lp_op_in(op, 4), 1));
}

lp_status lp_rewrite_ms_quantize(lp_rewrite *r) {
  bool back = r->op->kind == LP_ONNX_MsDequantizeLinear;
  return lp_rw_give(r, with_scale(r, back ? LP_ONNX_DequantizeLinear : LP_ONNX_QuantizeLinear, lp_op_in(r->op, 0),
                                  lp_op_in(r->op, 1), lp_op_in(r->op, 2), lp_op_i64(r->op, "axis", 1),
                                  lp_op_i64(r->op, "block_size", 0), r->op->out[0]->type.dtype));
}

/* ---- packed weights ---------------------------------------------------------------------------------------------- */

static lp_dtype packed_dtype(int64_t bits) {
  return bits == 2 ? LP_U2 : bits == 4 ? LP_U4 : LP_U8;
}

/* The bytes of a constant as a matrix of another element type. */
static lp_value *as_matrix(lp_rewrite *r, lp_value *value, lp_dtype dtype, int64_t rows, int64_t columns) {
  int64_t dim[] = {rows, columns};
  return lp_build_reshaped_constant(&r->b, value, lp_type_static(r->b.module, dtype, 2, dim));
}

/* The code that stands for zero where no zero points are given: the middle of the range. */
static lp_value *middle(lp_rewrite *r, int64_t bits) {
  uint8_t code = (uint8_t)(1 << (bits - 1));
  return lp_build_constant(&r->b, LP_U8, 0, NULL, &code);
}

static lp_value *cut_columns(lp_rewrite *r, lp_value *x, int64_t columns) {
  int64_t zero = 0, axis = 1, size;
  if (!x || (lp_type_static_dim(x->type, 1, &size) && size == columns)) return x;
  lp_value *in[] = {x, lp_build_i64s(&r->b, &zero, 1), lp_build_i64s(&r->b, &columns, 1),
                    lp_build_i64s(&r->b, &axis, 1)};
  return lp_build_value(&r->b, LP_ONNX_Slice, 4, in);
}

/* Zero points [rows][blocks]. Rows of packed ones end at a byte boundary; where that leaves a gap, they are
 * unpacked. */
static lp_value *zero_points(lp_rewrite *r, lp_value *given, int64_t bits, int64_t rows, int64_t blocks) {
  if (!given) return middle(r, bits);
  if (given->type.dtype != LP_U8) return as_matrix(r, given, given->type.dtype, rows, blocks);
  int64_t stored = (blocks * bits + 7) / 8 * 8 / bits;
  if (stored == blocks) return as_matrix(r, given, packed_dtype(bits), rows, blocks);
  lp_tensor tensor;
  if (lp_weight_data(r->b.module, given, &tensor, r->b.diag) != LP_OK) return NULL;
  uint8_t *codes = lp_arena_alloc(r->b.module->arena, (size_t)(rows * blocks));
  for (int64_t i = 0; i < rows * blocks; i++)
    codes[i] = lp_packed_get(tensor.data, packed_dtype(bits), i / blocks * stored + i % blocks);
  int64_t dim[] = {rows, blocks};
  return lp_build_constant(&r->b, LP_U8, 2, dim, codes);
}

lp_value *lp_rw_unpacked(lp_rewrite *r, const lp_rw_packed *p) {
  int64_t blocks = (p->columns + p->block - 1) / p->block;
  lp_value *w = as_matrix(r, p->weight, packed_dtype(p->bits), p->rows, blocks * p->block);
  lp_value *scale = as_matrix(r, p->scale, p->scale->type.dtype, p->rows, blocks);
  lp_value *zero = p->zeros_adjoin ? as_matrix(r, p->zero, packed_dtype(p->bits), p->rows, 1)
                                   : zero_points(r, p->zero, p->bits, p->rows, blocks);
  if (!zero) return NULL;
  return cut_columns(r, with_scale(r, LP_ONNX_DequantizeLinear, w, scale, zero, 1, p->block, p->result), p->columns);
}

/* The weight, then its scales and zero points. */
static lp_status need_constants(const lp_rewrite *r, int32_t weight) {
  const int32_t all[] = {weight, 2, 3};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    if (lp_op_in(r->op, all[i]) && !lp_value_is_constant(lp_op_in(r->op, all[i])))
      return lp_error(r->b.diag, r->op->loc, "'%s' has a weight that is not a constant",
                      lp_op_info_get(r->op->kind)->name);
  return LP_OK;
}

/* The backend checks the scales that are in a file, when it reads them: lp_constant_data. */
static lp_status check_scale(lp_module *module, const lp_op *op, const lp_value *scale, lp_diag *diag) {
  lp_tensor tensor;
  int64_t count;
  const char *name = lp_op_info_get(op->kind)->name;
  if (lp_op_is(scale->def, LP_OP_WEIGHT)) {
    scale->def->loc = op->loc;
    lp_op_set_str(module, scale->def, "scale_of", name);
  }
  if (!lp_value_constant(scale, &tensor) || !lp_type_static_numel(scale->type, &count)) return LP_OK;
  for (int64_t i = 0; i < count; i++)
    if (!isfinite(lp_tensor_f64(&tensor, i)))
      return lp_error(diag, op->loc, "'%s' has a scale that is not finite", name);
  return LP_OK;
}

/* Reports a scale that is infinite or NaN, as quantize_static computes it for a mask of -3.4e38. */
lp_status lp_check_scales(lp_module *module, const lp_block *block, lp_diag *diag) {
  static const struct {
    lp_kind kind;
    int32_t operand[5]; /* 0: none */
  } scaled[] = {{LP_ONNX_QuantizeLinear, {1}},      {LP_ONNX_DequantizeLinear, {1}},
                {LP_ONNX_QLinearMatMul, {1, 4, 6}}, {LP_ONNX_MsQuantizeLinear, {1}},
                {LP_ONNX_MsDequantizeLinear, {1}},  {LP_ONNX_MsMatMulNBits, {2}},
                {LP_ONNX_MsMatMulBnb4, {2}},        {LP_ONNX_MsGatherBlockQuantized, {2}},
                {LP_ONNX_MsQLinearAdd, {1, 4, 6}},  {LP_ONNX_MsQLinearMul, {1, 4, 6}},
                {LP_ONNX_MsQLinearSigmoid, {1, 3}}, {LP_ONNX_MsQLinearLeakyRelu, {1, 3}},
                {LP_ONNX_MsQLinearSoftmax, {1, 3}}, {LP_ONNX_MsQGemm, {1, 4, 7}},
                {LP_ONNX_MsQAttention, {3, 4}},     {LP_ONNX_MsMatMulIntegerToFloat, {2, 3}},
                {LP_ONNX_MsQMoE, {3, 6, 9}},        {LP_ONNX_MsQEmbedLayerNormalization, {8, 9, 10, 11, 12}}};
  LP_FOR_OPS(op, block)
    for (size_t i = 0; i < LP_COUNT(scaled); i++)
      for (size_t k = 0; k < LP_COUNT(scaled[i].operand) && scaled[i].kind == op->kind; k++) {
        int32_t index = scaled[i].operand[k];
        const lp_value *scale = index > 0 && index < op->in_count ? lp_op_in(op, index) : NULL;
        if (scale) LP_TRY(check_scale(module, op, scale, diag));
      }
  return LP_OK;
}

/* accuracy_level 4 lets a runtime round activations to int8; 2 and 3 to f16 and bf16. */
void lp_note_activations(const lp_block *block, lp_diag *diag) {
  const lp_op *first = NULL;
  int64_t count = 0;
  LP_FOR_OPS(op, block) {
    bool packed = op->kind == LP_ONNX_MsMatMulNBits || op->kind == LP_ONNX_MsQMoE;
    if (!packed || lp_op_i64(op, "accuracy_level", 0) != 4) continue;
    if (!first) first = op;
    count++;
  }
  if (!first) return;
  lp_note(diag, first->loc,
          "this and %" PRId64
          " further products allow int8 activations (accuracy_level = 4); without --activations=auto they stay f32, "
          "so the results differ from ONNX Runtime's by its rounding",
          count - 1);
}

lp_status lp_rewrite_matmul_nbits(lp_rewrite *r) {
  static const int64_t swap[] = {1, 0};
  lp_value *x = lp_op_in(r->op, 0), *bias = lp_op_in(r->op, 5);
  lp_rw_packed p = {.weight = lp_op_in(r->op, 1), .scale = lp_op_in(r->op, 2), .zero = lp_op_in(r->op, 3)};
  p.rows = lp_op_i64(r->op, "N", 0);
  p.columns = lp_op_i64(r->op, "K", 0);
  p.bits = lp_op_i64(r->op, "bits", 4);
  p.block = lp_op_i64(r->op, "block_size", 0);
  p.result = x->type.dtype;
  LP_TRY(need_constants(r, 1));
  lp_value *real = lp_rw_unpacked(r, &p);
  lp_type unknown = {LP_F32, -1, NULL};
  if (!real) return LP_FAILED;
  lp_op *transpose = lp_op_create(r->b.module, LP_ONNX_Transpose, r->b.loc, 1, &real, 1, &unknown);
  lp_op_set_i64s(r->b.module, transpose, "perm", swap, 2);
  LP_TRY(lp_build_place(&r->b, transpose));
  r->result[0] = two(r, LP_ONNX_MatMul, x, transpose->out[0]);
  if (bias) r->result[0] = two(r, LP_ONNX_Add, r->result[0], bias);
  return lp_rw_give(r, r->result[0]);
}

/* Gathers rows of the packed table, of its scales and of its zero points, and dequantises only these rows. */
lp_status lp_rewrite_gather_block(lp_rewrite *r) {
  lp_value *data = lp_op_in(r->op, 0), *index = lp_op_in(r->op, 1), *scale = lp_op_in(r->op, 2);
  lp_value *zero = lp_op_in(r->op, 3);
  int64_t bits = lp_op_i64(r->op, "bits", 4), block = lp_op_i64(r->op, "block_size", 128), rows, columns;
  int32_t rank = data->type.rank;
  LP_TRY(need_constants(r, 0));
  if (rank != 2 || !lp_type_static_dim(data->type, 0, &rows) || !lp_type_static_dim(data->type, 1, &columns) ||
      !lp_value_is_constant(data))
    return lp_error(r->b.diag, r->op->loc, "'%s' reads a table that is not a constant matrix",
                    lp_op_info_get(r->op->kind)->name);
  if (data->type.dtype == LP_U8) { /* packed in bytes, as are the zero points */
    columns = columns * 8 / bits;
    data = as_matrix(r, data, packed_dtype(bits), rows, columns);
    zero = zero_points(r, zero, bits, rows, (columns + block - 1) / block);
    if (!zero) return LP_FAILED;
  }
  int64_t count;
  bool many = zero && !(lp_type_static_numel(zero->type, &count) && count == 1);
  if (many) zero = two(r, LP_ONNX_Gather, zero, index);
  lp_value *scales = two(r, LP_ONNX_Gather, scale, index), *codes = two(r, LP_ONNX_Gather, data, index);
  return lp_rw_give(r, with_scale(r, LP_ONNX_DequantizeLinear, codes, scales, zero, -1, block, scale->type.dtype));
}

/* ---- 4-bit weights of bitsandbytes ------------------------------------------------------------------------------- */

/* FP4 and NF4 of "QLoRA: Efficient Finetuning of Quantized LLMs" (Dettmers et al., 2023), as in bitsandbytes. A code is
 * an index into a table without equal steps, so no DequantizeLinear describes it. The weights are expanded here, and
 * --dtype may pack them again. */
static const float tables[2][16] = {
    {0, 0.005208333333F, 2.0F / 3, 1, 1.0F / 3, 0.5F, 1.0F / 6, 0.25F, -0.0F, -0.005208333333F, -2.0F / 3, -1,
     -1.0F / 3, -0.5F, -1.0F / 6, -0.25F},
    {-1, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
     -0.18477343022823334F, -0.09105003625154495F, 0, 0.07958029955625534F, 0.16093020141124725F, 0.24611230194568634F,
     0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1}};

/* Codes lie in the order of [N][K], the first of two in the high bits; a block may cross rows. */
static void expand(const lp_rewrite *r, const uint8_t *codes, const lp_tensor *scale, lp_array *out) {
  const float *table = tables[lp_op_i64(r->op, "quant_type", 0)];
  int64_t count = out->dim[0] * out->dim[1], block = lp_op_i64(r->op, "block_size", 0);
  for (int64_t i = 0; i < count; i++) {
    uint8_t code = i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
    lp_array_set_f64(out, i, (double)(table[code] * (float)lp_tensor_f64(scale, i / block)));
  }
}

lp_status lp_rewrite_matmul_bnb4(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0), *in[2] = {lp_op_in(r->op, 1), lp_op_in(r->op, 2)};
  lp_tensor part[2];
  for (int i = 0; i < 2; i++) {
    if (!lp_value_is_constant(in[i])) return lp_rw_refuse(r, "has a weight that is not a constant");
    LP_TRY(lp_weight_data(r->b.module, in[i], &part[i], r->b.diag));
  }
  lp_array weight = {.dtype = x->type.dtype, .rank = 2, .dim = {lp_op_i64(r->op, "N", 0), lp_op_i64(r->op, "K", 0)}};
  int64_t bytes = weight.dim[0] * weight.dim[1] * lp_dtype_bits(weight.dtype) / 8;
  weight.data = lp_arena_alloc(r->b.module->arena, (size_t)bytes);
  expand(r, part[0].data, &part[1], &weight);
  static const int64_t swap[] = {1, 0};
  lp_value *rows = lp_build_constant(&r->b, weight.dtype, 2, weight.dim, weight.data);
  return lp_rw_give(r, lp_rw_op(r, LP_ONNX_MatMul, x, lp_rw_transpose(r, rows, 2, swap)));
}
