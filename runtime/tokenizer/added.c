/* Finds added tokens in the text before any other step: the leftmost first, and the longest of several. */

#include "runtime/tokenizer/added.h"
#include "base/utf8.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/steps.h"

void lp_added_complete(lp_added_set *set) {
  for (size_t i = 0; i < set->list.count; i++)
    lp_vec_push(&set->prefixes.list, ((lp_prefix){set->list.data[i].text, set->list.data[i].size, (int32_t)i}));
  lp_prefixes_complete(&set->prefixes);
}

void lp_added_free(lp_added_set *set) {
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

static bool stands_alone(const char *text, size_t size, size_t start, size_t end) {
  size_t next;
  return !(start > 0 && lp_pattern_is_word(code_before(text, start, &next))) &&
         !(end < size && lp_pattern_is_word(code_after(text, end, &next)));
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
    if (token->single_word && !stands_alone(text, size, start, end)) continue;
    if (token->lstrip && start < done) start = done; /* the token before took what is there */
    while (token->lstrip && start > done && lp_utf8_is_space(code_before(text, start, &next)))
      start = next;
    while (token->rstrip && end < size && lp_utf8_is_space(code_after(text, end, &next)))
      end = next;
    lp_work_add_part(work, piece, done, start, -1);
    lp_work_add_part(work, piece, start, end, token->id);
    done = end;
  }
  lp_work_add_part(work, piece, done, size, -1);
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
