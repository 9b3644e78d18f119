/* Rewrites com.microsoft.GroupQueryAttention (ContribOperators.md) by the standard's Attention.
 *
 * New keys and values are appended to past ones; seqlens_k gives the number of valid ones. In a decoder, where all
 * sequences have the same past and no padding, that appends rows, and attention is causal: it keeps a KV cache.
 * Otherwise each sequence's new rows follow its own past, and a mask gives the rows that each row sees. */
#include "base/poly.h"
#include "passes/recognise/decompose/rewrite.h"

#include <assert.h>
#include <math.h>

/* Operands. */
enum {
  QUERY,
  KEY,
  VALUE,
  PAST_K,
  PAST_V,
  SEQLENS,
  TOTAL,
  COS,
  SIN,
  POSITIONS,
  BIAS,
  SINKS,
  K_SCALE,
  V_SCALE,
  Q_NORM,
  K_NORM
};

typedef struct {
  lp_rewrite *r;
  int64_t heads, kv_heads, window; /* window 0: none */
  bool causal, uniform;            /* uniform: no sequence has padding */
  lp_value *q, *k, *v;             /* heads first */
  lp_value *s;                     /* new rows, a scalar */
  lp_value *length, *past;         /* of each sequence: [b, 1] */
  lp_value *prompt;                /* bool scalar: there is no past */
  lp_value *positions;             /* [b, s] */
  lp_value *present[2];            /* of a window's cache; otherwise those of Attention */
} gqa;

/* ---- forms of the operator --------------------------------------------------------------------------------------- */

static bool keeps_window(const lp_op *op) {
  return lp_op_i64(op, "sliding_window_cache", 0) != 0;
}

static lp_status check_window(const lp_rewrite *r) {
  const lp_op *op = r->op;
  if (!lp_op_in(op, PAST_K) || lp_op_i64(op, "local_window_size", -1) < 1)
    return lp_rw_refuse(r, "with sliding_window_cache lacks a past or a window");
  bool scores = lp_op_out(op, 3) && lp_op_out(op, 3)->uses;
  if (lp_op_in(op, BIAS) || scores) return lp_rw_refuse(r, "with sliding_window_cache has a bias or gives scores");
  return LP_OK;
}

static lp_status check_attributes(const lp_rewrite *r) {
  const lp_op *op = r->op;
  static const char *const quantised[] = {"k_quant_type", "v_quant_type"};
  for (int i = 0; i < 2; i++)
    if (!lp_streq(lp_op_str(op, quantised[i], "NONE"), "NONE"))
      return lp_rw_refuse(r, "with a quantised cache is not supported");
  if (lp_op_in(op, K_SCALE) || lp_op_in(op, V_SCALE)) return lp_rw_refuse(r, "with a quantised cache is not supported");
  if (keeps_window(op)) LP_TRY(check_window(r));
  if (!lp_op_in(op, SEQLENS)) return lp_rw_refuse(r, "lacks seqlens_k");
  if (!lp_op_in(op, PAST_K) != !lp_op_in(op, PAST_V)) return lp_rw_refuse(r, "has past keys without values");
  if (lp_op_i64(op, "do_rotary", 0) && (!lp_op_in(op, COS) || !lp_op_in(op, SIN)))
    return lp_rw_refuse(r, "with do_rotary lacks its tables");
  return LP_OK;
}

static lp_value *per_head_norm(gqa *g, lp_value *x, lp_value *weight) {
  lp_rewrite *r = g->r;
  lp_value *in[] = {x, weight};
  lp_type unknown = {.rank = -1};
  if (!x || !weight) return x;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_RMSNormalization, r->b.loc, 2, in, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "axis", -1);
  lp_op_set_f64(r->b.module, op, "epsilon", lp_op_f64(r->op, "qk_norm_epsilon", 1e-6));
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

