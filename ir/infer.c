/* Types of onnx.* operators from their operands. The rule of each operator is named in ops.def; an entry without a rule
 * does not compile. */
#include "base/poly.h"
#include "ir/infer_internal.h"
#include "ir/ir_internal.h"

#include <assert.h>
#include <string.h>

static lp_infer_rule *const rules[LP_OP_COUNT] = {
#define LP_ONNX(id, name, imin, imax, omin, omax, traits, attrs, infer, lower) [LP_ONNX_##id] = infer_##infer,
#include "ir/ops.def"
};

/* ---- messages ---- */

lp_status lp_infer_fail(const lp_infer *c, const char *format, ...) {
  lp_buf text = {0};
  va_list args;
  va_start(args, format);
  lp_buf_vprintf(&text, format, args);
  va_end(args);
  lp_status status = lp_error(c->diag, c->op->loc, "%s", lp_buf_text(&text));
  lp_buf_free(&text);
  return status;
}

const char *lp_infer_text(const lp_infer *c, const lp_poly *dim) {
  if (!dim) return "?";
  lp_buf text = {0};
  lp_poly_print(dim, &c->m->symbols, &text);
  const char *copy = lp_arena_strdup(c->m->arena, lp_buf_text(&text));
  lp_buf_free(&text);
  return copy;
}

/* ---- operands ---- */

bool lp_infer_has(const lp_infer *c, int32_t index) {
  return lp_op_in(c->op, index) != NULL;
}

lp_status lp_infer_need(const lp_infer *c, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (!lp_infer_has(c, i)) return lp_infer_fail(c, "input %d is missing", i);
  return LP_OK;
}

lp_type lp_infer_in(const lp_infer *c, int32_t index) {
  return lp_op_in(c->op, index)->type;
}

lp_shape lp_infer_shape(const lp_infer *c, int32_t index) {
  lp_type type = lp_infer_in(c, index);
  lp_shape shape = {.rank = type.rank};
  for (int32_t i = 0; i < type.rank; i++)
    shape.dim[i] = type.dim[i];
  return shape;
}

lp_status lp_infer_rank(const lp_infer *c, int32_t index, int32_t rank) {
  int32_t found = lp_infer_in(c, index).rank;
  return found == rank ? LP_OK : lp_infer_fail(c, "input %d has %d axes, %d wanted", index, found, rank);
}

lp_status lp_infer_min_rank(const lp_infer *c, int32_t index, int32_t rank) {
  int32_t found = lp_infer_in(c, index).rank;
  return found >= rank ? LP_OK : lp_infer_fail(c, "input %d has %d axes, at least %d wanted", index, found, rank);
}

lp_status lp_infer_same_dtype(const lp_infer *c, int32_t first, int32_t second) {
  lp_dtype a = lp_infer_in(c, first).dtype, b = lp_infer_in(c, second).dtype;
  if (a == b) return LP_OK;
  return lp_infer_fail(c, "inputs %d and %d differ in type: %s and %s", first, second, lp_dtype_name(a),
                       lp_dtype_name(b));
}

lp_status lp_infer_integer(const lp_infer *c, int32_t index) {
  lp_dtype dtype = lp_infer_in(c, index).dtype;
  if (dtype != LP_BOOL && !lp_dtype_is_float(dtype)) return LP_OK;
  return lp_infer_fail(c, "input %d is of type %s, integers wanted", index, lp_dtype_name(dtype));
}

lp_status lp_infer_index(const lp_infer *c, int32_t index) {
  lp_dtype dtype = lp_infer_in(c, index).dtype;
  if (dtype == LP_I32 || dtype == LP_I64) return LP_OK;
  return lp_infer_fail(c, "input %d is of type %s, an index of i32 or i64 wanted", index, lp_dtype_name(dtype));
}

lp_status lp_infer_axis(const lp_infer *c, int64_t axis, int32_t rank, bool end, int32_t *out) {
  int64_t last = end ? rank : rank - 1;
  if (axis < -rank || axis > last) return lp_infer_fail(c, "axis %" PRId64 " of a tensor with %d axes", axis, rank);
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return LP_OK;
}

