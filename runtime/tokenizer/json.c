/* JSON for the tokenizer.
 *
 * A tokenizer.json is megabytes of short texts, among them "\u0000" as a key, which jansson refuses; and a tree of
 * allocations costs more than all the rest of loading. So the document becomes one flat array of nodes, each container
 * followed by what it holds. Access asks for a type, and a message names the place in the file.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/internal.h"

struct lp_json_document {
  LP_VEC(lp_node) nodes;
  char *text; /* all texts, unescaped, each with a NUL behind it */
};

typedef struct {
  lp_json_document *document;
  const char *data;
  size_t size, at, text_used;
  const char *problem; /* what went wrong at `at`; NULL while all is well */
} reader;

enum { MAX_DEPTH = 128 };

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

static size_t add_node(reader *r, lp_node_kind kind) {
  lp_vec_push(&r->document->nodes, ((lp_node){.kind = kind, .span = 1}));
  return r->document->nodes.count - 1;
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

/* An escape never takes less room than what it stands for. */
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
  lp_buf bytes = {0};
  lp_utf8_write(code, &bytes);
  memcpy(out + *used, bytes.data, bytes.size);
  *used += bytes.size;
  lp_buf_free(&bytes);
  return true;
}

/* Characters of ASCII from here on that stand for themselves in a string. */
static size_t count_plain(const reader *r) {
  size_t at = r->at;
  for (; at < r->size; at++) {
    uint8_t c = (uint8_t)r->data[at];
    if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') break;
  }
  return at - r->at;
}

static bool read_text(reader *r) {
  size_t node = add_node(r, LP_NODE_TEXT), start = r->text_used, used = start, bad;
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
  r->document->nodes.data[node].text = out + start;
  r->document->nodes.data[node].size = (uint32_t)(used - start);
  return true;
}

static size_t skip_digits(reader *r) {
  size_t start = r->at;
  while (peek(r) >= '0' && peek(r) <= '9')
    r->at++;
  return r->at - start;
}

static bool read_number(reader *r) {
  size_t start = r->at, node = add_node(r, LP_NODE_INTEGER);
  char text[64] = {0};
  if (peek(r) == '-') r->at++;
  bool leading_zero = peek(r) == '0';
  size_t digits = skip_digits(r);
  if (digits == 0 || (leading_zero && digits > 1)) return fail(r, "not a value");
  bool real = digits > 18;
  if (peek(r) == '.') {
    real = true;
    r->at++;
    if (skip_digits(r) == 0) return fail(r, "not a number");
  }
  if (peek(r) == 'e' || peek(r) == 'E') {
    real = true;
    r->at++;
    if (peek(r) == '+' || peek(r) == '-') r->at++;
    if (skip_digits(r) == 0) return fail(r, "not a number");
  }
  if (r->at - start >= sizeof text) return fail(r, "a number that is too long");
  memcpy(text, r->data + start, r->at - start);
  if (real) r->document->nodes.data[node].kind = LP_NODE_REAL;
  if (real)
    r->document->nodes.data[node].real = strtod(text, NULL);
  else
    r->document->nodes.data[node].integer = strtoll(text, NULL, 10);
  return true;
}

