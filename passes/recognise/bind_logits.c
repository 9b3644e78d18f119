/* Finds the logits. Many exports compute them for the last position only, from a Gather or Slice of the hidden states
 * in front of the head: [b, V] or [b, 1, V]. The head then gets all positions instead, and kv-cache computes it for as
 * many of the last rows as a step needs. */
#include "base/poly.h"
#include "passes/build.h"
#include "passes/recognise/bind.h"
#include "passes/recognise/recognise.h"

/* ---- the output with logits -------------------------------------------------------------------------------------- */

/* Tells whether the value is [batch, positions, vocabulary] of the tokens' own batch and positions. */
static bool is_logits_type(const lp_bind *b, lp_type type) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  int64_t vocabulary;
  return lp_dtype_is_float(type.dtype) && type.rank == 3 && lp_poly_equal(type.dim[0], tokens.dim[0]) &&
         lp_poly_equal(type.dim[1], tokens.dim[1]) && lp_type_static_dim(type, 2, &vocabulary);
}

/* [batch, vocabulary] or [batch, 1, vocabulary] */
static bool is_of_one_position(const lp_bind *b, lp_type type) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  int64_t one = 1, vocabulary;
  return (type.rank == 2 || (type.rank == 3 && lp_type_static_dim(type, 1, &one) && one == 1)) &&
         lp_dtype_is_float(type.dtype) && lp_poly_equal(type.dim[0], tokens.dim[0]) &&
         lp_type_static_dim(type, -1, &vocabulary);
}

/* The output called "logits", else the first one of this type that is not hidden states; -1: there is none. */
static int32_t find_output(const lp_bind *b, bool (*fits)(const lp_bind *, lp_type)) {
  int32_t first = -1;
  for (int32_t i = 0; i < b->end->in_count; i++) {
    if (!lp_streq(b->output_role[i], "data") || !fits(b, lp_op_in(b->end, i)->type)) continue;
    if (lp_streq(lp_bind_output(b, i), "logits")) return i;
    if (first < 0 && !lp_bind_is_hidden(b, i)) first = i;
  }
  return first;
}

/* ---- the head of one position ------------------------------------------------------------------------------------ */

/* The operators between the choice of the last position and the logits, in no order. */
typedef struct {
  const lp_bind *b;
  LP_VEC(lp_op *) op;
  LP_VEC(lp_op *) choice;
  const lp_op *other; /* an operator that the search cannot pass; NULL: none */
} head;

static bool is_in(const head *h, const lp_op *op) {
  for (size_t i = 0; i < h->op.count; i++)
    if (h->op.data[i] == op) return true;
  for (size_t i = 0; i < h->choice.count; i++)
    if (h->choice.data[i] == op) return true;
  return false;
}

static bool is_last(const lp_bind *b, const lp_value *index) {
  if (!index || !index->known || index->known_count != 1) return false;
  int64_t number;
  const lp_poly *known = index->known[0], *size = b->block->arg[b->tokens]->type.dim[1];
  if (lp_poly_is_const(known, &number)) return number == -1;
  return lp_poly_equal(known, lp_poly_sub(b->module->arena, size, lp_dim_const(b->module, 1)));
}

/* x[:, -1] of x [b, s, width], by Gather, or x[:, -1:], by Slice, where the result is of the head. Where s is 1 a slice
 * of the width is of the head as well. */
static bool chooses_last(const lp_bind *b, const lp_op *op) {
  if (op->kind != LP_ONNX_Gather && op->kind != LP_ONNX_Slice) return false;
  lp_type x = lp_op_in(op, 0)->type, y = op->out[0]->type;
  if (!is_logits_type(b, x) || !lp_poly_equal(x.dim[2], y.dim[y.rank - 1])) return false;
  if (op->kind == LP_ONNX_Slice) return is_last(b, lp_op_in(op, 1));
  int64_t axis = lp_op_i64(op, "axis", 0);
  return (axis == 1 || axis == -2) && is_last(b, lp_op_in(op, 1));
}

/* A reshape between [b, width] and [b, 1, width], in any direction. */
static bool is_view(const lp_bind *b, const lp_op *op) {
  lp_type x = lp_op_in(op, 0)->type, y = op->out[0]->type;
  return lp_op_has(op, LP_ALIAS) && is_of_one_position(b, x) && is_of_one_position(b, y) &&
         lp_poly_equal(x.dim[x.rank - 1], y.dim[y.rank - 1]);
}

/* A constant that is broadcast over sequences and positions. */
static bool is_row(lp_value *value) {
  int64_t size;
  for (int32_t i = 0; i + 1 < value->type.rank; i++)
    if (!lp_type_static_dim(value->type, i, &size) || size != 1) return false;
  return lp_match_input_free(value);
}

