/* The parser: from text to a document.
 *
 * Values wait on a stack until their container ends; then the container's items are copied side by side.
 */
#include <errno.h>
#include <math.h>

#include "base/file.h"
#include "base/json/document.h"
#include "base/utf8.h"

typedef struct {
  lp_json_document *document;
  const char *data;
  size_t size, at, text_used;
  unsigned options;
  const char *problem; /* the error at `at`; NULL: none yet */
  LP_VEC(lp_json_value) stack;
  LP_VEC(uint32_t) slots; /* of find_duplicate, reused */
} reader;

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static bool fail(reader *r, const char *problem) {
  if (!r->problem) r->problem = problem;
  return false;
}

static char peek(const reader *r) {
  return r->at < r->size ? r->data[r->at] : '\0';
}

static void skip_space(reader *r) {
  for (char c = peek(r); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek(r))
    r->at++;
}

static lp_json_value *add_value(reader *r, lp_json_kind kind) {
  lp_vec_push(&r->stack, (lp_json_value){.kind = kind});
  return &r->stack.data[r->stack.count - 1];
}

static bool read_hex(reader *r, uint32_t *code) {
  *code = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    char c = peek(r);
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                            : 16;
    if (digit == 16) return fail(r, "\\u needs four hexadecimal digits");
    *code = *code << 4 | digit;
  }
  return true;
}

static bool read_code(reader *r, uint32_t *code) {
  uint32_t low;
  if (!read_hex(r, code)) return false;
  if (*code < 0xD800 || *code > 0xDFFF) return true;
  if (*code > 0xDBFF || peek(r) != '\\' || r->at + 1 >= r->size || r->data[r->at + 1] != 'u')
    return fail(r, "half of a surrogate pair");
  r->at += 2;
  if (!read_hex(r, &low)) return false;
  if (low < 0xDC00 || low > 0xDFFF) return fail(r, "half of a surrogate pair");
  *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
  return true;
}

/* An escape is never shorter than the character it stands for. */
static bool read_escape(reader *r, char *out, size_t *used) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  char c = peek(r);
  const char *name = c == '\0' ? NULL : strchr(names, c);
  r->at++;
  if (name) {
    out[(*used)++] = values[name - names];
    return true;
  }
  uint32_t code;
  if (c != 'u') return fail(r, "an unknown escape");
  if (!read_code(r, &code)) return false;
  if (code == 0 && r->options & LP_JSON_REFUSE_NUL)
    return fail(r, "a text with the character \\u0000, which is not supported here");
  LP_OWNED(lp_buf_free) lp_buf bytes = {0};
  lp_utf8_write(code, &bytes);
  memcpy(out + *used, bytes.data, bytes.size);
  *used += bytes.size;
  return true;
}

/* The number of ASCII characters from here on that stand for themselves in a string. */
static size_t count_plain(const reader *r) {
  size_t at = r->at;
  for (; at < r->size; at++) {
    uint8_t c = (uint8_t)r->data[at];
    if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') break;
  }
  return at - r->at;
}

static bool read_text(reader *r) {
  size_t start = r->text_used, used = start, bad;
  char *out = r->document->text;
  for (++r->at; peek(r) != '"';) {
    if (r->at >= r->size) return fail(r, "an open string");
    size_t plain = count_plain(r), length = plain;
    uint8_t c = (uint8_t)r->data[r->at];
    if (c == '\\') {
      r->at++;
      if (!read_escape(r, out, &used)) return false;
      continue;
    }
    if (c < 0x20) return fail(r, "a control character in a string");
    if (plain == 0) length = lp_utf8_length(r->data + r->at, r->size - r->at, &bad);
    if (length == 0) return fail(r, "not UTF-8");
    memcpy(out + used, r->data + r->at, length);
    used += length;
    r->at += length;
  }
  r->at++;
  out[used] = '\0';
  r->text_used = used + 1;
  lp_json_value *value = add_value(r, LP_JSON_TEXT);
  value->text = out + start;
  value->size = (uint32_t)(used - start);
  return true;
}

