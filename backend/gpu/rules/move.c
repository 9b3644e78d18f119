/* Operators that move elements or make them from sizes: one thread per element of the result (of concat: of the
 * operand). */
#include "backend/gpu/rules/element.h"

#include "backend/gpu/rules.h"
#include "backend/values.h"
#include "base/poly.h"

static bool moves(const lp_op *op, char why[64]) {
  for (int32_t i = 0; i <= op->in_count; i++) {
    const lp_value *value = i < op->in_count ? lp_op_in(op, i) : op->out[0];
    if (value && !gpu_type(value->type.dtype))
      return snprintf(why, 64, "values of type %s", lp_dtype_name(value->type.dtype)), false;
    if (value && lp_dtype_bits(value->type.dtype) < 8)
      return snprintf(why, 64, "values of %d bits", (int)lp_dtype_bits(value->type.dtype)), false;
  }
  return true;
}

static const char *source(gpu_element *e, int32_t operand) {
  lp_value *value = lp_op_in(e->b->op, operand);
  return gpu_element_pointer(e, gpu_ref_value(e->b, value, GPU_FORM_RAW), value->type.dtype, false);
}

static const char *target(gpu_element *e) {
  return gpu_element_pointer(e, gpu_ref_out(e->b, 0), e->b->op->out[0]->type.dtype, true);
}

/* y[to] = x[from] */
static void copy(gpu_element *e, const char *x, const char *from, const char *to) {
  const lp_op *op = e->b->op;
  const char *value = gpu_element_load(e, x, lp_op_in(op, 0)->type.dtype, from);
  gpu_element_store(e, target(e), op->out[0]->type.dtype, to, value);
}

/* ---- by index ---------------------------------------------------------------------------------------------------- */

/* The heads of a cache are as many rows apart as it has room for. */
static bool gather_runs(const lp_op *op, char why[64]) {
  const lp_value *x = lp_op_in(op, 0);
  if (lp_value_cache(x) && lp_op_i64(op, "axis", 0) != x->type.rank - 2)
    return snprintf(why, 64, "a KV cache read along another axis than its rows"), false;
  return moves(op, why);
}

static void lower_gather(gpu_builder *b) {
  const lp_type data = lp_op_in(b->op, 0)->type, index = lp_op_in(b->op, 1)->type;
  int32_t axis = (int32_t)lp_op_i64(b->op, "axis", 0);
  const lp_op *cache = lp_value_cache(lp_op_in(b->op, 0));
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *x = source(&e, 0), *at = source(&e, 1), *size = gpu_element_size(&e, data.dim[axis]);
  const char *rows = cache ? gpu_element_size(&e, lp_cache_rows(b->list->module, cache)) : size;
  gpu_element_line(&e, "const long inner = %s, each = %s;", gpu_element_stride(&e, data.dim, axis + 1, data.rank),
                   gpu_element_stride(&e, index.dim, 0, index.rank));
  gpu_element_line(&e, "const long row = from_end(%s[i / inner %% each], %s);", at, size);
  gpu_element_line(&e, "const long from = (i / inner / each * %s + row) * inner + i %% inner;", rows);
  copy(&e, x, "from", "i");
  gpu_element_end(&e, "gather");
}

static void lower_gather_elements(gpu_builder *b) {
  const lp_type data = lp_op_in(b->op, 0)->type;
  int32_t axis = (int32_t)lp_op_i64(b->op, "axis", 0);
  LP_OWNED(lp_buf_free) lp_buf from = {0};
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *x = source(&e, 0), *at = source(&e, 1);
  gpu_element_line(&e, "const long row = from_end(%s[i], %s);", at, gpu_element_size(&e, data.dim[axis]));
  for (int32_t i = 0; i < data.rank; i++)
    lp_buf_printf(&from, "%s%s * (%s)", i ? " + " : "", i == axis ? "row" : gpu_element_coordinate(&e, i),
                  gpu_element_stride(&e, data.dim, i + 1, data.rank));
  copy(&e, x, lp_buf_text(&from), "i");
  gpu_element_end(&e, "gather_elements");
}

/* ---- other places ------------------------------------------------------------------------------------------------ */