/* ---- results ---- */

lp_status lp_infer_push(const lp_infer *c, lp_shape *shape, const lp_poly *dim) {
  if (shape->rank == LP_MAX_RANK) return lp_infer_fail(c, "its result has more than %d axes", LP_MAX_RANK);
  shape->dim[shape->rank++] = dim;
  return LP_OK;
}

/* Constant dimensions' bytes must be countable, or later sizes overflow. */
static bool is_countable(const lp_shape *shape) {
  int64_t product = 8, value;
  bool fits = true;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (!lp_poly_is_const(shape->dim[i], &value)) continue;
    if (value == 0) return true;
    fits = fits && lp_i64_mul(product, value, &product);
  }
  return fits;
}

lp_status lp_infer_set(const lp_infer *c, int32_t index, lp_dtype dtype, const lp_shape *shape) {
  lp_value *out = lp_op_out(c->op, index);
  int64_t value;
  if (!out) return LP_OK;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (!shape->dim[i]) return lp_infer_fail(c, "axis %d of its result overflows", i);
    if (lp_poly_is_const(shape->dim[i], &value) && value < 0)
      return lp_infer_fail(c, "axis %d of its result would have the size %" PRId64, i, value);
  }
  if (!is_countable(shape)) return lp_infer_fail(c, "the size of its result overflows");
  lp_type type = {.dtype = dtype, .rank = shape->rank, .dim = shape->dim};
  if (!lp_type_equal(out->type, type)) out->type = lp_type_make(c->m, dtype, shape->rank, shape->dim);
  return LP_OK;
}

/* ---- dimensions that must agree ---- */

bool lp_poly_is_i64(const lp_poly *poly, int64_t value) {
  int64_t found;
  return poly && lp_poly_is_const(poly, &found) && found == value;
}

static const lp_poly *subst(lp_module *m, const lp_poly *poly, lp_symbol symbol, const lp_poly *by) {
  if (!poly || !lp_poly_has(poly, symbol)) return poly;
  return lp_poly_subst(m->arena, poly, symbol, by);
}

static bool subst_list(lp_module *m, const lp_poly *const **list, int32_t count, lp_symbol symbol, const lp_poly *by) {
  bool found = false;
  for (int32_t i = 0; i < count; i++)
    found = found || ((*list)[i] && lp_poly_has((*list)[i], symbol));
  if (!found) return true;
  const lp_poly **copy = LP_NEW_ARRAY(m->arena, const lp_poly *, count);
  for (int32_t i = 0; i < count; i++) {
    copy[i] = subst(m, (*list)[i], symbol, by);
    if (!copy[i] && (*list)[i]) return false;
  }
  *list = copy;
  return true;
}

static bool subst_value(lp_module *m, lp_value *value, lp_symbol symbol, const lp_poly *by) {
  if (value->known && !subst_list(m, &value->known, value->known_count, symbol, by)) return false;
  return subst_list(m, &value->type.dim, value->type.rank, symbol, by);
}

static bool subst_block(lp_module *m, lp_block *block, lp_symbol symbol, const lp_poly *by);

/* Steps that replacing a symbol takes per operator: many symbols in a long graph would be quadratic. */
enum { SUBST_STEPS = 8 };

bool lp_op_substitute(lp_module *m, lp_op *op, lp_symbol symbol, const lp_poly *by) {
  bool good = lp_module_spend(m, SUBST_STEPS);
  for (int32_t i = 0; i < op->out_count; i++)
    good = good && subst_value(m, op->out[i], symbol, by);
  for (int32_t i = 0; i < op->attr_count && good; i++) {
    lp_attr *attr = &op->attr[i];
    if (attr->kind == LP_ATTR_POLY) {
      attr->poly = subst(m, attr->poly, symbol, by);
      good = attr->poly != NULL;
    } else if (attr->kind == LP_ATTR_POLYS) {
      good = subst_list(m, &attr->polys, attr->count, symbol, by);
    }
  }
  return good && (!op->region || subst_block(m, op->region, symbol, by));
}

