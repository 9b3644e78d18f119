/* The rules that express operators in ONNX, one for each kind; onnx/model.c has their table. */
#pragma once

#include "backend/onnx/graph.h"

/* One function of op.map in `dtype`; NULL with a diagnostic when ONNX has no operator for it (map.c). */
LP_MUST_USE lp_status onnx_function(onnx_graph *g, const lp_op *op, const char *fn, const onnx_name *in, int32_t count,
                                    lp_dtype dtype, onnx_name *out);

typedef lp_status onnx_rule(onnx_graph *g, const lp_op *op, onnx_name *out); /* out[op->out_count] */

onnx_rule onnx_lower_linear, onnx_lower_matmul, onnx_lower_norm, onnx_lower_add_norm, onnx_lower_softmax,
    onnx_lower_reduce, onnx_lower_argmax, onnx_lower_topk, onnx_lower_cumsum, onnx_lower_map, onnx_lower_fused,
    onnx_lower_quantize, onnx_lower_dequantize, onnx_lower_attention, onnx_lower_kv_append, onnx_lower_rotary,
    onnx_lower_gather, onnx_lower_gather_elements, onnx_lower_concat, onnx_lower_slice, onnx_lower_transpose,
    onnx_lower_reshape, onnx_lower_expand, onnx_lower_pad, onnx_lower_windows, onnx_lower_iota, onnx_lower_dims,
    onnx_lower_fill;