static void lower_concat(gpu_builder *b) {
  const lp_op *op = b->op;
  const lp_type to = op->out[0]->type;
  int32_t axis = (int32_t)lp_op_i64(op, "axis", 0);
  const lp_poly *before = lp_dim_const(b->list->module, 0);
  for (int32_t k = 0; k < op->in_count; k++) {
    const lp_type from = lp_op_in(op, k)->type;
    if (gpu_type_is_empty(from)) continue;
    gpu_element e;
    gpu_element_begin(&e, b, from);
    const char *x = source(&e, k), *inner = gpu_element_stride(&e, to.dim, axis + 1, to.rank);
    gpu_element_line(&e, "const long inner = %s, own = %s * inner;", inner, gpu_element_size(&e, from.dim[axis]));
    gpu_element_line(&e, "const long to = i / own * %s * inner + %s * inner + i %% own;",
                     gpu_element_size(&e, to.dim[axis]), gpu_element_size(&e, before));
    gpu_element_store(&e, target(&e), to.dtype, "to", gpu_element_load(&e, x, from.dtype, "i"));
    gpu_element_end(&e, "concat");
    before = lp_poly_add(b->list->module->arena, before, from.dim[axis]);
  }
}

static void lower_slice(gpu_builder *b) {
  const lp_attr *starts = lp_op_attr(b->op, "starts"), *steps = lp_op_attr(b->op, "steps");
  const lp_type from = lp_op_in(b->op, 0)->type;
  LP_OWNED(lp_buf_free) lp_buf at = {0};
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *x = source(&e, 0);
  for (int32_t i = 0; i < from.rank; i++)
    lp_buf_printf(&at, "%s(%s + %s * %" PRId64 "L) * (%s)", i ? " + " : "", gpu_element_size(&e, starts->polys[i]),
                  gpu_element_coordinate(&e, i), steps->is[i], gpu_element_stride(&e, from.dim, i + 1, from.rank));
  copy(&e, x, from.rank ? lp_buf_text(&at) : "0", "i");
  gpu_element_end(&e, "slice");
}

static void lower_transpose(gpu_builder *b) {
  const lp_attr *perm = lp_op_attr(b->op, "perm");
  const lp_type from = lp_op_in(b->op, 0)->type;
  LP_OWNED(lp_buf_free) lp_buf at = {0};
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *x = source(&e, 0);
  for (int32_t i = 0; i < from.rank; i++)
    lp_buf_printf(&at, "%s%s * (%s)", i ? " + " : "", gpu_element_coordinate(&e, i),
                  gpu_element_stride(&e, from.dim, (int32_t)perm->is[i] + 1, from.rank));
  copy(&e, x, from.rank ? lp_buf_text(&at) : "0", "i");
  gpu_element_end(&e, "transpose");
}

static void lower_expand(gpu_builder *b) {
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *x = source(&e, 0);
  copy(&e, x, gpu_element_index(&e, lp_op_in(b->op, 0)->type), "i");
  gpu_element_end(&e, "expand");
}

static void lower_pad(gpu_builder *b) {
  const lp_attr *before = lp_op_attr(b->op, "before");
  const lp_type from = lp_op_in(b->op, 0)->type, to = b->op->out[0]->type;
  LP_OWNED(lp_buf_free) lp_buf at = {0}, inside = {0};
  gpu_element e;
  gpu_element_begin(&e, b, to);
  const char *x = source(&e, 0);
  for (int32_t i = 0; i < from.rank; i++) {
    const char *size = gpu_element_size(&e, from.dim[i]), *shift = gpu_element_size(&e, before->polys[i]);
    const char *coordinate = gpu_element_coordinate(&e, i);
    gpu_element_line(&e, "const long p%d = %s - (%s);", i, coordinate, shift);
    lp_buf_printf(&inside, "%sp%d >= 0 && p%d < %s", i ? " && " : "", i, i, size);
    lp_buf_printf(&at, "%sp%d * (%s)", i ? " + " : "", i, gpu_element_stride(&e, from.dim, i + 1, from.rank));
  }
  const char *value = gpu_element_load(&e, x, from.dtype, from.rank ? lp_buf_text(&at) : "0");
  value = gpu_format(b->list, "%s ? %s : %.9g", from.rank ? lp_buf_text(&inside) : "1", value,
                     lp_op_f64(b->op, "value", 0));
  gpu_element_store(&e, target(&e), to.dtype, "i", value);
  gpu_element_end(&e, "pad");
}

