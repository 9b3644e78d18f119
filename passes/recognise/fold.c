/* fold: computes values that do not depend on the input, and removes leftovers of exporters: casts, reshapes and
 * copies that do nothing, repeated shape arithmetic, unused operators. It never reads a weight and never makes a
 * large constant. */
#include "passes/recognise/fold.h"
#include "base/poly.h"
#include "passes/build.h"
#include "passes/passes.h"

enum { MAX_BYTES = 65536, MAX_ROUNDS = 8 };

/* ---- constants --------------------------------------------------------------------------------------------------- */

static bool is_small(lp_type type) {
  int64_t count;
  return lp_type_static_numel(type, &count) && count <= MAX_BYTES && count * lp_dtype_bits(type.dtype) <= 8 * MAX_BYTES;
}

static bool is_known_constant(const lp_value *value) {
  if (!value->known) return false;
  for (int32_t i = 0; i < value->known_count; i++)
    if (!lp_poly_is_const(value->known[i], NULL)) return false;
  return true;
}

static bool has_constant_operands(const lp_op *op) {
  for (int32_t i = 0; i < op->in_count; i++) {
    const lp_value *in = lp_op_in(op, i);
    if (in && (!lp_op_is(in->def, LP_OP_CONSTANT) || !is_small(in->type))) return false;
  }
  return true;
}

/* The constant that equals a result, placed before its operator; NULL when the result is not constant or cannot be
 * computed. */
static lp_value *constant_of(const lp_fold *f, lp_value *value) {
  lp_array array;
  bool constant = is_known_constant(value) || has_constant_operands(value->def);
  if (!constant || !is_small(value->type)) return NULL;
  if (lp_value_eval(f->module, value, NULL, 0, f->no_sizes, f->scratch, &array, NULL) != LP_OK) return NULL;
  lp_tensor tensor = {.type = lp_type_static(f->module, array.dtype, array.rank, array.dim)};
  if (!lp_type_equal(tensor.type, value->type)) return NULL;
  int64_t count = 0;
  if (!lp_type_static_numel(tensor.type, &count)) return NULL;
  tensor.bytes = ((size_t)count * (size_t)lp_dtype_bits(array.dtype) + 7) / 8;
  tensor.data = lp_arena_copy(f->module->arena, tensor.bytes > 0 ? array.data : "", tensor.bytes);
  lp_op *op = lp_constant_create(f->module, value->def->loc, tensor);
  lp_op_insert_before(value->def, op);
  op->out[0]->name = value->name;
  return lp_op_infer(f->module, op, f->diag) == LP_OK ? op->out[0] : NULL;
}

/* ---- one block --------------------------------------------------------------------------------------------------- */

static void replace(lp_fold *f, lp_value *old, lp_value *by) {
  if (!by->name) by->name = old->name;
  lp_value_replace(old, by);
  f->changed = true;
}

/* A quantised matrix is kept: products read it as it is. */
static bool is_packed_matrix(const lp_op *op) {
  return op->kind == LP_ONNX_DequantizeLinear && lp_weight_source(op->out[0]);
}

static void fold_op(lp_fold *f, lp_op *op) {
  bool foldable = lp_op_info_get(op->kind)->level == LP_LEVEL_ONNX && lp_op_has(op, LP_PURE) && !is_packed_matrix(op);
  for (int32_t i = 0; i < op->out_count && foldable; i++) {
    lp_value *by = op->out[i]->uses ? constant_of(f, op->out[i]) : NULL;
    if (by) replace(f, op->out[i], by);
  }
  if (!foldable || op->out_count == 0 || !op->out[0]->uses) return;
  lp_value *by = lp_fold_simplify(f, op);
  if (by && by != op->out[0]) replace(f, op->out[0], by);
}

static void fold_block(lp_fold *f, lp_block *block) {
  for (lp_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (op->region) fold_block(f, op->region);
    fold_op(f, op);
    lp_arena_reset(f->scratch);
  }
  lp_fold_merge(f, block);
  lp_build_remove_dead(block);
}

static lp_status fold(lp_module *module, lp_pass_context *context) {
  LP_OWNED(lp_arena_free_at) lp_arena *sizes = lp_arena_create();
  lp_fold f = {.module = module, .diag = context->diag, .scratch = context->scratch};
  f.no_sizes = LP_NEW_ARRAY(sizes, int64_t, module->symbols.names.count + 1);
  lp_status status = LP_OK;
  for (int round = 0; round < MAX_ROUNDS && status == LP_OK; round++) {
    f.changed = false;
    status = lp_block_infer(module, lp_module_body(module), context->diag);
    if (status == LP_OK) fold_block(&f, lp_module_body(module));
    if (!f.changed) break;
  }
  return status;
}

const lp_pass lp_pass_fold = {
    .name = "fold",
    .summary = "compute what does not depend on the input, remove what does nothing",
    .needs = LP_STATE_IMPORTED,
    .makes = LP_STATE_IMPORTED,
    .breaks = LP_STATE_RAISED,
    .run = fold,
};
