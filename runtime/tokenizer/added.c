/* Added tokens: found in the text before anything else looks at it, the longest at the leftmost place. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/tokenizer/added.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/steps.h"

/* \w as the reference has it for the neighbours of a token (Rust's regex, not Oniguruma's) */
#define WORD "[\\w\\p{Join_Control}]"

static int compare_added(const void *a, const void *b) {
  const lp_added *x = a, *y = b;
  int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
  if (order != 0) return order;
  return x->size < y->size ? -1 : x->size > y->size ? 1 : x->id < y->id ? -1 : x->id > y->id;
}

void lp_added_complete(lp_added_set *set) {
  char *why = NULL;
  if (set->list.count > 1) qsort(set->list.data, set->list.count, sizeof *set->list.data, compare_added);
  for (size_t i = 0; i < set->list.count; i++)
    set->starts[(uint8_t)set->list.data[i].text[0]] = true;
  set->word = lp_pattern_create(WORD, sizeof WORD - 1, false, &why);
  assert(set->word);
}

void lp_added_free(lp_added_set *set) {
  lp_pattern_free(set->word);
  lp_vec_free(&set->list);
}

/* The first of data[low, high) whose byte at `depth` is `byte` or more; all share the bytes before and are longer. */
static size_t lower_bound(const lp_added *data, size_t low, size_t high, size_t depth, unsigned byte) {
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uint8_t)data[middle].text[depth] < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Narrows the sorted list byte by byte; remembers the longest token that is complete. */
static const lp_added *longest_at(const lp_added_set *set, const char *text, size_t size) {
  const lp_added *data = set->list.data, *found = NULL;
  size_t low = 0, high = set->list.count;
  for (size_t depth = 0; low < high; depth++) {
    /* Tokens that end here sort first; equal texts were made by the normalizer, and the first id wins. */
    if (data[low].size == depth) {
      if (depth > 0) found = &data[low];
      while (low < high && data[low].size == depth)
        low++;
    }
    if (depth == size || low == high) break;
    unsigned byte = (uint8_t)text[depth];
    low = lower_bound(data, low, high, depth, byte);
    high = lower_bound(data, low, high, depth, byte + 1);
  }
  return found;
}

static uint32_t code_before(const char *text, size_t at, size_t *start) {
  size_t bad;
  *start = at - 1;
  while (*start > 0 && ((uint8_t)text[*start] & 0xC0) == 0x80)
    (*start)--;
  return lp_utf8_read(text + *start, lp_utf8_length(text + *start, at - *start, &bad));
}

static uint32_t code_after(const char *text, size_t at, size_t size, size_t *end) {
  size_t bad, length = lp_utf8_length(text + at, size - at, &bad);
  *end = at + length;
  return lp_utf8_read(text + at, length);
}

static bool is_word(lp_matcher *word, const char *text, size_t start, size_t end) {
  size_t from, to;
  lp_matcher_reset(word, text + start, end - start);
  return lp_matcher_next(word, &from, &to) > 0;
}

static bool stands_alone(const lp_pattern *word, const char *text, size_t size, size_t start, size_t end) {
  lp_matcher matcher;
  lp_matcher_init(&matcher, word);
  size_t before = start, after = end;
  if (start > 0) code_before(text, start, &before);
  if (end < size) code_after(text, end, size, &after);
  bool alone = !is_word(&matcher, text, before, start) && !is_word(&matcher, text, end, after);
  lp_matcher_free(&matcher);
  return alone;
}

static void add_text(lp_work *work, lp_piece piece, size_t start, size_t end) {
  if (end <= start) return;
  lp_piece part = {.start = piece.start + start, .size = end - start, .token = -1, .first = piece.first && start == 0};
  lp_vec_push(&work->next.list, part);
}

static void split_piece(const lp_added_set *set, lp_work *work, lp_piece piece) {
  const char *text = lp_buf_text(&work->now.text) + piece.start;
  size_t size = piece.size, done = 0, at = 0;
  while (at < size) {
    const lp_added *token = set->starts[(uint8_t)text[at]] ? longest_at(set, text + at, size - at) : NULL;
    if (!token) {
      at++;
      continue;
    }
    size_t start = at, end = at + token->size, next;
    at = end;
    if (start < done || (token->single_word && !stands_alone(set->word, text, size, start, end))) continue;
    while (token->lstrip && start > done && lp_utf8_is_space(code_before(text, start, &next)))
      start = next;
    while (token->rstrip && end < size && lp_utf8_is_space(code_after(text, end, size, &next)))
      end = next;
    add_text(work, piece, done, start);
    lp_piece part = {.start = piece.start + start, .size = end - start, .token = token->id};
    lp_vec_push(&work->next.list, part);
    done = end;
  }
  add_text(work, piece, done, size);
}

void lp_added_split(const lp_added_set *set, lp_work *work) {
  if (set->list.count == 0) return;
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    lp_piece piece = work->now.list.data[i];
    if (piece.token >= 0)
      lp_vec_push(&work->next.list, piece);
    else
      split_piece(set, work, piece);
  }
  lp_work_swap_list(work);
}
