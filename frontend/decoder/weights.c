/* The tensors of a checkpoint: see weights.h. Weights stay in the mapped file, also those in blocks. Only vectors are
 * read. */
#include "frontend/decoder/weights.h"
#include "base/file.h"
#include "base/number.h"
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

const uint8_t *lp_weights_bytes(const lp_weights *w, const lp_stored *t) {
  const lp_mapping *mapping = lp_map_get(w->module->sources, t->file);
  return mapping->data + t->offset;
}

lp_status lp_weights_move(lp_weights *w, lp_stored *t, size_t size, uint8_t **data) {
  lp_arena *arena = w->module->arena;
  lp_mapping *mapping = LP_NEW(arena, lp_mapping);
  LP_TRY(lp_memory_map(size, mapping, data, w->diag));
  t->file = lp_arena_format(arena, "%s#%s", t->file, t->name);
  t->offset = 0;
  lp_map_put(w->module->sources, t->file, mapping);
  return LP_OK;
}

/* Rounds f64 to f32, the type in which the layers compute. */
static lp_status narrow(lp_weights *w, lp_stored *t) {
  if (t->dtype != LP_F64) return LP_OK;
  const uint8_t *from = lp_weights_bytes(w, t);
  const int64_t count = t->bytes / (int64_t)sizeof(double);
  uint8_t *data;
  LP_TRY(lp_weights_move(w, t, (size_t)count * sizeof(float), &data));
  for (int64_t i = 0; i < count && !w->absent_ok; i++) {
    double wide;
    memcpy(&wide, from + i * (int64_t)sizeof wide, sizeof wide);
    const float rounded = (float)wide;
    memcpy(data + i * (int64_t)sizeof rounded, &rounded, sizeof rounded);
  }
  t->dtype = LP_F32;
  t->bytes = count * (int64_t)sizeof(float);
  return LP_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static lp_stored *assume(const lp_weights *w, const char *name, int32_t rank, const int64_t *dim) {
  lp_arena *arena = w->module->arena;
  lp_stored *t = LP_NEW(arena, lp_stored);
  *t = (lp_stored){.name = name, .file = lp_arena_strdup(arena, name), .dtype = w->assumed, .rank = rank};
  t->bytes = lp_dtype_bits(w->assumed) / 8;
  for (int32_t i = 0; i < rank; i++) {
    t->dim[i] = dim[i];
    t->bytes *= dim[i];
  }
  return t;
}

static lp_status find(const lp_weights *w, const char *name, int32_t rank, const int64_t *dim, lp_stored **out) {
  *out = lp_weights_find(w, name);
  if (!*out && w->assumed != LP_DTYPE_COUNT) *out = assume(w, name, rank, dim);
  if (!*out) return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' is missing", name);
  (*out)->used = true;
  if ((*out)->form || (*out)->group || (lp_dtype_is_float((*out)->dtype) && !lp_dtype_is_mini((*out)->dtype)))
    return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' is of type %s; f32, f16 and bf16 are supported", name,
                  lp_dtype_name((*out)->dtype));
}

static lp_status find_matrix(const lp_weights *w, const char *name, int64_t rows, int64_t columns, lp_stored **out) {
  LP_TRY(find(w, name, 2, (int64_t[]){rows, columns}, out));
  const lp_stored *t = *out;
  if (t->rank == 2 && t->dim[0] == rows && t->dim[1] == columns) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path),
                  "tensor '%s' has %d axes, %" PRId64 " x %" PRId64 "; %" PRId64 " x %" PRId64 " is wanted", name,
                  t->rank, t->rank > 0 ? t->dim[0] : 1, t->rank > 1 ? t->dim[1] : 1, rows, columns);
}

static lp_status find_stack(const lp_weights *w, const char *name, lp_weight_stack part, lp_stored **out) {
  LP_TRY(find(w, name, 3, (int64_t[]){part.experts, part.all, part.columns}, out));
  const lp_stored *t = *out;
  if (t->rank == 3 && t->dim[0] == part.experts && t->dim[1] == part.all && t->dim[2] == part.columns) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path),
                  "tensor '%s' is not the matrices of %" PRId64 " experts, %" PRId64 " x %" PRId64 " each", name,
                  part.experts, part.all, part.columns);
}

