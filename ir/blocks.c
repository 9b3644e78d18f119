/* Weights in blocks of ggml: see blocks.h. */
#include "ir/blocks.h"
#include "base/number.h"

#include <math.h>

static float half_at(const uint8_t *at) {
  return lp_f16_to_f32((uint16_t)(at[0] | at[1] << 8));
}

/* Element `i` of 32 nibbles in 16 bytes: the low nibbles are the first 16 elements. */
static int nibble_at(const uint8_t *bytes, int i) {
  return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
}

/* The element with 4 bits in `nibbles` and the fifth in the 32 bits of `high`. */
static int five_bits(const uint8_t *high, const uint8_t *nibbles, int i) {
  return nibble_at(nibbles, i) | (high[i / 8] >> (i % 8) & 1) << 4;
}

/* The two bits of element `i` of 256: runs of 32 elements share 32 bytes, four runs to a half. */
static int two_bits(const uint8_t *bytes, int i) {
  return bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------ */

/* f16 d, then 32 signed bytes q: d q */
static void split_q8_0(const uint8_t *block, lp_block_parts *out) {
  memcpy(out->code, block + 2, 32);
}

/* f16 d, then 32 nibbles q: d (q - 8) */
static void split_q4_0(const uint8_t *block, lp_block_parts *out) {
  for (int i = 0; i < 32; i++)
    out->code[i] = (int8_t)(nibble_at(block + 2, i) - 8);
}

/* f16 d, 32 high bits, then 32 nibbles: d (q - 16) */
static void split_q5_0(const uint8_t *block, lp_block_parts *out) {
  for (int i = 0; i < 32; i++)
    out->code[i] = (int8_t)(five_bits(block + 2, block + 6, i) - 16);
}

const int8_t lp_block_books[][16] = {
    [LP_BOOK_DOUBLES] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12},
    [LP_BOOK_UNEVEN] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
    [LP_BOOK_NORMAL] = {-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127}};

/* f16 d, then 32 nibbles q: d uneven[q] */
static void split_iq4_nl(const uint8_t *block, lp_block_parts *out) {
  for (int i = 0; i < 32; i++)
    out->code[i] = lp_block_books[LP_BOOK_UNEVEN][nibble_at(block + 2, i)];
}

/* The same of other values: those of bitsandbytes' NF4, times 127. No GGUF file has such blocks. */
static void split_nf4(const uint8_t *block, lp_block_parts *out) {
  for (int i = 0; i < 32; i++)
    out->code[i] = lp_block_books[LP_BOOK_NORMAL][nibble_at(block + 2, i)];
}

/* A byte e, then 32 nibbles that are floats of 4 bits (e2m1), of which these are the doubles: 2^(e - 128) doubled[q] */
static void split_mxfp4(const uint8_t *block, lp_block_parts *out) {
  out->d = ldexpf(1, block[0] - 128);
  for (int i = 0; i < 32; i++)
    out->code[i] = lp_block_books[LP_BOOK_DOUBLES][nibble_at(block + 1, i)];
}

/* f16 d, f16 m, then nibbles as above: d q + m */
static void split_q4_1(const uint8_t *block, lp_block_parts *out) {
  out->m = -half_at(block + 2);
  for (int i = 0; i < 32; i++)
    out->code[i] = (int8_t)nibble_at(block + 4, i);
}

/* f16 d, f16 m, 32 high bits, then 32 nibbles: d q + m */
static void split_q5_1(const uint8_t *block, lp_block_parts *out) {
  out->m = -half_at(block + 2);
  for (int i = 0; i < 32; i++)
    out->code[i] = (int8_t)five_bits(block + 4, block + 8, i);
}

/* ---- blocks of 256 ----------------------------------------------------------------------------------------------- */

