/* Methods of texts in chat templates, with Python's behaviour. Methods that change the case of letters refuse letters
 * beyond ASCII. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/tokenizer/chat_template.h"

typedef enum { LOWER, UPPER, CAPITALIZE, TITLE } letter_case;

static lp_status change_case(const lp_chat *chat, const lp_chat_node *node, const char *name,
                             const lp_chat_value *value, letter_case how, lp_chat_value *out) {
  char *text = lp_arena_strndup(chat->arena, value->text, value->size);
  bool in_word = false;
  for (size_t i = 0; i < value->size; i++) {
    char c = text[i];
    if ((uint8_t)c >= 0x80) return lp_chat_error(chat, node->at, "'%s' is supported for ASCII text only", name);
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool upper = how == UPPER || (how == CAPITALIZE && i == 0) || (how == TITLE && !in_word);
    if (letter) text[i] = (char)(upper ? c & ~0x20 : c | 0x20);
    in_word = letter;
  }
  *out = lp_chat_text(text, value->size);
  return LP_OK;
}

static bool is_in_set(const char *text, size_t length, const lp_chat_value *set) {
  uint32_t code = lp_utf8_read(text, length);
  if (!set) return lp_utf8_is_space(code) || (code >= 0x1C && code <= 0x1F);
  lp_chat_value character = lp_chat_text(text, length);
  return lp_chat_find(set, &character, 0) != NULL;
}

/* The character that ends before `end`, or starts at `start` when `end` is SIZE_MAX; texts may not be UTF-8. */
static size_t character_at(const char *text, size_t size) {
  size_t bad, length = lp_utf8_length(text, size, &bad);
  return length;
}

static lp_chat_value strip(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *set, bool left,
                           bool right) {
  size_t start = 0, end = value->size;
  while (left && start < end) {
    size_t length = character_at(value->text + start, end - start);
    if (length == 0 || !is_in_set(value->text + start, length, set)) break;
    start += length;
  }
  while (right && end > start) {
    size_t at = end - 1;
    while (at > start && ((uint8_t)value->text[at] & 0xC0) == 0x80)
      at--;
    size_t length = character_at(value->text + at, end - at);
    if (length != end - at || !is_in_set(value->text + at, length, set)) break;
    end = at;
  }
  return lp_chat_text(lp_arena_strndup(chat->arena, value->text + start, end - start), end - start);
}

/* Replaces at most `most` occurrences; < 0: all. The caller refuses an empty `old`, which Python finds between all
 * characters. */
static lp_chat_value replace(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *old,
                             const lp_chat_value *fresh, int64_t most) {
  lp_buf text = {0};
  size_t done = 0;
  for (const char *hit; most != 0 && (hit = lp_chat_find(value, old, done)); most--) {
    lp_buf_append(&text, value->text + done, (size_t)(hit - value->text) - done);
    lp_buf_append(&text, fresh->text, fresh->size);
    done = (size_t)(hit - value->text) + old->size;
  }
  lp_buf_append(&text, value->text + done, value->size - done);
  return lp_chat_keep(chat, &text);
}

typedef LP_VEC(lp_chat_value) value_list;

static lp_chat_value keep_list(const lp_chat *chat, value_list *parts) {
  const lp_chat_value *items = lp_arena_copy(chat->arena, parts->data, parts->count * sizeof *parts->data);
  lp_chat_value list = lp_chat_list(items, parts->count);
  lp_vec_free(parts);
  return list;
}

static void push_part(const lp_chat *chat, value_list *parts, const char *text, size_t size) {
  lp_vec_push(parts, lp_chat_text(lp_arena_strndup(chat->arena, text, size), size));
}

static lp_chat_value split_at(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *by, int64_t most) {
  value_list parts = {0};
  size_t done = 0;
  for (const char *hit; most != 0 && (hit = lp_chat_find(value, by, done)); most--) {
    push_part(chat, &parts, value->text + done, (size_t)(hit - value->text) - done);
    done = (size_t)(hit - value->text) + by->size;
  }
  push_part(chat, &parts, value->text + done, value->size - done);
  return keep_list(chat, &parts);
}