static int64_t group_count(const lp_stored *t) {
  return (t->dim[1] + t->group - 1) / t->group;
}

/* Refers to rows [first, first + rows) of a part of a matrix in codes: [all rows][columns] of `dtype` in a file, from
 * `offset` on. */
static lp_value *part_of(lp_graph *g, const char *file, int64_t offset, lp_dtype dtype, int64_t columns, int64_t first,
                         int64_t rows) {
  const int64_t dim[] = {rows, columns}, bits = columns * lp_dtype_bits(dtype);
  lp_loc loc = {.file = g->path, .node = g->node, .op = "weight"};
  if (g->status == LP_OK && (first * bits % 8 != 0 || rows * bits % 8 != 0))
    g->status = lp_error(g->diag, loc, "rows of %" PRId64 " bits do not begin at bytes", bits);
  if (g->status != LP_OK) return NULL;
  return lp_graph_end(g, lp_weight_create(g->module, loc, lp_type_static(g->module, dtype, 2, dim), file,
                                          offset + first * bits / 8, rows * bits / 8));
}

/* in[0], codes, times in[1], scales, along rows, with zero points in[2] where they are not NULL. */
static lp_value *dequantised(lp_graph *g, lp_value **in, int64_t group) {
  lp_op *op = g->status == LP_OK ? lp_graph_begin(g, LP_ONNX_DequantizeLinear, in[2] ? 3 : 2, in, 1) : NULL;
  if (!op) return NULL;
  in[0]->name = g->node;
  lp_op_set_i64(g->module, op, "axis", 1);
  lp_op_set_i64(g->module, op, "block_size", group);
  return lp_graph_end(g, op);
}

/* Refers to rows [first, first + rows) of the stored matrix. */
static lp_value *weight(lp_graph *g, const lp_stored *t, int64_t first, int64_t rows) {
  int64_t dim[] = {rows, t->dim[1]}, row = t->bytes / (t->dim[0] > 0 ? t->dim[0] : 1);
  lp_loc loc = {.file = g->path, .node = g->node, .op = "weight"};
  if (g->status != LP_OK) return NULL;
  if (t->group) {
    const int64_t groups = group_count(t);
    lp_value *in[] = {part_of(g, t->file, t->offset, t->dtype, t->dim[1], first, rows),
                      part_of(g, t->scales, 0, LP_F32, groups, first, rows),
                      t->zeros ? part_of(g, t->zeros, 0, t->dtype, groups, first, rows) : NULL};
    return dequantised(g, in, t->group);
  }
  lp_op *op = lp_weight_create(g->module, loc, lp_type_static(g->module, t->dtype, 2, dim), t->file,
                               t->offset + first * row, rows * row);
  if (t->form) lp_op_set_str(g->module, op, "blocks", t->form->name);
  lp_value *value = lp_graph_end(g, op);
  if (value) value->name = g->node;
  return value;
}

lp_status lp_weights_matrix(lp_weights *w, const char *name, lp_weight_part part, lp_value **out) {
  lp_stored *t;
  lp_graph g = graph_at(w, name);
  if (part.transposed) {
    LP_TRY(find_matrix(w, name, part.columns, part.all, &t));
    LP_TRY(narrow(w, t));
    *out = lp_graph_cast(&g, weight(&g, t, 0, t->dim[0]), LP_F32);
  } else {
    LP_TRY(find_matrix(w, name, part.all, part.columns, &t));
    LP_TRY(narrow(w, t));
    lp_value *rows = lp_graph_cast(&g, weight(&g, t, part.first, part.rows), LP_F32);
    *out = lp_graph_op1(&g, LP_ONNX_Transpose, rows);
  }
  return g.status;
}

