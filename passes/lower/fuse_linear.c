/* op.linear: y = epilogue(x.w + bias) + residual, or epilogue(x.w_gate) * (x.w + bias). op.experts has the same forms
 * without a residual; where that would be, it has the experts' index. */
#include "base/poly.h"
#include "passes/build.h"
#include "passes/lower/fuse_steps.h"

enum { IN_X, IN_W, IN_BIAS, IN_RESIDUAL, IN_GATE, IN_SCALE, IN_ZERO, IN_GATE_SCALE, IN_GATE_ZERO, IN_COUNT };

static bool has_epilogue(const lp_op *op) {
  return !lp_streq(lp_op_str(op, "epilogue", "none"), "none");
}

static bool has_residual(const lp_op *op) {
  return op->kind == LP_OP_LINEAR && lp_op_in(op, IN_RESIDUAL);
}

/* Tells whether the linear operator has only a product and perhaps a bias. */
static bool is_plain(const lp_op *op) {
  return lp_op_is_weighted(op) && !has_epilogue(op) && !has_residual(op) && !lp_op_in(op, IN_GATE);
}

static int32_t operand_index(const lp_op *op, const lp_value *value) {
  for (int32_t i = 0; i < op->in_count; i++)
    if (op->in[i].value == value) return i;
  return -1;
}

static lp_value *other_operand(const lp_op *op, const lp_value *value) {
  return lp_op_in(op, operand_index(op, value) == 0 ? 1 : 0);
}

static void set_operand(lp_module *module, lp_op *op, int32_t index, lp_value *value) {
  lp_value *in[IN_COUNT] = {0};
  for (int32_t i = 0; i < op->in_count; i++)
    in[i] = lp_op_in(op, i);
  in[index] = value;
  lp_op_set_ins(module, op, op->in_count > index ? op->in_count : index + 1, in);
}

/* Puts the linear operator where the operator that it absorbed stood, and gives it that operator's readers. */
static void take_place(lp_op *linear, lp_op *taken) {
  if (!linear->out[0]->name) linear->out[0]->name = taken->out[0]->name;
  lp_value_replace(taken->out[0], linear->out[0]);
  lp_op_detach(linear);
  lp_op_insert_before(taken, linear);
  lp_op_erase(taken);
}

/* A constant of n elements that broadcasts along the last axis, as a vector. */
static lp_value *as_bias(lp_module *module, lp_op *before, lp_value *value, lp_type result, lp_diag *diag) {
  const lp_poly *n = result.rank > 0 ? result.dim[result.rank - 1] : NULL;
  if (!lp_value_is_constant(value) || !lp_dtype_is_float(value->type.dtype) || value->type.rank < 1 ||
      !lp_poly_equal(value->type.dim[value->type.rank - 1], n) || !lp_poly_equal(lp_type_numel(module, value->type), n))
    return NULL;
  if (value->type.rank == 1) return value;
  lp_build b = lp_build_at(module, before, diag);
  return lp_build_reshaped_constant(&b, value, lp_type_make(module, value->type.dtype, 1, &n));
}

static bool take_bias(lp_module *module, lp_op *linear, lp_op *reader, lp_diag *diag) {
  if (!lp_is_map(reader, "add") || linear->kind == LP_OP_EXPERTS || !is_plain(linear) || lp_op_in(linear, IN_BIAS))
    return false;
  lp_value *bias = as_bias(module, linear, other_operand(reader, linear->out[0]), linear->out[0]->type, diag);
  if (!bias) return false;
  set_operand(module, linear, IN_BIAS, bias);
  take_place(linear, reader);
  return true;
}

static bool take_activation(lp_module *module, lp_op *linear, lp_op *reader) {
  static const char *const activations[] = {"relu", "gelu", "gelu_tanh", "silu", "quick_gelu"};
  if (!is_plain(linear) || lp_op_attr(reader, "alpha")) return false;
  for (size_t i = 0; i < LP_COUNT(activations); i++) {
    if (!lp_is_map(reader, activations[i])) continue;
    lp_op_set_str(module, linear, "epilogue", activations[i]);
    take_place(linear, reader);
    return true;
  }
  return false;
}

