/* Declarations that the files of decompose share: the operator that is rewritten, and functions that build standard
 * operators.
 *
 * decompose.c  the pass and its table; activations, causal convolutions
 * build.c      building
 * attention.c  com.microsoft: Attention, MultiHeadAttention
 * gqa.c        com.microsoft: GroupQueryAttention
 * gqa_window.c its caches that keep only the rows of a window
 * mask.c       com.microsoft: forms of masks
 * rotary.c     com.microsoft: RotaryEmbedding
 * quant.c      quantised products and tables
 * qlinear.c    com.microsoft: QLinearAdd and others, QGemm
 * embed.c      com.microsoft: norms of embeddings and of sums
 * moe.c        com.microsoft: MoE, QMoE; products with gathered matrices
 * norm.c       norms of the standard
 * index.c      OneHot, Compress, TensorScatter and others that move elements by an index
 * scores.c     the standard's Attention, where op.attention has no such form */
#pragma once

#include "passes/build.h"
#include "passes/passes.h"

typedef struct {
  lp_build b;
  lp_op *op;           /* to be replaced */
  lp_value *result[4]; /* replaces its results; NULL where they are not supported */
} lp_rewrite;

typedef lp_status lp_rewrite_rule(lp_rewrite *r);

lp_rewrite_rule lp_rewrite_ms_attention, lp_rewrite_multi_head, lp_rewrite_decoder_masked, lp_rewrite_group_query,
    lp_rewrite_ms_rotary, lp_rewrite_standard_attention, lp_rewrite_one_hot, lp_rewrite_eye_like, lp_rewrite_compress,
    lp_rewrite_tensor_scatter, lp_rewrite_reverse_sequence, lp_rewrite_depth_to_space, lp_rewrite_mixture,
    lp_rewrite_gathered_matmul;
/* quant.c: products of integers, weights that are packed */
lp_rewrite_rule lp_rewrite_dynamic_quantize, lp_rewrite_matmul_integer, lp_rewrite_qlinear_matmul,
    lp_rewrite_ms_quantize, lp_rewrite_matmul_nbits, lp_rewrite_dynamic_matmul, lp_rewrite_matmul_to_float,
    lp_rewrite_gather_block, lp_rewrite_matmul_bnb4;
/* embed.c */
lp_rewrite_rule lp_rewrite_skip_norm, lp_rewrite_embed_norm, lp_rewrite_qembed_norm;
/* qlinear.c */
lp_rewrite_rule lp_rewrite_qlinear_binary, lp_rewrite_qlinear_unary, lp_rewrite_qlinear_concat, lp_rewrite_qgemm;
/* Operand `operand` in f32, with the scale and the zero point at these indices. */
lp_value *lp_rw_real(lp_rewrite *r, int32_t operand, int32_t scale, int32_t zero);
/* A product of integers. A scale and a zero point of `a` may be one for each row, of `b` one for each column. */
typedef struct {
  lp_value *a, *a_scale, *a_zero, *b, *b_scale, *b_zero; /* zero points may be NULL */
} lp_rw_integers;
/* The product as f32, exact before it is multiplied by the scales, and by these once more if `times` is not 1. `bias`
 * (NULL: none) is int32 and belongs to the exact sum, or f32. */
lp_value *lp_rw_product(lp_rewrite *r, const lp_rw_integers *p, lp_value *bias, double times);
/* QuantizeLinear or DequantizeLinear with one scale and at most one zero point, into the type `result`. */
lp_value *lp_rw_scaled(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *scale, lp_value *zero, lp_dtype result);
/* A matrix of packed codes, in blocks of columns that share a scale and a zero point. All three values are
 * constants. */
typedef struct {
  lp_value *weight, *scale, *zero; /* zero NULL: the middle of the range */
  bool zeros_adjoin;               /* there is one zero point for each row, and rows do not begin at a new byte */
  int64_t rows, columns, bits, block;
  lp_dtype result;
} lp_rw_packed;
/* Returns the matrix [rows, columns] in the type `result`. */
lp_value *lp_rw_unpacked(lp_rewrite *r, const lp_rw_packed *p);
/* Reports the first operator whose scale is a constant with an infinite element or a NaN (quant.c). */
LP_MUST_USE lp_status lp_check_scales(lp_module *module, const lp_block *block, lp_diag *diag);
/* Tells the user, in one note, that products with accuracy_level = 4 keep f32 activations by default (quant.c). */
void lp_note_activations(const lp_block *block, lp_diag *diag);

/* norm.c */
lp_rewrite_rule lp_rewrite_instance_norm, lp_rewrite_group_norm, lp_rewrite_batch_norm, lp_rewrite_mean_variance,
    lp_rewrite_lp_norm, lp_rewrite_swiglu;

/* ---- building (build.c): NULL after a diagnostic, and NULL operands flow through --------------------------------- */

