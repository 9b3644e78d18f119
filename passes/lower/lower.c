/* lower: replaces every onnx.* operator by op.* operators. It dissolves layers and marks their operators with the
 * layer's index and kind. 16-bit floats become f32 between operators; weights keep their type. Integer values that are
 * known as polynomials become op.dims, so that no shape arithmetic remains. */
#include "passes/lower/lower.h"

static lp_lower_rule *const rules[LP_OP_COUNT] = {
#define LP_ONNX(id, name, imin, imax, omin, omax, traits, attrs, infer, lower) [LP_ONNX_##id] = lp_lower_##lower,
#include "ir/ops.def"
};

bool lp_kind_decomposes(lp_kind kind) {
  return rules[kind] == lp_lower_decomposed;
}

/* ---- layers become attributes ------------------------------------------------------------------------------------ */

static const char *layer_kind(const lp_op *layer) {
  return lp_op_info_get(layer->kind)->name + strlen("layer.");
}

static void dissolve(lp_module *module, lp_op *layer) {
  lp_op *yield = lp_block_terminator(layer->region);
  int64_t index = lp_op_i64(layer, "index", -1);
  for (int32_t i = 0; i < layer->region->arg_count; i++)
    if (layer->region->arg[i]->uses) lp_value_replace(layer->region->arg[i], lp_op_in(layer, i));
  for (int32_t i = 0; i < layer->out_count; i++)
    if (layer->out[i]->uses) lp_value_replace(layer->out[i], lp_op_in(yield, i));
  for (lp_op *op = layer->region->first, *next; op && op != yield; op = next) {
    next = op->next;
    lp_op_detach(op);
    if (!lp_op_has(op, LP_CONSTANT)) {
      lp_op_set_i64(module, op, "layer", index);
      lp_op_set_str(module, op, "layer_kind", layer_kind(layer));
    }
    lp_op_insert_before(layer, op);
  }
  lp_op_erase(layer);
}

/* ---- 16-bit floats become f32 ------------------------------------------------------------------------------------ */

static bool is_half(lp_type type) {
  return type.dtype == LP_F16 || type.dtype == LP_BF16;
}

/* A reinterpretation needs the bits of the 16-bit type itself. */
static void lower_bit_casts(lp_module *module, lp_block *block, lp_diag *diag) {
  for (lp_op *op = block->first, *next; op; op = next) {
    next = op->next;
    lp_value *x = lp_op_in(op, 0);
    if (op->kind != LP_ONNX_BitCast || (!is_half(x->type) && !is_half(op->out[0]->type))) continue;
    lp_build b = lp_build_at(module, op, diag);
    if (is_half(x->type)) x = lp_build_map1(&b, "cast", x, x->type.dtype);
    lp_value *y = lp_build_map1(&b, "bitcast", x, op->out[0]->type.dtype);
    lp_value_replace(op->out[0], is_half(y->type) ? lp_build_map1(&b, "cast", y, LP_F32) : y);
    lp_op_erase(op);
  }
}

/* Tells whether the operator can read a constant in 16 bits as its operand `index`. Arithmetic can. Products and norms
 * can read weights so, an embedding its table, and a view whatever its readers can. Operators that copy or compare
 * elements have one type. */
static bool takes_half(const lp_op *op, int32_t index) {
  bool takes = true;
  switch (op->kind) {
  case LP_ONNX_Concat:
  case LP_ONNX_Scatter:
  case LP_ONNX_ScatterElements:
  case LP_ONNX_ScatterND:
    return false;
  case LP_ONNX_Gather:
    return index > 0 || (lp_op_in(op, 0)->type.rank == 2 && lp_op_i64(op, "axis", 0) == 0);
  case LP_ONNX_Transpose:
    for (const lp_use *use = op->out[0]->uses; use && takes; use = use->next)
      takes = takes_half(use->owner, (int32_t)(use - use->owner->in));
    return takes;
  default:
    return index > 0 || lp_op_has(op, LP_ELEMENTWISE) || lp_op_has(op, LP_TERMINATOR);
  }
}

static void widen_constants(lp_module *module, lp_op *op, lp_diag *diag) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i);
    if (!value || !lp_value_is_constant(value) || !is_half(value->type) || takes_half(op, i)) continue;
    lp_build b = lp_build_at(module, op, diag);
    lp_op_set_in(op, i, lp_build_map1(&b, "cast", value, LP_F32));
  }
}

