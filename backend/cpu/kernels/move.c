/* Copies between strides, fills and ranges. */
#include "backend/cpu/kernels/vector.h"

enum { BLOCK = 16 };

/* One element; `size` is a constant. */
INLINE void move(char *y, const char *x, int size) {
  memcpy(y, x, (size_t)size);
}

typedef struct {
  int rank;
  int64_t dims[LPK_MAX_RANK], ys[LPK_MAX_RANK], xs[LPK_MAX_RANK]; /* strides in bytes; the last axis is the innermost */
} copy_plan;

/* Drops axes of size 1 and joins axes that are contiguous in both arrays. */
INLINE copy_plan plan_copy(const int64_t *dims, const int64_t *ys, const int64_t *xs, int rank, int size) {
  copy_plan p;
  p.rank = 0;
  for (int i = 0; i < rank; i++) {
    if (dims[i] == 1) continue;
    int last = p.rank - 1;
    if (last >= 0 && p.ys[last] == dims[i] * ys[i] * size && p.xs[last] == dims[i] * xs[i] * size) {
      p.dims[last] *= dims[i];
    } else {
      last = p.rank++;
      p.dims[last] = dims[i];
    }
    p.ys[last] = ys[i] * size;
    p.xs[last] = xs[i] * size;
  }
  if (p.rank == 0) {
    p.dims[0] = 1;
    p.ys[0] = p.xs[0] = size;
    p.rank = 1;
  }
  return p;
}

/* Computes the position of the flat index over all axes but the last `inner`. */
INLINE void locate(const copy_plan *p, int inner, int64_t index, int64_t *y, int64_t *x) {
  *y = *x = 0;
  for (int i = p->rank - 1 - inner; i >= 0; i--) {
    int64_t at = index % p->dims[i];
    index /= p->dims[i];
    *y += at * p->ys[i];
    *x += at * p->xs[i];
  }
}

/* Elements first .. last of one innermost run. */
INLINE void copy_run(char *y, const char *x, int64_t count, int64_t y_step, int64_t x_step, int size) {
  if (y_step == size && x_step == size)
    memcpy(y, x, (size_t)(count * size));
  else if (y_step == size)
    for (int64_t i = 0; i < count; i++)
      move(y + i * size, x + i * x_step, size);
  else
    for (int64_t i = 0; i < count; i++)
      move(y + i * y_step, x + i * x_step, size);
}

/* A block of at most 16x16 elements of 4 bytes, y[r][c] = x[c][r]. */
INLINE void transpose_block(char *y, const char *x, int64_t y_row, int64_t x_col, int64_t rows, int64_t columns) {
  if (rows == LANES && columns == LANES) {
    v16 t[16];
    UNROLL for (int i = 0; i < 16; i++) t[i] = load16((const float *)(x + i * x_col));
    transpose16(t);
    UNROLL for (int i = 0; i < 16; i++) store16((float *)(y + i * y_row), t[i]);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      move(y + r * y_row + c * 4, x + r * 4 + c * x_col, 4);
}

/* Copies rows of y that are columns of x, in blocks with lines that stay in L1. */
INLINE void copy_transposed(char *y, const char *x, const copy_plan *p, int64_t row, int64_t rows, int size) {
  int64_t columns = p->dims[p->rank - 1], y_row = p->ys[p->rank - 2], x_col = p->xs[p->rank - 1];
  for (int64_t c = 0; c < columns; c += BLOCK)
    for (int64_t r = row; r < row + rows; r += size == 4 ? BLOCK : 1) {
      const char *from = x + r * size + c * x_col;
      char *to = y + r * y_row + c * size;
      int64_t count = min64(BLOCK, columns - c);
      if (size == 4)
        transpose_block(to, from, y_row, x_col, min64(BLOCK, row + rows - r), count);
      else
        for (int64_t i = 0; i < count; i++)
          move(to + i * size, from + i * x_col, size);
    }
}

KERNEL void lpk_copy(void *y, const void *x, const int64_t *dims, const int64_t *ys, const int64_t *xs, int rank,
                     int size, int64_t thread, int64_t threads) {
  copy_plan p = plan_copy(dims, ys, xs, rank, size);
  int64_t total = 1;
  for (int i = 0; i < p.rank; i++)
    total *= p.dims[i];
  if (total == 0) return;
  int64_t run = p.dims[p.rank - 1], at_y, at_x;
  char *to = y;
  const char *from = x;
  if (p.rank >= 2 && p.xs[p.rank - 2] == size && p.ys[p.rank - 1] == size && p.xs[p.rank - 1] != 0) {
    int64_t rows = p.dims[p.rank - 2], blocks = (rows + BLOCK - 1) / BLOCK, units = total / run / rows * blocks;
    for (int64_t i = share(units, thread, threads); i < share(units, thread + 1, threads); i++) {
      int64_t row = i % blocks * BLOCK;
      locate(&p, 2, i / blocks, &at_y, &at_x);
      copy_transposed(to + at_y, from + at_x, &p, row, min64(BLOCK, rows - row), size);
    }
    return;
  }
  /* A share may begin and end anywhere, also inside a run. */
  for (int64_t i = share(total, thread, threads), end = share(total, thread + 1, threads); i < end;) {
    int64_t in = i % run, count = min64(run - in, end - i);
    locate(&p, 1, i / run, &at_y, &at_x);
    copy_run(to + at_y + in * p.ys[p.rank - 1], from + at_x + in * p.xs[p.rank - 1], count, p.ys[p.rank - 1],
             p.xs[p.rank - 1], size);
    i += count;
  }
}

KERNEL void lpk_fill(void *y, int64_t count, uint64_t bits, int size, int64_t thread, int64_t threads) {
  int64_t first = share(count, thread, threads), last = share(count, thread + 1, threads);
  for (int64_t i = first; i < last; i++)
    memcpy((char *)y + i * size, &bits, (size_t)size);
}

KERNEL void lpk_range(float *y, int64_t count, float start, float step, int64_t thread, int64_t threads) {
  for (int64_t i = share(count, thread, threads); i < share(count, thread + 1, threads); i++)
    y[i] = start + (float)i * step;
}

KERNEL void lpk_range_i64(int64_t *y, int64_t count, int64_t start, int64_t step, int64_t thread, int64_t threads) {
  for (int64_t i = share(count, thread, threads); i < share(count, thread + 1, threads); i++)
    y[i] = start + i * step;
}
