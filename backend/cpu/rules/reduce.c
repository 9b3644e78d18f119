/* op.reduce: by a kernel if the reduced axes are neighbours and the elements are f32 or i64, else by a plain loop. */
#include "backend/cpu/scalar/scalar.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/operands.h"
#include "backend/values.h"

#include <llvm-c/Core.h>
#include <math.h>

typedef struct {
  const char *fn;
  int kind;
  bool integer; /* there is a kernel for i64, too */
} reduction;

static const reduction reductions[] = {
    {"sum", LPK_REDUCE_SUM, true},        {"mean", LPK_REDUCE_MEAN, true},
    {"max", LPK_REDUCE_MAX, true},        {"min", LPK_REDUCE_MIN, true},
    {"prod", LPK_REDUCE_PROD, true},      {"sumsq", LPK_REDUCE_SUMSQ, true},
    {"l1", LPK_REDUCE_L1, true},          {"l2", LPK_REDUCE_L2, false},
    {"logsum", LPK_REDUCE_LOGSUM, false}, {"logsumexp", LPK_REDUCE_LOGSUMEXP, false},
};

static const reduction *find_reduction(const lp_op *op) {
  return LP_FIND_IN(reductions, lp_op_str(op, "fn", ""));
}

static bool is_reduced(const lp_op *op, int32_t axis) {
  const lp_attr *axes = lp_op_attr(op, "axes");
  for (int32_t i = 0; axes && i < axes->count; i++)
    if (axes->is[i] == axis) return true;
  return false;
}

static bool reduce_runs(const lp_op *op, char why[64]) {
  const reduction *r = find_reduction(op);
  const lp_dtype dtype = lp_op_in(op, 0)->type.dtype;
  if (!r) return snprintf(why, 64, "reduction '%s'", lp_op_str(op, "fn", "")), false;
  if (dtype == LP_BOOL || dtype != op->out[0]->type.dtype)
    return snprintf(why, 64, "'%s' of type %s", r->fn, lp_dtype_name(dtype)), false;
  return true;
}

/* ---- by the kernel ----------------------------------------------------------------------------------------------- */

/* The reduced axes as a range; false when others that are not of size 1 lie between them. */
static bool reduced_range(const lp_op *op, int32_t *first, int32_t *last) {
  const lp_type x = lp_op_in(op, 0)->type;
  *first = x.rank, *last = -1;
  for (int32_t i = 0; i < x.rank; i++) {
    if (!is_reduced(op, i)) continue;
    if (*last < 0) *first = i;
    *last = i;
  }
  for (int32_t i = *first; i <= *last; i++) {
    int64_t extent;
    if (!is_reduced(op, i) && (!lp_type_static_dim(x, i, &extent) || extent != 1)) return false;
  }
  return *last >= 0;
}

static bool kernel_runs(const lp_op *op, int32_t *first, int32_t *last) {
  const lp_dtype dtype = lp_op_in(op, 0)->type.dtype;
  return !lp_value_cache(lp_op_in(op, 0)) && reduced_range(op, first, last) &&
         (dtype == LP_F32 || (dtype == LP_I64 && find_reduction(op)->integer));
}

static void emit_kernel(cpu_emitter *e, int32_t first, int32_t last) {
  const lp_type x = lp_op_in(e->op, 0)->type;
  cpu_kernel(e, "lpk_reduce",
             CPU_ARGS(e->out[0], e->in[0], cpu_poly_product(e, x.dim, 0, first),
                      cpu_poly_product(e, x.dim, first, last + 1), cpu_poly_product(e, x.dim, last + 1, x.rank),
                      cpu_i32(e, find_reduction(e->op)->kind), cpu_i32(e, cpu_kernel_dtype(x.dtype)), e->thread,
                      e->threads));
}

/* ---- by a loop --------------------------------------------------------------------------------------------------- */

/* The axes of one kind, outermost first: those reduced or those kept. */
typedef struct {
  int32_t count;
  LLVMValueRef extent[LP_MAX_RANK], stride[LP_MAX_RANK], total;
} axis_list;

