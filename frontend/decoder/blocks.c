/* Weights in blocks of ggml: see blocks.h. */
#include "frontend/decoder/blocks.h"
#include "base/number.h"

#include <string.h>

static float half_at(const uint8_t *at) {
  return lp_f16_to_f32((uint16_t)(at[0] | at[1] << 8));
}

/* f16 d, then 32 signed bytes q: d q */
static void decode_q8_0(const uint8_t *block, float *out) {
  float d = half_at(block);
  for (int i = 0; i < 32; i++)
    out[i] = d * (float)(int8_t)block[2 + i];
}

/* f16 d, then 16 bytes; their low nibbles are the first 16 elements q: d (q - 8) */
static void decode_q4_0(const uint8_t *block, float *out) {
  float d = half_at(block);
  for (int i = 0; i < 16; i++) {
    out[i] = d * (float)((block[2 + i] & 15) - 8);
    out[16 + i] = d * (float)((block[2 + i] >> 4) - 8);
  }
}

/* f16 d, f16 m, then nibbles as above: d q + m */
static void decode_q4_1(const uint8_t *block, float *out) {
  float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 16; i++) {
    out[i] = d * (float)(block[4 + i] & 15) + m;
    out[16 + i] = d * (float)(block[4 + i] >> 4) + m;
  }
}

/* The scale and the minimum of part `j` of eight, six bits each in 12 bytes. */
static void scale_and_min(const uint8_t *packed, int j, int *scale, int *min) {
  if (j < 4) {
    *scale = packed[j] & 63;
    *min = packed[j + 4] & 63;
  } else {
    *scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6 << 4);
    *min = (packed[j + 4] >> 4) | (packed[j] >> 6 << 4);
  }
}

/* f16 d, f16 m, 12 bytes of scales, 128 bytes: pairs of parts of 32 share bytes, the first in the low nibbles. */
static void decode_q4_k(const uint8_t *block, float *out) {
  float d = half_at(block), m = half_at(block + 2);
  const uint8_t *nibbles = block + 16;
  for (int j = 0; j < 8; j++) {
    int scale, min;
    scale_and_min(block + 4, j, &scale, &min);
    float own = d * (float)scale, less = m * (float)min;
    for (int i = 0; i < 32; i++) {
      int byte = nibbles[j / 2 * 32 + i];
      out[32 * j + i] = own * (float)(j % 2 ? byte >> 4 : byte & 15) - less;
    }
  }
}

/* 128 bytes of low nibbles, 64 bytes of two high bits, 16 signed scales, f16 d: d scale (q - 32). In each half of 128
 * elements, runs of 32 take low bits from nibbles [0, 32), [32, 64), and then the high nibbles of the same. */
static void decode_q6_k(const uint8_t *block, float *out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  float d = half_at(block + 208);
  for (int i = 0; i < 256; i++) {
    int half = i / 128, run = i % 128 / 32, at = i % 32;
    int nibble = low[64 * half + run % 2 * 32 + at];
    nibble = run < 2 ? nibble & 15 : nibble >> 4;
    int q = nibble | (high[32 * half + at] >> (2 * run) & 3) << 4;
    out[i] = d * (float)(int8_t)scales[i / 16] * (float)(q - 32);
  }
}

static const lp_block_form forms[] = {{"Q4_0", 2, 32, 18, LP_I4, decode_q4_0},
                                      {"Q4_1", 3, 32, 20, LP_F32, decode_q4_1},
                                      {"Q8_0", 8, 32, 34, LP_I8, decode_q8_0},
                                      {"Q4_K", 12, 256, 144, LP_F32, decode_q4_k},
                                      {"Q6_K", 14, 256, 210, LP_F32, decode_q6_k}};

const lp_block_form *lp_block_form_find(uint32_t ggml) {
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (forms[i].ggml == ggml) return &forms[i];
  return NULL;
}

void lp_block_codes(const lp_block_form *form, const uint8_t *block, uint8_t *codes, float *scale) {
  *scale = half_at(block);
  if (form->codes == LP_I8) {
    memcpy(codes, block + 2, (size_t)form->size);
    return;
  }
  for (int64_t i = 0; i < form->size; i++) { /* q - 8 in two's complement is q with its top bit inverted */
    int nibble = i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4;
    lp_packed_set(codes, LP_I4, i, nibble ^ 8);
  }
}
