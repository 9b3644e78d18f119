/* Layers that keep a state of each sequence in place of keys and values: short convolutions, state spaces and gated
 * delta nets. */
#include "frontend/decoder/parts.h"

#include <math.h>

/* Exchanges rows and columns. */
static lp_value *turned(lp_builder *b, lp_value *x) {
  static const int64_t swap[] = {0, 2, 1};
  lp_op *op = x ? lp_graph_begin(&b->g, LP_ONNX_Transpose, 1, &x, 1) : NULL;
  if (op) lp_op_set_i64s(b->g.module, op, "perm", swap, 3);
  return lp_graph_end(&b->g, op);
}

/* Convolves each channel of x [b, s, channels] with those of the tokens before. */
static lp_value *convolved(lp_builder *b, lp_value *x, lp_value **present) {
  const int64_t n = lp_decoder_channels(b->d, b->index), kernel[] = {n, 1, b->d->layer[b->index].taps};
  lp_value *in[] = {turned(b, x), NULL, NULL, b->past[0]};
  if (!in[0]) return NULL;
  lp_part_enter(b, LP_ROLE_CONV);
  in[1] = lp_part_vector(b, lp_part_name(b, LP_ROLE_CONV, ".weight"), n * kernel[2]);
  in[1] = lp_part_reshaped(b, in[1], 3, kernel);
  if (lp_part_has(b, LP_ROLE_CONV, ".bias")) in[2] = lp_part_vector(b, lp_part_name(b, LP_ROLE_CONV, ".bias"), n);
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_CausalConvWithState, 4, in, 2);
  lp_value *y = turned(b, lp_graph_end(&b->g, op));
  if (y) *present = op->out[1];
  return y;
}

/* C * conv(B * x), where B, C and x are parts of a product of the layer's input: the gated short convolution of LFM2
 * (transformers' Lfm2ShortConv). */
lp_value *lp_part_convolution(lp_builder *b, lp_value *x, lp_value **present) {
  const int64_t n = b->d->hidden;
  lp_value *parts[3];
  for (int64_t i = 0; i < 3; i++)
    parts[i] = lp_part_linear(b, x, LP_ROLE_CONV_IN, n, (lp_span){i * n, n, 3 * n});
  lp_value *y = convolved(b, lp_graph_op2(&b->g, LP_ONNX_Mul, parts[0], parts[2]), present);
  return lp_part_whole(b, lp_graph_op2(&b->g, LP_ONNX_Mul, parts[1], y), LP_ROLE_CONV_OUT, n, n);
}

/* ---- Mamba 2 ----------------------------------------------------------------------------------------------------- */

/* x [b, s, groups * state], B or C, for each head: [b, s, heads * state]. */
static lp_value *of_heads(lp_builder *b, lp_value *x) {
  const lp_scan *m = &b->d->scan;
  const int64_t count = m->heads / m->groups, joined[] = {0, 0, m->heads * m->state};
  const int64_t apart[] = {0, 0, m->tiled ? 1 : m->groups, m->tiled ? m->groups : 1, m->state};
  const int64_t each[] = {1, 1, m->tiled ? count : 1, m->tiled ? 1 : count, 1};
  if (m->groups == m->heads) return x;
  x = lp_part_reshaped(b, x, LP_COUNT(apart), apart);
  x = lp_graph_op2(&b->g, LP_ONNX_Expand, x, lp_graph_ints(&b->g, LP_COUNT(each), each));
  return lp_part_reshaped(b, x, LP_COUNT(joined), joined);
}

/* x [b, s, heads * width] times a factor for each head, [b, s, heads] or [heads]. */
static lp_value *weighted(lp_builder *b, lp_value *x, lp_value *factor) {
  const int64_t apart[] = {0, 0, b->d->scan.heads, b->d->scan.width}, joined[] = {0, 0, apart[2] * apart[3]};
  x = lp_graph_op2(&b->g, LP_ONNX_Mul, lp_part_reshaped(b, x, LP_COUNT(apart), apart),
                   lp_part_unsqueezed(b, factor, -1));
  return lp_part_reshaped(b, x, LP_COUNT(joined), joined);
}

