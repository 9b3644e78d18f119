/* Operators that move data: gathers, concatenation, slices, transposes, broadcasts, padding. */
#include "backend/cpu/scalar/scalar.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/operands.h"
#include "backend/values.h"
#include "base/number.h"

#include <llvm-c/Core.h>

static int32_t axis_of(const lp_op *op) {
  int64_t axis = lp_op_i64(op, "axis", 0);
  return (int32_t)(axis < 0 ? axis + lp_op_in(op, 0)->type.rank : axis);
}

static bool same_dtype(const lp_op *op, char why[64]) {
  const lp_dtype x = lp_op_in(op, 0)->type.dtype, y = op->out[0]->type.dtype;
  if (x == y) return true;
  return snprintf(why, 64, "%s from %s", lp_dtype_name(y), lp_dtype_name(x)), false;
}

/* Copies an array of the shape of `type`, both sides strided; addresses point at the first element. */
static void copy(cpu_emitter *e, LLVMValueRef y, LLVMValueRef x, lp_type type, const LLVMValueRef *ys,
                 const LLVMValueRef *xs) {
  cpu_kernel(e, "lpk_copy",
             CPU_ARGS(y, x, cpu_sizes(e, type), cpu_array(e, ys, type.rank), cpu_array(e, xs, type.rank),
                      cpu_i32(e, type.rank), cpu_i32(e, cpu_dtype_bytes(type.dtype)), e->thread, e->threads));
}

/* `base` plus `elements` elements of `dtype`. */
static LLVMValueRef advance(cpu_emitter *e, LLVMValueRef base, LLVMValueRef elements, lp_dtype dtype) {
  return cpu_offset_bytes(e, base, LLVMBuildNSWMul(e->b, elements, cpu_i64(e, cpu_dtype_bytes(dtype)), ""));
}

/* ---- gather ------------------------------------------------------------------------------------------------------ */

static bool is_index(lp_dtype dtype) {
  return dtype == LP_I64 || dtype == LP_I32;
}

/* Gathers rows of a constant table, which keeps its dtype; the kernel converts the rows that it copies. */
static bool is_embedding(const lp_op *op) {
  const lp_value *table = lp_op_in(op, 0);
  int64_t width;
  const lp_dtype dtype = table->type.dtype;
  return axis_of(op) == 0 && table->type.rank == 2 && lp_type_static_dim(table->type, 1, &width) &&
         (dtype == LP_F32 || dtype == LP_F16 || dtype == LP_BF16) && op->out[0]->type.dtype == LP_F32;
}

/* The number of bits that one index selects; 0 when it is not known. */
static int64_t row_bits(const lp_op *op) {
  const lp_type x = lp_op_in(op, 0)->type;
  int64_t bits = lp_dtype_bits(x.dtype), extent;
  for (int32_t i = axis_of(op) + 1; i < x.rank; i++)
    if (!lp_type_static_dim(x, i, &extent) || !lp_i64_mul(bits, extent, &bits)) return 0;
  return bits;
}

static bool gather_runs(const lp_op *op, char why[64]) {
  const lp_dtype index = lp_op_in(op, 1)->type.dtype, dtype = lp_op_in(op, 0)->type.dtype;
  if (lp_dtype_bits(dtype) < 8 && (row_bits(op) == 0 || row_bits(op) % 8 != 0))
    return snprintf(why, 64, "rows of %s that are not whole bytes", lp_dtype_name(dtype)), false;
  if (!is_index(index)) return snprintf(why, 64, "an index of type %s", lp_dtype_name(index)), false;
  if (lp_value_cache(lp_op_in(op, 0)) && axis_of(op) != lp_op_in(op, 0)->type.rank - 2)
    return snprintf(why, 64, "it reads a KV cache along another axis than its rows"), false;
  return is_embedding(op) || same_dtype(op, why);
}

