/* op.scatter_elements and op.scatter_nd. */
#include "backend/cpu/codegen/build.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/operands.h"

enum { X, INDEX, UPDATES };

static int reduction_of(const lp_op *op) {
  static const char *const names[] = {
      [LPK_SCATTER_NONE] = "none", [LPK_SCATTER_ADD] = "add", [LPK_SCATTER_MUL] = "mul",
      [LPK_SCATTER_MIN] = "min",   [LPK_SCATTER_MAX] = "max",
  };
  const char *name = lp_op_str(op, "reduction", "none");
  for (int i = 0; i < (int)LP_COUNT(names); i++)
    if (lp_streq(names[i], name)) return i;
  return LPK_SCATTER_NONE; /* the verifier accepts only these names */
}

static bool scatter_runs(const lp_op *op, char why[64]) {
  const lp_dtype dtype = op->out[0]->type.dtype, index = lp_op_in(op, INDEX)->type.dtype;
  bool joins = dtype == LP_F32 || dtype == LP_F64 || dtype == LP_I32 || dtype == LP_I64 || dtype == LP_U64;
  if (index != LP_I32 && index != LP_I64) return snprintf(why, 64, "an index of type %s", lp_dtype_name(index)), false;
  if (!joins && reduction_of(op) != LPK_SCATTER_NONE)
    return snprintf(why, 64, "joined values of type %s", lp_dtype_name(dtype)), false;
  return true;
}

/* The kernels must distinguish u64 from i64, which share the number LPK_I64. They join no values of 8 bits, so LPK_U8
 * stands for u64. */
static LLVMValueRef joined_in(const cpu_emitter *e, lp_dtype dtype) {
  return cpu_i32(e, dtype == LP_U64 ? LPK_U8 : cpu_kernel_dtype(dtype));
}

static void emit_scatter_elements(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, X)->type, index = lp_op_in(e->op, INDEX)->type;
  cpu_kernel(e, "lpk_scatter_elements",
             CPU_ARGS(e->out[0], e->in[X], e->in[INDEX], e->in[UPDATES], cpu_sizes(e, index), cpu_sizes(e, x),
                      cpu_i32(e, x.rank), cpu_i32(e, lp_op_i64(e->op, "axis", 0)), cpu_i32(e, cpu_dtype_bytes(x.dtype)),
                      cpu_i32(e, cpu_kernel_dtype(index.dtype)), cpu_i32(e, reduction_of(e->op)), joined_in(e, x.dtype),
                      cpu_barrier(e), e->thread, e->threads));
}

static void emit_scatter_nd(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, X)->type, index = lp_op_in(e->op, INDEX)->type;
  int64_t depth = 0;
  (void)lp_type_static_dim(index, -1, &depth); /* constant by the verifier */
  cpu_kernel(e, "lpk_scatter_nd",
             CPU_ARGS(e->out[0], e->in[X], e->in[INDEX], e->in[UPDATES], cpu_sizes(e, x),
                      cpu_poly_product(e, index.dim, 0, index.rank - 1), cpu_i32(e, x.rank), cpu_i32(e, depth),
                      cpu_i32(e, cpu_dtype_bytes(x.dtype)), cpu_i32(e, cpu_kernel_dtype(index.dtype)),
                      cpu_i32(e, reduction_of(e->op)), joined_in(e, x.dtype), e->thread, e->threads));
}

const cpu_rule cpu_rule_scatter_elements = {
    .kind = LP_OP_SCATTER_ELEMENTS,
    .runs = scatter_runs,
    .form = cpu_form_raw,
    .emit = emit_scatter_elements,
};
const cpu_rule cpu_rule_scatter_nd = {
    .kind = LP_OP_SCATTER_ND,
    .runs = scatter_runs,
    .form = cpu_form_raw,
    .emit = emit_scatter_nd,
};
