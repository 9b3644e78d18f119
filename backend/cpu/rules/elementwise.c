/* op.map and op.fused: one loop over the result with the broadcasting of NumPy. Axes that are broadcast alike in all
 * operands are merged. Threads share the elements and may split a row. In the innermost loop every operand is
 * contiguous or constant, so that LLVM vectorises it. */
#include "backend/cpu/scalar/scalar.h"

#include "backend/cpu/operands.h"

#include <llvm-c/Core.h>

/* The merged axes of the result. */
typedef struct {
  int32_t count;
  LLVMValueRef extent[LP_MAX_RANK];
  int32_t axis[LP_MAX_RANK]; /* one original axis of the group; the others are broadcast like it */
} groups;

static bool is_one(lp_type type, int32_t axis) {
  int64_t extent;
  return lp_type_static_dim(type, axis, &extent) && extent == 1;
}

/* Tells whether the operand repeats along the result's axis. */
static bool repeats(lp_type operand, lp_type result, int32_t axis) {
  int32_t own = axis - (result.rank - operand.rank);
  return own < 0 || (is_one(operand, own) && !is_one(result, axis));
}

static bool is_loaded(const cpu_emitter *e, int32_t index) {
  return e->in[index] != NULL;
}

static bool alike(const cpu_emitter *e, lp_type result, int32_t a, int32_t b) {
  for (int32_t i = 0; i < e->op->in_count; i++) {
    if (!is_loaded(e, i)) continue;
    const lp_type type = lp_op_in(e->op, i)->type;
    if (repeats(type, result, a) != repeats(type, result, b)) return false;
  }
  return true;
}

static groups merge_axes(cpu_emitter *e, lp_type result) {
  groups g = {0};
  for (int32_t axis = 0; axis < result.rank; axis++) {
    if (is_one(result, axis)) continue;
    LLVMValueRef extent = cpu_poly(e, result.dim[axis]);
    if (g.count > 0 && alike(e, result, g.axis[g.count - 1], axis)) {
      g.extent[g.count - 1] = LLVMBuildNSWMul(e->b, g.extent[g.count - 1], extent, "");
      continue;
    }
    g.axis[g.count] = axis;
    g.extent[g.count++] = extent;
  }
  return g;
}

/* The element offset of an operand at the start of row `row` of the result. The innermost group does not count. */
static LLVMValueRef row_offset(cpu_emitter *e, const groups *g, lp_type type, lp_type result, LLVMValueRef row) {
  LLVMValueRef offset = cpu_i64(e, 0), stride = cpu_i64(e, 1);
  if (!repeats(type, result, g->axis[g->count - 1])) stride = g->extent[g->count - 1];
  for (int32_t i = g->count - 2; i >= 0; i--) {
    LLVMValueRef index = i > 0 ? LLVMBuildURem(e->b, row, g->extent[i], "") : row;
    if (!repeats(type, result, g->axis[i])) {
      offset = LLVMBuildNSWAdd(e->b, offset, LLVMBuildNSWMul(e->b, index, stride, ""), "");
      stride = LLVMBuildNSWMul(e->b, stride, g->extent[i], "");
    }
    if (i > 0) row = LLVMBuildUDiv(e->b, row, g->extent[i], "");
  }
  return offset;
}

/* ---- one element ------------------------------------------------------------------------------------------------- */

/* The scalar of a region's value: an operand, a constant or an earlier result. */
static cpu_scalar region_scalar(cpu_emitter *e, const lp_value *value, const cpu_scalar *in, const cpu_scalar *made) {
  lp_tensor tensor;
  if (!value) return (cpu_scalar){0};
  if (!value->def) return in[value->index];
  if (cpu_value_immediate(value, &tensor)) return cpu_scalar_immediate(e, &tensor);
  int32_t at = 0;
  for (const lp_op *op = value->block->first; op != value->def; op = op->next)
    at++;
  return made[at];
}

static void fused_element(cpu_emitter *e, const cpu_scalar *in, cpu_scalar *out) {
  const lp_block *block = e->op->region;
  int32_t count = 0, at = 0;
  LP_FOR_OPS(op, block)
    count++;
  cpu_scalar *made = LP_NEW_ARRAY(e->gen->arena, cpu_scalar, count);
  LP_FOR_OPS(op, block) {
    cpu_scalar operand[3] = {{0}};
    for (int32_t i = 0; i < op->in_count && op->kind == LP_OP_MAP; i++)
      operand[i] = region_scalar(e, lp_op_in(op, i), in, made);
    if (op->kind == LP_OP_MAP) made[at] = cpu_scalar_map(e, op, operand, op->in_count, op->out[0]->type.dtype);
    at++;
  }
  const lp_op *yield = block->last;
  for (int32_t i = 0; i < yield->in_count; i++)
    out[i] = region_scalar(e, lp_op_in(yield, i), in, made);
}