/* 16 bytes with a scale and a minimum of four bits each, 64 bytes of two bits, f16 d, f16 m: d scale q - m min */
static void split_q2_k(const uint8_t *block, lp_block_parts *out) {
  out->d = half_at(block + 80);
  out->m = half_at(block + 82);
  for (int j = 0; j < 16; j++) {
    out->scale[j] = block[j] & 15;
    out->min[j] = block[j] >> 4;
  }
  for (int i = 0; i < 256; i++)
    out->code[i] = (int8_t)two_bits(block + 16, i);
}

/* 32 bytes of high bits, bit `run` of byte `at` for element 32 run + at; 64 bytes of two bits; 16 scales, of which 8
 * bytes have four bits each and 4 bytes two; f16 d: d (scale - 32) (q - 4), where the high bit counts 4. */
static void split_q3_k(const uint8_t *block, lp_block_parts *out) {
  const uint8_t *scales = block + 96;
  out->d = half_at(block + 108);
  for (int j = 0; j < 16; j++) {
    int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    out->scale[j] = (int16_t)((low | (scales[8 + j % 4] >> (j / 4 * 2) & 3) << 4) - 32);
  }
  for (int i = 0; i < 256; i++)
    out->code[i] = (int8_t)((two_bits(block + 32, i) | (block[i % 32] >> (i / 32) & 1) << 2) - 4);
}

/* The scale and the minimum of part `j` of eight, six bits each in 12 bytes. */
static void scale_and_min(const uint8_t *packed, int j, int16_t *scale, int16_t *min) {
  if (j < 4) {
    *scale = packed[j] & 63;
    *min = packed[j + 4] & 63;
  } else {
    *scale = (int16_t)((packed[j + 4] & 15) | (packed[j - 4] >> 6 << 4));
    *min = (int16_t)((packed[j + 4] >> 4) | (packed[j] >> 6 << 4));
  }
}

/* f16 d, f16 m, 12 bytes of scales, then `nibbles`: pairs of parts of 32 share bytes, the first in the low nibbles.
 * Part j has its fifth bits, if any, in bit j of 32 bytes. */
static void split_eight(const uint8_t *block, const uint8_t *high, const uint8_t *nibbles, lp_block_parts *out) {
  out->m = half_at(block + 2);
  for (int j = 0; j < 8; j++) {
    scale_and_min(block + 4, j, &out->scale[j], &out->min[j]);
    for (int i = 0; i < 32; i++) {
      int byte = nibbles[j / 2 * 32 + i], fifth = high ? (high[i] >> j & 1) << 4 : 0;
      out->code[32 * j + i] = (int8_t)((j % 2 ? byte >> 4 : byte & 15) | fifth);
    }
  }
}

static void split_q4_k(const uint8_t *block, lp_block_parts *out) {
  split_eight(block, NULL, block + 16, out);
}

static void split_q5_k(const uint8_t *block, lp_block_parts *out) {
  split_eight(block, block + 16, block + 48, out);
}

/* 128 bytes of low nibbles, 64 bytes of two high bits, 16 signed scales, f16 d: d scale (q - 32). In each half of 128
 * elements, runs of 32 take low bits from nibbles [0, 32), [32, 64), and then the high nibbles of the same. */
static void split_q6_k(const uint8_t *block, lp_block_parts *out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  out->d = half_at(block + 208);
  for (int j = 0; j < 16; j++)
    out->scale[j] = (int8_t)scales[j];
  for (int i = 0; i < 256; i++) {
    int half = i / 128, run = i % 128 / 32, at = i % 32;
    int nibble = low[64 * half + run % 2 * 32 + at];
    nibble = run < 2 ? nibble & 15 : nibble >> 4;
    out->code[i] = (int8_t)((nibble | (high[32 * half + at] >> (2 * run) & 3) << 4) - 32);
  }
}

/* f16 d, 8 scales of 6 bits, their two high bits first, in 2 bytes, then the four low bits in 4 bytes; 8 parts of 32
 * nibbles: d (scale - 32) uneven[q] */
