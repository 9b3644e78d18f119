/* Makes the view of a model's shards: copies the module without its messages, puts every operator into the cloud, and
 * cuts the copy as the pass shard would. */
#include "passes/shard/view.h"
#include "base/side.h"
#include "passes/shard/shard.h"
#include "passes/state.h"

/* ---- the copy ---------------------------------------------------------------------------------------------------- */

/* Symbols keep their numbers, so that closed forms mean the same in both modules. */
static void copy_symbols(const lp_module *from, lp_module *to) {
  for (size_t i = 0; i < from->symbols.names.count; i++)
    (void)lp_symbols_intern(&to->symbols, from->symbols.names.data[i]);
}

static lp_value *mapped(void *user, lp_value *value) {
  (void)user;
  return value->scratch;
}

/* What the receiver of a message gets: the copy of what was sent. */
static lp_value *sent_copy(const lp_op *receive) {
  int64_t tag = lp_op_i64(receive, "tag", -1);
  const lp_op *send = receive->prev;
  while (send && !(send->kind == LP_OP_COMM_SEND && lp_op_i64(send, "tag", -2) == tag))
    send = send->prev;
  return send ? lp_op_in(send, 0)->scratch : NULL;
}

/* The copy of an operator in `to`; NULL: a message, which the copy lacks. */
static lp_op *copy_op(lp_module *module, const lp_op *op, lp_block *to) {
  if (op->kind == LP_OP_COMM_RECV && (op->out[0]->scratch = sent_copy(op))) return NULL;
  if (op->kind == LP_OP_COMM_SEND || op->kind == LP_OP_COMM_KV_MOVE) return NULL;
  lp_op *copy = lp_op_clone(module, op, mapped, NULL);
  lp_op_append(to, copy);
  for (int32_t i = 0; i < op->out_count; i++)
    op->out[i]->scratch = copy->out[i];
  if (lp_op_is_placeable(op)) lp_op_set_str(module, copy, "side", lp_side_name(LP_SIDE_CLOUD));
  return copy;
}

static void forget(const lp_block *block) {
  for (int32_t i = 0; i < block->arg_count; i++)
    block->arg[i]->scratch = NULL;
  LP_FOR_OPS(op, block)
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = NULL;
}

static void copy_block(lp_shard_view *view, const lp_block *block, int32_t index) {
  lp_shard_stage *stage = &view->stage[index];
  int32_t count = 0;
  LP_FOR_OPS(op, block)
    count += lp_op_is_placeable(op);
  stage->part = LP_NEW_ARRAY(view->arena, lp_op *, count);
  lp_op *func = lp_module_add_func(view->module, lp_arena_format(view->arena, "stage_%" PRId32, index), 0, NULL);
  for (int32_t i = 0; i < block->arg_count; i++)
    block->arg[i]->scratch = lp_block_add_arg(func->region, block->arg[i]->type);
  LP_FOR_OPS(op, block) {
    lp_op *copy = copy_op(view->module, op, func->region);
    if (lp_op_is_placeable(op)) stage->part[stage->count++] = copy;
  }
  forget(block);
}

/* KV caches and other operators of the module itself. */
static void copy_body(lp_shard_view *view, const lp_module *module) {
  const lp_block *body = lp_module_body(module);
  LP_FOR_OPS(op, body) {
    if (op->region) continue;
    lp_op *copy = lp_op_clone(view->module, op, mapped, NULL);
    lp_op_append(lp_module_body(view->module), copy);
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = copy->out[i];
  }
}

/* ---- what it shows ----------------------------------------------------------------------------------------------- */

/* The operator that computes the value, through operators that only view it. */
static lp_op *computed_by(const lp_value *value) {
  lp_op *op = value->def;
  while (lp_op_has(op, LP_ALIAS))
    op = op->in[0].value->def;
  return op;
}

static void list_gathers(lp_shard_view *view, lp_shard_stage *stage) {
  const lp_op *first = stage->count ? stage->part[0] : NULL;
  int32_t most = 0;
  for (const lp_op *op = first; op; op = op->next)
    most += op->kind == LP_OP_COMM_ALL_GATHER;
  stage->gather = LP_NEW_ARRAY(view->arena, lp_shard_gather, most);
  for (int32_t i = 0; i < stage->count; i++)
    stage->part[i]->scratch = (void *)(intptr_t)(i + 1);
  for (const lp_op *op = first; op; op = op->next) {
    if (op->kind != LP_OP_COMM_ALL_GATHER) continue;
    const lp_op *from = computed_by(lp_op_in(op, 0));
    int32_t number = from ? (int32_t)(intptr_t)from->scratch - 1 : -1;
    if (number >= 0) stage->gather[stage->gather_count++] = (lp_shard_gather){number, op};
  }
}

lp_status lp_shard_view_make(const lp_module *module, lp_block *const *blocks, int32_t count, int64_t ranks,
                             lp_shard_view **out, lp_diag *diag) {
  lp_shard_view *view = *out = lp_alloc(sizeof *view);
  *view = (lp_shard_view){.module = lp_module_create(module->name), .arena = lp_arena_create()};
  view->stage = LP_NEW_ARRAY(view->arena, lp_shard_stage, count);
  copy_symbols(module, view->module);
  copy_body(view, module);
  for (int32_t i = 0; i < count; i++)
    copy_block(view, blocks[i], i);
  forget(lp_module_body(module));
  lp_status status = lp_shard_module(view->module, ranks, view->arena, diag);
  for (int32_t i = 0; i < count && status == LP_OK; i++)
    list_gathers(view, &view->stage[i]);
  if (status == LP_OK) return status;
  lp_shard_view_free(view);
  *out = NULL;
  return status;
}

void lp_shard_view_free(lp_shard_view *view) {
  if (!view) return;
  lp_module_free(view->module);
  lp_arena_free(view->arena);
  free(view);
}

int64_t lp_shard_parts(const lp_op *part, int32_t operand) {
  const lp_op *def = lp_op_in(part, operand) ? lp_op_in(part, operand)->def : NULL;
  return lp_op_is(def, LP_OP_SHARD) ? lp_op_i64(def, "parts", 1) : 1;
}
