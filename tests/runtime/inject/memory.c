/* The heap: an allocation fails when it is due. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/runtime/inject/due.h"

#define CALLER __builtin_return_address(0)

/* glibc's own names; dlsym itself allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void *none(void) {
  errno = ENOMEM;
  return NULL;
}

void *malloc(size_t size) {
  return lp_inject_due("malloc", CALLER) ? none() : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  return lp_inject_due("calloc", CALLER) ? none() : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  return lp_inject_due("realloc", CALLER) ? none() : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return lp_inject_due("aligned_alloc", CALLER) ? none() : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  if (lp_inject_due("posix_memalign", CALLER)) return ENOMEM;
  void *memory = __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}
