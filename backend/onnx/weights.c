/* Weights of linear operators: stored in the types of the placement, and widened in the graph. */
#include "backend/onnx/constants.h"

#include "backend/constants.h"
#include "backend/quantise.h"
#include "base/file.h"
#include "base/map.h"
#include "base/number.h"

/* ---- narrower types ---------------------------------------------------------------------------------------------- */

/* Writes the elements as another float type, through one slice. */
static void put_narrowed(const onnx_graph *g, const lp_tensor *data, int64_t count, lp_dtype dtype) {
  enum { SLICE = 1 << 15 };
  int64_t width = lp_dtype_bits(dtype) / 8;
  lp_array slice = {.dtype = dtype, .data = lp_alloc((size_t)(SLICE * width))};
  for (int64_t i = 0; i < count;) {
    int64_t n = 0;
    for (; n < SLICE && i < count; n++, i++)
      lp_array_set_f64(&slice, n, lp_tensor_f64(data, i));
    lp_writer_put(g->store->writer, slice.data, (size_t)(n * width));
  }
  free(slice.data);
}

static lp_status narrowed(onnx_graph *g, const lp_value *value, lp_dtype dtype, onnx_name *out) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  int64_t dim[LP_MAX_RANK] = {0};
  lp_constant_identity(value, &key);
  lp_buf_printf(&key, " as %s", lp_dtype_name(dtype));
  onnx_stored *stored = lp_map_get(g->store->stored, lp_buf_text(&key));
  lp_status status = LP_OK;
  lp_static_shape(value->type, dim);
  if (!stored) {
    lp_tensor data;
    status = lp_constant_data(g->module, value, &data, g->diag);
    if (status == LP_OK) {
      stored = onnx_stored_begin(g, lp_buf_text(&key));
      put_narrowed(g, &data, dim[0] * dim[1], dtype);
      onnx_stored_end(g, stored);
    }
  }
  if (status == LP_OK) {
    Onnx__TensorProto *tensor = onnx_tensor(g, dtype, value->type.rank, dim);
    onnx_tensor_set_external(g, tensor, stored);
    *out = onnx_initializer(g, tensor,
                            lp_arena_format(g->arena, "%s.%s", onnx_constant_name(value), lp_dtype_name(dtype)));
  }
  return status;
}

/* A matrix in codes of 8 or 4 bits: LP_WEIGHT_GROUP codes along k share a scale. */
typedef struct {
  int64_t dim[2], k_axis, groups; /* groups of one row */
  const float *squares;           /* [k]: see lp_constant_squares */
  uint8_t *codes;                 /* one per byte */
  uint16_t *scales;               /* f16, a matrix with `groups` in place of k */
} coded;

static void encode(coded *c, const lp_tensor *data, lp_dtype dtype) {
  int64_t k = c->dim[c->k_axis], n = c->dim[1 - c->k_axis], step = c->k_axis ? 1 : n;
  LP_OWNED(lp_free_at) float *w = lp_alloc(sizeof *w * (size_t)(n * k + 1));
  for (int64_t i = 0; i < n * k; i++)
    w[i] = (float)lp_tensor_f64(data, i);
  for (int64_t row = 0; row < n; row++)
    for (int64_t j = 0; j < c->groups; j++) {
      int64_t first = j * LP_WEIGHT_GROUP, count = k - first < LP_WEIGHT_GROUP ? k - first : LP_WEIGHT_GROUP;
      int64_t at = c->k_axis ? row * k + first : first * n + row;
      float scale = lp_quantise(w + at, count, step, c->squares ? c->squares + first : NULL,
                                dtype == LP_I8 ? LP_I8 : LP_U4, LP_F16, c->codes + at);
      c->scales[c->k_axis ? row * c->groups + j : j * n + row] = lp_f32_to_f16(scale);
    }
}

