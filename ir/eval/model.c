/* Attention, rotary embedding and caches of the reference interpreter. */
#include "ir/eval/eval.h"

#include <math.h>

/* ---- attention ---- */

/* Heads of an operand: element [b][h][row][i] is data[b * batch + h * head + row * step + i]. */
typedef struct {
  const double *data;
  int64_t batch, head, step;
} heads_view;

typedef struct {
  heads_view q, k, v, past_k, past_v; /* the first `past` rows of key and value come from past_* */
  int64_t batch, heads, kv_heads, rows, past, total, dim, value_dim;
  double scale, softcap;
  bool causal;
  int64_t offset;          /* query row i stands at position i + offset; with lengths, at i + length - rows */
  int64_t left, right;     /* positions seen before and after the query's own; -1: all */
  const lp_array *mask;    /* added, or bool; NULL: none */
  const lp_array *lengths; /* keys per batch; NULL: all */
  const lp_array *sinks;   /* per head, a score without a value; NULL: none */
  lp_array *scores;        /* [batch][heads][rows][total], or NULL */
  int64_t scores_mode;     /* 0: products, 1: with softcap, 2: with softcap and mask, 3: softmax */
} attention;

static const double *row_of(const heads_view *new_rows, const heads_view *past, int64_t past_rows, int64_t b, int64_t h,
                            int64_t row) {
  const heads_view *from = past && row < past_rows ? past : new_rows;
  if (from == new_rows) row -= past_rows;
  return from->data + b * from->batch + h * from->head + row * from->step;
}

/* The summand of a score: the mask's element. It is minus infinity where the mask forbids the key or has no column for
 * it. */
static double mask_at(const attention *a, int64_t b, int64_t h, int64_t i, int64_t j) {
  int64_t length = a->lengths ? lp_array_i64(a->lengths, b) : a->total;
  int64_t position = i + (a->lengths ? length - a->rows : a->offset);
  bool seen = j < length && (!a->causal || j <= position) && (a->left < 0 || position - j <= a->left) &&
              (a->right < 0 || j - position <= a->right);
  if (!seen) return -INFINITY;
  if (!a->mask) return 0;
  int64_t width = a->mask->dim[a->mask->rank - 1], total = width > 1 ? width : a->total;
  if (j >= total) return -INFINITY;
  int64_t dim[4] = {a->batch, a->heads, a->rows, total};
  int64_t at = lp_broadcast_index(a->mask, ((b * a->heads + h) * a->rows + i) * total + j, 4, dim);
  if (a->mask->dtype == LP_BOOL) return lp_array_i64(a->mask, at) ? 0 : -INFINITY;
  return lp_array_f64(a->mask, at);
}

static void keep_score(const attention *a, int64_t at, int64_t mode, double value) {
  if (a->scores && a->scores_mode == mode) lp_array_set_f64(a->scores, at, value);
}

/* The cap is applied before the mask. If it came after, minus infinity would become finite, and masked keys visible. */
static double capped(const attention *a, double score) {
  return a->softcap > 0 ? a->softcap * tanh(score / a->softcap) : score;
}