static lp_chat_value split_from_right(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *by,
                                      int64_t most) {
  value_list parts = {0};
  size_t end = value->size, at = end >= by->size ? end - by->size + 1 : 0;
  while (most != 0 && at-- > 0) {
    if (memcmp(value->text + at, by->text, by->size) != 0) continue;
    push_part(chat, &parts, value->text + at + by->size, end - at - by->size);
    end = at;
    at = at + 1 >= by->size ? at + 1 - by->size : 0;
    most--;
  }
  push_part(chat, &parts, value->text, end);
  for (size_t i = 0; i < parts.count / 2; i++) {
    lp_chat_value left = parts.data[i];
    parts.data[i] = parts.data[parts.count - 1 - i];
    parts.data[parts.count - 1 - i] = left;
  }
  return keep_list(chat, &parts);
}

/* Splits the text at white space. */
static lp_chat_value split_words(const lp_chat *chat, const lp_chat_value *value) {
  value_list parts = {0};
  size_t start = 0, at = 0, length;
  for (; at < value->size; at += length) {
    length = character_at(value->text + at, value->size - at);
    if (length == 0) {
      length = 1;
    } else if (is_in_set(value->text + at, length, NULL)) {
      if (at > start) push_part(chat, &parts, value->text + start, at - start);
      start = at + length;
    }
  }
  if (at > start) push_part(chat, &parts, value->text + start, at - start);
  return keep_list(chat, &parts);
}

static lp_chat_value split_lines(const lp_chat *chat, const lp_chat_value *value) {
  value_list parts = {0};
  size_t start = 0;
  for (size_t at = 0; at < value->size; at++) {
    if (value->text[at] != '\n' && value->text[at] != '\r') continue;
    push_part(chat, &parts, value->text + start, at - start);
    if (value->text[at] == '\r' && at + 1 < value->size && value->text[at + 1] == '\n') at++;
    start = at + 1;
  }
  if (start < value->size) push_part(chat, &parts, value->text + start, value->size - start);
  return keep_list(chat, &parts);
}

static bool starts_with(const lp_chat_value *value, const lp_chat_value *start) {
  return start->kind == LP_CHAT_STRING && value->size >= start->size &&
         memcmp(value->text, start->text, start->size) == 0;
}

static bool ends_with(const lp_chat_value *value, const lp_chat_value *end) {
  return end->kind == LP_CHAT_STRING && value->size >= end->size &&
         memcmp(value->text + value->size - end->size, end->text, end->size) == 0;
}

/* `what` may be a list of texts, of which one must match. */
static bool any_matches(const lp_chat_value *value, const lp_chat_value *what,
                        bool (*matches)(const lp_chat_value *value, const lp_chat_value *what)) {
  if (what->kind != LP_CHAT_LIST) return matches(value, what);
  for (size_t i = 0; i < what->size; i++)
    if (matches(value, &what->items[i])) return true;
  return false;
}

static size_t count_characters(const char *text, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++)
    count += ((uint8_t)text[i] & 0xC0) != 0x80;
  return count;
}

static lp_chat_value find(const lp_chat_value *value, const lp_chat_value *what) {
  const char *hit = lp_chat_find(value, what, 0);
  return lp_chat_number(hit ? (int64_t)count_characters(value->text, (size_t)(hit - value->text)) : -1);
}

static lp_chat_value count_hits(const lp_chat_value *value, const lp_chat_value *what) {
  int64_t count = 0;
  for (const char *hit = lp_chat_find(value, what, 0); hit && what->size > 0; count++)
    hit = lp_chat_find(value, what, (size_t)(hit - value->text) + what->size);
  return lp_chat_number(count);
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

static lp_status strip_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                              const char *name, const lp_chat_value *set, lp_chat_value *out) {
  if (set && set->kind == LP_CHAT_NONE) set = NULL;
  if (set && set->kind != LP_CHAT_STRING)
    return lp_chat_error(chat, node->at, "'%s' by %s is not supported", name, lp_chat_kind_name(set));
  *out = strip(chat, object, set, name[0] != 'r', name[0] != 'l');
  return LP_OK;
}