/* Takes the value as result 0, and gives the status of its rule. */
LP_MUST_USE lp_status lp_rw_give(lp_rewrite *r, lp_value *value);
/* An operator of one or two operands; y NULL: one operand. */
lp_value *lp_rw_op(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *y);
lp_value *lp_rw_op3(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *y, lp_value *z);
/* An operator with an integer attribute, which is set before types are inferred; without one when its name is NULL. */
typedef struct {
  const char *name;
  int64_t value;
} lp_rw_attr;
lp_value *lp_rw_with(lp_rewrite *r, lp_kind kind, int32_t in_count, lp_value *const *in, lp_rw_attr attr);
/* Returns x + y, or x when y is NULL. */
lp_value *lp_rw_add(lp_rewrite *r, lp_value *x, lp_value *y);
lp_value *lp_rw_ints(lp_rewrite *r, int32_t count, const int64_t *values);
#define LP_RW_INTS(r, ...)                                                                                             \
  lp_rw_ints(r, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
lp_value *lp_rw_int(lp_rewrite *r, int64_t value); /* scalar */
lp_value *lp_rw_cast(lp_rewrite *r, lp_value *x, lp_dtype dtype);
lp_value *lp_rw_reshape(lp_rewrite *r, lp_value *x, lp_value *shape);
lp_value *lp_rw_unsqueeze(lp_rewrite *r, lp_value *x, lp_value *axes);
lp_value *lp_rw_transpose(lp_rewrite *r, lp_value *x, int32_t rank, const int64_t *perm);
lp_value *lp_rw_concat(lp_rewrite *r, int32_t count, lp_value *const *in, int64_t axis);
lp_value *lp_rw_slice(lp_rewrite *r, lp_value *x, int64_t axis, lp_value *from, lp_value *to); /* vectors of one */
lp_op *lp_rw_split(lp_rewrite *r, lp_value *x, int64_t axis, int32_t count, const int64_t *sizes);
lp_value *lp_rw_pick(lp_rewrite *r, lp_value *x, int64_t axis, int64_t index); /* x[.., index, ..] without the axis */
/* lp_rw_size gives the size of an axis as a scalar, lp_rw_count the vector 0, 1, ... below it. */
lp_value *lp_rw_size(lp_rewrite *r, lp_value *x, int64_t axis);
lp_value *lp_rw_count(lp_rewrite *r, lp_value *size);
/* Reshapes [b, s, heads * d] to [b, heads, s, d] and back; operands of four axes are returned as they are. */
lp_value *lp_rw_split_heads(lp_rewrite *r, lp_value *x, int64_t heads);
lp_value *lp_rw_join_heads(lp_rewrite *r, lp_value *x);
/* Reports "'Op' WHAT" at the node. */
lp_status lp_rw_refuse(const lp_rewrite *r, const char *what);
/* Reads a number of heads, at least 1. */
LP_MUST_USE lp_status lp_rw_heads(const lp_rewrite *r, const char *name, int64_t *out);

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* The common form of com.microsoft's operators: the standard's Attention over heads first. */
typedef struct {
  lp_value *q, *k, *v, *mask, *past_k, *past_v, *sinks; /* [b, heads, s, d]; NULL where absent */
  bool causal;                                          /* over the last s of all positions */
  int64_t window;                                       /* 0: none */
  double scale, softcap;                                /* 0: the default; none */
  int64_t scores;                                       /* qk_matmul_output_mode, when result 3 is wanted */
} lp_rw_attention;

/* Inserts the Attention. Results: y [b, s, heads * d], keys, values, scores (NULL without `want_scores`). */
LP_MUST_USE lp_status lp_rw_attend(lp_rewrite *r, const lp_rw_attention *a, bool want_scores);

/* A cache of GroupQueryAttention that keeps only the rows of a window (gqa_window.c). */
typedef struct {
  lp_rewrite *r;
  int64_t window;
  lp_value *past[2], *fresh[2];     /* keys and values: [b, kv_heads, C, d], [b, kv_heads, s, d] */
  lp_value *before, *after;         /* the tokens of each sequence without the new ones, and with them: [b, 1] */
  lp_value *joined[2], *present[2]; /* results: past and new rows, and the next past */
  lp_value *position;               /* result: of each joined row, [b, 1, 1, C + s] */
} lp_rw_window;
LP_MUST_USE lp_status lp_rw_join_window(lp_rw_window *w);

/* mask_index or key_padding_mask as bool that broadcasts to [b, heads, s, total] (true: visible); NULL: no mask. */
LP_MUST_USE lp_status lp_rw_padding_mask(lp_rewrite *r, lp_value *mask, lp_value *query, lp_value *total,
                                         lp_value **out);
/* Rotates x [b, s, heads * d] or [b, heads, s, d] by rows `positions` [b, s] of the tables. */
lp_value *lp_rw_rotate(lp_rewrite *r, lp_value *x, lp_value *const tables[2], lp_value *positions, int64_t heads,
                       int64_t rotary_dim, bool interleaved);
