/* raise: groups the operators of @main into layers: attention and mlp up to and with their residual adds, norms, embedding,
 * heads; what is left is layer.generic. Every operator ends in exactly one layer, and layers stand in an order in which
 * each needs only those before it. */
#include "passes/build.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

typedef struct group {
  lp_kind kind;
  int64_t index;
  bool needs_norm; /* an exit head takes its own norm in */
} group;

typedef struct {
  lp_module *module;
  lp_block *block;
  lp_arena *arena;
  group *tables, *rest; /* what depends on positions alone; what no one claims */
  int64_t attention_count;
} grouping;

/* While grouping, op->scratch is its group. */
static group *group_of(const lp_op *op) {
  return op->scratch;
}

static group *new_group(grouping *g, lp_kind kind, int64_t index) {
  group *made = LP_NEW(g->arena, group);
  *made = (group){kind, index, false};
  return made;
}

static bool is_free(const grouping *g, const lp_value *value) {
  return !value->def || lp_op_has(value->def, LP_CONSTANT) ? value->def != NULL : group_of(value->def) == g->tables;
}

static bool is_norm(const lp_op *op) {
  return op->kind == LP_ONNX_RMSNormalization || op->kind == LP_ONNX_LayerNormalization ||
         op->kind == LP_ONNX_SimplifiedLayerNormalization;
}

/* An Add whose operands both depend on the input: where a block joins the stream. */
static bool is_residual(const grouping *g, const lp_op *op) {
  return op->kind == LP_ONNX_Add && op->out[0]->type.rank <= 3 && !is_free(g, lp_op_in(op, 0)) &&
         !is_free(g, lp_op_in(op, 1)) && lp_type_equal(lp_op_in(op, 0)->type, lp_op_in(op, 1)->type);
}

static bool is_projection(const lp_op *op) {
  if (op->kind != LP_ONNX_MatMul && op->kind != LP_ONNX_Gemm) return false;
  return lp_weight_source(lp_op_in(op, 1)) != NULL;
}

/* A norm of the residual stream: neither one of queries and keys, nor one that closes a block. Those have a projection
 * or an attention behind them before any add to the stream. */
static bool is_stream_norm(const grouping *g, const lp_op *op) {
  enum { FAR = 16 };
  if (!is_norm(op)) return false;
  const lp_op *at = op;
  for (int step = 0; step < FAR; step++) {
    const lp_value *data = NULL;
    for (int32_t i = 0; i < at->in_count && !data; i++)
      if (lp_op_in(at, i) && !is_free(g, lp_op_in(at, i))) data = lp_op_in(at, i);
    at = data ? data->def : NULL;
    if (!at || at->kind == LP_ONNX_Gather || is_residual(g, at)) return true;
    if (at->kind == LP_ONNX_Attention || is_projection(at)) return false;
  }
  return true;
}

/* ---- closures -------------------------------------------------------------------------------------------------------- */

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
  list->projections += is_projection(op);
}

static bool may_claim(const grouping *g, const lp_op *op, bool norms_too) {
  if (!op || op->block != g->block || group_of(op) || lp_op_has(op, LP_CONSTANT) || lp_op_has(op, LP_TERMINATOR))
    return false;
  return !is_residual(g, op) && (norms_too || !is_stream_norm(g, op)) && op->kind != LP_ONNX_Attention;
}

/* Claims for `into` all that makes `value`, back to stream norms, residual adds and what is claimed. */
static void claim_backward(const grouping *g, lp_value *value, group *into, op_list *list) {
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

/* Claims what follows the attention, up to and with the residual add. */
static void claim_forward(const grouping *g, lp_op *from, group *into) {
  for (lp_op *op = from; op;) {
    lp_op *next = NULL;
    for (const lp_use *use = op->out[0]->uses; use && !next; use = use->next)
      if (use->owner->block == g->block && !group_of(use->owner) && !lp_op_has(use->owner, LP_TERMINATOR))
        next = use->owner;
    if (!next || is_stream_norm(g, next) || next->kind == LP_ONNX_Attention) return;
    next->scratch = into;
    if (is_residual(g, next)) return;
    op = next;
  }
}

/* ---- kinds ----------------------------------------------------------------------------------------------------------- */

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

/* Rows of floats, or of what becomes floats behind the look-up. */
static bool is_table_of_floats(const lp_op *gather) {
  const lp_use *use = gather->out[0]->uses;
  return lp_dtype_is_float(lp_op_in(gather, 0)->type.dtype) || (use && use->owner->kind == LP_ONNX_DequantizeLinear);
}

/* Rows of tables by token or position, and the adds and scalings that join them. */
static void group_embedding(grouping *g) {
  group *into = NULL;
  LP_FOR_OPS(op, g->block) {
    if (group_of(op) || lp_op_has(op, LP_CONSTANT)) continue;
    bool table = op->kind == LP_ONNX_Gather && lp_value_is_constant(lp_op_in(op, 0)) &&
                 lp_op_in(op, 0)->type.rank == 2 && is_table_of_floats(op);
    bool joins = into && (lp_op_has(op, LP_ELEMENTWISE) || op->kind == LP_ONNX_DequantizeLinear);
    for (int32_t i = 0; i < op->in_count && joins; i++) {
      const lp_value *in = lp_op_in(op, i);
      joins = !in || is_free(g, in) || (in->def && group_of(in->def) == into);
    }
    if (!table && !joins) continue;
    if (!into) into = new_group(g, LP_LAYER_EMBEDDING, -1);
    op->scratch = into;
  }
}

static void group_attention(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (op->kind != LP_ONNX_Attention || group_of(op)) continue;
    group *into = new_group(g, LP_LAYER_ATTENTION, g->attention_count++);
    op_list list = {0};
    op->scratch = into;
    for (int32_t i = 0; i < op->in_count; i++)
      if (lp_op_in(op, i)) claim_backward(g, lp_op_in(op, i), into, &list);
    claim_forward(g, op, into);
    free(list.op);
  }
}