/* A weight of `parts` equal parts of `bytes` bytes, elements or blocks of `form`. */
static lp_value *joined(lp_graph *g, const lp_block_form *form, lp_type type, int32_t parts, const char **files,
                        const int64_t *offsets, int64_t bytes) {
  lp_loc loc = {.file = g->path, .node = g->node, .op = "weight"};
  bool together = true;
  for (int32_t i = 1; i < parts; i++)
    together &= lp_streq(files[i], files[0]) && offsets[i] == offsets[0] + i * bytes;
  if (g->status != LP_OK) return NULL;
  lp_op *op = lp_weight_create(g->module, loc, type, files[0], offsets[0], parts * bytes);
  if (!together) lp_op_set_strs(g->module, op, "files", files, parts);
  if (!together) lp_op_set_i64s(g->module, op, "offsets", offsets, parts);
  if (form) lp_op_set_str(g->module, op, "blocks", form->name);
  lp_value *value = lp_graph_end(g, op);
  if (value) value->name = g->node;
  return value;
}

/* Rows [first, first + rows) of the matrices in codes of all experts, each [all][columns]. */
static lp_value *stacked_codes(lp_graph *g, lp_stored *const *each, lp_weight_stack part) {
  const lp_stored *t = each[0];
  const char **files = LP_NEW_ARRAY(g->module->arena, const char *, part.experts);
  int64_t *offsets = LP_NEW_ARRAY(g->module->arena, int64_t, part.experts);
  lp_value *in[3] = {NULL};
  for (int i = 0; i < (t->zeros ? 3 : 2); i++) {
    const lp_dtype dtype = i == 1 ? LP_F32 : t->dtype;
    const int64_t dim[] = {part.experts * part.rows, i ? group_count(t) : part.columns};
    const int64_t bits = dim[1] * lp_dtype_bits(dtype);
    if (part.first * bits % 8 != 0 || part.rows * bits % 8 != 0)
      g->status = lp_error(g->diag, LP_LOC_FILE(g->path), "rows of %" PRId64 " bits do not begin at bytes", bits);
    for (int64_t e = 0; e < part.experts; e++) {
      files[e] = i == 0 ? each[e]->file : i == 1 ? each[e]->scales : each[e]->zeros;
      offsets[e] = (i == 0 ? each[e]->offset : 0) + part.first * bits / 8;
    }
    in[i] = joined(g, NULL, lp_type_static(g->module, dtype, 2, dim), (int32_t)part.experts, files, offsets,
                   part.rows * bits / 8);
  }
  return dequantised(g, in, t->group);
}

lp_status lp_weights_stack(lp_weights *w, int64_t count, const char *const *names, lp_weight_stack part,
                           lp_value **out) {
  lp_arena *arena = w->module->arena;
  lp_graph g = graph_at(w, names[0]);
  const char **files = LP_NEW_ARRAY(arena, const char *, part.experts);
  lp_stored **each = LP_NEW_ARRAY(arena, lp_stored *, part.experts);
  int64_t *offsets = LP_NEW_ARRAY(arena, int64_t, part.experts), row = 0;
  const int64_t dim[] = {part.experts * part.rows, part.columns};
  lp_stored *t = NULL, *before = NULL;
  for (int64_t e = 0; e < part.experts; e++, before = t) {
    bool stacked = count == 1;
    LP_TRY(stacked ? find_stack(w, names[0], part, &t) : find_matrix(w, names[e], part.all, part.columns, &t));
    LP_TRY(narrow(w, t));
    if (before && (t->dtype != before->dtype || t->form != before->form || t->group != before->group ||
                   !t->zeros != !before->zeros))
      return lp_error(w->diag, LP_LOC_FILE(w->path), "'%s' has another type than '%s'", t->name, before->name);
    int64_t first = (stacked ? e * part.all : 0) + part.first;
    each[e] = t;
    row = t->bytes / (part.all * (stacked ? part.experts : 1));
    files[e] = t->file;
    offsets[e] = t->offset + first * row;
  }
  if (!t) return lp_error(w->diag, LP_LOC_FILE(w->path), "'%s' is the matrix of no expert", names[0]);
  const lp_type type = lp_type_static(w->module, t->dtype, 2, dim);
  if (t->group)
    *out = stacked_codes(&g, each, part);
  else
    *out = lp_graph_cast(&g, joined(&g, t->form, type, (int32_t)part.experts, files, offsets, part.rows * row), LP_F32);
  return g.status;
}

