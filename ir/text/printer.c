/* Prints modules as generic MLIR assembly. Output depends only on the module: values are numbered in order of
 * definition, attributes are sorted, floats print shortest-exact with a decimal point, infinities in hex. */
#include "base/poly.h"
#include "ir/ir.h"
#include "ir/ir_internal.h"

#include <math.h>

typedef struct {
  const lp_module *module;
  lp_buf *out;
  bool locations;
  int32_t next_value;
} printer;

/* Value numbers live in value->scratch while printing: number + 1. */
static void number_value(printer *p, lp_value *value) {
  value->scratch = (void *)(intptr_t)(++p->next_value);
}

static void print_value(printer *p, const lp_value *value) {
  const lp_value *head = value->def ? value->def->out[0] : value;
  lp_buf_printf(p->out, "%%%" PRIdPTR, (intptr_t)head->scratch - 1);
  if (value->def && value->def->out_count > 1) lp_buf_printf(p->out, "#%d", value->index);
}

static void print_string(const char *text, lp_buf *out) {
  lp_buf_puts(out, "\"");
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    if (*c == '"' || *c == '\\' || *c < 0x20 || *c >= 0x7f)
      lp_buf_printf(out, "\\%02X", *c);
    else
      lp_buf_append(out, c, 1);
  lp_buf_puts(out, "\"");
}

const char *lp_dtype_text(lp_dtype dtype) {
  static const char *const texts[LP_DTYPE_COUNT] = {[LP_F32] = "f32",
                                                    [LP_F16] = "f16",
                                                    [LP_BF16] = "bf16",
                                                    [LP_F64] = "f64",
                                                    [LP_I8] = "i8",
                                                    [LP_I16] = "i16",
                                                    [LP_I32] = "i32",
                                                    [LP_I64] = "i64",
                                                    [LP_U8] = "ui8",
                                                    [LP_U16] = "ui16",
                                                    [LP_U32] = "ui32",
                                                    [LP_U64] = "ui64",
                                                    [LP_BOOL] = "i1",
                                                    [LP_I4] = "i4",
                                                    [LP_U4] = "ui4",
                                                    [LP_I2] = "i2",
                                                    [LP_U2] = "ui2",
                                                    [LP_F8E4M3FN] = "f8E4M3FN",
                                                    [LP_F8E4M3FNUZ] = "f8E4M3FNUZ",
                                                    [LP_F8E5M2] = "f8E5M2",
                                                    [LP_F8E5M2FNUZ] = "f8E5M2FNUZ",
                                                    [LP_F8E8M0] = "!llmpart.f8E8M0",
                                                    [LP_F4E2M1] = "!llmpart.f4E2M1"};
  return texts[dtype];
}

static void print_type(printer *p, lp_type type) {
  lp_buf_puts(p->out, "tensor<");
  bool symbolic = false;
  for (int32_t i = 0; i < type.rank; i++) {
    int64_t dim;
    if (lp_poly_is_const(type.dim[i], &dim) && dim >= 0)
      lp_buf_printf(p->out, "%" PRId64 "x", dim);
    else {
      lp_buf_puts(p->out, "?x");
      symbolic = true;
    }
  }
  if (type.rank < 0) lp_buf_puts(p->out, "*x");
  lp_buf_puts(p->out, lp_dtype_text(type.dtype));
  if (symbolic) {
    const char *before = ", [";
    for (int32_t i = 0; i < type.rank; i++) {
      int64_t dim;
      if (lp_poly_is_const(type.dim[i], &dim) && dim >= 0) continue;
      lp_buf_printf(p->out, "%s\"", before);
      lp_poly_print(type.dim[i], &p->module->symbols, p->out);
      lp_buf_puts(p->out, "\"");
      before = ", ";
    }
    lp_buf_puts(p->out, "]");
  }
  lp_buf_puts(p->out, ">");
}

/* `digits` is the number of digits that makes the text exact for the type: 9 for f32, 17 for f64. */
static void print_float(double value, int digits, lp_buf *out) {
  char text[40] = "";
  for (int used = 1; used <= digits; used++) {
    (void)snprintf(text, sizeof text, "%.*e", used - 1, value);
    double back = strtod(text, NULL);
    if (digits == 9 ? (float)back == (float)value : back == value) break;
  }
  char *exponent = strchr(text, 'e');
  bool point = strchr(text, '.') != NULL;
  lp_buf_append(out, text, (size_t)(exponent - text));
  lp_buf_puts(out, point ? "" : ".0");
  lp_buf_puts(out, exponent);
}

static void print_f64(double value, lp_buf *out) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isfinite(value))
    print_float(value, 17, out);
  else
    lp_buf_printf(out, "0x%016" PRIX64, bits);
}