/* lp_quantise gives codes of 4 bits as 0 to 15; ONNX stores -8 to 7. */
static void put_codes(onnx_graph *g, const coded *c, lp_dtype dtype) {
  int64_t count = c->dim[0] * c->dim[1];
  if (dtype == LP_I8) {
    lp_writer_put(g->store->writer, c->codes, (size_t)count);
    return;
  }
  LP_OWNED(lp_free_at) uint8_t *packed = lp_alloc((size_t)(count / 2 + 1));
  for (int64_t i = 0; i < count; i++)
    lp_packed_set(packed, LP_I4, i, (int64_t)c->codes[i] - 8);
  lp_writer_put(g->store->writer, packed, (size_t)((count + 1) / 2));
}

static lp_status store_codes(onnx_graph *g, const lp_value *value, lp_dtype dtype, coded *c, const char *const *key,
                             onnx_stored **out) {
  lp_tensor data;
  LP_TRY(lp_constant_data(g->module, value, &data, g->diag));
  size_t numel = (size_t)(c->dim[0] * c->dim[1]), scales = (size_t)(c->groups * c->dim[1 - c->k_axis]);
  c->codes = lp_alloc(numel + 1);
  c->scales = lp_alloc(sizeof *c->scales * (scales + 1));
  encode(c, &data, dtype);
  out[0] = onnx_stored_begin(g, key[0]);
  put_codes(g, c, dtype);
  onnx_stored_end(g, out[0]);
  out[1] = onnx_stored_begin(g, key[1]);
  lp_writer_put(g->store->writer, c->scales, sizeof *c->scales * scales);
  onnx_stored_end(g, out[1]);
  free(c->codes);
  free(c->scales);
  return LP_OK;
}

static lp_status quantised(onnx_graph *g, const lp_value *value, lp_dtype dtype, int64_t k_axis, onnx_name *out) {
  coded c = {.k_axis = k_axis};
  if (g->opset < 21) return onnx_refuse(g, "weights in groups need --opset=21");
  lp_static_shape(value->type, c.dim);
  c.squares = lp_constant_squares(g->module, value, c.dim[k_axis]);
  c.groups = (c.dim[k_axis] + LP_WEIGHT_GROUP - 1) / LP_WEIGHT_GROUP;
  lp_buf identity_text = {0};
  lp_constant_identity(value, &identity_text);
  const char *key[2], *name = dtype == LP_I8 ? "int8" : "int4";
  for (int i = 0; i < 2; i++)
    key[i] = lp_arena_format(g->arena, "%s in %s along %" PRId64 " %s", lp_buf_text(&identity_text), name, k_axis,
                             i ? "scales" : "codes");
  lp_buf_free(&identity_text);
  onnx_stored *stored[2] = {lp_map_get(g->store->stored, key[0]), lp_map_get(g->store->stored, key[1])};
  if (!stored[0]) LP_TRY(store_codes(g, value, dtype, &c, key, stored));
  int64_t scale_dim[2] = {c.dim[0], c.dim[1]};
  scale_dim[k_axis] = c.groups;
  Onnx__TensorProto *codes = onnx_tensor(g, dtype, 2, c.dim), *scales = onnx_tensor(g, LP_F16, 2, scale_dim);
  onnx_tensor_set_external(g, codes, stored[0]);
  onnx_tensor_set_external(g, scales, stored[1]);
  onnx_name w = onnx_initializer(g, codes, lp_arena_format(g->arena, "%s.%s", onnx_constant_name(value), name));
  onnx_name s = onnx_initializer(g, scales, lp_arena_format(g->arena, "%s.scale", onnx_constant_name(value)));
  *out = ONNX_NODE(g, "DequantizeLinear", w, onnx_cast(g, s, LP_F32));
  onnx_attr_i(g, "axis", k_axis);
  onnx_attr_i(g, "block_size", LP_WEIGHT_GROUP);
  return LP_OK;
}

/* ---- weights of linear operators --------------------------------------------------------------------------------- */

