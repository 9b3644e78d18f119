/* Shape rules of quantised operators: the standard's, and those of com.microsoft as ONNX Runtime documents them
 * (onnxruntime/docs/ContribOperators.md). */
#include "base/poly.h"
#include "ir/infer/infer.h"

/* Tells whether the type has one element. */
static bool is_scalar(lp_type type) {
  int64_t count;
  return lp_type_static_numel(type, &count) && count == 1;
}

/* Checks the shape of operand `index`, a scale or zero point, against operand 0 and the attributes `axis` and
 * `block_size`. */
static lp_status check_scale(lp_infer *c, int32_t index) {
  lp_type x = lp_infer_in(c, 0), scale = lp_infer_in(c, index);
  int64_t block = lp_op_i64(c->op, "block_size", 0), size, count;
  int32_t axis;
  if (is_scalar(scale)) return LP_OK;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 1), x.rank, false, &axis));
  const lp_poly *agreed;
  if (block == 0) {
    LP_TRY(lp_infer_rank(c, index, 1));
    return lp_infer_agree(c, scale.dim[0], x.dim[axis], &agreed);
  }
  if (block < 0) return lp_infer_fail(c, "its block size is %" PRId64, block);
  LP_TRY(lp_infer_rank(c, index, x.rank));
  for (int32_t i = 0; i < x.rank; i++)
    if (i != axis) LP_TRY(lp_infer_agree(c, scale.dim[i], x.dim[i], &agreed));
  bool known = lp_type_static_dim(x, axis, &size) && lp_type_static_dim(scale, axis, &count);
  if (!known) return lp_infer_fail(c, "blocks along an axis whose size is not known are not supported");
  if (count == size / block + (size % block != 0)) return LP_OK;
  return lp_infer_fail(c, "input %d has %" PRId64 " blocks of %" PRId64 " for %" PRId64 " elements", index, count,
                       block, size);
}

static lp_status set_like(const lp_infer *c, int32_t index, lp_dtype dtype) {
  lp_shape shape = lp_infer_shape(c, 0);
  return lp_infer_set(c, index, dtype, &shape);
}

lp_status infer_quantize(lp_infer *c) {
  lp_dtype dtype = LP_U8;
  int64_t asked = lp_op_i64(c->op, "output_dtype", 0);
  if (lp_infer_has(c, 2))
    dtype = lp_infer_in(c, 2).dtype;
  else if (asked && !lp_dtype_from_onnx(asked, &dtype))
    return lp_infer_fail(c, "quantising to type %" PRId64 " is not supported", asked);
  LP_TRY(check_scale(c, 1));
  if (lp_infer_has(c, 2)) LP_TRY(check_scale(c, 2));
  return set_like(c, 0, dtype);
}

lp_status infer_dequantize(lp_infer *c) {
  lp_dtype dtype = lp_infer_in(c, 1).dtype;
  int64_t asked = lp_op_i64(c->op, "output_dtype", 0);
  if (!lp_dtype_is_float(dtype)) return lp_infer_fail(c, "its scale is of type %s", lp_dtype_name(dtype));
  if (asked && !lp_dtype_from_onnx(asked, &dtype))
    return lp_infer_fail(c, "dequantising to type %" PRId64 " is not supported", asked);
  LP_TRY(check_scale(c, 1));
  if (lp_infer_has(c, 2)) LP_TRY(check_scale(c, 2));
  return set_like(c, 0, dtype);
}

lp_status infer_dynamic_quantize(lp_infer *c) {
  lp_shape scalar = {0};
  LP_TRY(set_like(c, 0, LP_U8));
  LP_TRY(lp_infer_set(c, 1, LP_F32, &scalar));
  return lp_infer_set(c, 2, LP_U8, &scalar);
}

lp_status infer_matmul_integer(lp_infer *c) {
  lp_shape out;
  LP_TRY(lp_infer_integer(c, 0));
  LP_TRY(lp_infer_integer(c, 1));
  LP_TRY(lp_infer_product(c, 0, 1, &out));
  return lp_infer_set(c, 0, LP_I32, &out);
}

