/* op.linear, op.experts and op.matmul: products of matrices. */
#include "backend/cpu/codegen/build.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/operands.h"
#include "backend/values.h"
#include "base/poly.h"

enum { X, W, BIAS, RESIDUAL, INDEX = RESIDUAL, GATE, SCALE };

typedef struct {
  const char *name;
  int act;
} epilogue;

static const epilogue epilogues[] = {
    {"none", LPK_ACT_NONE}, {"relu", LPK_ACT_RELU},           {"gelu", LPK_ACT_GELU_ERF},
    {"silu", LPK_ACT_SILU}, {"gelu_tanh", LPK_ACT_GELU_TANH}, {"quick_gelu", LPK_ACT_QUICK_GELU},
    {"tanh", LPK_ACT_TANH}, {"sigmoid", LPK_ACT_SIGMOID},
};

static const epilogue *find_epilogue(const lp_op *op) {
  return LP_FIND_IN(epilogues, lp_op_str(op, "epilogue", "none"));
}

static bool linear_runs(const lp_op *op, char why[64]) {
  const lp_value *w = lp_op_in(op, W), *bias = lp_op_in(op, BIAS), *gate = lp_op_in(op, GATE);
  int64_t rows, columns, length;
  if (!lp_value_is_constant(w)) return snprintf(why, 64, "its weight is not a constant"), false;
  if (w->type.rank != 2 || !lp_type_static_dim(w->type, 0, &rows) || !lp_type_static_dim(w->type, 1, &columns))
    return snprintf(why, 64, "its weight is not a matrix"), false;
  bool coded = lp_dtype_is_code(w->type.dtype) && lp_op_in(op, SCALE);
  if (!coded && (!lp_dtype_is_float(w->type.dtype) || lp_dtype_is_mini(w->type.dtype)))
    return snprintf(why, 64, "a weight of type %s", lp_dtype_name(w->type.dtype)), false;
  if (gate && (!lp_value_is_constant(gate) || !lp_type_equal(gate->type, w->type)))
    return snprintf(why, 64, "its gate is not a constant like its weight"), false;
  int64_t n = lp_op_bool(op, "transpose_b", false) ? rows : columns;
  if (bias && (!lp_value_is_constant(bias) || !lp_type_static_numel(bias->type, &length) || length != n))
    return snprintf(why, 64, "its bias is not a constant vector"), false;
  const lp_value *residual = op->kind == LP_OP_LINEAR ? lp_op_in(op, RESIDUAL) : NULL;
  if (residual && !lp_type_equal(residual->type, op->out[0]->type))
    return snprintf(why, 64, "its residual is not shaped like its result"), false;
  if (!find_epilogue(op)) return snprintf(why, 64, "epilogue '%s'", lp_op_str(op, "epilogue", "")), false;
  if (lp_op_in(op, X)->type.dtype != LP_F32 || op->out[0]->type.dtype != LP_F32)
    return snprintf(why, 64, "activations of type %s", lp_dtype_name(lp_op_in(op, X)->type.dtype)), false;
  return true;
}

static cpu_form linear_form(const lp_op *op, int32_t index) {
  static const cpu_form forms[] = {CPU_FORM_RAW, CPU_FORM_NONE, CPU_FORM_BIAS, CPU_FORM_F32};
  if (index == W) return cpu_linear_weight_form(op);
  return index < GATE ? forms[index] : CPU_FORM_NONE; /* a gate and all scales are part of the weight */
}

/* Rows of x: everything but its last axis. */
static const lp_poly *linear_rows(lp_module *module, const lp_op *op) {
  lp_type x = lp_op_in(op, X)->type;
  x.rank--;
  return lp_type_numel(module, x);
}

/* polynomial * factor + constant */
static const lp_poly *affine(lp_module *module, const lp_poly *poly, int64_t factor, int64_t constant) {
  return lp_poly_add(module->arena, lp_poly_scale(module->arena, poly, factor), lp_dim_const(module, constant));
}

static const lp_poly *linear_scratch(lp_module *module, const lp_op *op) {
  int64_t k;
  if (!lp_type_static_dim(lp_op_in(op, X)->type, -1, &k)) return NULL;
  const lp_poly *rows = linear_rows(module, op), *threads = lp_dim_symbol(module, "t");
  bool integer = cpu_linear_is_integer(op);
  int64_t rest = integer ? LPK_INTEGER_SCRATCH(0, k, 0) : LPK_LINEAR_SCRATCH(0, k, 0);
  int64_t row = (integer ? LPK_INTEGER_SCRATCH(1, k, 0) : LPK_LINEAR_SCRATCH(1, k, 0)) - rest;
  int64_t thread = (integer ? LPK_INTEGER_SCRATCH(0, k, 1) : LPK_LINEAR_SCRATCH(0, k, 1)) - rest;
  return lp_poly_add(module->arena, affine(module, rows, row, rest), lp_poly_scale(module->arena, threads, thread));
}