/* How many attentions come before the operator, less one. */
static int64_t layer_at(const lp_op *op) {
  int64_t count = -1;
  for (const lp_op *before = op->prev; before; before = before->prev)
    count += before->kind == LP_ONNX_Attention;
  return count;
}

/* Claims an operand of a residual add for `into` when two projections or more make it. */
static bool claim_branch(const grouping *g, lp_value *value, group *into) {
  op_list list = {0};
  claim_backward(g, value, into, &list);
  bool found = list.projections >= 2;
  if (!found) unclaim(&list);
  free(list.op);
  return found;
}

/* The mlp takes the add that ends it, also where attention runs beside it and both meet in that add. */
static void group_mlps(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (!is_residual(g, op)) continue;
    group *into = new_group(g, LP_LAYER_MLP, layer_at(op));
    if (claim_branch(g, lp_op_in(op, 0), into) || claim_branch(g, lp_op_in(op, 1), into)) op->scratch = into;
  }
}

/* Further adds to the stream, as where attention and mlp are joined first, go with the last layer that they add. */
static void group_adds(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (group_of(op) || !is_residual(g, op)) continue;
    const lp_op *last = NULL;
    for (int32_t i = 0; i < 2; i++) {
      const lp_op *def = lp_op_in(op, i)->def;
      bool layer =
          def && group_of(def) && (group_of(def)->kind == LP_LAYER_MLP || group_of(def)->kind == LP_LAYER_ATTENTION);
      if (layer && (!last || def->order > last->order)) last = def;
    }
    if (last) op->scratch = group_of(last);
  }
}

/* How many attentions the operator depends on, less one: exporters write heads anywhere in the file. The walk goes back
 * over the block, where every operator stands behind those that it needs. */
static int64_t layer_behind(grouping *g, lp_op *op) {
  lp_block_renumber(g->block);
  bool *needed = LP_NEW_ARRAY(g->arena, bool, op->order + 1);
  int64_t count = -1;
  needed[op->order] = true;
  for (lp_op *at = op; at; at = at->prev) {
    if (!needed[at->order]) continue;
    count += at->kind == LP_ONNX_Attention;
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
    group *into =
        new_group(g, exit_head ? LP_LAYER_EXIT_HEAD : LP_LAYER_LM_HEAD, exit_head ? layer_behind(g, value->def) : -1);
    op_list list = {0};
    into->needs_norm = exit_head;
    claim_backward(g, value, into, &list);
    if (list.projections == 0) unclaim(&list);
    free(list.op);
  }
}

