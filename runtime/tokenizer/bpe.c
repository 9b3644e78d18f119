/* The BPE model: vocabulary, merge table and the merging of one word.
 *
 * A word starts as its characters. The pair of neighbours with the lowest rank, of equal ones the leftmost, is merged
 * until no pair has a rank (Sennrich et al. 2016). With a heap of candidate pairs this takes n log n steps for n
 * characters. */

#include "base/utf8.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/vocab.h"

/* ---- vocabulary -------------------------------------------------------------------------------------------------- */

void lp_vocab_free(lp_vocab *vocab) {
  lp_buf_free(&vocab->text);
  lp_vec_free(&vocab->tokens);
  free(vocab->slots);
  free(vocab->merges);
  free(vocab->low);
  lp_vec_free(&vocab->scores);
  lp_prefixes_free(&vocab->prefixes);
}

void lp_vocab_set(lp_vocab *vocab, int32_t id, const char *text, size_t size, bool in_model) {
  while (vocab->tokens.count <= (size_t)id)
    lp_vec_push(&vocab->tokens, (lp_token){0});
  vocab->tokens.data[id] =
      (lp_token){.offset = vocab->text.size, .size = (uint32_t)size, .known = true, .in_model = in_model};
  lp_buf_append(&vocab->text, text, size);
  lp_buf_append(&vocab->text, "", 1);
}

const char *lp_vocab_text(const lp_vocab *vocab, int32_t id, size_t *size) {
  if (id < 0 || (size_t)id >= vocab->tokens.count || !vocab->tokens.data[id].known) return NULL;
  *size = vocab->tokens.data[id].size;
  return vocab->text.data + vocab->tokens.data[id].offset;
}

/* The slot that holds the text, or the free slot for it. */
static size_t find_slot(const lp_vocab *vocab, const char *text, size_t size) {
  size_t mask = vocab->slot_count - 1, slot = (size_t)lp_hash_bytes(text, size, 0) & mask;
  for (; vocab->slots[slot] >= 0; slot = (slot + 1) & mask) {
    const lp_token *token = &vocab->tokens.data[vocab->slots[slot]];
    if (token->size == size && memcmp(vocab->text.data + token->offset, text, size) == 0) break;
  }
  return slot;
}

int32_t lp_vocab_find(const lp_vocab *vocab, const char *text, size_t size) {
  return vocab->slots[find_slot(vocab, text, size)];
}

static size_t table_size(size_t count) {
  size_t size = 16;
  while (size < count * 2)
    size *= 2;
  return size;
}

static void index_single_characters(lp_vocab *vocab) {
  vocab->low = lp_alloc(0x200 * sizeof *vocab->low);
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  for (uint32_t code = 0; code < 0x200; code++) {
    lp_buf_clear(&text);
    lp_utf8_write(code, &text);
    vocab->low[code] = lp_vocab_find(vocab, text.data, text.size);
  }
}

int32_t lp_vocab_index(lp_vocab *vocab) {
  int32_t twice = -1;
  vocab->slot_count = table_size(vocab->tokens.count);
  vocab->slots = lp_alloc(vocab->slot_count * sizeof *vocab->slots);
  memset(vocab->slots, 0xFF, vocab->slot_count * sizeof *vocab->slots);
  for (size_t id = 0; id < vocab->tokens.count; id++) {
    const lp_token *token = &vocab->tokens.data[id];
    if (!token->known || !token->in_model) continue;
    size_t slot = find_slot(vocab, vocab->text.data + token->offset, token->size);
    if (vocab->slots[slot] >= 0) twice = (int32_t)id;
    vocab->slots[slot] = (int32_t)id;
  }
  index_single_characters(vocab);
  for (unsigned byte = 0; byte < 256; byte++) {
    char name[8];
    snprintf(name, sizeof name, "<0x%02X>", byte);
    vocab->byte_token[byte] = lp_vocab_find(vocab, name, 6);
  }
  return twice;
}

