/* Codecs of the rows that the device uploads. codec.c states the format and the error of each. */
#pragma once

#include "runtime/runtime.h"

/* Bytes of an encoded row of `width` floats; 0 for LP_CODEC_AUTO, which the functions below do not take. */
size_t lp_codec_row_bytes(lp_codec codec, size_t width);
void lp_codec_encode(lp_codec codec, const float *row, size_t width, uint8_t *out);
void lp_codec_decode(lp_codec codec, const uint8_t *in, size_t width, float *row);
