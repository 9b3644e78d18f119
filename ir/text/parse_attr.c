/* Parses types and attributes of generic MLIR assembly, and the punctuation of all its parts. */
#include "ir/text/parse_attr.h"
#include "base/number.h"
#include "base/poly.h"
#include "base/units.h"
#include "ir/ir_internal.h"

#include <ctype.h>
#include <errno.h>

enum { MAX_ELEMENTS = 1 << 22 };

bool lp_parse_at(const lp_parser *p, const char *punct) {
  return p->lexer.kind == LP_TOK_PUNCT && strcmp(p->lexer.word, punct) == 0;
}

lp_status lp_parse_unexpected(lp_parser *p, const char *wanted) {
  if (p->lexer.kind == LP_TOK_BAD) return lp_error(p->diag, p->lexer.loc, "%s", p->lexer.word);
  return lp_error(p->diag, p->lexer.loc, "expected %s, found '%s'", wanted, p->lexer.word);
}

lp_status lp_parse_expect(lp_parser *p, const char *punct) {
  char wanted[16];
  (void)snprintf(wanted, sizeof wanted, "'%s'", punct);
  if (!lp_parse_at(p, punct)) return lp_parse_unexpected(p, wanted);
  lp_lexer_next(&p->lexer);
  return LP_OK;
}

bool lp_parse_accept(lp_parser *p, const char *punct) {
  if (!lp_parse_at(p, punct)) return false;
  lp_lexer_next(&p->lexer);
  return true;
}

bool lp_parse_is_symbol(const char *text) {
  if (!isalpha((unsigned char)text[0]) && text[0] != '_') return false;
  for (; *text; text++)
    if (!isalnum((unsigned char)*text) && *text != '_') return false;
  return true;
}

static lp_status parse_dtype(lp_parser *p, lp_dtype *out) {
  for (int i = 0; i < LP_DTYPE_COUNT && p->lexer.kind == LP_TOK_WORD; i++) {
    if (strcmp(p->lexer.word, lp_dtype_text((lp_dtype)i)) != 0) continue;
    *out = (lp_dtype)i;
    lp_lexer_next(&p->lexer);
    return LP_OK;
  }
  return lp_error(p->diag, p->lexer.loc, "expected an element type, found '%s'", p->lexer.word);
}

static lp_status parse_symbolic_dims(lp_parser *p, int32_t rank, const int64_t *dims, const lp_poly **polys) {
  bool first = true;
  LP_TRY(lp_parse_expect(p, "["));
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] >= 0) continue;
    if (!first) LP_TRY(lp_parse_expect(p, ","));
    if (p->lexer.kind != LP_TOK_STRING)
      return lp_error(p->diag, p->lexer.loc, "expected a dimension in quotes, found '%s'", p->lexer.word);
    LP_TRY(lp_poly_parse(p->module->arena, &p->module->symbols, p->lexer.word, &polys[i], p->diag, p->lexer.loc));
    lp_lexer_next(&p->lexer);
    first = false;
  }
  return lp_parse_expect(p, "]");
}

lp_status lp_parse_type(lp_parser *p, lp_type *out) {
  if (p->lexer.kind != LP_TOK_WORD || strcmp(p->lexer.word, "tensor") != 0)
    return lp_error(p->diag, p->lexer.loc, "expected a tensor type, found '%s'", p->lexer.word);
  lp_lexer_next(&p->lexer);
  if (p->lexer.kind != LP_TOK_PUNCT || strcmp(p->lexer.word, "<") != 0)
    return lp_error(p->diag, p->lexer.loc, "expected '<', found '%s'", p->lexer.word);
  int64_t dims[LP_MAX_RANK];
  const lp_poly *polys[LP_MAX_RANK] = {0};
  int32_t rank;
  bool good = lp_lexer_dims(&p->lexer, dims, LP_MAX_RANK, &rank);
  lp_loc loc = p->lexer.loc;
  lp_lexer_next(&p->lexer);
  if (!good) return lp_error(p->diag, loc, "malformed dimensions (at most %d)", LP_MAX_RANK);
  LP_TRY(parse_dtype(p, &out->dtype));
  bool symbolic = false;
  for (int32_t i = 0; i < rank; i++) {
    symbolic |= dims[i] < 0;
    if (dims[i] >= 0) polys[i] = lp_dim_const(p->module, dims[i]);
  }
  if (symbolic) {
    LP_TRY(lp_parse_expect(p, ","));
    LP_TRY(parse_symbolic_dims(p, rank, dims, polys));
  }
  *out = lp_type_make(p->module, out->dtype, rank, polys);
  return lp_parse_expect(p, ">");
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* A number's text with its sign; hex floats carry bits. */
static lp_status take_number(lp_parser *p, const char **text) {
  bool negative = lp_parse_accept(p, "-");
  if (p->lexer.kind != LP_TOK_NUMBER)
    return lp_error(p->diag, p->lexer.loc, "expected a number, found '%s'", p->lexer.word);
  *text = negative ? lp_arena_format(p->scratch, "-%s", p->lexer.word) : p->lexer.word;
  return LP_OK;
}

static lp_status parse_f64(lp_parser *p, double *out) {
  const char *text;
  LP_TRY(take_number(p, &text));
  if (lp_has_prefix(text, "0x")) {
    uint64_t bits = strtoull(text + 2, NULL, 16);
    memcpy(out, &bits, sizeof bits);
  } else {
    *out = strtod(text, NULL);
  }
  lp_lexer_next(&p->lexer);
  return LP_OK;
}

static lp_status parse_i64(lp_parser *p, int64_t *out) {
  const char *text;
  LP_TRY(take_number(p, &text));
  LP_TRY(lp_parse_i64(text, INT64_MIN, INT64_MAX, out, p->diag, p->lexer.loc));
  lp_lexer_next(&p->lexer);
  return LP_OK;
}

/* ---- dense<...> -------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_buf *text; /* element texts, NUL-separated */
  int64_t count;
} element_list;

