/* Weights in blocks of ggml: their layout, and their values in f32. Source: the block_q* structs and the functions
 * dequantize_row_q* of https://github.com/ggml-org/ggml. */
#ifndef LP_DECODER_BLOCKS_H
#define LP_DECODER_BLOCKS_H

#include "ir/ir.h"

typedef struct {
  const char *name;
  uint32_t ggml; /* the type's number in a GGUF file */
  int64_t size;  /* elements of a block */
  int64_t bytes; /* bytes of a block */
  /* I8, I4: a block is an f16 scale and 32 codes, and its values are their products; F32: it has another layout. */
  lp_dtype codes;
  void (*read_codes)(const uint8_t *block, int8_t *out); /* I8, I4: writes out[size] */
  void (*decode)(const uint8_t *block, float *out);      /* F32: writes out[size] */
} lp_block_form;

/* Returns NULL for an unknown number. */
const lp_block_form *lp_block_form_find(uint32_t ggml);
/* Returns the names of all forms, with commas between them, in `arena`. */
const char *lp_block_form_names(lp_arena *arena);
/* Writes the values of one block: out[form->size]. */
void lp_block_decode(const lp_block_form *form, const uint8_t *block, float *out);
/* Splits one block of a form that has codes into its codes (I8: a byte each; I4: two to a byte, the first low) and its
 * scale. */
void lp_block_codes(const lp_block_form *form, const uint8_t *block, uint8_t *codes, float *scale);

#endif
