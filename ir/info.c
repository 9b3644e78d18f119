/* The operator table: ops.def as data, and look-up by name. */
#include "ir/ir.h"

static const lp_op_info infos[LP_OP_COUNT] = {
#define LP_STRUCT(id, name, imin, imax, omin, omax, traits, attrs)                                                     \
  [LP_OP_##id] = {LP_OP_##id, name, LP_LEVEL_STRUCT, imin, imax, omin, omax, traits, attrs},
#define LP_ONNX(id, name, imin, imax, omin, omax, traits, attrs, infer, lower)                                         \
  [LP_ONNX_##id] = {LP_ONNX_##id, name, LP_LEVEL_ONNX, imin, imax, omin, omax, traits, attrs},
#define LP_LAYER(id, name, imin, imax, omin, omax, traits, attrs)                                                      \
  [LP_LAYER_##id] = {LP_LAYER_##id, name, LP_LEVEL_LAYER, imin, imax, omin, omax, traits, attrs},
#define LP_OPERATOR(id, name, imin, imax, omin, omax, traits, attrs, rule, cost)                                       \
  [LP_OP_##id] = {LP_OP_##id, name, LP_LEVEL_OP, imin, imax, omin, omax, traits, attrs},
#include "ir/ops.def"
};

static const char *const names[LP_OP_COUNT] = {
#define LP_STRUCT(id, name, ...) name,
#define LP_ONNX(id, name, ...) name,
#define LP_LAYER(id, name, ...) name,
#define LP_OPERATOR(id, name, ...) name,
#include "ir/ops.def"
};

const lp_op_info *lp_op_info_get(lp_kind kind) {
  return &infos[kind];
}

/* A hash table would save little: look-ups happen once per node of a file. */
bool lp_op_info_find(const char *name, lp_kind *out) {
  for (int i = 0; i < LP_OP_COUNT; i++)
    if (strcmp(names[i], name) == 0) {
      *out = (lp_kind)i;
      return true;
    }
  return false;
}

size_t lp_op_names(const char *const **out) {
  *out = names;
  return LP_OP_COUNT;
}

static const struct {
  const char *name;
  int32_t bits;
  bool is_float;
} dtypes[LP_DTYPE_COUNT] = {
    [LP_F32] = {"f32", 32, true},
    [LP_F16] = {"f16", 16, true},
    [LP_BF16] = {"bf16", 16, true},
    [LP_F64] = {"f64", 64, true},
    [LP_I8] = {"i8", 8, false},
    [LP_I16] = {"i16", 16, false},
    [LP_I32] = {"i32", 32, false},
    [LP_I64] = {"i64", 64, false},
    [LP_U8] = {"u8", 8, false},
    [LP_U16] = {"u16", 16, false},
    [LP_U32] = {"u32", 32, false},
    [LP_U64] = {"u64", 64, false},
    [LP_BOOL] = {"bool", 8, false},
    [LP_I4] = {"i4", 4, false},
    [LP_U4] = {"u4", 4, false},
    [LP_I2] = {"i2", 2, false},
    [LP_U2] = {"u2", 2, false},
    [LP_F8E4M3FN] = {"f8e4m3fn", 8, true},
    [LP_F8E4M3FNUZ] = {"f8e4m3fnuz", 8, true},
    [LP_F8E5M2] = {"f8e5m2", 8, true},
    [LP_F8E5M2FNUZ] = {"f8e5m2fnuz", 8, true},
    [LP_F8E8M0] = {"f8e8m0", 8, true},
    [LP_F4E2M1] = {"f4e2m1", 4, true},
};

/* By TensorProto.DataType; the others have no type here. */
static const int8_t onnx_types[] = {[0] = -1,
                                    [1] = LP_F32,
                                    [2] = LP_U8,
                                    [3] = LP_I8,
                                    [4] = LP_U16,
                                    [5] = LP_I16,
                                    [6] = LP_I32,
                                    [7] = LP_I64,
                                    [8] = -1,
                                    [9] = LP_BOOL,
                                    [10] = LP_F16,
                                    [11] = LP_F64,
                                    [12] = LP_U32,
                                    [13] = LP_U64,
                                    [14] = -1,
                                    [15] = -1,
                                    [16] = LP_BF16,
                                    [17] = LP_F8E4M3FN,
                                    [18] = LP_F8E4M3FNUZ,
                                    [19] = LP_F8E5M2,
                                    [20] = LP_F8E5M2FNUZ,
                                    [21] = LP_U4,
                                    [22] = LP_I4,
                                    [23] = LP_F4E2M1,
                                    [24] = LP_F8E8M0,
                                    [25] = LP_U2,
                                    [26] = LP_I2};

bool lp_dtype_from_onnx(int64_t data_type, lp_dtype *out) {
  if (data_type < 0 || data_type >= (int64_t)LP_COUNT(onnx_types) || onnx_types[data_type] < 0) return false;
  *out = (lp_dtype)onnx_types[data_type];
  return true;
}

int32_t lp_dtype_onnx(lp_dtype dtype) {
  for (size_t i = 0; i < LP_COUNT(onnx_types); i++)
    if (onnx_types[i] == (int8_t)dtype) return (int32_t)i;
  return 0;
}

bool lp_dtype_is_code(lp_dtype dtype) {
  return dtype == LP_F8E4M3FN || (!lp_dtype_is_float(dtype) && lp_dtype_bits(dtype) <= 8);
}

bool lp_dtype_is_mini(lp_dtype dtype) {
  return dtype >= LP_F8E4M3FN && dtype <= LP_F4E2M1;
}

lp_mini lp_dtype_mini(lp_dtype dtype) {
  return (lp_mini)(dtype - LP_F8E4M3FN);
}

const char *lp_dtype_name(lp_dtype dtype) {
  return dtypes[dtype].name;
}
int32_t lp_dtype_bits(lp_dtype dtype) {
  return dtypes[dtype].bits;
}
bool lp_dtype_is_float(lp_dtype dtype) {
  return dtypes[dtype].is_float;
}

bool lp_dtype_parse(const char *name, lp_dtype *out) {
  for (int i = 0; i < LP_DTYPE_COUNT; i++)
    if (strcmp(dtypes[i].name, name) == 0) {
      *out = (lp_dtype)i;
      return true;
    }
  return false;
}