/* Splits query, key and value, which may be packed in one tensor. */
static lp_status read_parts(gqa *g) {
  lp_rewrite *r = g->r;
  lp_value *in[3] = {lp_op_in(r->op, QUERY), lp_op_in(r->op, KEY), lp_op_in(r->op, VALUE)};
  int64_t width;
  if (!in[1] != !in[2]) return lp_rw_refuse(r, "has keys without values");
  if (!in[1]) {
    int64_t parts = g->heads + 2 * g->kv_heads;
    if (!lp_type_static_dim(in[0]->type, 2, &width) || width % parts)
      return lp_rw_refuse(r, "has packed queries, keys and values of a width that its heads do not divide");
    int64_t d = width / parts, sizes[] = {g->heads * d, g->kv_heads * d, g->kv_heads * d};
    lp_op *split = lp_rw_split(r, in[0], 2, 3, sizes);
    for (int i = 0; i < 3; i++)
      in[i] = split ? split->out[i] : NULL;
  }
  g->q = per_head_norm(g, lp_rw_split_heads(r, in[0], g->heads), lp_op_in(r->op, Q_NORM));
  g->k = per_head_norm(g, lp_rw_split_heads(r, in[1], g->kv_heads), lp_op_in(r->op, K_NORM));
  g->v = lp_rw_split_heads(r, in[2], g->kv_heads);
  return g->q && g->k && g->v ? LP_OK : LP_FAILED;
}

/* ---- lengths ----------------------------------------------------------------------------------------------------- */

/* Tells whether seqlens_k is the number of past and new rows minus one, at every size. Then it depends on sizes
 * only. */
static bool is_uniform(const gqa *g) {
  static const int64_t sizes[][3] = {{1, 1, 0}, {1, 1, 5}, {2, 3, 0}, {2, 3, 4}, {3, 7, 2}, {1, 64, 0}};
  lp_module *m = g->r->b.module;
  lp_value *lengths = lp_op_in(g->r->op, SEQLENS), *past = lp_op_in(g->r->op, PAST_K);
  const lp_poly *total = lp_op_in(g->r->op, QUERY)->type.dim[1];
  if (past) total = lp_poly_add(m->arena, total, past->type.dim[2]);
  size_t count = m->symbols.names.count;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, count);
  bool good = total != NULL;
  for (size_t i = 0; i < LP_COUNT(sizes) && good; i++) {
    for (size_t n = 0; n < count; n++)
      sym[n] = 2 + (int64_t)((7 * i + 5 * n) % 9); /* other symbols vary too */
    memcpy(sym, sizes[i], sizeof sizes[i]);
    lp_array out;
    good = lp_value_eval(m, lengths, NULL, 0, sym, arena, &out, NULL) == LP_OK;
    int64_t numel = 1;
    for (int32_t axis = 0; good && axis < out.rank; axis++)
      numel *= out.dim[axis];
    lp_tensor tensor = {.type = {out.dtype, 0, NULL}, .data = out.data};
    for (int64_t b = 0; good && b < numel; b++)
      good = lp_tensor_i64(&tensor, b) + 1 == lp_poly_eval(total, sym, count);
  }
  return good;
}

/* length, past, prompt, positions */
static lp_status read_lengths(gqa *g) {
  lp_rewrite *r = g->r;
  lp_value *rows = lp_rw_count(r, g->s), *one = LP_RW_INTS(r, 1);
  lp_value *column = lp_rw_reshape(r, lp_rw_cast(r, lp_op_in(r->op, SEQLENS), LP_I64), LP_RW_INTS(r, -1, 1));
  lp_value *total = lp_op_in(r->op, TOTAL);
  if (!total) return lp_rw_refuse(r, "lacks total_sequence_length");
  g->length = column ? lp_rw_op(r, LP_ONNX_Add, column, one) : NULL;
  total = lp_rw_reshape(r, lp_rw_cast(r, total, LP_I64), LP_RW_INTS(r, 1));
  if (!g->length || !total || !rows) return LP_FAILED;
  lp_value *before = lp_rw_op(r, LP_ONNX_Sub, g->length, g->s), *zero = LP_RW_INTS(r, 0);
  g->prompt = lp_rw_op(r, LP_ONNX_Equal, total, g->s);
  g->past = before ? lp_rw_op3(r, LP_ONNX_Where, g->prompt, zero, before) : NULL;
  g->positions = g->past ? lp_rw_op(r, LP_ONNX_Add, g->past, rows) : NULL;
  return g->positions ? LP_OK : LP_FAILED;
}

