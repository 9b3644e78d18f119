/* op.linear_attention and op.carry_columns. */
#include "backend/gpu/rules.h"
#include "backend/gpu/rules/element.h"
#include "backend/values.h"

enum { Q, K, V, STATE, DECAY, BETA, OPERANDS, MOST_KEYS = 256 /* elements of a column that a thread holds */ };

static bool attention_runs(const lp_op *op, char why[64]) {
  int64_t d, each;
  if (!lp_op_all_f32(op, why)) return false;
  if (!lp_type_static_dim(op->out[1]->type, 2, &d) || d > MOST_KEYS)
    return snprintf(why, 64, "a head that is not of 1 to %d elements", MOST_KEYS), false;
  for (int32_t i = DECAY; i < op->in_count; i++)
    if (lp_op_in(op, i) && !lp_type_static_dim(lp_op_in(op, i)->type, 2, &each))
      return snprintf(why, 64, "a number of decays that is not constant"), false;
  return true;
}

/* Tells whether a sequence goes on from the cache, as an expression. */
static const char *goes_on(gpu_element *e) {
  return gpu_format(e->b->list, "%s > 0", gpu_element_size(e, lp_dim_symbol(e->b->list->module, "p")));
}

/* The cache that the operator replaces, or its result where it has none. */
static const char *written_state(gpu_element *e) {
  const int64_t state = lp_op_state(e->b->op);
  return gpu_element_pointer(e, state < 0 ? gpu_ref_out(e->b, 1) : gpu_ref_state(e->b, state), LP_F32, true);
}

/* A loop over the elements of the column, which are in registers only where it is unrolled. */
static void each_key(gpu_element *e, const char *body) {
  gpu_element_line(e, "#pragma unroll");
  gpu_element_line(e, "for (int j = 0; j < d; j++) %s", body);
}

/* Decays the column s, and writes the token's key into it. */
static void write_update(gpu_element *e, const char *const in[OPERANDS], int64_t kv_heads) {
  const lp_op *op = e->b->op;
  int64_t decays = 0, betas = 0;
  if (in[DECAY]) (void)lp_type_static_dim(lp_op_in(op, DECAY)->type, 2, &decays);
  if (in[BETA]) (void)lp_type_static_dim(lp_op_in(op, BETA)->type, 2, &betas);
  if (in[DECAY] && decays == kv_heads) gpu_element_line(e, "  const float factor = expf(%s[at]);", in[DECAY]);
  if (in[DECAY]) {
    const char *own = gpu_format(e->b->list, "expf(%s[at * d + j])", in[DECAY]);
    each_key(e, gpu_format(e->b->list, "s[j] *= %s;", decays == kv_heads ? "factor" : own));
  }
  gpu_element_line(e, "  float wanted = %s[at * dv + column];", in[V]);
  if (in[BETA]) {
    each_key(e, gpu_format(e->b->list, "found += s[j] * %s[at * d + j];", in[K]));
    gpu_element_line(e, "  wanted = (wanted - found) * %s[token * %" PRId64 " + %s];", in[BETA], betas,
                     betas == 1 ? "0" : "head");
  }
  each_key(e, gpu_format(e->b->list, "s[j] += wanted * %s[at * d + j];", in[K]));
}

