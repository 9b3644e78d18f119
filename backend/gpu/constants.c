/* The constants of a side in the forms that kernels read, each once. Nothing here reads a weight's bytes. */
#include "backend/gpu/gpu_internal.h"
#include "base/map.h"

static void identity(const lp_value *value, lp_buf *key) {
  lp_tensor tensor;
  const lp_op *op = value->def;
  if (lp_value_constant(value, &tensor))
    lp_buf_printf(key, "data %" PRIx64 " %" PRIx64 " %zu", lp_hash_bytes(tensor.data, tensor.bytes, 1),
                  lp_hash_bytes(tensor.data, tensor.bytes, 2), tensor.bytes);
  else
    lp_buf_printf(key, "file %s %" PRId64 " %" PRId64, lp_op_str(op, "file", ""), lp_op_i64(op, "offset", 0),
                  lp_op_i64(op, "length", 0));
  lp_buf_printf(key, " %s", lp_dtype_name(value->type.dtype));
}

/* A matrix that is stored as the module has it is RAW: an embedding and a tied head share it. */
static void settle(gpu_constant *c) {
  if (c->form == GPU_FORM_MATRIX && c->transpose && c->k == c->k_stored && !c->scale &&
      c->store == c->value->type.dtype)
    c->form = GPU_FORM_RAW;
  if (c->form == GPU_FORM_F32 && c->value->type.dtype == LP_F32) c->form = GPU_FORM_RAW;
}

static void set_shape(gpu_constant *c) {
  if (c->form == GPU_FORM_MATRIX || c->form == GPU_FORM_SCALE) {
    c->rank = 2;
    c->dim[0] = c->n;
    c->dim[1] = c->form == GPU_FORM_MATRIX ? c->k : (c->k + LP_WEIGHT_GROUP - 1) / LP_WEIGHT_GROUP;
    return;
  }
  c->rank = c->value->type.rank;
  for (int32_t i = 0; i < c->rank; i++)
    if (!lp_type_static_dim(c->value->type, i, &c->dim[i])) c->dim[i] = 0;
}

static lp_dtype stored_dtype(const gpu_constant *c) {
  if (c->form == GPU_FORM_MATRIX) return c->store;
  if (c->form == GPU_FORM_SCALE) return LP_F16;
  return c->form == GPU_FORM_F32 && lp_dtype_is_float(c->value->type.dtype) ? LP_F32 : c->value->type.dtype;
}

static const char *unique_name(gpu_plan *plan, const lp_op *op, const gpu_constant *c) {
  static const char *const suffix[] = {"", ".f32", ".matrix", ".scale"};
  const char *base = c->value->name ? c->value->name : lp_op_str(op, "name", "constant");
  const char *name = gpu_format(plan, "%s%s", base, suffix[c->form]);
  for (int n = 2; lp_map_has(plan->names, name); n++)
    name = gpu_format(plan, "%s%s.%d", base, suffix[c->form], n);
  lp_map_put(plan->names, name, NULL);
  return name;
}

static const gpu_constant *add(gpu_builder *b, gpu_constant *c) {
  gpu_plan *plan = b->plan;
  lp_buf key = {0};
  settle(c);
  set_shape(c);
  c->store = stored_dtype(c);
  identity(c->value, &key);
  if (c->scale) identity(c->scale, &key);
  if (c->zero) identity(c->zero, &key);
  lp_buf_printf(&key, " %d %d %s %d %" PRId64 " %" PRId64, (int)c->form, (int)c->codes, lp_dtype_name(c->store),
                c->transpose, c->group, c->k);
  for (int32_t i = 0; i < c->rank; i++)
    lp_buf_printf(&key, " %" PRId64, c->dim[i]);
  gpu_constant *known = lp_map_get(plan->constants, lp_buf_text(&key));
  if (!known) {
    int64_t bits = lp_dtype_bits(c->store);
    for (int32_t i = 0; i < c->rank; i++)
      if (!lp_i64_mul(bits, c->dim[i], &bits)) bits = 0;
    c->bytes = (bits + 7) / 8;
    c->name = unique_name(plan, b->op, c);
    known = lp_arena_copy(plan->arena, c, sizeof *c);
    lp_map_put(plan->constants, lp_buf_text(&key), known);
  }
  lp_buf_free(&key);
  return known;
}

const gpu_constant *gpu_constant_get(gpu_builder *b, lp_value *value, gpu_form form) {
  gpu_constant c = {.value = value, .form = form};
  return add(b, &c);
}

/* What a linear's floats are stored as: f64 becomes f32, and so do the integers of a model with scales of its own. */
static lp_dtype weight_store(const lp_op *op, const lp_value *w, bool scaled, int64_t k) {
  lp_storage storage = lp_storage_of(w->type.dtype);
  if (scaled) return LP_F32;
  if (!lp_storage_find(lp_op_str(op, "weight_dtype", NULL), &storage)) storage.dtype = w->type.dtype;
  if (!lp_dtype_is_float(storage.dtype) && k % LP_WEIGHT_GROUP != 0) return LP_F16; /* groups fill rows */
  return storage.dtype == LP_F64 ? LP_F32 : storage.dtype;
}

void gpu_constant_weight(gpu_builder *b, bool gate, const gpu_constant **matrix, const gpu_constant **scale) {
  const lp_op *op = b->op;
  lp_value *w = lp_value_base(lp_op_in(op, gate ? 4 : 1));
  int32_t scales = gate ? 7 : 5;
  gpu_constant c = {.value = w, .form = GPU_FORM_MATRIX, .transpose = lp_op_bool(op, "transpose_b", false)};
  c.scale = lp_op_in(op, scales) ? lp_value_base(lp_op_in(op, scales)) : NULL;
  c.zero = lp_op_in(op, scales + 1) ? lp_value_base(lp_op_in(op, scales + 1)) : NULL;
  c.group = lp_op_i64(op, "group", 0);
  lp_type_static_dim(lp_op_in(op, 0)->type, -1, &c.k);
  lp_type_static_dim(w->type, c.transpose ? 0 : 1, &c.n);
  lp_type_static_dim(w->type, c.transpose ? 1 : 0, &c.k_stored);
  c.store = weight_store(op, w, c.scale != NULL, c.k);
  c.codes = c.store;
  bool coded = !lp_dtype_is_float(c.store);
  gpu_constant of_scale = c;
  of_scale.form = GPU_FORM_SCALE;
  *matrix = add(b, &c);
  *scale = coded ? add(b, &of_scale) : NULL;
}

/* safetensors allows no gaps, so alignment comes from order: multiples of 256 bytes first, then of 16, then by element. */
static int placing_class(const gpu_constant *c) {
  if (c->bytes % 256 == 0) return 0;
  if (c->bytes % 16 == 0) return 1;
  int32_t bits = lp_dtype_bits(c->store);
  return bits >= 64 ? 2 : bits >= 32 ? 3 : bits >= 16 ? 4 : 5;
}

void gpu_plan_place_constants(gpu_plan *plan) {
  for (int class = 0; class <= 5; class ++)
    for (size_t i = 0; i < lp_map_count(plan->constants); i++) {
      gpu_constant *c = lp_map_value_at(plan->constants, i);
      if (placing_class(c) != class) continue;
      c->offset = plan->weight_bytes;
      plan->weight_bytes += c->bytes;
    }
}