static void attend_row(const attention *a, int64_t b, int64_t h, int64_t i, double *weights, double *y) {
  int64_t kv = h / (a->heads / a->kv_heads), at = ((b * a->heads + h) * a->rows + i) * a->total;
  const double *q = row_of(&a->q, NULL, 0, b, h, i);
  double max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < a->total; j++) {
    const double *k = row_of(&a->k, &a->past_k, a->past, b, kv, j);
    double score = 0;
    for (int64_t d = 0; d < a->dim; d++)
      score += q[d] * k[d];
    double mask = mask_at(a, b, h, i, j);
    score *= a->scale;
    keep_score(a, at + j, 0, score);
    keep_score(a, at + j, 1, capped(a, score));
    weights[j] = isinf(mask) && mask < 0 ? mask : capped(a, score) + mask;
    keep_score(a, at + j, 2, weights[j]);
    max = fmax(max, weights[j]);
  }
  if (a->sinks) {
    double sink = lp_array_f64(a->sinks, h);
    max = fmax(max, sink);
    sum = exp(sink - max);
  }
  for (int64_t j = 0; j < a->total; j++) {
    weights[j] = isinf(max) ? 0 : exp(weights[j] - max);
    sum += weights[j];
  }
  for (int64_t d = 0; d < a->value_dim; d++)
    y[d] = 0;
  for (int64_t j = 0; j < a->total; j++) {
    const double *v = row_of(&a->v, &a->past_v, a->past, b, kv, j);
    double weight = sum > 0 ? weights[j] / sum : 0;
    keep_score(a, at + j, 3, weight);
    for (int64_t d = 0; d < a->value_dim && weight != 0; d++)
      y[d] += weight * v[d];
  }
}

/* `out` has the layout of the query's view but value_dim wide. */
static void attend(const lp_eval *e, const attention *a, lp_array *out, int64_t batch, int64_t head, int64_t step) {
  double *weights = LP_NEW_ARRAY(e->arena, double, a->total + 1), *y = LP_NEW_ARRAY(e->arena, double, a->value_dim + 1);
  for (int64_t b = 0; b < a->batch; b++)
    for (int64_t h = 0; h < a->heads; h++)
      for (int64_t i = 0; i < a->rows; i++) {
        attend_row(a, b, h, i, weights, y);
        for (int64_t d = 0; d < a->value_dim; d++)
          lp_array_set_f64(out, b * batch + h * head + i * step + d, y[d]);
      }
}

static lp_status check_attention(const lp_eval *e, const attention *a) {
  if (a->kv_heads < 1 || a->heads % a->kv_heads) return lp_eval_fail(e, "its key heads do not divide its query heads");
  if (a->sinks && lp_array_numel(a->sinks) != a->heads) return lp_eval_fail(e, "its sinks are not one per head");
  if (!a->mask) return LP_OK;
  int64_t width = a->mask->rank > 0 ? a->mask->dim[a->mask->rank - 1] : 0;
  int32_t rank = 4;
  int64_t dim[LP_MAX_RANK] = {a->batch, a->heads, a->rows, width > 1 ? width : a->total};
  if (a->mask->rank < 1 || a->mask->rank > 4 || width > a->total) return lp_eval_fail(e, "its mask does not broadcast");
  return lp_eval_broadcast(e, &rank, dim, a->mask->rank, a->mask->dim);
}

/* [b][h][row][d], [b][row][h][d] or [b][row][h * d] */
typedef struct {
  int64_t batch, heads, rows, dim;
} sizes;

/* Rows of codes as doubles. */
static const double *decode_rows(const lp_eval *e, const lp_array *cache, int64_t width) {
  const int64_t row = cache->dim[3], rows = lp_array_numel(cache) / row;
  float *x = LP_NEW_ARRAY(e->arena, float, width);
  double *out = LP_NEW_ARRAY(e->arena, double, rows *width + 1);
  for (int64_t i = 0; i < rows; i++) {
    lp_cache_decode(cache->dtype, width, (const char *)cache->data + i * row, x);
    for (int64_t k = 0; k < width; k++)
      out[i * width + k] = (double)x[k];
  }
  return out;
}

