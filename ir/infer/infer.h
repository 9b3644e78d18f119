/* Shape inference: the context of one operator and the helpers of its rule, which its files share.
 *
 * infer.c   entry points and the table                 operand.c  operands, results, messages
 * agree.c   dimensions that must agree, broadcasting   values.c   known elements of results
 * math.c    elementwise, products, reductions, norms   shape.c    operators that move or count
 * quant.c   quantised operators                        data.c     sizes that elements decide
 * model.c   attention and the fused operators of       known.c    values known as polynomials
 *           com.microsoft                              arith.c    arithmetic on them */
#pragma once

#include "base/poly.h"
#include "ir/ir.h"

enum { LP_MAX_KNOWN = 64 };

typedef struct {
  lp_module *m;
  lp_op *op;
  lp_diag *diag;
  /* A symbol was replaced in the whole module, so the rule's operands have changed and the rule runs again. */
  bool again;
} lp_infer;

/* Runs when the operands that the operator cannot do without (`in_min` in ops.def) are there. */
typedef lp_status lp_infer_rule(lp_infer *c);

/* A shape under construction. */
typedef struct {
  int32_t rank;
  const lp_poly *dim[LP_MAX_RANK];
} lp_shape;

/* Operand types; `lp_infer_need` makes sure that operands [0, count) are there. */
LP_MUST_USE lp_status lp_infer_need(const lp_infer *c, int32_t count);
lp_type lp_infer_in(const lp_infer *c, int32_t index);
bool lp_infer_has(const lp_infer *c, int32_t index);
lp_shape lp_infer_shape(const lp_infer *c, int32_t index);
/* Operand `index` has exactly or at least `rank` axes. */
LP_MUST_USE lp_status lp_infer_rank(const lp_infer *c, int32_t index, int32_t rank);
LP_MUST_USE lp_status lp_infer_min_rank(const lp_infer *c, int32_t index, int32_t rank);
LP_MUST_USE lp_status lp_infer_same_dtype(const lp_infer *c, int32_t first, int32_t second);
/* Sets the result to numpy's matrix product of operands `a` and `b`, whatever their dtypes are. */
LP_MUST_USE lp_status lp_infer_product(lp_infer *c, int32_t a, int32_t b, lp_shape *out);
LP_MUST_USE lp_status lp_infer_integer(const lp_infer *c, int32_t index);
LP_MUST_USE lp_status lp_infer_index(const lp_infer *c, int32_t index);

/* Sets a result's type; does nothing when the operator has no such result. A NULL dimension is one that overflowed. */
LP_MUST_USE lp_status lp_infer_set(const lp_infer *c, int32_t index, lp_dtype dtype, const lp_shape *shape);
LP_MUST_USE lp_status lp_infer_push(const lp_infer *c, lp_shape *shape, const lp_poly *dim);
LP_MUST_USE lp_status lp_infer_fail(const lp_infer *c, const char *format, ...) LP_PRINTF(2, 3);
const char *lp_infer_text(const lp_infer *c, const lp_poly *dim); /* in the module's arena, for messages */

/* Makes an axis in [-rank, rank) (with `end`: [-rank, rank]) non-negative. */
LP_MUST_USE lp_status lp_infer_axis(const lp_infer *c, int64_t axis, int32_t rank, bool end, int32_t *out);

/* Requires two dimensions to be equal. Where they differ by a symbol that can have the other's value, the symbol is
 * replaced in the whole module. */
LP_MUST_USE lp_status lp_infer_agree(lp_infer *c, const lp_poly *a, const lp_poly *b, const lp_poly **out);
/* For a product of sizes that the batch does not divide: exporters may give the same axis of each input a name of its
 * own. Sets the product's own batch, which is the first axis of an input, equal to `batch`. Does nothing where the
 * product has none. */