/* Positions of a decoder's new rows: p + i, for every sequence. */
static lp_status count_positions(gqa *g) {
  lp_rewrite *r = g->r;
  lp_value *rows = lp_rw_count(r, g->s), *past = lp_op_in(r->op, PAST_K);
  if (past) rows = lp_rw_add(r, lp_rw_size(r, past, 2), rows);
  lp_value *in[] = {lp_rw_unsqueeze(r, lp_rw_size(r, lp_op_in(r->op, QUERY), 0), LP_RW_INTS(r, 0)),
                    lp_rw_unsqueeze(r, g->s, LP_RW_INTS(r, 0))};
  lp_value *shape = lp_rw_concat(r, 2, in, 0);
  g->positions = rows && shape ? lp_rw_op(r, LP_ONNX_Expand, rows, shape) : NULL;
  return g->positions ? LP_OK : LP_FAILED;
}

/* ---- rotary ------------------------------------------------------------------------------------------------------ */

/* Position ids of a prompt count from the very first token. */
static lp_value *rotary_positions(gqa *g) {
  lp_rewrite *r = g->r;
  lp_value *ids = lp_op_in(r->op, POSITIONS);
  if (!ids || g->uniform) return ids ? ids : g->positions;
  lp_value *flat = lp_rw_reshape(r, ids, LP_RW_INTS(r, -1));
  lp_value *first = lp_rw_slice(r, flat, 0, LP_RW_INTS(r, 0), LP_RW_INTS(r, 1)), *rows = lp_rw_count(r, g->s);
  lp_value *counted = first && rows ? lp_rw_op(r, LP_ONNX_Add, first, rows) : NULL;
  return lp_rw_op3(r, LP_ONNX_Where, g->prompt, counted, ids);
}

static lp_status rotate(gqa *g) {
  lp_rewrite *r = g->r;
  if (!lp_op_i64(r->op, "do_rotary", 0)) return LP_OK;
  lp_value *tables[] = {lp_op_in(r->op, COS), lp_op_in(r->op, SIN)}, *positions = rotary_positions(g);
  bool interleaved = lp_op_i64(r->op, "rotary_interleaved", 0) != 0;
  int64_t half;
  if (tables[0]->type.rank != 2 || !lp_type_static_dim(tables[0]->type, 1, &half))
    return lp_rw_refuse(r, "needs tables of constant width");
  g->q = lp_rw_rotate(r, g->q, tables, positions, g->heads, 2 * half, interleaved);
  g->k = lp_rw_rotate(r, g->k, tables, positions, g->kv_heads, 2 * half, interleaved);
  return g->q && g->k ? LP_OK : LP_FAILED;
}

/* ---- sequences of several lengths -------------------------------------------------------------------------------- */

static lp_value *as_column(gqa *g, lp_value *of_sequence) {
  return lp_rw_unsqueeze(g->r, of_sequence, LP_RW_INTS(g->r, 2, 3));
}

/* The past rows, padded with zeros to `total`. */
static lp_value *padded_past(gqa *g, lp_value *past, bool shared) {
  lp_rewrite *r = g->r;
  if (shared) return past;
  lp_value *zero = LP_RW_INTS(r, 0), *s = lp_rw_unsqueeze(r, g->s, zero);
  lp_value *in[] = {LP_RW_INTS(r, 0, 0, 0, 0, 0, 0), s, zero};
  lp_value *pads = lp_rw_concat(r, 3, in, 0);
  return past && pads ? lp_rw_op(r, LP_ONNX_Pad, past, pads) : NULL;
}