/* Methods that search for one text. */
static bool search_method(const lp_chat *chat, const lp_chat_value *object, const char *name, const lp_chat_value *what,
                          lp_chat_value *out) {
  bool text = what->kind == LP_CHAT_STRING;
  if (lp_streq(name, "startswith"))
    *out = lp_chat_bool(any_matches(object, what, starts_with));
  else if (lp_streq(name, "endswith"))
    *out = lp_chat_bool(any_matches(object, what, ends_with));
  else if (text && lp_streq(name, "find"))
    *out = find(object, what);
  else if (text && lp_streq(name, "count"))
    *out = count_hits(object, what);
  else if (text && (lp_streq(name, "removeprefix") || lp_streq(name, "removesuffix"))) {
    bool front = lp_streq(name, "removeprefix"), hit = front ? starts_with(object, what) : ends_with(object, what);
    size_t cut = hit ? what->size : 0;
    *out = lp_chat_text(lp_arena_strndup(chat->arena, object->text + (front ? cut : 0), object->size - cut),
                        object->size - cut);
  } else {
    return false;
  }
  return true;
}

static bool split_method(const lp_chat *chat, const lp_chat_value *object, const char *name, const lp_chat_args *args,
                         lp_chat_value *out) {
  const lp_chat_value *by = lp_chat_arg(args, 0, "sep"), *limit = lp_chat_arg(args, 1, "maxsplit");
  int64_t most = limit && limit->kind == LP_CHAT_NUMBER ? limit->integer : -1;
  bool words = !by || by->kind == LP_CHAT_NONE;
  if (lp_streq(name, "splitlines") && args->count == 0)
    *out = split_lines(chat, object);
  else if (words && !limit && (lp_streq(name, "split") || lp_streq(name, "rsplit")))
    *out = split_words(chat, object);
  else if (!words && by->kind == LP_CHAT_STRING && by->size > 0 && lp_streq(name, "split"))
    *out = split_at(chat, object, by, most);
  else if (!words && by->kind == LP_CHAT_STRING && by->size > 0 && lp_streq(name, "rsplit"))
    *out = split_from_right(chat, object, by, most);
  else
    return false;
  return true;
}

static bool is_digits(const lp_chat_value *value) {
  for (size_t i = 0; i < value->size; i++)
    if (value->text[i] < '0' || value->text[i] > '9') return false;
  return value->size > 0;
}

lp_status lp_chat_text_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                              const char *name, const lp_chat_args *args, bool *known, lp_chat_value *out) {
  static const char *const cases[] = {
      [LOWER] = "lower", [UPPER] = "upper", [CAPITALIZE] = "capitalize", [TITLE] = "title"};
  const lp_chat_value *first = lp_chat_arg(args, 0, ""), *second = lp_chat_arg(args, 1, ""),
                      *third = lp_chat_arg(args, 2, "count");
  *known = true;
  for (size_t i = 0; i < LP_COUNT(cases) && args->count == 0; i++)
    if (lp_streq(name, cases[i])) return change_case(chat, node, name, object, (letter_case)i, out);
  if (args->count <= 1 && (lp_streq(name, "strip") || lp_streq(name, "lstrip") || lp_streq(name, "rstrip")))
    return strip_method(chat, node, object, name, first, out);
  bool texts = first && second && first->kind == LP_CHAT_STRING && second->kind == LP_CHAT_STRING;
  if (texts && first->size > 0 && lp_streq(name, "replace")) {
    *out = replace(chat, object, first, second, third && third->kind == LP_CHAT_NUMBER ? third->integer : -1);
    return LP_OK;
  }
  if (args->count == 0 && lp_streq(name, "isdigit")) {
    *out = lp_chat_bool(is_digits(object));
    return LP_OK;
  }
  if (args->count == 1 && first && search_method(chat, object, name, first, out)) return LP_OK;
  *known = split_method(chat, object, name, args, out);
  return LP_OK;
}
