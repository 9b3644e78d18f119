/* Declarations that the files of bind-inputs share: the function and the roles of its inputs and outputs. */
#pragma once

#include "base/poly.h"
#include "ir/ir.h"
#include "passes/build.h"

typedef struct {
  lp_module *module;
  lp_diag *diag;
  lp_op *func;
  lp_block *block;
  lp_op *end;             /* the terminator; its operands are the outputs */
  int32_t tokens, logits; /* logits -1: the model gives hidden states */
  /* tokens past_key past_value past_kv conv_past state_past data; logits exit_logits hidden embedding present_*
   * conv_present state_present data */
  const char **input_role, **output_role;
  int64_t *pair; /* per input: the output that is its next state, or -1 */
} lp_bind;

/* Returns the name of an input in the ONNX file; "" when the function has none. */
const char *lp_bind_input(const lp_bind *b, int32_t index);
const char *lp_bind_output(const lp_bind *b, int32_t index);

/* ---- caches (bind_past.c) ---------------------------------------------------------------------------------------- */

/* Finds the roles of past inputs and their present outputs: by name, then by order and type; the columns that a causal
 * convolution continues by the operator. A past grows along its
 * last axis but one; one of four axes that grows along another is put into that order, and the function's attribute
 * `grows_NAME` states the axis. Fails on a past of a form that is not known. */
LP_MUST_USE lp_status lp_bind_pair_pasts(lp_bind *b);
/* Makes caches of buffers of constant length, before lp_bind_pair_pasts (bind_buffer.c). The function's attribute
 * `context` becomes the length of the shortest. */
LP_MUST_USE lp_status lp_bind_open_buffers(lp_bind *b);
/* Makes a cache that grows along `axis` (1 or 3 of four axes) one that grows along axis 2 (bind_layout.c). */
LP_MUST_USE lp_status lp_bind_order_axes(lp_bind *b, int32_t input, int32_t output, int32_t axis);
bool lp_bind_is_past(const lp_bind *b, int32_t input);
/* The past's length in the types, NULL for a model without past inputs. */
const lp_poly *lp_bind_past_length(const lp_bind *b);

/* ---- logits (bind_logits.c) -------------------------------------------------------------------------------------- */

/* Sets `logits`, and the roles of logits and of exits' logits, or those of hidden states; all of them become f32.
 * Logits of the last position only ([b, V] or [b, 1, V]) become those of all positions. Needs sizes with the
 * protocol's names. */
LP_MUST_USE lp_status lp_bind_find_logits(lp_bind *b);

/* ---- hidden states (bind_hidden.c) ------------------------------------------------------------------------------- */

/* The matrix of which the value selects rows, directly or through casts and reshapes: the token embedding, [vocabulary]
 * rows. NULL: none. `depth` 0. */
const lp_value *lp_bind_table(const lp_value *value, int depth);
/* Tells whether the output, floats of each position or sequence, is hidden states rather than logits: its name says so,
 * or it has the width of the token embedding and not its number of rows. */
bool lp_bind_is_hidden(const lp_bind *b, int32_t output);
/* Gives the hidden states of all positions, and an embedding of each sequence, their roles; false: there are none.
 * The function's attribute `vocab` becomes the number of rows of the token embedding. */
bool lp_bind_find_hidden(lp_bind *b);

/* ---- inputs that follow from the sizes (bind_followers.c) -------------------------------------------------------- */

typedef enum {
  LP_FOLLOWS_NOTHING,
  LP_FOLLOWS_MASK,      /* ones [b, p + s] */
  LP_FOLLOWS_CAUSAL,    /* [b, 1, n, n] ones up to the diagonal; scores are multiplied or selected by them */
  LP_FOLLOWS_VISIBLE,   /* [b, 1, s, p + s] or [s, p + s] the keys that each query sees (bind_mask.c) */
  LP_FOLLOWS_POSITIONS, /* p + 0, 1, ... [b, s] or [s] */
  LP_FOLLOWS_TYPES,     /* zeros [b, s] */
  LP_FOLLOWS_LAST,      /* p + s - 1 [b]: the last position of each sequence, as GroupQueryAttention's seqlens_k */
  LP_FOLLOWS_TOTAL,     /* p + s, [] or [1] */
  LP_FOLLOWS_SWITCH     /* use_cache_branch: true */
} lp_bind_follower;

lp_bind_follower lp_bind_follower_of(const lp_bind *b, int32_t input);
/* Replaces the inputs that follow from others by computed values and removes them from the function. */
LP_MUST_USE lp_status lp_bind_followers(lp_bind *b);

/* ---- masks with rows of queries (bind_mask.c) -------------------------------------------------------------------- */

/* Tells whether an input with rows of queries and this name is a mask. */
bool lp_bind_is_mask(const char *name);
/* Builds the mask under which query i of s sees the keys up to p + i, in the input's type; NULL after a diagnostic.
 * Sets the function's attribute `mask_of_NAME`: "shows", "hides" or "added". */
lp_value *lp_bind_make_mask(lp_build *build, const lp_bind *b, const lp_value *arg);