/* The lpk_groups of a weight or a table. */
LLVMValueRef cpu_groups(cpu_emitter *e, const cpu_constant *w) {
  bool grouped = w->form == CPU_FORM_GROUPS;
  return cpu_record(e, CPU_ARGS(cpu_i32(e, grouped ? w->bits : 0),
                                cpu_i32(e, grouped ? cpu_kernel_dtype(w->scale_dtype) : LPK_F32),
                                cpu_i32(e, grouped ? w->zeros : 0), cpu_i32(e, grouped ? w->super : 0),
                                cpu_i64(e, grouped ? w->group : 1)));
}

/* The dot product for the weight: those of tiles take no groups of 16 (lpk_groups). */
static int dot_of(const cpu_emitter *e, const cpu_constant *w) {
  const int dot = cpu_kernel_dot(e);
  if (!w->super || w->group >= LP_WEIGHT_GROUP) return dot;
  return dot == LPK_DOT_AMX ? LPK_DOT_VNNI512 : dot == LPK_DOT_I8MM ? LPK_DOT_SDOT : dot;
}

/* The lpk_linear_form of the operator, as a constant of the module. */
static LLVMValueRef linear_constants(cpu_emitter *e, const cpu_constant *w) {
  bool grouped = w->form == CPU_FORM_GROUPS;
  return cpu_constant_data(
      e, cpu_record(e, CPU_ARGS(cpu_i64(e, w->n), cpu_i64(e, w->k),
                                cpu_i32(e, grouped ? LPK_U8 : cpu_kernel_dtype(w->stored.dtype)),
                                cpu_i32(e, find_epilogue(e->op)->act), cpu_i32(e, w->gated),
                                cpu_i32(e, cpu_kernel_isa(e)), cpu_i32(e, dot_of(e, w)),
                                cpu_i32(e, w->stored.dtype == LP_BF16 ? cpu_kernel_pairs(e) : LPK_PAIRS_NONE),
                                cpu_groups(e, w))));
}

static void emit_linear(cpu_emitter *e) {
  const cpu_constant *w = e->call->constant[W];
  LLVMValueRef bias = e->in[BIAS] ? e->in[BIAS] : cpu_null(e);
  LLVMValueRef residual = e->in[RESIDUAL] ? e->in[RESIDUAL] : cpu_null(e);
  cpu_kernel(e, cpu_linear_is_integer(e->op) ? "lpk_linear_integer" : "lpk_linear",
             CPU_ARGS(e->out[0], e->in[X], e->in[W], bias, residual, cpu_poly(e, linear_rows(e->module, e->op)),
                      cpu_i64(e, w->k), cpu_i64(e, w->n), linear_constants(e, w), e->scratch, cpu_barrier(e), e->thread,
                      e->threads));
}

/* The rows on which the use of scratch depends: integer products of any number of rows use it. */
static const lp_poly *scratch_rows(lp_module *module, const lp_op *op) {
  return cpu_linear_is_integer(op) ? NULL : linear_rows(module, op);
}

const cpu_rule cpu_rule_linear = {
    .kind = LP_OP_LINEAR,
    .runs = linear_runs,
    .form = linear_form,
    .scratch = linear_scratch,
    .emit = emit_linear,
    .scratch_rows = scratch_rows,
    .reads_packed = true,
};

/* ---- products with experts --------------------------------------------------------------------------------------- */

static cpu_form experts_form(const lp_op *op, int32_t index) {
  return index == INDEX ? CPU_FORM_RAW : linear_form(op, index);
}

/* The rows of the result. */
static const lp_poly *experts_rows(lp_module *module, const lp_op *op) {
  return lp_type_numel(module, lp_op_in(op, INDEX)->type);
}

static const lp_poly *experts_scratch(lp_module *module, const lp_op *op) {
  int64_t k;
  if (!lp_type_static_dim(lp_op_in(op, X)->type, -1, &k)) return NULL;
  int64_t product = cpu_linear_is_integer(op) ? LPK_INTEGER_SCRATCH(LPK_MC, k, 1) : LPK_LINEAR_SCRATCH(LPK_MC, k, 1);
  int64_t fixed = LPK_EXPERTS_THREAD_BYTES(product, k) + LPK_EXPERTS_ORDER_BYTES(0, lp_op_i64(op, "experts", 1));
  const lp_poly *thread = affine(module, experts_rows(module, op), LPK_EXPERTS_ORDER_BYTES(1, 0), fixed);
  return lp_poly_mul(module->arena, thread, lp_dim_symbol(module, "t"));
}

static void emit_experts(cpu_emitter *e) {
  const cpu_constant *w = e->call->constant[W];
  const lp_type x = lp_op_in(e->op, X)->type, index = lp_op_in(e->op, INDEX)->type;
  bool shared = !lp_poly_equal(x.dim[x.rank - 2], index.dim[index.rank - 1]);
  cpu_kernel(e, cpu_linear_is_integer(e->op) ? "lpk_experts_integer" : "lpk_experts",
             CPU_ARGS(e->out[0], e->in[X], e->in[W], e->in[BIAS] ? e->in[BIAS] : cpu_null(e), e->in[INDEX],
                      cpu_poly(e, experts_rows(e->module, e->op)), cpu_i64(e, w->experts),
                      shared ? cpu_poly(e, index.dim[index.rank - 1]) : cpu_i64(e, 1), linear_constants(e, w),
                      e->scratch, e->thread, e->threads));
}

