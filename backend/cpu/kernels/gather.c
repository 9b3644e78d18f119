/* Reading and writing at indices that the model computes. */
#include "backend/cpu/kernels/groups.h"

/* Index `i`, counted from the end if negative, clamped into 0 .. size - 1. */
INLINE int64_t index_at(const void *index, int64_t i, int itype, int64_t size) {
  int64_t v = itype == LPK_I64 ? ((const int64_t *)index)[i] : ((const int32_t *)index)[i];
  return max64(0, min64(v < 0 ? v + size : v, size - 1));
}

INLINE int64_t product(const int64_t *dims, int from, int to) {
  int64_t p = 1;
  for (int i = from; i < to; i++)
    p *= dims[i];
  return p;
}

KERNEL void lpk_gather(void *y, const void *x, const void *index, int64_t outer, int64_t axis, int64_t rows,
                       int64_t inner_bytes, int64_t count, int itype, int64_t thread, int64_t threads) {
  if (axis == 0) return;
  for (int64_t i = share(outer * count, thread, threads); i < share(outer * count, thread + 1, threads); i++) {
    int64_t from = i / count * rows + index_at(index, i % count, itype, axis);
    memcpy((char *)y + i * inner_bytes, (const char *)x + from * inner_bytes, (size_t)inner_bytes);
  }
}

INLINE float widen(const void *table, int64_t at, int dtype) {
  if (dtype == LPK_F16) return (float)((const _Float16 *)table)[at];
  if (dtype == LPK_BF16)
    return ((union {
             uint32_t from;
             float to;
           }){.from = (uint32_t)((const uint16_t *)table)[at] << 16})
        .to;
  return ((const float *)table)[at];
}

KERNEL void lpk_embed(float *y, const void *table, const void *index, int64_t count, int64_t vocab, int64_t width,
                      int dtype, int itype, int64_t thread, int64_t threads) {
  for (int64_t i = share(count, thread, threads); i < share(count, thread + 1, threads); i++) {
    int64_t from = index_at(index, i, itype, vocab) * width, j = 0;
    for (; j + LANES <= width; j += LANES)
      store16(y + i * width + j, load_weight(table, from + j, dtype));
    for (; j < width; j++)
      y[i * width + j] = widen(table, from + j, dtype);
  }
}

INLINE uint32_t word_at(const char *words, int64_t row, int64_t column) {
  uint32_t word;
  memcpy(&word, words + (row * LPK_PANEL + column) * 4, sizeof word);
  return word;
}

/* The code of element `k` of a group, in column `column` of a panel, less the middle of the range without minima. */
INLINE int32_t code_at(const groups *q, const char *codes, int64_t k, int64_t column) {
  int bits = low_bits(q), more = high_bits(q);
  int64_t words = word_rows(bits);
  uint32_t code = word_at(codes, k / words, column) >> (uint32_t)(k % words * bits);
  if (bits == 8) return (int8_t)(code & 0xff);
  code &= (1u << bits) - 1;
  if (has_book(q)) return book_of(q)[code] - (1 << (q->bits - 1));
  if (more) {
    uint32_t word = word_at(codes + plane_bytes(q->group, bits), k / word_rows(more), column);
    code |= (word >> (uint32_t)high_place(k % word_rows(more), more) & ((1u << more) - 1)) << bits;
  }
  return (int32_t)code - (q->zeros ? 0 : 1 << (q->bits - 1));
}

/* The scale, or with `minima` the minimum, of a column of a group. */
INLINE float factor_of(const groups *q, const group_place *g, int64_t column, int minima) {
  const char *at = g->head + (minima ? scale_bytes(q) : 0);
  if (!q->super) return widen(at, column, q->scale);
  float byte = q->scale == LPK_I8 && !minima ? ((const int8_t *)at)[column] : ((const uint8_t *)at)[column];
  return widen(g->super, column + (minima ? LPK_PANEL : 0), LPK_F16) * byte;
}

KERNEL void lpk_embed_groups(float *y, const void *table, const void *index, int64_t count, int64_t vocab,
                             int64_t width, const lpk_groups *q, int itype, int64_t thread, int64_t threads) {
  int64_t per_row = (width + q->group - 1) / q->group, end = share(count * per_row, thread + 1, threads);
  for (int64_t i = share(count * per_row, thread, threads); i < end; i++) {
    int64_t row = index_at(index, i / per_row, itype, vocab), first = i % per_row * q->group, column = row % LPK_PANEL;
    group_place at = find_group(q, (const char *)table + row / LPK_PANEL * panel_bytes(q, width), i % per_row);
    float scale = factor_of(q, &at, column, 0), less = stores_zeros(q) ? factor_of(q, &at, column, 1) : 0;
    float *to = y + i / per_row * width + first;
    for (int64_t k = 0; k < min64(q->group, width - first); k++) {
      float value = (float)code_at(q, at.head + head_bytes(q), k, column) * scale;
      to[k] = stores_zeros(q) ? value - less : value;
    }
  }
}