static void emit_embedding(cpu_emitter *e) {
  const lp_type table = lp_op_in(e->op, 0)->type, index = lp_op_in(e->op, 1)->type;
  cpu_kernel(e, "lpk_embed",
             CPU_ARGS(e->out[0], e->in[0], e->in[1], cpu_poly_product(e, index.dim, 0, index.rank),
                      cpu_poly(e, table.dim[0]), cpu_poly(e, table.dim[1]), cpu_i32(e, cpu_kernel_dtype(table.dtype)),
                      cpu_i32(e, cpu_kernel_dtype(index.dtype)), e->thread, e->threads));
}

/* The row of the table that index[i] selects. Negative indices count from the end, and indices out of range are
 * clamped, as in the kernels. */
static LLVMValueRef row_at(cpu_emitter *e, LLVMValueRef i) {
  const lp_dtype dtype = lp_op_in(e->op, 1)->type.dtype;
  LLVMValueRef rows = cpu_poly(e, lp_op_in(e->op, 0)->type.dim[0]);
  cpu_scalar loaded = cpu_scalar_load(e, advance(e, e->in[1], i, dtype), dtype);
  LLVMValueRef row = cpu_scalar_convert(e, loaded, LP_I64).value;
  LLVMValueRef negative = LLVMBuildICmp(e->b, LLVMIntSLT, row, cpu_i64(e, 0), "");
  row = LLVMBuildSelect(e->b, negative, LLVMBuildNSWAdd(e->b, row, rows, ""), row, "");
  LLVMValueRef low[] = {row, cpu_i64(e, 0)};
  LLVMValueRef high[] = {cpu_intrinsic(e, "llvm.smax", e->gen->types.i64, low, 2),
                         LLVMBuildNSWSub(e->b, rows, cpu_i64(e, 1), "")};
  return cpu_intrinsic(e, "llvm.smin", e->gen->types.i64, high, 2);
}

/* The table is packed for a linear: element j of row r lies at [r / 32][j][r % 32]. Threads share the elements. */
static void emit_panel_embedding(cpu_emitter *e) {
  const lp_type index = lp_op_in(e->op, 1)->type;
  const lp_dtype dtype = e->call->constant[0]->stored.dtype;
  LLVMValueRef width = cpu_i64(e, e->call->constant[0]->k), panel = cpu_i64(e, LPK_PANEL), from, to;
  cpu_share(e, LLVMBuildNSWMul(e->b, cpu_poly_product(e, index.dim, 0, index.rank), width, ""), &from, &to);
  cpu_loop loop = cpu_loop_begin(e, from, to, cpu_i64(e, 1));
  LLVMValueRef token = LLVMBuildUDiv(e->b, loop.index, width, ""), column = LLVMBuildURem(e->b, loop.index, width, "");
  LLVMValueRef row = row_at(e, token);
  LLVMValueRef line = LLVMBuildNSWMul(e->b, LLVMBuildUDiv(e->b, row, panel, ""), width, "");
  LLVMValueRef at = LLVMBuildNSWMul(e->b, LLVMBuildNSWAdd(e->b, line, column, ""), panel, "");
  at = LLVMBuildNSWAdd(e->b, at, LLVMBuildURem(e->b, row, panel, ""), "");
  cpu_scalar_store(e, advance(e, e->out[0], loop.index, LP_F32),
                   cpu_scalar_load(e, advance(e, e->in[0], at, dtype), dtype), LP_F32);
  cpu_loop_end(e, &loop);
}

/* The table is in groups, as the weight of a linear: row i is column i. */
static void emit_group_embedding(cpu_emitter *e) {
  const cpu_constant *table = e->call->constant[0];
  const lp_type index = lp_op_in(e->op, 1)->type;
  cpu_kernel(e, "lpk_embed_groups",
             CPU_ARGS(e->out[0], e->in[0], e->in[1], cpu_poly_product(e, index.dim, 0, index.rank),
                      cpu_i64(e, table->n), cpu_i64(e, table->k), cpu_constant_data(e, cpu_groups(e, table)),
                      cpu_i32(e, cpu_kernel_dtype(index.dtype)), e->thread, e->threads));
}

