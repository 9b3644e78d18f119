/* Filters of chat templates that lay out or count texts, with the behaviour of Jinja. Widths count characters. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "runtime/chat/filters.h"

enum { MOST_WIDTH = 10000 };

/* The bytes of the first `count` characters. */
static size_t bytes_of(const lp_chat_value *text, size_t count) {
  size_t at = 0;
  for (; at < text->size; at++)
    if (((uint8_t)text->text[at] & 0xC0) != 0x80 && count-- == 0) break;
  return at;
}

static bool read_width(const lp_chat_value *given, int64_t otherwise, size_t *out) {
  if (given && (!lp_chat_is_integral(given) || given->integer < 0 || given->integer > MOST_WIDTH)) return false;
  *out = (size_t)(given ? given->integer : otherwise);
  return true;
}

/* center(width=80). Python puts the odd space on the left if the width is odd, too. */
static bool center(const lp_chat *chat, const lp_chat_value *text, const lp_chat_args *args, lp_chat_value *out) {
  size_t width, size = lp_chat_count_characters(chat, text->text, text->size);
  lp_buf made = {.arena = chat->arena};
  if (!read_width(lp_chat_arg(args, 0, "width"), 80, &width)) return false;
  size_t pad = width > size ? width - size : 0, left = pad / 2 + (pad & width & 1);
  lp_buf_printf(&made, "%*s", (int)left, "");
  lp_buf_append(&made, text->text, text->size);
  lp_buf_printf(&made, "%*s", (int)(pad - left), "");
  *out = lp_chat_keep(&made);
  return true;
}

/* truncate(length=255, killwords=false, end="...", leeway=5) */
static bool truncate_text(const lp_chat *chat, const lp_chat_value *text, const lp_chat_args *args,
                          lp_chat_value *out) {
  const lp_chat_value *kill = lp_chat_arg(args, 1, "killwords"), *given = lp_chat_arg(args, 2, "end");
  lp_chat_value end = given ? *given : lp_chat_text("...", 3);
  size_t length, leeway;
  lp_buf made = {.arena = chat->arena};
  bool reads = read_width(lp_chat_arg(args, 0, "length"), 255, &length) &&
               read_width(lp_chat_arg(args, 3, "leeway"), 5, &leeway);
  if (!reads || end.kind != LP_CHAT_STRING || length < lp_chat_count_characters(chat, end.text, end.size)) return false;
  *out = *text;
  if (lp_chat_count_characters(chat, text->text, text->size) <= length + leeway) return true;
  size_t size = bytes_of(text, length - lp_chat_count_characters(chat, end.text, end.size)), space = size;
  while (space > 0 && text->text[space - 1] != ' ')
    space--;
  if (space > 0 && !(kill && lp_chat_is_true(kill))) size = space - 1;
  lp_buf_append(&made, text->text, size);
  lp_buf_append(&made, end.text, end.size);
  *out = lp_chat_keep(&made);
  return true;
}

/* Python's \w: letters, numbers and the underscore. */
static bool is_word_character(uint32_t code) {
  utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
  bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  return letter || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) || code == '_';
}

static lp_chat_value count_words(const lp_chat *chat, const lp_chat_value *text) {
  int64_t count = 0;
  bool inside = false;
  (void)lp_chat_charge_text(chat, text->size);
  for (size_t i = 0, length, bad; i < text->size; i += length) {
    length = lp_utf8_length(text->text + i, text->size - i, &bad);
    bool word = length > 0 && is_word_character(lp_utf8_read(text->text + i, length));
    if (length == 0) length = bad;
    count += word && !inside;
    inside = word;
  }
  return lp_chat_number(count);
}

/* urlencode of a text: all but letters, digits and "_.-~/" is percent-encoded. */
static lp_chat_value encode_url(const lp_chat *chat, const lp_chat_value *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~/";
  lp_buf made = {.arena = chat->arena};
  for (size_t i = 0; i < text->size; i++)
    if (text->text[i] && strchr(plain, text->text[i]))
      lp_buf_append(&made, text->text + i, 1);
    else
      lp_buf_printf(&made, "%%%02X", (unsigned)(uint8_t)text->text[i]);
  return lp_chat_keep(&made);
}

lp_status lp_chat_word_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                              const lp_chat_value *text, const lp_chat_args *args, bool *known, lp_chat_value *out) {
  bool done = true;
  *known = true;
  if (lp_streq(name, "center"))
    done = center(chat, text, args, out);
  else if (lp_streq(name, "truncate"))
    done = truncate_text(chat, text, args, out);
  else if (lp_streq(name, "wordcount") && args->count == 0)
    *out = count_words(chat, text);
  else if (lp_streq(name, "urlencode") && args->count == 0)
    *out = encode_url(chat, text);
  else
    *known = false;
  return done ? LP_OK : lp_chat_unsupported(chat, node, "filter", name, text);
}
