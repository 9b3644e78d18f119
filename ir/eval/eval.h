/* The reference interpreter: what its files share.
 *
 * eval.c      entry points and the table       array.c    arrays: elements, results, broadcasting
 * function.c  elementwise functions            map.c      elementwise operators
 * math.c      products, softmax, norms         linear.c   linear attention
 * model.c     attention, rotary, caches        reduce.c   along an axis
 * quant.c     quantising and back              conv.c     convolutions and windows
 * scatter.c   scattered updates                topk.c     the greatest elements
 * move.c      operators that move elements     shape.c    other shapes, repeated, padded, made */
#pragma once

#include "ir/ir.h"

typedef struct {
  lp_module *m;
  const lp_op *op;
  const lp_array *const *in; /* [op->in_count] */
  lp_array *out;             /* [op->out_count] */
  const int64_t *sym;
  lp_arena *arena;
  lp_diag *diag;
} lp_eval;

/* Runs when the operands that ops.def asks for are there; where it asks for any number, the rule checks them. */
typedef lp_status lp_eval_rule(const lp_eval *e);

LP_MUST_USE lp_status lp_eval_fail(const lp_eval *e, const char *format, ...) LP_PRINTF(2, 3);

/* ---- arrays ---- */

int64_t lp_array_i64(const lp_array *array, int64_t index);
double lp_array_f64(const lp_array *array, int64_t index);
/* Writes a float of 8 or 4 bits. `saturate` is the attribute of ONNX's Cast and QuantizeLinear; lp_array_set_f64 takes
 * it as 1. */
void lp_array_set_mini(lp_array *array, int64_t index, double value, bool saturate);
void lp_array_copy(lp_array *to, int64_t at, const lp_array *from, int64_t index); /* both of one dtype */

/* Operand `index`; NULL when absent. */
const lp_array *lp_eval_in(const lp_eval *e, int32_t index);
LP_MUST_USE lp_status lp_eval_need(const lp_eval *e, int32_t count);
/* Allocates result `index`. An operator without that result gets scratch of the same shape. */
LP_MUST_USE lp_status lp_eval_out(const lp_eval *e, int32_t index, lp_dtype dtype, int32_t rank, const int64_t *dim,
                                  lp_array **out);
/* Allocates result 0 with the shape of its type at the symbols' values. */
LP_MUST_USE lp_status lp_eval_out_typed(const lp_eval *e, int32_t index, lp_array **out);
/* Fails unless sequences begin: a cache that an operator replaces is not bound. */
LP_MUST_USE lp_status lp_eval_begins(const lp_eval *e);
/* The elements as doubles. */
double *lp_eval_doubles(const lp_eval *e, const lp_array *array);
LP_MUST_USE lp_status lp_eval_i64s(const lp_eval *e, int32_t index, int64_t *values, int32_t room, int32_t *count);
LP_MUST_USE lp_status lp_eval_axis(const lp_eval *e, int64_t axis, int32_t rank, int32_t *out);

/* Reads element `at` of an index tensor into an axis of `size` elements, and makes it non-negative. */
LP_MUST_USE lp_status lp_eval_index(const lp_eval *e, const lp_array *index, int64_t at, int64_t size, int64_t *out);

/* Dequantises operand `index` of op.linear by its scale and zero point, which are the operands from `scales` on
 * (quant.c). */
LP_MUST_USE lp_status lp_eval_weight(const lp_eval *e, int32_t index, int32_t scales, int64_t k, lp_array *out);

/* Numpy broadcasting of dims into dims. */
LP_MUST_USE lp_status lp_eval_broadcast(const lp_eval *e, int32_t *rank, int64_t *dim, int32_t with_rank,
                                        const int64_t *with);
/* The flat element of `array` that broadcasts to flat element `at` of a shape. */
int64_t lp_broadcast_index(const lp_array *array, int64_t at, int32_t rank, const int64_t *dim);
/* Splits the shape at an axis: the products of dim[0, axis), dim[axis] and dim[axis + 1, rank). */
void lp_array_split(const lp_array *array, int32_t axis, int64_t *outer, int64_t *size, int64_t *inner);

/* ---- rules ---- */

/* ONNX's operators that mean the same as ours */
#define eval_onnx_gather eval_op_GATHER
#define eval_onnx_gather_elements eval_op_GATHER_ELEMENTS
#define eval_onnx_transpose eval_op_TRANSPOSE
#define eval_onnx_concat eval_op_CONCAT
#define eval_onnx_quantize eval_op_QUANTIZE
#define eval_onnx_dequantize eval_op_DEQUANTIZE

/* conv.c */
lp_eval_rule eval_onnx_conv, eval_op_WINDOWS;
/* experts.c */
lp_eval_rule eval_onnx_experts, eval_op_EXPERTS;
/* linear.c */
lp_eval_rule eval_onnx_linear_attention, eval_op_LINEAR_ATTENTION, eval_op_CARRY_COLUMNS;
/* map.c */
lp_eval_rule eval_onnx_map, eval_onnx_variadic_map, eval_onnx_clip, eval_onnx_cast_like, eval_onnx_identity,
    eval_onnx_dropout, eval_op_MAP;
/* math.c */
lp_eval_rule eval_onnx_matmul, eval_op_MATMUL, eval_onnx_gemm, eval_op_LINEAR, eval_onnx_softmax, eval_onnx_hardmax,
    eval_op_SOFTMAX, eval_onnx_norm, eval_op_NORM, eval_op_ADD_NORM;
/* model.c */
lp_eval_rule eval_onnx_attention, eval_op_ATTENTION, eval_onnx_rotary, eval_op_ROTARY, eval_op_KV_APPEND,
    eval_op_COMM_SEND, eval_op_COMM_RECV, eval_op_COMM_KV_MOVE, eval_op_COMM_ALL_GATHER, eval_onnx_decomposed;
/* move.c */
lp_eval_rule eval_op_GATHER, eval_onnx_gather_nd, eval_onnx_nonzero, eval_op_GATHER_ELEMENTS, eval_onnx_slice,
    eval_op_SLICE, eval_op_TRANSPOSE, eval_op_CONCAT, eval_onnx_split;
/* quant.c */
lp_eval_rule eval_op_QUANTIZE, eval_op_DEQUANTIZE;
/* reduce.c */
lp_eval_rule eval_onnx_reduce, eval_op_REDUCE, eval_onnx_argmax, eval_op_ARGMAX, eval_onnx_cumsum, eval_op_CUMSUM,
    eval_onnx_trilu;
/* scatter.c */
lp_eval_rule eval_onnx_scatter, eval_op_SCATTER_ELEMENTS, eval_op_SCATTER_ND;
/* shape.c */
lp_eval_rule eval_onnx_reshape, eval_op_RESHAPE, eval_onnx_expand, eval_op_EXPAND, eval_onnx_tile, eval_onnx_pad,
    eval_op_PAD, eval_onnx_dims, eval_onnx_constant, eval_onnx_fill, eval_op_FILL, eval_onnx_range, eval_op_IOTA,
    eval_op_DIMS;
/* topk.c */
lp_eval_rule eval_onnx_topk, eval_op_TOPK;

/* Computes an elementwise function of op.map, given by name, on one element. */
LP_MUST_USE lp_status lp_eval_function(const lp_eval *e, const char *fn, const lp_array *const *in, int32_t in_count,
                                       double alpha, double beta, lp_array *out);
double lp_eval_epilogue(const char *fn, double x);
