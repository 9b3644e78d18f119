/* Converts JSON to values of chat templates, and prints values as JSON and in Python's form. */
#include <assert.h>
#include <math.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "runtime/chat/value.h"

/* ---- from JSON --------------------------------------------------------------------------------------------------- */

lp_chat_value lp_chat_from_json(const lp_chat *chat, const lp_json_value *value) {
  lp_chat_value out = {0};
  switch (value->kind) {
  case LP_JSON_NULL:
    out.kind = LP_CHAT_NONE;
    return out;
  case LP_JSON_BOOL:
    return lp_chat_bool(value->truth);
  case LP_JSON_INTEGER:
    return lp_chat_number(value->integer);
  case LP_JSON_REAL:
    out.kind = LP_CHAT_REAL;
    out.real = value->real;
    return out;
  case LP_JSON_TEXT:
    return lp_chat_text(value->text, value->size);
  case LP_JSON_ARRAY:
  case LP_JSON_OBJECT:
    break;
  }
  size_t count = value->kind == LP_JSON_OBJECT ? 2 * (size_t)value->size : value->size;
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, count);
  if (!items) return out;
  for (size_t i = 0; i < count; i++)
    items[i] = lp_chat_from_json(chat, &value->items[i]);
  out.kind = value->kind == LP_JSON_OBJECT ? LP_CHAT_DICT : LP_CHAT_LIST;
  out.size = value->size;
  out.items = items;
  return out;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Prints the shortest digits that parse to the same number, in Python's form: with an exponent below -4 and from 16
 * on. */