/* Casts arguments on entry and results on exit; everything between is computed in f32. */
static void widen(lp_module *module, lp_op *func, lp_diag *diag) {
  lp_block *block = func->region;
  lp_op *last = lp_block_terminator(block);
  lower_bit_casts(module, block, diag);
  for (int32_t i = 0; i < last->in_count; i++) {
    lp_value *value = lp_op_in(last, i);
    if (!is_half(value->type)) continue;
    lp_build b = lp_build_at(module, last, diag);
    lp_op_set_in(last, i, lp_build_map1(&b, "cast", value, value->type.dtype));
  }
  LP_FOR_OPS(op, block) {
    widen_constants(module, op, diag);
    bool exit_cast = op->kind == LP_OP_MAP;
    for (int32_t i = 0; i < op->out_count && !exit_cast && !lp_op_has(op, LP_CONSTANT); i++)
      if (is_half(op->out[i]->type)) op->out[i]->type.dtype = LP_F32;
  }
  LP_FOR_REFS(lp_value, arg, block->arg, block->arg_count) {
    if (!is_half(arg->type) || !arg->uses) continue;
    lp_build b = lp_build_at(module, block->first, diag);
    lp_type type = lp_type_with_dtype(arg->type, LP_F32);
    lp_op *cast = lp_op_create(module, LP_OP_MAP, b.loc, 0, NULL, 1, &type);
    lp_op_set_str(module, cast, "fn", "cast");
    lp_value_replace(arg, cast->out[0]);
    lp_op_set_ins(module, cast, 1, &arg);
    lp_op_insert_before(block->first, cast);
  }
}

/* ---- driver ------------------------------------------------------------------------------------------------------ */

static bool all_known(const lp_value *value) {
  int64_t count;
  bool integer = value->type.dtype == LP_I64 || value->type.dtype == LP_I32;
  return integer && value->known && lp_type_static_numel(value->type, &count) && count == value->known_count;
}

static lp_value *build_known(lp_build *b, const lp_value *value) {
  lp_op *op = lp_build_typed(b, LP_OP_DIMS, 0, NULL, value->type);
  lp_op_set_polys(b->module, op, "values", value->known, value->known_count);
  op->out[0]->known = value->known; /* later rules still read sizes from it */
  op->out[0]->known_count = value->known_count;
  return op->out[0];
}

static lp_status lower_op(lp_module *module, lp_op *op, lp_diag *diag) {
  lp_lowering l = {.b = lp_build_at(module, op, diag), .op = op};
  bool known = op->out_count == 1 && all_known(op->out[0]);
  bool used = false;
  for (int32_t i = 0; i < op->out_count; i++)
    used |= op->out[i]->uses != NULL;
  if (used && known)
    l.result[0] = build_known(&l.b, op->out[0]);
  else if (used && op->kind == LP_ONNX_Split)
    return lp_lower_split(&l); /* it has any number of results and replaces them itself */
  else if (used)
    LP_TRY(rules[op->kind](&l));
  for (int32_t i = 0; i < op->out_count; i++) {
    if (!op->out[i]->uses) continue;
    if (i >= (int32_t)LP_COUNT(l.result) || !l.result[i]) {
      char what[48];
      (void)snprintf(what, sizeof what, "has a result %d that is not supported", i);
      return lp_lower_refuse(&l, what);
    }
    lp_value_replace(op->out[i], l.result[i]);
    if (!l.result[i]->name) l.result[i]->name = op->out[i]->name;
  }
  lp_op_erase(op);
  return LP_OK;
}

/* Each result needs a buffer of its own, so a constant result is copied into one. */
static void copy_constant_results(lp_module *module, lp_block *block, lp_diag *diag) {
  lp_op *last = lp_block_terminator(block);
  for (int32_t i = 0; i < last->in_count; i++) {
    lp_value *value = lp_op_in(last, i);
    if (!lp_value_is_constant(value)) continue;
    lp_build b = lp_build_at(module, last, diag);
    b.loc = value->def->loc;
    lp_op_set_in(last, i, lp_build_typed(&b, LP_OP_EXPAND, 1, &value, value->type)->out[0]);
  }
}

static void name_ops(lp_module *module, lp_block *block) {
  LP_FOR_OPS(op, block) {
    if (lp_op_has(op, LP_CONSTANT) || lp_op_has(op, LP_TERMINATOR)) continue;
    if (!lp_op_attr(op, "layer")) lp_op_set_i64(module, op, "layer", -1);
    if (!lp_op_attr(op, "layer_kind")) lp_op_set_str(module, op, "layer_kind", "generic");
    if (!lp_op_attr(op, "name") && op->loc.node) lp_op_set_str(module, op, "name", op->loc.node);
  }
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  lp_op *func = lp_module_find_func(module, "main");
  if (!func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to lower");
  lp_block *block = func->region;
  for (lp_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (lp_op_info_get(op->kind)->level == LP_LEVEL_LAYER) dissolve(module, op);
  }
  widen(module, func, context->diag);
  for (lp_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (lp_op_info_get(op->kind)->level == LP_LEVEL_ONNX) LP_TRY(lower_op(module, op, context->diag));
  }
  copy_constant_results(module, block, context->diag);
  lp_build_remove_dead(block);
  lp_block_renumber(block);
  name_ops(module, block);
  return LP_OK;
}

const lp_pass lp_pass_lower = {
    .name = "lower",
    .summary = "turn onnx.* operators and layers into op.* operators",
    .needs = LP_STATE_IMPORTED,
    .makes = LP_STATE_LOWERED,
    .breaks = LP_STATE_ANNOTATED, /* a constant result is copied by a new operator */
    .run = run,
};
