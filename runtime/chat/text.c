/* Methods of texts in chat templates, with Python's behaviour. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "runtime/chat/filters.h"

/* ---- the case of letters ----------------------------------------------------------------------------------------- */

typedef enum { LOWER, UPPER, CAPITALIZE, TITLE, TITLE_FILTER } letter_case;

/* The characters that become several in capital letters (Unicode's SpecialCasing.txt), first and last of each range. */
static bool has_long_capital(uint32_t code) {
  static const uint16_t ranges[][2] = {
      {0x149, 0x149},   {0x1F0, 0x1F0},   {0x390, 0x390},   {0x3B0, 0x3B0},   {0x587, 0x587},   {0x1E96, 0x1E9A},
      {0x1F50, 0x1F56}, {0x1F80, 0x1FAF}, {0x1FB2, 0x1FB7}, {0x1FBC, 0x1FBC}, {0x1FC2, 0x1FC7}, {0x1FCC, 0x1FCC},
      {0x1FD2, 0x1FD7}, {0x1FE2, 0x1FE7}, {0x1FF2, 0x1FF7}, {0x1FFC, 0x1FFC}, {0xFB00, 0xFB17}};
  for (size_t i = 0; i < LP_COUNT(ranges); i++)
    if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
  return false;
}

static bool is_cased(uint32_t code) {
  utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

/* Appends the letter; false: Unicode's rules for it are more than a table of letters (final sigma, ligatures). */
static bool write_case(uint32_t code, bool upper, bool title, lp_buf *out) {
  utf8proc_int32_t letter = (utf8proc_int32_t)code;
  if (upper && code == 0xDF) {
    lp_buf_puts(out, title ? "Ss" : "SS");
    return true;
  }
  if (upper ? has_long_capital(code) : code == 0x3A3 || code == 0x130) return false;
  lp_utf8_write((uint32_t)(!upper  ? utf8proc_tolower(letter)
                           : title ? utf8proc_totitle(letter)
                                   : utf8proc_toupper(letter)),
                out);
  return true;
}

/* Tells whether the filter `title` begins a word after the character. */
static bool ends_word(uint32_t code) {
  return lp_utf8_is_space(code) || (code < 0x80 && strchr("-({[<", (int)code));
}

static lp_status change_case(const lp_chat *chat, const lp_chat_node *node, const char *name,
                             const lp_chat_value *value, letter_case how, lp_chat_value *out) {
  lp_buf text = {.arena = chat->arena};
  bool in_word = false, done = lp_chat_charge_text(chat, 2 * value->size);
  for (size_t i = 0, length, bad; i < value->size && done; i += length) {
    length = lp_utf8_length(value->text + i, value->size - i, &bad);
    bool valid = length > 0;
    if (!valid) length = bad;
    uint32_t code = valid ? lp_utf8_read(value->text + i, length) : 0;
    bool begins = (how == CAPITALIZE && i == 0) || ((how == TITLE || how == TITLE_FILTER) && !in_word);
    if (valid)
      done = write_case(code, how == UPPER || begins, how != UPPER && how != TITLE_FILTER, &text);
    else
      lp_buf_append(&text, value->text + i, length);
    in_word = how == TITLE_FILTER ? !ends_word(code) : is_cased(code);
  }
  *out = lp_chat_keep(&text);
  return done ? LP_OK : lp_chat_error(chat, node->at, "'%s' does not support all letters of this text", name);
}

lp_status lp_chat_title(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value, lp_chat_value *out) {
  return change_case(chat, node, "title", value, TITLE_FILTER, out);
}

lp_status lp_chat_lower(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value, lp_chat_value *out) {
  return change_case(chat, node, "lower", value, LOWER, out);
}

/* ---- white space, parts and hits --------------------------------------------------------------------------------- */

static bool is_in_set(const lp_chat *chat, const char *text, size_t length, const lp_chat_value *set) {
  uint32_t code = lp_utf8_read(text, length);
  if (!set) return lp_utf8_is_space(code) || (code >= 0x1C && code <= 0x1F);
  lp_chat_value character = lp_chat_text(text, length);
  return lp_chat_find(chat, set, &character, 0) != NULL;
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
    if (length == 0 || !is_in_set(chat, value->text + start, length, set)) break;
    start += length;
  }
  while (right && end > start) {
    size_t at = end - 1;
    while (at > start && ((uint8_t)value->text[at] & 0xC0) == 0x80)
      at--;
    size_t length = character_at(value->text + at, end - at);
    if (length != end - at || !is_in_set(chat, value->text + at, length, set)) break;
    end = at;
  }
  (void)lp_chat_charge_text(chat, value->size - (end - start));
  return lp_chat_text(value->text + start, end - start);
}

/* Replaces at most `most` occurrences; < 0: all. The caller refuses an empty `old`, which Python finds between all
 * characters. */
