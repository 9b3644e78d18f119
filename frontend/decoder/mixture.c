/* Mixtures of experts: the router, the products of the experts that it chooses, and their sum. */
#include "frontend/decoder/parts.h"

#include <math.h>

/* The names of the role's tensors: one for each expert where its name has a second %d. */
static const char *const *expert_names(const lp_builder *b, lp_role role, int64_t *count) {
  const char *name = lp_part_name(b, role, ""), *digit = strstr(name, "%d");
  lp_arena *arena = b->g.module->arena;
  *count = digit ? b->d->mixture.experts : 1;
  const char **names = LP_NEW_ARRAY(arena, const char *, *count);
  for (int64_t e = 0; e < *count; e++)
    names[e] = digit ? lp_arena_format(arena, "%.*s%" PRId64 "%s", (int)(digit - name), name, e, digit + 2) : name;
  return names;
}

/* The bias of one tensor of all experts, [experts][outputs] in the file; NULL: it has none. */
static lp_value *bias_of(lp_builder *b, lp_role role, int64_t count) {
  const char *name = lp_part_name(b, role, "");
  const bool weight = lp_has_suffix(name, ".weight");
  name = lp_arena_format(b->g.module->arena, "%.*s%s", (int)(strlen(name) - (weight ? strlen(".weight") : 0)), name,
                         weight ? ".bias" : "_bias");
  return lp_weights_find(b->w, name) ? lp_part_vector(b, name, count) : NULL;
}

/* Rows x [b, s, j or 1, inputs] times their experts' outputs [first, first + out.count). */
static lp_value *experts(lp_builder *b, lp_value *x, lp_value *index, lp_role role, int64_t inputs, lp_span out) {
  int64_t count, each = b->d->mixture.experts;
  lp_value *in[] = {x, index, NULL, NULL};
  if (!x || !index || b->g.status != LP_OK) return NULL;
  const char *const *names = expert_names(b, role, &count);
  b->g.node = names[0];
  lp_weight_stack part = {.experts = each, .first = out.first, .rows = out.count, .all = out.all, .columns = inputs};
  lp_status status = lp_weights_stack(b->w, count, names, part, &in[2]);
  if (status != LP_OK) return lp_part_fail(b, status);
  in[3] = bias_of(b, role, each * out.count);
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_Experts, in[3] ? 4 : 3, in, 1);
  if (op) lp_op_set_i64(b->g.module, op, "experts", each);
  return lp_graph_end(&b->g, op);
}

static lp_value *with_axis(lp_builder *b, lp_kind kind, lp_value *x, int64_t axis) {
  lp_op *op = lp_graph_begin(&b->g, kind, 1, &x, 1);
  if (op) lp_op_set_i64(b->g.module, op, "axis", axis);
  return lp_graph_end(&b->g, op);
}

static lp_value *sum_of(lp_builder *b, lp_value *x, int64_t axis, bool keeps) {
  lp_value *in[] = {x, lp_graph_ints(&b->g, 1, &axis)};
  lp_op *op = x ? lp_graph_begin(&b->g, LP_ONNX_ReduceSum, 2, in, 1) : NULL;
  if (op) lp_op_set_i64(b->g.module, op, "keepdims", keeps);
  return lp_graph_end(&b->g, op);
}

/* The `count` greatest of the last axis, and where they are. */
static lp_value *greatest(lp_builder *b, lp_value *x, int64_t count, lp_value **index) {
  lp_value *in[] = {x, lp_graph_ints(&b->g, 1, &count)};
  lp_op *op = x ? lp_graph_begin(&b->g, LP_ONNX_TopK, 2, in, 2) : NULL;
  lp_value *values = lp_graph_end(&b->g, op);
  *index = values && op ? op->out[1] : NULL;
  return values;
}

static lp_value *at_index(lp_builder *b, lp_value *x, lp_value *index) {
  lp_value *in[] = {x, index};
  lp_op *op = index ? lp_graph_begin(&b->g, LP_ONNX_GatherElements, 2, in, 1) : NULL;
  if (op) lp_op_set_i64(b->g.module, op, "axis", -1);
  return lp_graph_end(&b->g, op);
}

/* One step of transformers' sparsemixer: the greatest of the scores `left`, and its share among those that are near
 * it. */
static lp_value *mixer_step(lp_builder *b, lp_value *scores, lp_value *left, lp_value **most, lp_value **index) {
  *most = greatest(b, left, 1, index);
  if (!*most) return NULL;
  lp_value *size = lp_graph_op2(&b->g, LP_ONNX_Max, lp_graph_op1(&b->g, LP_ONNX_Abs, scores), *most);
  lp_value *distance = lp_graph_op2(&b->g, LP_ONNX_Div, lp_graph_op2(&b->g, LP_ONNX_Sub, *most, scores), size);
  lp_value *limit = lp_graph_float(&b->g, 2 * b->d->mixture.jitter);
  lp_value *in[] = {lp_graph_op2(&b->g, LP_ONNX_Greater, distance, limit), lp_graph_float(&b->g, -INFINITY), left};
  lp_value *near = in[0] && in[1] ? lp_graph_end(&b->g, lp_graph_begin(&b->g, LP_ONNX_Where, 3, in, 1)) : NULL;
  return at_index(b, with_axis(b, LP_ONNX_Softmax, near, -1), *index);
}

