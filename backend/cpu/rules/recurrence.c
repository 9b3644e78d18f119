/* op.linear_attention and op.carry_columns. */
#include "backend/cpu/codegen/build.h"

#include "backend/cpu/operands.h"
#include "backend/values.h"

enum { Q, K, V, STATE, DECAY, BETA, OPERANDS };

static bool runs(const lp_op *op, char why[64]) {
  const lp_type state = op->out[1]->type;
  int64_t d, dv;
  if (!lp_op_all_f32(op, why)) return false;
  if (!lp_type_static_dim(state, 2, &d) || !lp_type_static_dim(state, 3, &dv))
    return snprintf(why, 64, "a head size that is not constant"), false;
  for (int32_t i = DECAY; i < op->in_count; i++)
    if (lp_op_in(op, i) && !lp_type_static_dim(lp_op_in(op, i)->type, 2, &d))
      return snprintf(why, 64, "a number of decays that is not constant"), false;
  return true;
}

/* The tokens that the cache has seen before this pass. */
static LLVMValueRef seen_tokens(cpu_emitter *e) {
  return lp_op_state(e->op) < 0 ? cpu_i64(e, -1) : cpu_poly(e, lp_dim_symbol(e->module, "p"));
}

static void emit(cpu_emitter *e) {
  const lp_op *op = e->op;
  const lp_type q = lp_op_in(op, Q)->type, state = op->out[1]->type;
  int64_t heads = lp_op_i64(op, "heads", 0), kv_heads = lp_op_i64(op, "kv_heads", 0), sizes[2] = {0}, extra[2] = {0};
  LLVMValueRef optional[OPERANDS - STATE];
  for (int32_t i = 0; i < 2; i++)
    (void)lp_type_static_dim(state, i + 2, &sizes[i]);
  for (int32_t i = STATE; i < OPERANDS; i++) {
    bool given = i < op->in_count && lp_op_in(op, i);
    optional[i - STATE] = given ? e->in[i] : cpu_null(e);
    if (given && i >= DECAY) (void)lp_type_static_dim(lp_op_in(op, i)->type, 2, &extra[i - DECAY]);
  }
  cpu_kernel(e, "lpk_linear_attention",
             CPU_ARGS(e->out[0], e->out[1], e->in[Q], e->in[K], e->in[V], optional[0], optional[1], optional[2],
                      cpu_poly(e, q.dim[0]), cpu_poly(e, q.dim[1]), seen_tokens(e), cpu_i64(e, heads),
                      cpu_i64(e, kv_heads), cpu_i64(e, sizes[0]), cpu_i64(e, sizes[1]),
                      cpu_f32(e, lp_op_f64(op, "scale", 1.0)), cpu_i32(e, extra[0] != kv_heads),
                      cpu_i32(e, (int32_t)extra[1]), e->thread, e->threads));
}

const cpu_rule cpu_rule_linear_attention = {
    .kind = LP_OP_LINEAR_ATTENTION, .runs = runs, .form = cpu_form_f32, .emit = emit};

static bool carry_runs(const lp_op *op, char why[64]) {
  int64_t n;
  if (!lp_op_all_f32(op, why)) return false;
  if (!lp_type_static_dim(op->out[1]->type, 2, &n))
    return snprintf(why, 64, "a number of columns that is not constant"), false;
  return true;
}

static void emit_carry(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, 0)->type;
  int64_t n = 0;
  (void)lp_type_static_dim(e->op->out[1]->type, 2, &n);
  cpu_kernel(e, "lpk_carry_columns",
             CPU_ARGS(e->out[0], e->out[1], e->in[0], cpu_poly_product(e, x.dim, 0, 2), cpu_poly(e, x.dim[2]),
                      seen_tokens(e), cpu_i64(e, n), e->thread, e->threads));
}

const cpu_rule cpu_rule_carry_columns = {.kind = LP_OP_CARRY_COLUMNS, .runs = carry_runs, .emit = emit_carry};
