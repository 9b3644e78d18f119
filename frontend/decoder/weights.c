/* The tensors of a checkpoint: see weights.h. Weights stay where they are in the mapped file; only vectors are read. */
#include "frontend/decoder/weights.h"
#include "frontend/decoder/graph.h"

static lp_graph graph_at(const lp_weights *w, const char *name) {
  return (lp_graph){.module = w->module,
                    .block = w->block,
                    .path = w->path,
                    .node = lp_arena_strdup(w->module->arena, name),
                    .diag = w->diag};
}

lp_stored *lp_weights_find(const lp_weights *w, const char *name) {
  return lp_map_get(w->tensors, name);
}

static lp_status find(const lp_weights *w, const char *name, lp_stored **out) {
  *out = lp_weights_find(w, name);
  if (!*out) return lp_error(w->diag, LP_LOC_FILE(w->path), "there is no tensor '%s'", name);
  (*out)->used = true;
  if (lp_dtype_is_float((*out)->dtype) && !lp_dtype_is_mini((*out)->dtype)) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' is of type %s; f32, f16 and bf16 are supported", name,
                  lp_dtype_name((*out)->dtype));
}

static lp_status find_matrix(const lp_weights *w, const char *name, int64_t rows, int64_t columns, lp_stored **out) {
  LP_TRY(find(w, name, out));
  const lp_stored *t = *out;
  if (t->rank == 2 && t->dim[0] == rows && t->dim[1] == columns) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path),
                  "tensor '%s' has %d axes, %" PRId64 " x %" PRId64 "; %" PRId64 " x %" PRId64 " is wanted", name,
                  t->rank, t->rank > 0 ? t->dim[0] : 1, t->rank > 1 ? t->dim[1] : 1, rows, columns);
}

/* Rows [first, first + rows) of the stored matrix, by reference. */
static lp_value *weight(lp_graph *g, const lp_stored *t, int64_t first, int64_t rows) {
  int64_t dim[] = {rows, t->dim[1]}, row = t->bytes / (t->dim[0] > 0 ? t->dim[0] : 1);
  lp_loc loc = {.file = g->path, .node = g->node, .op = "weight"};
  lp_op *op = lp_weight_create(g->module, loc, lp_type_static(g->module, t->dtype, 2, dim), t->file,
                               t->offset + first * row, rows * row);
  lp_value *value = lp_graph_end(g, op);
  if (value) value->name = g->node;
  return value;
}

lp_status lp_weights_matrix(lp_weights *w, const char *name, lp_part part, lp_value **out) {
  lp_stored *t;
  lp_graph g = graph_at(w, name);
  if (part.transposed) {
    LP_TRY(find_matrix(w, name, part.columns, part.all, &t));
    *out = lp_graph_cast(&g, weight(&g, t, 0, t->dim[0]), LP_F32);
  } else {
    LP_TRY(find_matrix(w, name, part.all, part.columns, &t));
    lp_value *rows = lp_graph_cast(&g, weight(&g, t, part.first, part.rows), LP_F32);
    *out = lp_graph_op1(&g, LP_ONNX_Transpose, rows);
  }
  return g.status;
}

lp_status lp_weights_vector(lp_weights *w, const char *name, int64_t first, int64_t count, int64_t all, double offset,
                            lp_value **out) {
  lp_stored *t;
  lp_graph g = graph_at(w, name);
  LP_TRY(find(w, name, &t));
  if (t->rank != 1 || t->dim[0] != all)
    return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' has %d axes, %" PRId64 "; one of %" PRId64 " is wanted",
                    name, t->rank, t->rank > 0 ? t->dim[0] : 1, all);
  lp_tensor tensor;
  lp_loc loc = {.file = w->path, .node = g.node, .op = "weight"};
  lp_op *op =
      lp_weight_create(w->module, loc, lp_type_static(w->module, t->dtype, 1, t->dim), t->file, t->offset, t->bytes);
  LP_TRY(lp_weight_data(w->module, op->out[0], &tensor, w->diag));
  float *data = LP_NEW_ARRAY(w->module->arena, float, count + 1);
  for (int64_t i = 0; i < count; i++)
    data[i] = (float)(lp_tensor_f64(&tensor, first + i) + offset);
  *out = lp_graph_floats(&g, 1, &count, data);
  if (*out) (*out)->name = g.node;
  return g.status;
}

lp_status lp_weights_rows(lp_weights *w, const char *name, int64_t rows, int64_t columns, lp_value *index,
                          lp_value **out) {
  lp_stored *t;
  lp_graph g = graph_at(w, name);
  LP_TRY(find_matrix(w, name, rows, columns, &t));
  *out = lp_graph_cast(&g, lp_graph_op2(&g, LP_ONNX_Gather, weight(&g, t, 0, rows), index), LP_F32);
  return g.status;
}

lp_status lp_weights_check_used(const lp_weights *w) {
  for (size_t i = 0; i < lp_map_count(w->tensors); i++) {
    const lp_stored *t = lp_map_value_at(w->tensors, i);
    if (!t->used)
      return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' has no place in this family of models", t->name);
  }
  return LP_OK;
}
