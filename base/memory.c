/* The heap, the growth of vectors, and sizes that are checked before they are allocated. */
#include "base/base.h"

static void check_memory(const void *memory, size_t size) {
  if (memory) return;
  fprintf(stderr, "llmpart: out of memory: %zu bytes wanted\n", size);
  abort();
}

void *lp_alloc(size_t size) {
  void *memory = size <= PTRDIFF_MAX ? calloc(1, size ? size : 1) : NULL;
  check_memory(memory, size);
  return memory;
}

void *lp_realloc(void *old, size_t size) {
  void *memory = size <= PTRDIFF_MAX ? realloc(old, size ? size : 1) : NULL;
  check_memory(memory, size);
  return memory;
}

char *lp_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  return memcpy(lp_alloc(size), text, size);
}

void *lp_vec_grow(void *data, size_t *capacity, size_t item_size) {
  size_t wanted = *capacity < 8 ? 8 : *capacity, bytes = 0;
  if (*capacity >= 8 && !lp_size_mul(*capacity, 2, &wanted)) wanted = SIZE_MAX;
  if (!lp_size_mul(wanted, item_size, &bytes)) check_memory(NULL, SIZE_MAX);
  *capacity = wanted;
  return lp_realloc(data, bytes);
}

bool lp_size_mul(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}

bool lp_size_add(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

bool lp_i64_mul(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}

bool lp_i64_add(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}