static lp_status view_heads(const lp_eval *e, const lp_array *x, bool heads_first, int64_t heads, heads_view *view,
                            sizes *out) {
  if (x->rank == 4) {
    *out = (sizes){x->dim[0], x->dim[heads_first ? 1 : 2], x->dim[heads_first ? 2 : 1], x->dim[3]};
  } else if (x->rank == 3 && heads > 0 && x->dim[2] % heads == 0) {
    *out = (sizes){x->dim[0], heads, x->dim[1], x->dim[2] / heads};
    heads_first = false;
  } else {
    return lp_eval_fail(e, "an operand is not a tensor of heads");
  }
  const bool coded = x->rank == 4 && lp_cache_is_coded(x->dtype);
  if (coded) out->dim = lp_cache_width(x->dtype, out->dim);
  if (out->dim < 0) return lp_eval_fail(e, "rows of %" PRId64 " bytes are no whole blocks", x->dim[3]);
  view->data = coded ? decode_rows(e, x, out->dim) : lp_eval_doubles(e, x);
  view->batch = out->heads * out->rows * out->dim;
  view->head = heads_first ? out->rows * out->dim : out->dim;
  view->step = heads_first ? out->dim : out->heads * out->dim;
  return LP_OK;
}

/* present = past followed by the new rows: [b][h][total][d] */
static lp_status present(const lp_eval *e, int32_t index, const heads_view *rows, const heads_view *past,
                         const attention *a, int64_t width) {
  if (index >= e->op->out_count) return LP_OK;
  lp_array *out;
  int64_t dim[4] = {a->batch, a->kv_heads, a->total, width}, at = 0;
  LP_TRY(lp_eval_out(e, index, e->in[index]->dtype, 4, dim, &out));
  for (int64_t b = 0; b < a->batch; b++)
    for (int64_t h = 0; h < a->kv_heads; h++)
      for (int64_t j = 0; j < a->total; j++) {
        const double *from = row_of(rows, past, a->past, b, h, j);
        for (int64_t d = 0; d < width; d++)
          lp_array_set_f64(out, at++, from[d]);
      }
  return LP_OK;
}

static lp_status read_past(const lp_eval *e, attention *a, const sizes *k, const sizes *v) {
  sizes pk = {0}, pv = {0};
  if (!lp_eval_in(e, 4) || !lp_eval_in(e, 5)) return LP_OK;
  LP_TRY(view_heads(e, e->in[4], true, 0, &a->past_k, &pk));
  LP_TRY(view_heads(e, e->in[5], true, 0, &a->past_v, &pv));
  if (pk.batch != k->batch || pk.heads != k->heads || pk.dim != k->dim || pv.batch != v->batch ||
      pv.heads != v->heads || pv.dim != v->dim || pv.rows != pk.rows)
    return lp_eval_fail(e, "its past does not fit its key and value");
  a->past = pk.rows;
  return LP_OK;
}

static lp_status scores_out(const lp_eval *e, attention *a) {
  if (e->op->out_count < 4) return LP_OK;
  int64_t dim[4] = {a->batch, a->heads, a->rows, a->total};
  a->scores_mode = lp_op_i64(e->op, "qk_matmul_output_mode", 0);
  return lp_eval_out(e, 3, e->in[0]->dtype, 4, dim, &a->scores);
}