/* Loads the operands at their offsets plus `index` (0 where they repeat), computes, and stores the results at `to`. */
static void emit_element(cpu_emitter *e, const groups *g, const LLVMValueRef *offset, LLVMValueRef index,
                         LLVMValueRef to) {
  const lp_op *op = e->op;
  const lp_type result = op->out[0]->type;
  cpu_scalar *in = LP_NEW_ARRAY(e->gen->arena, cpu_scalar, op->in_count + 1);
  cpu_scalar *out = LP_NEW_ARRAY(e->gen->arena, cpu_scalar, op->out_count);
  for (int32_t i = 0; i < op->in_count; i++) {
    const lp_value *value = lp_op_in(op, i);
    lp_tensor tensor;
    if (is_loaded(e, i)) {
      bool fixed = g->count == 0 || repeats(value->type, result, g->axis[g->count - 1]);
      in[i] = cpu_scalar_load_at(e, e->in[i], offset ? offset[i] : cpu_i64(e, 0), fixed ? cpu_i64(e, 0) : index,
                                 value->type.dtype);
    } else if (cpu_value_immediate(value, &tensor))
      in[i] = cpu_scalar_immediate(e, &tensor);
  }
  if (op->kind == LP_OP_FUSED)
    fused_element(e, in, out);
  else
    out[0] = cpu_scalar_map(e, op, in, op->in_count, result.dtype);
  for (int32_t i = 0; i < op->out_count; i++)
    cpu_scalar_store_at(e, e->out[i], to, out[i], op->out[i]->type.dtype);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* Every operand is contiguous or one element: one loop over the thread's share. */
static void emit_flat(cpu_emitter *e, const groups *g, LLVMValueRef from, LLVMValueRef to) {
  cpu_loop loop = cpu_loop_begin(e, from, to, cpu_i64(e, 1));
  emit_element(e, g, NULL, loop.index, loop.index);
  cpu_loop_end(e, &loop);
}

/* Row by row. The share of a thread may begin and end within a row. */
static void emit_rows(cpu_emitter *e, const groups *g, LLVMValueRef from, LLVMValueRef to) {
  const lp_type result = e->op->out[0]->type;
  LLVMValueRef inner = g->extent[g->count - 1];
  LLVMValueRef *offset = LP_NEW_ARRAY(e->gen->arena, LLVMValueRef, e->op->in_count + 1);
  cpu_loop rows = cpu_loop_begin(e, from, to, NULL);
  LLVMValueRef row = LLVMBuildUDiv(e->b, rows.index, inner, "row");
  LLVMValueRef start = LLVMBuildNSWMul(e->b, row, inner, "");
  LLVMValueRef column = LLVMBuildNSWSub(e->b, rows.index, start, "");
  LLVMValueRef bounds[] = {inner, LLVMBuildNSWSub(e->b, to, start, "")};
  LLVMValueRef end = cpu_intrinsic(e, "llvm.smin", e->gen->types.i64, bounds, 2);
  for (int32_t i = 0; i < e->op->in_count; i++) {
    if (!is_loaded(e, i)) continue;
    const lp_type type = lp_op_in(e->op, i)->type;
    offset[i] = row_offset(e, g, type, result, row);
  }
  cpu_loop columns = cpu_loop_begin(e, column, end, cpu_i64(e, 1));
  emit_element(e, g, offset, columns.index, LLVMBuildNSWAdd(e->b, start, columns.index, ""));
  cpu_loop_end(e, &columns);
  rows.step = LLVMBuildNSWSub(e->b, end, column, "");
  cpu_loop_end(e, &rows);
}

static void emit_elementwise(cpu_emitter *e) {
  const lp_type result = e->op->out[0]->type;
  groups g = merge_axes(e, result);
  LLVMValueRef total = cpu_i64(e, 1), from, to;
  for (int32_t i = 0; i < g.count; i++)
    total = LLVMBuildNSWMul(e->b, total, g.extent[i], "");
  cpu_share(e, total, &from, &to);
  if (g.count <= 1)
    emit_flat(e, &g, from, to);
  else
    emit_rows(e, &g, from, to);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static cpu_form elementwise_form(const lp_op *op, int32_t index) {
  lp_tensor tensor;
  return cpu_value_immediate(lp_op_in(op, index), &tensor) ? CPU_FORM_NONE : CPU_FORM_RAW;
}

static bool map_runs(const lp_op *op, char why[64]) {
  const char *fn = lp_op_str(op, "fn", "");
  if (!cpu_scalar_runs(fn)) return snprintf(why, 64, "function '%s'", fn), false;
  return true;
}

static bool fused_runs(const lp_op *op, char why[64]) {
  lp_tensor tensor;
  if (!op->region) return snprintf(why, 64, "no region"), false;
  LP_FOR_OPS(inner, op->region) {
    if (inner->kind == LP_OP_YIELD) continue;
    if (inner->kind == LP_OP_CONSTANT && cpu_value_immediate(inner->out[0], &tensor)) continue;
    if (inner->kind != LP_OP_MAP) return snprintf(why, 64, "'%s' inside", lp_op_info_get(inner->kind)->name), false;
    if (!map_runs(inner, why)) return false;
  }
  return true;
}

const cpu_rule cpu_rule_map = {
    .kind = LP_OP_MAP,
    .runs = map_runs,
    .form = elementwise_form,
    .emit = emit_elementwise,
    .reads_packed = true,
};
const cpu_rule cpu_rule_fused = {
    .kind = LP_OP_FUSED,
    .runs = fused_runs,
    .form = elementwise_form,
    .emit = emit_elementwise,
    .reads_packed = true,
};
