/* Filters and methods of chat templates. As Python does them; beyond ASCII they do not change letters but refuse. */
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

static lp_chat_value replace(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *old,
                             const lp_chat_value *fresh) {
  lp_buf text = {0};
  size_t done = 0;
  for (const char *hit; (hit = lp_chat_find(value, old, done)); done = (size_t)(hit - value->text) + old->size) {
    lp_buf_append(&text, value->text + done, (size_t)(hit - value->text) - done);
    lp_buf_append(&text, fresh->text, fresh->size);
  }
  lp_buf_append(&text, value->text + done, value->size - done);
  return lp_chat_keep(chat, &text);
}

static lp_chat_value split(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *by) {
  LP_VEC(lp_chat_value) parts = {0};
  size_t done = 0;
  for (;;) {
    const char *hit = lp_chat_find(value, by, done);
    size_t end = hit ? (size_t)(hit - value->text) : value->size;
    lp_vec_push(&parts, lp_chat_text(lp_arena_strndup(chat->arena, value->text + done, end - done), end - done));
    if (!hit) break;
    done = end + by->size;
  }
  lp_chat_value list = {.kind = LP_CHAT_LIST, .size = parts.count};
  list.items = lp_arena_copy(chat->arena, parts.data, parts.count * sizeof *parts.data);
  lp_vec_free(&parts);
  return list;
}

/* As json.dumps(text, ensure_ascii=False) */
static lp_chat_value to_json(const lp_chat *chat, const lp_chat_value *value) {
  static const char names[] = "bfnrt\"\\", values[] = "\b\f\n\r\t\"\\";
  lp_buf text = {0};
  lp_buf_puts(&text, "\"");
  for (size_t i = 0; i < value->size; i++) {
    char c = value->text[i];
    const char *escape = c == '\0' ? NULL : strchr(values, c);
    if (escape)
      lp_buf_printf(&text, "\\%c", names[escape - values]);
    else if ((uint8_t)c < 0x20)
      lp_buf_printf(&text, "\\u%04x", (unsigned)(uint8_t)c);
    else
      lp_buf_append(&text, &c, 1);
  }
  lp_buf_puts(&text, "\"");
  return lp_chat_keep(chat, &text);
}

static size_t count_characters(const lp_chat_value *value) {
  size_t count = 0;
  for (size_t i = 0; i < value->size; i++)
    count += ((uint8_t)value->text[i] & 0xC0) != 0x80;
  return count;
}

/* What is both a filter and a method of texts; *known is false when `name` is none of these. */
static lp_status text_operation(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                const lp_chat_value *value, const lp_chat_value *args, size_t count, bool *known,
                                lp_chat_value *out) {
  *known = true;
  bool texts = true;
  for (size_t i = 0; i < count; i++)
    texts = texts && args[i].kind == LP_CHAT_STRING;
  if (count == 0 && lp_streq(name, "lower")) return change_case(chat, node, name, value, LOWER, out);
  if (count == 0 && lp_streq(name, "upper")) return change_case(chat, node, name, value, UPPER, out);
  if (count == 0 && lp_streq(name, "capitalize")) return change_case(chat, node, name, value, CAPITALIZE, out);
  if (count == 0 && lp_streq(name, "title")) return change_case(chat, node, name, value, TITLE, out);
  if (count == 2 && texts && args[0].size > 0 && lp_streq(name, "replace")) {
    *out = replace(chat, value, &args[0], &args[1]);
    return LP_OK;
  }
  *known = false;
  return LP_OK;
}

static lp_status unsupported(const lp_chat *chat, const lp_chat_node *node, const char *what, const char *name,
                             const lp_chat_value *value) {
  return lp_chat_error(chat, node->at, "the %s '%s' of %s with these arguments is not supported", what, name,
                       lp_chat_kind_name(value));
}

