/* op.argmax, op.topk and op.cumsum, along one axis: by kernels for the common element types, else by plain loops. */
#include "backend/cpu/scalar/scalar.h"

#include "backend/cpu/operands.h"

#include <assert.h>
#include <llvm-c/Core.h>

/* Sizes before, at and after an axis. */
typedef struct {
  LLVMValueRef outer, n, inner;
} axis_split;

static int32_t axis_of(const lp_op *op) {
  int64_t axis = lp_op_i64(op, "axis", 0);
  int32_t rank = lp_op_in(op, 0)->type.rank;
  return (int32_t)(axis < 0 ? axis + rank : axis);
}

static axis_split split_axis(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, 0)->type;
  const int32_t axis = axis_of(e->op);
  return (axis_split){cpu_poly_product(e, x.dim, 0, axis), cpu_poly(e, x.dim[axis]),
                      cpu_poly_product(e, x.dim, axis + 1, x.rank)};
}

static bool axis_runs(const lp_op *op, char why[64]) {
  int32_t axis = axis_of(op), rank = lp_op_in(op, 0)->type.rank;
  if (axis < 0 || axis >= rank) return snprintf(why, 64, "axis %d of rank %d", (int)axis, (int)rank), false;
  return true;
}

/* State of the plain loops: the function for the operand's type, and the current line. */
typedef struct {
  cpu_emitter *e;
  cpu_fn fn;
  lp_dtype dtype;
  axis_split split;
  LLVMValueRef first; /* flat index of the line's first element */
  cpu_loop lines;
} line_walk;

static line_walk lines_begin(cpu_emitter *e) {
  const lp_dtype dtype = lp_op_in(e->op, 0)->type.dtype;
  line_walk w = {.e = e, .dtype = dtype, .split = split_axis(e)};
  w.fn = (cpu_fn){.e = e, .b = e->b, .op = e->op, .type = cpu_scalar_type(e, dtype)};
  w.fn.real = lp_dtype_is_float(dtype), w.fn.negatives = !cpu_dtype_unsigned(dtype);
  LLVMValueRef from, to;
  cpu_share(e, LLVMBuildNSWMul(e->b, w.split.outer, w.split.inner, ""), &from, &to);
  w.lines = cpu_loop_begin(e, from, to, cpu_i64(e, 1));
  LLVMValueRef outer = LLVMBuildUDiv(e->b, w.lines.index, w.split.inner, "");
  LLVMValueRef inner = LLVMBuildURem(e->b, w.lines.index, w.split.inner, "");
  LLVMValueRef start = LLVMBuildNSWMul(e->b, LLVMBuildNSWMul(e->b, outer, w.split.n, ""), w.split.inner, "");
  w.first = LLVMBuildNSWAdd(e->b, start, inner, "");
  return w;
}

static LLVMValueRef element_at(const line_walk *w, LLVMValueRef i) {
  return LLVMBuildNSWAdd(w->e->b, w->first, LLVMBuildNSWMul(w->e->b, i, w->split.inner, ""), "");
}

static LLVMValueRef load(const line_walk *w, LLVMValueRef i) {
  return cpu_scalar_load_at(w->e, w->e->in[0], cpu_i64(w->e, 0), element_at(w, i), w->dtype).value;
}

/* Opens a value that a loop carries, with its first value `start`; the value for the next iteration closes it. */
static LLVMValueRef carry(cpu_emitter *e, LLVMValueRef start, LLVMBasicBlockRef before) {
  LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(start), "");
  LLVMAddIncoming(phi, &start, &before, 1);
  return phi;
}

static void carry_on(LLVMValueRef phi, LLVMValueRef next, LLVMBasicBlockRef latch) {
  LLVMAddIncoming(phi, &next, &latch, 1);
}

/* ---- argmax ------------------------------------------------------------------------------------------------------ */

static cpu_form axis_form(const lp_op *op, int32_t index) {
  (void)index;
  return lp_op_in(op, 0)->type.dtype == LP_F32 ? CPU_FORM_F32 : CPU_FORM_RAW;
}

static LLVMValueRef is_better(const cpu_fn *fn, LLVMValueRef best, LLVMValueRef x) {
  const bool min = lp_op_bool(fn->op, "min", false), last = lp_op_bool(fn->op, "last", false);
  LLVMValueRef a = min ? x : best, b = min ? best : x; /* better: a < b, and with `last` a <= b */
  return last ? LLVMBuildNot(fn->b, cpu_fn_less(fn, b, a), "") : cpu_fn_less(fn, a, b);
}

