/* Constants in the forms that kernels read: finds the type in which each is stored, and the operands that share one.
 * Nothing here reads a weight. */
#include "backend/gpu/constants.h"

#include "backend/constants.h"
#include "backend/values.h"
#include "base/map.h"

/* A matrix stored as in the module is RAW, so that an embedding and a tied head share it. */
static void settle(gpu_constant *c) {
  if (c->form == GPU_FORM_MATRIX && c->transpose && c->k == c->k_stored && !c->scale &&
      c->stored.dtype == c->value->type.dtype)
    *c = (gpu_constant){.value = c->value, .form = GPU_FORM_RAW};
  if (c->form == GPU_FORM_F32 && c->value->type.dtype == LP_F32) c->form = GPU_FORM_RAW;
}

static void set_shape(gpu_constant *c) {
  if (c->form == GPU_FORM_MATRIX || c->form == GPU_FORM_SCALE) {
    c->stored.rank = 2;
    c->stored.dim[0] = c->n;
    c->stored.dim[1] = c->form == GPU_FORM_MATRIX ? c->k : c->k / (c->kept ? c->kept : LP_WEIGHT_GROUP);
    return;
  }
  c->stored.rank = c->value->type.rank;
  lp_static_shape(c->value->type, c->stored.dim);
}

static lp_dtype stored_dtype(const gpu_constant *c) {
  if (c->form == GPU_FORM_MATRIX) return c->stored.dtype;
  if (c->form == GPU_FORM_SCALE) return c->kept ? LP_U32 : LP_F16;
  return c->form == GPU_FORM_F32 && lp_dtype_is_float(c->value->type.dtype) ? LP_F32 : c->value->type.dtype;
}

static const char *unique_name(lp_constants *constants, const lp_op *op, const gpu_constant *c) {
  static const char *const suffix[] = {"", ".f32", ".matrix", ".scale"};
  return lp_constants_name(constants, c->value->name ? c->value->name : lp_op_str(op, "name", "constant"),
                           suffix[c->form]);
}

static const gpu_constant *add(lp_constants *constants, const lp_op *op, gpu_constant *c) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  settle(c);
  set_shape(c);
  c->stored.dtype = stored_dtype(c);
  lp_constant_identity(c->value, &key);
  if (c->scale) lp_constant_identity(c->scale, &key);
  if (c->zero) lp_constant_identity(c->zero, &key);
  lp_buf_printf(&key, " %d %d %s %d %" PRId64 " %" PRId64 " %" PRId64, (int)c->form, (int)c->codes,
                lp_dtype_name(c->stored.dtype), c->transpose, c->group, c->k, c->kept);
  for (int32_t i = 0; i < c->stored.rank; i++)
    lp_buf_printf(&key, " %" PRId64, c->stored.dim[i]);
  gpu_constant *known = lp_map_get(constants->known, lp_buf_text(&key));
  if (!known) {
    int64_t bits = lp_dtype_bits(c->stored.dtype);
    for (int32_t i = 0; i < c->stored.rank; i++)
      if (!lp_i64_mul(bits, c->stored.dim[i], &bits)) bits = 0;
    c->stored.bytes = (bits + 7) / 8;
    c->stored.name = unique_name(constants, op, c);
    known = lp_arena_copy(constants->arena, c, sizeof *c);
    lp_map_put(constants->known, lp_buf_text(&key), known);
  }
  return known;
}

const gpu_constant *gpu_constant_get(lp_constants *constants, const lp_op *op, lp_value *value, gpu_form form) {
  gpu_constant c = {.value = value, .form = form};
  return add(constants, op, &c);
}

void gpu_constant_weight(lp_constants *constants, const lp_op *op, bool gate, const gpu_constant **matrix,
                         const gpu_constant **scale) {
  lp_value *w = lp_value_base(lp_op_in(op, gate ? 4 : 1));
  const lp_storage storage = lp_storage_on_gpu(op, gate ? 4 : 1, lp_op_str(op, "weight_dtype", NULL));
  int32_t scales = gate ? 7 : 5;
  gpu_constant c = {.value = w, .form = GPU_FORM_MATRIX, .transpose = lp_op_bool(op, "transpose_b", false)};
  c.scale = lp_op_in(op, scales) ? lp_value_base(lp_op_in(op, scales)) : NULL;
  c.zero = lp_op_in(op, scales + 1) ? lp_value_base(lp_op_in(op, scales + 1)) : NULL;
  c.group = lp_op_i64(op, "group", 0);
  lp_type_static_dim(lp_op_in(op, 0)->type, -1, &c.k);
  lp_type_static_dim(w->type, c.transpose ? 0 : 1, &c.n);
  lp_type_static_dim(w->type, c.transpose ? 1 : 0, &c.k_stored);
  c.stored.dtype = c.codes = storage.dtype;
  c.kept = storage.group;
  gpu_constant of_scale = c;
  of_scale.form = GPU_FORM_SCALE;
  *matrix = add(constants, op, &c);
  *scale = lp_dtype_is_code(storage.dtype) ? add(constants, op, &of_scale) : NULL;
}

/* Multiples of 256 bytes first, then of 16, then by element size from the largest. */
static int placing_class(const lp_stored_constant *stored) {
  if (stored->bytes % 256 == 0) return 0;
  if (stored->bytes % 16 == 0) return 1;
  int32_t bits = lp_dtype_bits(stored->dtype);
  return bits >= 64 ? 2 : bits >= 32 ? 3 : bits >= 16 ? 4 : 5;
}

void gpu_constants_place(lp_constants *constants) {
  lp_constants_place(constants, placing_class, 6);
}