static lp_chat_value replace(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *old,
                             const lp_chat_value *fresh, int64_t most) {
  lp_buf text = {.arena = chat->arena};
  size_t done = 0;
  for (const char *hit; most != 0 && (hit = lp_chat_find(chat, value, old, done)); most--) {
    lp_buf_append(&text, value->text + done, (size_t)(hit - value->text) - done);
    lp_buf_append(&text, fresh->text, fresh->size);
    done = (size_t)(hit - value->text) + old->size;
  }
  lp_buf_append(&text, value->text + done, value->size - done);
  return lp_chat_keep(&text);
}

static lp_chat_value list_of(const lp_buf *parts) {
  return lp_chat_list((const void *)parts->data, parts->size / sizeof(lp_chat_value));
}

static void push_part(const lp_chat *chat, lp_buf *parts, const char *text, size_t size) {
  const lp_chat_value part = lp_chat_text(text, size);
  if (lp_chat_charge(chat, 1)) lp_buf_append(parts, &part, sizeof part);
}

static lp_chat_value split_at(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *by, int64_t most) {
  lp_buf parts = {.arena = chat->arena};
  size_t done = 0;
  for (const char *hit; most != 0 && (hit = lp_chat_find(chat, value, by, done)); most--) {
    push_part(chat, &parts, value->text + done, (size_t)(hit - value->text) - done);
    done = (size_t)(hit - value->text) + by->size;
  }
  push_part(chat, &parts, value->text + done, value->size - done);
  return list_of(&parts);
}

static lp_chat_value split_from_right(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *by,
                                      int64_t most) {
  lp_buf parts = {.arena = chat->arena};
  size_t end = value->size, at = end >= by->size ? end - by->size + 1 : 0;
  while (most != 0 && at-- > 0 && lp_chat_charge_bytes(chat, by->size)) {
    if (memcmp(value->text + at, by->text, by->size) != 0) continue;
    push_part(chat, &parts, value->text + at + by->size, end - at - by->size);
    end = at;
    at = at + 1 >= by->size ? at + 1 - by->size : 0;
    most--;
  }
  push_part(chat, &parts, value->text, end);
  lp_chat_value *items = (void *)parts.data;
  for (size_t i = 0, count = list_of(&parts).size; i < count / 2; i++) {
    lp_chat_value left = items[i];
    items[i] = items[count - 1 - i];
    items[count - 1 - i] = left;
  }
  return list_of(&parts);
}

/* Splits the text at white space, `most` times at most; < 0: everywhere. */
static lp_chat_value split_words(const lp_chat *chat, const lp_chat_value *value, int64_t most) {
  lp_buf parts = {.arena = chat->arena};
  size_t start = 0, at = 0, length;
  (void)lp_chat_charge_text(chat, value->size);
  for (; at < value->size; at += length) {
    length = character_at(value->text + at, value->size - at);
    if (length == 0) {
      length = 1;
    } else if (is_in_set(chat, value->text + at, length, NULL)) {
      if (at > start) push_part(chat, &parts, value->text + start, at - start);
      start = at + length;
    } else if (most >= 0 && at == start && list_of(&parts).size == (size_t)most) {
      at = value->size;
      break;
    }
  }
  if (at > start) push_part(chat, &parts, value->text + start, at - start);
  return list_of(&parts);
}