static void print_element(const lp_tensor *tensor, int64_t index, lp_buf *out) {
  if (tensor->type.dtype == LP_BOOL) {
    lp_buf_puts(out, lp_tensor_i64(tensor, index) ? "true" : "false");
  } else if (!lp_dtype_is_float(tensor->type.dtype)) {
    int64_t value = lp_tensor_i64(tensor, index);
    if (tensor->type.dtype == LP_U64)
      lp_buf_printf(out, "%" PRIu64, (uint64_t)value);
    else
      lp_buf_printf(out, "%" PRId64, value);
  } else if (isfinite(lp_tensor_f64(tensor, index))) {
    print_float(lp_tensor_f64(tensor, index), tensor->type.dtype == LP_F64 ? 17 : 9, out);
  } else {
    size_t size = (size_t)lp_dtype_bits(tensor->type.dtype) / 8;
    const uint8_t *at = (const uint8_t *)tensor->data + (size_t)index * size;
    lp_buf_puts(out, "0x");
    for (size_t i = size; i-- > 0;)
      lp_buf_printf(out, "%02X", at[i]);
  }
}

static void print_elements(const lp_tensor *tensor, int32_t axis, int64_t *index, lp_buf *out) {
  if (axis == tensor->type.rank) {
    print_element(tensor, (*index)++, out);
    return;
  }
  int64_t dim = 0;
  (void)lp_poly_is_const(tensor->type.dim[axis], &dim);
  lp_buf_puts(out, "[");
  for (int64_t i = 0; i < dim; i++) {
    if (i > 0) lp_buf_puts(out, ", ");
    print_elements(tensor, axis + 1, index, out);
  }
  lp_buf_puts(out, "]");
}

static void print_tensor(printer *p, const lp_tensor *tensor) {
  int64_t count = 0, index = 0;
  (void)lp_type_static_numel(tensor->type, &count);
  lp_buf_puts(p->out, "dense<");
  if (count > 0) print_elements(tensor, 0, &index, p->out);
  lp_buf_puts(p->out, "> : ");
  print_type(p, tensor->type);
}

static void print_polys(printer *p, const lp_attr *attr) {
  lp_buf_puts(p->out, "#llmpart.polys<\"");
  for (int32_t i = 0; i < attr->count; i++) {
    if (i > 0) lp_buf_puts(p->out, ", ");
    lp_poly_print(attr->polys[i], &p->module->symbols, p->out);
  }
  lp_buf_puts(p->out, "\">");
}

static void print_list(printer *p, const lp_attr *attr) {
  bool text = attr->kind == LP_ATTR_STRS;
  lp_buf_puts(p->out, text ? "[" : attr->kind == LP_ATTR_I64S ? "array<i64" : "array<f64");
  for (int32_t i = 0; i < attr->count; i++) {
    lp_buf_puts(p->out, i > 0 ? ", " : text ? "" : ": ");
    if (text)
      print_string(attr->ss[i], p->out);
    else if (attr->kind == LP_ATTR_I64S)
      lp_buf_printf(p->out, "%" PRId64, attr->is[i]);
    else
      print_f64(attr->fs[i], p->out);
  }
  lp_buf_puts(p->out, text ? "]" : ">");
}

static void print_attr(printer *p, const lp_attr *attr) {
  switch (attr->kind) {
  case LP_ATTR_BOOL:
    lp_buf_puts(p->out, attr->b ? "true" : "false");
    break;
  case LP_ATTR_I64:
    lp_buf_printf(p->out, "%" PRId64 " : i64", attr->i);
    break;
  case LP_ATTR_F64:
    print_f64(attr->f, p->out);
    lp_buf_puts(p->out, " : f64");
    break;
  case LP_ATTR_STR:
    print_string(attr->s, p->out);
    break;
  case LP_ATTR_POLY:
    lp_buf_puts(p->out, "#llmpart.poly<\"");
    lp_poly_print(attr->poly, &p->module->symbols, p->out);
    lp_buf_puts(p->out, "\">");
    break;
  case LP_ATTR_I64S:
  case LP_ATTR_F64S:
  case LP_ATTR_STRS:
    print_list(p, attr);
    break;
  case LP_ATTR_POLYS:
    print_polys(p, attr);
    break;
  case LP_ATTR_TENSOR:
    print_tensor(p, &attr->tensor);
    break;
  }
}