static size_t skip_digits(reader *r) {
  size_t start = r->at;
  while (peek(r) >= '0' && peek(r) <= '9')
    r->at++;
  return r->at - start;
}

/* Passes one number; *real: it has a fraction or an exponent. */
static bool skip_number(reader *r, bool *real) {
  if (peek(r) == '-') r->at++;
  bool leading_zero = peek(r) == '0';
  size_t digits = skip_digits(r);
  if (digits == 0 || (leading_zero && digits > 1)) return fail(r, "not a value");
  *real = false;
  if (peek(r) == '.') {
    *real = true;
    r->at++;
    if (skip_digits(r) == 0) return fail(r, "not a number");
  }
  if (peek(r) == 'e' || peek(r) == 'E') {
    *real = true;
    r->at++;
    if (peek(r) == '+' || peek(r) == '-') r->at++;
    if (skip_digits(r) == 0) return fail(r, "not a number");
  }
  return true;
}

static bool read_number(reader *r) {
  size_t start = r->at;
  char text[64] = {0};
  bool real = false;
  if (!skip_number(r, &real)) return false;
  if (r->at - start >= sizeof text) return fail(r, "a number that is too long");
  memcpy(text, r->data + start, r->at - start);
  lp_json_value *value = add_value(r, LP_JSON_INTEGER);
  errno = 0;
  if (!real) value->integer = strtoll(text, NULL, 10);
  if (!real && errno == 0) return true;
  value->kind = LP_JSON_REAL;
  value->real = strtod(text, NULL);
  return isfinite(value->real) || fail(r, "a number that is too large");
}

static bool read_word(reader *r) {
  static const struct {
    const char *text;
    lp_json_kind kind;
    bool truth;
  } words[] = {{"null", LP_JSON_NULL, false}, {"true", LP_JSON_BOOL, true}, {"false", LP_JSON_BOOL, false}};
  for (size_t i = 0; i < LP_COUNT(words); i++) {
    size_t size = strlen(words[i].text);
    if (r->size - r->at < size || memcmp(r->data + r->at, words[i].text, size) != 0) continue;
    add_value(r, words[i].kind)->truth = words[i].truth;
    r->at += size;
    return true;
  }
  return fail(r, "not a value");
}

static bool read_value(reader *r, int depth);

