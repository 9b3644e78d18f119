/* Exporters transpose heads before positions in front of attention and transpose them back after it. This step removes
 * a transpose where every operator between it and its consumer works on either layout. */
#include "base/poly.h"
#include "passes/lower/fuse_steps.h"

static bool swaps_middle(const lp_op *op) {
  static const int64_t swap[] = {0, 2, 1, 3};
  const lp_attr *perm = lp_op_is(op, LP_OP_TRANSPOSE) ? lp_op_attr(op, "perm") : NULL;
  return perm && perm->kind == LP_ATTR_I64S && perm->count == 4 && memcmp(perm->is, swap, sizeof swap) == 0;
}

static bool heads_first(const lp_op *op) {
  return lp_streq(lp_op_str(op, "layout", NULL), "bhsd");
}

static lp_type swapped(lp_module *module, lp_type type) {
  const lp_poly *dims[] = {type.dim[0], type.dim[2], type.dim[1], type.dim[3]};
  return lp_type_make(module, type.dtype, 4, dims);
}

enum { MAX_DEPTH = 8 };

/* Tells whether `value` is the result of a transpose, perhaps through last-axis operators that each have one reader. */
static bool can_swap(const lp_value *value) {
  for (int depth = 0; depth < MAX_DEPTH; depth++) {
    const lp_op *op = value->def;
    if (!op || value->type.rank != 4) return false;
    if (swaps_middle(op)) return true;
    bool passes = (op->kind == LP_OP_ROTARY && heads_first(op)) || op->kind == LP_OP_NORM;
    if (!passes || !lp_value_has_one_use(value)) return false;
    value = lp_op_in(op, 0);
  }
  return false;
}

/* Returns the same data with positions before heads. */
static lp_value *swap(lp_module *module, lp_value *value) {
  lp_op *op = value->def;
  if (op->kind == LP_OP_TRANSPOSE) return lp_op_in(op, 0);
  lp_op_set_in(op, 0, swap(module, lp_op_in(op, 0)));
  if (op->kind == LP_OP_ROTARY) lp_op_set_str(module, op, "layout", "bshd");
  value->type = swapped(module, value->type);
  return value;
}

static void swap_append(lp_module *module, lp_op *append) {
  if (!heads_first(append) || !can_swap(lp_op_in(append, 0))) return;
  lp_op_set_in(append, 0, swap(module, lp_op_in(append, 0)));
  lp_op_set_str(module, append, "layout", "bshd");
}

/* Queries and the result have one layout, so both change together. */
static void swap_attention(lp_module *module, lp_op *attention) {
  lp_value *result = attention->out[0];
  lp_op *reader = lp_only_reader(result);
  if (!heads_first(attention) || !reader || !swaps_middle(reader) || !can_swap(lp_op_in(attention, 0))) return;
  lp_op_set_in(attention, 0, swap(module, lp_op_in(attention, 0)));
  lp_op_set_str(module, attention, "layout", "bshd");
  result->type = reader->out[0]->type;
  lp_value_replace(reader->out[0], result);
  lp_op_erase(reader);
}

void lp_fuse_layout(lp_module *module, lp_block *block) {
  LP_FOR_OPS(op, block) {
    if (op->kind == LP_OP_KV_APPEND) swap_append(module, op);
    if (op->kind == LP_OP_ATTENTION) swap_attention(module, op);
  }
}
