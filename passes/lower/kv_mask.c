/* Lengthens masks and biases that a model without past inputs makes for s queries over s keys. With a cache there are
 * p + s keys and the last s queries: the operators of the mask are copied at that length, and its last s rows are
 * taken. */
#include "base/poly.h"
#include "passes/lower/kv_cache.h"

#include "passes/build.h"

static char needed, made; /* marks in op->scratch */

bool lp_kv_is_mask(const lp_op *op) {
  return op->scratch == &made;
}

/* Marks the operators that the value depends on; false when an input is among them. */
static bool mark(lp_op *end, lp_value *value) {
  if (!value->def) return false;
  value->def->scratch = &needed;
  for (lp_op *op = end; op; op = op->prev) {
    if (op->scratch != &needed) continue;
    for (int32_t i = 0; i < op->in_count; i++) {
      const lp_value *in = lp_op_in(op, i);
      if (!in || lp_value_is_constant(in)) continue;
      if (!in->def || lp_op_has(in->def, LP_STATEFUL)) return false;
      in->def->scratch = &needed;
    }
  }
  return true;
}

static void unmark(lp_op *end) {
  for (lp_op *op = end; op; op = op->prev)
    if (op->scratch == &needed) op->scratch = NULL;
}

/* A value's scratch is its copy while the mask is copied. */
static lp_value *copied(void *user, lp_value *value) {
  (void)user;
  return value->scratch ? value->scratch : value;
}

static bool copy_marked(lp_module *module, lp_block *block, lp_op *before) {
  lp_symbol s = lp_symbols_find(&module->symbols, "s");
  const lp_poly *total = lp_poly_add(module->arena, lp_dim_symbol(module, "p"), lp_dim_symbol(module, "s"));
  for (lp_op *op = block->first; op && op != before; op = op->next) {
    if (op->scratch != &needed || lp_op_has(op, LP_CONSTANT)) continue;
    lp_op *copy = lp_op_clone(module, op, copied, NULL);
    if (!lp_op_substitute(module, copy, s, total)) return false;
    lp_op_insert_before(before, copy);
    copy->scratch = &made;
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = copy->out[i];
  }
  return true;
}

/* The last s of p + s rows, where the mask has rows. */
static lp_value *last_rows(lp_build *b, lp_value *mask, lp_type old) {
  lp_module *m = b->module;
  int32_t rank = old.rank;
  if (rank < 2 || !lp_poly_equal(old.dim[rank - 2], lp_dim_symbol(m, "s"))) return mask;
  const lp_poly *dims[LP_MAX_RANK], *starts[LP_MAX_RANK];
  int64_t steps[LP_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) {
    dims[i] = i == rank - 2 ? lp_dim_symbol(m, "s") : mask->type.dim[i];
    starts[i] = i == rank - 2 ? lp_dim_symbol(m, "p") : lp_dim_const(m, 0);
    steps[i] = 1;
  }
  lp_op *slice = lp_build_typed(b, LP_OP_SLICE, 1, &mask, lp_type_make(m, mask->type.dtype, rank, dims));
  lp_op_set_polys(m, slice, "starts", starts, rank);
  lp_op_set_i64s(m, slice, "steps", steps, rank);
  slice->scratch = &made;
  return slice->out[0];
}

lp_status lp_kv_lengthen_mask(lp_module *module, lp_kv_masks *masks, lp_op *attention, lp_diag *diag) {
  lp_value *mask = lp_op_in(attention, 3);
  if (!mask || lp_value_is_constant(mask)) return LP_OK;
  if (masks->mask != mask) {
    bool good = mark(attention, mask) && copy_marked(module, masks->block, attention);
    lp_value *copy = good ? mask->scratch : NULL;
    unmark(attention);
    LP_FOR_OPS(op, masks->block)
      for (int32_t i = 0; i < op->out_count; i++)
        op->out[i]->scratch = NULL;
    if (!copy) return lp_error(diag, attention->loc, "attention's mask is not recognised, so it can keep no KV cache");
    lp_build b = lp_build_at(module, copy->def, diag);
    b.before = attention;
    masks->mask = mask;
    masks->longer = last_rows(&b, copy, mask->type);
  }
  lp_op_set_in(attention, 3, masks->longer);
  return LP_OK;
}
