/* Refs: the memory that a call reads and writes, as buffers, KV caches and constants. */
#include "backend/gpu/builder.h"

#include "backend/rows.h"
#include "backend/values.h"

static int32_t add_ref(gpu_builder *b, gpu_ref ref) {
  lp_vec_push(&b->refs, ref);
  return (int32_t)b->refs.count - 1;
}

static int32_t fail(gpu_builder *b, const char *what) {
  if (b->status == LP_OK)
    b->status = lp_error(b->list->diag, b->op->loc, "%s of '%s' has no buffer on this side", what,
                         lp_op_info_get(b->op->kind)->name);
  return -1;
}

static int32_t ref_buffer(gpu_builder *b, const lp_value *value, const char *what) {
  int64_t buffer = lp_value_buffer(value, b->list->programs.side);
  if (buffer < 0 || buffer >= b->program->base.buffer_count) return fail(b, what);
  gpu_ref ref = {.place = GPU_AT_BUFFER, .index = buffer};
  ref.rows = lp_type_rows(b->list->module, value->type, &ref.row_bytes);
  if (ref.rows == LP_ROWS_NONE) ref.row_bytes = 0;
  return add_ref(b, ref);
}

int32_t gpu_ref_constant(gpu_builder *b, const gpu_constant *constant) {
  if (!constant) return -1;
  return add_ref(b, (gpu_ref){.place = GPU_AT_WEIGHT, .constant = constant});
}

int32_t gpu_ref_state(gpu_builder *b, int64_t state) {
  return add_ref(b, (gpu_ref){.place = GPU_AT_STATE, .index = state});
}

int32_t gpu_ref_value(gpu_builder *b, lp_value *value, gpu_form form) {
  if (!value) return -1;
  value = lp_value_base(value);
  const lp_op *cache = lp_value_cache(value);
  if (cache) return gpu_ref_state(b, lp_op_i64(cache, "state", 0));
  if (!lp_value_is_constant(value)) return ref_buffer(b, value, "an operand");
  return gpu_ref_constant(b, gpu_constant_get(&b->list->constants, b->op, value, form));
}

int32_t gpu_ref_in(gpu_builder *b, int32_t operand, gpu_form form) {
  return gpu_ref_value(b, lp_op_in(b->op, operand), form);
}

int32_t gpu_ref_out(gpu_builder *b, int32_t result) {
  return ref_buffer(b, b->op->out[result], "a result");
}

void gpu_add_scratch(gpu_builder *b, const lp_poly *bytes, const lp_poly *few, int64_t most) {
  lp_vec_push(&b->program->scratch, ((gpu_scratch){bytes, few, most, false}));
  b->program->narrowed.value = b->program->rounded.value = NULL;
}