LP_MUST_USE lp_status lp_infer_one_batch(lp_infer *c, const lp_poly *product, const lp_poly *batch);
/* Tells whether the symbol is an axis of an integer argument of the function, such as tokens or masks. */
bool lp_infer_sizes_integers(const lp_infer *c, lp_symbol symbol);
/* Tells whether the size is at least 1 whenever the model runs. Batch and tokens are; a past may be empty. */
bool lp_infer_is_positive(const lp_infer *c, const lp_poly *size);
/* Numpy broadcasting of `with` into `shape`. */
LP_MUST_USE lp_status lp_infer_broadcast(lp_infer *c, lp_shape *shape, const lp_shape *with);

/* The elements of an operand known as polynomials: from inference, a constant, or a small computation on constants. */
bool lp_infer_known(const lp_infer *c, int32_t index, const lp_poly *const **values, int32_t *count);
/* Like lp_infer_known; otherwise reports that the result's shape depends on data. */
LP_MUST_USE lp_status lp_infer_need_known(const lp_infer *c, int32_t index, const lp_poly *const **values,
                                          int32_t *count);
/* Reports that the result's shape depends on data. */
LP_MUST_USE lp_status lp_infer_refuse_data(const lp_infer *c, int32_t index);
/* Computes all elements of an operand that depends on constants only, in `arena`. False for any other operand, and for
 * one that is too large. */
bool lp_infer_evaluate(const lp_infer *c, int32_t index, lp_arena *arena, lp_array *out);
/* Reads an operand of which all elements are known numbers. `values` holds LP_MAX_KNOWN. */
LP_MUST_USE lp_status lp_infer_need_i64s(const lp_infer *c, int32_t index, int64_t *values, int32_t *count);
/* The known value of flat element `at` of an elementwise operator's result; NULL when it is not known
 * (arith.c). */
const lp_poly *lp_infer_element(const lp_infer *c, int64_t at);
/* Sets the known elements of the results. The types of the results are set. */
void lp_infer_values(lp_infer *c);
void lp_infer_constant_known(lp_module *module, lp_value *value);
/* Reads element `index` as a whole number; false when it is not one. */
bool lp_infer_whole(const lp_tensor *tensor, int64_t index, int64_t *out);
/* The elements of a small tensor of whole numbers, in the module's arena; NULL for any other. */
const lp_poly **lp_infer_tensor(lp_module *module, const lp_tensor *tensor, int32_t *count);
/* Computes a value that depends on constants only, and sets its known elements. */
void lp_infer_learn(lp_module *module, lp_value *value);

bool lp_poly_is_i64(const lp_poly *poly, int64_t value);

/* ---- rules ---- */

/* math.c */
lp_infer_rule infer_broadcast, infer_bitwise, infer_pow, infer_compare, infer_where, infer_same, infer_cast,
    infer_bit_cast, infer_gate, infer_cast_like, infer_dropout, infer_divide, infer_matmul, infer_gemm, infer_conv,
    infer_experts, infer_reduce, infer_argmax, infer_topk, infer_norm, infer_batch_norm;
/* data.c */
lp_infer_rule infer_nonzero, infer_compress, infer_eye_like;
/* model.c */
lp_infer_rule infer_attention, infer_linear_attention, infer_causal_conv, infer_skip_norm, infer_embed_norm,
    infer_ms_attention, infer_ms_mha, infer_rotary, infer_ms_gqa;
/* quant.c */
lp_infer_rule infer_quantize, infer_dequantize, infer_dynamic_quantize, infer_matmul_integer, infer_qlinear_matmul,
    infer_matmul_float, infer_fused_matmul, infer_matmul_nbits, infer_matmul_bnb4, infer_gather_block,
    infer_qlinear_broadcast, infer_qlinear_concat, infer_qgemm;
/* shape.c */
lp_infer_rule infer_gather, infer_gather_elements, infer_gather_nd, infer_scatter, infer_tensor_scatter, infer_one_hot,
    infer_depth_to_space, infer_reverse_sequence, infer_slice, infer_concat, infer_split, infer_transpose,
    infer_reshape, infer_flatten, infer_squeeze, infer_unsqueeze, infer_expand, infer_tile, infer_pad, infer_shape,
    infer_size, infer_constant, infer_constant_of_shape, infer_range;
