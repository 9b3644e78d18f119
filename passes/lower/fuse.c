/* fuse: joins operators where that saves memory traffic. It never joins operators that a plan may want on different
 * sides. */
#include "passes/lower/fuse_steps.h"

#include "passes/build.h"

/* Moves constants to the front of the block: an operator may then move up to any of its other operands. */
static void hoist_constants(lp_block *block) {
  lp_op *first = block->first;
  while (first && lp_op_has(first, LP_CONSTANT))
    first = first->next;
  for (lp_op *op = first, *next; op; op = next) {
    next = op->next;
    if (!lp_op_has(op, LP_CONSTANT)) continue;
    lp_op_detach(op);
    lp_op_insert_before(first, op);
  }
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  LP_FOR_FUNCS(func, module) {
    lp_block *block = func->region;
    hoist_constants(block);
    lp_fuse_linear(module, block, context->diag);
    lp_fuse_norm(module, block);
    lp_fuse_layout(module, block);
    lp_fuse_map(module, block);
    hoist_constants(block); /* a step may have changed the shape of a bias */
    lp_build_remove_dead(block);
    lp_block_renumber(block);
  }
  return LP_OK;
}

const lp_pass lp_pass_fuse = {
    .name = "fuse",
    .summary = "fold bias, activation, gate and residual into linear; join elementwise operators; cancel transposes",
    .needs = LP_STATE_LOWERED,
    .makes = LP_STATE_LOWERED,
    .breaks = LP_STATE_ANNOTATED,
    .run = run,
};