static lp_status collect_elements(lp_parser *p, element_list *list, int32_t depth) {
  if (lp_parse_accept(p, "[")) {
    if (depth > LP_MAX_RANK) return lp_error(p->diag, p->lexer.loc, "lists nest deeper than %d", LP_MAX_RANK);
    for (bool first = true; !lp_parse_accept(p, "]"); first = false) {
      if (!first) LP_TRY(lp_parse_expect(p, ","));
      LP_TRY(collect_elements(p, list, depth + 1));
    }
    return LP_OK;
  }
  const char *text = p->lexer.word;
  bool word = p->lexer.kind == LP_TOK_WORD && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0);
  if (!word) LP_TRY(take_number(p, &text));
  if (++list->count > MAX_ELEMENTS)
    return lp_error(p->diag, p->lexer.loc, "more than %d elements in a constant", MAX_ELEMENTS);
  lp_buf_append(list->text, text, strlen(text) + 1);
  lp_lexer_next(&p->lexer);
  return LP_OK;
}

static void store_mini(lp_dtype dtype, const char *text, uint8_t *data, int64_t index) {
  lp_mini mini = lp_dtype_mini(dtype);
  float value = strtof(text, NULL);
  uint32_t bits = lp_has_prefix(text, "0x") ? (uint32_t)strtoul(text + 2, NULL, 16)
                  : mini == LP_MINI_E8M0    ? lp_e8m0_encode(value, LP_E8M0_NEAREST, true)
                                            : lp_mini_encode(value, mini, true);
  if (dtype == LP_F4E2M1)
    lp_packed_set(data, dtype, index, bits);
  else
    data[index] = (uint8_t)bits;
}

static void store_float(lp_dtype dtype, const char *text, uint8_t *at) {
  bool bits_given = lp_has_prefix(text, "0x");
  uint64_t bits = bits_given ? strtoull(text + 2, NULL, 16) : 0;
  double value = bits_given ? 0 : strtod(text, NULL);
  float narrow = (float)value;
  if (dtype == LP_F64) {
    memcpy(at, bits_given ? (const void *)&bits : (const void *)&value, 8);
  } else if (dtype == LP_F32) {
    memcpy(at, bits_given ? (const void *)&bits : (const void *)&narrow, 4);
  } else {
    uint16_t half = bits_given ? (uint16_t)bits : dtype == LP_F16 ? lp_f32_to_f16(narrow) : lp_f32_to_bf16(narrow);
    memcpy(at, &half, 2);
  }
}

static lp_status store_element(lp_parser *p, lp_dtype dtype, const char *text, uint8_t *data, int64_t index) {
  int32_t bits = lp_dtype_bits(dtype);
  size_t size = (size_t)bits / 8;
  if (lp_dtype_is_mini(dtype)) {
    store_mini(dtype, text, data, index);
    return LP_OK;
  }
  if (lp_dtype_is_float(dtype)) {
    store_float(dtype, text, data + (size_t)index * size);
    return LP_OK;
  }
  errno = 0;
  char *end = NULL;
  bool truth = strcmp(text, "true") == 0;
  uint64_t value = truth || strcmp(text, "false") == 0 ? truth
                   : text[0] == '-'                    ? (uint64_t)strtoll(text, &end, 0)
                                                       : strtoull(text, &end, 0);
  if (errno || (end && *end))
    return lp_error(p->diag, p->lexer.loc, "'%s' is not a number of type %s", text, lp_dtype_name(dtype));
  if (bits < 8)
    lp_packed_set(data, dtype, index, (int64_t)value);
  else
    memcpy(data + (size_t)index * size, &value, size);
  return LP_OK;
}

