/* raise: finds an order of operators in which the operators of each layer are neighbours. */
#include "passes/build.h"
#include "passes/recognise/raise_steps.h"

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Gives every operand with integers known as polynomials its own op.dims, so that no shape arithmetic ties one layer to
 * another. They stay detached until the layers' order is found; each then stands before its user. */
void lp_raise_detach_sizes(lp_module *module, lp_block *block) {
  LP_FOR_OPS(op, block) {
    for (int32_t i = 0; i < op->in_count; i++) {
      lp_value *in = lp_op_in(op, i);
      int64_t count;
      bool sizes = in && in->known && in->def && !lp_op_has(in->def, LP_CONSTANT) && in->type.dtype == LP_I64 &&
                   lp_type_static_numel(in->type, &count) && count == in->known_count;
      if (!sizes || lp_op_has(op, LP_TERMINATOR)) continue;
      lp_op *dims = lp_op_create(module, LP_OP_DIMS, op->loc, 0, NULL, 1, &in->type);
      lp_op_set_polys(module, dims, "values", in->known, in->known_count);
      dims->out[0]->known = in->known;
      dims->out[0]->known_count = in->known_count;
      lp_op_set_in(op, i, dims->out[0]);
    }
  }
  lp_build_remove_dead(block);
}

static void attach_sizes(lp_block *block) {
  LP_FOR_OPS(op, block)
    for (int32_t i = 0; i < op->in_count; i++) {
      lp_op *dims = lp_op_in(op, i) ? lp_op_in(op, i)->def : NULL;
      if (!dims || dims->kind != LP_OP_DIMS || dims->block) continue;
      lp_op_insert_before(op, dims);
      dims->scratch = op->scratch;
    }
}

/* ---- order: Kahn's algorithm that stays in a group while it can -------------------------------------------------- */

typedef struct {
  lp_op *op;
  int32_t missing; /* operands not yet scheduled */
} node;

static node *node_of(node *nodes, const lp_op *op) {
  return &nodes[op->order];
}

static int32_t collect_nodes(lp_block *block, node **out) {
  int32_t count = 0;
  lp_block_renumber(block);
  LP_FOR_OPS(op, block)
    count++;
  node *nodes = lp_alloc((size_t)count * sizeof(node));
  LP_FOR_OPS(op, block) {
    node *own = node_of(nodes, op);
    own->op = op;
    for (int32_t i = 0; i < op->in_count; i++)
      own->missing += lp_op_in(op, i) && lp_op_in(op, i)->def && lp_op_in(op, i)->def->block == block;
  }
  *out = nodes;
  return count;
}

typedef LP_VEC(lp_op *) op_list;

/* The next ready operator: one of the current group, else the first in the old order. Constants come first. */
static int32_t choose(const op_list *ready, const lp_group *current) {
  int32_t best = -1, count = (int32_t)ready->count;
  for (int32_t i = 0; i < count; i++) {
    const lp_op *op = ready->data[i];
    if (lp_op_has(op, LP_CONSTANT)) return i;
    bool better = best < 0;
    if (!better) {
      bool own = lp_group_of(op) == current, best_own = lp_group_of(ready->data[best]) == current;
      better = own != best_own ? own : op->order < ready->data[best]->order;
    }
    if (better) best = i;
  }
  return best;
}

static void schedule(lp_block *block) {
  node *nodes;
  int32_t count = collect_nodes(block, &nodes);
  LP_OWNED(lp_free_at) op_list ready = {0};
  const lp_group *current = NULL;
  for (int32_t i = 0; i < count; i++)
    if (nodes[i].missing == 0) lp_vec_push(&ready, nodes[i].op);
  for (int32_t i = 0; i < count; i++)
    lp_op_detach(nodes[i].op);
  while (ready.count > 0) {
    int32_t at = choose(&ready, current);
    lp_op *op = ready.data[at];
    ready.data[at] = ready.data[--ready.count];
    if (!lp_op_has(op, LP_CONSTANT)) current = lp_group_of(op);
    int64_t order = op->order;
    lp_op_append(block, op);
    op->order = order;
    for (int32_t k = 0; k < op->out_count; k++)
      for (const lp_use *use = op->out[k]->uses; use; use = use->next) {
        if (use->owner->block) continue; /* in a region: the others are detached until they are scheduled */
        if (--node_of(nodes, use->owner)->missing == 0) lp_vec_push(&ready, use->owner);
      }
  }
  free(nodes);
}

void lp_raise_order(lp_block *block) {
  schedule(block);
  attach_sizes(block);
}
