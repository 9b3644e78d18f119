/* Writing JSON: separators, indentation, numbers, strings. */
#include "base/json/writer.h"

#include <assert.h>
#include <math.h>

#include "base/utf8.h"

lp_json_writer lp_json_writer_begin(lp_buf *out, lp_json_style style) {
  if (style.digits == 0) style.digits = 17;
  return (lp_json_writer){.out = out, .style = style, .first = true};
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

static void put_escaped(unsigned char c, lp_buf *out) {
  static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";
  const char *at = strchr(values, c);
  if (at && c)
    lp_buf_printf(out, "\\%c", names[at - values]);
  else
    lp_buf_printf(out, "\\u%04X", c);
}

static void quote(const char *text, size_t size, lp_buf *out) {
  size_t start = 0;
  LP_OWNED(lp_buf_free) lp_buf repaired = {0};
  if (!lp_utf8_valid(text, size)) {
    lp_utf8_repair(text, size, &repaired);
    text = lp_buf_text(&repaired);
    size = repaired.size;
  }
  lp_buf_append(out, "\"", 1);
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    lp_buf_append(out, text + start, i - start);
    put_escaped(c, out);
    start = i + 1;
  }
  lp_buf_append(out, text + start, size - start);
  lp_buf_append(out, "\"", 1);
}

