/* Rewrites com.microsoft: SkipLayerNormalization, SkipSimplifiedLayerNormalization, EmbedLayerNormalization,
 * QEmbedLayerNormalization (ContribOperators.md). */
#include "passes/recognise/decompose/rewrite.h"

static lp_value *norm(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *scale, lp_value *bias, double epsilon) {
  lp_value *in[] = {x, scale, bias};
  lp_type unknown = {LP_F32, -1, NULL};
  if (!x) return NULL;
  lp_op *op = lp_op_create(r->b.module, kind, r->b.loc, bias ? 3 : 2, in, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "axis", -1);
  lp_op_set_f64(r->b.module, op, "epsilon", epsilon);
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

lp_status lp_rewrite_skip_norm(lp_rewrite *r) {
  bool rms = r->op->kind == LP_ONNX_MsSkipSimplifiedLayerNormalization;
  double epsilon = lp_op_f64(r->op, "epsilon", 1e-12);
  lp_value *beta = rms ? NULL : lp_op_in(r->op, 3);
  lp_value *sum = lp_rw_add(r, lp_rw_add(r, lp_op_in(r->op, 0), lp_op_in(r->op, 1)), lp_op_in(r->op, rms ? 3 : 4));
  r->result[0] =
      norm(r, rms ? LP_ONNX_RMSNormalization : LP_ONNX_LayerNormalization, sum, lp_op_in(r->op, 2), beta, epsilon);
  r->result[3] = sum;
  return lp_rw_give(r, r->result[0]);
}

/* Operands of an embedding and its norm; NULL where absent. */
typedef struct {
  lp_value *ids, *segments, *word, *position, *segment, *scale, *bias, *mask, *positions;
} embedding;

/* The number of tokens of each sequence that the mask [b, s] admits; 0 without a mask. */
static lp_value *mask_index(lp_rewrite *r, lp_value *ids, lp_value *mask) {
  lp_value *ones = mask ? mask : lp_rw_op(r, LP_ONNX_Mul, lp_rw_cast(r, ids, LP_I64), LP_RW_INTS(r, 0));
  ones = mask ? lp_rw_cast(r, lp_rw_op(r, LP_ONNX_Equal, lp_rw_cast(r, mask, LP_I64), LP_RW_INTS(r, 1)), LP_I64) : ones;
  lp_value *in[] = {ones, LP_RW_INTS(r, 1)};
  return lp_rw_cast(r, lp_rw_with(r, LP_ONNX_ReduceSum, 2, in, (lp_rw_attr){"keepdims", 0}), LP_I32);
}

static lp_status embed(lp_rewrite *r, const embedding *e) {
  lp_value *positions = e->positions ? e->positions : lp_rw_count(r, lp_rw_size(r, e->ids, 1));
  lp_value *sum = lp_rw_op(r, LP_ONNX_Gather, e->word, e->ids);
  sum = positions && sum ? lp_rw_add(r, sum, lp_rw_op(r, LP_ONNX_Gather, e->position, positions)) : NULL;
  if (sum && e->segments && e->segment) sum = lp_rw_add(r, sum, lp_rw_op(r, LP_ONNX_Gather, e->segment, e->segments));
  r->result[0] = norm(r, LP_ONNX_LayerNormalization, sum, e->scale, e->bias, lp_op_f64(r->op, "epsilon", 1e-12));
  if (lp_op_out(r->op, 1) && lp_op_out(r->op, 1)->uses) r->result[1] = mask_index(r, e->ids, e->mask);
  r->result[2] = sum;
  return lp_rw_give(r, r->result[0]);
}

lp_status lp_rewrite_embed_norm(lp_rewrite *r) {
  lp_value *in[9];
  for (int32_t i = 0; i < 9; i++)
    in[i] = lp_op_in(r->op, i);
  return embed(r, &(embedding){in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]});
}

lp_status lp_rewrite_qembed_norm(lp_rewrite *r) {
  enum { IDS, SEGMENTS, WORD, POSITION, SEGMENT, GAMMA, BETA, MASK, SCALES, ZEROS = 13, TABLES = 5 };
  lp_value *table[TABLES] = {NULL};
  for (int32_t i = 0; i < TABLES; i++) {
    if (i == SEGMENT - WORD && !lp_op_in(r->op, SEGMENT)) continue;
    table[i] = lp_rw_real(r, WORD + i, SCALES + i, ZEROS + i);
    if (!table[i]) return LP_FAILED;
  }
  return embed(r, &(embedding){.ids = lp_op_in(r->op, IDS),
                               .segments = lp_op_in(r->op, SEGMENTS),
                               .word = table[0],
                               .position = table[1],
                               .segment = table[2],
                               .scale = table[3],
                               .bias = table[4],
                               .mask = lp_op_in(r->op, MASK)});
}
