/* Closed forms of the operations and bytes of each op.* operator, one function per cost column of ops.def.
 *
 * A multiply-add counts as 2 flops, and a transcendental or any other elementary function as 1. bytes are real: every
 * operand read once, every result written once, in their dtypes. Views (reshape) are free. A KV cache is read by
 * attention and written by kv_append: only the appended rows move. */
#include "base/poly.h"
#include "ir/ir.h"

#include <math.h>

typedef struct {
  lp_module *m;
  const lp_op *op;
} cost_context;

static const lp_poly *number(const cost_context *c, int64_t value) {
  return lp_dim_const(c->m, value);
}

static const lp_poly *times(const cost_context *c, const lp_poly *a, const lp_poly *b) {
  return lp_poly_mul(c->m->arena, a, b);
}

static const lp_poly *plus(const cost_context *c, const lp_poly *a, const lp_poly *b) {
  return lp_poly_add(c->m->arena, a, b);
}

static const lp_poly *numel(const cost_context *c, const lp_value *value) {
  return lp_type_numel(c->m, value->type);
}

static const lp_poly *in_dim(const cost_context *c, int32_t operand, int32_t axis) {
  lp_type type = lp_op_in(c->op, operand)->type;
  return type.dim[axis < 0 ? axis + type.rank : axis];
}

static const lp_poly *bytes_of(const cost_context *c, const lp_value *value) {
  return lp_type_bytes(c->m, value->type);
}

/* Every operand read and every result written once. */
static void move_all(const cost_context *c, lp_cost *cost) {
  for (int32_t i = 0; i < c->op->in_count; i++) {
    const lp_value *in = lp_op_in(c->op, i);
    if (!in) continue;
    cost->bytes_read = plus(c, cost->bytes_read, bytes_of(c, in));
    cost->elements = plus(c, cost->elements, numel(c, in));
    if (lp_value_is_constant(in)) cost->weight_bytes = plus(c, cost->weight_bytes, bytes_of(c, in));
  }
  for (int32_t i = 0; i < c->op->out_count; i++) {
    cost->bytes_written = plus(c, cost->bytes_written, bytes_of(c, c->op->out[i]));
    cost->elements = plus(c, cost->elements, numel(c, c->op->out[i]));
  }
}

static void set_macs(const cost_context *c, lp_cost *cost, const lp_poly *macs) {
  cost->macs = macs;
  cost->flops = lp_poly_scale(c->m->arena, macs, 2);
}

/* The elements of a product, without those of rows that choose no expert of it, as far as `shares` tell. */
static const lp_poly *products(const cost_context *c) {
  const lp_attr *shares = lp_op_attr(c->op, "shares");
  const lp_type y = c->op->out[0]->type;
  int64_t n;
  double sum = 0;
  if (!shares || y.rank < 2 || !lp_type_static_dim(y, -1, &n)) return numel(c, c->op->out[0]);
  for (int32_t i = 0; i < shares->count; i++)
    sum += shares->fs[i];
  return lp_poly_scale(c->m->arena, lp_dim_product(c->m, y.dim, 0, y.rank - 2), llround(sum * (double)n));
}

/* rows x k x n multiply-adds, once more for a gate, and one operation per element of each epilogue. */
/* Of experts, these are the products of those that are chosen, and the bytes of all: how many a batch of tokens reads
 * depends on them and is no polynomial. The planner expects a part (passes/plan/numbers.c). */
static void cost_linear(const cost_context *c, lp_cost *cost) {
  move_all(c, cost);
  const lp_poly *out = products(c), *macs = times(c, out, in_dim(c, 0, -1));
  if (lp_op_in(c->op, 4)) macs = lp_poly_scale(c->m->arena, macs, 2);
  set_macs(c, cost, macs);
  int64_t extra = (lp_op_in(c->op, 2) != NULL) + (c->op->kind == LP_OP_LINEAR && lp_op_in(c->op, 3)) +
                  (lp_op_in(c->op, 4) != NULL) + !lp_streq(lp_op_str(c->op, "epilogue", "none"), "none");
  cost->flops = plus(c, cost->flops, lp_poly_scale(c->m->arena, out, extra));
}