const cpu_rule cpu_rule_experts = {
    .kind = LP_OP_EXPERTS,
    .runs = linear_runs,
    .form = experts_form,
    .scratch = experts_scratch,
    .emit = emit_experts,
    .reads_packed = true,
};

/* ---- product of two activations ---------------------------------------------------------------------------------- */

enum { MATRIX_BATCH = 6 }; /* batch strides in lpk_matrix */

/* Tells whether all values are of one type, for which there is a kernel of plain loops. */
static bool is_plain_product(const lp_op *op) {
  lp_dtype dtype = op->out[0]->type.dtype;
  bool has = dtype == LP_F64 || dtype == LP_I32 || dtype == LP_I64 || dtype == LP_U32 || dtype == LP_U64;
  return has && lp_op_in(op, 0)->type.dtype == dtype && lp_op_in(op, 1)->type.dtype == dtype;
}

static bool matmul_runs(const lp_op *op, char why[64]) {
  if (!is_plain_product(op) && !lp_op_all_f32(op, why)) return false;
  if (op->out[0]->type.rank > MATRIX_BATCH + 2) return snprintf(why, 64, "more than 6 batch axes"), false;
  if (lp_op_in(op, 0)->type.rank < 2 || lp_op_in(op, 1)->type.rank < 2)
    return snprintf(why, 64, "an operand that is not a matrix"), false;
  return true;
}

static const lp_poly *matmul_scratch(lp_module *module, const lp_op *op) {
  if (is_plain_product(op)) return NULL;
  return lp_poly_scale(module->arena, lp_dim_symbol(module, "t"), LPK_MATMUL_SCRATCH(1));
}

/* An lpk_matrix on the stack: strides of row, column and the result's batch axes. */
static LLVMValueRef matrix(cpu_emitter *e, const lp_value *value, bool transpose, const lp_type result) {
  LLVMValueRef own[LP_MAX_RANK], strides[2 + MATRIX_BATCH];
  const lp_type type = value->type;
  cpu_strides(e, value, own);
  strides[0] = own[type.rank - (transpose ? 1 : 2)];
  strides[1] = own[type.rank - (transpose ? 2 : 1)];
  int32_t batch = result.rank - 2, missing = result.rank - type.rank;
  for (int32_t i = 0; i < MATRIX_BATCH; i++) {
    int64_t extent;
    bool broadcast = i >= batch || i < missing || (lp_type_static_dim(type, i - missing, &extent) && extent == 1);
    strides[2 + i] = broadcast ? cpu_i64(e, 0) : own[i - missing];
  }
  return cpu_array(e, strides, 2 + MATRIX_BATCH);
}

static void emit_matmul(cpu_emitter *e) {
  const lp_type y = e->op->out[0]->type, a = lp_op_in(e->op, 0)->type;
  const bool ta = lp_op_bool(e->op, "transpose_a", false), tb = lp_op_bool(e->op, "transpose_b", false);
  LLVMValueRef dims[MATRIX_BATCH];
  for (int32_t i = 0; i < y.rank - 2; i++)
    dims[i] = cpu_poly(e, y.dim[i]);
  LLVMValueRef args[16] = {e->out[0],
                           e->in[0],
                           e->in[1],
                           cpu_array(e, dims, y.rank - 2),
                           matrix(e, e->op->out[0], false, y),
                           matrix(e, lp_op_in(e->op, 0), ta, y),
                           matrix(e, lp_op_in(e->op, 1), tb, y),
                           cpu_poly(e, y.dim[y.rank - 2]),
                           cpu_poly(e, y.dim[y.rank - 1]),
                           cpu_poly(e, a.dim[a.rank - (ta ? 2 : 1)]),
                           cpu_i32(e, y.rank - 2)};
  bool plain = is_plain_product(e->op);
  unsigned count = 11;
  if (plain) {
    bool narrow = cpu_dtype_bytes(y.dtype) == 4;
    args[count++] = cpu_i32(e, y.dtype == LP_F64 ? LPK_F64 : narrow ? LPK_I32 : LPK_I64);
  } else {
    args[count++] = cpu_f32(e, 1.0);
    args[count++] = cpu_i32(e, cpu_kernel_isa(e));
    args[count++] = e->scratch;
  }
  args[count++] = e->thread;
  args[count++] = e->threads;
  cpu_kernel(e, plain ? "lpk_matmul_plain" : "lpk_matmul", args, count);
}

static cpu_form matmul_form(const lp_op *op, int32_t index) {
  (void)index;
  return is_plain_product(op) ? CPU_FORM_RAW : CPU_FORM_F32;
}

const cpu_rule cpu_rule_matmul = {
    .kind = LP_OP_MATMUL,
    .runs = matmul_runs,
    .form = matmul_form,
    .scratch = matmul_scratch,
    .emit = emit_matmul,
    .reads_cache = true,
};
