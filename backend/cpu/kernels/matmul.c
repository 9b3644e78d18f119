/* Batched product of two activations with any strides. Each thread packs the operands of its own blocks, so there is no
 * inner barrier; attention has another kernel. */
#include "backend/cpu/kernels/tile.h"

typedef struct {
  const float *a, *b;
  float *c;
  int64_t a_row, a_col, b_row, b_col, c_row, m, n, k;
  float alpha;
  int isa;
} product;

/* A thread's scratch. */
typedef struct {
  float *a; /* [rows / tile][LPK_KC][tile] */
  float *b; /* [LPK_KC][LPK_PANEL] */
  float *c; /* [LPK_MATMUL_ROWS][LPK_MATMUL_COLS] */
} matmul_work;

/* k rows of 32 columns of b from `col`, missing columns zero. */
INLINE void pack_columns(const product *p, float *packed, int64_t k0, int64_t len, int64_t col) {
  int64_t columns = min64(LPK_PANEL, p->n - col);
  const float *b = p->b + k0 * p->b_row + col * p->b_col;
  if (p->b_col == 1 && columns == LPK_PANEL) {
    for (int64_t i = 0; i < len; i++)
      UNROLL for (int h = 0; h < LPK_PANEL; h += LANES)
          store16(packed + i * LPK_PANEL + h, load16(b + i * p->b_row + h));
    return;
  }
  int64_t done = 0;
  if (p->b_row == 1 && columns == LPK_PANEL)
    for (; done + LANES <= len; done += LANES)
      for (int h = 0; h < LPK_PANEL; h += LANES) {
        v16 t[16];
        UNROLL for (int j = 0; j < 16; j++) t[j] = load16(b + done + (h + j) * p->b_col);
        transpose16(t);
        UNROLL for (int j = 0; j < 16; j++) store16(packed + (done + j) * LPK_PANEL + h, t[j]);
      }
  for (int64_t i = done; i < len; i++)
    for (int64_t j = 0; j < LPK_PANEL; j++)
      packed[i * LPK_PANEL + j] = j < columns ? b[i * p->b_row + j * p->b_col] : 0;
}

/* work->c[rows][cols] = a . b of the block at (row, col). */
INLINE void multiply_block(const product *p, const matmul_work *w, int64_t row, int64_t rows, int64_t col,
                           int64_t cols) {
  int height = tile_rows(p->isa), width = tile_cols(p->isa);
  for (int64_t k0 = 0; k0 < p->k; k0 += LPK_KC) {
    int64_t len = min64(LPK_KC, p->k - k0);
    for (int64_t r = 0; r < rows; r += height)
      pack_tile(w->a + r * len, height, p->a + (row + r) * p->a_row + k0 * p->a_col, p->a_row, p->a_col,
                min64(height, rows - r), len);
    for (int64_t c = 0; c < cols; c += LPK_PANEL) {
      pack_columns(p, w->b, k0, len, col + c);
      for (int64_t r = 0; r < rows; r += height)
        for (int h = 0; h < LPK_PANEL; h += width * LANES) {
          float *to = w->c + r * LPK_MATMUL_COLS + c + h;
          tile_operands t = {w->a + r * len, 1, height, w->b + h, LPK_PANEL, len, 0, 0};
          if (rows - r > height / 2)
            tile_update(to, LPK_MATMUL_COLS, 0, k0 == 0, height, width, &t);
          else if (rows - r > 1)
            tile_update(to, LPK_MATMUL_COLS, 0, k0 == 0, height / 2, width, &t);
          else
            tile_update(to, LPK_MATMUL_COLS, 0, k0 == 0, 1, width, &t);
        }
    }
  }
}

INLINE void store_block(const product *p, const matmul_work *w, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < cols; c++)
      p->c[(row + r) * p->c_row + col + c] = p->k ? p->alpha * w->c[r * LPK_MATMUL_COLS + c] : 0;
}

INLINE int64_t batch_offset(const int64_t *dims, const lpk_matrix *s, int rank, int64_t batch) {
  int64_t offset = 0;
  for (int d = rank - 1; d >= 0; d--) {
    offset += batch % dims[d] * s->batch[d];
    batch /= dims[d];
  }
  return offset;
}

