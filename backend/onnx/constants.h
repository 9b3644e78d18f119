/* Constants and operands by name. Small constants lie in the model, others in the data file of the side, each stored
 * once. */
#pragma once

#include "backend/onnx/graph.h"

typedef struct {
  int64_t offset, bytes;
} onnx_stored;

/* Begins a constant of the data file, known by `key` from now on; the caller writes its bytes before
 * onnx_stored_end. */
onnx_stored *onnx_stored_begin(onnx_graph *g, const char *key);
void onnx_stored_end(const onnx_graph *g, onnx_stored *stored);
/* Says that the tensor's data lies in the data file. */
void onnx_tensor_set_external(onnx_graph *g, Onnx__TensorProto *tensor, const onnx_stored *stored);
const char *onnx_constant_name(const lp_value *value);

/* Returns the operand as it is, or with floats of another width cast to `dtype`; NULL when it is absent. */
LP_MUST_USE lp_status onnx_operand(onnx_graph *g, int32_t index, onnx_name *out);
LP_MUST_USE lp_status onnx_operand_as(onnx_graph *g, int32_t index, lp_dtype dtype, onnx_name *out);
LP_MUST_USE lp_status onnx_value(onnx_graph *g, const lp_value *value, onnx_name *out);

/* Returns the weight of an op.linear, or with `gate` that of its gate, as the float tensor that MatMul takes, [k][n]
 * (weights.c). */
LP_MUST_USE lp_status onnx_weight(onnx_graph *g, const lp_op *op, bool gate, onnx_name *out);
/* The table of an op.gather that has a `weight_dtype`, with the numbers that it stands for. */
LP_MUST_USE lp_status onnx_table(onnx_graph *g, const lp_op *op, onnx_name *out);