static axis_list list_axes(cpu_emitter *e, bool reduced) {
  const lp_value *x = lp_op_in(e->op, 0);
  LLVMValueRef strides[LP_MAX_RANK];
  axis_list list = {.total = cpu_i64(e, 1)};
  cpu_strides(e, x, strides);
  for (int32_t i = 0; i < x->type.rank; i++) {
    if (is_reduced(e->op, i) != reduced) continue;
    list.extent[list.count] = cpu_poly(e, x->type.dim[i]);
    list.stride[list.count] = strides[i];
    list.total = LLVMBuildNSWMul(e->b, list.total, list.extent[list.count], "");
    list.count++;
  }
  return list;
}

/* Element offset of the flat index over the axes. */
static LLVMValueRef offset_of(cpu_emitter *e, const axis_list *list, LLVMValueRef index) {
  LLVMValueRef offset = cpu_i64(e, 0);
  for (int32_t i = list->count - 1; i >= 0; i--) {
    LLVMValueRef at = i > 0 ? LLVMBuildURem(e->b, index, list->extent[i], "") : index;
    offset = LLVMBuildNSWAdd(e->b, offset, LLVMBuildNSWMul(e->b, at, list->stride[i], ""), "");
    if (i > 0) index = LLVMBuildUDiv(e->b, index, list->extent[i], "");
  }
  return offset;
}

/* The result of an empty reduction, from which every reduction starts. */
static LLVMValueRef start_of(const cpu_fn *a, int kind, int32_t bits) {
  switch (kind) {
  case LPK_REDUCE_PROD:
    return cpu_fn_number(a, 1);
  case LPK_REDUCE_MAX:
    if (a->real) return cpu_fn_number(a, -INFINITY);
    return a->negatives ? LLVMConstInt(a->type, 1ull << (bits - 1), 0) : cpu_fn_number(a, 0);
  case LPK_REDUCE_MIN:
    if (a->real) return cpu_fn_number(a, INFINITY);
    return a->negatives ? LLVMConstInt(a->type, (1ull << (bits - 1)) - 1, 0) : LLVMConstAllOnes(a->type);
  default:
    return cpu_fn_number(a, 0);
  }
}

/* Adds one element: a->x is the result so far, a->y the element. */
static LLVMValueRef combine(const cpu_fn *a, int kind, LLVMValueRef greatest) {
  cpu_fn t = *a;
  switch (kind) {
  case LPK_REDUCE_MAX:
    return cpu_fn_max(a);
  case LPK_REDUCE_MIN:
    return cpu_fn_min(a);
  case LPK_REDUCE_PROD:
    return cpu_fn_mul(a, a->x, a->y);
  case LPK_REDUCE_SUMSQ:
  case LPK_REDUCE_L2:
    return cpu_fn_add(a, a->x, cpu_fn_mul(a, a->y, a->y));
  case LPK_REDUCE_L1:
    t.x = a->y, t.y = cpu_fn_sub(a, cpu_fn_number(a, 0), a->y);
    return cpu_fn_add(a, a->x, a->real || a->negatives ? cpu_fn_max(&t) : a->y);
  case LPK_REDUCE_LOGSUMEXP:
    return cpu_fn_add(a, a->x, cpu_fn_kernel(a, "lpk_exp", cpu_fn_sub(a, a->y, greatest)));
  default:
    return cpu_fn_add(a, a->x, a->y);
  }
}

