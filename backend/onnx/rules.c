/* The table of the operators that ONNX can express. */
#include "backend/onnx/rules.h"

static const struct {
  lp_kind kind;
  onnx_rule *rule;
} rules[] = {
    {LP_OP_LINEAR, onnx_lower_linear},       {LP_OP_MATMUL, onnx_lower_matmul},
    {LP_OP_QUANTIZE, onnx_lower_quantize},   {LP_OP_DEQUANTIZE, onnx_lower_dequantize},
    {LP_OP_ATTENTION, onnx_lower_attention}, {LP_OP_KV_APPEND, onnx_lower_kv_append},
    {LP_OP_ROTARY, onnx_lower_rotary},       {LP_OP_NORM, onnx_lower_norm},
    {LP_OP_ADD_NORM, onnx_lower_add_norm},   {LP_OP_MAP, onnx_lower_map},
    {LP_OP_FUSED, onnx_lower_fused},         {LP_OP_SOFTMAX, onnx_lower_softmax},
    {LP_OP_REDUCE, onnx_lower_reduce},       {LP_OP_ARGMAX, onnx_lower_argmax},
    {LP_OP_TOPK, onnx_lower_topk},           {LP_OP_CUMSUM, onnx_lower_cumsum},
    {LP_OP_GATHER, onnx_lower_gather},       {LP_OP_GATHER_ELEMENTS, onnx_lower_gather_elements},
    {LP_OP_CONCAT, onnx_lower_concat},       {LP_OP_SLICE, onnx_lower_slice},
    {LP_OP_TRANSPOSE, onnx_lower_transpose}, {LP_OP_RESHAPE, onnx_lower_reshape},
    {LP_OP_EXPAND, onnx_lower_expand},       {LP_OP_PAD, onnx_lower_pad},
    {LP_OP_WINDOWS, onnx_lower_windows},     {LP_OP_IOTA, onnx_lower_iota},
    {LP_OP_DIMS, onnx_lower_dims},           {LP_OP_FILL, onnx_lower_fill},
};

onnx_rule *onnx_rule_find(lp_kind kind) {
  for (size_t i = 0; i < LP_COUNT(rules); i++)
    if (rules[i].kind == kind) return rules[i].rule;
  return NULL;
}
