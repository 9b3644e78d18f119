/* Sorts the tokens by their bytes and makes tries of them. */
#include "runtime/grammar/vocabulary.h"

#include "base/utf8.h"

const char *lp_vocabulary_bytes(const lp_vocabulary *vocabulary, int32_t token, size_t *size) {
  size_t begin = token > 0 ? vocabulary->end.data[token - 1] : 0;
  *size = vocabulary->end.data[token] - begin;
  return lp_buf_text(&vocabulary->bytes) + begin;
}

/* A token in the order of the bytes; `key` has the first eight of them. */
typedef struct {
  uint64_t key;
  const char *bytes;
  size_t size;
  int32_t token;
} entry;

static int by_bytes(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  size_t least = x->size < y->size ? x->size : y->size;
  int order = memcmp(x->bytes, y->bytes, least);
  if (order != 0) return order;
  if (x->size != y->size) return x->size < y->size ? -1 : 1;
  return x->token < y->token ? -1 : x->token > y->token;
}

static uint64_t key_of(const char *bytes, size_t size) {
  uint64_t key = 0;
  for (size_t i = 0; i < 8; i++)
    key = key << 8 | (i < size ? (uint8_t)bytes[i] : 0);
  return key;
}

/* The characters of a plain token; -1: it is not plain. */
static int32_t plain_characters(const char *bytes, size_t size) {
  int32_t count = 0;
  for (size_t i = 0; i < size; count++) {
    size_t bad, length = lp_utf8_length(bytes + i, size - i, &bad);
    if (length == 0 || (uint8_t)bytes[i] < ' ' || bytes[i] == '"' || bytes[i] == '\\') return -1;
    i += length;
  }
  return count;
}

/* Appends the nodes of a token, which comes after the one before in the order of the bytes. `open` has the nodes of
 * that one, which end where others begin. */
static void add_token(lp_slice *slice, uint32_t *open, const entry *before, const entry *of) {
  size_t same = 0;
  while (before && same < before->size && same < of->size && before->bytes[same] == of->bytes[same])
    same++;
  for (size_t i = same; before && i < before->size; i++)
    slice->other.data[open[i]].end = (uint32_t)slice->other.count;
  for (size_t i = same; i < of->size; i++) {
    const lp_trie_node node = {
        .token = i + 1 == of->size ? of->token : -1, .byte = (uint8_t)of->bytes[i], .depth = i & 0xFFFFFF};
    open[i] = (uint32_t)slice->other.count;
    lp_vec_push(&slice->other, node);
  }
}

static void make_slice(lp_vocabulary *v, lp_slice *slice, const entry *sorted, size_t count) {
  LP_OWNED(lp_free_at) uint32_t *open = lp_alloc((v->depth + 1) * sizeof *open);
  const entry *before = NULL;
  slice->tokens = lp_alloc(v->words * sizeof *slice->tokens);
  for (size_t i = 0; i < count; i++) {
    const entry *of = &sorted[i];
    bool again = i > 0 && sorted[i - 1].size == of->size && memcmp(sorted[i - 1].bytes, of->bytes, of->size) == 0;
    int32_t characters = slice->most > 0 ? plain_characters(of->bytes, of->size) : -1;
    if (again) v->same[sorted[i - 1].token] = of->token;
    if (characters >= 0 && characters <= slice->most) {
      slice->tokens[of->token / 64] |= UINT64_C(1) << of->token % 64;
    } else if (!again) {
      add_token(slice, open, before, of);
      before = of;
    }
  }
  for (size_t i = 0; before && i < before->size; i++)
    slice->other.data[open[i]].end = (uint32_t)slice->other.count;
}

lp_vocabulary *lp_vocabulary_begin(void) {
  return lp_alloc(sizeof(lp_vocabulary));
}

void lp_vocabulary_add(lp_vocabulary *vocabulary, const char *bytes, size_t size, bool is_last) {
  lp_buf_append(&vocabulary->bytes, bytes, size);
  lp_vec_push(&vocabulary->end, vocabulary->bytes.size);
  if (is_last) lp_vec_push(&vocabulary->last, vocabulary->size);
  vocabulary->size++;
}

static bool is_last(const lp_vocabulary *vocabulary, int32_t token) {
  for (size_t i = 0; i < vocabulary->last.count; i++)
    if (vocabulary->last.data[i] == token) return true;
  return false;
}

void lp_vocabulary_end(lp_vocabulary *v) {
  static const int32_t most[LP_SLICES] = {LP_SLICE_MOST, 8, 0};
  const int32_t size = v->size;
  v->words = ((size_t)size + 63) / 64;
  v->same = lp_alloc((size_t)size * sizeof *v->same);
  LP_OWNED(lp_free_at) entry *sorted = lp_alloc((size_t)size * sizeof *sorted);
  size_t count = 0;
  for (int32_t i = 0; i < size; i++) {
    entry of = {.token = i};
    of.bytes = lp_vocabulary_bytes(v, i, &of.size);
    of.key = key_of(of.bytes, of.size);
    v->same[i] = -1;
    if (of.size > v->depth) v->depth = of.size;
    if (of.size > 0 && !is_last(v, i)) sorted[count++] = of;
  }
  qsort(sorted, count, sizeof *sorted, by_bytes);
  for (size_t i = 0; i < LP_SLICES; i++) {
    v->slice[i].most = most[i];
    make_slice(v, &v->slice[i], sorted, count);
  }
}

void lp_vocabulary_free(lp_vocabulary *vocabulary) {
  if (!vocabulary) return;
  for (size_t i = 0; i < LP_SLICES; i++) {
    free(vocabulary->slice[i].tokens);
    lp_vec_free(&vocabulary->slice[i].other);
  }
  lp_buf_free(&vocabulary->bytes);
  lp_vec_free(&vocabulary->end);
  lp_vec_free(&vocabulary->last);
  free(vocabulary->same);
  free(vocabulary);
}