/* An integer weight with the model's own scales. */
static lp_status dequantised(onnx_graph *g, const lp_op *op, bool gate, int64_t k_axis, onnx_name *out) {
  const int32_t scales = gate ? 7 : 5;
  const lp_value *w = lp_op_in(op, gate ? 4 : 1), *scale = lp_op_in(op, scales), *zero = lp_op_in(op, scales + 1);
  int64_t group = lp_op_i64(op, "group", 0), scale_count = 0, zero_count = 0;
  onnx_name codes, s, z;
  if (group > 0 && g->opset < 21) return onnx_refuse(g, "weights in groups need --opset=21");
  if (lp_dtype_bits(w->type.dtype) < 8 && g->opset < 21) return onnx_refuse(g, "integers of 4 bits need --opset=21");
  if (lp_dtype_bits(w->type.dtype) < 4) return onnx_refuse(g, "ONNX has no integers of 2 bits");
  if (zero && zero->type.dtype != w->type.dtype)
    return onnx_refuse(g, "its zero points have another type than its codes");
  LP_TRY(onnx_operand(g, gate ? 4 : 1, &codes));
  LP_TRY(onnx_operand_as(g, scales, LP_F32, &s));
  LP_TRY(onnx_operand(g, scales + 1, &z));
  if (!lp_type_static_numel(scale->type, &scale_count)) scale_count = 0;
  if (zero && !lp_type_static_numel(zero->type, &zero_count)) zero_count = 0;
  if (zero && zero_count != scale_count) z = ONNX_NODE(g, "Expand", z, ONNX_NODE(g, "Shape", s));
  if (scale_count == 1) {
    onnx_name scalar = onnx_i64s(g, NULL, 0);
    s = ONNX_NODE(g, "Reshape", s, scalar);
    if (z) z = ONNX_NODE(g, "Reshape", z, scalar);
  }
  *out = ONNX_NODE(g, "DequantizeLinear", codes, s, z);
  onnx_attr_i(g, "axis", group > 0 ? k_axis : 1 - k_axis);
  if (group > 0 && scale_count > 1) onnx_attr_i(g, "block_size", group);
  return LP_OK;
}

/* A matrix of floats in the type of `weight_dtype`, widened again to f32 where that is another than its own. */
static lp_status in_storage(onnx_graph *g, const lp_op *op, int32_t operand, int64_t k_axis, onnx_name *out) {
  const lp_value *w = lp_op_in(op, operand);
  lp_storage storage = lp_storage_of(w->type.dtype);
  const char *asked = lp_op_str(op, "weight_dtype", NULL);
  if (asked && lp_dtype_is_float(w->type.dtype) && !lp_storage_find(asked, &storage)) storage.dtype = w->type.dtype;
  if (!lp_dtype_is_float(storage.dtype)) return quantised(g, w, storage.dtype == LP_I8 ? LP_I8 : LP_I4, k_axis, out);
  if (storage.dtype != w->type.dtype)
    LP_TRY(narrowed(g, w, storage.dtype, out));
  else
    LP_TRY(onnx_operand(g, operand, out));
  if (storage.dtype != LP_F32) *out = onnx_cast(g, *out, LP_F32);
  return LP_OK;
}

lp_status onnx_table(onnx_graph *g, const lp_op *op, onnx_name *out) {
  return in_storage(g, op, 0, 1, out);
}

lp_status onnx_weight(onnx_graph *g, const lp_op *op, bool gate, onnx_name *out) {
  const lp_value *w = lp_op_in(op, gate ? 4 : 1);
  bool transpose = lp_op_bool(op, "transpose_b", false);
  int64_t k_axis = transpose ? 1 : 0, stored_k = 0, k = 0;
  if (lp_op_in(op, gate ? 7 : 5))
    LP_TRY(dequantised(g, op, gate, k_axis, out));
  else
    LP_TRY(in_storage(g, op, gate ? 4 : 1, k_axis, out));
  if (lp_type_static_dim(w->type, (int32_t)k_axis, &stored_k) && lp_type_static_dim(lp_op_in(op, 0)->type, -1, &k) &&
      stored_k > k) {
    const int64_t zero = 0;
    *out = ONNX_NODE(g, "Slice", *out, onnx_i64s(g, &zero, 1), onnx_i64s(g, &k, 1), onnx_i64s(g, &k_axis, 1));
  }
  if (transpose) *out = onnx_transpose(g, *out, (const int64_t[]){1, 0}, 2);
  return LP_OK;
}