static void cost_matmul(const cost_context *c, lp_cost *cost) {
  move_all(c, cost);
  int32_t axis = lp_op_bool(c->op, "transpose_a", false) ? -2 : -1;
  int32_t rank = lp_op_in(c->op, 0)->type.rank;
  set_macs(c, cost, times(c, numel(c, c->op->out[0]), in_dim(c, 0, rank == 1 ? 0 : axis)));
}

/* Q.K^T and P.V are 2 d multiply-adds per pair of positions, and scale, max, exp, sum, divide 5 operations. A causal
 * mask over s new positions of total leaves s total - s (s - 1) / 2 pairs; a window is costed as if it were full. The
 * coefficients of a polynomial are whole, so that half of an odd one has none: odd numbers of heads count 6. */
static void cost_attention(const cost_context *c, lp_cost *cost) {
  move_all(c, cost);
  lp_arena *arena = c->m->arena;
  bool bshd = lp_streq(lp_op_str(c->op, "layout", "bhsd"), "bshd");
  lp_type q = lp_op_in(c->op, 0)->type;
  if (q.rank != 4) return;
  const lp_poly *s = q.dim[bshd ? 1 : 2], *total = in_dim(c, 1, 2), *d = q.dim[3], *dv = c->op->out[0]->type.dim[3];
  const lp_poly *twice_pairs = lp_poly_scale(arena, times(c, s, total), 2);
  if (lp_op_bool(c->op, "causal", false))
    twice_pairs = lp_poly_sub(arena, twice_pairs, times(c, s, lp_poly_sub(arena, s, number(c, 1))));
  const int64_t heads = lp_op_i64(c->op, "heads", 1);
  twice_pairs = times(c, times(c, q.dim[0], number(c, heads)), twice_pairs);
  const lp_poly *per_pair = plus(c, lp_poly_scale(arena, plus(c, d, dv), 2), number(c, 5 + heads % 2));
  cost->flops = lp_poly_div(arena, times(c, twice_pairs, per_pair), number(c, 2));
  cost->macs = lp_poly_div(arena, times(c, twice_pairs, plus(c, d, dv)), number(c, 2));
}

/* A cache that is replaced is also read. */
static void cost_carry_columns(const cost_context *c, lp_cost *cost) {
  move_all(c, cost);
  if (lp_op_state(c->op) >= 0) cost->bytes_read = plus(c, cost->bytes_read, bytes_of(c, c->op->out[1]));
}

/* Per token and KV head the state [d][dv] is decayed, multiplied by the key and written, and each query head reads
 * it. */
static void cost_linear_attention(const cost_context *c, lp_cost *cost) {
  cost_carry_columns(c, cost);
  lp_type q = lp_op_in(c->op, 0)->type, state = c->op->out[1]->type;
  if (q.rank != 3 || state.rank != 4) return;
  int64_t heads = lp_op_i64(c->op, "heads", 1), kv_heads = lp_op_i64(c->op, "kv_heads", 1);
  int64_t passes = heads + kv_heads * (lp_op_in(c->op, 5) ? 2 : 1);
  const lp_poly *cells = times(c, times(c, q.dim[0], q.dim[1]), times(c, state.dim[2], state.dim[3]));
  set_macs(c, cost, lp_poly_scale(c->m->arena, cells, passes));
  if (lp_op_in(c->op, 4)) cost->flops = plus(c, cost->flops, lp_poly_scale(c->m->arena, cells, kv_heads));
}