static bool are_rows(const lp_op *op, int32_t from) {
  for (int32_t i = from; i < op->in_count; i++)
    if (lp_op_in(op, i) && !is_row(lp_op_in(op, i))) return false;
  return true;
}

static bool are_constant(const lp_op *op, int32_t from) {
  for (int32_t i = from; i < op->in_count; i++)
    if (lp_op_in(op, i) && !lp_match_input_free(lp_op_in(op, i))) return false;
  return true;
}

/* The value's position is one of those that the head is computed from. */
static bool is_of_head(const lp_bind *b, lp_value *value) {
  lp_type type = value->type;
  int64_t one;
  bool rows = type.rank == 2 || (type.rank == 3 && lp_type_static_dim(type, 1, &one) && one == 1);
  return rows && value->def && lp_poly_equal(type.dim[0], b->block->arg[b->tokens]->type.dim[0]);
}

/* Tells whether each row of the result depends only on the same row of operand 0, also when the operand has one more
 * axis. */
static bool is_rowwise(const lp_op *op) {
  lp_type weight = op->in_count > 1 && lp_op_in(op, 1) ? lp_op_in(op, 1)->type : (lp_type){0};
  switch (op->kind) {
  case LP_ONNX_MatMul:
    return weight.rank == 2 && are_constant(op, 1);
  case LP_ONNX_Gemm:
    return are_constant(op, 1) && !lp_op_i64(op, "transA", 0) && lp_op_f64(op, "alpha", 1) == 1 &&
           lp_op_f64(op, "beta", 1) == 1 && are_rows(op, 2);
  case LP_ONNX_MsMatMulNBits:
  case LP_ONNX_MsMatMulBnb4:
    return are_constant(op, 1);
  case LP_ONNX_ReduceMean:
    return lp_op_i64(op, "keepdims", 1) && lp_match_last_axis(op);
  default:
    return lp_op_has(op, LP_NORM_OP) && lp_op_i64(op, "axis", -1) == -1 && are_constant(op, 1);
  }
}

static bool visit(head *h, lp_value *value, int depth);

/* Operands of an elementwise operator are of the head, or constants. */
static bool visit_operands(head *h, const lp_op *op, int depth) {
  bool any = false;
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *in = lp_op_in(op, i);
    if (!in || is_row(in)) continue;
    if (!is_of_head(h->b, in) || !visit(h, in, depth)) return false;
    any = true;
  }
  return any;
}

static bool visit(head *h, lp_value *value, int depth) {
  enum { MAX_DEPTH = 64 };
  lp_op *op = value->def;
  if (is_in(h, op)) return true;
  if (chooses_last(h->b, op)) {
    lp_vec_push(&h->choice, op);
    return true;
  }
  h->other = h->other ? h->other : op;
  if (depth > MAX_DEPTH || op->out_count != 1) return false;
  bool single = is_view(h->b, op) || is_rowwise(op);
  if (!single && !lp_op_has(op, LP_ELEMENTWISE)) return false;
  h->other = h->other == op ? NULL : h->other;
  lp_vec_push(&h->op, op);
  lp_value *first = lp_op_in(op, 0);
  return single ? is_of_head(h->b, first) && visit(h, first, depth + 1) : visit_operands(h, op, depth + 1);
}

static bool is_logits_use(const lp_bind *b, const lp_use *use) {
  return use->owner == b->end && (int32_t)(use - use->owner->in) == b->logits;
}

/* Tells whether only the head and the output use the values that will have all positions. */
static bool is_closed(const head *h) {
  for (size_t i = 0; i < h->op.count; i++)
    for (const lp_use *use = h->op.data[i]->out[0]->uses; use; use = use->next)
      if (!is_in(h, use->owner) && !is_logits_use(h->b, use)) return false;
  return true;
}

/* ---- the head of all positions ----------------------------------------------------------------------------------- */

/* x * B + C of more than two axes. */
static lp_status widen_gemm(const lp_bind *b, lp_op *gemm) {
  lp_build build = lp_build_at(b->module, gemm, b->diag);
  lp_value *weight = lp_op_in(gemm, 1), *bias = gemm->in_count > 2 ? lp_op_in(gemm, 2) : NULL;
  if (lp_op_i64(gemm, "transB", 0)) weight = lp_build_value(&build, LP_ONNX_Transpose, 1, &weight);
  lp_value *factor[] = {lp_op_in(gemm, 0), weight};
  lp_value *product = weight ? lp_build_value(&build, LP_ONNX_MatMul, 2, factor) : NULL;
  lp_value *term[] = {product, bias};
  if (product && bias) product = lp_build_value(&build, LP_ONNX_Add, 2, term);
  if (!product) return LP_FAILED;
  lp_value_replace(gemm->out[0], product);
  return LP_OK;
}