static cpu_form gather_form(const lp_op *op, int32_t index) {
  if (index != 0 || !is_embedding(op)) return CPU_FORM_RAW;
  lp_storage asked;
  if (!lp_storage_find(lp_op_str(op, "weight_dtype", NULL), &asked)) return CPU_FORM_TABLE;
  return lp_dtype_is_float(asked.dtype) ? CPU_FORM_PANELS : CPU_FORM_GROUPS;
}

static void emit_gather(cpu_emitter *e) {
  if (e->call->constant[0] && e->call->constant[0]->form == CPU_FORM_PANELS) {
    emit_panel_embedding(e);
    return;
  }
  if (e->call->constant[0] && e->call->constant[0]->form == CPU_FORM_GROUPS) {
    emit_group_embedding(e);
    return;
  }
  if (is_embedding(e->op)) {
    emit_embedding(e);
    return;
  }
  const lp_type x = lp_op_in(e->op, 0)->type, index = lp_op_in(e->op, 1)->type;
  const int32_t axis = axis_of(e->op);
  const lp_op *cache = lp_value_cache(lp_op_in(e->op, 0));
  const lp_poly *rows = cache ? lp_cache_rows(e->module, cache) : x.dim[axis];
  LLVMValueRef inner = cpu_poly_product(e, x.dim, axis + 1, x.rank);
  LLVMValueRef bytes = lp_dtype_bits(x.dtype) < 8
                           ? cpu_i64(e, row_bits(e->op) / 8)
                           : LLVMBuildNSWMul(e->b, inner, cpu_i64(e, cpu_dtype_bytes(x.dtype)), "");
  cpu_kernel(e, "lpk_gather",
             CPU_ARGS(e->out[0], e->in[0], e->in[1], cpu_poly_product(e, x.dim, 0, axis), cpu_poly(e, x.dim[axis]),
                      cpu_poly(e, rows), bytes, cpu_poly_product(e, index.dim, 0, index.rank),
                      cpu_i32(e, cpu_kernel_dtype(index.dtype)), e->thread, e->threads));
}

const cpu_rule cpu_rule_gather = {
    .kind = LP_OP_GATHER,
    .runs = gather_runs,
    .form = gather_form,
    .emit = emit_gather,
    .reads_packed = true,
    .reads_cache = true,
};

static bool gather_elements_runs(const lp_op *op, char why[64]) {
  const lp_dtype index = lp_op_in(op, 1)->type.dtype;
  if (!is_index(index)) return snprintf(why, 64, "an index of type %s", lp_dtype_name(index)), false;
  return same_dtype(op, why);
}

static void emit_gather_elements(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, 0)->type, index = lp_op_in(e->op, 1)->type;
  cpu_kernel(e, "lpk_gather_elements",
             CPU_ARGS(e->out[0], e->in[0], e->in[1], cpu_sizes(e, index), cpu_sizes(e, x), cpu_i32(e, x.rank),
                      cpu_i32(e, axis_of(e->op)), cpu_i32(e, cpu_dtype_bytes(x.dtype)),
                      cpu_i32(e, cpu_kernel_dtype(index.dtype)), e->thread, e->threads));
}

const cpu_rule cpu_rule_gather_elements = {
    .kind = LP_OP_GATHER_ELEMENTS,
    .runs = gather_elements_runs,
    .form = cpu_form_raw,
    .emit = emit_gather_elements,
};

/* ---- strided copies ---------------------------------------------------------------------------------------------- */

