/* raise: groups the operators of @main into layers: attention and mlp, each with its residual add, norms, embedding,
 * heads; the others become layer.generic. Every operator ends in exactly one layer, and the layers are in an order
 * in which each needs only earlier ones. */
#include "passes/build.h"
#include "passes/passes.h"
#include "passes/recognise/raise_steps.h"

typedef struct {
  lp_module *module;
  lp_block *block;
  lp_arena *arena;
  lp_group *tables, *rest; /* operators of positions only; operators that no layer claims */
} grouping;

static lp_group *new_group(grouping *g, lp_kind kind, int64_t index) {
  lp_group *made = LP_NEW(g->arena, lp_group);
  *made = (lp_group){kind, index, false};
  return made;
}

static bool is_free(const grouping *g, const lp_value *value) {
  return !value->def || lp_op_has(value->def, LP_CONSTANT) ? value->def != NULL : lp_group_of(value->def) == g->tables;
}

/* Tells whether the operator is an Add of two operands that depend on the input. It joins a block to the residual
 * stream, unless it adds a linear attention's input to its result. */
static bool is_residual(const grouping *g, const lp_op *op) {
  if (op->kind == LP_ONNX_Add && lp_op_is(lp_op_in(op, 0)->def, LP_ONNX_LinearAttention)) return false;
  return op->kind == LP_ONNX_Add && op->out[0]->type.rank <= 3 && !is_free(g, lp_op_in(op, 0)) &&
         !is_free(g, lp_op_in(op, 1)) && lp_type_equal(lp_op_in(op, 0)->type, lp_op_in(op, 1)->type);
}

/* A norm of the residual stream. A norm of queries and keys is not one, nor one that closes a block: between those and
 * the next add to the stream there is a projection or an attention. */
static bool is_stream_norm(const grouping *g, const lp_op *op) {
  enum { FAR = 16 };
  if (!lp_op_has(op, LP_NORM_OP)) return false;
  const lp_op *at = op;
  for (int step = 0; step < FAR; step++) {
    const lp_value *data = NULL;
    for (int32_t i = 0; i < at->in_count && !data; i++)
      if (lp_op_in(at, i) && !is_free(g, lp_op_in(at, i))) data = lp_op_in(at, i);
    at = data ? data->def : NULL;
    if (!at || at->kind == LP_ONNX_Gather || is_residual(g, at)) return true;
    if (lp_op_has(at, LP_ATTENTION_OP) || lp_raise_is_projection(at)) return false;
  }
  return true;
}

/* Tells whether the operator continues the columns of the past of a convolution. */
static bool continues_columns(const lp_op *op) {
  const lp_value *past = op->kind == LP_ONNX_Concat ? lp_op_in(op, 0) : NULL;
  const lp_attr *roles = lp_op_attr(op->block->parent, "input_roles");
  return past && !past->def && roles && past->index < roles->count && lp_streq(roles->ss[past->index], "conv_past");
}

/* Follows `value` back to a norm, and returns the value of the residual stream that the norm reads. NULL: there is no
 * norm within FAR operators. */
static const lp_value *stream_of(const grouping *g, const lp_value *value) {
  enum { FAR = 32 };
  for (int step = 0; step < FAR && value && value->def; step++) {
    const lp_op *op = value->def;
    if (is_stream_norm(g, op)) return lp_op_in(op, 0);
    value = NULL;
    for (int32_t i = 0; i < op->in_count && !value; i++)
      if (lp_op_in(op, i) && !is_free(g, lp_op_in(op, i))) value = lp_op_in(op, i);
  }
  return NULL;
}

/* Tells whether a layer of the decoder begins here: a convolution with a past, or an attention that does not read what
 * a convolution before it reads as well. */
static bool opens_layer(const grouping *g, const lp_op *op) {
  if (op->kind != LP_ONNX_Attention) return continues_columns(op);
  const lp_op *before = op->prev;
  while (before && before->kind != LP_ONNX_Attention && !continues_columns(before))
    before = before->prev;
  if (!before || before->kind == LP_ONNX_Attention) return true;
  const lp_value *stream = stream_of(g, lp_op_in(op, 0));
  return !stream || stream != stream_of(g, lp_op_in(before, 1));
}

/* The scale that follows a norm without a scale of its own. */
static bool is_scale_of(const lp_op *op, const lp_value *norm) {
  if (op->kind != LP_ONNX_Mul) return false;
  const lp_value *other = lp_op_in(op, lp_op_in(op, 0) == norm ? 1 : 0);
  return lp_value_is_constant(other) && other->type.rank == 1;
}

/* Separates several norms of one value, such as those of an exit and of the next layer. After folding they share their
 * arithmetic and differ in the scales that follow. Each gets its own norm again, so that no norm belongs to two
 * layers. */
