/* Writes weights.safetensors: every constant in the form its kernels read, in order of offset. Weights are mapped and
 * pass through one row or slice, so the model never is in memory. */
#include "backend/gpu/gpu_internal.h"
#include "base/file.h"
#include "base/map.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_ELEMENTS = 1 << 16 };

static int by_offset(const void *a, const void *b) {
  const gpu_constant *const *x = a, *const *y = b;
  if ((*x)->offset != (*y)->offset) return (*x)->offset < (*y)->offset ? -1 : 1;
  return (*x)->bytes<(*y)->bytes ? -1 : (*x)->bytes>(*y)->bytes; /* an empty one first */
}

static lp_status constant_data(const gpu_plan *plan, const lp_value *value, lp_tensor *out) {
  int64_t numel;
  size_t bits;
  LP_TRY(lp_weight_data(plan->module, value, out, plan->diag));
  if (!lp_type_static_numel(value->type, &numel) ||
      !lp_size_mul((size_t)numel, (size_t)lp_dtype_bits(value->type.dtype), &bits) || out->bytes < (bits + 7) / 8)
    return lp_error(plan->diag, value->def->loc, "constant has %zu bytes, fewer than its shape wants", out->bytes);
  return LP_OK;
}

static void put_floats(lp_writer *writer, const lp_tensor *tensor, int64_t count) {
  float *slice = lp_alloc(sizeof *slice * SLICE_ELEMENTS);
  for (int64_t i = 0; i < count;) {
    int64_t n = 0;
    for (; n < SLICE_ELEMENTS && i < count; n++, i++)
      slice[n] = (float)lp_tensor_f64(tensor, i);
    lp_writer_put(writer, slice, sizeof *slice * (size_t)n);
  }
  free(slice);
}

/* ---- matrices ------------------------------------------------------------------------------------------------------- */

/* What a row is made from: the weight, and the scales and zero points of one that the model brings in integers. */
typedef struct {
  const gpu_constant *c;
  lp_tensor w, scale, zero;
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
  for (int64_t k = 0; k < c->k; k++) {
    double value = lp_tensor_f64(&s->w, c->transpose ? n * c->k_stored + k : k * c->n + n);
    if (c->zero) value -= group_at(c, &s->zero, k, n);
    if (c->scale) value *= group_at(c, &s->scale, k, n);
    row[k] = (float)value;
  }
}

/* A row in codes, and its scales. */
static void encode_row(const gpu_constant *c, const float *row, uint8_t *codes, uint16_t *scales) {
  lp_dtype dtype = c->codes == LP_I8 ? LP_I8 : LP_U4;
  for (int64_t k = 0; k < c->k; k += LP_WEIGHT_GROUP) {
    int64_t count = c->k - k < LP_WEIGHT_GROUP ? c->k - k : LP_WEIGHT_GROUP;
    scales[k / LP_WEIGHT_GROUP] = lp_f32_to_f16(lp_quantise(row + k, count, 1, dtype, LP_F16, codes + k));
  }
  if (dtype == LP_I8) return;
  for (int64_t k = 0; k < c->k; k++) {
    uint8_t code = codes[k];
    lp_packed_set(codes, LP_U4, k, code);
  }
}

static void put_row(lp_writer *writer, const gpu_constant *c, const float *row, uint8_t *codes, uint16_t *scales) {
  if (c->store == LP_F32) {
    lp_writer_put(writer, row, sizeof *row * (size_t)c->k);
  } else if (c->form == GPU_FORM_SCALE) {
    encode_row(c, row, codes, scales);
    lp_writer_put(writer, scales, sizeof *scales * (size_t)c->dim[1]);
  } else if (c->store == LP_I8 || c->store == LP_U4) {
    encode_row(c, row, codes, scales);
    lp_writer_put(writer, codes, (size_t)(c->k * lp_dtype_bits(c->store) / 8));
  } else {
    for (int64_t k = 0; k < c->k; k++)
      scales[k] = c->store == LP_F16 ? lp_f32_to_f16(row[k]) : lp_f32_to_bf16(row[k]);
    lp_writer_put(writer, scales, sizeof *scales * (size_t)c->k);
  }
}

static lp_status write_matrix(const gpu_plan *plan, lp_writer *writer, const gpu_constant *c) {
  source s = {.c = c};
  LP_TRY(constant_data(plan, c->value, &s.w));
  if (c->scale) LP_TRY(constant_data(plan, c->scale, &s.scale));
  if (c->zero) LP_TRY(constant_data(plan, c->zero, &s.zero));
  float *row = lp_alloc(sizeof *row * (size_t)(c->k + 1));
  uint8_t *codes = lp_alloc((size_t)c->k + 1);
  uint16_t *scales = lp_alloc(sizeof *scales * (size_t)(c->k + 1));
  for (int64_t n = 0; n < c->n; n++) {
    read_row(&s, n, row);
    put_row(writer, c, row, codes, scales);
  }
  free(row);
  free(codes);
  free(scales);
  return LP_OK;
}

/* ---- the file ------------------------------------------------------------------------------------------------------- */

static lp_status write_constant(const gpu_plan *plan, lp_writer *writer, const gpu_constant *c) {
  if (c->form == GPU_FORM_MATRIX || c->form == GPU_FORM_SCALE) return write_matrix(plan, writer, c);
  lp_tensor tensor;
  LP_TRY(constant_data(plan, c->value, &tensor));
  if (c->form == GPU_FORM_F32 && lp_dtype_is_float(c->value->type.dtype))
    put_floats(writer, &tensor, c->bytes / 4);
  else
    lp_writer_put(writer, tensor.data, (size_t)c->bytes);
  return LP_OK;
}

lp_status gpu_weights_write(const gpu_plan *plan, const char *path, lp_diag *diag) {
  size_t count = lp_map_count(plan->constants);
  const gpu_constant **list = LP_NEW_ARRAY(plan->arena, const gpu_constant *, count + 1);
  lp_safetensor *entry = LP_NEW_ARRAY(plan->arena, lp_safetensor, count + 1);
  for (size_t i = 0; i < count; i++)
    list[i] = lp_map_value_at(plan->constants, i);
  qsort(list, count, sizeof *list, by_offset);
  for (size_t i = 0; i < count; i++)
    entry[i] =
        (lp_safetensor){list[i]->name, list[i]->store, list[i]->rank, list[i]->dim, list[i]->offset, list[i]->bytes};
  lp_writer *writer;
  LP_TRY(lp_writer_open(path, &writer, diag));
  lp_safetensors_header(writer, entry, count);
  for (size_t i = 0; i < count; i++) {
    lp_status status = write_constant(plan, writer, list[i]);
    if (status != LP_OK) {
      lp_writer_abandon(writer);
      return status;
    }
  }
  return lp_writer_commit(writer, diag);
}
