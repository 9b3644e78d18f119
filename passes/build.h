/* Builds operators in front of another one. decompose, recognise and lower are written with it. */
#pragma once

#include "base/poly.h"
#include "ir/ir.h"

/* New operators go before `before` and take `loc`, and the layer attributes of `before`. */
typedef struct {
  lp_module *module;
  lp_op *before;
  lp_loc loc;
  lp_diag *diag;
} lp_build;

lp_build lp_build_at(lp_module *module, lp_op *before, lp_diag *diag);

/* Makes an operator with one result of the given type; returns the operator. */
lp_op *lp_build_typed(lp_build *b, lp_kind kind, int32_t in_count, lp_value *const *in, lp_type type);
/* Makes an onnx.* operator and infers its result types by lp_op_infer; NULL after a diagnostic. */
lp_op *lp_build_onnx(lp_build *b, lp_kind kind, int32_t in_count, lp_value *const *in, int32_t out_count);
/* Casts x by onnx.Cast when its dtype differs. Returns NULL when x is NULL. */
lp_value *lp_build_cast(lp_build *b, lp_value *x, lp_dtype dtype);
/* Makes an onnx.* operator with one result and returns that result; NULL also when an operand is NULL. */
lp_value *lp_build_value(lp_build *b, lp_kind kind, int32_t in_count, lp_value *const *in);
/* Inserts an operator that the caller created, with its attributes set, and infers its types. */
LP_MUST_USE lp_status lp_build_place(lp_build *b, lp_op *op);

lp_value *lp_build_f32(lp_build *b, double value);                          /* scalar of f32 */
lp_value *lp_build_float(lp_build *b, lp_dtype dtype, double value);        /* a scalar; integers are truncated */
lp_value *lp_build_i64s(lp_build *b, const int64_t *values, int32_t count); /* vector of i64, with `known` */
lp_value *lp_build_constant(lp_build *b, lp_dtype dtype, int32_t rank, const int64_t *dim, const void *data);
/* lp_build_size makes a size as a scalar of i64, lp_build_sizes the dims of a type as a vector; both set `known`. */
lp_value *lp_build_size(lp_build *b, const lp_poly *size);
lp_value *lp_build_sizes(lp_build *b, lp_type type);
/* Makes a constant of the same elements in another shape; NULL when `value` is not a constant. */
lp_value *lp_build_reshaped_constant(lp_build *b, lp_value *value, lp_type type);

/* op.* forms that many rules need */
lp_value *lp_build_map(lp_build *b, const char *fn, int32_t in_count, lp_value *const *in, lp_type type);
lp_value *lp_build_map1(lp_build *b, const char *fn, lp_value *x, lp_dtype dtype); /* same shape */
/* The shapes are broadcast as numpy does; the caller gives the dtype. */
lp_value *lp_build_map2(lp_build *b, const char *fn, lp_value *x, lp_value *y, lp_dtype dtype);
lp_value *lp_build_reshape(lp_build *b, lp_value *x, lp_type type); /* x itself when the type is equal */
lp_value *lp_build_transpose(lp_build *b, lp_value *x, const int64_t *perm);
lp_type lp_build_broadcast(lp_build *b, lp_type x, lp_type y, lp_dtype dtype);

/* Erases pure operators without uses of their results, last first. */
void lp_build_remove_dead(lp_block *block);

/* Follows a matrix back through Transpose, Cast, Slice and DequantizeLinear to its constant; NULL when anything else
 * made it. */
const lp_value *lp_weight_source(const lp_value *value);
/* Reads the number in a constant of one element, of any shape and of any float or integer type. */
bool lp_scalar_constant(const lp_value *value, double *out);
/* Reads element `index` of the value's known integers; false when it is not a number. */
bool lp_known_i64(const lp_value *value, int32_t index, int64_t *out);