/* Gives the head all positions where it reads the last one. Other readers keep that one. */
static void read_all(const head *h, const lp_op *choice) {
  for (const lp_use *use = choice->out[0]->uses, *next; use; use = next) {
    next = use->next;
    if (is_in(h, use->owner) || is_logits_use(h->b, use))
      lp_op_set_in(use->owner, (int32_t)(use - use->owner->in), lp_op_in(choice, 0));
  }
}

static lp_status widen(const head *h) {
  const lp_bind *b = h->b;
  for (size_t i = 0; i < h->op.count; i++)
    if (is_view(b, h->op.data[i])) lp_value_replace(h->op.data[i]->out[0], lp_op_in(h->op.data[i], 0));
  for (size_t i = 0; i < h->choice.count; i++)
    read_all(h, h->choice.data[i]);
  for (size_t i = 0; i < h->op.count; i++)
    if (h->op.data[i]->kind == LP_ONNX_Gemm) LP_TRY(widen_gemm(b, h->op.data[i]));
  lp_build_remove_dead(b->block);
  LP_TRY(lp_block_infer(b->module, b->block, b->diag));
  if (is_logits_type(b, lp_op_in(b->end, b->logits)->type)) return LP_OK;
  return lp_error(b->diag, b->end->loc, "the logits of all positions do not have three axes");
}

static lp_status refuse(const lp_bind *b, const lp_op *other) {
  lp_status status =
      lp_error(b->diag, b->end->loc, "the model has no logits output: floats [batch, positions, vocabulary]");
  if (other)
    lp_note(b->diag, other->loc,
            "output '%s' is of one position, and this does not choose the last position of hidden states by a Gather "
            "or Slice, or compute each row on its own",
            lp_bind_output(b, b->logits));
  return status;
}

/* Sets b->logits to the output that gives logits of the last position, and makes them those of all positions. */
static lp_status take_last_position(lp_bind *b) {
  b->logits = find_output(b, is_of_one_position);
  if (b->logits < 0) return refuse(b, NULL);
  head h = {.b = b};
  lp_value *value = lp_op_in(b->end, b->logits);
  bool good = is_of_head(b, value) && visit(&h, value, 0) && is_closed(&h);
  lp_status status = good ? widen(&h) : refuse(b, h.other ? h.other : value->def);
  lp_vec_free(&h.op);
  lp_vec_free(&h.choice);
  return status;
}

/* ---- roles ------------------------------------------------------------------------------------------------------- */

static void mark_exits(const lp_bind *b) {
  lp_type logits = lp_op_in(b->end, b->logits)->type;
  for (int32_t i = 0; i < b->end->in_count; i++)
    if (i != b->logits && lp_type_equal(lp_op_in(b->end, i)->type, logits) && !strstr(lp_bind_output(b, i), "hidden"))
      b->output_role[i] = "exit_logits";
}

/* Sampling and pooling read f32: narrower outputs, which exporters for GPUs give, are widened. */
static lp_status cast_outputs(const lp_bind *b) {
  static const char *const roles[] = {"logits", "exit_logits", "hidden", "embedding"};
  lp_build build = lp_build_at(b->module, b->end, b->diag);
  for (int32_t i = 0; i < b->end->in_count; i++) {
    bool read = false;
    for (size_t k = 0; k < LP_COUNT(roles); k++)
      read = read || lp_streq(b->output_role[i], roles[k]);
    if (!read) continue;
    lp_value *wide = lp_build_cast(&build, lp_op_in(b->end, i), LP_F32);
    if (!wide) return LP_FAILED;
    lp_op_set_in(b->end, i, wide);
  }
  return LP_OK;
}

static bool is_called_logits(const lp_bind *b, int32_t output) {
  return output >= 0 && lp_streq(lp_bind_output(b, output), "logits");
}

lp_status lp_bind_find_logits(lp_bind *b) {
  int32_t last = find_output(b, is_of_one_position);
  b->logits = find_output(b, is_logits_type); /* hidden states beside logits of one position are of the same type */
  bool only_last = is_called_logits(b, last) && !is_called_logits(b, b->logits);
  if (b->logits < 0 && !only_last && lp_bind_find_hidden(b)) return cast_outputs(b);
  if (b->logits < 0 || only_last) LP_TRY(take_last_position(b));
  b->output_role[b->logits] = "logits";
  mark_exits(b);
  return cast_outputs(b);
}
