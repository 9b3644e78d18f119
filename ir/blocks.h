/* Weights in blocks of ggml: their layout, their parts and their values. Source: the block_q* structs and the functions
 * dequantize_row_q* of https://github.com/ggml-org/ggml. A value in the IR is f32 and its file holds blocks: see
 * lp_weight_blocks in ir.h. And the codes of models that GPUs keep. */
#pragma once

#include "ir/ir.h"

enum { LP_BLOCK_SIZE = 256, LP_BLOCK_GROUPS = 16 }; /* the most elements, and groups, of a block */

/* Element i, in group g = i / form->group, is d * scale[g] * code[i], less m * min[g] where form->mins. */
typedef struct {
  float d, m;
  int16_t scale[LP_BLOCK_GROUPS], min[LP_BLOCK_GROUPS];
  int8_t code[LP_BLOCK_SIZE];
} lp_block_parts;

/* Values that codes of 4 bits stand for: doubles of e2m1 floats, ggml's kvalues_iq4nl, and 127 times the quantiles of a
 * normal distribution (bitsandbytes' NF4), rounded. */
typedef enum { LP_BOOK_NONE, LP_BOOK_DOUBLES, LP_BOOK_UNEVEN, LP_BOOK_NORMAL } lp_block_book;
extern const int8_t lp_block_books[][16]; /* by lp_block_book */

struct lp_block_form {
  const char *name;
  uint32_t ggml;      /* the type's number in a GGUF file */
  int64_t size;       /* elements of a block: 256, of which d and m are f16 and scales bytes, or 32 with the scale d */
  int64_t bytes;      /* bytes of a block */
  int group;          /* elements that share a scale */
  int bits;           /* codes are at least 0 and below 2^bits with minima, else at least -2^(bits - 1) */
  lp_block_book book; /* of the codes, which are stored as 4 bits then */
  bool mins;
  bool powers; /* d is a power of two, from 2^-128 to 2^127 */
  void (*split)(const uint8_t *block, lp_block_parts *out);
};

/* Return NULL for an unknown number and an unknown name. */
const lp_block_form *lp_block_form_find(uint32_t ggml);
const lp_block_form *lp_block_form_named(const char *name);
/* Returns the names of all forms, with commas between them, in `arena`. */
const char *lp_block_form_names(lp_arena *arena);
/* The bits of a weight that a CPU's code stores: its code, and its share of scales and minima. */
double lp_block_stored_bits(const lp_block_form *form);
void lp_block_split(const lp_block_form *form, const uint8_t *block, lp_block_parts *out);
/* Writes the values of `count` blocks. */
void lp_blocks_decode(const lp_block_form *form, const uint8_t *blocks, int64_t count, float *out);

/* How a GPU's code stores operand 1 or 4, the weight or the gate, of an op.linear or op.experts; planner and backends
 * ask here, so that a plan counts the bytes that are emitted. `asked`: the attribute `weight_dtype`, or NULL.
 *
 * Codes with scales of the model stay as they are, in groups of 128, 64 or 32 along k. Each group has a word of 32
 * bits: its upper 24 bits are those of the scale, rounded to them, its lower 8 bits are the zero point. For
 * f8e4m3fn the whole word is the scale. The stored type is i4 for codes of up to 4 bits, u8 for longer ones, and
 * f8e4m3fn for floats. Weights are f16 where k or the model's groups are no multiples of 32, or where the zero points
 * have another type than the codes. */
lp_storage lp_storage_on_gpu(const lp_op *op, int32_t operand, const char *asked);