lp_status eval_onnx_attention(const lp_eval *e) {
  attention a = {.mask = lp_eval_in(e, 3), .lengths = lp_eval_in(e, 6), .sinks = lp_eval_in(e, 7)};
  sizes q = {0}, k = {0}, v = {0};
  int64_t kv_heads = lp_op_i64(e->op, "kv_num_heads", 0);
  LP_TRY(view_heads(e, e->in[0], true, lp_op_i64(e->op, "q_num_heads", 0), &a.q, &q));
  LP_TRY(view_heads(e, e->in[1], true, kv_heads, &a.k, &k));
  LP_TRY(view_heads(e, e->in[2], true, kv_heads, &a.v, &v));
  if (q.batch != k.batch || v.batch != k.batch || q.dim != k.dim || v.rows != k.rows || v.heads != k.heads)
    return lp_eval_fail(e, "its query, key and value do not fit");
  LP_TRY(read_past(e, &a, &k, &v));
  a.batch = q.batch, a.heads = q.heads, a.kv_heads = k.heads, a.rows = q.rows, a.total = a.past + k.rows;
  a.dim = q.dim, a.value_dim = v.dim;
  a.scale = lp_op_f64(e->op, "scale", 1 / sqrt((double)q.dim));
  a.softcap = lp_op_f64(e->op, "softcap", 0);
  a.causal = lp_op_i64(e->op, "is_causal", 0) != 0;
  int64_t window = lp_op_i64(e->op, "window", 0);
  a.left = window > 0 ? window - 1 : lp_op_i64(e->op, "left_window_size", -1);
  a.right = lp_op_i64(e->op, "right_window_size", -1);
  a.offset = lp_op_i64(e->op, "bottom_right", 0) ? a.total - a.rows : a.past;
  LP_TRY(check_attention(e, &a));
  if (a.lengths && lp_array_numel(a.lengths) != a.batch) return lp_eval_fail(e, "its lengths are not one per batch");
  LP_TRY(scores_out(e, &a));
  lp_array *out;
  int64_t dim[4] = {q.batch, q.heads, q.rows, v.dim}, flat[3] = {q.batch, q.rows, q.heads * v.dim};
  bool is_flat = e->in[0]->rank == 3;
  LP_TRY(lp_eval_out(e, 0, e->in[0]->dtype, is_flat ? 3 : 4, is_flat ? flat : dim, &out));
  attend(e, &a, out, q.heads * q.rows * v.dim, is_flat ? v.dim : q.rows * v.dim, is_flat ? q.heads * v.dim : v.dim);
  LP_TRY(present(e, 1, &a.k, &a.past_k, &a, k.dim));
  return present(e, 2, &a.v, &a.past_v, &a, v.dim);
}

lp_status eval_op_ATTENTION(const lp_eval *e) {
  attention a = {.mask = lp_eval_in(e, 3), .sinks = lp_eval_in(e, 4), .right = -1};
  sizes q = {0}, k = {0}, v = {0};
  bool heads_first = !lp_streq(lp_op_str(e->op, "layout", "bhsd"), "bshd");
  LP_TRY(view_heads(e, e->in[0], heads_first, 0, &a.q, &q));
  LP_TRY(view_heads(e, e->in[1], true, 0, &a.k, &k));
  LP_TRY(view_heads(e, e->in[2], true, 0, &a.v, &v));
  if (q.batch != k.batch || v.batch != k.batch || q.dim != k.dim || v.rows != k.rows || v.heads != k.heads)
    return lp_eval_fail(e, "its query, key and value do not fit");
  a.batch = q.batch, a.heads = q.heads, a.kv_heads = k.heads, a.rows = q.rows, a.total = k.rows;
  a.dim = q.dim, a.value_dim = v.dim;
  a.scale = lp_op_f64(e->op, "scale", 1);
  a.softcap = lp_op_f64(e->op, "softcap", 0);
  a.causal = lp_op_bool(e->op, "causal", false);
  a.left = lp_op_i64(e->op, "window", 0) - 1;
  a.offset = a.total - a.rows;
  LP_TRY(check_attention(e, &a));
  lp_array *out;
  int64_t dim[4] = {q.batch, heads_first ? q.heads : q.rows, heads_first ? q.rows : q.heads, v.dim};
  LP_TRY(lp_eval_out(e, 0, e->op->out[0]->type.dtype, 4, dim, &out));
  attend(e, &a, out, q.heads * q.rows * v.dim, heads_first ? q.rows * v.dim : v.dim,
         heads_first ? v.dim : q.heads * v.dim);
  return LP_OK;
}

/* ---- rotary embedding ---- */

typedef struct {
  int64_t batch, heads, rows, dim, rotary;
  int64_t batch_stride, head_stride, row_stride; /* of x */
  bool interleaved;
} rotation;

/* Rotates pairs (i, i + rotary / 2), or (2 i, 2 i + 1) when interleaved; `angle` is where cos and sin of a row
 * begin. */
