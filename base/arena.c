/* Arenas: blocks chained from newest to oldest, each at least twice as large as the one before, up to a limit. */
#include "base/base.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define HIDE(data, size) __asan_poison_memory_region(data, size)
#define SHOW(data, size) __asan_unpoison_memory_region(data, size)
enum { GAP = 16 };
#else
#define HIDE(data, size) ((void)0)
#define SHOW(data, size) ((void)0)
enum { GAP = 0 };
#endif

/* AddressSanitizer reports accesses to memory that no allocation has, and to the gap after each. */
enum { FIRST_BLOCK = 16 << 10, LARGEST_BLOCK = 4 << 20, ALIGNMENT = 16 };

typedef struct block {
  struct block *older;
  size_t size, used; /* of `data` */
  _Alignas(ALIGNMENT) char data[];
} block;

struct lp_arena {
  block *newest;
  size_t next_size;
  size_t bytes; /* of all blocks */
  size_t limit; /* of `bytes`, for lp_arena_try */
  bool is_full; /* lp_arena_try has failed */
};

/* NULL: there is no memory. */
static block *block_create(size_t size, block *older) {
  block *b = size <= PTRDIFF_MAX - sizeof *b ? calloc(1, size + sizeof *b) : NULL;
  if (!b) return NULL;
  b->older = older;
  b->size = size;
  HIDE(b->data, size);
  return b;
}

lp_arena *lp_arena_create(void) {
  lp_arena *arena = lp_alloc(sizeof *arena);
  arena->newest = block_create(FIRST_BLOCK, NULL);
  if (!arena->newest) arena->newest = lp_alloc(SIZE_MAX); /* aborts */
  arena->bytes = FIRST_BLOCK;
  arena->limit = SIZE_MAX;
  arena->next_size = (size_t)FIRST_BLOCK * 2;
  return arena;
}

/* Frees the blocks that are newer than `last`; NULL: all but the oldest. */
static void free_newer(lp_arena *arena, const block *last) {
  while (arena->newest != last && arena->newest->older) {
    block *older = arena->newest->older;
    arena->bytes -= arena->newest->size;
    free(arena->newest);
    arena->newest = older;
  }
}

void lp_arena_free(lp_arena *arena) {
  if (!arena) return;
  free_newer(arena, NULL);
  free(arena->newest);
  free(arena);
}

/* Zeroes the block's memory after its first `kept` bytes and makes it free. */
static void empty(block *b, size_t kept) {
  SHOW(b->data + kept, b->used - kept);
  memset(b->data + kept, 0, b->used - kept);
  HIDE(b->data + kept, b->used - kept);
  b->used = kept;
}

void lp_arena_reset(lp_arena *arena) {
  free_newer(arena, NULL);
  empty(arena->newest, 0);
  arena->next_size = (size_t)FIRST_BLOCK * 2;
}

size_t lp_arena_bytes(const lp_arena *arena) {
  return arena->bytes;
}

lp_arena_mark lp_arena_here(const lp_arena *arena) {
  return (lp_arena_mark){arena->newest, arena->newest->used};
}

/* Blocks of large requests that are older than the marked block stay until the arena is freed. */
void lp_arena_rewind(lp_arena *arena, lp_arena_mark mark) {
  free_newer(arena, mark.block);
  empty(arena->newest, mark.used);
}

/* NULL: the limit or the machine has no room for the block. */
static block *add_block(lp_arena *arena, size_t size, block *older) {
  block *b = size <= arena->limit && arena->bytes <= arena->limit - size ? block_create(size, older) : NULL;
  if (b) arena->bytes += size;
  arena->is_full |= !b;
  return b;
}

void *lp_arena_try(lp_arena *arena, size_t size) {
  size_t rounded = 0;
  if (!lp_size_add(size ? size : 1, ALIGNMENT - 1 + GAP, &rounded)) rounded = SIZE_MAX;
  rounded &= ~(size_t)(ALIGNMENT - 1);
  block *b = arena->newest;
  if (rounded > b->size - b->used && rounded > arena->next_size / 4 && b->older) {
    /* A large request gets a block of its own, inserted before the newest one, which keeps filling up. The oldest block
     * stays the oldest: reset keeps it. */
    b = add_block(arena, rounded, b->older);
    if (!b) return NULL;
    arena->newest->older = b;
  } else if (rounded > b->size - b->used) {
    b = add_block(arena, rounded > arena->next_size ? rounded : arena->next_size, b);
    if (!b) return NULL;
    arena->newest = b;
    if (arena->next_size < LARGEST_BLOCK) arena->next_size *= 2;
  }
  void *out = b->data + b->used;
  SHOW(out, size);
  b->used += rounded;
  return out;
}

void lp_arena_limit(lp_arena *arena, size_t bytes) {
  arena->limit = bytes;
}

bool lp_arena_is_full(const lp_arena *arena) {
  return arena->is_full;
}

void *lp_arena_alloc(lp_arena *arena, size_t size) {
  void *out = lp_arena_try(arena, size);
  return out ? out : lp_alloc(SIZE_MAX); /* aborts */
}

void *lp_arena_array(lp_arena *arena, size_t count, size_t size) {
  size_t total = 0;
  if (!lp_size_mul(count, size, &total)) total = SIZE_MAX;
  return lp_arena_alloc(arena, total);
}

void *lp_arena_copy(lp_arena *arena, const void *data, size_t size) {
  void *out = lp_arena_alloc(arena, size);
  if (size) memcpy(out, data, size);
  return out;
}

char *lp_arena_strndup(lp_arena *arena, const char *text, size_t length) {
  char *out = lp_arena_alloc(arena, length + 1);
  if (length) memcpy(out, text, length);
  return out;
}

char *lp_arena_strdup(lp_arena *arena, const char *text) {
  return lp_arena_strndup(arena, text, strlen(text));
}

char *lp_arena_format(lp_arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) return lp_arena_strdup(arena, "");
  char *out = lp_arena_alloc(arena, (size_t)length + 1);
  va_start(args, format);
  vsnprintf(out, (size_t)length + 1, format, args);
  va_end(args);
  return out;
}
