/* op.attention, op.kv_append, op.rotary. */
#include "backend/cpu/codegen/build.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/operands.h"
#include "backend/values.h"
#include "base/poly.h"

#include <assert.h>
#include <llvm-c/Core.h>

enum { Q, K, V, MASK, SINKS };

static bool is_bshd(const lp_op *op) {
  return lp_streq(lp_op_str(op, "layout", "bshd"), "bshd");
}

/* The token axis of a tensor with `layout`: [b, s, h, d], [b, s, h * d] or [b, h, s, d]. */
static const lp_poly *tokens(const lp_op *op, lp_type type) {
  return type.dim[is_bshd(op) ? 1 : 2];
}

/* Strides of batch, token and head. */
static LLVMValueRef bsh_strides(cpu_emitter *e, lp_type type, int64_t heads, int64_t d) {
  LLVMValueRef s = cpu_poly(e, tokens(e->op, type));
  LLVMValueRef batch = LLVMBuildNSWMul(e->b, s, cpu_i64(e, heads * d), "");
  LLVMValueRef bshd[] = {batch, cpu_i64(e, heads * d), cpu_i64(e, d)};
  LLVMValueRef bhsd[] = {batch, cpu_i64(e, d), LLVMBuildNSWMul(e->b, s, cpu_i64(e, d), "")};
  return cpu_array(e, is_bshd(e->op) ? bshd : bhsd, 3);
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static bool is_cache_dtype(lp_dtype dtype) {
  return dtype == LP_F32 || dtype == LP_F16 || dtype == LP_BF16 || lp_cache_is_coded(dtype);
}

static bool attention_runs(const lp_op *op, char why[64]) {
  const lp_value *mask = lp_op_in(op, MASK), *k = lp_op_in(op, K);
  int64_t d, heads = lp_op_i64(op, "heads", 0), kv_heads = lp_op_i64(op, "kv_heads", 0);
  if (lp_op_in(op, Q)->type.dtype != LP_F32)
    return snprintf(why, 64, "q of type %s", lp_dtype_name(lp_op_in(op, Q)->type.dtype)), false;
  if (!is_cache_dtype(k->type.dtype) || lp_op_in(op, V)->type.dtype != k->type.dtype)
    return snprintf(why, 64, "k, v of types %s, %s", lp_dtype_name(k->type.dtype),
                    lp_dtype_name(lp_op_in(op, V)->type.dtype)),
           false;
  if (mask && mask->type.dtype != LP_F32 && mask->type.dtype != LP_BOOL &&
      !(lp_value_is_constant(mask) && lp_dtype_is_float(mask->type.dtype)))
    return snprintf(why, 64, "a mask of type %s", lp_dtype_name(mask->type.dtype)), false;
  if (mask && mask->type.rank > 4) return snprintf(why, 64, "a mask of rank over 4"), false;
  if (k->type.rank != 4 || lp_op_in(op, V)->type.rank != 4)
    return snprintf(why, 64, "k and v that are not [b, heads, tokens, d]"), false;
  if (!lp_type_static_dim(lp_op_in(op, V)->type, 3, &d))
    return snprintf(why, 64, "a head size that is not constant"), false;
  if (kv_heads <= 0 || heads % kv_heads != 0)
    return snprintf(why, 64, "heads that are not a multiple of kv_heads"), false;
  if (!lp_op_bool(op, "causal", false) && lp_op_i64(op, "window", 0) > 0)
    return snprintf(why, 64, "a window without causal"), false;
  return true;
}

static bool has_bool_mask(const lp_op *op) {
  const lp_value *mask = lp_op_in(op, MASK);
  return mask && mask->type.dtype == LP_BOOL;
}

/* A mask of bool becomes an additive mask, which takes the first part of scratch; the kernel has the rest. */
static const lp_poly *mask_bytes(lp_module *module, const lp_op *op) {
  if (!has_bool_mask(op)) return lp_dim_const(module, 0);
  return lp_poly_add(module->arena, lp_poly_scale(module->arena, lp_type_numel(module, lp_op_in(op, MASK)->type), 4),
                     lp_dim_const(module, 64));
}

static int64_t value_dim(const lp_op *op) {
  int64_t dv = 0;
  bool known = lp_type_static_dim(lp_op_in(op, V)->type, 3, &dv);
  assert(known);
  (void)known;
  return lp_cache_width(lp_op_in(op, V)->type.dtype, dv);
}

static const lp_poly *attention_scratch(lp_module *module, const lp_op *op) {
  int64_t d = lp_op_i64(op, "head_dim", 0), dv = value_dim(op), least = LPK_ATTENTION_SCRATCH(d, dv, 0, 1);
  const lp_poly *keys = lp_poly_scale(module->arena, lp_op_in(op, K)->type.dim[2], LPK_ATTENTION_KEY_BYTES(dv));
  const lp_poly *thread = lp_poly_add(module->arena, keys, lp_dim_const(module, least));
  return lp_poly_add(module->arena, mask_bytes(module, op),
                     lp_poly_mul(module->arena, lp_dim_symbol(module, "t"), thread));
}

static cpu_form attention_form(const lp_op *op, int32_t index) {
  return index == MASK && has_bool_mask(op) ? CPU_FORM_RAW : CPU_FORM_F32;
}

/* Emits scratch[i] = mask[i] ? 0 : -infinity. The threads share the elements and wait for each other. Returns the
 * address of the rest of scratch. */
static LLVMValueRef convert_mask(cpu_emitter *e, LLVMValueRef *mask) {
  const cpu_types *t = &e->gen->types;
  LLVMValueRef count = cpu_poly(e, lp_type_numel(e->module, lp_op_in(e->op, MASK)->type)), from, to;
  cpu_share(e, count, &from, &to);
  cpu_loop loop = cpu_loop_begin(e, from, to, cpu_i64(e, 1));
  LLVMValueRef at = LLVMBuildInBoundsGEP2(e->b, t->i8, e->in[MASK], &loop.index, 1, "");
  LLVMValueRef on = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildLoad2(e->b, t->i8, at, ""), LLVMConstNull(t->i8), "");
  LLVMValueRef minus = LLVMConstReal(t->f32, -__builtin_inf());
  LLVMValueRef value = LLVMBuildSelect(e->b, on, LLVMConstNull(t->f32), minus, "");
  LLVMBuildStore(e->b, value, LLVMBuildInBoundsGEP2(e->b, t->f32, e->scratch, &loop.index, 1, ""));
  cpu_loop_end(e, &loop);
  cpu_wait(e);
  *mask = e->scratch;
  LLVMValueRef bytes = LLVMBuildNSWAdd(e->b, LLVMBuildNSWMul(e->b, count, cpu_i64(e, 4), ""), cpu_i64(e, 63), "");
  return cpu_offset_bytes(e, e->scratch, LLVMBuildAnd(e->b, bytes, cpu_i64(e, -64), ""));
}

