/* Element types and shapes. A dimension's name becomes a symbol, an expression of names a polynomial. */
#include "base/map.h"
#include "base/poly.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/lengths.h"
#include "frontend/onnx/tensor.h"

#include <ctype.h>

/* Names of TensorProto.DataType, for messages; the numbers past 16 are younger than the installed onnx.proto. */
static const char *const data_types[] = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};

const char *lp_onnx_dtype_name(int32_t data_type) {
  return data_type < 0 || (size_t)data_type >= LP_COUNT(data_types) ? data_types[0] : data_types[data_type];
}

/* ---- symbols ---- */

static bool is_name_start(char c) {
  return isalpha((unsigned char)c) || c == '_';
}

static bool is_name_char(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* Tells whether the name is not one of the symbols that every module begins with. Those have a meaning in the compiler,
 * and bind-inputs assigns them. */
static bool is_free(const lp_importer *im, const char *name) {
  return lp_symbols_find(&im->module->symbols, name) == 0;
}

/* Returns the symbol for a dimension's name: the name itself when it is an identifier that is not taken, else a changed
 * name. */
static const char *symbol_of(lp_importer *im, const char *name) {
  const char *known = lp_map_get(im->dims, name);
  if (known) return known;
  lp_buf text = {0};
  if (!is_name_start(name[0])) lp_buf_puts(&text, "d_");
  for (const char *c = name; *c && text.size < 200; c++)
    lp_buf_append(&text, is_name_char(*c) ? c : "_", 1);
  const char *base = lp_arena_strdup(im->module->arena, lp_buf_text(&text));
  lp_buf_free(&text);
  const char *symbol = base;
  for (int i = 0; !is_free(im, symbol); i++)
    symbol = i == 0 ? lp_arena_format(im->module->arena, "%s_dim", base)
                    : lp_arena_format(im->module->arena, "%s_%d", base, i + 1);
  lp_symbols_intern(&im->module->symbols, symbol);
  lp_map_put(im->dims, name, (void *)(uintptr_t)symbol);
  return symbol;
}

static lp_status make_symbol(lp_importer *im, const char *name, lp_loc loc, const lp_poly **out) {
  const char *symbol = symbol_of(im, name);
  if (is_free(im, symbol)) return lp_error(im->diag, loc, "more than %d names of dimensions", LP_MAX_NAMED_SYMBOLS);
  *out = lp_dim_symbol(im->module, symbol);
  return LP_OK;
}

static lp_status fresh_symbol(lp_importer *im, lp_loc loc, const lp_poly **out) {
  char name[32];
  do
    snprintf(name, sizeof name, "d%" PRId64, im->next_dim++);
  while (!is_free(im, name));
  return make_symbol(im, name, loc, out);
}

/* ---- expressions ---- */

/* "past_sequence_length + 1": rewrites the names to symbols. A '-' without spaces or digits around it belongs to a name
 * ("seq-len"); the whole text is then one name. */
static bool rewrite_expression(lp_importer *im, const char *text, lp_buf *out) {
  bool has_operator = false;
  for (const char *c = text; *c;) {
    if (is_name_start(*c)) {
      const char *end = c;
      while (is_name_char(*end) || *end == '.' || *end == ':')
        end++;
      const char *name = lp_arena_strndup(im->scratch, c, (size_t)(end - c));
      lp_buf_puts(out, symbol_of(im, name));
      c = end;
    } else if (strchr("+*()", *c) || (*c == '-' && (c[1] == ' ' || isdigit((unsigned char)c[1])))) {
      has_operator = true;
      lp_buf_append(out, c++, 1);
    } else if (isdigit((unsigned char)*c) || *c == ' ') {
      lp_buf_append(out, c++, 1);
    } else {
      return false;
    }
  }
  return has_operator;
}

/* Tells whether the text is an expression. Only then may its names become symbols. */
static bool is_expression(const char *text) {
  int depth = 0;
  bool want_operand = true, operators = false;
  for (const char *c = text; *c; c++) {
    if (*c == ' ') continue;
    if (*c == '(' && want_operand) {
      depth++;
    } else if (*c == ')' && !want_operand && depth > 0) {
      depth--;
    } else if (strchr("+*", *c) || (*c == '-' && (c[1] == ' ' || isdigit((unsigned char)c[1])))) {
      if (want_operand) return false;
      want_operand = operators = true;
    } else if (is_name_char(*c) && want_operand) {
      while (is_name_char(c[1]) || c[1] == '.' || c[1] == ':')
        c++;
      want_operand = false;
    } else {
      return false;
    }
  }
  return operators && !want_operand && depth == 0;
}

/* Tells whether a number is added to symbols. Older exporters wrote the one token of their example so:
 * "past_sequence_length + 1". */
static bool adds_number(const lp_poly *size) {
  for (int32_t i = 0; i < size->count; i++)
    if (size->count > 1 && !size->term[i].symbol[0]) return true;
  return false;
}

static lp_status named_dim(lp_importer *im, const char *name, lp_loc loc, const lp_poly **out) {
  im->labelled |= name[0] != '\0';
  if (!name[0] || im->without_labels || lp_map_has(im->vague, name)) return fresh_symbol(im, loc, out);
  if (is_expression(name)) {
    lp_buf text = {0};
    *out = NULL;
    if (rewrite_expression(im, name, &text)) {
      lp_status parsed = lp_poly_parse(im->module->arena, &im->module->symbols, lp_buf_text(&text), out, NULL, loc);
      if (parsed != LP_OK) *out = NULL;
    }
    lp_buf_free(&text);
    if (*out && adds_number(*out)) {
      lp_note(im->diag, loc,
              "the dimension '%s' adds a number, so it is read as a single name, which may have any value", name);
      return fresh_symbol(im, loc, out);
    }
    if (*out) return LP_OK;
  }
  return make_symbol(im, name, loc, out);
}

/* ---- types ---- */

static const char *kind_of_type(const Onnx__TypeProto *type) {
  switch (type->value_case) {
  case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
    return "a sequence";
  case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
    return "a map";
  case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
    return "an optional";
  case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
    return "a sparse tensor";
  default:
    return NULL;
  }
}

static lp_status import_dim(lp_importer *im, const Onnx__TensorShapeProto__Dimension *dim, const char *what,
                            const char *name, const lp_poly **out) {
  lp_loc loc = LP_LOC_FILE(im->path);
  if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
    if (dim->dim_value == -1) return fresh_symbol(im, loc, out); /* some exporters write -1 for an open size */
    if (dim->dim_value < 0)
      return lp_error(im->diag, loc, "%s '%s' has the negative dimension %" PRId64, what, name, dim->dim_value);
    *out = lp_dim_const(im->module, dim->dim_value);
    return LP_OK;
  }
  bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
  return named ? named_dim(im, lp_text(dim->dim_param), loc, out) : fresh_symbol(im, loc, out);
}