/* The values of a tensor in blocks, in bf16. */
typedef struct {
  lp_made_file made;
  const uint8_t *blocks;
  const lp_block_form *form;
} decoded_blocks;

static void make_decoded(const lp_made_file *file, uint8_t *out) {
  const decoded_blocks *d = (const decoded_blocks *)file;
  LP_OWNED(lp_free_at) float *values = lp_alloc((size_t)d->form->size * sizeof *values);
  const uint8_t *block = d->blocks, *end = out + d->made.size;
  for (; out < end; block += d->form->bytes) {
    lp_blocks_decode(d->form, block, 1, values);
    for (int64_t i = 0; i < d->form->size; i++, out += sizeof(uint16_t)) {
      const uint16_t bits = lp_f32_to_bf16(values[i]);
      memcpy(out, &bits, sizeof bits);
    }
  }
}

/* Widens a tensor in blocks to bf16, made when it is read. */
static void widen(lp_weights *w, lp_stored *t) {
  decoded_blocks *made = LP_NEW(w->module->arena, decoded_blocks);
  *made = (decoded_blocks){.blocks = lp_weights_bytes(w, t), .form = t->form};
  made->made = (lp_made_file){(size_t)(t->bytes / t->form->bytes * t->form->size) * sizeof(uint16_t), make_decoded};
  t->file = lp_arena_format(w->module->arena, "%s#%s#values", t->file, t->name);
  t->dtype = LP_BF16;
  t->form = NULL;
  t->offset = 0;
  t->bytes = (int64_t)made->made.size;
  lp_map_put(w->module->made, t->file, made);
}

/* The rows of each head, transposed or not, one head after the other. */
typedef struct {
  lp_made_file made;
  const uint8_t *from;
  const lp_made_file *source; /* instead of `from`, where the matrix is itself made */
  lp_weight_stack part;
  int64_t bytes; /* of an element */
  bool transposed;
} turned_heads;

static void make_turned(const lp_made_file *file, uint8_t *out) {
  const turned_heads *t = (const turned_heads *)file;
  const lp_weight_stack *p = &t->part;
  LP_OWNED(lp_free_at) uint8_t *matrix = t->source ? lp_alloc(t->source->size) : NULL;
  const uint8_t *from = matrix ? matrix : t->from;
  if (matrix) t->source->make(t->source, matrix);
  for (int64_t head = 0; head < p->experts; head++)
    for (int64_t i = 0; i < p->rows * p->columns; i++, out += t->bytes) {
      const int64_t row = t->transposed ? i % p->rows : i / p->columns;
      const int64_t column = t->transposed ? i / p->rows : i % p->columns;
      memcpy(out, from + ((head * p->all + p->first + row) * p->columns + column) * t->bytes, (size_t)t->bytes);
    }
}

static const char *add_turned(lp_weights *w, const lp_stored *t, lp_weight_stack part, bool transposed) {
  turned_heads *made = LP_NEW(w->module->arena, turned_heads);
  const char *file = lp_arena_format(w->module->arena, "%s#%s#%s", t->file, t->name, transposed ? "turned" : "rows");
  const int64_t bytes = lp_dtype_bits(t->dtype) / 8;
  *made = (turned_heads){.made = {(size_t)(part.experts * part.rows * part.columns * bytes), make_turned},
                         .source = lp_map_get(w->module->made, t->file),
                         .part = part,
                         .bytes = bytes,
                         .transposed = transposed};
  if (!made->source && w->assumed == LP_DTYPE_COUNT) made->from = lp_weights_bytes(w, t);
  lp_map_put(w->module->made, file, made);
  return file;
}

