/* Finds added tokens in the text before any other step: the leftmost first, and the longest of several. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/tokenizer/added.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/steps.h"

/* \w of Rust's regex, which the reference uses for the neighbours of a token (not Oniguruma's) */
#define WORD "[\\w\\p{Join_Control}]"

void lp_added_complete(lp_added_set *set) {
  char *why = NULL;
  for (size_t i = 0; i < set->list.count; i++)
    lp_vec_push(&set->prefixes.list, ((lp_prefix){set->list.data[i].text, set->list.data[i].size, (int32_t)i}));
  lp_prefixes_complete(&set->prefixes);
  set->word = lp_pattern_create(WORD, sizeof WORD - 1, false, &why);
  assert(set->word);
}

void lp_added_free(lp_added_set *set) {
  lp_pattern_free(set->word);
  lp_prefixes_free(&set->prefixes);
  lp_vec_free(&set->list);
}

static const lp_added *longest_at(const lp_added_set *set, const char *text, size_t size) {
  lp_prefix_walk walk = {.set = &set->prefixes};
  const lp_added *found = NULL;
  for (size_t at = 0; at < size && lp_prefix_step(&walk, (uint8_t)text[at]); at++)
    if (walk.found) found = &set->list.data[walk.found->value];
  return found;
}

bool lp_added_begins(const lp_added_set *set, const char *text, size_t size) {
  lp_prefix_walk walk = {.set = &set->prefixes};
  for (size_t at = 0; at < size && lp_prefix_step(&walk, (uint8_t)text[at]); at++)
    if (walk.found && set->list.data[walk.found->value].special) return true;
  return false;
}

static uint32_t code_before(const char *text, size_t at, size_t *start) {
  uint32_t code;
  *start = at - 1;
  while (((uint8_t)text[*start] & 0xC0) == 0x80)
    (*start)--;
  (void)lp_utf8_next(text + *start, &code);
  return code;
}

static uint32_t code_after(const char *text, size_t at, size_t *end) {
  uint32_t code;
  *end = at + lp_utf8_next(text + at, &code);
  return code;
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
  if (end < size) code_after(text, end, &after);
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
    const lp_added *token = longest_at(set, text + at, size - at);
    if (!token) {
      at++;
      continue;
    }
    size_t start = at, end = at + token->size, next;
    at = end;
    if (start < done || (token->single_word && !stands_alone(set->word, text, size, start, end))) continue;
    while (token->lstrip && start > done && lp_utf8_is_space(code_before(text, start, &next)))
      start = next;
    while (token->rstrip && end < size && lp_utf8_is_space(code_after(text, end, &next)))
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
