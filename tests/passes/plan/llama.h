/* Shapes of Llamas that planning is tested on. */
#ifndef LP_TESTS_LLAMA_H
#define LP_TESTS_LLAMA_H

#include "passes/decoder.h"

typedef lp_decoder_shape llama_shape;

/* fp16, not causal: "exact FP16" of P1's study */
static const llama_shape llama2_7b = {32, 4096, 11008, 32, 32, 32000, 4096, LP_F16, false, false};
static const llama_shape llama_tiny = {2, 8, 16, 2, 1, 32, 64, LP_F32, true, false};

static inline lp_module *llama_create(const llama_shape *shape) {
  return lp_decoder_create(shape, NULL);
}

#endif
