/* Row-wise operators: norms and softmax. */
#include "backend/cpu/codegen/build.h"

#include "backend/cpu/operands.h"
#include "backend/values.h"

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static bool norm_runs(const lp_op *op, char why[64]) {
  int64_t n;
  const char *type = lp_op_str(op, "type", "");
  if (!lp_op_all_f32(op, why)) return false;
  if (lp_op_in(op, 0)->type.rank < 1 || !lp_type_static_dim(lp_op_in(op, 0)->type, -1, &n))
    return snprintf(why, 64, "a last axis that is not constant"), false;
  if (!lp_streq(type, "rms") && !lp_streq(type, "layer")) return snprintf(why, 64, "type '%s'", type), false;
  for (int32_t i = 1; i < op->in_count; i++) {
    int64_t length = 0;
    const lp_value *value = lp_op_in(op, i);
    bool residual = op->kind == LP_OP_ADD_NORM && i == 1;
    if (residual && !lp_type_equal(value->type, lp_op_in(op, 0)->type))
      return snprintf(why, 64, "x and r of different shapes"), false;
    if (value && !residual && (!lp_type_static_numel(value->type, &length) || length != n))
      return snprintf(why, 64, "a weight or bias not as long as the last axis"), false;
  }
  return true;
}

static LLVMValueRef or_null(const cpu_emitter *e, int32_t index) {
  return index < e->op->in_count && e->in[index] ? e->in[index] : cpu_null(e);
}

/* `sum` and `residual` are null for a plain norm; the weight is operand `weight`, the bias the next. */
static void call_norm(cpu_emitter *e, LLVMValueRef y, LLVMValueRef sum, LLVMValueRef residual, int32_t weight) {
  const lp_type x = lp_op_in(e->op, 0)->type;
  LLVMValueRef n = cpu_poly(e, x.dim[x.rank - 1]);
  cpu_kernel(e, "lpk_norm",
             CPU_ARGS(y, sum, e->in[0], residual, or_null(e, weight), or_null(e, weight + 1),
                      cpu_poly_product(e, x.dim, 0, x.rank - 1), n, n, cpu_f32(e, lp_op_f64(e->op, "epsilon", 1e-5)),
                      cpu_i32(e, lp_streq(lp_op_str(e->op, "type", ""), "rms")), e->thread, e->threads));
}

static void emit_norm(cpu_emitter *e) {
  call_norm(e, e->out[0], cpu_null(e), cpu_null(e), 1);
}

static void emit_add_norm(cpu_emitter *e) {
  call_norm(e, e->out[1], e->out[0], e->in[1], 2);
}

const cpu_rule cpu_rule_norm = {.kind = LP_OP_NORM, .runs = norm_runs, .form = cpu_form_f32, .emit = emit_norm};
const cpu_rule cpu_rule_add_norm = {
    .kind = LP_OP_ADD_NORM,
    .runs = norm_runs,
    .form = cpu_form_f32,
    .emit = emit_add_norm,
};

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

static void emit_softmax(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, 0)->type;
  int32_t lead = x.rank > 0 ? x.rank - 1 : 0;
  cpu_kernel(e, "lpk_softmax",
             CPU_ARGS(e->out[0], e->in[0], cpu_poly_product(e, x.dim, 0, lead),
                      cpu_poly_product(e, x.dim, lead, x.rank), cpu_i32(e, lp_op_bool(e->op, "log", false)), e->thread,
                      e->threads));
}

const cpu_rule cpu_rule_softmax = {
    .kind = LP_OP_SOFTMAX,
    .runs = lp_op_all_f32,
    .form = cpu_form_f32,
    .emit = emit_softmax,
};
