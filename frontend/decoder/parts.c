/* The parts of which layers are built: see parts.h. */
#include "frontend/decoder/parts.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* "model.layers.3.mlp.up_proj" + ".weight" */
const char *lp_part_name(const lp_builder *b, lp_role role, const char *suffix) {
  const char *form = b->d->names[role], *digit = strstr(form, "%d");
  lp_arena *arena = b->g.module->arena;
  if (!digit) return lp_arena_format(arena, "%s%s", form, suffix);
  return lp_arena_format(arena, "%.*s%" PRId64 "%s%s", (int)(digit - form), form, b->index, digit + 2, suffix);
}

bool lp_part_has(const lp_builder *b, lp_role role, const char *suffix) {
  return b->d->names[role] && lp_weights_find(b->w, lp_part_name(b, role, suffix));
}

/* Gives the role's name to the nodes of the operators that follow. */
void lp_part_enter(lp_builder *b, lp_role role) {
  b->g.node = lp_part_name(b, role, "");
}

lp_value *lp_part_fail(lp_builder *b, lp_status status) {
  if (b->g.status == LP_OK) b->g.status = status;
  return NULL;
}

lp_value *lp_part_linear(lp_builder *b, lp_value *x, lp_role role, int64_t inputs, lp_span out) {
  lp_value *w = NULL, *bias = NULL;
  lp_status status = LP_OK;
  lp_weight_part part = {.first = out.first, .rows = out.count, .all = out.all, .columns = inputs};
  part.transposed = b->d->transposed && b->index >= 0;
  lp_part_enter(b, role);
  if (!x || b->g.status != LP_OK) return NULL;
  status = lp_weights_matrix(b->w, lp_part_name(b, role, ".weight"), part, &w);
  if (status != LP_OK) return lp_part_fail(b, status);
  lp_value *y = lp_graph_op2(&b->g, LP_ONNX_MatMul, x, w);
  if (!y || !lp_part_has(b, role, ".bias")) return y;
  int64_t first = part.transposed ? 0 : out.first, count = part.transposed ? out.all : out.count;
  status = lp_weights_vector(b->w, lp_part_name(b, role, ".bias"), first, count, out.all, 0, &bias);
  return status == LP_OK ? lp_graph_op2(&b->g, LP_ONNX_Add, y, bias) : lp_part_fail(b, status);
}

lp_value *lp_part_whole(lp_builder *b, lp_value *x, lp_role role, int64_t inputs, int64_t outputs) {
  return lp_part_linear(b, x, role, inputs, (lp_span){0, outputs, outputs});
}

lp_value *lp_part_scaled(lp_builder *b, lp_value *x, double factor) {
  return factor == 1 || !x ? x : lp_graph_op2(&b->g, LP_ONNX_Mul, x, lp_graph_float(&b->g, factor));
}

lp_value *lp_part_unsqueezed(lp_builder *b, lp_value *x, int64_t axis) {
  return x ? lp_graph_op2(&b->g, LP_ONNX_Unsqueeze, x, lp_graph_ints(&b->g, 1, &axis)) : NULL;
}

lp_value *lp_part_reshaped(lp_builder *b, lp_value *x, int64_t rank, const int64_t *sizes) {
  return x ? lp_graph_op2(&b->g, LP_ONNX_Reshape, x, lp_graph_ints(&b->g, rank, sizes)) : NULL;
}

void lp_part_split(lp_builder *b, lp_value *x, int32_t count, const int64_t *widths, lp_value **parts) {
  lp_value *in[] = {x, lp_graph_ints(&b->g, count, widths)};
  lp_op *op = x ? lp_graph_begin(&b->g, LP_ONNX_Split, 2, in, count) : NULL;
  if (op) lp_op_set_i64(b->g.module, op, "axis", x->type.rank - 1);
  const bool ok = lp_graph_end(&b->g, op) && op;
  for (int32_t i = 0; i < count; i++)
    parts[i] = ok ? op->out[i] : NULL;
}

lp_value *lp_part_joined(lp_builder *b, lp_value *x, lp_value *y) {
  lp_value *in[] = {x, y};
  lp_op *op = x && y ? lp_graph_begin(&b->g, LP_ONNX_Concat, 2, in, 1) : NULL;
  if (op) lp_op_set_i64(b->g.module, op, "axis", -1);
  return lp_graph_end(&b->g, op);
}

void lp_part_flatten(lp_builder *b, const char *name) {
  lp_stored *t = lp_weights_find(b->w, name);
  for (; t && t->rank > 1; t->rank--)
    t->dim[0] *= t->dim[t->rank - 1];
}

lp_value *lp_part_vector(lp_builder *b, const char *name, int64_t count) {
  lp_value *value = NULL;
  if (b->g.status != LP_OK) return NULL;
  lp_part_flatten(b, name);
  lp_status status = lp_weights_vector(b->w, name, 0, count, count, 0, &value);
  return status == LP_OK ? value : lp_part_fail(b, status);
}