static void emit_concat(cpu_emitter *e) {
  const lp_type y = e->op->out[0]->type;
  const int32_t axis = axis_of(e->op);
  LLVMValueRef ys[LP_MAX_RANK], xs[LP_MAX_RANK], at = cpu_i64(e, 0);
  cpu_strides(e, e->op->out[0], ys);
  for (int32_t i = 0; i < e->op->in_count; i++) {
    const lp_value *x = lp_op_in(e->op, i);
    cpu_strides(e, x, xs);
    LLVMValueRef to = advance(e, e->out[0], LLVMBuildNSWMul(e->b, at, ys[axis], ""), y.dtype);
    copy(e, to, e->in[i], x->type, ys, xs);
    at = LLVMBuildNSWAdd(e->b, at, cpu_poly(e, x->type.dim[axis]), "");
  }
}

static void emit_slice(cpu_emitter *e) {
  const lp_value *x = lp_op_in(e->op, 0);
  const lp_attr *starts = lp_op_attr(e->op, "starts"), *steps = lp_op_attr(e->op, "steps");
  LLVMValueRef ys[LP_MAX_RANK], xs[LP_MAX_RANK], at = cpu_i64(e, 0);
  cpu_strides(e, e->op->out[0], ys);
  cpu_strides(e, x, xs);
  for (int32_t i = 0; i < x->type.rank; i++) {
    at = LLVMBuildNSWAdd(e->b, at, LLVMBuildNSWMul(e->b, cpu_poly(e, starts->polys[i]), xs[i], ""), "");
    xs[i] = LLVMBuildNSWMul(e->b, xs[i], cpu_i64(e, steps->is[i]), "");
  }
  copy(e, e->out[0], advance(e, e->in[0], at, x->type.dtype), e->op->out[0]->type, ys, xs);
}

static void emit_transpose(cpu_emitter *e) {
  const lp_value *x = lp_op_in(e->op, 0);
  const lp_attr *perm = lp_op_attr(e->op, "perm");
  LLVMValueRef ys[LP_MAX_RANK], own[LP_MAX_RANK], xs[LP_MAX_RANK];
  cpu_strides(e, e->op->out[0], ys);
  cpu_strides(e, x, own);
  for (int32_t i = 0; i < x->type.rank; i++)
    xs[i] = own[perm->is[i]];
  copy(e, e->out[0], e->in[0], e->op->out[0]->type, ys, xs);
}

static void emit_expand(cpu_emitter *e) {
  const lp_value *x = lp_op_in(e->op, 0);
  const lp_type y = e->op->out[0]->type;
  LLVMValueRef ys[LP_MAX_RANK], own[LP_MAX_RANK], xs[LP_MAX_RANK];
  cpu_strides(e, e->op->out[0], ys);
  cpu_strides(e, x, own);
  for (int32_t i = 0; i < y.rank; i++) {
    int32_t axis = i - (y.rank - x->type.rank);
    int64_t extent;
    bool broadcast = axis < 0 || (lp_type_static_dim(x->type, axis, &extent) && extent == 1);
    xs[i] = broadcast ? cpu_i64(e, 0) : own[axis];
  }
  copy(e, e->out[0], e->in[0], y, ys, xs);
}

/* A strided copy in which a kernel axis and a window axis both step along the same axis of x. */
static void emit_windows(cpu_emitter *e) {
  const lp_value *x = lp_op_in(e->op, 0);
  const lp_attr *steps = lp_op_attr(e->op, "steps"), *dilations = lp_op_attr(e->op, "dilations");
  const int32_t n = steps->count, lead = x->type.rank - n;
  LLVMValueRef ys[LP_MAX_RANK], own[LP_MAX_RANK], xs[LP_MAX_RANK];
  cpu_strides(e, e->op->out[0], ys);
  cpu_strides(e, x, own);
  for (int32_t i = 0; i < lead; i++)
    xs[i] = own[i];
  for (int32_t i = 0; i < n; i++) {
    xs[lead + i] = LLVMBuildNSWMul(e->b, own[lead + i], cpu_i64(e, dilations->is[i]), "");
    xs[lead + n + i] = LLVMBuildNSWMul(e->b, own[lead + i], cpu_i64(e, steps->is[i]), "");
  }
  copy(e, e->out[0], e->in[0], e->op->out[0]->type, ys, xs);
}