/* Strides of batch, head, query and key, 0 where the mask is broadcast. */
static LLVMValueRef mask_strides(cpu_emitter *e) {
  const lp_value *mask = lp_op_in(e->op, MASK);
  LLVMValueRef own[LP_MAX_RANK], strides[4];
  if (mask) cpu_strides(e, mask, own);
  for (int32_t i = 0; i < 4; i++) {
    int32_t axis = mask ? i - (4 - mask->type.rank) : -1;
    int64_t extent;
    bool broadcast = axis < 0 || (lp_type_static_dim(mask->type, axis, &extent) && extent == 1);
    strides[i] = broadcast ? cpu_i64(e, 0) : own[axis];
  }
  return cpu_array(e, strides, 4);
}

static void emit_attention(cpu_emitter *e) {
  const lp_op *op = e->op;
  const lp_type q = lp_op_in(op, Q)->type, k = lp_op_in(op, K)->type;
  const int64_t heads = lp_op_i64(op, "heads", 0), d = lp_op_i64(op, "head_dim", 0), dv = value_dim(op);
  const lp_poly *s = tokens(op, q), *total = k.dim[2];
  const lp_poly *past = lp_poly_sub(e->module->arena, total, s);
  const lp_op *cache = lp_value_cache(lp_op_in(op, K));
  const lp_poly *capacity = cache ? lp_cache_rows(e->module, cache) : total;
  LLVMValueRef mask = e->in[MASK] ? e->in[MASK] : cpu_null(e), scratch = e->scratch;
  if (has_bool_mask(op)) scratch = convert_mask(e, &mask);
  cpu_kernel(e, cpu_kernel_pairs(e) == LPK_PAIRS_DOT ? "lpk_attention_pairs" : "lpk_attention",
             CPU_ARGS(e->out[0], e->in[Q], e->in[K], e->in[V], mask, op->in_count > SINKS ? e->in[SINKS] : cpu_null(e),
                      bsh_strides(e, op->out[0]->type, heads, dv), bsh_strides(e, q, heads, d), mask_strides(e),
                      cpu_poly(e, q.dim[0]), cpu_poly(e, s), cpu_poly(e, past), cpu_poly(e, capacity),
                      cpu_i64(e, heads), cpu_i64(e, lp_op_i64(op, "kv_heads", 0)), cpu_i64(e, d), cpu_i64(e, dv),
                      cpu_f32(e, lp_op_f64(op, "scale", 1.0)), cpu_f32(e, lp_op_f64(op, "softcap", 0.0)),
                      cpu_i32(e, lp_op_bool(op, "causal", false)), cpu_i64(e, lp_op_i64(op, "window", 0)),
                      cpu_i32(e, cpu_kernel_dtype(k.dtype)), cpu_i32(e, cpu_kernel_isa(e)), scratch, cpu_barrier(e),
                      e->thread, e->threads));
}