static void part_norms(lp_module *module, lp_block *block) {
  LP_FOR_OPS(op, block) {
    if (!lp_op_has(op, LP_NORM_OP) || op->out_count != 1) continue;
    bool scales = true;
    for (const lp_use *use = op->out[0]->uses; use; use = use->next)
      scales &= is_scale_of(use->owner, op->out[0]);
    for (lp_use *use = scales ? op->out[0]->uses : NULL, *next; use && !lp_value_has_one_use(op->out[0]); use = next) {
      next = use->next;
      lp_op *own = lp_op_clone(module, op, NULL, NULL);
      lp_op_insert_before(use->owner, own);
      lp_op_set_in(use->owner, (int32_t)(use - use->owner->in), own->out[0]);
    }
  }
}

/* ---- closures ---------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_op **op;
  int32_t count, capacity, projections;
} op_list;

static void list_add(op_list *list, lp_op *op) {
  if (list->count == list->capacity) {
    list->capacity = list->capacity ? 2 * list->capacity : 32;
    list->op = lp_realloc(list->op, (size_t)list->capacity * sizeof(lp_op *));
  }
  list->op[list->count++] = op;
  list->projections += lp_raise_is_projection(op);
}

static bool may_claim(const grouping *g, const lp_op *op, bool norms_too) {
  if (!op || op->block != g->block || lp_group_of(op) || lp_op_has(op, LP_CONSTANT) || lp_op_has(op, LP_TERMINATOR))
    return false;
  return !is_residual(g, op) && (norms_too || !is_stream_norm(g, op)) && op->kind != LP_ONNX_Attention;
}

/* Claims for `into` all operators that `value` depends on, back to stream norms, residual adds and claimed
 * operators. */
static void claim_backward(const grouping *g, lp_value *value, lp_group *into, op_list *list) {
  if (!may_claim(g, value->def, into->needs_norm)) return;
  int32_t at = list->count;
  value->def->scratch = into;
  list_add(list, value->def);
  for (; at < list->count; at++)
    for (int32_t i = 0; i < list->op[at]->in_count; i++) {
      lp_value *in = lp_op_in(list->op[at], i);
      if (!in || !may_claim(g, in->def, into->needs_norm)) continue;
      in->def->scratch = into;
      list_add(list, in->def);
    }
}

static void unclaim(op_list *list) {
  for (int32_t i = 0; i < list->count; i++)
    list->op[i]->scratch = NULL;
  list->count = list->projections = 0;
}

/* Claims the operators after the attention, including the residual add. */
static void claim_forward(const grouping *g, lp_op *from, lp_group *into) {
  for (lp_op *op = from; op;) {
    lp_op *next = NULL;
    for (const lp_use *use = op->out[0]->uses; use && !next; use = use->next)
      if (use->owner->block == g->block && !lp_group_of(use->owner) && !lp_op_has(use->owner, LP_TERMINATOR))
        next = use->owner;
    if (!next || is_stream_norm(g, next) || next->kind == LP_ONNX_Attention) return;
    next->scratch = into;
    if (is_residual(g, next)) return;
    op = next;
  }
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static void group_tables(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    bool free = !lp_op_has(op, LP_CONSTANT) && !lp_op_has(op, LP_TERMINATOR) && op->out_count > 0 &&
                !lp_weight_source(op->out[0]);
    for (int32_t i = 0; i < op->in_count && free; i++) {
      lp_value *in = lp_op_in(op, i);
      free = !in || in->known || is_free(g, in);
    }
    if (free) op->scratch = g->tables;
  }
}

/* Tells whether the gathered rows are floats, or become floats after the look-up. */
static bool is_table_of_floats(const lp_op *gather) {
  const lp_use *use = gather->out[0]->uses;
  return lp_dtype_is_float(lp_op_in(gather, 0)->type.dtype) || (use && use->owner->kind == LP_ONNX_DequantizeLinear);
}

/* Claims rows of tables by token or position, and the adds and scalings that join them. */
static void group_embedding(grouping *g) {
  lp_group *into = NULL;
  LP_FOR_OPS(op, g->block) {
    if (lp_group_of(op) || lp_op_has(op, LP_CONSTANT)) continue;
    bool table = op->kind == LP_ONNX_Gather && lp_value_is_constant(lp_op_in(op, 0)) &&
                 lp_op_in(op, 0)->type.rank == 2 && is_table_of_floats(op);
    bool joins = into && (lp_op_has(op, LP_ELEMENTWISE) || op->kind == LP_ONNX_DequantizeLinear), reads = false;
    for (int32_t i = 0; i < op->in_count && joins; i++) {
      const lp_value *in = lp_op_in(op, i);
      bool row = in && in->def && lp_group_of(in->def) == into;
      joins = !in || is_free(g, in) || row;
      reads |= row;
    }
    if (!table && !(joins && reads)) continue;
    if (!into) into = new_group(g, LP_LAYER_EMBEDDING, -1);
    op->scratch = into;
  }
}

/* The number of layers that open before the operator, less one. */
static int64_t layer_at(const grouping *g, const lp_op *op) {
  int64_t count = -1;
  for (const lp_op *before = op->prev; before; before = before->prev)
    count += opens_layer(g, before);
  return count;
}

