/* Low-rank updates of weights: see low_rank.h. */
#include "frontend/decoder/low_rank.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

static bool is_merged_type(lp_dtype dtype) {
  return dtype == LP_F32 || dtype == LP_F16 || dtype == LP_BF16;
}

static lp_status check_one(const lp_weights *w, const lp_stored *t) {
  if (t->rank == 2 && !t->form && is_merged_type(t->dtype)) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' is no matrix of f32, f16 or bf16", t->name);
}

static lp_status check(const lp_weights *w, const lp_stored *matrix, const lp_low_rank *u) {
  const lp_stored *a = u->a, *b = u->b;
  LP_TRY(check_one(w, matrix));
  LP_TRY(check_one(w, a));
  LP_TRY(check_one(w, b));
  int64_t out = matrix->dim[u->transposed], in = matrix->dim[!u->transposed];
  if (a->dim[1] == in && b->dim[0] == out && a->dim[0] == b->dim[1]) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path),
                  "'%s' of %" PRId64 " x %" PRId64 " and '%s' of %" PRId64 " x %" PRId64
                  " do not fit '%s' with %" PRId64 " inputs and %" PRId64 " outputs",
                  a->name, a->dim[0], a->dim[1], b->name, b->dim[0], b->dim[1], matrix->name, in, out);
}

/* Elements [first, first + count). */
static void read_elements(const uint8_t *bytes, lp_dtype dtype, int64_t first, int64_t count, float *out) {
  if (dtype == LP_F32) {
    memcpy(out, bytes + first * (int64_t)sizeof *out, (size_t)count * sizeof *out);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, bytes + (first + i) * (int64_t)sizeof bits, sizeof bits);
    out[i] = dtype == LP_F16 ? lp_f16_to_f32(bits) : lp_bf16_to_f32(bits);
  }
}

static void write_elements(uint8_t *bytes, lp_dtype dtype, int64_t first, int64_t count, const float *from) {
  if (dtype == LP_F32) {
    memcpy(bytes + first * (int64_t)sizeof *from, from, (size_t)count * sizeof *from);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits = dtype == LP_F16 ? lp_f32_to_f16(from[i]) : lp_f32_to_bf16(from[i]);
    memcpy(bytes + (first + i) * (int64_t)sizeof bits, &bits, sizeof bits);
  }
}

/* The matrix in f32, with its axes exchanged where `turned`. Release with free(). */
static float *loaded(const lp_weights *w, const lp_stored *t, bool turned) {
  int64_t rows = t->dim[0], columns = t->dim[1];
  const uint8_t *bytes = lp_weights_bytes(w, t);
  float *out = lp_alloc(((size_t)(rows * columns) + 1) * sizeof *out);
  if (!turned) {
    read_elements(bytes, t->dtype, 0, rows * columns, out);
    return out;
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      read_elements(bytes, t->dtype, i * columns + j, 1, &out[j * rows + i]);
  return out;
}

/* delta += left * right[], over a row. */
static void add_row(float *delta, float left, const float *right, int64_t count) {
  for (int64_t j = 0; j < count; j++)
    delta[j] += left * right[j];
}

lp_status lp_weights_add_low_rank(lp_weights *w, lp_stored *matrix, const lp_low_rank *update) {
  LP_TRY(check(w, matrix, update));
  if (w->absent_ok || matrix->bytes == 0) return LP_OK;
  int64_t rows = matrix->dim[0], columns = matrix->dim[1], rank = update->a->dim[0];
  const uint8_t *from = lp_weights_bytes(w, matrix);
  uint8_t *to;
  LP_TRY(lp_weights_move(w, matrix, (size_t)matrix->bytes, &to));
  float *left = loaded(w, update->transposed ? update->a : update->b, update->transposed);  /* [rows][rank] */
  float *right = loaded(w, update->transposed ? update->b : update->a, update->transposed); /* [rank][columns] */
  float *row = lp_alloc(2 * (size_t)columns * sizeof *row), *delta = row + columns;
  for (int64_t i = 0; i < rows; i++) {
    memset(delta, 0, (size_t)columns * sizeof *delta);
    for (int64_t k = 0; k < rank; k++)
      add_row(delta, left[i * rank + k], right + k * columns, columns);
    read_elements(from, matrix->dtype, i * columns, columns, row);
    add_row(row, (float)update->scale, delta, columns);
    write_elements(to, matrix->dtype, i * columns, columns, row);
  }
  free(left);
  free(right);
  free(row);
  return LP_OK;
}