const cpu_rule cpu_rule_attention = {
    .kind = LP_OP_ATTENTION,
    .runs = attention_runs,
    .form = attention_form,
    .scratch = attention_scratch,
    .emit = emit_attention,
    .reads_cache = true,
};

/* ---- cache ------------------------------------------------------------------------------------------------------- */

static bool kv_append_runs(const lp_op *op, char why[64]) {
  int64_t heads, d;
  const lp_type type = op->out[0]->type;
  const lp_value *x = lp_op_in(op, 0);
  if ((x && x->type.dtype != LP_F32) || !is_cache_dtype(type.dtype))
    return snprintf(why, 64, "a cache of type %s", lp_dtype_name(type.dtype)), false;
  if (type.rank != 4 || !lp_type_static_dim(type, 1, &heads) || !lp_type_static_dim(type, 3, &d))
    return snprintf(why, 64, "a cache that is not [b, heads, tokens, d]"), false;
  return true;
}

static void emit_kv_append(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, 0)->type, cache = e->op->out[0]->type;
  const lp_poly *s = tokens(e->op, x);
  int64_t heads = 0, d = 0;
  bool known = lp_type_static_dim(cache, 1, &heads) && lp_type_static_dim(cache, 3, &d);
  assert(known);
  (void)known;
  d = lp_cache_width(cache.dtype, d);
  cpu_kernel(e, "lpk_kv_append",
             CPU_ARGS(e->out[0], e->in[0], cpu_null(e), cpu_null(e), bsh_strides(e, x, heads, d), cpu_i64(e, 0),
                      cpu_i64(e, 0), cpu_poly(e, x.dim[0]), cpu_poly(e, s),
                      cpu_poly(e, lp_poly_sub(e->module->arena, cache.dim[2], s)),
                      cpu_poly(e, lp_cache_rows(e->module, e->op)), cpu_i64(e, heads), cpu_i64(e, d), cpu_i64(e, 0),
                      cpu_i32(e, 0), cpu_i32(e, cpu_kernel_dtype(cache.dtype)), e->thread, e->threads));
}

const cpu_rule cpu_rule_kv_append = {
    .kind = LP_OP_KV_APPEND,
    .runs = kv_append_runs,
    .form = cpu_form_f32,
    .emit = emit_kv_append,
};

/* ---- rotary ------------------------------------------------------------------------------------------------------ */

enum { ROTARY_X, ROTARY_COS, ROTARY_SIN };

/* The number of heads and the head size of the operand x of op.rotary, which may have any rank. */
static bool rotary_shape(const lp_op *op, int64_t *heads, int64_t *d) {
  const lp_type x = lp_op_in(op, ROTARY_X)->type;
  return x.rank == 4 && lp_type_static_dim(x, is_bshd(op) ? 2 : 1, heads) && lp_type_static_dim(x, 3, d);
}

static bool rotary_runs(const lp_op *op, char why[64]) {
  int64_t heads, d;
  if (!lp_op_all_f32(op, why)) return false;
  if (!rotary_shape(op, &heads, &d)) return snprintf(why, 64, "heads that are not constant"), false;
  return true;
}

static void emit_rotary(cpu_emitter *e) {
  const lp_type x = lp_op_in(e->op, ROTARY_X)->type, table = lp_op_in(e->op, ROTARY_COS)->type;
  int64_t heads = 0, d = 0, rows = 0, rotary_dim = lp_op_i64(e->op, "rotary_dim", 0);
  bool known = rotary_shape(e->op, &heads, &d);
  assert(known);
  (void)known;
  LLVMValueRef table_batch = cpu_i64(e, 0);
  if (table.rank == 3 && !(lp_type_static_dim(table, 0, &rows) && rows == 1))
    table_batch = LLVMBuildNSWMul(e->b, cpu_poly(e, table.dim[1]), cpu_i64(e, rotary_dim / 2), "");
  LLVMValueRef strides = bsh_strides(e, x, heads, d);
  cpu_kernel(e, "lpk_rotary",
             CPU_ARGS(e->out[0], e->in[ROTARY_X], e->in[ROTARY_COS], e->in[ROTARY_SIN], strides, strides, table_batch,
                      cpu_i64(e, rotary_dim / 2), cpu_poly(e, x.dim[0]), cpu_poly(e, tokens(e->op, x)),
                      cpu_i64(e, heads), cpu_i64(e, d), cpu_i64(e, rotary_dim),
                      cpu_i32(e, lp_op_bool(e->op, "interleaved", false)), e->thread, e->threads));
}

const cpu_rule cpu_rule_rotary = {.kind = LP_OP_ROTARY, .runs = rotary_runs, .form = cpu_form_f32, .emit = emit_rotary};
