/* Rows of KV caches as floats: f32, f16, bf16, or codes (lp_cache_row in ir/ir.h). */
#pragma once

#include "backend/cpu/kernels/vector.h"

enum { CODED_BLOCK = 32 }; /* elements of a coded row that share a scale */

/* The bytes of a row of a cache. */
INLINE int64_t cache_row(int64_t width, int dtype) {
  int64_t scales = width / CODED_BLOCK * (int64_t)sizeof(_Float16);
  return dtype == LPK_I8 ? width + scales : dtype == LPK_U8 ? width / 2 + scales : width * dtype_bytes(dtype);
}

/* Bytes from the beginning of a row to its element `at`, about. */
INLINE int64_t cache_offset(int64_t at, int dtype) {
  return dtype == LPK_I8 ? at : dtype == LPK_U8 ? at / 2 : at * dtype_bytes(dtype);
}

/* 16 elements of a row of codes, which has `width` elements. */
INLINE v16 coded_floats(const char *row, int64_t at, int64_t width, int dtype) {
  typedef int8_t v16c_any __attribute__((ext_vector_type(16), aligned(1), may_alias));
  typedef uint8_t v16u_any __attribute__((ext_vector_type(16), aligned(1), may_alias));
  _Float16 scale = ((const _Float16 *)(row + (dtype == LPK_I8 ? width : width / 2)))[at / CODED_BLOCK];
  if (dtype == LPK_I8) return __builtin_convertvector(*(const v16c_any *)(row + at), v16) * splat((float)scale);
  v16u_any pairs = *(const v16u_any *)(row + at / CODED_BLOCK * LANES);
  v16u_any code = at % CODED_BLOCK ? pairs >> 4 : pairs & 15;
  return (__builtin_convertvector(code, v16) - splat(8)) * splat((float)scale);
}

/* Elements at .. at + 16 of a row of a cache as floats, of which `count` exist; the others are zero. */
INLINE v16 cache_floats(const void *cache, int64_t at, int64_t count, int dtype) {
  uint16_t part[LANES] = {0};
  if (dtype == LPK_I8 || dtype == LPK_U8) return count > 0 ? coded_floats(cache, at, at + count, dtype) : splat(0);
  if (count >= LANES) return load_weight(cache, at, dtype);
  if (count <= 0) return splat(0);
  if (dtype == LPK_F32) return load_part((const float *)cache + at, count);
  memcpy(part, (const uint16_t *)cache + at, (size_t)count * sizeof *part);
  return load_weight(part, 0, dtype);
}