static bool slice_runs(const lp_op *op, char why[64]) {
  const lp_attr *starts = lp_op_attr(op, "starts"), *steps = lp_op_attr(op, "steps");
  int32_t rank = lp_op_in(op, 0)->type.rank;
  if (!starts || !steps || starts->count != rank || steps->count != rank)
    return snprintf(why, 64, "starts and steps that are not one per axis"), false;
  return same_dtype(op, why);
}

static bool transpose_runs(const lp_op *op, char why[64]) {
  const lp_attr *perm = lp_op_attr(op, "perm");
  if (!perm || perm->count != lp_op_in(op, 0)->type.rank) return snprintf(why, 64, "no permutation"), false;
  return same_dtype(op, why);
}

static bool concat_runs(const lp_op *op, char why[64]) {
  for (int32_t i = 0; i < op->in_count; i++)
    if (lp_op_in(op, i)->type.dtype != op->out[0]->type.dtype)
      return snprintf(why, 64, "parts of different types"), false;
  return true;
}

static void emit_nothing(cpu_emitter *e) {
  (void)e;
}

const cpu_rule cpu_rule_concat = {
    .kind = LP_OP_CONCAT,
    .runs = concat_runs,
    .form = cpu_form_raw,
    .emit = emit_concat,
    .reads_cache = true,
};
const cpu_rule cpu_rule_slice = {
    .kind = LP_OP_SLICE,
    .runs = slice_runs,
    .form = cpu_form_raw,
    .emit = emit_slice,
    .reads_cache = true,
};
const cpu_rule cpu_rule_transpose = {
    .kind = LP_OP_TRANSPOSE,
    .runs = transpose_runs,
    .form = cpu_form_raw,
    .emit = emit_transpose,
    .reads_cache = true,
};
const cpu_rule cpu_rule_expand = {
    .kind = LP_OP_EXPAND,
    .runs = same_dtype,
    .form = cpu_form_raw,
    .emit = emit_expand,
    .reads_cache = true,
};
const cpu_rule cpu_rule_windows = {
    .kind = LP_OP_WINDOWS,
    .runs = same_dtype,
    .form = cpu_form_raw,
    .emit = emit_windows,
};
const cpu_rule cpu_rule_reshape = {
    .kind = LP_OP_RESHAPE,
    .runs = same_dtype,
    .form = cpu_form_raw,
    .emit = emit_nothing,
};

/* ---- results without operands ------------------------------------------------------------------------------------ */

/* The element `value` in its storage form. */
static uint64_t element_bits(lp_dtype dtype, double value) {
  float f = (float)value;
  uint32_t bits;
  uint64_t wide;
  memcpy(&bits, &f, sizeof bits);
  memcpy(&wide, &value, sizeof wide);
  switch (dtype) {
  case LP_F32:
    return bits;
  case LP_F64:
    return wide;
  case LP_F16:
    return lp_f32_to_f16(f);
  case LP_BF16:
    return lp_f32_to_bf16(f);
  case LP_U64:
    return value >= 0x1p63 ? (uint64_t)value : (uint64_t)(int64_t)value;
  default:
    return (uint64_t)(int64_t)value;
  }
}

static void fill(cpu_emitter *e, LLVMValueRef y, lp_type type, double value) {
  cpu_kernel(e, "lpk_fill",
             CPU_ARGS(y, cpu_poly_product(e, type.dim, 0, type.rank),
                      cpu_i64(e, (int64_t)element_bits(type.dtype, value)), cpu_i32(e, cpu_dtype_bytes(type.dtype)),
                      e->thread, e->threads));
}

static void emit_fill(cpu_emitter *e) {
  fill(e, e->out[0], e->op->out[0]->type, lp_op_f64(e->op, "value", 0.0));
}

const cpu_rule cpu_rule_fill = {.kind = LP_OP_FILL, .emit = emit_fill};

