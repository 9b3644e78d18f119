/* raise: wraps the operators of each group into a layer and describes it. */
#include "passes/build.h"
#include "passes/recognise/raise_steps.h"

bool lp_raise_is_projection(const lp_op *op) {
  if (op->kind == LP_ONNX_Experts) return true;
  if (op->kind != LP_ONNX_MatMul && op->kind != LP_ONNX_Gemm) return false;
  return lp_weight_source(lp_op_in(op, 1)) != NULL;
}

static bool inside(const lp_op *op, const lp_op *layer) {
  return op->block && op->block->parent == layer;
}

/* Moves constants that only this layer uses into it. */
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

/* Makes operands of the layer from values outside it, and results from values that are used outside. */
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

/* The heads of an operand: an axis of their own, or an attribute when all heads share one axis. */
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

/* The name of the activation in layer.mlp, or NULL. */
static const char *activation_of(const lp_op *op) {
  static const struct {
    lp_kind kind;
    const char *approximate, *name;
  } activations[] = {{LP_ONNX_Relu, "none", "relu"},
                     {LP_ONNX_Swish, "none", "silu"},
                     {LP_ONNX_Gelu, "none", "gelu"},
                     {LP_ONNX_Gelu, "tanh", "gelu_tanh"}};
  for (size_t i = 0; i < LP_COUNT(activations); i++)
    if (op->kind == activations[i].kind && lp_streq(lp_op_str(op, "approximate", "none"), activations[i].approximate))
      return activations[i].name;
  return NULL;
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
  if (lp_op_has(op, LP_NORM_OP) && layer->kind == LP_LAYER_NORM) {
    lp_op_set_str(module, layer, "type", op->kind == LP_ONNX_LayerNormalization ? "layer" : "rms");
    lp_op_set_f64(module, layer, "epsilon", lp_op_f64(op, "epsilon", 1e-5));
    set_width(module, layer, "hidden", out, -1);
  }
  if (op->kind == LP_ONNX_Gather && layer->kind == LP_LAYER_EMBEDDING && !lp_op_attr(layer, "vocab")) {
    set_width(module, layer, "vocab", lp_op_in(op, 0)->type, 0);
    set_width(module, layer, "hidden", lp_op_in(op, 0)->type, 1);
  }
  bool head = lp_op_has(layer, LP_HEAD);
  if (lp_raise_is_projection(op)) {
    if (++*projections == 1 && (head || layer->kind == LP_LAYER_MLP)) {
      set_width(module, layer, "hidden", lp_op_in(op, 0)->type, -1);
      set_width(module, layer, head ? "vocab" : "ffn", out, -1);
    }
  }
  const char *activation = activation_of(op);
  if (activation && layer->kind == LP_LAYER_MLP) lp_op_set_str(module, layer, "activation", activation);
}

static void describe(lp_module *module, lp_op *layer, const lp_group *from) {
  int32_t projections = 0;
  lp_op_set_i64(module, layer, "index", from->index);
  LP_FOR_OPS(op, layer->region)
    describe_op(module, layer, op, &projections);
  if (layer->kind == LP_LAYER_MLP) lp_op_set_bool(module, layer, "gated", projections > 2);
}

/* Wraps each run of one group into its layer. */
void lp_raise_wrap(lp_module *module, lp_block *block) {
  for (lp_op *op = block->first; op && !lp_op_has(op, LP_TERMINATOR);) {
    if (lp_op_has(op, LP_CONSTANT)) {
      op = op->next;
      continue;
    }
    const lp_group *from = lp_group_of(op);
    lp_op *layer = lp_op_create(module, from->kind, op->loc, 0, NULL, 0, NULL);
    lp_op_add_region(module, layer, 0, NULL);
    lp_op_insert_before(op, layer);
    while (op && !lp_op_has(op, LP_TERMINATOR) && !lp_op_has(op, LP_CONSTANT) && lp_group_of(op) == from) {
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