static lp_value *mixed(lp_builder *b, lp_value *scores, lp_value **index) {
  lp_value *most, *at[2], *second;
  lp_value *first = mixer_step(b, scores, scores, &most, &at[0]);
  lp_value *in[] = {scores, at[0],
                    first ? lp_graph_op2(&b->g, LP_ONNX_Min, most, lp_graph_float(&b->g, -INFINITY)) : NULL};
  lp_op *op = in[2] ? lp_graph_begin(&b->g, LP_ONNX_ScatterElements, 3, in, 1) : NULL;
  if (op) lp_op_set_i64(b->g.module, op, "axis", -1);
  second = mixer_step(b, scores, lp_graph_end(&b->g, op), &most, &at[1]);
  *index = second ? lp_part_joined(b, at[0], at[1]) : NULL;
  return lp_part_joined(b, first, second);
}

/* The scores by which experts are chosen, -inf outside of the groups with the greatest sums of scores. */
static lp_value *in_groups(lp_builder *b, lp_value *scores) {
  const lp_mixture *m = &b->d->mixture;
  const int64_t size = m->groups > 0 ? m->experts / m->groups : 0, apart[] = {0, 0, m->groups, size};
  lp_value *index;
  if (m->taken == m->groups || size == 0 || !scores) return scores;
  int64_t *group_of = LP_NEW_ARRAY(b->g.module->arena, int64_t, m->experts);
  for (int64_t e = 0; e < m->experts; e++)
    group_of[e] = e / size;
  lp_value *best = lp_graph_op2(&b->g, LP_ONNX_Reshape, scores, lp_graph_ints(&b->g, 4, apart));
  best = sum_of(b, greatest(b, best, size < m->summed ? size : m->summed, &index), -1, false);
  (void)greatest(b, best, m->taken, &index);
  index = lp_part_unsqueezed(b, index, -1);
  lp_value *taken =
      index ? lp_graph_op2(&b->g, LP_ONNX_Equal, index, lp_graph_ints(&b->g, m->experts, group_of)) : NULL;
  taken = sum_of(b, lp_graph_cast(&b->g, taken, LP_F32), 2, false);
  lp_value *in[] = {lp_graph_cast(&b->g, taken, LP_BOOL), scores, lp_graph_float(&b->g, -INFINITY)};
  return in[0] && in[2] ? lp_graph_end(&b->g, lp_graph_begin(&b->g, LP_ONNX_Where, 3, in, 1)) : NULL;
}

/* Chooses experts by their scores with the router's bias, where there is one; returns the scores of the chosen. */
static lp_value *chosen(lp_builder *b, lp_value *scores, lp_value **index) {
  lp_value *y = scores;
  const int64_t experts = b->d->mixture.experts;
  if (b->d->names[LP_ROLE_ROUTER_BIAS])
    y = lp_graph_op2(&b->g, LP_ONNX_Add, y, lp_part_vector(b, lp_part_name(b, LP_ROLE_ROUTER_BIAS, ""), experts));
  (void)greatest(b, in_groups(b, y), b->d->mixture.chosen, index);
  return at_index(b, scores, *index);
}

/* The weights [b, s, chosen] of the chosen experts, and their numbers. */
static lp_value *route(lp_builder *b, lp_value *x, lp_value **index) {
  const lp_mixture *m = &b->d->mixture;
  lp_value *scores = lp_part_whole(b, x, LP_ROLE_ROUTER, b->d->hidden, m->experts), *y = NULL;
  switch (m->route) {
  case LP_ROUTE_SOFTMAX:
    y = with_axis(b, LP_ONNX_Softmax, scores, -1);
    y = lp_part_has(b, LP_ROLE_ROUTER_BIAS, "") ? chosen(b, y, index) : greatest(b, in_groups(b, y), m->chosen, index);
    break;
  case LP_ROUTE_CHOSEN:
    y = with_axis(b, LP_ONNX_Softmax, greatest(b, scores, m->chosen, index), -1);
    break;
  case LP_ROUTE_MIXER:
    y = mixed(b, scores, index);
    break;
  case LP_ROUTE_INPUT:
    y = greatest(b, scores, m->chosen, index);
    y = y ? lp_graph_op1(&b->g, LP_ONNX_Sigmoid, y) : NULL;
    break;
  case LP_ROUTE_SIGMOID:
    y = chosen(b, lp_graph_op1(&b->g, LP_ONNX_Sigmoid, scores), index);
  }
  if (m->normalised && y) {
    lp_value *sum = sum_of(b, y, -1, true);
    lp_kind kind = m->bounded ? LP_ONNX_Max : LP_ONNX_Add;
    if (m->least != 0 && sum) sum = lp_graph_op2(&b->g, kind, sum, lp_graph_float(&b->g, m->least));
    y = lp_graph_op2(&b->g, LP_ONNX_Div, y, sum);
  }
  return lp_part_scaled(b, y, m->scale);
}