void lp_json_quote(const char *text, lp_buf *out) {
  quote(text, strlen(text), out);
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

static void new_line(lp_json_writer *w) {
  lp_buf_printf(w->out, "\n%*s", w->style.indent * w->indent, "");
}

/* Writes the separator that precedes a key or an item. */
static void separate(lp_json_writer *w) {
  if (!w->first) lp_buf_puts(w->out, ",");
  if (w->depth > 0 && w->open[w->depth - 1].layout != LP_JSON_FLAT)
    new_line(w);
  else if (!w->first && !w->style.has_no_space)
    lp_buf_puts(w->out, " ");
  w->first = false;
}

static void put_key(lp_json_writer *w, const char *key, size_t size) {
  separate(w);
  quote(key, size, w->out);
  lp_buf_puts(w->out, w->style.has_no_space ? ":" : ": ");
}

void lp_json_put_key(lp_json_writer *w, const char *key) {
  if (key)
    put_key(w, key, strlen(key));
  else
    separate(w);
}

/* Opens a container after its key. Within a container that is not broken, only LP_JSON_LINES breaks lines again. */
static void open_container(lp_json_writer *w, const char *brackets, lp_json_layout layout) {
  assert(w->depth < LP_JSON_MAX_DEPTH);
  bool inherits = layout == LP_JSON_BROKEN && w->depth > 0 && w->open[w->depth - 1].layout != LP_JSON_BROKEN;
  if (inherits || w->style.indent == 0) layout = LP_JSON_FLAT;
  lp_buf_append(w->out, &brackets[0], 1);
  w->open[w->depth].close = brackets[1];
  w->open[w->depth++].layout = layout;
  if (layout != LP_JSON_FLAT) w->indent++;
  w->first = true;
}

void lp_json_put_object(lp_json_writer *w, const char *key) {
  lp_json_put_key(w, key);
  open_container(w, "{}", LP_JSON_BROKEN);
}

void lp_json_put_array(lp_json_writer *w, const char *key) {
  lp_json_put_key(w, key);
  open_container(w, "[]", LP_JSON_BROKEN);
}

void lp_json_put_flat_object(lp_json_writer *w, const char *key) {
  lp_json_put_key(w, key);
  open_container(w, "{}", LP_JSON_FLAT);
}

void lp_json_put_flat_array(lp_json_writer *w, const char *key) {
  lp_json_put_key(w, key);
  open_container(w, "[]", LP_JSON_FLAT);
}

void lp_json_put_lines(lp_json_writer *w, const char *key) {
  lp_json_put_key(w, key);
  open_container(w, "[]", LP_JSON_LINES);
}

void lp_json_put_end(lp_json_writer *w) {
  assert(w->depth > 0);
  lp_json_layout layout = w->open[--w->depth].layout;
  if (layout != LP_JSON_FLAT) w->indent--;
  if (!w->first && layout == LP_JSON_BROKEN) new_line(w);
  lp_buf_append(w->out, &w->open[w->depth].close, 1);
  w->first = false;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

void lp_json_put_text(lp_json_writer *w, const char *key, const char *text) {
  lp_json_put_key(w, key);
  if (text)
    lp_json_quote(text, w->out);
  else
    lp_buf_puts(w->out, "null");
}

void lp_json_put_bytes(lp_json_writer *w, const char *key, const char *text, size_t size) {
  lp_json_put_key(w, key);
  quote(text, size, w->out);
}

/* Shortens e-05 to e-5 and e+10 to e10. */
static void shorten_exponent(char *text) {
  char *from = strchr(text, 'e');
  if (!from) return;
  char *to = ++from;
  if (*from == '-') to++;
  from++;
  while (*from == '0' && from[1] != '\0')
    from++;
  memmove(to, from, strlen(from) + 1);
}

static void put_real(lp_json_writer *w, double value) {
  char text[64];
  if (!isfinite(value)) {
    lp_buf_puts(w->out, "null");
    return;
  }
  (void)snprintf(text, sizeof text, "%.*g", w->style.digits, value);
  if (w->style.marks_reals) shorten_exponent(text);
  lp_buf_puts(w->out, text);
  if (w->style.marks_reals && !strpbrk(text, ".e")) lp_buf_puts(w->out, ".0");
}

void lp_json_put_number(lp_json_writer *w, const char *key, double value) {
  lp_json_put_key(w, key);
  put_real(w, value);
}

void lp_json_put_numbers(lp_json_writer *w, const char *key, const double *list, size_t count) {
  lp_json_put_flat_array(w, key);
  for (size_t i = 0; i < count; i++)
    lp_json_put_number(w, NULL, list[i]);
  lp_json_put_end(w);
}

void lp_json_put_fixed(lp_json_writer *w, const char *key, double value, int decimals) {
  lp_json_put_key(w, key);
  if (isfinite(value))
    lp_buf_printf(w->out, "%.*f", decimals, value);
  else
    lp_buf_puts(w->out, "null");
}

void lp_json_put_integer(lp_json_writer *w, const char *key, int64_t value) {
  lp_json_put_key(w, key);
  lp_buf_printf(w->out, "%" PRId64, value);
}

void lp_json_put_bool(lp_json_writer *w, const char *key, bool value) {
  lp_json_put_key(w, key);
  lp_buf_puts(w->out, value ? "true" : "false");
}

void lp_json_put_null(lp_json_writer *w, const char *key) {
  lp_json_put_key(w, key);
  lp_buf_puts(w->out, "null");
}

void lp_json_put_poly(lp_json_writer *w, const char *key, const lp_poly *poly, const lp_symbols *symbols) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_poly_print(poly, symbols, &text);
  lp_json_put_text(w, key, lp_buf_text(&text));
}

/* ---- values that were read --------------------------------------------------------------------------------------- */

static void put_read(lp_json_writer *w, const lp_json_value *value);

static void put_items(lp_json_writer *w, const lp_json_value *container) {
  bool object = container->kind == LP_JSON_OBJECT;
  open_container(w, object ? "{}" : "[]", LP_JSON_BROKEN);
  for (size_t i = 0; i < container->size; i++) {
    const lp_json_value *item = &container->items[object ? 2 * i : i];
    if (object)
      put_key(w, item->text, item->size);
    else
      separate(w);
    put_read(w, object ? item + 1 : item);
  }
  lp_json_put_end(w);
}

/* Calls itself at most LP_JSON_MAX_NESTING deep. */
static void put_read(lp_json_writer *w, const lp_json_value *value) {
  switch (value->kind) {
  case LP_JSON_NULL:
    lp_buf_puts(w->out, "null");
    break;
  case LP_JSON_BOOL:
    lp_buf_puts(w->out, value->truth ? "true" : "false");
    break;
  case LP_JSON_INTEGER:
    lp_buf_printf(w->out, "%" PRId64, value->integer);
    break;
  case LP_JSON_REAL:
    put_real(w, value->real);
    break;
  case LP_JSON_TEXT:
    quote(value->text, value->size, w->out);
    break;
  case LP_JSON_ARRAY:
  case LP_JSON_OBJECT:
    put_items(w, value);
    break;
  }
}

void lp_json_put_value(lp_json_writer *w, const char *key, const lp_json_value *value) {
  lp_json_put_key(w, key);
  put_read(w, value);
}

/* ---- documents --------------------------------------------------------------------------------------------------- */

lp_json_writer lp_json_document_begin(lp_buf *out, lp_json_style style, const char *schema) {
  lp_json_writer writer = lp_json_writer_begin(out, style);
  lp_json_put_object(&writer, NULL);
  lp_json_put_text(&writer, "schema", schema);
  return writer;
}

void lp_json_document_end(lp_json_writer *writer) {
  lp_json_put_end(writer);
  lp_buf_puts(writer->out, "\n");
}
