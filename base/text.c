/* Text buffers and the comparison of text. */
#include "base/base.h"

/* False: the arena has no room. */
static bool buf_grow(lp_buf *buf, size_t capacity) {
  char *data = buf->arena ? lp_arena_try(buf->arena, capacity) : lp_realloc(buf->data, capacity);
  if (!data) return false;
  if (buf->arena && buf->size) memcpy(data, buf->data, buf->size);
  buf->data = data;
  buf->capacity = capacity;
  return true;
}

/* Room for `more` bytes and a NUL after the present content; false: the arena has none. */
static bool buf_reserve(lp_buf *buf, size_t more) {
  size_t wanted = 0;
  if (!lp_size_add(buf->size, more, &wanted) || !lp_size_add(wanted, 1, &wanted))
    wanted = SIZE_MAX; /* lp_realloc aborts */
  if (wanted <= buf->capacity) return true;
  size_t capacity = buf->capacity < 64 ? 64 : buf->capacity;
  while (capacity < wanted)
    capacity = capacity > SIZE_MAX / 2 ? wanted : capacity * 2;
  return buf_grow(buf, capacity);
}

void lp_buf_reserve(lp_buf *buf, size_t size) {
  if (size > buf->capacity) (void)buf_grow(buf, size);
}

void lp_buf_append(lp_buf *buf, const void *data, size_t size) {
  if (!buf_reserve(buf, size)) return;
  if (size) memcpy(buf->data + buf->size, data, size);
  buf->size += size;
  buf->data[buf->size] = 0;
}

void lp_buf_puts(lp_buf *buf, const char *text) {
  lp_buf_append(buf, text, strlen(text));
}

void lp_buf_printf(lp_buf *buf, const char *format, ...) {
  va_list args;
  va_start(args, format);
  lp_buf_vprintf(buf, format, args);
  va_end(args);
}

void lp_buf_vprintf(lp_buf *buf, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  if (length >= 0 && buf_reserve(buf, (size_t)length)) {
    vsnprintf(buf->data + buf->size, (size_t)length + 1, format, again);
    buf->size += (size_t)length;
  }
  va_end(again);
}

void lp_buf_clear(lp_buf *buf) {
  buf->size = 0;
  if (buf->data) buf->data[0] = 0;
}

void lp_buf_free(lp_buf *buf) {
  if (!buf->arena) free(buf->data);
  *buf = (lp_buf){0};
}

const char *lp_buf_text(const lp_buf *buf) {
  return buf->data ? buf->data : "";
}

bool lp_streq(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

void *lp_find_named(const void *array, size_t count, size_t size, const char *name) {
  const char *entry = array;
  for (; count > 0; count--, entry += size) {
    const char *found;
    memcpy(&found, entry, sizeof found);
    if (lp_streq(found, name)) return (void *)(uintptr_t)entry;
  }
  return NULL;
}

bool lp_has_prefix(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool lp_has_suffix(const char *text, const char *suffix) {
  size_t length = strlen(text), tail = strlen(suffix);
  return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

/* FNV-1a with a finalising mix, byte by byte: the same on every machine. */
uint64_t lp_hash_bytes(const void *data, size_t size, uint64_t seed) {
  const uint8_t *bytes = data;
  uint64_t hash = 0xcbf29ce484222325u ^ seed;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 33);
}