/* Element offset in x of the element of an array of `dims` at flat index i, with `at` on `axis`. */
INLINE int64_t offset_with(const int64_t *dims, const int64_t *xdims, int rank, int axis, int64_t i, int64_t at) {
  int64_t offset = 0, stride = 1;
  for (int d = rank - 1; d >= 0; d--) {
    offset += (d == axis ? at : i % dims[d]) * stride;
    i /= dims[d];
    stride *= xdims[d];
  }
  return offset;
}

KERNEL void lpk_gather_elements(void *y, const void *x, const void *index, const int64_t *dims, const int64_t *xdims,
                                int rank, int axis, int size, int itype, int64_t thread, int64_t threads) {
  int64_t total = product(dims, 0, rank);
  if (xdims[axis] == 0) return;
  for (int64_t i = share(total, thread, threads); i < share(total, thread + 1, threads); i++) {
    int64_t from = offset_with(dims, xdims, rank, axis, i, index_at(index, i, itype, xdims[axis]));
    memcpy((char *)y + i * size, (const char *)x + from * size, (size_t)size);
  }
}

/* ---- scattering ---- */

/* Reduces an element and an update. The result is NaN if either is: then `old + update` is NaN. */
#define JOIN(name, type, wrapping)                                                                                     \
  INLINE type name(type old, type update, int reduction) {                                                             \
    type sum = (type)((wrapping)old + (wrapping)update);                                                               \
    if (reduction == LPK_SCATTER_ADD) return sum;                                                                      \
    if (reduction == LPK_SCATTER_MUL) return (type)((wrapping)old * (wrapping)update);                                 \
    if (reduction == LPK_SCATTER_MIN) return update < old ? update : old <= update ? old : sum;                        \
    return update > old ? update : old >= update ? old : sum;                                                          \
  }

JOIN(join_f32, float, float)
JOIN(join_f64, double, double)
JOIN(join_i32, int32_t, uint32_t)
JOIN(join_i64, int64_t, uint64_t)
JOIN(join_u64, uint64_t, uint64_t)

/* Updates element `at` of y with element `from` of the updates; each has `size` bytes; `dtype` matters to
 * reductions. */
INLINE void update(void *y, int64_t at, const void *updates, int64_t from, int size, int reduction, int dtype) {
#define JOIN_AS(name, type) ((type *)y)[at] = name(((type *)y)[at], ((const type *)updates)[from], reduction)
  if (reduction == LPK_SCATTER_NONE)
    memcpy((char *)y + at * size, (const char *)updates + from * size, (size_t)size);
  else if (dtype == LPK_F32)
    JOIN_AS(join_f32, float);
  else if (dtype == LPK_F64)
    JOIN_AS(join_f64, double);
  else if (dtype == LPK_I32)
    JOIN_AS(join_i32, int32_t);
  else if (dtype == LPK_I64)
    JOIN_AS(join_i64, int64_t);
  else
    JOIN_AS(join_u64, uint64_t);
#undef JOIN_AS
}

/* Updates meet only along the axis. Each thread takes whole lines, so that updates of one element are applied in the
 * order of the index. */
KERNEL void lpk_scatter_elements(void *y, const void *x, const void *index, const void *updates, const int64_t *dims,
                                 const int64_t *xdims, int rank, int axis, int size, int itype, int reduction,
                                 int dtype, lp_barrier *barrier, int64_t thread, int64_t threads) {
  int64_t bytes = product(xdims, 0, rank) * size, first = share(bytes, thread, threads);
  memcpy((char *)y + first, (const char *)x + first, (size_t)(share(bytes, thread + 1, threads) - first));
  lpk_barrier(barrier, threads);
  int64_t inner = product(dims, axis + 1, rank), lines = product(dims, 0, axis) * inner, n = dims[axis];
  if (xdims[axis] == 0) return;
  for (int64_t line = share(lines, thread, threads); line < share(lines, thread + 1, threads); line++) {
    int64_t from = line / inner * n * inner + line % inner;
    int64_t start = offset_with(dims, xdims, rank, axis, from, 0), step = product(xdims, axis + 1, rank);
    for (int64_t i = 0; i < n; i++, from += inner)
      update(y, start + index_at(index, from, itype, xdims[axis]) * step, updates, from, size, reduction, dtype);
  }
}

/* Each thread takes its own rows of y, and of the updates those that go there. */
KERNEL void lpk_scatter_nd(void *y, const void *x, const void *index, const void *updates, const int64_t *xdims,
                           int64_t count, int rank, int depth, int size, int itype, int reduction, int dtype,
                           int64_t thread, int64_t threads) {
  int64_t rows = product(xdims, 0, depth), slice = product(xdims, depth, rank);
  int64_t first = share(rows, thread, threads), last = share(rows, thread + 1, threads), bytes = slice * size;
  memcpy((char *)y + first * bytes, (const char *)x + first * bytes, (size_t)((last - first) * bytes));
  if (rows == 0) return;
  for (int64_t i = 0; i < count; i++) {
    int64_t to = 0;
    for (int d = 0; d < depth; d++)
      to = to * xdims[d] + index_at(index, i * depth + d, itype, xdims[d]);
    if (to < first || to >= last) continue;
    for (int64_t j = 0; j < slice; j++)
      update(y, to * slice + j, updates, i * slice + j, size, reduction, dtype);
  }
}
