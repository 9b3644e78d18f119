/* TensorProto to operator: a constant that holds its data, or a weight that refers to it. */
#include "frontend/onnx/tensor.h"
#include "frontend/onnx/importer.h"

lp_status lp_tensor_check(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                          lp_tensor_data *out) {
  LP_TRY(lp_tensor_size(im, tensor, loc, name, out));
  if (tensor->has_data_location && tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return lp_external_check(im, tensor, loc, name, out);
  return lp_tensor_own_data(im, tensor, loc, name, out);
}

lp_value *lp_import_constant(lp_importer *im, lp_loc loc, lp_dtype dtype, int32_t rank, const int64_t *dim,
                             const void *data, size_t bytes) {
  lp_tensor tensor = {.type = lp_type_static(im->module, dtype, rank, dim), .bytes = bytes};
  tensor.data = bytes > 0 ? lp_arena_copy(im->module->arena, data, bytes) : lp_arena_alloc(im->module->arena, 1);
  lp_op *op = lp_constant_create(im->module, loc, tensor);
  lp_op_append(im->block, op);
  im->node_count++;
  return lp_op_out(op, 0);
}

lp_status lp_import_tensor(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                           lp_value **out) {
  lp_tensor_data t;
  LP_TRY(lp_tensor_check(im, tensor, loc, name, &t));
  if (t.bytes == 0 || (t.data && (lp_tensor_is_small(&t) || !t.file))) {
    *out = lp_import_constant(im, loc, t.dtype, t.rank, t.dim, t.data, (size_t)t.bytes);
  } else {
    lp_type type = lp_type_static(im->module, t.dtype, t.rank, t.dim);
    const char *file = lp_arena_strdup(im->module->arena, t.file);
    lp_op *op = lp_weight_create(im->module, loc, type, file, t.offset, t.bytes);
    lp_op_append(im->block, op);
    im->node_count++;
    *out = lp_op_out(op, 0);
  }
  (*out)->name = lp_arena_strdup(im->module->arena, name);
  return LP_OK;
}
