/* Rewrites com.microsoft's rotary positions by the standard's RotaryEmbedding. */
#include "passes/recognise/decompose/rewrite.h"

/* Tells whether the table is one of two that one condition selects. */
static bool is_choice(const lp_value *table) {
  return lp_op_is(table->def, LP_ONNX_Where) && lp_op_in(table->def, 0)->type.rank == 0;
}

/* The rows of a table at the positions. When a condition selects one of two tables, the rows of both are read and the
 * condition selects between the rows, which costs less. Rows that lengthen the shorter table are never used. */
static lp_value *rows_at(lp_rewrite *r, lp_value *table, lp_value *positions) {
  if (!is_choice(table)) {
    lp_value *whole = lp_op_is(table->def, LP_ONNX_Pad) ? lp_op_in(table->def, 0) : table;
    return lp_rw_op(r, LP_ONNX_Gather, whole, positions);
  }
  lp_value *in[] = {lp_op_in(table->def, 0), NULL, NULL};
  for (int i = 1; i < 3; i++) {
    in[i] = rows_at(r, lp_op_in(table->def, i), positions);
    if (!in[i]) return NULL;
  }
  lp_op *op = lp_build_onnx(&r->b, LP_ONNX_Where, 3, in, 1);
  return op ? op->out[0] : NULL;
}

lp_value *lp_rw_rotate(lp_rewrite *r, lp_value *x, lp_value *const tables[2], lp_value *positions, int64_t heads,
                       int64_t rotary_dim, bool interleaved) {
  lp_value *in[] = {x, tables[0], tables[1], positions};
  lp_type unknown = {.rank = -1};
  if (!x || !tables[0] || !tables[1] || !positions) return NULL;
  bool chosen = is_choice(tables[0]) || is_choice(tables[1]);
  for (int i = 0; i < 2 && chosen; i++) {
    in[1 + i] = rows_at(r, tables[i], positions);
    if (!in[1 + i]) return NULL;
  }
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_RotaryEmbedding, r->b.loc, chosen ? 3 : 4, in, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "num_heads", heads);
  lp_op_set_i64(r->b.module, op, "interleaved", interleaved);
  lp_op_set_i64(r->b.module, op, "rotary_embedding_dim", rotary_dim);
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

/* The positions offset + i, [b, s], from one offset for all sequences, [1]. */
static lp_value *positions_from(lp_rewrite *r, lp_value *offset, lp_value *x) {
  lp_value *rows = lp_rw_count(r, lp_rw_size(r, x, x->type.rank == 4 ? 2 : 1)), *first = LP_RW_INTS(r, 0);
  lp_value *in[] = {lp_rw_unsqueeze(r, lp_rw_size(r, x, 0), first), LP_RW_INTS(r, 1)};
  lp_value *repeats = lp_rw_concat(r, 2, in, 0);
  rows = rows ? lp_rw_unsqueeze(r, lp_rw_op(r, LP_ONNX_Add, offset, rows), first) : NULL;
  return rows && repeats ? lp_rw_op(r, LP_ONNX_Tile, rows, repeats) : NULL;
}

/* No kernel of ONNX Runtime reads `scale`. */
lp_status lp_rewrite_ms_rotary(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0), *positions = lp_op_in(r->op, 1);
  lp_value *tables[] = {lp_op_in(r->op, 2), lp_op_in(r->op, 3)};
  int64_t heads = lp_op_i64(r->op, "num_heads", 0), rotary_dim = lp_op_i64(r->op, "rotary_embedding_dim", 0);
  int64_t width, half;
  if (lp_op_i64(r->op, "is_packed_batching", 0)) return lp_rw_refuse(r, "with is_packed_batching is not supported");
  if (heads == 0 && x->type.rank == 3) { /* the tables are as wide as half a head */
    if (!lp_type_static_dim(x->type, 2, &width) || !lp_type_static_dim(tables[0]->type, 1, &half) || half < 1)
      return lp_rw_refuse(r, "needs num_heads, or a width and tables of constant size");
    heads = width / (2 * half);
  }
  if (positions->type.rank == 1) positions = positions_from(r, positions, x);
  return lp_rw_give(r,
                    lp_rw_rotate(r, x, tables, positions, heads, rotary_dim, lp_op_i64(r->op, "interleaved", 0) != 0));
}
