/* Constants and operands by name. Small constants lie in the model, others in the data file of the side, each stored
 * once. */
#include "backend/onnx/constants.h"

#include "backend/constants.h"
#include "base/file.h"
#include "base/map.h"

enum { INLINE_BYTES = 1024, ALIGNMENT = 64 };

/* ---- the data file ----------------------------------------------------------------------------------------------- */

onnx_stored *onnx_stored_begin(onnx_graph *g, const char *key) {
  static const char zeros[ALIGNMENT];
  uint64_t past = lp_writer_offset(g->store->writer) % ALIGNMENT;
  if (past) lp_writer_put(g->store->writer, zeros, ALIGNMENT - past);
  onnx_stored *stored = lp_alloc(sizeof *stored);
  stored->offset = (int64_t)lp_writer_offset(g->store->writer);
  lp_map_put(g->store->stored, key, stored);
  return stored;
}

void onnx_stored_end(const onnx_graph *g, onnx_stored *stored) {
  stored->bytes = (int64_t)lp_writer_offset(g->store->writer) - stored->offset;
}

static void add_entry(onnx_graph *g, Onnx__TensorProto *tensor, const char *key, const char *value) {
  Onnx__StringStringEntryProto *entry = LP_NEW(g->arena, Onnx__StringStringEntryProto);
  onnx__string_string_entry_proto__init(entry);
  entry->key = lp_arena_strdup(g->arena, key);
  entry->value = lp_arena_strdup(g->arena, value);
  tensor->external_data[tensor->n_external_data++] = entry;
}

void onnx_tensor_set_external(onnx_graph *g, Onnx__TensorProto *tensor, const onnx_stored *stored) {
  tensor->has_data_location = 1;
  tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  tensor->external_data = LP_NEW_ARRAY(g->arena, Onnx__StringStringEntryProto *, 3);
  add_entry(g, tensor, "location", g->store->file);
  add_entry(g, tensor, "offset", lp_arena_format(g->arena, "%" PRId64, stored->offset));
  add_entry(g, tensor, "length", lp_arena_format(g->arena, "%" PRId64, stored->bytes));
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

const char *onnx_constant_name(const lp_value *value) {
  return value->name ? value->name : "constant";
}

static lp_status constant(onnx_graph *g, const lp_value *value, onnx_name *out) {
  lp_tensor data;
  int64_t dim[LP_MAX_RANK];
  LP_TRY(lp_constant_data(g->module, value, &data, g->diag));
  lp_static_shape(value->type, dim);
  Onnx__TensorProto *tensor = onnx_tensor(g, value->type.dtype, value->type.rank, dim);
  if (data.bytes <= INLINE_BYTES) {
    onnx_tensor_set_data(g, tensor, data.data, data.bytes);
  } else {
    LP_OWNED(lp_buf_free) lp_buf key = {0};
    lp_constant_identity(value, &key);
    onnx_stored *stored = lp_map_get(g->store->stored, lp_buf_text(&key));
    if (!stored) {
      stored = onnx_stored_begin(g, lp_buf_text(&key));
      lp_writer_put(g->store->writer, data.data, data.bytes);
      onnx_stored_end(g, stored);
    }
    onnx_tensor_set_external(g, tensor, stored);
  }
  *out = onnx_initializer(g, tensor, onnx_constant_name(value));
  return LP_OK;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

lp_status onnx_value(onnx_graph *g, const lp_value *value, onnx_name *out) {
  *out = onnx_bound(g, value);
  if (*out) return LP_OK;
  if (!lp_value_is_constant(value))
    return lp_error(g->diag, g->op->loc, "an operand of '%s' is not on this side", lp_op_info_get(g->op->kind)->name);
  LP_TRY(constant(g, value, out));
  onnx_bind(g, value, *out);
  return LP_OK;
}

lp_status onnx_operand(onnx_graph *g, int32_t index, onnx_name *out) {
  const lp_value *value = lp_op_in(g->op, index);
  *out = NULL;
  return value ? onnx_value(g, value, out) : LP_OK;
}

lp_status onnx_operand_as(onnx_graph *g, int32_t index, lp_dtype dtype, onnx_name *out) {
  const lp_value *value = lp_op_in(g->op, index);
  LP_TRY(onnx_operand(g, index, out));
  if (*out && value->type.dtype != dtype) *out = onnx_cast(g, *out, dtype);
  return LP_OK;
}
