/* Finds hidden states: the outputs of a model without a head, as sentence encoders and decoders for embeddings are
 * exported. */
#include "base/poly.h"
#include "passes/recognise/bind.h"

/* ---- the token embedding ----------------------------------------------------------------------------------------- */

/* The operand that holds the rows which `use` selects, one for each token; NULL: it selects none. */
static const lp_value *rows_of(const lp_use *use) {
  const lp_op *op = use->owner;
  switch (op->kind) {
  case LP_ONNX_Gather:
  case LP_ONNX_MsGatherBlockQuantized:
    return use->value == lp_op_in(op, 1) && lp_op_in(op, 0)->type.rank == 2 ? lp_op_in(op, 0) : NULL;
  case LP_ONNX_MsEmbedLayerNormalization:
  case LP_ONNX_MsQEmbedLayerNormalization:
    return use->value == lp_op_in(op, 0) ? lp_op_in(op, 2) : NULL;
  default:
    return NULL;
  }
}

const lp_value *lp_bind_table(const lp_value *value, int depth) {
  for (const lp_use *use = value->uses; use && depth < 8; use = use->next) {
    const lp_op *op = use->owner;
    const lp_value *table = rows_of(use);
    if (!table && lp_op_has(op, LP_IN_ORDER) && use->value == lp_op_in(op, 0))
      table = lp_bind_table(op->out[0], depth + 1);
    if (table) return table;
  }
  return NULL;
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

bool lp_bind_is_hidden(const lp_bind *b, int32_t output) {
  const char *name = lp_bind_output(b, output);
  if (strstr(name, "hidden") || strstr(name, "embedding")) return true;
  if (lp_streq(name, "logits")) return false;
  const lp_value *table = lp_bind_table(b->block->arg[b->tokens], 0);
  int64_t rows, columns, width;
  return table && table->type.rank == 2 && lp_type_static_dim(table->type, 0, &rows) &&
         lp_type_static_dim(table->type, 1, &columns) &&
         lp_type_static_dim(lp_op_in(b->end, output)->type, -1, &width) && width == columns && width != rows;
}

/* [b, s, width]; of several the one called "last_hidden_state", else the first; -1: none. */
static int32_t find_rows(const lp_bind *b) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  int32_t found = -1;
  for (int32_t i = 0; i < b->end->in_count; i++) {
    lp_type type = lp_op_in(b->end, i)->type;
    int64_t width;
    bool fits = lp_streq(b->output_role[i], "data") && lp_dtype_is_float(type.dtype) && type.rank == 3 &&
                lp_poly_equal(type.dim[0], tokens.dim[0]) && lp_poly_equal(type.dim[1], tokens.dim[1]) &&
                lp_type_static_dim(type, 2, &width) && lp_bind_is_hidden(b, i);
    if (fits && (found < 0 || lp_streq(lp_bind_output(b, i), "last_hidden_state"))) found = i;
  }
  return found;
}

/* [b, width], as exports of sentence encoders with their pooling name it; -1: none. */
static int32_t find_pooled(const lp_bind *b) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  for (int32_t i = 0; i < b->end->in_count; i++) {
    lp_type type = lp_op_in(b->end, i)->type;
    int64_t width;
    if (lp_streq(lp_bind_output(b, i), "sentence_embedding") && lp_dtype_is_float(type.dtype) && type.rank == 2 &&
        lp_poly_equal(type.dim[0], tokens.dim[0]) && lp_type_static_dim(type, 1, &width))
      return i;
  }
  return -1;
}

bool lp_bind_find_hidden(lp_bind *b) {
  int32_t rows = find_rows(b), pooled = find_pooled(b);
  if (rows >= 0) b->output_role[rows] = "hidden";
  if (pooled >= 0) b->output_role[pooled] = "embedding";
  if (rows < 0 && pooled < 0) return false;
  const lp_value *table = lp_bind_table(b->block->arg[b->tokens], 0);
  int64_t vocab;
  if (table && lp_type_static_dim(table->type, 0, &vocab)) lp_op_set_i64(b->module, b->func, "vocab", vocab);
  return true;
}