static LLVMValueRef finish(const cpu_fn *a, int kind, LLVMValueRef sum, LLVMValueRef count, LLVMValueRef greatest) {
  LLVMBuilderRef b = a->b;
  switch (kind) {
  case LPK_REDUCE_MEAN:
    if (a->real) return LLVMBuildFDiv(b, sum, LLVMBuildSIToFP(b, count, a->type, ""), "");
    count = LLVMBuildIntCast2(b, count, a->type, 1, "");
    return a->negatives ? LLVMBuildSDiv(b, sum, count, "") : LLVMBuildUDiv(b, sum, count, "");
  case LPK_REDUCE_L2:
    return a->real ? cpu_fn_intrinsic1(a, "llvm.sqrt", sum) : sum;
  case LPK_REDUCE_LOGSUM:
    return cpu_fn_kernel(a, "lpk_log", sum);
  case LPK_REDUCE_LOGSUMEXP:
    return cpu_fn_add(a, cpu_fn_kernel(a, "lpk_log", sum), greatest);
  default:
    return sum;
  }
}

/* Reduces the elements at base + each of the reduced axes' offsets. */
static LLVMValueRef emit_inner(cpu_emitter *e, cpu_fn *a, int kind, const axis_list *reduced, LLVMValueRef base,
                               LLVMValueRef greatest) {
  const lp_dtype dtype = lp_op_in(e->op, 0)->type.dtype;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  LLVMValueRef start = start_of(a, kind, lp_dtype_bits(dtype));
  cpu_loop loop = cpu_loop_begin(e, cpu_i64(e, 0), reduced->total, cpu_i64(e, 1));
  a->x = LLVMBuildPhi(e->b, a->type, "");
  LLVMValueRef at = LLVMBuildNSWAdd(e->b, base, offset_of(e, reduced, loop.index), "");
  LLVMValueRef bytes = LLVMBuildNSWMul(e->b, at, cpu_i64(e, cpu_dtype_bytes(dtype)), "");
  a->y = cpu_scalar_load(e, cpu_offset_bytes(e, e->in[0], bytes), dtype).value;
  LLVMValueRef phi = a->x, next = combine(a, kind, greatest);
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
  cpu_loop_end(e, &loop);
  LLVMAddIncoming(phi, (LLVMValueRef[]){start, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
  LLVMValueRef sum = LLVMBuildPhi(e->b, a->type, "");
  LLVMAddIncoming(sum, (LLVMValueRef[]){start, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
  return sum;
}

static void emit_loop(cpu_emitter *e) {
  const lp_dtype dtype = e->op->out[0]->type.dtype;
  const lp_dtype computed = dtype == LP_F16 || dtype == LP_BF16 ? LP_F32 : dtype;
  const int kind = find_reduction(e->op)->kind;
  cpu_fn a = {.e = e, .b = e->b, .op = e->op, .type = cpu_scalar_type(e, dtype)};
  a.real = lp_dtype_is_float(dtype), a.negatives = !cpu_dtype_unsigned(dtype);
  axis_list kept = list_axes(e, false), reduced = list_axes(e, true);
  LLVMValueRef from, to, greatest = NULL;
  cpu_share(e, kept.total, &from, &to);
  cpu_loop loop = cpu_loop_begin(e, from, to, cpu_i64(e, 1));
  LLVMValueRef base = offset_of(e, &kept, loop.index);
  if (kind == LPK_REDUCE_LOGSUMEXP) greatest = emit_inner(e, &a, LPK_REDUCE_MAX, &reduced, base, NULL);
  LLVMValueRef sum = emit_inner(e, &a, kind, &reduced, base, greatest);
  cpu_scalar y = {finish(&a, kind, sum, reduced.total, greatest), computed};
  LLVMValueRef bytes = LLVMBuildNSWMul(e->b, loop.index, cpu_i64(e, cpu_dtype_bytes(dtype)), "");
  cpu_scalar_store(e, cpu_offset_bytes(e, e->out[0], bytes), y, dtype);
  cpu_loop_end(e, &loop);
}

static void emit_reduce(cpu_emitter *e) {
  int32_t first, last;
  if (kernel_runs(e->op, &first, &last))
    emit_kernel(e, first, last);
  else
    emit_loop(e);
}

const cpu_rule cpu_rule_reduce = {
    .kind = LP_OP_REDUCE,
    .runs = reduce_runs,
    .form = cpu_form_raw,
    .emit = emit_reduce,
    .reads_cache = true,
};
