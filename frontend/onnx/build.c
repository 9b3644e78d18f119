/* Operators that the importer makes although the file has no node for them. */
#include "frontend/onnx/build.h"
#include "base/poly.h"
#include "frontend/onnx/importer.h"

bool lp_import_number(const lp_value *value, int64_t *out) {
  lp_tensor tensor;
  int64_t count;
  if (value->known) return value->known_count == 1 && lp_poly_is_const(value->known[0], out);
  if (!lp_value_constant(value, &tensor) || lp_dtype_is_float(tensor.type.dtype)) return false;
  if (!lp_type_static_numel(tensor.type, &count) || count != 1) return false;
  *out = lp_tensor_i64(&tensor, 0);
  return true;
}

lp_status lp_import_built(lp_importer *im, lp_op *op, lp_value **out) {
  lp_op_append(im->block, op);
  im->node_count++;
  *out = lp_op_out(op, 0);
  return lp_op_infer(im->module, op, im->diag);
}