KERNEL void lpk_matmul(float *c, const float *a, const float *b, const int64_t *dims, const lpk_matrix *cs,
                       const lpk_matrix *as, const lpk_matrix *bs, int64_t m, int64_t n, int64_t k, int rank,
                       float alpha, int isa, void *scratch, int64_t thread, int64_t threads) {
  int64_t batches = 1;
  for (int d = 0; d < rank; d++)
    batches *= dims[d];
  matmul_work w = {.a = (float *)scratch + thread * (LPK_MATMUL_SCRATCH(1) / 4)};
  w.b = w.a + LPK_KC * LPK_MATMUL_ROWS;
  w.c = w.b + LPK_KC * LPK_PANEL;
  int64_t down = (m + LPK_MATMUL_ROWS - 1) / LPK_MATMUL_ROWS, across = (n + LPK_MATMUL_COLS - 1) / LPK_MATMUL_COLS;
  int64_t units = batches * down * across;
  for (int64_t i = share(units, thread, threads); i < share(units, thread + 1, threads); i++) {
    int64_t batch = i / (down * across), row = i / across % down * LPK_MATMUL_ROWS, col = i % across * LPK_MATMUL_COLS;
    product p = {a + batch_offset(dims, as, rank, batch),
                 b + batch_offset(dims, bs, rank, batch),
                 c + batch_offset(dims, cs, rank, batch),
                 as->row,
                 as->col,
                 bs->row,
                 bs->col,
                 cs->row,
                 m,
                 n,
                 k,
                 alpha,
                 isa};
    int64_t rows = min64(LPK_MATMUL_ROWS, m - row), cols = min64(LPK_MATMUL_COLS, n - col);
    multiply_block(&p, &w, row, rows, col, cols);
    store_block(&p, &w, row, rows, col, cols);
  }
}

/* ---- other element types ---- */

#define ROW_PRODUCT(name, type)                                                                                        \
  INLINE void name(type *c, const type *a, const type *b, const lpk_matrix *cs, const lpk_matrix *as,                  \
                   const lpk_matrix *bs, int64_t n, int64_t k) {                                                       \
    for (int64_t j = 0; j < n; j++)                                                                                    \
      c[j * cs->col] = 0;                                                                                              \
    for (int64_t p = 0; p < k; p++) {                                                                                  \
      type x = a[p * as->col];                                                                                         \
      const type *row = b + p * bs->row;                                                                               \
      for (int64_t j = 0; j < n; j++)                                                                                  \
        c[j * cs->col] += x * row[j * bs->col];                                                                        \
    }                                                                                                                  \
  }
ROW_PRODUCT(row_i32, uint32_t)
ROW_PRODUCT(row_i64, uint64_t)
ROW_PRODUCT(row_f64, double)
#undef ROW_PRODUCT

KERNEL void lpk_matmul_plain(void *c, const void *a, const void *b, const int64_t *dims, const lpk_matrix *cs,
                             const lpk_matrix *as, const lpk_matrix *bs, int64_t m, int64_t n, int64_t k, int rank,
                             int dtype, int64_t thread, int64_t threads) {
  int64_t rows = m;
  for (int d = 0; d < rank; d++)
    rows *= dims[d];
  for (int64_t i = share(rows, thread, threads); i < share(rows, thread + 1, threads); i++) {
    int64_t batch = i / m, row = i % m;
    int64_t to = batch_offset(dims, cs, rank, batch) + row * cs->row;
    int64_t from = batch_offset(dims, as, rank, batch) + row * as->row, other = batch_offset(dims, bs, rank, batch);
    if (dtype == LPK_I32)
      row_i32((uint32_t *)c + to, (const uint32_t *)a + from, (const uint32_t *)b + other, cs, as, bs, n, k);
    else if (dtype == LPK_I64)
      row_i64((uint64_t *)c + to, (const uint64_t *)a + from, (const uint64_t *)b + other, cs, as, bs, n, k);
    else
      row_f64((double *)c + to, (const double *)a + from, (const double *)b + other, cs, as, bs, n, k);
  }
}