/* One item of an array, or a key and its value. */
static bool read_item(reader *r, bool object, int depth) {
  skip_space(r);
  if (!object) return read_value(r, depth);
  if (peek(r) != '"') return fail(r, "a key was expected");
  if (!read_text(r)) return false;
  skip_space(r);
  if (peek(r) != ':') return fail(r, "':' was expected");
  r->at++;
  skip_space(r);
  return read_value(r, depth);
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

static bool same_text(const lp_json_value *a, const lp_json_value *b) {
  return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

static int compare_keys(const void *a, const void *b) {
  const lp_json_value *x = *(const lp_json_value *const *)a, *y = *(const lp_json_value *const *)b;
  if (x->size != y->size) return x->size < y->size ? -1 : 1;
  return memcmp(x->text, y->text, x->size);
}

static bool has_equal_neighbours(const lp_json_value *items, uint32_t count) {
  const lp_json_value **keys = lp_alloc(count * sizeof *keys);
  bool found = false;
  for (uint32_t i = 0; i < count; i++)
    keys[i] = &items[2 * (size_t)i];
  qsort(keys, count, sizeof *keys, compare_keys);
  for (uint32_t i = 1; i < count && !found; i++)
    found = same_text(keys[i - 1], keys[i]);
  free(keys);
  return found;
}

/* Tells whether two keys of the object are equal. It uses a table of slots with open addressing, by the keys' hashes.
 * Keys that were chosen to collide are sorted instead. */
static bool has_duplicate(reader *r, const lp_json_value *items, uint32_t count) {
  size_t slots = 16, steps = 64 + 16 * (size_t)count;
  while (slots < 2 * (size_t)count)
    slots *= 2;
  while (r->slots.count < slots)
    lp_vec_push(&r->slots, 0);
  memset(r->slots.data, 0, slots * sizeof *r->slots.data);
  for (uint32_t i = 0; i < count; i++) {
    const lp_json_value *key = &items[2 * (size_t)i];
    size_t slot = lp_hash_bytes(key->text, key->size, 0) & (slots - 1);
    for (; r->slots.data[slot] != 0; slot = (slot + 1) & (slots - 1)) {
      if (same_text(key, &items[2 * (size_t)(r->slots.data[slot] - 1)])) return true;
      if (--steps == 0) return has_equal_neighbours(items, count);
    }
    r->slots.data[slot] = i + 1;
  }
  return false;
}

/* Replaces the items on the stack from `first` on by their container. */
static bool close_container(reader *r, size_t first, bool object) {
  size_t values = r->stack.count - first, count = object ? values / 2 : values;
  lp_json_value container = {.kind = object ? LP_JSON_OBJECT : LP_JSON_ARRAY, .size = (uint32_t)count};
  const lp_json_value *items = values > 0 ? r->stack.data + first : NULL;
  if (object && !(r->options & LP_JSON_ALLOW_DUPLICATES) && has_duplicate(r, items, container.size))
    return fail(r, "an object with two members of one name");
  if (count > 0) container.items = lp_arena_copy(r->document->arena, items, values * sizeof *items);
  r->stack.count = first;
  lp_vec_push(&r->stack, container);
  return true;
}

static bool read_container(reader *r, int depth) {
  bool object = peek(r) == '{';
  char close = object ? '}' : ']';
  size_t first = r->stack.count;
  if (depth >= LP_JSON_MAX_NESTING) return fail(r, "nested too deeply");
  r->at++;
  skip_space(r);
  while (r->stack.count > first || peek(r) != close) {
    if (!read_item(r, object, depth + 1)) return false;
    skip_space(r);
    if (peek(r) == close) break;
    if (peek(r) != ',') return fail(r, object ? "',' or '}' was expected" : "',' or ']' was expected");
    r->at++;
  }
  if (!close_container(r, first, object)) return false;
  r->at++;
  return true;
}

static bool read_value(reader *r, int depth) {
  char c = peek(r);
  if (c == '{' || c == '[') return read_container(r, depth);
  if (c == '"') return read_text(r);
  return c == '-' || (c >= '0' && c <= '9') ? read_number(r) : read_word(r);
}

static lp_status report(const reader *r, const char *file, lp_diag *diag) {
  lp_loc loc = {.file = file, .line = 1, .col = 1};
  for (size_t i = 0; i < r->at && i < r->size; i++) {
    loc.col = r->data[i] == '\n' ? 1 : loc.col + 1;
    loc.line += r->data[i] == '\n';
  }
  const char *problem = r->at >= r->size ? "it ends too early" : r->problem;
  return lp_error(diag, loc, "%s%s", strstr(problem, "not supported") ? "" : "not valid JSON: ", problem);
}

lp_status lp_json_parse(const char *file, const char *text, size_t size, unsigned options, lp_json_document **out,
                        lp_diag *diag) {
  reader r = {.data = text, .size = size, .options = options};
  *out = NULL;
  if (size > INT32_MAX) return lp_error(diag, LP_LOC_FILE(file), "the file has %zu bytes, too many", size);
  r.document = lp_alloc(sizeof *r.document);
  r.document->arena = lp_arena_create();
  r.document->text = lp_alloc(size + 1);
  skip_space(&r);
  if (read_value(&r, 0)) skip_space(&r);
  if (!r.problem && r.at < size) fail(&r, "text after the document");
  if (!r.problem) r.document->root = r.stack.data[0];
  lp_status status = r.problem ? report(&r, file, diag) : LP_OK;
  lp_vec_free(&r.stack);
  lp_vec_free(&r.slots);
  if (status == LP_OK)
    *out = r.document;
  else
    lp_json_free(r.document);
  return status;
}

lp_status lp_json_load(const char *path, unsigned options, lp_json_document **out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  *out = NULL;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  return lp_json_parse(path, text, size, options, out, diag);
}

void lp_json_free(lp_json_document *document) {
  if (!document) return;
  lp_arena_free(document->arena);
  free(document->text);
  free(document);
}