static lp_value *per_head(lp_builder *b, lp_role role) {
  lp_part_enter(b, role);
  return lp_part_vector(b, lp_part_name(b, role, ""), b->d->scan.heads);
}

/* The time steps of the heads, and the logarithms of the decays exp(A dt). */
static lp_value *steps(lp_builder *b, lp_value *dt, lp_value **decay) {
  dt = lp_graph_op1(&b->g, LP_ONNX_Softplus, lp_graph_op2(&b->g, LP_ONNX_Add, dt, per_head(b, LP_ROLE_STEP_BIAS)));
  lp_value *rate = per_head(b, LP_ROLE_DECAY);
  if (!b->d->scan.rates) rate = lp_graph_op1(&b->g, LP_ONNX_Neg, lp_graph_op1(&b->g, LP_ONNX_Exp, rate));
  *decay = lp_graph_op2(&b->g, LP_ONNX_Mul, dt, rate);
  return dt;
}

/* A linear attention of the states: of queries, keys, values, decays and perhaps the rates of correction. */
static lp_value *attended(lp_builder *b, lp_value *const *qkv, lp_value *decay, lp_value *beta, double scale,
                          lp_value **present) {
  const lp_scan *m = &b->d->scan;
  lp_value *in[] = {of_heads(b, qkv[0]), of_heads(b, qkv[1]), qkv[2], b->past[1], decay, beta};
  if (b->g.status != LP_OK) return NULL;
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_LinearAttention, beta ? 6 : 5, in, 2);
  if (!op) return NULL;
  lp_op_set_i64(b->g.module, op, "q_num_heads", m->heads);
  lp_op_set_i64(b->g.module, op, "kv_num_heads", m->heads);
  lp_op_set_f64(b->g.module, op, "scale", scale);
  lp_op_set_str(b->g.module, op, "update_rule", beta ? "gated_delta" : "gated");
  lp_value *y = lp_graph_end(&b->g, op);
  *present = op->out[1];
  return y;
}

/* The state [state][width] of each head, S = exp(A dt) S + B (x) dt x, read by C: a linear attention with the keys B,
 * the queries C and the values dt x. */
static lp_value *scanned(lp_builder *b, lp_value *x, lp_value *dt, lp_value *const *keys, lp_value **present) {
  lp_value *decay;
  dt = steps(b, dt, &decay);
  lp_value *qkv[] = {keys[1], keys[0], weighted(b, x, dt)}, *y = attended(b, qkv, decay, NULL, 1, present);
  return lp_graph_op2(&b->g, LP_ONNX_Add, y, weighted(b, x, per_head(b, LP_ROLE_SKIP)));
}

/* The norm over the heads of each group, if there is one. */
static lp_value *group_norm(lp_builder *b, lp_value *y) {
  const lp_scan *m = &b->d->scan;
  const int64_t n = m->heads * m->width, apart[] = {0, 0, m->groups, n / m->groups}, joined[] = {0, 0, n};
  if (!b->d->names[LP_ROLE_GATED_NORM]) return y;
  lp_part_enter(b, LP_ROLE_GATED_NORM);
  lp_part_flatten(b, lp_part_name(b, LP_ROLE_GATED_NORM, ".weight"));
  if (m->groups == 1) return lp_part_norm(b, y, LP_ROLE_GATED_NORM, n, b->d->epsilon);
  y = lp_part_normalised(b, lp_part_reshaped(b, y, LP_COUNT(apart), apart), apart[3], b->d->epsilon);
  y = lp_part_reshaped(b, y, LP_COUNT(joined), joined);
  return lp_graph_op2(&b->g, LP_ONNX_Mul, y, lp_part_vector(b, lp_part_name(b, LP_ROLE_GATED_NORM, ".weight"), n));
}

