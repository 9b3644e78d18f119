/* Appends operators to a block: see graph.h. */
#include "frontend/decoder/graph.h"

lp_op *lp_graph_begin(lp_graph *g, lp_kind kind, int32_t in_count, lp_value *const *in, int32_t out_count) {
  lp_type unknown[LP_MAX_RANK];
  for (int32_t i = 0; i < out_count; i++)
    unknown[i] = (lp_type){.rank = -1};
  if (g->status != LP_OK || (in_count > 0 && !in[0])) return NULL;
  const char *name = lp_op_info_get(kind)->name;
  lp_loc loc = {.file = g->path, .node = g->node, .op = strchr(name, '.') + 1};
  return lp_op_create(g->module, kind, loc, in_count, in, out_count, unknown);
}

lp_value *lp_graph_end(lp_graph *g, lp_op *op) {
  if (!op) return NULL;
  lp_op_append(g->block, op);
  g->status = lp_op_infer(g->module, op, g->diag);
  return g->status == LP_OK ? op->out[0] : NULL;
}

lp_value *lp_graph_op1(lp_graph *g, lp_kind kind, lp_value *x) {
  return lp_graph_end(g, lp_graph_begin(g, kind, 1, &x, 1));
}

lp_value *lp_graph_op2(lp_graph *g, lp_kind kind, lp_value *x, lp_value *y) {
  lp_value *in[] = {x, y};
  return y ? lp_graph_end(g, lp_graph_begin(g, kind, 2, in, 1)) : NULL;
}

lp_value *lp_graph_cast(lp_graph *g, lp_value *x, lp_dtype dtype) {
  if (!x || x->type.dtype == dtype) return x;
  lp_op *op = lp_graph_begin(g, LP_ONNX_Cast, 1, &x, 1);
  if (op) lp_op_set_i64(g->module, op, "to", lp_dtype_onnx(dtype));
  return lp_graph_end(g, op);
}

static lp_value *constant(lp_graph *g, lp_type type, const void *data, size_t bytes) {
  lp_loc loc = {.file = g->path, .node = g->node, .op = "constant"};
  if (g->status != LP_OK) return NULL;
  lp_tensor tensor = {.type = type, .data = lp_arena_copy(g->module->arena, data, bytes), .bytes = bytes};
  return lp_graph_end(g, lp_constant_create(g->module, loc, tensor));
}

lp_value *lp_graph_floats(lp_graph *g, int32_t rank, const int64_t *dim, const float *data) {
  size_t bytes = sizeof *data;
  for (int32_t i = 0; i < rank; i++)
    bytes *= (size_t)dim[i];
  return constant(g, lp_type_static(g->module, LP_F32, rank, dim), data, bytes);
}

lp_value *lp_graph_float(lp_graph *g, double value) {
  float number = (float)value;
  return lp_graph_floats(g, 0, NULL, &number);
}

lp_value *lp_graph_int(lp_graph *g, int64_t value) {
  return constant(g, lp_type_static(g->module, LP_I64, 0, NULL), &value, sizeof value);
}

lp_value *lp_graph_ints(lp_graph *g, int64_t count, const int64_t *data) {
  return constant(g, lp_type_static(g->module, LP_I64, 1, &count), data, (size_t)count * sizeof *data);
}