static bool read_word(reader *r) {
  static const struct {
    const char *text;
    lp_node_kind kind;
    bool truth;
  } words[] = {{"null", LP_NODE_NULL, false}, {"true", LP_NODE_BOOL, true}, {"false", LP_NODE_BOOL, false}};
  for (size_t i = 0; i < LP_COUNT(words); i++) {
    size_t size = strlen(words[i].text);
    if (r->size - r->at < size || memcmp(r->data + r->at, words[i].text, size) != 0) continue;
    size_t node = add_node(r, words[i].kind);
    r->document->nodes.data[node].truth = words[i].truth;
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

static bool read_container(reader *r, int depth) {
  bool object = peek(r) == '{';
  char close = object ? '}' : ']';
  size_t node = add_node(r, object ? LP_NODE_OBJECT : LP_NODE_ARRAY);
  uint32_t count = 0;
  if (depth >= MAX_DEPTH) return fail(r, "nested too deeply");
  r->at++;
  skip_space(r);
  for (; count > 0 || peek(r) != close; count++) {
    if (!read_item(r, object, depth + 1)) return false;
    skip_space(r);
    if (peek(r) == close) {
      count++;
      break;
    }
    if (peek(r) != ',') return fail(r, object ? "',' or '}' was expected" : "',' or ']' was expected");
    r->at++;
  }
  r->at++;
  r->document->nodes.data[node].size = count;
  r->document->nodes.data[node].span = (uint32_t)(r->document->nodes.count - node);
  return true;
}

static bool read_value(reader *r, int depth) {
  char c = peek(r);
  if (c == '{' || c == '[') return read_container(r, depth);
  if (c == '"') return read_text(r);
  return c == '-' || (c >= '0' && c <= '9') ? read_number(r) : read_word(r);
}

static lp_status report(const reader *r, lp_loader *loader) {
  lp_loc loc = {.file = loader->file, .line = 1, .col = 1};
  for (size_t i = 0; i < r->at && i < r->size; i++) {
    loc.col = r->data[i] == '\n' ? 1 : loc.col + 1;
    loc.line += r->data[i] == '\n';
  }
  return lp_error(loader->diag, loc, "not valid JSON: %s", r->at >= r->size ? "it ends too early" : r->problem);
}

lp_status lp_document_parse(lp_loader *loader, const char *data, size_t size, lp_json_document **out) {
  reader r = {.data = data, .size = size};
  if (size > INT32_MAX)
    return lp_error(loader->diag, LP_LOC_FILE(loader->file), "the file has %zu bytes, too many", size);
  r.document = lp_alloc(sizeof *r.document);
  r.document->text = lp_alloc(size + 1);
  skip_space(&r);
  if (read_value(&r, 0)) skip_space(&r);
  if (!r.problem && r.at < size) fail(&r, "text behind the document");
  if (!r.problem) {
    *out = r.document;
    return LP_OK;
  }
  lp_status status = report(&r, loader);
  lp_document_free(r.document);
  return status;
}

void lp_document_free(lp_json_document *document) {
  if (!document) return;
  lp_vec_free(&document->nodes);
  free(document->text);
  free(document);
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

const lp_node *lp_document_root(const lp_json_document *document) {
  return document->nodes.data;
}

bool lp_node_is(const lp_node *node, lp_node_kind kind) {
  return node && node->kind == kind;
}

bool lp_node_absent(const lp_node *node) {
  return !node || node->kind == LP_NODE_NULL;
}

bool lp_node_equals(const lp_node *node, const char *text) {
  return lp_node_is(node, LP_NODE_TEXT) && node->size == strlen(text) && memcmp(node->text, text, node->size) == 0;
}

const lp_node *lp_node_first(const lp_node *container) {
  return container + 1;
}

const lp_node *lp_node_next(const lp_node *node) {
  return node + node->span;
}

const lp_node *lp_node_item(const lp_node *array, size_t index) {
  const lp_node *item = lp_node_first(array);
  while (index-- > 0)
    item = lp_node_next(item);
  return item;
}

const lp_node *lp_node_member(const lp_node *object, const char *key) {
  if (!lp_node_is(object, LP_NODE_OBJECT)) return NULL;
  const lp_node *name = lp_node_first(object);
  for (uint32_t i = 0; i < object->size; i++, name = lp_node_next(lp_node_next(name)))
    if (lp_node_equals(name, key)) return lp_node_next(name);
  return NULL;
}

const char *lp_path_member(lp_loader *loader, const char *path, const char *key) {
  if (path[0] == '\0') return lp_arena_strdup(loader->tokenizer->arena, key);
  return lp_arena_format(loader->tokenizer->arena, "%s.%s", path, key);
}

const char *lp_path_item(lp_loader *loader, const char *path, size_t index) {
  return lp_arena_format(loader->tokenizer->arena, "%s[%zu]", path, index);
}

lp_status lp_node_expect(lp_loader *loader, const lp_node *node, lp_node_kind kind, const char *path) {
  static const char *const names[] = {
      [LP_NODE_NULL] = "null",       [LP_NODE_BOOL] = "a boolean", [LP_NODE_INTEGER] = "an integer",
      [LP_NODE_REAL] = "a number",   [LP_NODE_TEXT] = "a string",  [LP_NODE_ARRAY] = "an array",
      [LP_NODE_OBJECT] = "an object"};
  if (node->kind == kind) return LP_OK;
  return lp_error(loader->diag, LP_LOC_FILE(loader->file), "'%s': expected %s, found %s", path, names[kind],
                  names[node->kind]);
}

lp_status lp_member_get(lp_loader *loader, const lp_node *object, const char *path, const char *key, lp_node_kind kind,
                        const lp_node **out) {
  *out = lp_node_member(object, key);
  if (!*out)
    return lp_error(loader->diag, LP_LOC_FILE(loader->file), "'%s' lacks the member '%s'",
                    path[0] == '\0' ? "the file" : path, key);
  return (*out)->kind == kind ? LP_OK : lp_node_expect(loader, *out, kind, lp_path_member(loader, path, key));
}

lp_status lp_member_text(lp_loader *loader, const lp_node *object, const char *path, const char *key, const char **out,
                         size_t *size) {
  const lp_node *node;
  LP_TRY(lp_member_get(loader, object, path, key, LP_NODE_TEXT, &node));
  *size = node->size;
  *out = lp_arena_copy(loader->tokenizer->arena, node->text, node->size + 1u);
  return LP_OK;
}

lp_status lp_member_bool(lp_loader *loader, const lp_node *object, const char *path, const char *key, bool fallback,
                         bool *out) {
  const lp_node *node = lp_node_member(object, key);
  *out = fallback;
  if (lp_node_absent(node)) return LP_OK;
  LP_TRY(lp_node_expect(loader, node, LP_NODE_BOOL, lp_path_member(loader, path, key)));
  *out = node->truth;
  return LP_OK;
}

lp_status lp_node_count(lp_loader *loader, const lp_node *node, const char *path, int64_t max, int64_t *out) {
  LP_TRY(lp_node_expect(loader, node, LP_NODE_INTEGER, path));
  *out = node->integer;
  if (*out >= 0 && *out <= max) return LP_OK;
  return lp_error(loader->diag, LP_LOC_FILE(loader->file),
                  "'%s': expected an integer from 0 to %" PRId64 ", found %" PRId64, path, max, *out);
}