static lp_value *norm_with(lp_builder *b, lp_value **in, double epsilon) {
  lp_kind kind = b->d->norm == LP_NORM_RMS ? LP_ONNX_RMSNormalization : LP_ONNX_LayerNormalization;
  lp_op *op = lp_graph_begin(&b->g, kind, in[2] ? 3 : 2, in, 1);
  if (op) lp_op_set_i64(b->g.module, op, "axis", -1);
  if (op) lp_op_set_f64(b->g.module, op, "epsilon", epsilon);
  return lp_graph_end(&b->g, op);
}

lp_value *lp_part_normalised(lp_builder *b, lp_value *x, int64_t size, double epsilon) {
  float *ones = LP_NEW_ARRAY(b->g.module->arena, float, size);
  for (int64_t i = 0; i < size; i++)
    ones[i] = 1;
  lp_value *in[] = {x, lp_graph_floats(&b->g, 1, &size, ones), NULL};
  return norm_with(b, in, epsilon);
}

lp_value *lp_part_norm(lp_builder *b, lp_value *x, lp_role role, int64_t size, double epsilon) {
  const lp_decoder *d = b->d;
  lp_value *in[] = {x, NULL, NULL};
  lp_part_enter(b, role);
  if (!x || b->g.status != LP_OK) return NULL;
  if (d->norm == LP_NORM_LAYER_PLAIN || (d->norm_unscaled && (role == LP_ROLE_Q_NORM || role == LP_ROLE_K_NORM)))
    return lp_part_normalised(b, x, size, epsilon);
  lp_status status = lp_weights_vector(b->w, lp_part_name(b, role, ".weight"), 0, size, size, d->norm_offset, &in[1]);
  if (status == LP_OK && d->norm == LP_NORM_LAYER && lp_part_has(b, role, ".bias"))
    status = lp_weights_vector(b->w, lp_part_name(b, role, ".bias"), 0, size, size, 0, &in[2]);
  return status == LP_OK ? norm_with(b, in, epsilon) : lp_part_fail(b, status);
}

lp_value *lp_part_activated(lp_builder *b, lp_value *x, const char *activation) {
  static const struct {
    const char *name;
    lp_kind kind;
    const char *approximate;
    double alpha;
  } forms[] = {{"silu", LP_ONNX_Swish, NULL, 1},  {"quick_gelu", LP_ONNX_Swish, NULL, 1.702},
               {"gelu", LP_ONNX_Gelu, "none", 0}, {"gelu_tanh", LP_ONNX_Gelu, "tanh", 0},
               {"relu", LP_ONNX_Relu, NULL, 0},   {"relu2", LP_ONNX_Relu, NULL, 0}};
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    if (!lp_streq(activation, forms[i].name)) continue;
    lp_op *op = lp_graph_begin(&b->g, forms[i].kind, 1, &x, 1);
    if (op && forms[i].approximate) lp_op_set_str(b->g.module, op, "approximate", forms[i].approximate);
    if (op && forms[i].alpha != 0) lp_op_set_f64(b->g.module, op, "alpha", forms[i].alpha);
    lp_value *y = lp_graph_end(&b->g, op);
    return lp_streq(activation, "relu2") ? lp_graph_op2(&b->g, LP_ONNX_Mul, y, y) : y;
  }
  return lp_part_fail(b, lp_error(b->g.diag, LP_LOC_FILE(b->g.path), "activation '%s' is not supported", activation));
}

lp_value *lp_part_gated(lp_builder *b, lp_value *x, lp_role gate, lp_role up, lp_role down, int64_t ffn) {
  const lp_decoder *d = b->d;
  const bool packed = gate == LP_ROLE_GATE && d->names[LP_ROLE_GATE_UP];
  const lp_factors *f = d->factors;
  lp_value *y = packed           ? lp_part_linear(b, x, LP_ROLE_GATE_UP, d->hidden, (lp_span){0, ffn, 2 * ffn})
                : d->names[gate] ? lp_part_whole(b, x, gate, d->hidden, ffn)
                                 : lp_part_whole(b, x, up, d->hidden, ffn);
  y = lp_part_activated(b, lp_part_scaled(b, y, f ? f->gate : 1), d->activation);
  if (packed)
    y = lp_graph_op2(&b->g, LP_ONNX_Mul, y,
                     lp_part_linear(b, x, LP_ROLE_GATE_UP, d->hidden, (lp_span){ffn, ffn, 2 * ffn}));
  else if (d->names[gate])
    y = lp_graph_op2(&b->g, LP_ONNX_Mul, y, lp_part_whole(b, x, up, d->hidden, ffn));
  return lp_part_scaled(b, lp_part_whole(b, y, down, ffn, d->hidden), f ? f->down : 1);
}

lp_value *lp_part_mlp(lp_builder *b, lp_value *x) {
  return lp_part_gated(b, x, LP_ROLE_GATE, LP_ROLE_UP, LP_ROLE_DOWN, b->d->ffn);
}