static lp_status build_tensor(lp_parser *p, const element_list *list, lp_type type, lp_tensor *out) {
  int64_t count;
  if (!lp_type_static_numel(type, &count)) return lp_error(p->diag, p->lexer.loc, "a constant's shape must be static");
  if (count != list->count && !(list->count == 1 && count >= 0 && count <= MAX_ELEMENTS))
    return lp_error(p->diag, p->lexer.loc, "%" PRId64 " elements for a shape of %" PRId64, list->count, count);
  size_t bytes = ((size_t)count * (size_t)lp_dtype_bits(type.dtype) + 7) / 8;
  uint8_t *data = lp_arena_alloc(p->module->arena, bytes + 8);
  const char *text = lp_buf_text(list->text);
  for (int64_t i = 0; i < count; i++) {
    LP_TRY(store_element(p, type.dtype, text, data, i));
    if (i + 1 < list->count) text += strlen(text) + 1;
  }
  *out = (lp_tensor){type, data, bytes};
  return LP_OK;
}

static lp_status parse_dense(lp_parser *p, lp_attr *attr) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  element_list list = {&text, 0};
  lp_status status = LP_OK;
  attr->kind = LP_ATTR_TENSOR;
  lp_lexer_next(&p->lexer);
  status = lp_parse_expect(p, "<");
  if (status == LP_OK && !lp_parse_accept(p, ">")) {
    status = collect_elements(p, &list, 0);
    if (status == LP_OK) status = lp_parse_expect(p, ">");
  }
  if (status == LP_OK) status = lp_parse_expect(p, ":");
  lp_type type = {0};
  if (status == LP_OK) status = lp_parse_type(p, &type);
  if (status == LP_OK) status = build_tensor(p, &list, type, &attr->tensor);
  return status;
}

/* ---- lists and polynomials --------------------------------------------------------------------------------------- */

/* array<i64: 1, 2> or array<f64: 1.0> */
static lp_status parse_array(lp_parser *p, lp_attr *attr) {
  lp_lexer_next(&p->lexer);
  LP_TRY(lp_parse_expect(p, "<"));
  bool floats = p->lexer.kind == LP_TOK_WORD && strcmp(p->lexer.word, "f64") == 0;
  if (!floats && (p->lexer.kind != LP_TOK_WORD || strcmp(p->lexer.word, "i64") != 0))
    return lp_error(p->diag, p->lexer.loc, "expected i64 or f64, found '%s'", p->lexer.word);
  attr->kind = floats ? LP_ATTR_F64S : LP_ATTR_I64S;
  lp_lexer_next(&p->lexer);
  LP_VEC(int64_t) items = {0}; /* doubles travel as their bits */
  lp_status status = LP_OK;
  bool more = lp_parse_accept(p, ":");
  while (status == LP_OK && more) {
    int64_t item = 0;
    double value = 0;
    status = floats ? parse_f64(p, &value) : parse_i64(p, &item);
    if (floats) memcpy(&item, &value, sizeof item);
    lp_vec_push(&items, item);
    more = lp_parse_accept(p, ",");
  }
  attr->count = (int32_t)items.count;
  void *copy = items.count ? lp_arena_copy(p->module->arena, items.data, items.count * sizeof(int64_t)) : NULL;
  if (floats)
    attr->fs = copy;
  else
    attr->is = copy;
  lp_vec_free(&items);
  return status == LP_OK ? lp_parse_expect(p, ">") : status;
}

static lp_status parse_strings(lp_parser *p, lp_attr *attr) {
  attr->kind = LP_ATTR_STRS;
  LP_VEC(const char *) items = {0};
  lp_status status = LP_OK;
  lp_lexer_next(&p->lexer);
  while (status == LP_OK && !lp_parse_accept(p, "]")) {
    if (items.count > 0) status = lp_parse_expect(p, ",");
    if (status == LP_OK && p->lexer.kind != LP_TOK_STRING)
      status = lp_error(p->diag, p->lexer.loc, "expected a text in quotes, found '%s'", p->lexer.word);
    if (status != LP_OK) break;
    lp_vec_push(&items, p->lexer.word);
    lp_lexer_next(&p->lexer);
  }
  attr->count = (int32_t)items.count;
  attr->ss = items.count ? lp_arena_copy(p->module->arena, items.data, items.count * sizeof(char *)) : NULL;
  lp_vec_free(&items);
  return status;
}

