/* The greatest elements along the middle axis of [outer][n][inner]: a heap of the k best so far in the memory of
 * `place`, with the worst of them at the root, which is sorted at the end. O(n log k), without other memory. */
#include "backend/cpu/kernels/math/vector_math.h"

/* A float's bits as an integer in the order of its numbers: both zeros are 0, every NaN is the greatest. */
INLINE int64_t float_key(int64_t bits, int64_t sign, int64_t infinity) {
  int64_t size = bits & (sign - 1);
  return size > infinity ? INT64_MAX : bits & sign ? -size : size;
}

/* Element i as an integer in the wanted order: the greatest comes first. */
INLINE int64_t key_at(const void *x, int64_t i, int min, int dtype, int natural) {
  int64_t key;
  switch (dtype) {
  case LPK_F32:
    key = float_key(((const uint32_t *)x)[i], 1ll << 31, 0x7f800000);
    break;
  case LPK_F16:
    key = float_key(((const uint16_t *)x)[i], 1 << 15, 0x7c00);
    break;
  case LPK_BF16:
    key = float_key(((const uint16_t *)x)[i], 1 << 15, 0x7f80);
    break;
  case LPK_F64: {
    int64_t bits = ((const int64_t *)x)[i], size = bits & INT64_MAX;
    key = size > 0x7ff0000000000000ll ? INT64_MAX : bits < 0 ? -size : size;
    break;
  }
  case LPK_I32:
    key = ((const int32_t *)x)[i];
    break;
  case LPK_U32:
    key = ((const uint32_t *)x)[i];
    break;
  case LPK_I16:
    key = ((const int16_t *)x)[i];
    break;
  case LPK_U16:
    key = ((const uint16_t *)x)[i];
    break;
  case LPK_I8:
    key = ((const int8_t *)x)[i];
    break;
  case LPK_U8:
    key = ((const uint8_t *)x)[i];
    break;
  default:
    key = ((const int64_t *)x)[i] ^ (natural ? INT64_MIN : 0);
    break;
  }
  return min ? ~key : key;
}

INLINE void copy_element(void *y, int64_t to, const void *x, int64_t from, int dtype) {
  switch (dtype) {
  case LPK_I64:
  case LPK_F64:
    ((uint64_t *)y)[to] = ((const uint64_t *)x)[from];
    break;
  case LPK_F32:
  case LPK_I32:
  case LPK_U32:
    ((uint32_t *)y)[to] = ((const uint32_t *)x)[from];
    break;
  case LPK_I8:
  case LPK_U8:
    ((uint8_t *)y)[to] = ((const uint8_t *)x)[from];
    break;
  default:
    ((uint16_t *)y)[to] = ((const uint16_t *)x)[from];
    break;
  }
}

/* A line of x and the indices found so far; both lie `step` apart. */
typedef struct {
  const void *x;
  int64_t *place;
  int64_t first, step;
  int min, dtype, natural;
} topk_line;

INLINE int64_t line_key(const topk_line *l, int64_t i) {
  return key_at(l->x, l->first + i * l->step, l->min, l->dtype, l->natural);
}

/* Tells whether element a comes after element b. */
INLINE int is_worse(const topk_line *l, int64_t a, int64_t b) {
  int64_t p = line_key(l, a), q = line_key(l, b);
  return p < q || (p == q && a > b);
}

/* Moves element i down from heap node `at` to a node with no worse child. */
INLINE void sink(const topk_line *l, int64_t at, int64_t size, int64_t i) {
  for (int64_t child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && is_worse(l, l->place[(child + 1) * l->step], l->place[child * l->step])) child++;
    if (!is_worse(l, l->place[child * l->step], i)) break;
    l->place[at * l->step] = l->place[child * l->step];
  }
  l->place[at * l->step] = i;
}

INLINE void find_best(const topk_line *l, int64_t n, int64_t k) {
  for (int64_t i = 0; i < k; i++)
    l->place[i * l->step] = i;
  for (int64_t i = k / 2 - 1; i >= 0; i--)
    sink(l, i, k, l->place[i * l->step]);
  int64_t worst = line_key(l, l->place[0]);
  for (int64_t i = k; i < n; i++) {
    if (line_key(l, i) <= worst) continue; /* of equal elements the earlier one stays */
    sink(l, 0, k, i);
    worst = line_key(l, l->place[0]);
  }
  for (int64_t size = k - 1; size > 0; size--) {
    int64_t last = l->place[size * l->step];
    l->place[size * l->step] = l->place[0];
    sink(l, 0, size, last);
  }
}

KERNEL void lpk_topk(void *y, int64_t *place, const void *x, int64_t outer, int64_t n, int64_t inner, int64_t k,
                     int min, int dtype, int natural, int64_t thread, int64_t threads) {
  if (k < 1) return;
  for (int64_t i = share(outer * inner, thread, threads); i < share(outer * inner, thread + 1, threads); i++) {
    int64_t to = i / inner * k * inner + i % inner;
    topk_line l = {x, place + to, i / inner * n * inner + i % inner, inner, min, dtype, natural};
    find_best(&l, n, k);
    for (int64_t j = 0; j < k; j++)
      copy_element(y, to + j * inner, x, l.first + l.place[j * inner] * inner, dtype);
  }
}
