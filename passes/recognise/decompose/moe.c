/* Rewrites mixtures of experts by llmpart.Experts: com.microsoft's MoE and QMoE (ContribOperators.md), in which the
 * result of a token is the sum over the experts that it chose, each times the weight that the router gave it; and
 * products with matrices that a Gather takes by the experts' numbers, as torch.onnx writes transformers' batched_mm. */
#include "passes/recognise/decompose/rewrite.h"

#include <math.h>

/* Indices of the operands of the three products: weights, scales (QMoE), bias and zero points (QMoE); -1: the operator
 * has no such operand. */
typedef struct {
  int32_t weight[3], scale[3], bias[3], zero[3];
} operand_places;

static const operand_places float_places = {{2, 4, 6}, {-1, -1, -1}, {3, 5, 7}, {-1, -1, -1}};
static const operand_places quantised_places = {{2, 5, 8}, {3, 6, 9}, {4, 7, 10}, {11, 12, 13}};
enum { X, ROUTER, ROUTER_WEIGHTS = 14, GLOBAL_SCALES = 15 };

typedef struct {
  lp_rewrite *r;
  bool quantised, swiglu, interleaved, fused;
  int64_t experts, hidden, inter, rows[3], columns[3]; /* of each product's weight */
  operand_places at;
  lp_value *x;      /* [tokens, 1, hidden] */
  lp_value *chosen; /* [tokens, k]: the experts, and what the router gave them */
  lp_value *share;
} mixture;

/* ---- attributes and sizes ---------------------------------------------------------------------------------------- */

static lp_status check_attributes(const mixture *m) {
  static const char *const activations[] = {"relu", "gelu", "silu", "identity", "swiglu"};
  const lp_rewrite *r = m->r;
  const char *activation = lp_op_str(r->op, "activation_type", "relu");
  bool known = false;
  for (size_t i = 0; i < LP_COUNT(activations); i++)
    known |= lp_streq(activation, activations[i]);
  if (!known) return lp_rw_refuse(r, "has an activation_type that is not known");
  if (lp_op_i64(r->op, "use_sparse_mixer", 0)) return lp_rw_refuse(r, "with use_sparse_mixer is not supported");
  if (!lp_streq(lp_op_str(r->op, "quant_type", "int"), "int"))
    return lp_rw_refuse(r, "with another quant_type than int is not supported");
  if (lp_op_i64(r->op, "weights_prepacked", -1) == 1) return lp_rw_refuse(r, "with prepacked weights is not supported");
  for (int32_t i = GLOBAL_SCALES; i < r->op->in_count; i++)
    if (lp_op_in(r->op, i)) return lp_rw_refuse(r, "with global or activation scales is not supported");
  bool normalised = lp_op_i64(r->op, "normalize_routing_weights", 0) || lp_op_in(r->op, ROUTER_WEIGHTS);
  if (m->quantised && !normalised)
    return lp_rw_refuse(r, "without normalize_routing_weights, where ONNX Runtime's devices differ, is not supported");
  return LP_OK;
}