/* One thread takes a column of a head's state over all tokens. */
static void write_linear_attention(gpu_element *e, gpu_builder *b) {
  lp_module *m = b->list->module;
  const lp_op *op = b->op;
  const lp_type state = op->out[1]->type;
  const int64_t heads = lp_op_i64(op, "heads", 1), kv_heads = lp_op_i64(op, "kv_heads", 1);
  const lp_poly *columns[] = {state.dim[0], state.dim[1], state.dim[3]};
  const char *in[OPERANDS] = {NULL};
  gpu_element_begin(e, b, lp_type_make(m, LP_F32, 3, columns));
  for (int32_t i = 0; i < op->in_count; i++)
    if (lp_op_in(op, i)) in[i] = gpu_element_pointer(e, gpu_ref_in(b, i, GPU_FORM_F32), LP_F32, false);
  const char *y = gpu_element_pointer(e, gpu_ref_out(b, 0), LP_F32, true), *to = written_state(e);
  const char *rows = gpu_element_size(e, lp_op_in(op, Q)->type.dim[1]);
  const char *at[] = {gpu_element_coordinate(e, 0), gpu_element_coordinate(e, 1), gpu_element_coordinate(e, 2)};
  const char *before = in[STATE] ? gpu_format(b->list, "%s[first + j * dv]", in[STATE]) : "0.0f";
  if (lp_op_state(op) >= 0) before = gpu_format(b->list, "%s ? %s[first + j * dv] : 0.0f", goes_on(e), to);
  gpu_element_line(e, "const int d = %s;", gpu_element_size(e, state.dim[2]));
  gpu_element_line(e, "const long dv = %s, head = %s, column = %s;", gpu_element_size(e, state.dim[3]), at[1], at[2]);
  gpu_element_line(e, "const long first = (%s * %" PRId64 " + head) * d * dv + column;", at[0], kv_heads);
  gpu_element_line(e, "float s[%s];", gpu_element_size(e, state.dim[2]));
  each_key(e, gpu_format(b->list, "s[j] = %s;", before));
  gpu_element_line(e, "for (long token = %s * %s; token < (%s + 1) * %s; token++) {", at[0], rows, at[0], rows);
  gpu_element_line(e, "  const long at = token * %" PRId64 " + head;", kv_heads);
  if (in[BETA]) gpu_element_line(e, "  float found = 0;");
  write_update(e, in, kv_heads);
  gpu_element_line(e, "  for (long query = at * %" PRId64 "; query < (at + 1) * %" PRId64 "; query++) {",
                   heads / kv_heads, heads / kv_heads);
  gpu_element_line(e, "    float sum = 0;");
  each_key(e, gpu_format(b->list, "sum += s[j] * %s[query * d + j];", in[Q]));
  gpu_element_line(e, "    %s[query * dv + column] = sum * %.9ef;", y, lp_op_f64(op, "scale", 1));
  gpu_element_line(e, "  }");
  gpu_element_line(e, "}");
  each_key(e, gpu_format(b->list, "%s[first + j * dv] = s[j];", to));
}

static void lower_linear_attention(gpu_builder *b) {
  gpu_elements_make(b, write_linear_attention, "linear_attention");
}

static bool carry_runs(const lp_op *op, char why[64]) {
  return lp_op_all_f32(op, why);
}

/* One thread takes a channel. */
static void write_carry_columns(gpu_element *e, gpu_builder *b) {
  const lp_type x = lp_op_in(b->op, 0)->type;
  gpu_element_begin(e, b, lp_type_make(b->list->module, LP_F32, 2, x.dim));
  const char *from = gpu_element_pointer(e, gpu_ref_in(b, 0, GPU_FORM_F32), LP_F32, false);
  const char *y = gpu_element_pointer(e, gpu_ref_out(b, 0), LP_F32, true), *last = written_state(e);
  gpu_element_line(e, "const long n = %s, s = %s;", gpu_element_size(e, b->op->out[1]->type.dim[2]),
                   gpu_element_size(e, x.dim[2]));
  gpu_element_line(e, "for (long j = 0; j < n; j++) %s[i * (n + s) + j] = %s ? %s[i * n + j] : 0.0f;", y, goes_on(e),
                   last);
  gpu_element_line(e, "for (long j = 0; j < s; j++) %s[i * (n + s) + n + j] = %s[i * s + j];", y, from);
  gpu_element_line(e, "for (long j = 0; j < n; j++) %s[i * n + j] = %s[i * (n + s) + s + j];", last, y);
}

static void lower_carry_columns(gpu_builder *b) {
  gpu_elements_make(b, write_carry_columns, "carry_columns");
}

const gpu_rule gpu_rule_linear_attention = {LP_OP_LINEAR_ATTENTION, attention_runs, lower_linear_attention, NULL};
const gpu_rule gpu_rule_carry_columns = {LP_OP_CARRY_COLUMNS, carry_runs, lower_carry_columns, NULL};