/* #llmpart.poly<"b*s"> or #llmpart.polys<"b, s"> */
static lp_status parse_poly(lp_parser *p, lp_attr *attr) {
  bool list = strcmp(p->lexer.word, "llmpart.polys") == 0;
  if (!list && strcmp(p->lexer.word, "llmpart.poly") != 0)
    return lp_error(p->diag, p->lexer.loc, "unknown attribute '#%s'", p->lexer.word);
  attr->kind = list ? LP_ATTR_POLYS : LP_ATTR_POLY;
  lp_lexer_next(&p->lexer);
  LP_TRY(lp_parse_expect(p, "<"));
  if (p->lexer.kind != LP_TOK_STRING)
    return lp_error(p->diag, p->lexer.loc, "expected a polynomial in quotes, found '%s'", p->lexer.word);
  char *text = lp_arena_strdup(p->scratch, p->lexer.word), *rest = text;
  LP_VEC(const lp_poly *) items = {0};
  lp_status status = LP_OK;
  while (status == LP_OK && rest && (!list || text[0])) {
    char *comma = list ? strchr(rest, ',') : NULL;
    const lp_poly *poly = NULL;
    if (comma) *comma = '\0';
    status = lp_poly_parse(p->module->arena, &p->module->symbols, rest, &poly, p->diag, p->lexer.loc);
    lp_vec_push(&items, poly);
    rest = comma ? comma + 1 : NULL;
  }
  if (list) {
    attr->count = (int32_t)items.count;
    attr->polys = items.count ? lp_arena_copy(p->module->arena, items.data, items.count * sizeof(lp_poly *)) : NULL;
  } else {
    attr->poly = items.count ? items.data[0] : NULL;
  }
  lp_vec_free(&items);
  LP_TRY(status);
  lp_lexer_next(&p->lexer);
  return lp_parse_expect(p, ">");
}

/* 5 : i64, 1.0e-05 : f64 */
static lp_status parse_scalar(lp_parser *p, lp_attr *attr) {
  const char *text;
  lp_loc loc = p->lexer.loc;
  LP_TRY(take_number(p, &text));
  lp_lexer_next(&p->lexer);
  LP_TRY(lp_parse_expect(p, ":"));
  if (p->lexer.kind == LP_TOK_WORD && strcmp(p->lexer.word, "i64") == 0) {
    attr->kind = LP_ATTR_I64;
    LP_TRY(lp_parse_i64(text, INT64_MIN, INT64_MAX, &attr->i, p->diag, loc));
  } else if (p->lexer.kind == LP_TOK_WORD && strcmp(p->lexer.word, "f64") == 0) {
    attr->kind = LP_ATTR_F64;
    uint64_t bits = lp_has_prefix(text, "0x") ? strtoull(text + 2, NULL, 16) : 0;
    if (lp_has_prefix(text, "0x"))
      memcpy(&attr->f, &bits, sizeof bits);
    else
      attr->f = strtod(text, NULL);
  } else {
    return lp_error(p->diag, p->lexer.loc, "expected i64 or f64, found '%s'", p->lexer.word);
  }
  lp_lexer_next(&p->lexer);
  return LP_OK;
}

lp_status lp_parse_attr(lp_parser *p, lp_attr *attr) {
  const char *word = p->lexer.word;
  switch (p->lexer.kind) {
  case LP_TOK_STRING:
    attr->kind = LP_ATTR_STR;
    attr->s = word;
    lp_lexer_next(&p->lexer);
    return LP_OK;
  case LP_TOK_WORD:
    if (strcmp(word, "dense") == 0) return parse_dense(p, attr);
    if (strcmp(word, "array") == 0) return parse_array(p, attr);
    if (strcmp(word, "true") != 0 && strcmp(word, "false") != 0) break;
    attr->kind = LP_ATTR_BOOL;
    attr->b = word[0] == 't';
    lp_lexer_next(&p->lexer);
    return LP_OK;
  case LP_TOK_HASH:
    return parse_poly(p, attr);
  case LP_TOK_NUMBER:
    return parse_scalar(p, attr);
  case LP_TOK_PUNCT:
    if (strcmp(word, "[") == 0) return parse_strings(p, attr);
    if (strcmp(word, "-") == 0) return parse_scalar(p, attr);
    break;
  default:
    break;
  }
  return lp_error(p->diag, p->lexer.loc, "expected an attribute, found '%s'", word);
}