lp_status lp_weights_heads(lp_weights *w, const char *name, lp_weight_stack part, bool transposed, lp_value **out) {
  lp_arena *arena = w->module->arena;
  lp_stored *t;
  lp_graph g = graph_at(w, name);
  const char **files = LP_NEW_ARRAY(arena, const char *, part.experts);
  int64_t *offsets = LP_NEW_ARRAY(arena, int64_t, part.experts);
  LP_TRY(find_matrix(w, name, part.experts * part.all, part.columns, &t));
  LP_TRY(narrow(w, t));
  if (t->form) widen(w, t);
  if (t->group)
    return lp_error(w->diag, LP_LOC_FILE(w->path), "the matrix '%s' of heads is packed, which is not supported", name);
  const bool made = lp_map_has(w->module->made, t->file);
  const char *turned = transposed || made ? add_turned(w, t, part, transposed) : NULL;
  const int64_t row = t->bytes / t->dim[0];
  for (int64_t e = 0; e < part.experts; e++) {
    files[e] = turned ? turned : t->file;
    offsets[e] = turned ? e * part.rows * row : t->offset + (e * part.all + part.first) * row;
  }
  const int64_t dim[] = {part.experts * (transposed ? part.columns : part.rows), transposed ? part.rows : part.columns};
  const lp_type type = lp_type_static(w->module, t->dtype, 2, dim);
  *out = lp_graph_cast(&g, joined(&g, NULL, type, (int32_t)part.experts, files, offsets, part.rows * row), LP_F32);
  return g.status;
}

lp_status lp_weights_vector(lp_weights *w, const char *name, int64_t first, int64_t count, int64_t all, double offset,
                            lp_value **out) {
  lp_stored *t;
  lp_graph g = graph_at(w, name);
  LP_TRY(find(w, name, 1, &all, &t));
  if (t->rank != 1 || t->dim[0] != all)
    return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' has %d axes, %" PRId64 "; one of %" PRId64 " is wanted",
                    name, t->rank, t->rank > 0 ? t->dim[0] : 1, all);
  if (t->form)
    return lp_error(w->diag, LP_LOC_FILE(w->path), "the vector '%s' is in blocks of %s", name, t->form->name);
  lp_tensor tensor;
  lp_loc loc = {.file = w->path, .node = g.node, .op = "weight"};
  lp_op *op =
      lp_weight_create(w->module, loc, lp_type_static(w->module, t->dtype, 1, t->dim), t->file, t->offset, t->bytes);
  const bool assumed = w->assumed != LP_DTYPE_COUNT;
  if (!assumed) LP_TRY(lp_weight_data(w->module, op->out[0], &tensor, w->diag));
  float *data = LP_NEW_ARRAY(w->module->arena, float, count + 1);
  for (int64_t i = 0; i < count; i++)
    data[i] = (float)((assumed ? 1 : lp_tensor_f64(&tensor, first + i)) + offset);
  *out = lp_graph_floats(&g, 1, &count, data);
  if (*out) (*out)->name = g.node;
  return g.status;
}

lp_status lp_weights_rows(lp_weights *w, const char *name, int64_t rows, int64_t columns, lp_value *index,
                          lp_value **out) {
  lp_stored *t;
  lp_graph g = graph_at(w, name);
  LP_TRY(find_matrix(w, name, rows, columns, &t));
  if (t->group)
    return lp_error(w->diag, LP_LOC_FILE(w->path), "the table '%s' is packed, which is not supported", name);
  LP_TRY(narrow(w, t));
  *out = lp_graph_cast(&g, lp_graph_op2(&g, LP_ONNX_Gather, weight(&g, t, 0, rows), index), LP_F32);
  return g.status;
}

lp_status lp_weights_check_used(const lp_weights *w) {
  for (size_t i = 0; i < lp_map_count(w->tensors); i++) {
    const lp_stored *t = lp_map_value_at(w->tensors, i);
    if (!t->used)
      return lp_error(w->diag, LP_LOC_FILE(w->path),
                      "no operator of this family of models reads tensor '%s', so the result would be wrong", t->name);
  }
  return LP_OK;
}
