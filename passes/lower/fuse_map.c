/* Joins elementwise operators over one shape into op.fused, which runs as one loop. A group grows from its last
 * operator backwards over operators that only the group reads. Operators that depend on positions only stay apart from
 * those that read inputs, because every side that needs the former computes them. */
#include "passes/lower/fuse_steps.h"

enum { MOST_OPERATORS = 16, MOST_OPERANDS = 8 };

typedef struct {
  lp_op *op[MOST_OPERATORS]; /* last first */
  int32_t count;
  lp_value *operand[MOST_OPERANDS];
  int32_t operand_count;
} group;

/* op->scratch marks operators that depend on an input; lp_value_is_constant and free ones are unmarked. */
static void mark_dependent(lp_block *block) {
  LP_FOR_OPS(op, block) {
    bool dependent = lp_op_has(op, LP_STATEFUL);
    for (int32_t i = 0; i < op->in_count; i++) {
      const lp_value *value = op->in[i].value;
      if (value && (!value->def || value->def->scratch)) dependent = true;
    }
    op->scratch = dependent ? op : NULL;
  }
}

static bool same_shape(lp_type a, lp_type b) {
  return lp_type_equal(lp_type_with_dtype(a, b.dtype), b);
}

static bool in_group(const group *g, const lp_op *op) {
  for (int32_t i = 0; i < g->count; i++)
    if (g->op[i] == op) return true;
  return false;
}

static bool joins(const group *g, const lp_op *op) {
  const lp_op *root = g->op[0];
  if (!lp_op_is(op, LP_OP_MAP) || !same_shape(op->out[0]->type, root->out[0]->type)) return false;
  if (!op->scratch != !root->scratch || in_group(g, op)) return false;
  for (const lp_use *use = op->out[0]->uses; use; use = use->next)
    if (!in_group(g, use->owner)) return false;
  return true;
}

/* Lists the values that the group reads from outside, each once, in order of first reading; false when there are too
 * many. */
static bool collect_operands(group *g) {
  g->operand_count = 0;
  for (int32_t k = g->count; k-- > 0;)
    for (int32_t i = 0; i < g->op[k]->in_count; i++) {
      lp_value *value = g->op[k]->in[i].value;
      if (!value || (value->def && in_group(g, value->def))) continue;
      int32_t at = 0;
      while (at < g->operand_count && g->operand[at] != value)
        at++;
      if (at < g->operand_count) continue;
      if (at == MOST_OPERANDS) return false;
      g->operand[g->operand_count++] = value;
    }
  return true;
}

/* Walks back over the block, so that it meets a producer after all its readers. */
static void grow(group *g, lp_op *root) {
  *g = (group){.op = {root}, .count = 1};
  int32_t distance = 0;
  for (lp_op *op = root->prev; op && g->count < MOST_OPERATORS && distance < 64; op = op->prev, distance++) {
    if (!joins(g, op)) continue;
    g->op[g->count++] = op;
    if (!collect_operands(g)) g->count--;
  }
}

static lp_value *inner_value(const group *g, const lp_block *region, lp_value *value) {
  if (!value) return NULL;
  for (int32_t i = 0; i < g->operand_count; i++)
    if (g->operand[i] == value) return region->arg[i];
  return value->scratch;
}

static void replace_group(lp_module *module, group *g) {
  lp_op *root = g->op[0];
  lp_type types[MOST_OPERANDS];
  for (int32_t i = 0; i < g->operand_count; i++)
    types[i] = g->operand[i]->type;
  lp_op *fused = lp_op_create(module, LP_OP_FUSED, root->loc, g->operand_count, g->operand, 1, &root->out[0]->type);
  lp_block *region = lp_op_add_region(module, fused, g->operand_count, types);
  for (int32_t k = g->count; k-- > 0;) {
    lp_op *op = g->op[k], *copy = lp_op_clone(module, op, NULL, NULL);
    for (int32_t i = 0; i < op->in_count; i++)
      lp_op_set_in(copy, i, inner_value(g, region, lp_op_in(op, i)));
    op->out[0]->scratch = copy->out[0];
    lp_op_append(region, copy);
  }
  lp_value *result = root->out[0]->scratch;
  lp_op_append(region, lp_op_create(module, LP_OP_YIELD, root->loc, 1, &result, 0, NULL));
  for (int32_t i = 0; i < root->attr_count; i++) {
    const char *name = root->attr[i].name;
    if (lp_streq(name, "name") || lp_streq(name, "layer") || lp_streq(name, "layer_kind"))
      lp_op_set_attr(module, fused, &root->attr[i]);
  }
  fused->out[0]->name = root->out[0]->name;
  lp_op_insert_before(root, fused);
  lp_value_replace(root->out[0], fused->out[0]);
  for (int32_t k = 0; k < g->count; k++) {
    g->op[k]->out[0]->scratch = NULL;
    lp_op_erase(g->op[k]);
  }
}

void lp_fuse_map(lp_module *module, lp_block *block) {
  mark_dependent(block);
  for (lp_op *op = block->last, *before; op; op = before) {
    before = op->prev;
    if (op->kind != LP_OP_MAP) continue;
    group g;
    grow(&g, op);
    if (g.count < 2 || !collect_operands(&g)) continue;
    while (before && in_group(&g, before))
      before = before->prev;
    replace_group(module, &g);
  }
  LP_FOR_OPS(op, block)
    op->scratch = NULL;
}