/* MLIR has no absent operand: only those present are printed, and `operand_mask` says which. */
static void print_attrs(printer *p, const lp_op *op) {
  bool absent = false;
  for (int32_t i = 0; i < op->in_count; i++)
    absent |= !op->in[i].value;
  if (op->attr_count == 0 && !absent && op->kind != LP_OP_MODULE) return;
  const char *before = " {";
  bool mask_due = absent;
  for (int32_t i = 0; i <= op->attr_count; i++) {
    bool last = i == op->attr_count;
    if (mask_due && (last || strcmp(op->attr[i].name, LP_MASK_ATTR) > 0)) {
      lp_buf_printf(p->out, "%s" LP_MASK_ATTR " = \"", before);
      for (int32_t k = 0; k < op->in_count; k++)
        lp_buf_puts(p->out, op->in[k].value ? "1" : "0");
      lp_buf_puts(p->out, "\"");
      before = ", ";
      mask_due = false;
    }
    if (last) break;
    lp_buf_printf(p->out, "%s%s = ", before, op->attr[i].name);
    print_attr(p, &op->attr[i]);
    before = ", ";
  }
  if (op->kind == LP_OP_MODULE) {
    lp_buf_printf(p->out, "%sllmpart.name = ", before);
    print_string(p->module->name, p->out);
    lp_buf_puts(p->out, ", llmpart.symbols = [");
    for (size_t i = 0; i < p->module->symbols.names.count; i++) {
      if (i > 0) lp_buf_puts(p->out, ", ");
      print_string(p->module->symbols.names.data[i], p->out);
    }
    lp_buf_puts(p->out, "]");
  }
  lp_buf_puts(p->out, "}");
}

/* Prints the operator's place in the model only: a position in text would change with every printing. */
static void print_location(printer *p, const lp_op *op) {
  const lp_loc *loc = &op->loc;
  if (!p->locations || !loc->node) return;
  LP_OWNED(lp_buf_free) lp_buf name = {0};
  lp_buf_printf(&name, "%s (%s)", loc->node, loc->op ? loc->op : "");
  lp_buf_puts(p->out, " loc(");
  print_string(lp_buf_text(&name), p->out);
  lp_buf_puts(p->out, "(");
  print_string(loc->file ? loc->file : "", p->out);
  lp_buf_printf(p->out, ":%d:%d))", loc->line, loc->col);
}

static void print_op(printer *p, lp_op *op, int indent);

static void print_region(printer *p, lp_block *block, int indent) {
  lp_buf_puts(p->out, " ({\n");
  if (block->arg_count > 0 || !block->first) {
    lp_buf_printf(p->out, "%*s^bb0", indent, "");
    for (int32_t i = 0; i < block->arg_count; i++) {
      number_value(p, block->arg[i]);
      lp_buf_puts(p->out, i > 0 ? ", " : "(");
      print_value(p, block->arg[i]);
      lp_buf_puts(p->out, ": ");
      print_type(p, block->arg[i]->type);
    }
    lp_buf_puts(p->out, block->arg_count > 0 ? "):\n" : ":\n");
  }
  LP_FOR_OPS(op, block)
    print_op(p, op, indent + 2);
  lp_buf_printf(p->out, "%*s})", indent, "");
}

static void print_signature(printer *p, const lp_op *op) {
  lp_buf_puts(p->out, " : (");
  bool first = true;
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!op->in[i].value) continue;
    if (!first) lp_buf_puts(p->out, ", ");
    print_type(p, op->in[i].value->type);
    first = false;
  }
  lp_buf_puts(p->out, op->out_count == 1 ? ") -> " : ") -> (");
  for (int32_t i = 0; i < op->out_count; i++) {
    if (i > 0) lp_buf_puts(p->out, ", ");
    print_type(p, op->out[i]->type);
  }
  if (op->out_count != 1) lp_buf_puts(p->out, ")");
}

static void print_op(printer *p, lp_op *op, int indent) {
  lp_buf_printf(p->out, "%*s", indent, "");
  for (int32_t i = 0; i < op->out_count; i++)
    if (i == 0) number_value(p, op->out[0]);
  if (op->out_count > 0) {
    lp_buf_printf(p->out, "%%%d", p->next_value - 1);
    if (op->out_count > 1) lp_buf_printf(p->out, ":%d", op->out_count);
    lp_buf_puts(p->out, " = ");
  }
  lp_buf_printf(p->out, "\"%s\"(", lp_op_info_get(op->kind)->name);
  bool first = true;
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!op->in[i].value) continue;
    if (!first) lp_buf_puts(p->out, ", ");
    print_value(p, op->in[i].value);
    first = false;
  }
  lp_buf_puts(p->out, ")");
  if (op->region) print_region(p, op->region, indent);
  print_attrs(p, op);
  print_signature(p, op);
  print_location(p, op);
  lp_buf_puts(p->out, "\n");
}

static void clear_numbers(lp_block *block) {
  for (int32_t i = 0; i < block->arg_count; i++)
    block->arg[i]->scratch = NULL;
  LP_FOR_OPS(op, block) {
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = NULL;
    if (op->region) clear_numbers(op->region);
  }
}

void lp_module_print(const lp_module *module, bool with_locations, lp_buf *out) {
  printer p = {.module = module, .out = out, .locations = with_locations};
  print_op(&p, module->op, 0);
  clear_numbers(module->op->region);
}