lp_status infer_qlinear_matmul(lp_infer *c) {
  lp_shape out;
  LP_TRY(lp_infer_product(c, 0, 3, &out));
  return lp_infer_set(c, 0, lp_infer_in(c, 7).dtype, &out);
}

lp_status infer_matmul_float(lp_infer *c) {
  lp_shape out;
  LP_TRY(lp_infer_product(c, 0, 1, &out));
  return lp_infer_set(c, 0, LP_F32, &out);
}

/* ---- operands with a scale and a zero point each ---- */

lp_status infer_qlinear_broadcast(lp_infer *c) {
  if (!lp_infer_has(c, 3)) return lp_infer_fail(c, "its second operand is missing");
  LP_TRY(lp_infer_same_dtype(c, 0, 3));
  lp_shape out = lp_infer_shape(c, 0), other = lp_infer_shape(c, 3);
  LP_TRY(lp_infer_broadcast(c, &out, &other));
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

lp_status infer_qlinear_concat(lp_infer *c) {
  if ((c->op->in_count - 2) % 3) return lp_infer_fail(c, "its operands are not a scale and a zero point, then threes");
  LP_TRY(lp_infer_need(c, c->op->in_count));
  lp_shape out = lp_infer_shape(c, 2);
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), out.rank, false, &axis));
  for (int32_t k = 5; k < c->op->in_count; k += 3) {
    LP_TRY(lp_infer_rank(c, k, out.rank));
    lp_type type = lp_infer_in(c, k);
    for (int32_t i = 0; i < out.rank; i++)
      if (i == axis)
        out.dim[i] = lp_poly_add(c->m->arena, out.dim[i], type.dim[i]);
      else
        LP_TRY(lp_infer_agree(c, out.dim[i], type.dim[i], &out.dim[i]));
  }
  return lp_infer_set(c, 0, lp_infer_in(c, 1).dtype, &out);
}

lp_status infer_qgemm(lp_infer *c) {
  LP_TRY(lp_infer_rank(c, 0, 2));
  LP_TRY(lp_infer_rank(c, 3, 2));
  int32_t across = lp_op_i64(c->op, "transA", 0) != 0, down = lp_op_i64(c->op, "transB", 0) != 0;
  lp_shape a = lp_infer_shape(c, 0), b = lp_infer_shape(c, 3),
           out = {.rank = 2, .dim = {a.dim[across], b.dim[1 - down]}};
  const lp_poly *inner;
  LP_TRY(lp_infer_agree(c, a.dim[1 - across], b.dim[down], &inner));
  return lp_infer_set(c, 0, lp_infer_has(c, 8) ? lp_infer_in(c, 8).dtype : LP_F32, &out);
}

/* ---- blocks of com.microsoft ---- */

static lp_status check_bits(const lp_infer *c, int64_t bits, int64_t block) {
  if (bits != 2 && bits != 4 && bits != 8)
    return lp_infer_fail(c, "weights of %" PRId64 " bits are not supported", bits);
  if (block >= 16 && block <= 1 << 20 && (block & (block - 1)) == 0) return LP_OK;
  return lp_infer_fail(c, "its block size is %" PRId64 ", a power of two from 16 on wanted", block);
}

static lp_status check_count(const lp_infer *c, int32_t index, int64_t wanted) {
  int64_t count;
  if (lp_type_static_numel(lp_infer_in(c, index), &count) && count == wanted) return LP_OK;
  return lp_infer_fail(c, "input %d should have %" PRId64 " elements", index, wanted);
}