/* present[j] = past[j] before a sequence's past ends, then the new rows, then zeros: [b, kv_heads, total, d]. */
static lp_value *placed_rows(gqa *g, lp_value *past, lp_value *rows, lp_value *keys, bool shared) {
  lp_rewrite *r = g->r;
  lp_value *base = padded_past(g, past, shared), *begin = as_column(g, g->past), *zero = LP_RW_INTS(r, 0);
  lp_value *column = lp_rw_unsqueeze(r, keys, LP_RW_INTS(r, 0, 1, 3)); /* [1, 1, total, 1] */
  lp_value *index = base && begin && column ? lp_rw_op(r, LP_ONNX_Sub, column, begin) : NULL;
  lp_value *fresh = index ? lp_rw_op(r, LP_ONNX_GreaterOrEqual, index, zero) : NULL;
  lp_value *ended = index ? lp_rw_op(r, LP_ONNX_GreaterOrEqual, index, g->s) : NULL;
  lp_value *last = lp_rw_op(r, LP_ONNX_Sub, g->s, LP_RW_INTS(r, 1));
  index = index && last ? lp_rw_op(r, LP_ONNX_Min, lp_rw_op(r, LP_ONNX_Max, index, zero), last) : NULL;
  lp_value *shape = lp_rw_op(r, LP_ONNX_Shape, base, NULL);
  index = index && shape ? lp_rw_op(r, LP_ONNX_Expand, index, shape) : NULL;
  lp_value *in[] = {rows, index};
  lp_value *taken = lp_rw_with(r, LP_ONNX_GatherElements, 2, in, (lp_rw_attr){"axis", 2});
  lp_value *nothing = lp_build_float(&r->b, rows->type.dtype, 0);
  lp_value *after = lp_rw_op3(r, LP_ONNX_Where, ended, nothing, taken);
  return lp_rw_op3(r, LP_ONNX_Where, fresh, after, base);
}

/* bool [b, 1, s, total]: the keys that each row sees. */
static lp_value *visible(gqa *g, lp_value *keys) {
  lp_rewrite *r = g->r;
  lp_value *end = as_column(g, g->length), *row = lp_rw_unsqueeze(r, g->positions, LP_RW_INTS(r, 1, 3));
  lp_value *may = end && row ? lp_rw_op(r, LP_ONNX_Less, keys, end) : NULL;
  if (g->causal && may) may = lp_rw_op(r, LP_ONNX_And, may, lp_rw_op(r, LP_ONNX_LessOrEqual, keys, row));
  if (g->window == 0 || !may) return may;
  lp_value *oldest = lp_rw_op(r, LP_ONNX_Sub, row, LP_RW_INTS(r, g->window));
  return lp_rw_op(r, LP_ONNX_And, may, oldest ? lp_rw_op(r, LP_ONNX_Greater, keys, oldest) : NULL);
}

/* The columns of the bias are positions; a shared buffer has more of them. */
static lp_value *fit_bias(gqa *g, lp_value *bias, lp_value *keys) {
  lp_rewrite *r = g->r;
  lp_type type = keys->type;
  if (!bias || lp_poly_equal(bias->type.dim[3], type.dim[0])) return bias;
  lp_value *zero = LP_RW_INTS(r, 0);
  lp_value *wanted = lp_rw_unsqueeze(r, lp_rw_size(r, keys, 0), zero);
  lp_value *found = lp_rw_unsqueeze(r, lp_rw_size(r, bias, 3), zero);
  lp_value *more = wanted && found ? lp_rw_op(r, LP_ONNX_Sub, wanted, found) : NULL;
  lp_value *in[] = {LP_RW_INTS(r, 0, 0, 0, 0, 0, 0, 0), more};
  lp_value *pads = lp_rw_concat(r, 2, in, 0);
  return pads ? lp_rw_op(r, LP_ONNX_Pad, bias, pads) : NULL;
}

static lp_status attend_window(gqa *g, lp_rw_attention *a, lp_value **may) {
  lp_rw_window w = {.r = g->r, .window = g->window, .before = g->past, .after = g->length};
  w.past[0] = a->past_k;
  w.past[1] = a->past_v;
  w.fresh[0] = g->k;
  w.fresh[1] = g->v;
  LP_TRY(lp_rw_join_window(&w));
  a->k = w.joined[0];
  a->v = w.joined[1];
  g->present[0] = w.present[0];
  g->present[1] = w.present[1];
  *may = visible(g, w.position);
  a->causal = false;
  a->window = 0;
  a->past_k = a->past_v = NULL;
  a->mask = *may;
  return *may ? LP_OK : LP_FAILED;
}