static void rotate_row(const rotation *r, const double *x, const double *cosine, const double *sine, lp_array *out,
                       int64_t at) {
  int64_t half = r->rotary / 2;
  for (int64_t i = 0; i < r->dim; i++)
    lp_array_set_f64(out, at + i, x[at + i]);
  for (int64_t i = 0; i < half; i++) {
    int64_t first = at + (r->interleaved ? 2 * i : i), second = at + (r->interleaved ? 2 * i + 1 : i + half);
    lp_array_set_f64(out, first, x[first] * cosine[i] - x[second] * sine[i]);
    lp_array_set_f64(out, second, x[first] * sine[i] + x[second] * cosine[i]);
  }
}

static lp_status rotate(const lp_eval *e, const rotation *r, const lp_array *positions, lp_array *out) {
  const lp_array *cosine = e->in[1], *sine = e->in[2];
  int64_t half = r->rotary / 2, table = lp_array_numel(cosine) / (half > 0 ? half : 1);
  if (r->rotary < 0 || r->rotary > r->dim || r->rotary % 2 || lp_array_numel(sine) != lp_array_numel(cosine) ||
      (half > 0 && cosine->dim[cosine->rank - 1] != half))
    return lp_eval_fail(e, "its tables do not fit a rotation of %" PRId64 " elements", r->rotary);
  const double *x = lp_eval_doubles(e, e->in[0]), *c = lp_eval_doubles(e, cosine), *s = lp_eval_doubles(e, sine);
  for (int64_t b = 0; b < r->batch; b++)
    for (int64_t i = 0; i < r->rows; i++) {
      int64_t row = (cosine->dim[0] > 1 && !positions ? b * r->rows : 0) + i;
      if (positions) row = lp_array_i64(positions, lp_array_numel(positions) == 1 ? 0 : b * r->rows + i);
      if (half > 0 && (row < 0 || row >= table)) return lp_eval_fail(e, "position %" PRId64 " of %" PRId64, row, table);
      for (int64_t h = 0; h < r->heads; h++)
        rotate_row(r, x, c + row * half, s + row * half, out,
                   b * r->batch_stride + h * r->head_stride + i * r->row_stride);
    }
  return LP_OK;
}

static lp_status rotation_of(const lp_eval *e, const lp_array *x, bool heads_first, int64_t heads, rotation *r) {
  heads_view view = {0};
  sizes s = {0};
  LP_TRY(view_heads(e, x, heads_first, heads, &view, &s));
  r->batch = s.batch, r->heads = s.heads, r->rows = s.rows, r->dim = s.dim;
  r->batch_stride = view.batch, r->head_stride = view.head, r->row_stride = view.step;
  return LP_OK;
}

lp_status eval_onnx_rotary(const lp_eval *e) {
  rotation r = {.interleaved = lp_op_i64(e->op, "interleaved", 0) != 0};
  const lp_array *positions = lp_eval_in(e, 3);
  lp_array *out;
  LP_TRY(rotation_of(e, e->in[0], true, lp_op_i64(e->op, "num_heads", 0), &r));
  r.rotary = lp_op_i64(e->op, "rotary_embedding_dim", 0);
  if (r.rotary == 0) r.rotary = r.dim;
  if (e->in[1]->rank != (positions ? 2 : 3)) return lp_eval_fail(e, "its tables have %d axes", e->in[1]->rank);
  if (positions ? lp_array_numel(positions) != r.batch * r.rows
                : e->in[1]->dim[1] != r.rows || (e->in[1]->dim[0] != 1 && e->in[1]->dim[0] != r.batch))
    return lp_eval_fail(e, "its positions do not fit its input");
  LP_TRY(lp_eval_out(e, 0, e->in[0]->dtype, e->in[0]->rank, e->in[0]->dim, &out));
  return rotate(e, &r, positions, out);
}