static lp_chat_value split_lines(const lp_chat *chat, const lp_chat_value *value) {
  lp_buf parts = {.arena = chat->arena};
  size_t start = 0;
  (void)lp_chat_charge_text(chat, value->size);
  for (size_t at = 0; at < value->size; at++) {
    if (value->text[at] != '\n' && value->text[at] != '\r') continue;
    push_part(chat, &parts, value->text + start, at - start);
    if (value->text[at] == '\r' && at + 1 < value->size && value->text[at + 1] == '\n') at++;
    start = at + 1;
  }
  if (start < value->size) push_part(chat, &parts, value->text + start, value->size - start);
  return list_of(&parts);
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
static bool any_matches(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *what,
                        bool (*matches)(const lp_chat_value *value, const lp_chat_value *what)) {
  if (!lp_chat_charge_bytes(chat, what->size)) return false;
  if (what->kind != LP_CHAT_LIST) return matches(value, what);
  for (size_t i = 0; i < what->size && lp_chat_charge_bytes(chat, what->items[i].size); i++)
    if (matches(value, &what->items[i])) return true;
  return false;
}

static lp_chat_value find(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *what) {
  const char *hit = lp_chat_find(chat, value, what, 0);
  return lp_chat_number(hit ? (int64_t)lp_chat_count_characters(chat, value->text, (size_t)(hit - value->text)) : -1);
}

static lp_chat_value count_hits(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *what) {
  int64_t count = 0;
  for (const char *hit = lp_chat_find(chat, value, what, 0); hit && what->size > 0; count++)
    hit = lp_chat_find(chat, value, what, (size_t)(hit - value->text) + what->size);
  return lp_chat_number(count);
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

/* The argument that a field of str.format names: by position, by number or by name; NULL: none. */
static const lp_chat_value *field_of(const lp_chat_args *args, const char *name, size_t *next) {
  if (*name == '\0') {
    size_t index = (*next)++;
    return index < args->count && !args->name[index] ? &args->value[index] : NULL;
  }
  if (name[strspn(name, "0123456789")] != '\0') return lp_chat_arg(args, LP_CHAT_MOST_ARGS, name);
  size_t index = strtoul(name, NULL, 10);
  return index < args->count && !args->name[index] ? &args->value[index] : NULL;
}

/* str.format with fields that have neither conversion nor format. */
static lp_status format_fields(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                               const lp_chat_args *args, lp_chat_value *out) {
  lp_buf text = {.arena = chat->arena};
  lp_status status = LP_OK;
  size_t next = 0;
  for (size_t i = 0; i < object->size && status == LP_OK; i++) {
    const char *at = object->text + i;
    if (*at != '{' && *at != '}') {
      lp_buf_append(&text, at, 1);
    } else if (i + 1 < object->size && at[1] == *at) {
      lp_buf_append(&text, at, 1);
      i++;
    } else {
      const char *end = *at == '{' ? memchr(at, '}', object->size - i) : NULL;
      const char *name = end ? lp_chat_strndup(chat, at + 1, (size_t)(end - at) - 1) : "!";
      const lp_chat_value *value = strpbrk(name, "!:.[{") ? NULL : field_of(args, name, &next);
      status = value ? lp_chat_print(chat, node->at, value, &text)
                     : lp_chat_unsupported(chat, node, "method", "format", object);
      i = value ? (size_t)(end - object->text) : i;
    }
  }
  *out = lp_chat_keep(&text);
  return status;
}

lp_status lp_chat_format(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *format,
                         const lp_chat_value *values, size_t count, lp_chat_value *out) {
  lp_buf text = {.arena = chat->arena};
  lp_status status = LP_OK;
  size_t next = 0;
  for (size_t i = 0; i < format->size && status == LP_OK; i++) {
    char c = format->text[i], kind = c == '%' && i + 1 < format->size ? format->text[++i] : '\0';
    bool number = kind == 'd' && next < count && lp_chat_is_integral(&values[next]);
    if (c != '%' || kind == '%')
      lp_buf_append(&text, &c, 1);
    else if (number)
      lp_buf_printf(&text, "%" PRId64, values[next++].integer);
    else if (kind == 's' && next < count)
      status = lp_chat_print(chat, node->at, &values[next++], &text);
    else
      status = lp_chat_error(chat, node->at, "this format is not supported");
  }
  *out = lp_chat_keep(&text);
  if (status == LP_OK && next < count) return lp_chat_error(chat, node->at, "the format has too many values");
  return status;
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

static lp_status strip_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                              const char *name, const lp_chat_value *set, lp_chat_value *out) {
  if (set && set->kind == LP_CHAT_NONE) set = NULL;
  if (set && set->kind != LP_CHAT_STRING)
    return lp_chat_error(chat, node->at, "'%s' by %s is not supported", name, lp_chat_kind_name(set));
  *out = strip(chat, object, set, name[0] != 'r', name[0] != 'l');
  out->safe = object->safe;
  return LP_OK;
}

/* Methods that search for one text. */
static bool search_method(const lp_chat *chat, const lp_chat_value *object, const char *name, const lp_chat_value *what,
                          lp_chat_value *out) {
  bool text = what->kind == LP_CHAT_STRING;
  if (lp_streq(name, "startswith"))
    *out = lp_chat_bool(any_matches(chat, object, what, starts_with));
  else if (lp_streq(name, "endswith"))
    *out = lp_chat_bool(any_matches(chat, object, what, ends_with));
  else if (text && lp_streq(name, "find"))
    *out = find(chat, object, what);
  else if (text && lp_streq(name, "count"))
    *out = count_hits(chat, object, what);
  else if (text && (lp_streq(name, "removeprefix") || lp_streq(name, "removesuffix"))) {
    bool front = lp_streq(name, "removeprefix"), hit = front ? starts_with(object, what) : ends_with(object, what);
    size_t cut = hit && lp_chat_charge_bytes(chat, what->size) ? what->size : 0;
    *out = lp_chat_text(object->text + (front ? cut : 0), object->size - cut);
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
  else if (words && (lp_streq(name, "split") || (most < 0 && lp_streq(name, "rsplit"))))
    *out = split_words(chat, object, most);
  else if (!words && by->kind == LP_CHAT_STRING && by->size > 0 && lp_streq(name, "split"))
    *out = split_at(chat, object, by, most);
  else if (!words && by->kind == LP_CHAT_STRING && by->size > 0 && lp_streq(name, "rsplit"))
    *out = split_from_right(chat, object, by, most);
  else
    return false;
  return true;
}

static bool is_digits(const lp_chat *chat, const lp_chat_value *value) {
  (void)lp_chat_charge_text(chat, value->size);
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
  if (lp_streq(name, "format")) return format_fields(chat, node, object, args, out);
  if (args->count == 0 && lp_streq(name, "isdigit")) {
    *out = lp_chat_bool(is_digits(chat, object));
    return LP_OK;
  }
  if (args->count == 1 && first && search_method(chat, object, name, first, out)) return LP_OK;
  *known = split_method(chat, object, name, args, out);
  return LP_OK;
}
