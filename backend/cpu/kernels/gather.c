/* Reading and writing at indices that the model computes. */
#include "backend/cpu/kernels/vector.h"

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

KERNEL void lpk_gather(void *y, const void *x, const void *index, int64_t outer, int64_t axis, int64_t inner_bytes,
                       int64_t count, int itype, int64_t thread, int64_t threads) {
  if (axis == 0) return;
  for (int64_t i = share(outer * count, thread, threads); i < share(outer * count, thread + 1, threads); i++) {
    int64_t from = i / count * axis + index_at(index, i % count, itype, axis);
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

/* y = x, each thread its share, complete at the barrier. */
INLINE void copy_data(char *y, const char *x, int64_t bytes, lp_barrier *barrier, int64_t thread, int64_t threads) {
  int64_t first = share(bytes, thread, threads), last = share(bytes, thread + 1, threads);
  if (y != x) memcpy(y + first, x + first, (size_t)(last - first));
  lpk_barrier(barrier, threads);
}

/* Updates may collide when they add, so thread 0 makes them all. */
INLINE void own_updates(int64_t total, int add, int64_t thread, int64_t threads, int64_t *first, int64_t *last) {
  *first = add ? 0 : share(total, thread, threads);
  *last = add ? (thread == 0 ? total : 0) : share(total, thread + 1, threads);
}

INLINE void update(char *y, const char *value, int64_t count, int size, int add) {
  if (!add) {
    memcpy(y, value, (size_t)(count * size));
    return;
  }
  for (int64_t j = 0; j < count; j++)
    ((float *)y)[j] += ((const float *)value)[j];
}

KERNEL void lpk_scatter_elements(void *y, const void *x, const void *index, const void *updates, const int64_t *dims,
                                 const int64_t *xdims, int rank, int axis, int size, int itype, int add,
                                 lp_barrier *barrier, int64_t thread, int64_t threads) {
  copy_data(y, x, product(xdims, 0, rank) * size, barrier, thread, threads);
  int64_t first, last;
  own_updates(product(dims, 0, rank), add, thread, threads, &first, &last);
  for (int64_t i = first; i < last && xdims[axis] > 0; i++) {
    int64_t to = offset_with(dims, xdims, rank, axis, i, index_at(index, i, itype, xdims[axis]));
    update((char *)y + to * size, (const char *)updates + i * size, 1, size, add);
  }
}

KERNEL void lpk_scatter_nd(void *y, const void *x, const void *index, const void *updates, const int64_t *xdims,
                           int64_t count, int rank, int depth, int size, int itype, int add, lp_barrier *barrier,
                           int64_t thread, int64_t threads) {
  int64_t total = product(xdims, 0, rank), slice = product(xdims, depth, rank);
  copy_data(y, x, total * size, barrier, thread, threads);
  int64_t first, last;
  own_updates(count, add, thread, threads, &first, &last);
  for (int64_t i = first; i < last && total > 0; i++) {
    int64_t to = 0;
    for (int d = 0; d < depth; d++)
      to = to * xdims[d] + index_at(index, i * depth + d, itype, xdims[d]);
    update((char *)y + to * slice * size, (const char *)updates + i * slice * size, slice, size, add);
  }
}