static lp_status text_filter(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                             const lp_chat_value *args, size_t count, lp_chat_value *out) {
  const char *name = node->text;
  bool known;
  if (lp_streq(name, "trim") && (count == 0 || (count == 1 && args[0].kind == LP_CHAT_STRING))) {
    *out = strip(chat, value, count == 1 ? args : NULL, true, true);
    return LP_OK;
  }
  if (count == 0 && (lp_streq(name, "length") || lp_streq(name, "count"))) {
    *out = lp_chat_number((int64_t)count_characters(value));
    return LP_OK;
  }
  if (count == 0 && lp_streq(name, "tojson")) {
    *out = to_json(chat, value);
    return LP_OK;
  }
  if (count == 0 && (lp_streq(name, "string") || lp_streq(name, "safe"))) {
    *out = *value;
    return LP_OK;
  }
  LP_TRY(text_operation(chat, node, name, value, args, count, &known, out));
  return known ? LP_OK : unsupported(chat, node, "filter", name, value);
}

lp_status lp_chat_filter(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                         const lp_chat_value *args, size_t count, lp_chat_value *out) {
  const char *name = node->text;
  if (count == 1 && (lp_streq(name, "default") || lp_streq(name, "d"))) {
    *out = value->kind == LP_CHAT_UNDEFINED ? args[0] : *value;
    return LP_OK;
  }
  if (value->kind == LP_CHAT_STRING) return text_filter(chat, node, value, args, count, out);
  if (count == 0 && lp_chat_is_integral(value) && lp_streq(name, "string")) {
    lp_buf text = {0};
    LP_TRY(lp_chat_print(chat, node->at, value, &text));
    *out = lp_chat_keep(chat, &text);
    return LP_OK;
  }
  if (count > 0 || value->kind != LP_CHAT_LIST) return unsupported(chat, node, "filter", name, value);
  *out = (lp_chat_value){0};
  if (lp_streq(name, "length") || lp_streq(name, "count"))
    *out = lp_chat_number((int64_t)value->size);
  else if (lp_streq(name, "list"))
    *out = *value;
  else if (!lp_streq(name, "first") && !lp_streq(name, "last"))
    return unsupported(chat, node, "filter", name, value);
  else if (value->size > 0)
    *out = value->items[lp_streq(name, "first") ? 0 : value->size - 1];
  return LP_OK;
}

static bool starts_with(const lp_chat_value *value, const lp_chat_value *start) {
  return value->size >= start->size && memcmp(value->text, start->text, start->size) == 0;
}

static bool ends_with(const lp_chat_value *value, const lp_chat_value *end) {
  return value->size >= end->size && memcmp(value->text + value->size - end->size, end->text, end->size) == 0;
}

static lp_status text_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                             const char *name, const lp_chat_value *args, size_t count, lp_chat_value *out) {
  bool known, one_text = count == 1 && args[0].kind == LP_CHAT_STRING;
  bool left = lp_streq(name, "lstrip"), right = lp_streq(name, "rstrip"), both = lp_streq(name, "strip");
  if ((left || right || both) && (count == 0 || one_text))
    *out = strip(chat, object, count == 1 ? args : NULL, left || both, right || both);
  else if (one_text && args[0].size > 0 && lp_streq(name, "split"))
    *out = split(chat, object, &args[0]);
  else if (one_text && lp_streq(name, "startswith"))
    *out = lp_chat_bool(starts_with(object, &args[0]));
  else if (one_text && lp_streq(name, "endswith"))
    *out = lp_chat_bool(ends_with(object, &args[0]));
  else {
    LP_TRY(text_operation(chat, node, name, object, args, count, &known, out));
    return known ? LP_OK : unsupported(chat, node, "method", name, object);
  }
  return LP_OK;
}

lp_status lp_chat_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object, const char *name,
                         const lp_chat_value *args, size_t count, lp_chat_value *out) {
  if (object->kind == LP_CHAT_STRING) return text_method(chat, node, object, name, args, count, out);
  bool get = object->kind == LP_CHAT_MESSAGE && lp_streq(name, "get") && (count == 1 || count == 2);
  if (!get || args[0].kind != LP_CHAT_STRING) return unsupported(chat, node, "method", name, object);
  *out = lp_chat_is_key(args[0].text) ? lp_chat_message_member(object->message, args[0].text)
         : count == 2                 ? args[1]
                                      : (lp_chat_value){.kind = LP_CHAT_NONE};
  return LP_OK;
}