static lp_status attend_ragged(gqa *g, lp_rw_attention *a, lp_value **may) {
  lp_rewrite *r = g->r;
  lp_value *past_k = lp_op_in(r->op, PAST_K), *past_v = lp_op_in(r->op, PAST_V), *total = g->s;
  bool shared = lp_op_i64(r->op, "past_present_share_buffer", 0) != 0;
  if (past_k) total = lp_rw_size(r, past_k, 2);
  if (past_k && !shared) total = lp_rw_add(r, total, g->s);
  lp_value *keys = lp_rw_count(r, total);
  if (!keys) return LP_FAILED;
  if (past_k) a->k = placed_rows(g, past_k, g->k, keys, shared);
  if (past_v) a->v = placed_rows(g, past_v, g->v, keys, shared);
  *may = visible(g, keys);
  a->causal = false;
  a->window = 0;
  a->past_k = a->past_v = NULL;
  a->mask = *may;
  if (a->k && a->v && *may && lp_op_in(r->op, BIAS)) {
    lp_value *bias = fit_bias(g, lp_op_in(r->op, BIAS), keys);
    a->mask = bias ? lp_rw_op3(r, LP_ONNX_Where, *may, bias, lp_build_float(&r->b, bias->type.dtype, -INFINITY)) : NULL;
  }
  return a->k && a->v && a->mask ? LP_OK : LP_FAILED;
}

/* ---- driver ------------------------------------------------------------------------------------------------------ */

static lp_value *sinks(const gqa *g) {
  lp_rewrite *r = g->r;
  if (lp_op_in(r->op, SINKS)) return lp_rw_cast(r, lp_op_in(r->op, SINKS), LP_F32);
  if (!lp_op_i64(r->op, "smooth_softmax", 0)) return NULL;
  const float *zeros = LP_NEW_ARRAY(r->b.module->arena, float, g->heads);
  return lp_build_constant(&r->b, LP_F32, 1, &g->heads, zeros);
}

lp_status lp_rewrite_group_query(lp_rewrite *r) {
  gqa g = {.r = r, .causal = lp_op_i64(r->op, "causal", 1) != 0};
  int64_t window = lp_op_i64(r->op, "local_window_size", -1), kind = lp_op_i64(r->op, "qk_output", 0);
  lp_value *may = NULL;
  LP_TRY(lp_rw_heads(r, "num_heads", &g.heads));
  LP_TRY(lp_rw_heads(r, "kv_num_heads", &g.kv_heads));
  LP_TRY(check_attributes(r));
  g.window = window > 0 ? window : 0;
  g.uniform = !keeps_window(r->op) && is_uniform(&g);
  g.s = lp_rw_size(r, lp_op_in(r->op, QUERY), 1);
  LP_TRY(read_parts(&g));
  assert(g.q && g.k && g.v);
  LP_TRY(g.uniform ? count_positions(&g) : read_lengths(&g));
  LP_TRY(rotate(&g));
  lp_rw_attention a = {.q = g.q, .k = g.k, .v = g.v, .causal = g.causal, .window = g.window};
  a.past_k = lp_op_in(r->op, PAST_K);
  a.past_v = lp_op_in(r->op, PAST_V);
  a.mask = lp_op_in(r->op, BIAS);
  a.sinks = sinks(&g);
  a.scale = lp_op_f64(r->op, "scale", 0);
  a.softcap = lp_op_f64(r->op, "softcap", 0);
  if (!g.uniform) LP_TRY(keeps_window(r->op) ? attend_window(&g, &a, &may) : attend_ragged(&g, &a, &may));
  bool want_scores = lp_op_out(r->op, 3) && lp_op_out(r->op, 3)->uses && kind != 0;
  a.scores = kind == 2 ? 3 : 2;
  LP_TRY(lp_rw_attend(r, &a, want_scores));
  for (int i = 0; i < 2; i++)
    if (g.present[i]) r->result[1 + i] = g.present[i];
  if (want_scores && kind == 1 && may) /* invisible keys score 0 */
    r->result[3] = lp_rw_op3(r, LP_ONNX_Where, may, r->result[3], lp_build_float(&r->b, g.q->type.dtype, 0));
  return want_scores && !r->result[3] ? LP_FAILED : LP_OK;
}