/* A product a[..., K] * w[N][K] of packed weights: checks what two such operators share, and sets the result. */
static lp_status packed_product(lp_infer *c, int64_t bits) {
  LP_TRY(lp_infer_min_rank(c, 0, 1));
  int64_t k = lp_op_i64(c->op, "K", 0), n = lp_op_i64(c->op, "N", 0);
  LP_TRY(check_bits(c, bits, lp_op_i64(c->op, "block_size", 0)));
  if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX)
    return lp_infer_fail(c, "its sizes K and N are %" PRId64 " and %" PRId64, k, n);
  if (lp_infer_in(c, 1).dtype != LP_U8) return lp_infer_fail(c, "its weight is not of uint8");
  lp_shape out = lp_infer_shape(c, 0);
  const lp_poly *agreed;
  LP_TRY(lp_infer_agree(c, out.dim[out.rank - 1], lp_dim_const(c->m, k), &agreed));
  out.dim[out.rank - 1] = lp_dim_const(c->m, n);
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

/* Checks every size, so that decompose can use the bytes without a check. */
lp_status infer_matmul_nbits(lp_infer *c) {
  int64_t k = lp_op_i64(c->op, "K", 0), n = lp_op_i64(c->op, "N", 0), bits = lp_op_i64(c->op, "bits", 4);
  int64_t block = lp_op_i64(c->op, "block_size", 0);
  LP_TRY(packed_product(c, bits));
  int64_t blocks = (k + block - 1) / block, packed_zeros = n * ((blocks * bits + 7) / 8);
  LP_TRY(check_count(c, 1, n * blocks * (block * bits / 8)));
  LP_TRY(check_count(c, 2, n * blocks));
  if (lp_infer_has(c, 3)) LP_TRY(check_count(c, 3, lp_infer_in(c, 3).dtype == LP_U8 ? packed_zeros : n * blocks));
  if (lp_infer_has(c, 4))
    return lp_infer_fail(c, "an order of input channels (g_idx) is not supported; export it without act-order");
  if (lp_infer_has(c, 5)) LP_TRY(check_count(c, 5, n));
  if (lp_op_i64(c->op, "weight_prepacked", 0)) return lp_infer_fail(c, "prepacked weights are not supported");
  return LP_OK;
}

/* Checks every size, as above. */
lp_status infer_matmul_bnb4(lp_infer *c) {
  int64_t k = lp_op_i64(c->op, "K", 0), n = lp_op_i64(c->op, "N", 0), block = lp_op_i64(c->op, "block_size", 0);
  int64_t type = lp_op_i64(c->op, "quant_type", 0);
  LP_TRY(packed_product(c, 4));
  if (type != 0 && type != 1) return lp_infer_fail(c, "its quant_type is %" PRId64 ", 0 or 1 wanted", type);
  if (!lp_op_i64(c->op, "transB", 1)) return lp_infer_fail(c, "a weight that is not transposed is not supported");
  LP_TRY(check_count(c, 1, (n * k + 1) / 2));
  return check_count(c, 2, (n * k + block - 1) / block);
}

lp_status infer_gather_block(lp_infer *c) {
  LP_TRY(lp_infer_index(c, 1));
  int64_t bits = lp_op_i64(c->op, "bits", 4);
  lp_type data = lp_infer_in(c, 0);
  LP_TRY(check_bits(c, bits, lp_op_i64(c->op, "block_size", 128)));
  LP_TRY(lp_infer_min_rank(c, 0, 2));
  int32_t gather, quantize;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "gather_axis", 0), data.rank, false, &gather));
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "quantize_axis", 1), data.rank, false, &quantize));
  if (gather != 0 || quantize != data.rank - 1)
    return lp_infer_fail(c, "only rows by the first axis, quantised along the last, are supported");
  lp_shape out = lp_infer_shape(c, 1);
  for (int32_t i = 1; i < data.rank; i++) {
    int64_t packed = i == data.rank - 1 && data.dtype == LP_U8 ? 8 / bits : 1;
    LP_TRY(lp_infer_push(c, &out, lp_poly_scale(c->m->arena, data.dim[i], packed)));
  }
  return lp_infer_set(c, 0, lp_infer_in(c, 2).dtype, &out);
}
