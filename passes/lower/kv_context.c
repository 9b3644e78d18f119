/* Finds the number of positions that a model supports, from the rows of its position tables. An index beyond a table
 * would silently read another row. */
#include "base/poly.h"
#include "ir/ir.h"
#include "passes/lower/kv_cache.h"

typedef struct {
  lp_module *module;
  const lp_poly *end; /* the number of positions: p + s, or the length of an encoder's text */
  int64_t least;      /* the tables have rows for positions 0 .. least - 1; 0: no table was found */
} context_search;

/* The number that every element of `value` equals. */
static bool read_scalar(const lp_value *value, int64_t *out) {
  lp_tensor tensor;
  if (!lp_value_constant(value, &tensor) || (tensor.type.dtype != LP_I64 && tensor.type.dtype != LP_I32)) return false;
  for (int32_t i = 0; i < tensor.type.rank; i++)
    if (!lp_type_static_dim(tensor.type, i, out) || *out != 1) return false;
  *out = lp_tensor_i64(&tensor, 0);
  return true;
}

/* Tells whether `last` is the last position, end - 1, plus a number. */
static bool offset_of(const context_search *c, const lp_poly *last, int64_t *offset) {
  lp_arena *arena = c->module->arena;
  return last &&
         lp_poly_is_const(lp_poly_sub(arena, lp_poly_add(arena, last, lp_dim_const(c->module, 1)), c->end), offset);
}

static bool offset_of_index(const context_search *c, const lp_value *value, int64_t *offset);

static bool offset_of_map(const context_search *c, const lp_op *op, int64_t *offset) {
  const char *fn = lp_op_str(op, "fn", "");
  int64_t by = 0;
  if (lp_streq(fn, "cast") || lp_streq(fn, "copy")) return offset_of_index(c, lp_op_in(op, 0), offset);
  bool adds = lp_streq(fn, "add"), subtracts = lp_streq(fn, "sub");
  if ((!adds && !subtracts) || op->in_count != 2) return false;
  bool second = read_scalar(lp_op_in(op, 1), &by);
  if (!second && !(adds && read_scalar(lp_op_in(op, 0), &by))) return false;
  if (!offset_of_index(c, lp_op_in(op, second ? 0 : 1), offset)) return false;
  return lp_i64_add(*offset, subtracts ? -by : by, offset);
}

/* The greatest element of `value`, as its distance from the last position: 0 for positions themselves, 2 where 2 was
 * added. */
static bool offset_of_index(const context_search *c, const lp_value *value, int64_t *offset) {
  const lp_op *op = value->def;
  int64_t step = 0;
  if (!op) return false;
  switch (op->kind) {
  case LP_OP_IOTA:
    if (!lp_poly_is_const(lp_op_poly(op, "step"), &step) || step != 1) return false;
    return offset_of(c,
                     lp_poly_sub(c->module->arena,
                                 lp_poly_add(c->module->arena, lp_op_poly(op, "start"), op->out[0]->type.dim[0]),
                                 lp_dim_const(c->module, 1)),
                     offset);
  case LP_OP_RESHAPE:
  case LP_OP_EXPAND:
  case LP_OP_TRANSPOSE:
  case LP_OP_SLICE: /* a slice may hold the greatest element */
    return offset_of_index(c, lp_op_in(op, 0), offset);
  case LP_OP_MAP:
    return offset_of_map(c, op, offset);
  default:
    return false;
  }
}

static void take_rows(context_search *c, int64_t rows, int64_t offset) {
  if (rows - offset > 0 && (c->least == 0 || rows - offset < c->least)) c->least = rows - offset;
}

/* Tells whether the operator chooses the same row of a longer table when this table ends, as in models with one rotary
 * table for short and one for long sequences. */
static bool has_longer(const lp_op *op, int64_t rows) {
  const lp_op *choice = lp_value_has_one_use(op->out[0]) ? op->out[0]->uses->owner : NULL;
  if (!lp_op_is(choice, LP_OP_MAP) || !lp_streq(lp_op_str(choice, "fn", ""), "where")) return false;
  for (int32_t i = 1; i < 3; i++) {
    const lp_op *other = lp_op_in(choice, i)->def;
    int64_t more;
    if (lp_op_is(other, LP_OP_GATHER) && lp_op_in(other, 1) == lp_op_in(op, 1) &&
        lp_type_static_dim(lp_op_in(other, 0)->type, (int32_t)lp_op_i64(other, "axis", 0), &more) && more > rows)
      return true;
  }
  return false;
}

static void look_at_gather(context_search *c, const lp_op *op) {
  int64_t rows, offset;
  if (lp_type_static_dim(lp_op_in(op, 0)->type, (int32_t)lp_op_i64(op, "axis", 0), &rows) && !has_longer(op, rows) &&
      offset_of_index(c, lp_op_in(op, 1), &offset))
    take_rows(c, rows, offset);
}

/* Handles rows p .. p + s - 1 of a table. */
static void look_at_slice(context_search *c, const lp_op *op) {
  const lp_attr *starts = lp_op_attr(op, "starts");
  const lp_value *table = lp_op_in(op, 0);
  if (!lp_value_is_constant(table) || !starts) return;
  for (int32_t i = 0; i < starts->count; i++) {
    int64_t rows, offset;
    const lp_poly *size = op->out[0]->type.dim[i];
    const lp_poly *last = lp_poly_sub(c->module->arena, lp_poly_add(c->module->arena, starts->polys[i], size),
                                      lp_dim_const(c->module, 1));
    if (lp_type_static_dim(table->type, i, &rows) && offset_of(c, last, &offset)) take_rows(c, rows, offset);
  }
}

static void find_rows(lp_module *module, lp_op *func, const lp_poly *end, const char *name) {
  context_search c = {.module = module, .end = end, .least = lp_op_i64(func, name, 0)};
  LP_FOR_OPS(op, func->region) {
    if (op->kind == LP_OP_GATHER || op->kind == LP_OP_GATHER_ELEMENTS) look_at_gather(&c, op);
    if (op->kind == LP_OP_SLICE) look_at_slice(&c, op);
  }
  if (c.least > 0) lp_op_set_i64(module, func, name, c.least);
}

void lp_kv_find_context(lp_module *module, lp_op *func, bool encodes) {
  const lp_poly *p = lp_dim_symbol(module, "p"), *s = lp_dim_symbol(module, "s");
  find_rows(module, func, encodes ? s : lp_poly_add(module->arena, p, s), "context");
  const lp_attr *roles = lp_op_attr(func, "input_roles");
  for (int32_t i = 0; roles && i < roles->count; i++)
    if (lp_streq(roles->ss[i], "source_tokens"))
      find_rows(module, func, func->region->arg[i]->type.dim[1], "source_context");
}