static void print_real(double value, lp_buf *out) {
  char digits[40];
  int precision = 1;
  if (!isfinite(value)) {
    lp_buf_puts(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  for (; precision < 17; precision++) {
    snprintf(digits, sizeof digits, "%.*e", precision - 1, value);
    if (strtod(digits, NULL) == value) break;
  }
  snprintf(digits, sizeof digits, "%.*e", precision - 1, value);
  char *mark = strchr(digits, 'e');
  assert(mark); /* of the format */
  int exponent = (int)strtol(mark + 1, NULL, 10);
  if (exponent < -4 || exponent >= 16) {
    *mark = '\0';
    lp_buf_printf(out, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
  } else {
    int decimals = precision - 1 - exponent;
    lp_buf_printf(out, "%.*f", decimals < 1 ? 1 : decimals, value);
  }
}

/* ---- to JSON ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_chat *chat;
  int64_t indent;
  bool ascii;
  lp_buf *out;
} json_writer;

static void write_code(uint32_t code, lp_buf *out) {
  if (code >= 0x10000)
    lp_buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
  else
    lp_buf_printf(out, "\\u%04x", code);
}

static void write_text(const json_writer *w, const lp_chat_value *value) {
  static const char names[] = "bfnrt\"\\", values[] = "\b\f\n\r\t\"\\";
  lp_buf_puts(w->out, "\"");
  for (size_t i = 0, bad, length; i < value->size; i += length) {
    length = lp_utf8_length(value->text + i, value->size - i, &bad);
    if (length == 0) length = bad;
    char c = value->text[i];
    const char *escape = c == '\0' ? NULL : strchr(values, c);
    if (escape)
      lp_buf_append(w->out, (char[]){'\\', names[escape - values]}, 2);
    else if ((uint8_t)c < 0x20)
      lp_buf_printf(w->out, "\\u%04x", (unsigned)(uint8_t)c);
    else if (w->ascii && (length > 1 || c == 0x7F))
      write_code(lp_utf8_read(value->text + i, length), w->out);
    else
      lp_buf_append(w->out, value->text + i, length);
  }
  lp_buf_puts(w->out, "\"");
}

static void new_line(const json_writer *w, int64_t depth) {
  if (w->indent < 0) return;
  lp_buf_puts(w->out, "\n");
  for (int64_t i = 0; i < depth * w->indent; i++)
    lp_buf_puts(w->out, " ");
}

static bool write_scalar(const json_writer *w, const lp_chat_value *value) {
  if (!lp_chat_charge_text(w->chat, value->kind == LP_CHAT_STRING ? value->size : 0)) return false;
  switch (value->kind) {
  case LP_CHAT_NONE:
    lp_buf_puts(w->out, "null");
    return true;
  case LP_CHAT_BOOL:
    lp_buf_puts(w->out, value->integer ? "true" : "false");
    return true;
  case LP_CHAT_NUMBER:
    lp_buf_printf(w->out, "%" PRId64, value->integer);
    return true;
  case LP_CHAT_REAL:
    print_real(value->real, w->out);
    return true;
  case LP_CHAT_STRING:
    write_text(w, value);
    return true;
  default:
    return false;
  }
}

/* Converts a key that is no text to a text. */
static bool write_key(const json_writer *w, const lp_chat_value *key) {
  if (key->kind == LP_CHAT_STRING) return write_scalar(w, key);
  lp_buf_puts(w->out, "\"");
  bool known = write_scalar(w, key);
  lp_buf_puts(w->out, "\"");
  return known;
}

static bool write_value(const json_writer *w, const lp_chat_value *value, int64_t depth) {
  bool dict = value->kind == LP_CHAT_DICT, good = true;
  if (!dict && value->kind != LP_CHAT_LIST) return write_scalar(w, value);
  if (!lp_chat_enter(w->chat)) return false;
  lp_buf_puts(w->out, dict ? "{" : "[");
  for (size_t i = 0; i < value->size && good; i++) {
    if (i > 0) lp_buf_puts(w->out, w->indent < 0 ? ", " : ",");
    new_line(w, depth + 1);
    if (dict) {
      good = write_key(w, &value->items[2 * i]);
      lp_buf_puts(w->out, ": ");
    }
    good = good && write_value(w, &value->items[dict ? 2 * i + 1 : i], depth + 1);
  }
  if (value->size > 0) new_line(w, depth);
  lp_buf_puts(w->out, dict ? "}" : "]");
  w->chat->budget->depth--;
  return good;
}

bool lp_chat_to_json(const lp_chat *chat, const lp_chat_value *value, int64_t indent, bool ascii, lp_buf *out) {
  const json_writer w = {.chat = chat, .indent = indent > 64 ? 64 : indent, .ascii = ascii, .out = out};
  return write_value(&w, value, 0);
}

/* ---- as Python prints -------------------------------------------------------------------------------------------- */

static bool is_printable(uint32_t code) {
  switch (utf8proc_category((utf8proc_int32_t)code)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return false;
  case UTF8PROC_CATEGORY_ZS:
    return code == ' ';
  default:
    return true;
  }
}

static void repr_text(const lp_chat_value *value, lp_buf *out) {
  bool single = memchr(value->text, '\'', value->size), twice = memchr(value->text, '"', value->size);
  char quote = single && !twice ? '"' : '\'';
  lp_buf_append(out, &quote, 1);
  for (size_t i = 0, length, bad; i < value->size; i += length) {
    length = lp_utf8_length(value->text + i, value->size - i, &bad);
    bool valid = length > 0;
    if (!valid) length = bad;
    char c = value->text[i];
    uint32_t code = valid ? lp_utf8_read(value->text + i, length) : 0;
    if (c == '\n' || c == '\r' || c == '\t')
      lp_buf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    else if (c == '\\' || c == quote)
      lp_buf_printf(out, "\\%c", c);
    else if (valid && !is_printable(code))
      lp_buf_printf(out, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    else
      lp_buf_append(out, value->text + i, length);
  }
  lp_buf_append(out, &quote, 1);
}

bool lp_chat_repr(const lp_chat *chat, const lp_chat_value *value, lp_buf *out) {
  bool dict = value->kind == LP_CHAT_DICT, good = true;
  const json_writer w = {.chat = chat, .indent = -1, .out = out};
  if (value->kind == LP_CHAT_STRING) {
    repr_text(value, out);
    return lp_chat_charge_text(chat, value->size);
  }
  if (value->kind == LP_CHAT_NONE || value->kind == LP_CHAT_BOOL || value->kind == LP_CHAT_UNDEFINED) {
    bool truth = value->kind == LP_CHAT_BOOL && value->integer;
    lp_buf_puts(out, value->kind == LP_CHAT_NONE   ? "None"
                     : value->kind == LP_CHAT_BOOL ? (truth ? "True" : "False")
                                                   : "Undefined");
    return true;
  }
  if (!dict && value->kind != LP_CHAT_LIST) return write_scalar(&w, value);
  if (!lp_chat_enter(chat)) return false;
  lp_buf_puts(out, dict ? "{" : value->tuple ? "(" : "[");
  for (size_t i = 0; i < value->size && good; i++) {
    if (i > 0) lp_buf_puts(out, ", ");
    if (dict) {
      good = lp_chat_repr(chat, &value->items[2 * i], out);
      lp_buf_puts(out, ": ");
    }
    good = good && lp_chat_repr(chat, &value->items[dict ? 2 * i + 1 : i], out);
  }
  if (value->tuple && value->size == 1) lp_buf_puts(out, ",");
  lp_buf_puts(out, dict ? "}" : value->tuple ? ")" : "]");
  chat->budget->depth--;
  return good;
}
