/* Rotary position embedding, of a tensor and of rows that are appended to a KV cache. */
#include "backend/cpu/kernels/vector.h"

/* One head's row. y may equal x. */
INLINE void rotate_row(float *y, const float *x, const float *cos, const float *sin, int64_t d, int64_t rotary_dim,
                       int interleaved) {
  int64_t half = rotary_dim / 2, i = 0;
  if (interleaved) {
    for (; i < half; i++) {
      float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = a * cos[i] - b * sin[i];
      y[2 * i + 1] = b * cos[i] + a * sin[i];
    }
  } else {
    for (; i + LANES <= half; i += LANES) {
      v16 a = load16(x + i), b = load16(x + half + i), c = load16(cos + i), s = load16(sin + i);
      store16(y + i, a * c - b * s);
      store16(y + half + i, b * c + a * s);
    }
    for (; i < half; i++) {
      float a = x[i], b = x[half + i];
      y[i] = a * cos[i] - b * sin[i];
      y[half + i] = b * cos[i] + a * sin[i];
    }
  }
  for (i = rotary_dim; i < d; i++)
    y[i] = x[i];
}

KERNEL void lpk_rotary(float *y, const float *x, const float *cos, const float *sin, const int64_t *ys,
                       const int64_t *xs, int64_t table_batch, int64_t table_row, int64_t b, int64_t s, int64_t heads,
                       int64_t d, int64_t rotary_dim, int interleaved, int64_t thread, int64_t threads) {
  int64_t rows = b * s * heads;
  for (int64_t i = share(rows, thread, threads); i < share(rows, thread + 1, threads); i++) {
    int64_t head = i % heads, token = i / heads % s, batch = i / heads / s;
    int64_t at = batch * table_batch + token * table_row;
    rotate_row(y + batch * ys[0] + token * ys[1] + head * ys[2], x + batch * xs[0] + token * xs[1] + head * xs[2],
               cos + at, sin + at, d, rotary_dim, interleaved);
  }
}

/* A row in 16 bits, rounded to nearest. */
INLINE void narrow_row(uint16_t *y, const float *x, int64_t d, int dtype) {
  int64_t i = 0;
  for (; i + LANES <= d; i += LANES)
    store_half(y + i, load16(x + i), dtype);
  if (i < d) {
    uint16_t rest[LANES];
    store_half(rest, load_part(x + i, d - i), dtype);
    memcpy(y + i, rest, (size_t)(d - i) * sizeof *y);
  }
}

/* A row as codes: the greatest element of each block of 32 has the greatest code, 127 or 7. */
INLINE void encode_row(char *y, const float *x, int64_t d, int dtype) {
  typedef int8_t v16c_any __attribute__((ext_vector_type(16), aligned(1), may_alias));
  typedef uint8_t v16u_any __attribute__((ext_vector_type(16), aligned(1), may_alias));
  float most = dtype == LPK_I8 ? 127 : 7;
  _Float16 *scales = (_Float16 *)(y + (dtype == LPK_I8 ? d : d / 2));
  for (int64_t i = 0; i < d; i += 2 * LANES) {
    v16 lo = load16(x + i), hi = load16(x + i + LANES);
    v16 greatest = __builtin_elementwise_max(__builtin_elementwise_abs(lo), __builtin_elementwise_abs(hi));
    float scale = __builtin_reduce_max(greatest) / most;
    scales[i / (2 * LANES)] = (_Float16)(scale < 65504 ? scale : 65504);
    scale = (float)scales[i / (2 * LANES)];
    v16 limit = splat(most), unit = splat(scale > 0 ? scale : __builtin_inff());
    lo =
        __builtin_elementwise_roundeven(__builtin_elementwise_min(__builtin_elementwise_max(lo / unit, -limit), limit));
    hi =
        __builtin_elementwise_roundeven(__builtin_elementwise_min(__builtin_elementwise_max(hi / unit, -limit), limit));
    if (dtype == LPK_I8) {
      *(v16c_any *)(y + i) = __builtin_convertvector(lo, v16c_any);
      *(v16c_any *)(y + i + LANES) = __builtin_convertvector(hi, v16c_any);
    } else {
      *(v16u_any *)(y + i / 2) =
          __builtin_convertvector(lo + splat(8), v16u_any) | __builtin_convertvector(hi + splat(8), v16u_any) << 4;
    }
  }
}

KERNEL void lpk_kv_append(void *cache, const float *x, const float *cos, const float *sin, const int64_t *xs,
                          int64_t table_batch, int64_t table_row, int64_t b, int64_t s, int64_t p, int64_t c,
                          int64_t kv_heads, int64_t d, int64_t rotary_dim, int interleaved, int dtype, int64_t thread,
                          int64_t threads) {
  int64_t rows = b * s * kv_heads;
  for (int64_t i = share(rows, thread, threads); i < share(rows, thread + 1, threads); i++) {
    int64_t head = i % kv_heads, token = i / kv_heads % s, batch = i / kv_heads / s;
    int64_t row = (batch * kv_heads + head) * c + p + token, codes = dtype == LPK_I8 ? d : d / 2;
    float *y = (float *)cache + row * d;
    const float *from = x + batch * xs[0] + token * xs[1] + head * xs[2];
    int64_t at = batch * table_batch + token * table_row;
    if (dtype == LPK_I8 || dtype == LPK_U8)
      encode_row((char *)cache + row * (codes + d / 16), from, d, dtype);
    else if (dtype != LPK_F32)
      narrow_row((uint16_t *)cache + row * d, from, d, dtype);
    else if (rotary_dim)
      rotate_row(y, from, cos + at, sin + at, d, rotary_dim, interleaved);
    else
      memcpy(y, from, (size_t)d * sizeof *y);
  }
}