static bool subst_block(lp_module *m, lp_block *block, lp_symbol symbol, const lp_poly *by) {
  bool good = true;
  for (int32_t i = 0; i < block->arg_count; i++)
    good = good && subst_value(m, block->arg[i], symbol, by);
  for (lp_op *op = block->first; op && good; op = op->next)
    good = lp_op_substitute(m, op, symbol, by);
  return good;
}

bool lp_module_substitute(lp_module *module, lp_symbol symbol, const lp_poly *by) {
  return subst_block(module, lp_module_body(module), symbol, by);
}

/* Names that nobody gave: the importer's d0, d1, ... . */
static bool is_unnamed(const lp_symbols *symbols, lp_symbol symbol) {
  const char *name = lp_symbols_name(symbols, symbol);
  return name[0] == 'd' && name[1] >= '0' && name[1] <= '9' && strspn(name + 1, "0123456789") == strlen(name + 1);
}

static bool all_positive(const lp_poly *poly) {
  for (int32_t i = 0; i < poly->count; i++)
    if (poly->term[i].coef < 0) return false;
  return true;
}

/* a - b = 0 solved for a symbol that occurs in one linear term of coefficient 1 or -1, if what it equals is sure to be a
 * size. Unnamed symbols first, then the youngest. */
static lp_symbol solve(const lp_infer *c, const lp_poly *difference, const lp_poly **by) {
  lp_arena *arena = c->m->arena;
  lp_symbol best = 0;
  for (int32_t i = 0; i < difference->count; i++) {
    const lp_term *t = &difference->term[i];
    lp_symbol symbol = t->symbol[0];
    if ((t->coef != 1 && t->coef != -1) || !symbol || t->symbol[1]) continue;
    const lp_poly *alone = lp_poly_scale(arena, lp_poly_symbol(arena, symbol), t->coef);
    const lp_poly *rest = lp_poly_scale(arena, lp_poly_sub(arena, difference, alone), -t->coef);
    if (!rest || lp_poly_has(rest, symbol) || !all_positive(rest)) continue;
    bool unnamed = is_unnamed(&c->m->symbols, symbol), best_unnamed = best && is_unnamed(&c->m->symbols, best);
    if (best && (best_unnamed > unnamed || (best_unnamed == unnamed && best > symbol))) continue;
    best = symbol;
    *by = rest;
  }
  return best;
}

lp_status lp_infer_agree(lp_infer *c, const lp_poly *a, const lp_poly *b, const lp_poly **out) {
  *out = a;
  if (lp_poly_equal(a, b)) return LP_OK;
  const lp_poly *difference = lp_poly_sub(c->m->arena, a, b), *by = NULL;
  lp_symbol symbol = difference ? solve(c, difference, &by) : 0;
  if (!symbol || !lp_module_substitute(c->m, symbol, by)) {
    if (c->m->eval_steps < SUBST_STEPS)
      return lp_infer_fail(c, "the graph has too many dimensions that must agree with each other");
    return lp_infer_fail(c, "dimensions %s and %s must agree", lp_infer_text(c, a), lp_infer_text(c, b));
  }
  c->again = true;
  *out = subst(c->m, a, symbol, by);
  return LP_OK;
}

/* The symbol that a dimension is, or 0. */
static lp_symbol lone_symbol(const lp_poly *dim) {
  bool lone = dim->count == 1 && dim->term[0].coef == 1 && dim->term[0].symbol[0] && !dim->term[0].symbol[1];
  return lone ? dim->term[0].symbol[0] : 0;
}

static const lp_block *function_of(const lp_infer *c) {
  const lp_block *block = c->op->block;
  while (block && block->parent && block->parent->kind != LP_OP_FUNC)
    block = block->parent->block;
  return block;
}

bool lp_infer_sizes_integers(const lp_infer *c, lp_symbol symbol) {
  const lp_block *block = function_of(c);
  for (int32_t i = 0; block && i < block->arg_count; i++)
    for (int32_t axis = 0; !lp_dtype_is_float(block->arg[i]->type.dtype) && axis < block->arg[i]->type.rank; axis++)
      if (lone_symbol(block->arg[i]->type.dim[axis]) == symbol) return true;
  return false;
}