/* The norm of y silu(gate), or that of y times silu(gate). */
static lp_value *gated_norm(lp_builder *b, lp_value *y, lp_value *gate) {
  const bool first = b->d->scan.norm_first;
  if (first) y = group_norm(b, y);
  y = lp_graph_op2(&b->g, LP_ONNX_Mul, y, lp_graph_op1(&b->g, LP_ONNX_Swish, gate));
  return first ? y : group_norm(b, y);
}

/* What is convolved, times a factor for the input, one for B and one for C. */
static lp_value *parts_scaled(lp_builder *b, lp_value *x, const int64_t *widths) {
  const lp_factors *f = b->d->factors;
  const int64_t all = widths[0] + widths[1] + widths[2];
  if (!f || (f->scan[1] == 1 && f->scan[2] == 1 && f->scan[3] == 1)) return x;
  float *each = LP_NEW_ARRAY(b->g.module->arena, float, all);
  for (int64_t i = 0; i < all; i++)
    each[i] = (float)f->scan[i < widths[0] ? 1 : i < widths[0] + widths[1] ? 2 : 3];
  return x ? lp_graph_op2(&b->g, LP_ONNX_Mul, x, lp_graph_floats(&b->g, 1, &all, each)) : NULL;
}

lp_value *lp_part_scan(lp_builder *b, lp_value *x, lp_value **present) {
  const lp_scan *m = &b->d->scan;
  const int64_t n = m->heads * m->width, all[] = {n, lp_decoder_channels(b->d, b->index), m->heads};
  const int64_t widths[] = {n, m->groups * m->state, m->groups * m->state};
  const lp_factors *f = b->d->factors;
  lp_value *in[3], *parts[3];
  x = lp_part_scaled(b, x, f ? f->scan_in : 1);
  for (int64_t i = 0, first = 0; i < 3; first += all[i++])
    in[i] = lp_part_linear(b, x, LP_ROLE_CONV_IN, b->d->hidden, (lp_span){first, all[i], all[0] + all[1] + all[2]});
  in[1] = convolved(b, parts_scaled(b, in[1], widths), &present[0]);
  lp_part_split(b, lp_part_activated(b, in[1], m->activation ? m->activation : b->d->activation), 3, widths, parts);
  lp_value *y = scanned(b, parts[0], lp_part_scaled(b, in[2], f ? f->scan[4] : 1), &parts[1], &present[1]);
  y = gated_norm(b, y, lp_part_scaled(b, in[0], f ? f->scan[0] : 1));
  return lp_part_scaled(b, lp_part_whole(b, y, LP_ROLE_CONV_OUT, n, b->d->hidden), f ? f->scan_out : 1);
}

/* ---- gated delta nets -------------------------------------------------------------------------------------------- */

/* Heads of x [b, s, groups * state], divided by their lengths (transformers' l2norm). */
static lp_value *unit_heads(lp_builder *b, lp_value *x) {
  const lp_scan *m = &b->d->scan;
  const int64_t apart[] = {0, 0, m->groups, m->state}, joined[] = {0, 0, m->groups * m->state};
  const double size = (double)m->state;
  x = lp_part_normalised(b, lp_part_reshaped(b, x, LP_COUNT(apart), apart), m->state, 1e-6 / size);
  return lp_part_scaled(b, lp_part_reshaped(b, x, LP_COUNT(joined), joined), 1 / sqrt(size));
}

/* The `count` parts of x [b, s, ..] that each group of heads has, one after the other: each [b, s, groups * width]. */
static void split_groups(lp_builder *b, lp_value *x, int32_t count, const int64_t *widths, lp_value **parts) {
  int64_t apart[] = {0, 0, b->d->scan.groups, 0};
  for (int32_t i = 0; i < count; i++)
    apart[3] += widths[i];
  lp_part_split(b, lp_part_reshaped(b, x, LP_COUNT(apart), apart), count, widths, parts);
  for (int32_t i = 0; i < count; i++) {
    const int64_t joined[] = {0, 0, apart[2] * widths[i]};
    parts[i] = lp_part_reshaped(b, parts[i], LP_COUNT(joined), joined);
  }
}