static bool pad_runs(const lp_op *op, char why[64]) {
  double value = lp_op_f64(op, "value", 0);
  if (value - value != 0) return snprintf(why, 64, "padding that is not finite"), false;
  return moves(op, why);
}

static void lower_windows(gpu_builder *b) {
  const lp_attr *window = lp_op_attr(b->op, "window"), *steps = lp_op_attr(b->op, "steps"),
                *dilations = lp_op_attr(b->op, "dilations");
  const lp_type from = lp_op_in(b->op, 0)->type;
  int32_t lead = from.rank - window->count;
  LP_OWNED(lp_buf_free) lp_buf at = {0};
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *x = source(&e, 0);
  for (int32_t i = 0; i < from.rank; i++) {
    const char *stride = gpu_element_stride(&e, from.dim, i + 1, from.rank);
    if (i < lead)
      lp_buf_printf(&at, "%s%s * (%s)", i ? " + " : "", gpu_element_coordinate(&e, i), stride);
    else
      lp_buf_printf(&at, "%s(%s * %" PRId64 " + %s * %" PRId64 ") * (%s)", i ? " + " : "",
                    gpu_element_coordinate(&e, i + window->count), steps->is[i - lead], gpu_element_coordinate(&e, i),
                    dilations->is[i - lead], stride);
  }
  copy(&e, x, lp_buf_text(&at), "i");
  gpu_element_end(&e, "windows");
}

/* ---- results without operands ------------------------------------------------------------------------------------ */

static void make(gpu_builder *b, const char *stem, gpu_element *e, const char *value) {
  gpu_element_store(e, target(e), b->op->out[0]->type.dtype, "i", value);
  gpu_element_end(e, stem);
}

static void lower_iota(gpu_builder *b) {
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *start = gpu_element_size(&e, lp_op_poly(b->op, "start"));
  make(b, "iota", &e, gpu_format(b->list, "%s + %s * i", start, gpu_element_size(&e, lp_op_poly(b->op, "step"))));
}

static void lower_dims(gpu_builder *b) {
  const lp_attr *values = lp_op_attr(b->op, "values");
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *text = "0";
  for (int32_t i = values->count; i-- > 0;)
    text = gpu_format(b->list, "i == %d ? %s : %s", i, gpu_element_size(&e, values->polys[i]), text);
  make(b, "dims", &e, text);
}

static void lower_fill(gpu_builder *b) {
  gpu_element e;
  double value = lp_op_f64(b->op, "value", 0);
  gpu_element_begin(&e, b, b->op->out[0]->type);
  bool finite = value - value == 0;
  make(b, "fill", &e, finite ? gpu_format(b->list, "%.9g", value) : value > 0 ? "INFINITY" : "-INFINITY");
}

/* An alias launches nothing. */
static void lower_reshape(gpu_builder *b) {
  (void)b;
}

const gpu_rule gpu_rule_gather = {LP_OP_GATHER, gather_runs, lower_gather, NULL};
const gpu_rule gpu_rule_gather_elements = {LP_OP_GATHER_ELEMENTS, moves, lower_gather_elements, NULL};
const gpu_rule gpu_rule_concat = {LP_OP_CONCAT, moves, lower_concat, NULL};
const gpu_rule gpu_rule_slice = {LP_OP_SLICE, moves, lower_slice, NULL};
const gpu_rule gpu_rule_transpose = {LP_OP_TRANSPOSE, moves, lower_transpose, NULL};
const gpu_rule gpu_rule_reshape = {LP_OP_RESHAPE, NULL, lower_reshape, NULL};
const gpu_rule gpu_rule_expand = {LP_OP_EXPAND, moves, lower_expand, NULL};
const gpu_rule gpu_rule_pad = {LP_OP_PAD, pad_runs, lower_pad, NULL};
const gpu_rule gpu_rule_windows = {LP_OP_WINDOWS, moves, lower_windows, NULL};
const gpu_rule gpu_rule_iota = {LP_OP_IOTA, moves, lower_iota, NULL};
const gpu_rule gpu_rule_dims = {LP_OP_DIMS, moves, lower_dims, NULL};
const gpu_rule gpu_rule_fill = {LP_OP_FILL, moves, lower_fill, NULL};
