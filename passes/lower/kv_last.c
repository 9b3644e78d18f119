/* Computes the last r rows only. A prompt needs only the logits of its last token, so the operators that only these
 * logits need are computed for the last r of the s new rows: the head, and the last layer except its keys and values.
 * The search starts at the end: an operator is narrowed when every use of its results is narrowed; its other operands
 * are sliced. */
#include "base/poly.h"
#include "passes/build.h"
#include "passes/lower/kv_cache.h"

typedef struct {
  lp_module *module;
  lp_block *block;
  lp_diag *diag;
  const lp_poly *s, *r;
} last_pass;

/* Marks in op->scratch. */
static char narrowed, barred;

static bool is_long(const last_pass *l, const lp_poly *dim) {
  return lp_poly_has(dim, lp_symbols_find(&l->module->symbols, "s"));
}

/* The axis of `type` that counts new rows; -1: none, -2: several. */
static int32_t long_axis(const last_pass *l, lp_type type) {
  int32_t found = -1;
  for (int32_t i = 0; i < type.rank; i++)
    if (is_long(l, type.dim[i])) found = found == -1 ? i : -2;
  return found;
}

/* Tells whether a reshape keeps each row whole. It may join rows with axes before them. */
static bool keeps_rows(const last_pass *l, const lp_op *op) {
  const lp_type x = lp_op_in(op, 0)->type, y = op->out[0]->type;
  int32_t from = long_axis(l, x), to = long_axis(l, y);
  return from >= 0 && to >= 0 &&
         lp_poly_equal(lp_dim_product(l->module, x.dim, 0, from + 1), lp_dim_product(l->module, y.dim, 0, to + 1)) &&
         lp_poly_equal(lp_dim_product(l->module, x.dim, from + 1, x.rank),
                       lp_dim_product(l->module, y.dim, to + 1, y.rank));
}

/* Tells whether a row of the result depends on one row of each operand. */
static bool is_rowwise(const last_pass *l, const lp_op *op) {
  switch (op->kind) {
  case LP_OP_ROTARY:
  case LP_OP_ATTENTION:
  case LP_OP_TRANSPOSE:
    return true;
  case LP_OP_CONCAT:
  case LP_OP_SLICE:
    return !lp_kv_mixes_rows(l->module, op);
  case LP_OP_RESHAPE:
    return keeps_rows(l, op);
  default: /* a region's arguments would keep the types of all rows */
    if (!lp_op_has(op, LP_ROWWISE) && !lp_op_has(op, LP_ELEMENTWISE)) return false;
    return !lp_op_has(op, LP_HAS_REGION) && !lp_kv_mixes_rows(l->module, op);
  }
}

/* Attention reads all keys and values. */
static bool stays_whole(const lp_op *op, int32_t operand) {
  return op->kind == LP_OP_ATTENTION && (operand == 1 || operand == 2);
}

/* The axis along which to slice an operand that is not narrowed; -1: it has no rows, -2: it cannot be sliced. A mask's
 * last axis counts keys. */
static int32_t sliced_axis(const last_pass *l, const lp_op *op, int32_t operand) {
  lp_type type = lp_op_in(op, operand)->type;
  if (op->kind == LP_OP_ATTENTION && operand == 3) type.rank--;
  int32_t axis = long_axis(l, type);
  return axis < 0 || lp_poly_equal(type.dim[axis], l->s) ? axis : -2;
}

static bool may_slice(const last_pass *l, const lp_op *op) {
  for (int32_t i = 0; i < op->in_count; i++) {
    const lp_value *in = lp_op_in(op, i);
    if (!in || stays_whole(op, i) || (in->def && in->def->scratch == &narrowed)) continue;
    if (sliced_axis(l, op, i) == -2) return false;
  }
  return true;
}

static bool leads_to_last_rows(const last_pass *l, const lp_value *value) {
  const lp_op *end = lp_block_terminator(l->block);
  if (long_axis(l, value->type) < 0) return false;
  for (const lp_use *use = value->uses; use; use = use->next)
    if (use->owner != end &&
        (use->owner->scratch != &narrowed || stays_whole(use->owner, (int32_t)(use - use->owner->in))))
      return false;
  return true;
}

static void mark(const last_pass *l) {
  for (lp_op *op = lp_block_terminator(l->block)->prev; op; op = op->prev) {
    if (op->scratch == &barred) continue;
    bool all = op->out_count == 1 && is_rowwise(l, op) && leads_to_last_rows(l, op->out[0]);
    op->scratch = all ? &narrowed : NULL;
  }
}

/* Bars operators with an operand that cannot be sliced; true when it found one. */
static bool bar(const last_pass *l) {
  bool any = false;
  LP_FOR_OPS(op, l->block)
    if (op->scratch == &narrowed && !may_slice(l, op)) {
      op->scratch = &barred;
      any = true;
    }
  return any;
}

static bool same_layer(const lp_op *a, const lp_op *b) {
  return lp_op_i64(a, "layer", -1) == lp_op_i64(b, "layer", -1) &&
         lp_streq(lp_op_str(a, "layer_kind", ""), lp_op_str(b, "layer_kind", ""));
}

/* The last r rows of x along `axis`. Operators of one layer share the slice. Layers may be placed on different sides,
 * and a value should cross whole, so each layer has a slice of its own. */
static lp_value *slice_rows(const last_pass *l, lp_op *before, lp_value *x, int32_t axis) {
  lp_value *known = x->scratch;
  if (known && same_layer(known->def, before)) return known;
  lp_module *m = l->module;
  const lp_poly *dims[LP_MAX_RANK], *starts[LP_MAX_RANK];
  int64_t steps[LP_MAX_RANK];
  for (int32_t i = 0; i < x->type.rank; i++) {
    dims[i] = i == axis ? l->r : x->type.dim[i];
    starts[i] = i == axis ? lp_poly_sub(m->arena, l->s, l->r) : lp_dim_const(m, 0);
    steps[i] = 1;
  }
  lp_build b = lp_build_at(m, before, l->diag);
  lp_op *slice = lp_build_typed(&b, LP_OP_SLICE, 1, &x, lp_type_make(m, x->type.dtype, x->type.rank, dims));
  lp_op_set_polys(m, slice, "starts", starts, x->type.rank);
  lp_op_set_i64s(m, slice, "steps", steps, x->type.rank);
  x->scratch = slice->out[0];
  return slice->out[0];
}

static void narrow(const last_pass *l, lp_op *op) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *in = lp_op_in(op, i);
    if (!in || stays_whole(op, i) || (in->def && in->def->scratch == &narrowed)) continue;
    int32_t axis = sliced_axis(l, op, i);
    if (axis >= 0) lp_op_set_in(op, i, slice_rows(l, op, in, axis));
  }
  lp_type type = op->out[0]->type;
  int32_t axis = long_axis(l, type);
  const lp_poly *dims[LP_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++)
    dims[i] = i == axis ? lp_poly_subst(l->module->arena, type.dim[i], lp_symbols_find(&l->module->symbols, "s"), l->r)
                        : type.dim[i];
  op->out[0]->type = lp_type_make(l->module, type.dtype, type.rank, dims);
}

void lp_kv_take_last_rows(lp_module *module, lp_block *block, lp_diag *diag) {
  last_pass l = {module, block, diag, lp_dim_symbol(module, "s"), lp_dim_symbol(module, "r")};
  do
    mark(&l);
  while (bar(&l));
  LP_FOR_OPS(op, block)
    if (op->scratch == &narrowed) narrow(&l, op);
  lp_block_forget(block);
}
