/* The operator graph of a Llama of any size, built through the C API: what planning is tested on without a file. */
#ifndef LP_TESTS_LLAMA_H
#define LP_TESTS_LLAMA_H

#include "ir/ir.h"

typedef struct {
  int64_t layers, hidden, ffn, heads, kv_heads, vocab, context;
  lp_dtype dtype; /* of weights and activations */
  bool causal;    /* false: attention is costed over all pairs, as P1 does */
} llama_shape;

extern const llama_shape llama2_7b; /* fp16, not causal: "exact FP16" of P1's study */
extern const llama_shape llama_tiny;

/* @main with inputs input_ids [b, s], result logits [b, r, vocab]; lowered, not fused. */
lp_module *llama_create(const llama_shape *shape);

#endif
