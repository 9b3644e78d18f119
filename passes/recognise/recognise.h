/* Declarations that the files of recognise share: matching through casts, and one function per idiom. */
#pragma once

#include "passes/build.h"
#include "passes/passes.h"

/* Replaces every instance of an idiom in the block by the standard's own operator. */
typedef lp_status lp_idiom(lp_module *module, lp_block *block, lp_diag *diag);
lp_idiom lp_recognise_norms;       /* recognise_norm.c: RMSNormalization, LayerNormalization */
lp_idiom lp_recognise_activations; /* recognise_activation.c: Gelu, Swish, by evaluating them */
lp_idiom lp_recognise_rotary;      /* recognise_rotary.c: RotaryEmbedding */
lp_idiom lp_recognise_attention;   /* recognise_attention.c: Attention, from softmax(q.k^T).v */
lp_idiom lp_recognise_buffers;     /* recognise_buffer.c: caches that grow, from buffers of constant length */
lp_idiom lp_recognise_masks;       /* recognise_mask.c: is_causal and window of Attention, by evaluating the mask */

/* ---- matching ---------------------------------------------------------------------------------------------------- */

/* The value before casts between float types and Identity. */
lp_value *lp_match_peel(lp_value *value);
/* The operator of kind `kind` that makes the value (found through casts), or NULL. */
lp_op *lp_match_def(lp_value *value, lp_kind kind);
/* The only operator that uses the value (through casts that are used once), or NULL. */
lp_op *lp_match_user(lp_value *value);
/* For a two-operand operator: the operand that is not `value` (compared through casts), or NULL. */
lp_value *lp_match_other(const lp_op *op, lp_value *value);
/* For a two-operand operator: its scalar constant operand and the other one, in any order. */
bool lp_match_scalar(const lp_op *op, double *number, lp_value **rest);
/* Tells whether the last axis is the only one of `axes` (a ReduceX operator). */
bool lp_match_last_axis(const lp_op *reduce);
/* Tells whether the value depends on no function argument. */
bool lp_match_input_free(lp_value *value);
/* x[..., from : to] over the last axis only, by Slice or as a result of Split; sets x. */
bool lp_match_last_slice(lp_value *value, lp_value **x, int64_t *from, int64_t *to);

/* ---- masks (recognise_mask.c) ------------------------------------------------------------------------------------ */

/* The number that element `index` of a mask adds to a score: 0 or -infinity for a bool. */
double lp_match_mask_element(const lp_array *mask, int64_t index);

/* ---- scores (recognise_scores.c) --------------------------------------------------------------------------------- */

/* A softmax's operand as softcap * tanh(scale * x / softcap) + mask of a product x; without a cap scale * x + mask. */
typedef struct {
  lp_op *product;
  double scale, softcap; /* softcap 0: none */
  lp_value *mask;        /* additive, or bool: true where the key is visible; NULL: none */
} lp_scores;
/* Inserts new operators for the mask at `b`. */
bool lp_match_scores(lp_build *b, lp_value *scores, lp_scores *out);
