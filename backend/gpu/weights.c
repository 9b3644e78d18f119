/* Writes weights.safetensors: each constant in the form that kernels read, one row or slice at a time. */
#include "backend/gpu/constants.h"

#include "backend/constants.h"
#include "backend/quantise.h"
#include "base/file.h"
#include "base/number.h"

#include <math.h>

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* The weight from which rows are made, and the scales and zero points of the model's own integers. */
typedef struct {
  const gpu_constant *c;
  lp_tensor w, scale, zero;
  lp_block_rows blocks; /* instead of w */
  const float *squares; /* see lp_constant_squares */
} source;

/* The element of a scale or zero point for row k, column n: see op.linear in ops.def. */
static double group_at(const gpu_constant *c, const lp_tensor *scale, int64_t k, int64_t n) {
  int64_t count = 0, groups = c->group > 0 ? (c->k_stored + c->group - 1) / c->group : 1;
  if (lp_type_static_numel(scale->type, &count) && count == 1) return lp_tensor_f64(scale, 0);
  if (c->group == 0) return lp_tensor_f64(scale, n);
  if (c->transpose) groups = count / c->n;
  return lp_tensor_f64(scale, c->transpose ? n * groups + k / c->group : k / c->group * c->n + n);
}

static void read_row(const source *s, int64_t n, float *row) {
  const gpu_constant *c = s->c;
  if (s->blocks.form) {
    lp_block_rows_read(&s->blocks, n, 1, row);
    return;
  }
  for (int64_t k = 0; k < c->k; k++) {
    double value = lp_tensor_f64(&s->w, c->transpose ? n * c->k_stored + k : k * c->n + n);
    if (c->zero) value -= group_at(c, &s->zero, k, n);
    if (c->scale) value *= group_at(c, &s->scale, k, n);
    row[k] = (float)value;
  }
}

/* A row in codes, and its scales. */
static void encode_row(const source *s, const float *row, uint8_t *codes, uint16_t *scales) {
  const gpu_constant *c = s->c;
  lp_dtype dtype = c->codes == LP_I8 ? LP_I8 : LP_U4;
  for (int64_t k = 0; k < c->k; k += LP_WEIGHT_GROUP) {
    int64_t count = c->k - k < LP_WEIGHT_GROUP ? c->k - k : LP_WEIGHT_GROUP;
    scales[k / LP_WEIGHT_GROUP] =
        lp_f32_to_f16(lp_quantise(row + k, count, 1, s->squares ? s->squares + k : NULL, dtype, LP_F16, codes + k));
  }
  if (dtype == LP_I8) return;
  for (int64_t k = 0; k < c->k; k++) {
    uint8_t code = codes[k];
    lp_packed_set(codes, LP_U4, k, code);
  }
}

/* A row of the model's codes as they are, offset so that none is negative, and a word for each group. The scale of a
 * group of floats with a NaN is one, as in the processor's code. */
static void keep_row(const source *s, int64_t n, uint8_t *codes, uint32_t *words) {
  const gpu_constant *c = s->c;
  const lp_dtype own = s->w.type.dtype;
  const bool floats = own == LP_F8E4M3FN;
  const int offset = own == LP_I8 ? 128 : own == LP_I4 || own == LP_I2 ? 8 : 0;
  for (int64_t k = 0; k < c->k; k++) {
    const int64_t at = c->transpose ? n * c->k_stored + k : k * c->n + n;
    const uint8_t code = floats ? ((const uint8_t *)s->w.data)[at] : (uint8_t)(lp_tensor_i64(&s->w, at) + offset);
    float scale = (float)group_at(c, &s->scale, k, n);
    uint32_t *word = &words[k / c->kept];
    if (c->codes == LP_I4)
      lp_packed_set(codes, LP_U4, k, code);
    else
      codes[k] = code;
    if (floats && (code & 0x7f) == 0x7f) scale = NAN;
    if (k % c->kept == 0 || isnan(scale)) memcpy(word, &scale, sizeof scale);
    if (floats || k % c->kept != 0) continue;
    *word = (*word + 0x7f + (*word >> 8 & 1)) & ~255u; /* the nearest; of two, the even one */
    *word |= (uint32_t)((c->zero ? (int)group_at(c, &s->zero, k, n) : 0) + offset) & 255;
  }
}