static bool pad_runs(const lp_op *op, char why[64]) {
  const lp_attr *before = lp_op_attr(op, "before");
  if (!before || before->count != lp_op_in(op, 0)->type.rank)
    return snprintf(why, 64, "`before` without one entry per axis"), false;
  for (int32_t i = 0; i < before->count; i++)
    for (int32_t t = 0; t < before->polys[i]->count; t++)
      if (before->polys[i]->term[t].coef < 0) return snprintf(why, 64, "padding that may be negative"), false;
  return same_dtype(op, why);
}

static void emit_pad(cpu_emitter *e) {
  const lp_value *x = lp_op_in(e->op, 0);
  const lp_attr *before = lp_op_attr(e->op, "before");
  LLVMValueRef ys[LP_MAX_RANK], xs[LP_MAX_RANK], at = cpu_i64(e, 0);
  fill(e, e->out[0], e->op->out[0]->type, lp_op_f64(e->op, "value", 0.0));
  cpu_wait(e);
  cpu_strides(e, e->op->out[0], ys);
  cpu_strides(e, x, xs);
  for (int32_t i = 0; i < x->type.rank; i++)
    at = LLVMBuildNSWAdd(e->b, at, LLVMBuildNSWMul(e->b, cpu_poly(e, before->polys[i]), ys[i], ""), "");
  copy(e, advance(e, e->out[0], at, x->type.dtype), e->in[0], x->type, ys, xs);
}

const cpu_rule cpu_rule_pad = {
    .kind = LP_OP_PAD,
    .runs = pad_runs,
    .form = cpu_form_raw,
    .emit = emit_pad,
    .reads_cache = true,
};

static bool iota_runs(const lp_op *op, char why[64]) {
  const lp_dtype dtype = op->out[0]->type.dtype;
  if (dtype == LP_BOOL) return snprintf(why, 64, "elements of type bool"), false;
  return true;
}

/* y[i] = start + i * step, computed in i64. */
static void emit_iota(cpu_emitter *e) {
  const lp_type type = e->op->out[0]->type;
  LLVMValueRef from, to;
  LLVMValueRef start = cpu_poly(e, lp_op_poly(e->op, "start")), step = cpu_poly(e, lp_op_poly(e->op, "step"));
  cpu_share(e, cpu_poly_product(e, type.dim, 0, type.rank), &from, &to);
  cpu_loop loop = cpu_loop_begin(e, from, to, cpu_i64(e, 1));
  cpu_scalar scalar = {LLVMBuildAdd(e->b, start, LLVMBuildMul(e->b, loop.index, step, ""), ""), LP_I64};
  cpu_scalar_store(e, advance(e, e->out[0], loop.index, type.dtype), scalar, type.dtype);
  cpu_loop_end(e, &loop);
}

const cpu_rule cpu_rule_iota = {.kind = LP_OP_IOTA, .runs = iota_runs, .emit = emit_iota};

static bool dims_runs(const lp_op *op, char why[64]) {
  const lp_attr *values = lp_op_attr(op, "values");
  int64_t numel;
  if (!values || !lp_type_static_numel(op->out[0]->type, &numel) || numel != values->count)
    return snprintf(why, 64, "values that do not fill its shape"), false;
  return true;
}

/* Every thread writes the same few values. */
static void emit_dims(cpu_emitter *e) {
  const lp_attr *values = lp_op_attr(e->op, "values");
  const lp_dtype dtype = e->op->out[0]->type.dtype;
  for (int32_t i = 0; i < values->count; i++) {
    cpu_scalar scalar = {cpu_poly(e, values->polys[i]), LP_I64};
    cpu_scalar_store(e, advance(e, e->out[0], cpu_i64(e, i), dtype), scalar, dtype);
  }
}

const cpu_rule cpu_rule_dims = {.kind = LP_OP_DIMS, .runs = dims_runs, .emit = emit_dims};
