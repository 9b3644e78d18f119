/* A decoder that is built without a file. Capacity sweeps, hardware measurements and tests use it as their model. */
#pragma once

#include "ir/ir.h"

typedef struct {
  int64_t layers, hidden, ffn, heads, kv_heads, vocab, context;
  lp_dtype dtype; /* of weights */
  bool causal;    /* false: attention is costed over all pairs, as P1 does */
  bool tied;      /* the head multiplies with the embedding's table */
} lp_decoder_shape;

/* Makes @main of a Llama with inputs input_ids [b, s] and result logits [b, r, vocab]; lowered, not fused. The weights
 * follow one another in "weights.bin", lp_decoder_weight_bytes of them. `kv_dtype`: the type of KV caches; activations
 * are then f32, as in imported models. NULL: both are in the type of weights. */
lp_module *lp_decoder_create(const lp_decoder_shape *shape, const lp_dtype *kv_dtype);
int64_t lp_decoder_weight_bytes(const lp_module *module);