static void group_attention(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (op->kind != LP_ONNX_Attention || lp_group_of(op)) continue;
    lp_group *into = new_group(g, LP_LAYER_ATTENTION, layer_at(g, op) + opens_layer(g, op));
    op_list list = {0};
    op->scratch = into;
    for (int32_t i = 0; i < op->in_count; i++)
      if (lp_op_in(op, i)) claim_backward(g, lp_op_in(op, i), into, &list);
    claim_forward(g, op, into);
    free(list.op);
  }
}

/* Claims an operand of a residual add for `into` when two projections or more make it. */
static bool claim_branch(const grouping *g, lp_value *value, lp_group *into) {
  op_list list = {0};
  claim_backward(g, value, into, &list);
  bool found = list.projections >= 2;
  if (!found) unclaim(&list);
  free(list.op);
  return found;
}

/* Gives the mlp the add that ends it, also where attention runs in parallel and both meet in that add. */
static void group_mlps(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (!is_residual(g, op)) continue;
    lp_group *into = new_group(g, LP_LAYER_MLP, layer_at(g, op));
    if (claim_branch(g, lp_op_in(op, 0), into) || claim_branch(g, lp_op_in(op, 1), into)) op->scratch = into;
  }
}

/* Gives further adds to the stream (attention and mlp may be joined first) to the last layer that they add. */
static void group_adds(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (lp_group_of(op) || !is_residual(g, op)) continue;
    const lp_op *last = NULL;
    for (int32_t i = 0; i < 2; i++) {
      const lp_op *def = lp_op_in(op, i)->def;
      bool layer = def && lp_group_of(def) && (lp_op_info_get(lp_group_of(def)->kind)->traits & LP_DECODER_LAYER);
      if (layer && (!last || def->order > last->order)) last = def;
    }
    if (last) op->scratch = lp_group_of(last);
  }
}

/* The number of layers that the operator depends on, less one, because exporters write heads anywhere in the file.
 * The loop goes back over the block, where every operator comes after its operands. */
static int64_t last_layer_before(grouping *g, lp_op *op) {
  lp_block_renumber(g->block);
  bool *needed = LP_NEW_ARRAY(g->arena, bool, op->order + 1);
  int64_t count = -1;
  needed[op->order] = true;
  for (lp_op *at = op; at; at = at->prev) {
    if (!needed[at->order]) continue;
    count += opens_layer(g, at);
    for (int32_t i = 0; i < at->in_count; i++) {
      const lp_op *def = lp_op_in(at, i) ? lp_op_in(at, i)->def : NULL;
      if (def && def->block == g->block) needed[def->order] = true;
    }
  }
  return count;
}

static void group_heads(grouping *g, const lp_op *func) {
  const lp_attr *roles = lp_op_attr(func, "output_roles");
  lp_op *last = lp_block_terminator(g->block);
  for (int32_t i = 0; i < last->in_count; i++) {
    const char *role = roles && i < roles->count ? roles->ss[i] : "logits";
    bool exit_head = strcmp(role, "exit_logits") == 0;
    lp_value *value = lp_op_in(last, i);
    if ((!exit_head && strcmp(role, "logits") != 0) || !value->def) continue;
    lp_group *into = new_group(g, exit_head ? LP_LAYER_EXIT_HEAD : LP_LAYER_LM_HEAD,
                               exit_head ? last_layer_before(g, value->def) : -1);
    op_list list = {0};
    into->needs_norm = exit_head;
    claim_backward(g, value, into, &list);
    if (list.projections == 0) unclaim(&list);
    free(list.op);
  }
}

static void group_norms(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (lp_group_of(op) || !lp_op_has(op, LP_NORM_OP)) continue;
    const lp_op *user = op->out[0]->uses ? op->out[0]->uses->owner : NULL;
    const lp_group *next = user ? lp_group_of(user) : NULL;
    op->scratch = new_group(g, LP_LAYER_NORM, next ? next->index : -1);
  }
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  lp_op *func = lp_module_find_func(module, "main");
  if (!func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to raise");
  grouping g = {.module = module, .block = func->region, .arena = context->scratch};
  g.tables = new_group(&g, LP_LAYER_GENERIC, -1);
  g.rest = new_group(&g, LP_LAYER_GENERIC, -1);
  part_norms(module, g.block);
  lp_raise_detach_sizes(module, g.block);
  LP_FOR_OPS(op, g.block)
    op->scratch = NULL;
  lp_block_renumber(g.block);
  group_tables(&g);
  group_embedding(&g);
  group_attention(&g);
  group_mlps(&g);
  group_adds(&g);
  group_heads(&g, func);
  group_norms(&g);
  LP_FOR_OPS(op, g.block)
    if (!op->scratch) op->scratch = g.rest;
  lp_raise_order(g.block);
  lp_raise_wrap(module, g.block);
  LP_FOR_OPS(op, g.block)
    op->scratch = NULL;
  lp_block_renumber(g.block);
  return LP_OK;
}

const lp_pass lp_pass_raise = {
    .name = "raise",
    .summary = "group operators into layers",
    .needs = LP_STATE_IMPORTED,
    .makes = LP_STATE_RAISED,
    .breaks = LP_STATE_COUNT,
    .run = run,
};