static void split_iq4_xs(const uint8_t *block, lp_block_parts *out) {
  for (int j = 0; j < 8; j++) {
    int low = block[4 + j / 2] >> (j % 2 * 4) & 15, high = block[2 + j / 4] >> (j % 4 * 2) & 3;
    out->scale[j] = (int16_t)((low | high << 4) - 32);
    for (int i = 0; i < 32; i++)
      out->code[32 * j + i] = lp_block_books[LP_BOOK_UNEVEN][nibble_at(block + 8 + 16 * j, i)];
  }
}

/* ---- all forms --------------------------------------------------------------------------------------------------- */

static const lp_block_form forms[] = {{"Q4_0", 2, 32, 18, 32, 4, LP_BOOK_NONE, false, false, split_q4_0},
                                      {"Q4_1", 3, 32, 20, 32, 4, LP_BOOK_NONE, true, false, split_q4_1},
                                      {"Q5_0", 6, 32, 22, 32, 5, LP_BOOK_NONE, false, false, split_q5_0},
                                      {"Q5_1", 7, 32, 24, 32, 5, LP_BOOK_NONE, true, false, split_q5_1},
                                      {"Q8_0", 8, 32, 34, 32, 8, LP_BOOK_NONE, false, false, split_q8_0},
                                      {"Q2_K", 10, 256, 84, 16, 2, LP_BOOK_NONE, true, false, split_q2_k},
                                      {"Q3_K", 11, 256, 110, 16, 4, LP_BOOK_NONE, false, false, split_q3_k},
                                      {"Q4_K", 12, 256, 144, 32, 4, LP_BOOK_NONE, true, false, split_q4_k},
                                      {"Q5_K", 13, 256, 176, 32, 5, LP_BOOK_NONE, true, false, split_q5_k},
                                      {"Q6_K", 14, 256, 210, 16, 6, LP_BOOK_NONE, false, false, split_q6_k},
                                      {"IQ4_NL", 20, 32, 18, 32, 8, LP_BOOK_UNEVEN, false, false, split_iq4_nl},
                                      {"IQ4_XS", 23, 256, 136, 32, 8, LP_BOOK_UNEVEN, false, false, split_iq4_xs},
                                      {"MXFP4", 39, 32, 17, 32, 5, LP_BOOK_DOUBLES, false, true, split_mxfp4},
                                      {"NF4", UINT32_MAX, 32, 18, 32, 8, LP_BOOK_NORMAL, false, false, split_nf4}};

const lp_block_form *lp_block_form_find(uint32_t ggml) {
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (forms[i].ggml == ggml) return &forms[i];
  return NULL;
}

const lp_block_form *lp_block_form_named(const char *name) {
  for (size_t i = 0; name && i < LP_COUNT(forms); i++)
    if (strcmp(forms[i].name, name) == 0) return &forms[i];
  return NULL;
}

const char *lp_block_form_names(lp_arena *arena) {
  const char *names = "";
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    names = lp_arena_format(arena, "%s%s%s", names, i ? ", " : "", forms[i].name);
  return names;
}

double lp_block_stored_bits(const lp_block_form *form) {
  const double heads = form->mins ? 2 : 1;
  return (form->book ? 4 : form->bits) +
         heads * (form->size > 32 ? 8.0 / form->group + 16.0 / (double)form->size : 16.0 / 32);
}

void lp_block_split(const lp_block_form *form, const uint8_t *block, lp_block_parts *out) {
  out->d = half_at(block);
  out->m = 0;
  out->scale[0] = out->min[0] = 1;
  form->split(block, out);
}

void lp_blocks_decode(const lp_block_form *form, const uint8_t *blocks, int64_t count, float *out) {
  lp_block_parts p;
  for (int64_t b = 0; b < count; b++) {
    lp_block_split(form, blocks + b * form->bytes, &p);
    for (int64_t i = 0; i < form->size; i++) {
      int64_t j = i / form->group;
      float value = p.d * (float)p.scale[j] * (float)p.code[i];
      out[b * form->size + i] = form->mins ? value - p.m * (float)p.min[j] : value;
    }
  }
}