/* What is convolved, the gate, the rates of correction and the time steps, each a product of its own or packed by
 * groups of heads. */
static void project(lp_builder *b, lp_value *x, lp_value *out[4]) {
  const lp_scan *m = &b->d->scan;
  const int64_t n = m->heads * m->width, keys = m->groups * m->state, inputs = b->d->hidden;
  const int64_t own = n / m->groups, widths[] = {m->state, m->state, own, own};
  const int64_t heads[] = {m->heads / m->groups, m->heads / m->groups};
  if (b->d->names[LP_ROLE_GATE_IN]) {
    out[0] = lp_part_whole(b, x, LP_ROLE_CONV_IN, inputs, 2 * keys + n);
    out[1] = lp_part_whole(b, x, LP_ROLE_GATE_IN, inputs, n);
  } else {
    lp_value *qkvz[4];
    split_groups(b, lp_part_whole(b, x, LP_ROLE_CONV_IN, inputs, 2 * keys + 2 * n), 4, widths, qkvz);
    out[0] = lp_part_joined(b, lp_part_joined(b, qkvz[0], qkvz[1]), qkvz[2]);
    out[1] = qkvz[3];
  }
  if (b->d->names[LP_ROLE_BETA_IN]) {
    out[2] = lp_part_whole(b, x, LP_ROLE_BETA_IN, inputs, m->heads);
    out[3] = lp_part_whole(b, x, LP_ROLE_STEP_IN, inputs, m->heads);
  } else {
    split_groups(b, lp_part_whole(b, x, LP_ROLE_STEP_IN, inputs, 2 * m->heads), 2, heads, &out[2]);
  }
}

/* The state of each head, S = exp(A dt) S + k (x) beta (v - exp(A dt) S^T k), read by the queries (transformers'
 * Qwen3NextGatedDeltaNet). */
lp_value *lp_part_delta(lp_builder *b, lp_value *x, lp_value **present) {
  const lp_scan *m = &b->d->scan;
  const int64_t n = m->heads * m->width, keys = m->groups * m->state, widths[] = {keys, keys, n};
  const int64_t apart[] = {0, 0, m->heads, m->width}, joined[] = {0, 0, n};
  lp_value *in[4], *qkv[3], *decay;
  project(b, x, in);
  lp_part_split(b, lp_part_activated(b, convolved(b, in[0], &present[0]), b->d->activation), 3, widths, qkv);
  (void)steps(b, in[3], &decay);
  for (int i = 0; i < 2; i++)
    qkv[i] = unit_heads(b, qkv[i]);
  lp_value *beta = lp_graph_op1(&b->g, LP_ONNX_Sigmoid, in[2]);
  lp_value *y = attended(b, qkv, decay, beta, 1 / sqrt((double)m->state), &present[1]);
  lp_part_enter(b, LP_ROLE_GATED_NORM);
  y = lp_part_normalised(b, lp_part_reshaped(b, y, LP_COUNT(apart), apart), m->width, b->d->epsilon);
  y = lp_graph_op2(&b->g, LP_ONNX_Mul, y, lp_part_vector(b, lp_part_name(b, LP_ROLE_GATED_NORM, ".weight"), m->width));
  y = lp_graph_op2(&b->g, LP_ONNX_Mul, lp_part_reshaped(b, y, LP_COUNT(joined), joined),
                   lp_graph_op1(&b->g, LP_ONNX_Swish, in[1]));
  return lp_part_whole(b, y, LP_ROLE_CONV_OUT, n, b->d->hidden);
}