void lp_vocab_complete(lp_vocab *vocab) {
  if (vocab->kind != LP_MODEL_UNIGRAM && vocab->kind != LP_MODEL_WORDPIECE) return;
  for (size_t slot = 0; slot < vocab->slot_count; slot++) {
    int32_t id = vocab->slots[slot];
    const lp_token *token = id >= 0 ? &vocab->tokens.data[id] : NULL;
    if (token && token->size > 0)
      lp_vec_push(&vocab->prefixes.list, ((lp_prefix){vocab->text.data + token->offset, token->size, id}));
  }
  lp_prefixes_complete(&vocab->prefixes);
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

void lp_vocab_reserve_merges(lp_vocab *vocab, size_t count) {
  vocab->merge_slots = table_size(count);
  vocab->merges = lp_alloc(vocab->merge_slots * sizeof *vocab->merges);
  for (size_t i = 0; i < vocab->merge_slots; i++)
    vocab->merges[i].merged = -1;
}

static lp_merge *merge_slot(const lp_vocab *vocab, int32_t left, int32_t right) {
  uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  size_t mask = vocab->merge_slots - 1;
  size_t slot = (size_t)((pair * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
  while (vocab->merges[slot].merged >= 0 && vocab->merges[slot].pair != pair)
    slot = (slot + 1) & mask;
  return &vocab->merges[slot];
}

void lp_vocab_add_merge(lp_vocab *vocab, int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  *merge_slot(vocab, left, right) = (lp_merge){.pair = pair, .rank = rank, .merged = merged};
}

/* NULL: none. */
static const lp_merge *find_merge(const lp_vocab *vocab, int32_t left, int32_t right) {
  const lp_merge *merge = merge_slot(vocab, left, right);
  return merge->merged >= 0 ? merge : NULL;
}

/* ---- one word ---------------------------------------------------------------------------------------------------- */

typedef struct {
  int32_t id;             /* -1: its left neighbour has absorbed it */
  int32_t previous, next; /* -1: none */
} symbol;

typedef struct {
  uint32_t rank;
  int32_t at, merged;
} candidate;

struct lp_bpe_scratch {
  LP_VEC(symbol) symbols;
  LP_VEC(candidate) heap; /* the smallest (rank, at) first */
  lp_buf text;
};

lp_bpe_scratch *lp_bpe_scratch_create(void) {
  return lp_alloc(sizeof(lp_bpe_scratch));
}

void lp_bpe_scratch_free(lp_bpe_scratch *scratch) {
  if (!scratch) return;
  lp_vec_free(&scratch->symbols);
  lp_vec_free(&scratch->heap);
  lp_buf_free(&scratch->text);
  free(scratch);
}

static bool before(candidate a, candidate b) {
  return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void heap_push(lp_bpe_scratch *s, candidate item) {
  lp_vec_push(&s->heap, item);
  size_t at = s->heap.count - 1;
  for (; at > 0 && before(item, s->heap.data[(at - 1) / 2]); at = (at - 1) / 2)
    s->heap.data[at] = s->heap.data[(at - 1) / 2];
  s->heap.data[at] = item;
}

static candidate heap_pop(lp_bpe_scratch *s) {
  candidate *heap = s->heap.data, top = heap[0], item = heap[--s->heap.count];
  size_t count = s->heap.count, at = 0;
  for (;;) {
    size_t child = at * 2 + 1;
    if (child >= count) break;
    if (child + 1 < count && before(heap[child + 1], heap[child])) child++;
    if (!before(heap[child], item)) break;
    heap[at] = heap[child];
    at = child;
  }
  if (count > 0) heap[at] = item;
  return top;
}

static void add_symbol(lp_bpe_scratch *s, int32_t id) {
  int32_t at = (int32_t)s->symbols.count;
  if (at > 0) s->symbols.data[at - 1].next = at;
  lp_vec_push(&s->symbols, ((symbol){.id = id, .previous = at - 1, .next = -1}));
}

static void add_candidate(const lp_vocab *vocab, lp_bpe_scratch *s, int32_t at) {
  if (at < 0 || s->symbols.data[at].next < 0) return;
  const symbol *left = &s->symbols.data[at];
  const lp_merge *merge = find_merge(vocab, left->id, s->symbols.data[left->next].id);
  if (merge) heap_push(s, (candidate){merge->rank, at, merge->merged});
}

/* A candidate is stale when its symbol is gone or now heads another pair. */
static bool is_stale(const lp_vocab *vocab, const lp_bpe_scratch *s, candidate item) {
  const symbol *left = &s->symbols.data[item.at];
  if (left->id < 0 || left->next < 0) return true;
  const lp_merge *merge = find_merge(vocab, left->id, s->symbols.data[left->next].id);
  return !merge || merge->merged != item.merged;
}

static void merge_symbols(const lp_vocab *vocab, lp_bpe_scratch *s) {
  s->heap.count = 0;
  for (size_t i = 0; i + 1 < s->symbols.count; i++)
    add_candidate(vocab, s, (int32_t)i);
  while (s->heap.count > 0) {
    candidate top = heap_pop(s);
    if (is_stale(vocab, s, top)) continue;
    symbol *left = &s->symbols.data[top.at], *right = &s->symbols.data[left->next];
    left->id = top.merged;
    left->next = right->next;
    right->id = -1;
    if (left->next >= 0) s->symbols.data[left->next].previous = top.at;
    add_candidate(vocab, s, left->previous);
    add_candidate(vocab, s, top.at);
  }
}

/* The id of one character at its position in the word. `*text` and `*size` receive the text that was looked up. */
static int32_t find_character(const lp_vocab *vocab, const char **text, size_t *size, bool is_first, bool is_last,
                              lp_bpe_scratch *s) {
  const char *prefix = is_first ? NULL : vocab->prefix, *suffix = is_last ? vocab->suffix : NULL;
  if (!prefix && !suffix) {
    uint32_t code = *size <= 2 ? lp_utf8_read(*text, *size) : UINT32_MAX;
    return code < 0x200 ? vocab->low[code] : lp_vocab_find(vocab, *text, *size);
  }
  lp_buf_clear(&s->text);
  if (prefix) lp_buf_puts(&s->text, prefix);
  lp_buf_append(&s->text, *text, *size);
  if (suffix) lp_buf_puts(&s->text, suffix);
  *text = s->text.data;
  *size = s->text.size;
  return lp_vocab_find(vocab, *text, *size);
}

static bool add_fallback_bytes(const lp_vocab *vocab, const char *text, size_t size, lp_bpe_scratch *s) {
  if (!vocab->byte_fallback) return false;
  for (size_t i = 0; i < size; i++)
    if (vocab->byte_token[(uint8_t)text[i]] < 0) return false;
  for (size_t i = 0; i < size; i++)
    add_symbol(s, vocab->byte_token[(uint8_t)text[i]]);
  return true;
}

/* Holds an unknown token back until the next known character, so that a run of them can become one. Byte fallback does
 * not end a run: the reference puts the run after the bytes. */
static void split_characters(const lp_vocab *vocab, const char *word, size_t size, lp_bpe_scratch *s) {
  bool pending = false;
  s->symbols.count = 0;
  for (size_t at = 0; at < size;) {
    size_t bad, length = lp_utf8_length(word + at, size - at, &bad), text_size = length;
    const char *text = word + at;
    int32_t id = find_character(vocab, &text, &text_size, at == 0, at + length == size, s);
    at += length;
    if (id < 0 && add_fallback_bytes(vocab, text, text_size, s)) continue;
    if (id < 0 && vocab->unk < 0) continue;
    if (pending && (id >= 0 || !vocab->fuse_unk)) add_symbol(s, vocab->unk);
    pending = id < 0;
    if (id >= 0) add_symbol(s, id);
  }
  if (pending) add_symbol(s, vocab->unk);
}

void lp_bpe_encode(const lp_vocab *vocab, const char *word, size_t size, lp_bpe_scratch *scratch, lp_tokens *out) {
  if (vocab->ignore_merges) {
    int32_t id = lp_vocab_find(vocab, word, size);
    if (id >= 0) {
      lp_vec_push(out, id);
      return;
    }
  }
  split_characters(vocab, word, size, scratch);
  merge_symbols(vocab, scratch);
  for (size_t i = 0; i < scratch->symbols.count; i++)
    if (scratch->symbols.data[i].id >= 0) lp_vec_push(out, scratch->symbols.data[i].id);
}