static void emit_argmax_loop(cpu_emitter *e) {
  line_walk w = lines_begin(e);
  LLVMValueRef first = load(&w, cpu_i64(e, 0));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  cpu_loop loop = cpu_loop_begin(e, cpu_i64(e, 1), w.split.n, cpu_i64(e, 1));
  LLVMValueRef best = carry(e, first, before), place = carry(e, cpu_i64(e, 0), before), x = load(&w, loop.index);
  LLVMValueRef better = is_better(&w.fn, best, x);
  LLVMValueRef next = cpu_fn_select(&w.fn, better, x, best);
  LLVMValueRef next_place = LLVMBuildSelect(e->b, better, loop.index, place, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
  cpu_loop_end(e, &loop);
  carry_on(best, next, latch);
  carry_on(place, next_place, latch);
  LLVMValueRef found = carry(e, cpu_i64(e, 0), before);
  carry_on(found, next_place, latch);
  cpu_scalar_store_at(e, e->out[0], w.lines.index, (cpu_scalar){found, LP_I64}, LP_I64);
  cpu_loop_end(e, &w.lines);
}

/* Calls a kernel with one operand and one result: its options stand between the sizes and the threads. */
static void call_axis_kernel(cpu_emitter *e, const char *name, const LLVMValueRef *option, unsigned options) {
  enum { MOST_OPTIONS = 3 };
  assert(options <= MOST_OPTIONS);
  axis_split split = split_axis(e);
  LLVMValueRef args[MOST_OPTIONS + 7] = {e->out[0], e->in[0], split.outer, split.n, split.inner};
  unsigned count = 5;
  for (unsigned i = 0; i < options; i++)
    args[count++] = option[i];
  args[count++] = e->thread;
  args[count++] = e->threads;
  cpu_kernel(e, name, args, count);
}

static void emit_argmax(cpu_emitter *e) {
  if (lp_op_in(e->op, 0)->type.dtype != LP_F32) {
    emit_argmax_loop(e);
    return;
  }
  call_axis_kernel(e, "lpk_argmax",
                   CPU_ARGS(cpu_i32(e, lp_op_bool(e->op, "min", false)), cpu_i32(e, lp_op_bool(e->op, "last", false))));
}

const cpu_rule cpu_rule_argmax = {.kind = LP_OP_ARGMAX, .runs = axis_runs, .form = axis_form, .emit = emit_argmax};

/* ---- the greatest elements --------------------------------------------------------------------------------------- */

static bool topk_runs(const lp_op *op, char why[64]) {
  const lp_dtype dtype = lp_op_in(op, 0)->type.dtype;
  if (lp_dtype_is_mini(dtype)) return snprintf(why, 64, "values of type %s", lp_dtype_name(dtype)), false;
  return axis_runs(op, why);
}

static void emit_topk(cpu_emitter *e) {
  const lp_dtype dtype = lp_op_in(e->op, 0)->type.dtype;
  axis_split split = split_axis(e);
  cpu_kernel(e, "lpk_topk",
             CPU_ARGS(e->out[0], e->out[1], e->in[0], split.outer, split.n, split.inner,
                      cpu_poly(e, e->op->out[0]->type.dim[axis_of(e->op)]), cpu_i32(e, lp_op_bool(e->op, "min", false)),
                      cpu_i32(e, cpu_kernel_dtype(dtype)), cpu_i32(e, dtype == LP_U64), e->thread, e->threads));
}

const cpu_rule cpu_rule_topk = {.kind = LP_OP_TOPK, .runs = topk_runs, .form = cpu_form_raw, .emit = emit_topk};

/* ---- running sums and products ----------------------------------------------------------------------------------- */

static bool cumsum_kernel_runs(const lp_op *op) {
  const lp_dtype dtype = lp_op_in(op, 0)->type.dtype;
  return (dtype == LP_F32 || dtype == LP_I64) && !lp_op_bool(op, "product", false);
}

static bool cumsum_runs(const lp_op *op, char why[64]) {
  const lp_dtype dtype = lp_op_in(op, 0)->type.dtype;
  if (dtype == LP_BOOL || dtype != op->out[0]->type.dtype)
    return snprintf(why, 64, "values of type %s", lp_dtype_name(dtype)), false;
  return axis_runs(op, why);
}

static void emit_cumsum_loop(cpu_emitter *e) {
  const bool product = lp_op_bool(e->op, "product", false), reverse = lp_op_bool(e->op, "reverse", false);
  line_walk w = lines_begin(e);
  const lp_dtype computed = w.dtype == LP_F16 || w.dtype == LP_BF16 ? LP_F32 : w.dtype;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  cpu_loop loop = cpu_loop_begin(e, cpu_i64(e, 0), w.split.n, cpu_i64(e, 1));
  LLVMValueRef total = carry(e, cpu_fn_number(&w.fn, product), before), i = loop.index;
  if (reverse) i = LLVMBuildNSWSub(e->b, LLVMBuildNSWSub(e->b, w.split.n, cpu_i64(e, 1), ""), i, "");
  LLVMValueRef x = load(&w, i), next = product ? cpu_fn_mul(&w.fn, total, x) : cpu_fn_add(&w.fn, total, x);
  cpu_scalar y = {lp_op_bool(e->op, "exclusive", false) ? total : next, computed};
  cpu_scalar_store_at(e, e->out[0], element_at(&w, i), y, w.dtype);
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
  cpu_loop_end(e, &loop);
  carry_on(total, next, latch);
  cpu_loop_end(e, &w.lines);
}

static void emit_cumsum(cpu_emitter *e) {
  if (!cumsum_kernel_runs(e->op)) {
    emit_cumsum_loop(e);
    return;
  }
  call_axis_kernel(e, "lpk_cumsum",
                   CPU_ARGS(cpu_i32(e, lp_op_bool(e->op, "exclusive", false)),
                            cpu_i32(e, lp_op_bool(e->op, "reverse", false)),
                            cpu_i32(e, cpu_kernel_dtype(lp_op_in(e->op, 0)->type.dtype))));
}

const cpu_rule cpu_rule_cumsum = {.kind = LP_OP_CUMSUM, .runs = cumsum_runs, .form = axis_form, .emit = emit_cumsum};