/* Tells whether both are absent, or both of one type. */
static bool same_form(const lp_op *a, const lp_op *b, int32_t operand) {
  const lp_value *x = lp_op_in(a, operand), *y = lp_op_in(b, operand);
  return (!x && !y) || (x && y && lp_type_equal(x->type, y->type));
}

/* Absorbs mul(epilogue(x.w_gate), x.w + bias). The gate has absorbed its activation earlier. */
static bool take_gate(lp_module *module, lp_op *gate, lp_op *reader) {
  if (!lp_is_map(reader, "mul") || !has_epilogue(gate)) return false;
  if (lp_op_in(gate, IN_BIAS) || has_residual(gate) || lp_op_in(gate, IN_GATE)) return false;
  lp_value *value = other_operand(reader, gate->out[0]);
  lp_op *linear = value ? value->def : NULL;
  if (!linear || linear->kind != gate->kind || !is_plain(linear) || lp_only_reader(value) != reader) return false;
  bool alike = lp_op_bool(linear, "transpose_b", false) == lp_op_bool(gate, "transpose_b", false) &&
               lp_op_i64(linear, "group", 0) == lp_op_i64(gate, "group", 0) &&
               lp_op_in(linear, IN_X) == lp_op_in(gate, IN_X) &&
               (linear->kind == LP_OP_LINEAR || lp_op_in(linear, IN_RESIDUAL) == lp_op_in(gate, IN_RESIDUAL)) &&
               same_form(linear, gate, IN_W) &&
               lp_weight_blocks(lp_op_in(linear, IN_W)) == lp_weight_blocks(lp_op_in(gate, IN_W)) &&
               same_form(linear, gate, IN_SCALE) && same_form(linear, gate, IN_ZERO);
  if (!alike) return false;
  set_operand(module, linear, IN_GATE, lp_op_in(gate, IN_W));
  if (lp_op_in(gate, IN_SCALE)) set_operand(module, linear, IN_GATE_SCALE, lp_op_in(gate, IN_SCALE));
  if (lp_op_in(gate, IN_ZERO)) set_operand(module, linear, IN_GATE_ZERO, lp_op_in(gate, IN_ZERO));
  lp_op_set_str(module, linear, "epilogue", lp_op_str(gate, "epilogue", "none"));
  take_place(linear, reader);
  lp_op_erase(gate);
  return true;
}

static bool take_residual(lp_module *module, lp_op *linear, lp_op *reader) {
  if (!lp_is_map(reader, "add") || linear->kind == LP_OP_EXPERTS || lp_op_in(linear, IN_RESIDUAL) ||
      lp_op_in(linear, IN_GATE))
    return false;
  lp_value *residual = other_operand(reader, linear->out[0]);
  if (residual == linear->out[0] || lp_value_is_constant(residual) ||
      !lp_type_equal(residual->type, linear->out[0]->type))
    return false;
  set_operand(module, linear, IN_RESIDUAL, residual);
  take_place(linear, reader);
  return true;
}

/* Absorbs one reader of `linear`, which moves to the reader's position. */
static bool take_reader(lp_module *module, lp_op *linear, lp_diag *diag) {
  lp_op *reader = lp_only_reader(linear->out[0]);
  if (!lp_op_is(reader, LP_OP_MAP) || !lp_type_equal(reader->out[0]->type, linear->out[0]->type)) return false;
  return take_bias(module, linear, reader, diag) || take_activation(module, linear, reader) ||
         take_gate(module, linear, reader) || take_residual(module, linear, reader);
}

/* Tries every operator of the block once. An absorbed operator may move after the current one; the next call meets it
 * again. */
static bool walk(lp_module *module, lp_block *block, lp_diag *diag) {
  bool changed = false;
  for (lp_op *op = block->first, *next; op; op = next) {
    lp_op *before = op->prev;
    next = op->next;
    if (!lp_op_is_weighted(op) || !take_reader(module, op, diag)) continue;
    next = before ? before->next : block->first; /* `next` may be the absorbed operator */
    changed = true;
  }
  return changed;
}

void lp_fuse_linear(lp_module *module, lp_block *block, lp_diag *diag) {
  while (walk(module, block, diag))
    continue;
}