static void cost_kv_append(const cost_context *c, lp_cost *cost) {
  const lp_value *in = lp_op_in(c->op, 0);
  if (!in) return; /* the cache is full */
  cost->bytes_read = bytes_of(c, in);
  const lp_type cache = c->op->out[0]->type;
  const lp_poly *rows = numel(c, in), *width = in->type.dim[in->type.rank - 1];
  if (lp_cache_is_coded(cache.dtype)) rows = lp_poly_div(c->m->arena, times(c, rows, cache.dim[3]), width);
  cost->bytes_written = lp_poly_scale(c->m->arena, rows, lp_dtype_bits(cache.dtype) / 8);
  cost->elements = lp_poly_scale(c->m->arena, numel(c, in), 2);
}

static void cost_flops_per_element(const cost_context *c, lp_cost *cost, int64_t flops) {
  move_all(c, cost);
  cost->flops = lp_poly_scale(c->m->arena, numel(c, c->op->out[0]), flops);
}

static void cost_rotary(const cost_context *c, lp_cost *cost) {
  cost_flops_per_element(c, cost, 3);
}
static void cost_norm(const cost_context *c, lp_cost *cost) {
  cost_flops_per_element(c, cost, c->op->kind == LP_OP_ADD_NORM ? 6 : 5);
}
static void cost_map(const cost_context *c, lp_cost *cost) {
  cost_flops_per_element(c, cost, 1);
}
static void cost_softmax(const cost_context *c, lp_cost *cost) {
  cost_flops_per_element(c, cost, 5);
}

static void cost_fused(const cost_context *c, lp_cost *cost) {
  int64_t count = 0;
  LP_FOR_OPS(op, c->op->region)
    count += op->kind == LP_OP_MAP;
  cost_flops_per_element(c, cost, count);
}

/* One operation per element read. */
static void cost_reduce(const cost_context *c, lp_cost *cost) {
  move_all(c, cost);
  cost->flops = numel(c, lp_op_in(c->op, 0));
}

/* Rows of a table: as many bytes are read as written. */
static void cost_gather(const cost_context *c, lp_cost *cost) {
  const lp_value *table = lp_op_in(c->op, 0), *out = c->op->out[0];
  lp_type read = lp_type_with_dtype(out->type, table->type.dtype);
  cost->bytes_read = plus(c, lp_type_bytes(c->m, read), bytes_of(c, lp_op_in(c->op, 1)));
  cost->bytes_written = bytes_of(c, out);
  if (lp_value_is_constant(table)) cost->weight_bytes = bytes_of(c, table);
  cost->elements = plus(c, numel(c, out), numel(c, lp_op_in(c->op, 1)));
}

/* All operands are read and the result is written. A reduction is one operation per update. */
static void cost_scatter(const cost_context *c, lp_cost *cost) {
  move_all(c, cost);
  if (lp_streq(lp_op_str(c->op, "reduction", "none"), "none")) return;
  cost->flops = numel(c, lp_op_in(c->op, 2));
}

static void cost_move(const cost_context *c, lp_cost *cost) {
  const lp_value *out = c->op->out[0];
  cost->bytes_read = cost->bytes_written = bytes_of(c, out);
  cost->elements = lp_poly_scale(c->m->arena, numel(c, out), 2);
}

static void cost_write(const cost_context *c, lp_cost *cost) {
  cost->bytes_written = bytes_of(c, c->op->out[0]);
  cost->elements = numel(c, c->op->out[0]);
}

static void cost_none(const cost_context *c, lp_cost *cost) {
  (void)c;
  (void)cost;
}

typedef void cost_rule(const cost_context *c, lp_cost *cost);

static cost_rule *const rules[LP_OP_COUNT] = {
#define LP_OPERATOR(id, name, imin, imax, omin, omax, traits, attrs, rule, cost) [LP_OP_##id] = cost_##cost,
#include "ir/ops.def"
};

lp_cost lp_op_cost(lp_module *module, const lp_op *op) {
  const lp_poly *zero = lp_dim_const(module, 0);
  lp_cost cost = {zero, zero, zero, zero, zero, zero};
  cost_context context = {module, op};
  if (rules[op->kind]) rules[op->kind](&context, &cost);
  return cost;
}
