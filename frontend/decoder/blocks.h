/* Weights in blocks of ggml: how they lie, and their values in f32.
 * Source: the block_q* structs and the functions dequantize_row_q* of https://github.com/ggml-org/ggml. */
#ifndef LP_DECODER_BLOCKS_H
#define LP_DECODER_BLOCKS_H

#include "ir/ir.h"

typedef struct {
  const char *name;
  uint32_t ggml;  /* its number in a GGUF file */
  int64_t size;   /* elements of a block */
  int64_t bytes;  /* that a block takes */
  lp_dtype codes; /* I8, I4: blocks are codes times one scale; F32: only `decode` gives the values */
  /* The values of one block: out[size]. */
  void (*decode)(const uint8_t *block, float *out);
} lp_block_form;

/* NULL: unknown. */
const lp_block_form *lp_block_form_find(uint32_t ggml);
/* The codes (I8: a byte each; I4: two to a byte, the first low) and the scale of one block of a form that has them. */
void lp_block_codes(const lp_block_form *form, const uint8_t *block, uint8_t *codes, float *scale);

#endif