/* The number of elements of a row as it is stored. */
static int64_t row_elements(const gpu_constant *c) {
  return c->form == GPU_FORM_SCALE ? c->stored.dim[1] : c->k;
}

static size_t row_bytes(const gpu_constant *c) {
  return (size_t)(row_elements(c) * lp_dtype_bits(c->stored.dtype) / 8);
}

/* `scratch` holds a row, its codes and its scales. */
static void make_row(const void *user, int64_t n, void *scratch, void *out) {
  const source *s = user;
  const gpu_constant *c = s->c;
  float *row = scratch;
  uint16_t *scales = (uint16_t *)(row + c->k);
  uint8_t *codes = (uint8_t *)(scales + c->k);
  if (c->kept > 0) {
    keep_row(s, n, codes, (uint32_t *)scratch);
    memcpy(out, c->form == GPU_FORM_SCALE ? scratch : codes, row_bytes(c));
    return;
  }
  read_row(s, n, row);
  if (c->stored.dtype == LP_F32) {
    memcpy(out, row, row_bytes(c));
  } else if (c->form == GPU_FORM_SCALE) {
    encode_row(s, row, codes, scales);
    memcpy(out, scales, row_bytes(c));
  } else if (c->stored.dtype == LP_I8 || c->stored.dtype == LP_U4) {
    encode_row(s, row, codes, scales);
    memcpy(out, codes, row_bytes(c));
  } else {
    for (int64_t k = 0; k < c->k; k++)
      ((uint16_t *)out)[k] = c->stored.dtype == LP_F16 ? lp_f32_to_f16(row[k]) : lp_f32_to_bf16(row[k]);
  }
}

static lp_status write_matrix(lp_module *module, lp_writer *writer, const gpu_constant *c, lp_diag *diag) {
  source s = {.c = c, .squares = lp_constant_squares(module, c->value, c->k)};
  if (c->transpose && c->k == c->k_stored) LP_TRY(lp_block_rows_open(module, c->value, &s.blocks, diag));
  if (!s.blocks.form) LP_TRY(lp_constant_data(module, c->value, &s.w, diag));
  if (c->scale) LP_TRY(lp_constant_data(module, c->scale, &s.scale, diag));
  if (c->zero) LP_TRY(lp_constant_data(module, c->zero, &s.zero, diag));
  const lp_units units = {.count = c->n,
                          .bytes = row_bytes(c),
                          .scratch = (sizeof(float) + sizeof(uint16_t) + 1) * (size_t)c->k + 1,
                          .make = make_row,
                          .user = &s};
  lp_put_units(writer, &units);
  return LP_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static lp_status put_constant(lp_module *module, lp_writer *writer, const lp_stored_constant *stored, lp_diag *diag) {
  const gpu_constant *c = (const gpu_constant *)stored;
  if (c->form == GPU_FORM_MATRIX || c->form == GPU_FORM_SCALE) return write_matrix(module, writer, c, diag);
  lp_tensor tensor;
  LP_TRY(lp_constant_data(module, c->value, &tensor, diag));
  if (c->form == GPU_FORM_F32 && lp_dtype_is_float(c->value->type.dtype))
    lp_put_floats(writer, &tensor, stored->bytes / 4);
  else
    lp_writer_put(writer, tensor.data, (size_t)stored->bytes);
  return LP_OK;
}

static lp_status write_constant(void *user, lp_writer *writer, const lp_stored_constant *stored, lp_diag *diag) {
  lp_status status = put_constant(user, writer, stored, diag);
  lp_shards_release(user);
  return status;
}

lp_status gpu_weights_write(const lp_constants *constants, lp_module *module, lp_writer *writer, lp_diag *diag) {
  return lp_constants_write(constants, writer, write_constant, module, diag);
}