/* Is the symbol the first axis of an argument of the function? */
static bool leads_argument(const lp_infer *c, lp_symbol symbol) {
  const lp_block *block = function_of(c);
  for (int32_t i = 0; block && i < block->arg_count; i++)
    if (block->arg[i]->type.rank > 0 && lone_symbol(block->arg[i]->type.dim[0]) == symbol) return true;
  return false;
}

/* A batch that meets another axis in broadcasting is one that was traced, and only works, with one sequence. */
static lp_status broadcast_dims(lp_infer *c, const lp_poly *a, const lp_poly *b, const lp_poly **out) {
  lp_symbol x = lone_symbol(a), y = lone_symbol(b);
  bool x_leads = x && y && x != y && leads_argument(c, x), y_leads = x && y && x != y && leads_argument(c, y);
  if (x_leads == y_leads) return lp_infer_agree(c, a, b, out);
  lp_symbol batch = x_leads ? x : y;
  lp_warning(c->diag, c->op->loc, "'%s' is taken to be 1: it broadcasts to '%s'",
             lp_symbols_name(&c->m->symbols, batch), lp_symbols_name(&c->m->symbols, x_leads ? y : x));
  *out = x_leads ? b : a;
  c->again = true;
  return lp_module_substitute(c->m, batch, lp_dim_const(c->m, 1)) ? LP_OK : lp_infer_fail(c, "a size overflows");
}

lp_status lp_infer_one_batch(lp_infer *c, const lp_poly *product, const lp_poly *batch) {
  lp_symbol divisor = lone_symbol(batch);
  if (!divisor || !leads_argument(c, divisor) || product->count != 1) return LP_OK;
  for (size_t i = 0; i < LP_COUNT(product->term[0].symbol) && product->term[0].symbol[i]; i++) {
    lp_symbol symbol = product->term[0].symbol[i];
    const lp_poly *same;
    if (leads_argument(c, symbol)) return lp_infer_agree(c, lp_poly_symbol(c->m->arena, symbol), batch, &same);
  }
  return LP_OK;
}

lp_status lp_infer_broadcast(lp_infer *c, lp_shape *shape, const lp_shape *with) {
  lp_shape out = {.rank = shape->rank > with->rank ? shape->rank : with->rank};
  for (int32_t i = 1; i <= out.rank; i++) {
    const lp_poly *a = i <= shape->rank ? shape->dim[shape->rank - i] : NULL;
    const lp_poly *b = i <= with->rank ? with->dim[with->rank - i] : NULL;
    const lp_poly **to = &out.dim[out.rank - i];
    if (!a || !b)
      *to = a ? a : b;
    else if (lp_poly_is_i64(a, 1))
      *to = b;
    else if (lp_poly_is_i64(b, 1))
      *to = a;
    else
      LP_TRY(broadcast_dims(c, a, b, to));
  }
  *shape = out;
  return LP_OK;
}

/* ---- entry points ---- */

lp_status lp_op_infer(lp_module *module, lp_op *op, lp_diag *diag) {
  if (op->kind == LP_OP_CONSTANT) lp_infer_constant_known(module, op->out[0]);
  if (op->kind == LP_OP_DIMS) {
    op->out[0]->known = lp_op_attr(op, "values")->polys;
    op->out[0]->known_count = lp_op_attr(op, "values")->count;
  }
  if (lp_op_info_get(op->kind)->level != LP_LEVEL_ONNX) return LP_OK;
  lp_infer c = {.m = module, .op = op, .diag = diag};
  do { /* each turn takes a symbol away, so this ends */
    c.again = false;
    assert(rules[op->kind]);
    LP_TRY(rules[op->kind](&c));
  } while (c.again);
  lp_infer_values(&c);
  return LP_OK;
}

lp_status lp_block_infer(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_FOR_OPS(op, block) {
    LP_TRY(lp_op_infer(module, op, diag));
    if (op->region) LP_TRY(lp_block_infer(module, op->region, diag));
  }
  return LP_OK;
}