/* Tells whether the product of the constant dimensions is a size that memory could have. */
static bool is_countable(const lp_poly *const *dim, int32_t rank) {
  int64_t product = 8;
  for (int32_t i = 0; i < rank; i++) {
    int64_t value;
    if (lp_poly_is_const(dim[i], &value) && value > 0 && !lp_i64_mul(product, value, &product)) return false;
  }
  return true;
}

lp_status lp_import_type(lp_importer *im, const Onnx__GraphProto *graph, const Onnx__TypeProto *type, const char *name,
                         lp_type *out) {
  static const char what[] = "input";
  lp_loc loc = LP_LOC_FILE(im->path);
  const char *other = type ? kind_of_type(type) : NULL;
  if (other)
    return lp_error(im->diag, lp_reader_loc(im, graph, name), "%s '%s' is %s; only tensors are supported", what, name,
                    other);
  if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type)
    return lp_error(im->diag, loc, "%s '%s' has no type", what, name);
  const Onnx__TypeProto__Tensor *tensor = type->tensor_type;
  lp_dtype dtype;
  if (!lp_dtype_from_onnx(tensor->elem_type, &dtype))
    return lp_error(im->diag, lp_reader_loc(im, graph, name),
                    "%s '%s' has elements of type '%s' (%d), which is not supported", what, name,
                    lp_onnx_dtype_name(tensor->elem_type), (int)tensor->elem_type);
  if (!tensor->shape) return lp_error(im->diag, loc, "%s '%s' has no shape", what, name);
  if (tensor->shape->n_dim > LP_MAX_RANK)
    return lp_error(im->diag, loc, "%s '%s' has %zu dimensions, at most %d are supported", what, name,
                    tensor->shape->n_dim, LP_MAX_RANK);
  const lp_poly *dim[LP_MAX_RANK];
  int32_t rank = (int32_t)tensor->shape->n_dim;
  for (int32_t i = 0; i < rank; i++) {
    bool label = (im->frees_lengths && lp_is_constant_length(graph, tensor, name, i)) ||
                 lp_is_wrong_label(graph, tensor, name, i);
    LP_TRY(label ? fresh_symbol(im, loc, &dim[i]) : import_dim(im, tensor->shape->dim[i], what, name, &dim[i]));
  }
  if (!is_countable(dim, rank)) return lp_error(im->diag, loc, "the size of %s '%s' overflows", what, name);
  *out = lp_type_make(im->module, dtype, rank, dim);
  return LP_OK;
}