static int64_t bits_of(const mixture *m, int which) {
  static const char *const own[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
  return m->quantised ? lp_op_i64(m->r->op, own[which], lp_op_i64(m->r->op, "expert_weight_bits", 4)) : 0;
}

/* The weights are [experts, rows, columns], with several columns to a byte when quantised. */
static lp_status check_weight(mixture *m, int which) {
  const lp_value *w = lp_op_in(m->r->op, m->at.weight[which]);
  int64_t experts, rows, columns, bits = bits_of(m, which);
  if (!w) return which == 2 ? LP_OK : lp_rw_refuse(m->r, "lacks weights");
  if (!lp_value_is_constant(w)) return lp_rw_refuse(m->r, "has a weight that is not a constant");
  if (m->quantised && bits != 2 && bits != 4 && bits != 8)
    return lp_rw_refuse(m->r, "has weights of other than 2, 4 or 8 bits");
  if (w->type.rank != 3 || !lp_type_static_dim(w->type, 0, &experts) || !lp_type_static_dim(w->type, 1, &rows) ||
      !lp_type_static_dim(w->type, 2, &columns))
    return lp_rw_refuse(m->r, "has weights of another shape than [experts, rows, columns]");
  if (m->quantised) columns = columns * 8 / bits;
  if (experts != m->experts || rows != m->rows[which] || columns != m->columns[which])
    return lp_rw_refuse(m->r, "has weights that do not fit its hidden size and its experts");
  return LP_OK;
}

static lp_status read_sizes(mixture *m) {
  const lp_rewrite *r = m->r;
  const lp_value *x = lp_op_in(r->op, X), *router = lp_op_in(r->op, ROUTER), *down = lp_op_in(r->op, m->at.weight[1]);
  int64_t k = lp_op_i64(r->op, "k", 1);
  if (!down || down->type.rank != 3 || !lp_type_static_dim(x->type, -1, &m->hidden) || router->type.rank != 2 ||
      !lp_type_static_dim(router->type, 1, &m->experts) || !lp_type_static_dim(down->type, 2, &m->inter))
    return lp_rw_refuse(r, "has no constant number of experts or no constant hidden size");
  if (m->quantised) m->inter = m->inter * 8 / bits_of(m, 1);
  if (k < 1 || k > m->experts) return lp_rw_refuse(r, "chooses more experts than there are");
  m->rows[0] = m->fused ? 2 * m->inter : m->inter;
  m->rows[1] = m->columns[0] = m->columns[2] = m->hidden;
  m->columns[1] = m->rows[2] = m->inter;
  if (m->swiglu && !m->fused && !lp_op_in(r->op, m->at.weight[2])) return lp_rw_refuse(r, "with swiglu lacks a gate");
  if (m->fused && lp_op_in(r->op, m->at.weight[2]))
    return lp_rw_refuse(r, "has a third weight, although swiglu_fusion is set");
  if (!m->swiglu && lp_op_in(r->op, m->at.weight[2]))
    return lp_rw_refuse(r, "with a third weight and another activation_type than swiglu is not supported");
  for (int i = 0; i < 3; i++)
    LP_TRY(check_weight(m, i));
  return LP_OK;
}

/* ---- the router -------------------------------------------------------------------------------------------------- */

static lp_value *reduce_last(lp_rewrite *r, lp_value *x) {
  lp_value *in[] = {x, LP_RW_INTS(r, -1)};
  return lp_rw_with(r, LP_ONNX_ReduceSum, 2, in, (lp_rw_attr){"keepdims", 1});
}

static lp_status share_out(mixture *m) {
  lp_rewrite *r = m->r;
  lp_type unknown = {.rank = -1};
  lp_value *router = lp_rw_cast(r, lp_op_in(r->op, ROUTER), LP_F32), *given = lp_op_in(r->op, ROUTER_WEIGHTS);
  if (!m->quantised) given = NULL;
  if (router && !given) router = lp_rw_with(r, LP_ONNX_Softmax, 1, &router, (lp_rw_attr){"axis", -1});
  lp_value *in[] = {router, LP_RW_INTS(r, lp_op_i64(r->op, "k", 1))};
  if (!router) return LP_FAILED;
  lp_op *top = lp_op_create(r->b.module, LP_ONNX_TopK, r->b.loc, 2, in, 2, (lp_type[]){unknown, unknown});
  LP_TRY(lp_build_place(&r->b, top));
  m->share = top->out[0];
  m->chosen = top->out[1];
  if (given) {
    lp_value *pick[] = {lp_rw_cast(r, given, LP_F32), m->chosen};
    m->share = lp_rw_with(r, LP_ONNX_GatherElements, 2, pick, (lp_rw_attr){"axis", 1});
  }
  if (m->share && lp_op_i64(r->op, "normalize_routing_weights", 0))
    m->share = lp_rw_op(r, LP_ONNX_Div, m->share, reduce_last(r, m->share));
  return m->share ? LP_OK : LP_FAILED;
}

/* ---- the experts ------------------------------------------------------------------------------------------------- */

/* A constant operand of all experts in another shape; NULL if the operand is absent. */
static lp_value *shaped(mixture *m, int32_t index, lp_dtype dtype, int32_t rank, const int64_t *dim) {
  lp_value *all = index < 0 ? NULL : lp_op_in(m->r->op, index);
  return all ? lp_build_reshaped_constant(&m->r->b, all, lp_type_static(m->r->b.module, dtype, rank, dim)) : NULL;
}

static lp_value *float_weight(mixture *m, int which) {
  int64_t dim[] = {m->experts * m->rows[which], m->columns[which]};
  return shaped(m, m->at.weight[which], lp_op_in(m->r->op, m->at.weight[which])->type.dtype, 2, dim);
}

/* One scale for each row, or one for each block of it. */
static lp_value *quantised_weight(mixture *m, int which) {
  lp_rewrite *r = m->r;
  const lp_value *scale = lp_op_in(r->op, m->at.scale[which]), *zero = lp_op_in(r->op, m->at.zero[which]);
  int64_t rows = m->rows[which], all = m->experts * rows, columns = m->columns[which], bits = bits_of(m, which), size;
  int64_t block = scale && scale->type.rank == 3 ? lp_op_i64(r->op, "block_size", 0) : columns;
  if (!scale || !lp_value_is_constant(scale) || (zero && !lp_value_is_constant(zero)) || block < 1 || columns % block) {
    (void)lp_rw_refuse(r, "has scales or zero points that do not fit its weights");
    return NULL;
  }
  int64_t blocks = columns / block, stored = (blocks * bits + 7) / 8, scale_dim[] = {all, blocks};
  bool by_row = zero && zero->type.rank == 2;
  int64_t zero_dim[] = {all, stored}, row_dim[] = {all * bits / 8}, weight_dim[] = {all, columns * bits / 8};
  if (!lp_type_static_numel(scale->type, &size) || size != all * blocks ||
      (by_row && (blocks > 1 || rows * bits % 8 != 0)) ||
      (zero && (!lp_type_static_numel(zero->type, &size) || size != (by_row ? row_dim[0] : all * stored)))) {
    (void)lp_rw_refuse(r, "has scales or zero points that do not fit its weights");
    return NULL;
  }
  lp_rw_packed p = {.rows = all, .columns = columns, .bits = bits, .block = block, .result = m->x->type.dtype};
  p.weight = shaped(m, m->at.weight[which], LP_U8, 2, weight_dim);
  p.scale = shaped(m, m->at.scale[which], scale->type.dtype, 2, scale_dim);
  if (zero) p.zero = shaped(m, m->at.zero[which], LP_U8, by_row ? 1 : 2, by_row ? row_dim : zero_dim);
  p.zeros_adjoin = by_row;
  return zero && !p.zero ? NULL : lp_rw_unpacked(r, &p);
}

/* Returns x [tokens, k or 1, columns] times the weights of the chosen experts, plus their biases. */
static lp_value *product(mixture *m, int which, lp_value *x) {
  lp_rewrite *r = m->r;
  int64_t all = m->experts * m->rows[which];
  const lp_value *bias = lp_op_in(r->op, m->at.bias[which]);
  if (bias && !lp_value_is_constant(bias)) {
    (void)lp_rw_refuse(r, "has a bias that is not a constant");
    return NULL;
  }
  lp_value *w = m->quantised ? quantised_weight(m, which) : float_weight(m, which);
  lp_value *in[] = {x, m->chosen, w, bias ? shaped(m, m->at.bias[which], bias->type.dtype, 1, &all) : NULL};
  if (!x || !w || (bias && !in[3])) return NULL;
  return lp_rw_with(r, LP_ONNX_Experts, bias ? 4 : 3, in, (lp_rw_attr){"experts", m->experts});
}

static lp_value *number(mixture *m, double value) {
  return lp_build_float(&m->r->b, m->x->type.dtype, value);
}

/* Returns half `which` of a fused product: its even or odd columns if they are interleaved, else the first or second
 * half of its columns. */
static lp_value *half(mixture *m, lp_value *both, int64_t which) {
  lp_rewrite *r = m->r;
  int64_t n = m->inter, first = m->interleaved ? which : which * n, end = m->interleaved ? 2 * n : first + n;
  lp_value *in[] = {both, LP_RW_INTS(r, first), LP_RW_INTS(r, end), LP_RW_INTS(r, 2),
                    LP_RW_INTS(r, m->interleaved ? 2 : 1)};
  return both ? lp_build_value(&r->b, LP_ONNX_Slice, 5, in) : NULL;
}

/* Returns g sigmoid(alpha g) (l + beta), with g and l clamped to the limit. */
static lp_value *swiglu(mixture *m, lp_value *g, lp_value *l) {
  lp_rewrite *r = m->r;
  double beta = lp_op_f64(r->op, "activation_beta", 0), limit = lp_op_f64(r->op, "swiglu_limit", INFINITY);
  if (!g || !l) return NULL;
  if (isfinite(limit)) {
    g = lp_rw_op(r, LP_ONNX_Min, g, number(m, limit));
    l = lp_rw_op3(r, LP_ONNX_Clip, l, number(m, -limit), number(m, limit));
  }
  lp_value *gate = lp_rw_op(r, LP_ONNX_Swish, g, NULL);
  if (!gate || !l) return NULL;
  lp_op_set_f64(r->b.module, gate->def, "alpha", lp_op_f64(r->op, "activation_alpha", 1));
  if (beta != 0) l = lp_rw_op(r, LP_ONNX_Add, l, number(m, beta));
  return l ? lp_rw_op(r, LP_ONNX_Mul, gate, l) : NULL;
}

static lp_value *activated(mixture *m, lp_value *y) {
  lp_rewrite *r = m->r;
  const char *activation = lp_op_str(r->op, "activation_type", "relu");
  if (m->swiglu && m->fused) return swiglu(m, half(m, y, 0), half(m, y, 1));
  if (m->swiglu) return swiglu(m, y, product(m, 2, m->x));
  if (lp_streq(activation, "relu")) return lp_rw_op(r, LP_ONNX_Relu, y, NULL);
  if (lp_streq(activation, "silu")) return lp_rw_op(r, LP_ONNX_Swish, y, NULL);
  if (lp_streq(activation, "identity")) return y;
  lp_value *gelu = lp_rw_op(r, LP_ONNX_Gelu, y, NULL);
  if (gelu) lp_op_set_str(r->b.module, gelu->def, "approximate", "tanh");
  return gelu;
}

lp_status lp_rewrite_mixture(lp_rewrite *r) {
  mixture m = {.r = r, .quantised = r->op->kind == LP_ONNX_MsQMoE};
  int64_t fusion = lp_op_i64(r->op, "swiglu_fusion", 0);
  m.at = m.quantised ? quantised_places : float_places;
  m.swiglu = lp_streq(lp_op_str(r->op, "activation_type", "relu"), "swiglu");
  m.fused = m.swiglu && fusion != 0;
  m.interleaved = fusion == 1;
  LP_TRY(check_attributes(&m));
  LP_TRY(read_sizes(&m));
  m.x = lp_rw_reshape(r, lp_op_in(r->op, X), LP_RW_INTS(r, -1, 1, m.hidden));
  LP_TRY(share_out(&m));
  lp_value *y = lp_rw_cast(r, product(&m, 1, activated(&m, product(&m, 0, m.x))), LP_F32);
  lp_value *weighted[] = {y ? lp_rw_op(r, LP_ONNX_Mul, y, lp_rw_unsqueeze(r, m.share, LP_RW_INTS(r, -1))) : NULL,
                          LP_RW_INTS(r, 1)};
  if (!weighted[0]) return LP_FAILED;
  lp_value *sum = lp_rw_with(r, LP_ONNX_ReduceSum, 2, weighted, (lp_rw_attr){"keepdims", 0});
  sum = sum ? lp_rw_cast(r, sum, lp_op_in(r->op, X)->type.dtype) : NULL;
  return lp_rw_give(r, sum ? lp_rw_reshape(r, sum, lp_rw_op(r, LP_ONNX_Shape, lp_op_in(r->op, X), NULL)) : NULL);
}

/* ---- products with gathered matrices ----------------------------------------------------------------------------- */

/* Tells whether the value holds only numbers of chosen experts: indices of TopKs or ArgMaxes over `experts` scores.
 * Looks at `*left` values. */
static bool is_choice(const lp_value *value, int64_t experts, int *left) {
  const lp_op *op = value ? value->def : NULL;
  int64_t scores;
  if (!op || --*left < 0) return false;
  switch (op->kind) {
  case LP_ONNX_Concat:
    for (int32_t i = 0; i < op->in_count; i++)
      if (!is_choice(lp_op_in(op, i), experts, left)) return false;
    return true;
  case LP_ONNX_Reshape:
  case LP_ONNX_Flatten:
  case LP_ONNX_Squeeze:
  case LP_ONNX_Unsqueeze:
  case LP_ONNX_Transpose:
  case LP_ONNX_Expand:
  case LP_ONNX_Identity:
  case LP_ONNX_Cast:
    return is_choice(lp_op_in(op, 0), experts, left);
  case LP_ONNX_ArgMax:
  case LP_ONNX_TopK:
    return (op->kind == LP_ONNX_ArgMax || value->index == 1) &&
           lp_type_static_dim(lp_op_in(op, 0)->type, (int32_t)lp_op_i64(op, "axis", op->kind == LP_ONNX_TopK ? -1 : 0),
                              &scores) &&
           scores == experts;
  default:
    return false;
  }
}

/* The matrices [experts][rows][columns] from which each row takes one by its index [..]. */
typedef struct {
  lp_value *all, *index;
  bool turned; /* a row's matrix is transposed after it was taken */
} gathered;

static bool find_gathered(lp_rewrite *r, lp_value *value, gathered *out) {
  static const int64_t last_two[] = {0, 2, 1};
  const lp_op *op = value->def;
  int64_t experts, one;
  int left = 32;
  *out = (gathered){0};
  if (lp_op_is(op, LP_ONNX_Transpose)) {
    const lp_attr *perm = lp_op_attr(op, "perm");
    if (!perm || perm->count != 3 || memcmp(perm->is, last_two, sizeof last_two) != 0) return false;
    out->turned = true;
    op = lp_op_in(op, 0)->def;
  }
  const bool nd = lp_op_is(op, LP_ONNX_GatherND), taken = lp_op_is(op, LP_ONNX_Gather);
  if (!nd && !taken) return false;
  if (lp_op_i64(op, taken ? "axis" : "batch_dims", 0) != 0) return false;
  out->all = lp_op_in(op, 0);
  out->index = lp_op_in(op, 1);
  if (!lp_value_is_constant(out->all) || out->all->type.rank != 3 || out->index->type.rank != (nd ? 2 : 1) ||
      !lp_type_static_dim(out->all->type, 0, &experts) || !is_choice(out->index, experts, &left))
    return false;
  if (nd) return lp_type_static_dim(out->index->type, 1, &one) && one == 1;
  out->index = lp_rw_unsqueeze(r, out->index, LP_RW_INTS(r, 1));
  return out->index != NULL;
}

/* Returns [rows][1][n]: the product of x [rows][1][k] with each row's matrix, [k][n], or [n][k] if `turned`. */
static lp_value *gathered_product(lp_rewrite *r, const gathered *g, lp_value *x, bool turned) {
  int64_t experts = 0;
  (void)lp_type_static_dim(g->all->type, 0, &experts);
  lp_op *stack = lp_constant_stack(r->b.module, g->all->def->loc, experts, &(lp_value *){g->all}, 1, turned);
  if (!stack) return NULL;
  lp_op_insert_before(r->b.before, stack);
  stack->out[0]->name = g->all->name;
  lp_value *in[] = {x, g->index, stack->out[0]};
  return lp_rw_with(r, LP_ONNX_Experts, 3, in, (lp_rw_attr){"experts", experts});
}

/* Moves an axis of size 1. */
static lp_value *with_one(lp_rewrite *r, lp_value *x, int64_t from, int64_t to) {
  return lp_rw_unsqueeze(r, lp_rw_op(r, LP_ONNX_Squeeze, x, LP_RW_INTS(r, from)), LP_RW_INTS(r, to));
}

lp_status lp_rewrite_gathered_matmul(lp_rewrite *r) {
  lp_value *a = lp_op_in(r->op, 0), *b = lp_op_in(r->op, 1);
  gathered g;
  int64_t one;
  if (a->type.rank != 3 || b->type.rank != 3) return LP_OK;
  if (lp_type_static_dim(a->type, 1, &one) && one == 1 && find_gathered(r, b, &g)) {
    r->result[0] = gathered_product(r, &g, a, !g.turned);
  } else if (lp_type_static_dim(b->type, 2, &one) && one == 1 && find_gathered(r, a, &g)) {
    lp_value *row = with_one(r, b, 2, 1), *y = row ? gathered_product(r, &g, row, g.turned) : NULL;
    r->result[0] = y ? with_one(r, y, 1, 2) : NULL;
  }
  return lp_diag_error_count(r->b.diag) > 0 ? LP_FAILED : LP_OK;
}