static void group_norms(grouping *g) {
  LP_FOR_OPS(op, g->block) {
    if (group_of(op) || !is_norm(op)) continue;
    const lp_op *user = op->out[0]->uses ? op->out[0]->uses->owner : NULL;
    const group *next = user ? group_of(user) : NULL;
    op->scratch = new_group(g, LP_LAYER_NORM, next ? next->index : -1);
  }
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------ */

/* Gives every operand whose integers are known as polynomials an op.dims of its own, so that no shape arithmetic ties
 * one layer to another. They stay detached until the layers' order is found; each then stands before its user. */
static void detach_sizes(lp_module *module, lp_block *block) {
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

/* ---- order: Kahn's algorithm that stays in a group while it can ------------------------------------------------------ */

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
  LP_FOR_OPS(op, block) count++;
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

/* The ready operator to take next: of the current group, else the first in the old order. Constants first. */
static int32_t choose(const op_list *ready, const group *current) {
  int32_t best = -1;
  for (int32_t i = 0; i < ready->count; i++) {
    const lp_op *op = ready->op[i];
    if (lp_op_has(op, LP_CONSTANT)) return i;
    bool better = best < 0;
    if (!better) {
      bool own = group_of(op) == current, best_own = group_of(ready->op[best]) == current;
      better = own != best_own ? own : op->order < ready->op[best]->order;
    }
    if (better) best = i;
  }
  return best;
}

static void schedule(lp_block *block) {
  node *nodes;
  int32_t count = collect_nodes(block, &nodes);
  op_list ready = {0};
  const group *current = NULL;
  for (int32_t i = 0; i < count; i++)
    if (nodes[i].missing == 0) list_add(&ready, nodes[i].op);
  for (int32_t i = 0; i < count; i++)
    lp_op_detach(nodes[i].op);
  while (ready.count > 0) {
    int32_t at = choose(&ready, current);
    lp_op *op = ready.op[at];
    ready.op[at] = ready.op[--ready.count];
    if (!lp_op_has(op, LP_CONSTANT)) current = group_of(op);
    int64_t order = op->order;
    lp_op_append(block, op);
    op->order = order;
    for (int32_t k = 0; k < op->out_count; k++)
      for (const lp_use *use = op->out[k]->uses; use; use = use->next) {
        if (use->owner->block == block || use->owner->order >= count || nodes[use->owner->order].op != use->owner)
          continue;
        if (--node_of(nodes, use->owner)->missing == 0) list_add(&ready, use->owner);
      }
  }
  free(ready.op);
  free(nodes);
}

/* ---- wrapping -------------------------------------------------------------------------------------------------------- */

static bool inside(const lp_op *op, const lp_op *layer) {
  return op->block && op->block->parent == layer;
}

/* A constant used by this layer alone moves into it. */
static void take_constants(lp_op *layer) {
  for (lp_op *op = layer->region->first; op; op = op->next)
    for (int32_t i = 0; i < op->in_count; i++) {
      lp_value *in = lp_op_in(op, i);
      if (!lp_value_is_constant(in) || inside(in->def, layer)) continue;
      bool own = true;
      for (const lp_use *use = in->uses; use; use = use->next)
        own &= inside(use->owner, layer);
      if (!own) continue;
      lp_op_detach(in->def);
      lp_op_insert_before(layer->region->first, in->def);
    }
}

/* Values from outside become operands and block arguments; values used outside become results. */
static void close_layer(lp_module *module, lp_op *layer) {
  LP_VEC(lp_value *) in = {0};
  LP_VEC(lp_value *) out = {0};
  LP_FOR_OPS(op, layer->region) {
    for (int32_t i = 0; i < op->in_count; i++) {
      lp_value *value = lp_op_in(op, i);
      if (!value || value->block == layer->region || (value->def && inside(value->def, layer))) continue;
      size_t at = 0;
      while (at < in.count && in.data[at] != value)
        at++;
      if (at == in.count) {
        lp_vec_push(&in, value);
        lp_value *arg = lp_block_add_arg(layer->region, value->type);
        arg->known = value->known;
        arg->known_count = value->known_count;
      }
      lp_op_set_in(op, i, layer->region->arg[at]);
    }
    for (int32_t i = 0; i < op->out_count; i++) {
      bool leaves = false;
      for (const lp_use *use = op->out[i]->uses; use; use = use->next)
        leaves |= !inside(use->owner, layer);
      if (leaves) lp_vec_push(&out, op->out[i]);
    }
  }
  lp_op_set_ins(module, layer, (int32_t)in.count, in.data);
  for (size_t i = 0; i < out.count; i++) {
    lp_value *result = lp_op_add_result(module, layer, out.data[i]->type);
    result->name = out.data[i]->name;
    for (lp_use *use = out.data[i]->uses, *next; use; use = next) {
      next = use->next;
      if (!inside(use->owner, layer)) lp_op_set_in(use->owner, (int32_t)(use - use->owner->in), result);
    }
  }
  lp_op_append(layer->region, lp_op_create(module, LP_OP_YIELD, LP_LOC_NONE, (int32_t)out.count, out.data, 0, NULL));
  lp_vec_free(&in);
  lp_vec_free(&out);
}

static void set_width(lp_module *module, lp_op *layer, const char *name, lp_type type, int32_t axis) {
  int64_t size;
  if (lp_type_static_dim(type, axis, &size)) lp_op_set_i64(module, layer, name, size);
}

/* Heads of an operand: an axis of their own, or an attribute beside which all heads are one axis. */
static void set_heads(lp_module *module, lp_op *layer, const lp_op *attention, const char *name, int32_t operand,
                      const char *attr) {
  lp_type type = lp_op_in(attention, operand)->type;
  int64_t heads = lp_op_i64(attention, attr, 0), width = 0;
  (void)lp_type_static_dim(type, -1, &width);
  if (type.rank == 4) (void)lp_type_static_dim(type, 1, &heads);
  if (heads < 1) return;
  lp_op_set_i64(module, layer, name, heads);
  if (operand == 0) lp_op_set_i64(module, layer, "head_dim", type.rank == 4 ? width : width / heads);
}

static void describe_op(lp_module *module, lp_op *layer, const lp_op *op, int32_t *projections) {
  lp_type out = op->out_count > 0 ? op->out[0]->type : (lp_type){0};
  if (op->kind == LP_ONNX_Attention && layer->kind == LP_LAYER_ATTENTION) {
    set_heads(module, layer, op, "heads", 0, "q_num_heads");
    set_heads(module, layer, op, "kv_heads", 1, "kv_num_heads");
    lp_op_set_bool(module, layer, "causal", lp_op_i64(op, "is_causal", 0) != 0);
    lp_op_set_i64(module, layer, "window", lp_op_i64(op, "window", 0));
  }
  if (op->kind == LP_ONNX_RotaryEmbedding && layer->kind == LP_LAYER_ATTENTION)
    lp_op_set_bool(module, layer, "rotary", true);
  if (is_norm(op) && layer->kind == LP_LAYER_NORM) {
    lp_op_set_str(module, layer, "type", op->kind == LP_ONNX_LayerNormalization ? "layer" : "rms");
    lp_op_set_f64(module, layer, "epsilon", lp_op_f64(op, "epsilon", 1e-5));
    set_width(module, layer, "hidden", out, -1);
  }
  if (op->kind == LP_ONNX_Gather && layer->kind == LP_LAYER_EMBEDDING && !lp_op_attr(layer, "vocab")) {
    set_width(module, layer, "vocab", lp_op_in(op, 0)->type, 0);
    set_width(module, layer, "hidden", lp_op_in(op, 0)->type, 1);
  }
  bool head = layer->kind == LP_LAYER_LM_HEAD || layer->kind == LP_LAYER_EXIT_HEAD;
  if (is_projection(op)) {
    if (++*projections == 1 && (head || layer->kind == LP_LAYER_MLP)) {
      set_width(module, layer, "hidden", lp_op_in(op, 0)->type, -1);
      set_width(module, layer, head ? "vocab" : "ffn", out, -1);
    }
  }
  if (layer->kind == LP_LAYER_MLP &&
      (op->kind == LP_ONNX_Gelu || op->kind == LP_ONNX_Swish || op->kind == LP_ONNX_Relu))
    lp_op_set_str(module, layer, "activation",
                  op->kind == LP_ONNX_Relu                                 ? "relu"
                  : op->kind == LP_ONNX_Swish                              ? "silu"
                  : lp_streq(lp_op_str(op, "approximate", "none"), "tanh") ? "gelu_tanh"
                                                                           : "gelu");
}

static void describe(lp_module *module, lp_op *layer, const group *from) {
  int32_t projections = 0;
  lp_op_set_i64(module, layer, "index", from->index);
  LP_FOR_OPS(op, layer->region) describe_op(module, layer, op, &projections);
  if (layer->kind == LP_LAYER_MLP) lp_op_set_bool(module, layer, "gated", projections > 2);
}

/* Wraps each run of one group into its layer. */
static void wrap(lp_module *module, lp_block *block) {
  for (lp_op *op = block->first; op && !lp_op_has(op, LP_TERMINATOR);) {
    if (lp_op_has(op, LP_CONSTANT)) {
      op = op->next;
      continue;
    }
    const group *from = group_of(op);
    lp_op *layer = lp_op_create(module, from->kind, op->loc, 0, NULL, 0, NULL);
    lp_op_add_region(module, layer, 0, NULL);
    lp_op_insert_before(op, layer);
    while (op && !lp_op_has(op, LP_TERMINATOR) && !lp_op_has(op, LP_CONSTANT) && group_of(op) == from) {
      lp_op *next = op->next;
      op->scratch = NULL;
      lp_op_detach(op);
      lp_op_append(layer->region, op);
      op = next;
    }
    take_constants(layer);
    close_layer(module, layer);
    describe(module, layer, from);
  }
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  lp_op *func = lp_module_find_func(module, "main");
  if (!func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to raise");
  grouping g = {.module = module, .block = func->region, .arena = context->scratch};
  g.tables = new_group(&g, LP_LAYER_GENERIC, -1);
  g.rest = new_group(&g, LP_LAYER_GENERIC, -1);
  detach_sizes(module, g.block);
  LP_FOR_OPS(op, g.block) op->scratch = NULL;
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
  schedule(g.block);
  attach_sizes(g.block);
  wrap(module, g.block);
  LP_FOR_OPS(op, g.block) op->scratch = NULL;
  lp_block_renumber(g.block);
  return LP_OK;
}

const lp_pass lp_pass_raise = {.name = "raise", .summary = "group operators into layers", .needs = "", .run = run};