lp_status eval_op_ROTARY(const lp_eval *e) {
  rotation r = {.interleaved = lp_op_bool(e->op, "interleaved", false), .rotary = lp_op_i64(e->op, "rotary_dim", 0)};
  lp_array *out;
  LP_TRY(rotation_of(e, e->in[0], !lp_streq(lp_op_str(e->op, "layout", "bhsd"), "bshd"), 0, &r));
  if (e->in[1]->rank != 3 || e->in[1]->dim[1] != r.rows || (e->in[1]->dim[0] != 1 && e->in[1]->dim[0] != r.batch))
    return lp_eval_fail(e, "its tables do not fit its input");
  LP_TRY(lp_eval_out(e, 0, e->in[0]->dtype, e->in[0]->rank, e->in[0]->dim, &out));
  return rotate(e, &r, NULL, out);
}

/* ---- caches and communication ---- */

/* Without a past the cache holds only the appended rows; with one its content must be bound (lp_value_eval). */
lp_status eval_op_KV_APPEND(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  const lp_array *x = e->in[0];
  bool heads_first = !lp_streq(lp_op_str(e->op, "layout", "bhsd"), "bshd");
  lp_array *out;
  if (x->rank != 4) return lp_eval_fail(e, "its operand has %d axes, 4 wanted", x->rank);
  LP_TRY(lp_eval_out_typed(e, 0, &out));
  int64_t heads = out->dim[1], rows = out->dim[2], dim = x->dim[3];
  if (out->dim[0] * heads * rows * dim != lp_array_numel(x) || lp_cache_row(out->dtype, dim) != out->dim[3])
    return lp_eval_fail(e, "the past rows of cache %" PRId64 " are not bound", lp_op_i64(e->op, "state", 0));
  const size_t bytes = (size_t)(out->dim[3] * lp_dtype_bits(out->dtype) / 8);
  float *row = LP_NEW_ARRAY(e->arena, float, dim + 1);
  for (int64_t at = 0; at < out->dim[0] * heads * rows; at++) {
    const int64_t b = at / rows / heads, h = at / rows % heads, i = at % rows;
    for (int64_t d = 0; d < dim; d++)
      row[d] = (float)lp_array_f64(x, (heads_first ? at : (b * rows + i) * heads + h) * dim + d);
    lp_cache_encode(out->dtype, dim, row, (char *)out->data + (size_t)at * bytes);
  }
  return LP_OK;
}

/* Of sequences that begin: their past columns are zeros. */
lp_status eval_op_CARRY_COLUMNS(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  LP_TRY(lp_eval_begins(e));
  const lp_array *x = e->in[0];
  lp_array *out[2];
  for (int32_t i = 0; i < 2; i++)
    LP_TRY(lp_eval_out_typed(e, i, &out[i]));
  const int64_t s = x->dim[2], k = out[1]->dim[2];
  if (x->rank != 3 || out[0]->dim[2] != s + k) return lp_eval_fail(e, "its columns do not fit its operand");
  for (int64_t row = 0; row < x->dim[0] * x->dim[1]; row++)
    for (int64_t i = 0; i < s + k; i++) {
      const double value = i < k ? 0 : lp_array_f64(x, row * s + i - k);
      lp_array_set_f64(out[0], row * (s + k) + i, value);
      if (i >= s) lp_array_set_f64(out[1], row * k + i - s, value);
    }
  return LP_OK;
}

lp_status eval_op_COMM_SEND(const lp_eval *e) {
  (void)e;
  return LP_OK;
}

lp_status eval_op_COMM_RECV(const lp_eval *e) {
  return lp_eval_fail(e, "the value that it receives is not bound");
}

lp_status eval_op_COMM_KV_MOVE(const lp_eval *e) {
  (void)e;
  return LP_OK;
}

lp_status eval_op_COMM_ALL_GATHER(const lp_eval *e) {
  return lp_eval_fail(e, "the parts of the other ranks are not bound");
}

lp_status eval_onnx_decomposed(const lp_eval *e) {
  return lp_eval_fail(e, "'%s' is decomposed before it is evaluated", lp_op_info_get(e->op->kind)->name);
}
