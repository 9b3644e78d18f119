/* Encodes rows of hidden states for the link. The error of one element x is at most, when all elements are finite:
 *
 *   f32   0
 *   f16   2^-11 |x|, or 2^-25 if that is greater; |x| above 65504 is clamped
 *   int8  scale / 2, scale = (greatest |x| of its group) / 127
 *   int4  scale / 2, scale = (greatest |x| of its group) / 7
 *
 * plus, for the last two, the rounding of a product in f32. A group is GROUP consecutive elements; its scale precedes
 * its codes as an f32. Everything is little endian. */
#include <math.h>

#include "base/number.h"
#include "runtime/exits/codec.h"
#include "runtime/runtime.h"

enum { GROUP = 128, SCALE_BYTES = 4 };

static const double greatest_f16 = 65504;

const char *lp_codec_name(lp_codec codec) {
  static const char *const names[LP_CODEC_COUNT] = {"auto", "f32", "f16", "int8", "int4"};
  return names[codec];
}

bool lp_codec_parse(const char *name, lp_codec *out) {
  for (*out = LP_CODEC_AUTO; *out < LP_CODEC_COUNT; (*out)++)
    if (lp_streq(name, lp_codec_name(*out))) return true;
  return false;
}

static size_t group_bytes(lp_codec codec, size_t count) {
  return SCALE_BYTES + (codec == LP_CODEC_INT8 ? count : (count + 1) / 2);
}

size_t lp_codec_row_bytes(lp_codec codec, size_t width) {
  switch (codec) {
  case LP_CODEC_F32:
    return 4 * width;
  case LP_CODEC_F16:
    return 2 * width;
  case LP_CODEC_INT8:
  case LP_CODEC_INT4:
    return width / GROUP * group_bytes(codec, GROUP) + (width % GROUP > 0 ? group_bytes(codec, width % GROUP) : 0);
  case LP_CODEC_AUTO:
  case LP_CODEC_COUNT:
    break;
  }
  return 0;
}

/* ---- groups of integers ------------------------------------------------------------------------------------------ */

static float most_of(lp_codec codec) {
  return codec == LP_CODEC_INT8 ? 127.0F : 7.0F;
}

static float scale_of(lp_codec codec, const float *x, size_t count) {
  float greatest = 0;
  for (size_t i = 0; i < count; i++)
    if (fabsf(x[i]) > greatest) greatest = fabsf(x[i]);
  return isfinite(greatest) ? greatest / most_of(codec) : 0;
}

static int code_of(lp_codec codec, float x, float scale) {
  float most = most_of(codec), code = scale > 0 ? rintf(x / scale) : 0;
  if (!(code >= -most)) code = -most; /* NaN too */
  return (int)(code > most ? most : code);
}

static void put_u32(uint8_t *out, uint32_t bits) {
  for (int i = 0; i < 4; i++)
    out[i] = (uint8_t)(bits >> (8 * i));
}

static uint32_t get_u32(const uint8_t *in) {
  return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static void put_float(uint8_t *out, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_u32(out, bits);
}

static float get_float(const uint8_t *in) {
  uint32_t bits = get_u32(in);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void encode_group(lp_codec codec, const float *x, size_t count, uint8_t *out) {
  float scale = scale_of(codec, x, count);
  put_float(out, scale);
  out += SCALE_BYTES;
  if (codec == LP_CODEC_INT8) {
    for (size_t i = 0; i < count; i++)
      out[i] = (uint8_t)code_of(codec, x[i], scale);
    return;
  }
  memset(out, 0, (count + 1) / 2);
  for (size_t i = 0; i < count; i++)
    out[i / 2] = (uint8_t)(out[i / 2] | (code_of(codec, x[i], scale) & 15) << (i % 2 * 4));
}

static void decode_group(lp_codec codec, const uint8_t *in, size_t count, float *x) {
  float scale = get_float(in);
  in += SCALE_BYTES;
  for (size_t i = 0; i < count; i++) {
    int code = codec == LP_CODEC_INT8 ? (int8_t)in[i] : (in[i / 2] >> (i % 2 * 4)) & 15;
    if (codec == LP_CODEC_INT4 && code > 7) code -= 16;
    x[i] = scale * (float)code;
  }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static float clamp_f16(float x) {
  float most = (float)greatest_f16;
  return x > most ? most : x < -most ? -most : x;
}

void lp_codec_encode(lp_codec codec, const float *row, size_t width, uint8_t *out) {
  if (codec == LP_CODEC_F32) {
    for (size_t i = 0; i < width; i++)
      put_float(out + 4 * i, row[i]);
  } else if (codec == LP_CODEC_F16) {
    for (size_t i = 0; i < width; i++) {
      uint16_t half = lp_f32_to_f16(clamp_f16(row[i]));
      out[2 * i] = (uint8_t)half;
      out[2 * i + 1] = (uint8_t)(half >> 8);
    }
  } else {
    for (size_t i = 0; i < width; i += GROUP) {
      size_t count = width - i < GROUP ? width - i : GROUP;
      encode_group(codec, row + i, count, out);
      out += group_bytes(codec, count);
    }
  }
}

void lp_codec_decode(lp_codec codec, const uint8_t *in, size_t width, float *row) {
  if (codec == LP_CODEC_F32) {
    for (size_t i = 0; i < width; i++)
      row[i] = get_float(in + 4 * i);
  } else if (codec == LP_CODEC_F16) {
    for (size_t i = 0; i < width; i++)
      row[i] = lp_f16_to_f32((uint16_t)(in[2 * i] | in[2 * i + 1] << 8));
  } else {
    for (size_t i = 0; i < width; i += GROUP) {
      size_t count = width - i < GROUP ? width - i : GROUP;
      decode_group(codec, in, count, row + i);
      in += group_bytes(codec, count);
    }
  }
}