/* (up + 1) gate sigmoid(alpha gate), of gpt-oss; the gate is clamped from above only. */
static lp_value *clamped(lp_builder *b, lp_value *gate, lp_value *up) {
  const double limit = b->d->mixture.limit;
  lp_value *bounds[] = {up, lp_graph_float(&b->g, -limit), lp_graph_float(&b->g, limit)};
  if (!gate || !up) return NULL;
  gate = lp_graph_op2(&b->g, LP_ONNX_Min, gate, lp_graph_float(&b->g, limit));
  up = lp_graph_end(&b->g, lp_graph_begin(&b->g, LP_ONNX_Clip, 3, bounds, 1));
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_Swish, 1, &gate, 1);
  if (op) lp_op_set_f64(b->g.module, op, "alpha", b->d->mixture.alpha);
  gate = lp_graph_end(&b->g, op);
  return lp_graph_op2(&b->g, LP_ONNX_Mul, gate, lp_graph_op2(&b->g, LP_ONNX_Add, up, lp_graph_float(&b->g, 1)));
}

lp_value *lp_part_mixture(lp_builder *b, lp_value *x) {
  const lp_decoder *d = b->d;
  const int64_t n = d->mixture.ffn, latent = d->mixture.latent, width = latent ? latent : d->hidden;
  const bool weighs_input = d->mixture.route == LP_ROUTE_INPUT;
  lp_value *index = NULL, *weights = lp_part_unsqueezed(b, route(b, x, &index), -1), *rows = x, *y;
  if (latent) rows = lp_part_whole(b, x, LP_ROLE_LATENT_IN, d->hidden, latent);
  rows = lp_part_unsqueezed(b, rows, 2);
  if (weighs_input) rows = lp_graph_op2(&b->g, LP_ONNX_Mul, rows, weights);
  bool packed = !d->names[LP_ROLE_EXPERT_UP] || lp_part_has(b, LP_ROLE_EXPERTS_GATE_UP, "");
  const bool gated = !d->mixture.ungated;
  lp_role first = packed ? LP_ROLE_EXPERTS_GATE_UP : gated ? LP_ROLE_EXPERT_GATE : LP_ROLE_EXPERT_UP;
  lp_role second = packed ? LP_ROLE_EXPERTS_GATE_UP : LP_ROLE_EXPERT_UP;
  const int64_t all_rows = packed && gated ? 2 * n : n;
  y = experts(b, rows, index, first, width, (lp_span){0, n, all_rows});
  if (d->mixture.limit == 0) y = lp_part_activated(b, y, d->activation);
  lp_value *up = gated ? experts(b, rows, index, second, width, (lp_span){packed ? n : 0, n, all_rows}) : NULL;
  if (gated) y = d->mixture.limit == 0 ? lp_graph_op2(&b->g, LP_ONNX_Mul, y, up) : clamped(b, y, up);
  y = experts(b, y, index, packed ? LP_ROLE_EXPERTS_DOWN : LP_ROLE_EXPERT_DOWN, n, (lp_span){0, width, width});
  if (!weighs_input) y = lp_graph_op2(&b->g, LP_ONNX_Mul, y, weights);
  y = sum_of(b, y, 2, false);
  if (latent) y = lp_part_whole(b, y, LP_ROLE_LATENT_OUT, width, d->hidden);
  if (d->mixture.shared_ffn == 0) return y;
  lp_value *all = d->names[LP_ROLE_SHARED_UP] ? lp_part_gated(b, x, LP_ROLE_SHARED_GATE, LP_ROLE_SHARED_UP,
                                                              LP_ROLE_SHARED_DOWN, d->mixture.shared_ffn)
                                              : lp_part_mlp(b, x);
  if (d->names[LP_ROLE_SHARED_SCALE]) {
    lp_value *scale = lp_part_whole(b, x, LP_ROLE_SHARED_SCALE, d->hidden, 1);
    all = scale ? lp_graph_op2(&b->g, LP_ONNX_Mul, all, lp_graph_op1(&b->g, LP_ONNX_Sigmoid, scale)) : NULL;
  }
  return lp_graph_op2(&b->g, LP_ONNX_Add, y, all);
}
