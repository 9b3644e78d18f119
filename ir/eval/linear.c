/* Linear attention of the reference interpreter: the recurrence, one token after the other. */
#include "ir/eval/eval.h"

#include <math.h>

enum { Q, K, V, STATE, DECAY, BETA };

typedef struct {
  const double *q, *k, *v, *decay, *beta; /* decay and beta are NULL when absent */
  int64_t batch, rows, heads, kv_heads, d, dv;
  int64_t decays, betas; /* per token: kv_heads or kv_heads * d; kv_heads or 1 */
  double scale;
  bool delta;
} recurrence;

/* S = exp(g) S + k (x) w, where w is v, or beta (v - S^T k). */
static void step(const recurrence *r, int64_t token, int64_t head, double *state) {
  const double *k = r->k + (token * r->kv_heads + head) * r->d, *v = r->v + (token * r->kv_heads + head) * r->dv;
  for (int64_t i = 0; i < r->d && r->decay; i++) {
    int64_t at = r->decays == r->kv_heads ? head : head * r->d + i;
    for (int64_t j = 0; j < r->dv; j++)
      state[i * r->dv + j] *= exp(r->decay[token * r->decays + at]);
  }
  for (int64_t j = 0; j < r->dv; j++) {
    double seen = 0, wanted = v[j];
    for (int64_t i = 0; i < r->d; i++)
      seen += state[i * r->dv + j] * k[i];
    if (r->delta) wanted = r->beta[token * r->betas + (r->betas == 1 ? 0 : head)] * (v[j] - seen);
    for (int64_t i = 0; i < r->d; i++)
      state[i * r->dv + j] += k[i] * wanted;
  }
}

static void read_state(const recurrence *r, int64_t token, int64_t kv_head, const double *state, lp_array *y) {
  int64_t group = r->heads / r->kv_heads;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++)
    for (int64_t j = 0; j < r->dv; j++) {
      double sum = 0;
      for (int64_t i = 0; i < r->d; i++)
        sum += r->q[(token * r->heads + head) * r->d + i] * state[i * r->dv + j];
      lp_array_set_f64(y, (token * r->heads + head) * r->dv + j, r->scale * sum);
    }
}

static lp_status run(const lp_eval *e, recurrence *r) {
  const lp_array *q = e->in[Q], *k = e->in[K], *v = e->in[V], *past = lp_eval_in(e, STATE);
  const lp_array *decay = lp_eval_in(e, DECAY), *beta = lp_eval_in(e, BETA);
  lp_array *y, *out;
  if (r->heads < 1 || r->kv_heads < 1 || r->heads % r->kv_heads)
    return lp_eval_fail(e, "its key heads do not divide its query heads");
  if (q->rank != 3 || k->rank != 3 || v->rank != 3 || q->dim[2] % r->heads || v->dim[2] % r->kv_heads ||
      k->dim[2] != q->dim[2] / r->heads * r->kv_heads)
    return lp_eval_fail(e, "its query, key and value do not fit");
  r->batch = q->dim[0], r->rows = q->dim[1], r->d = q->dim[2] / r->heads, r->dv = v->dim[2] / r->kv_heads;
  int64_t state_dim[] = {r->batch, r->kv_heads, r->d, r->dv}, y_dim[] = {r->batch, r->rows, r->heads * r->dv};
  int64_t size = r->d * r->dv;
  if (past && lp_array_numel(past) != r->batch * r->kv_heads * size) return lp_eval_fail(e, "its state does not fit");
  r->q = lp_eval_doubles(e, q), r->k = lp_eval_doubles(e, k), r->v = lp_eval_doubles(e, v);
  r->decay = decay ? lp_eval_doubles(e, decay) : NULL;
  r->beta = beta ? lp_eval_doubles(e, beta) : NULL;
  r->decays = decay ? decay->dim[2] : 0;
  r->betas = beta ? beta->dim[2] : 0;
  if (r->delta && !beta) return lp_eval_fail(e, "its beta is missing");
  LP_TRY(lp_eval_out(e, 0, q->dtype, 3, y_dim, &y));
  LP_TRY(lp_eval_out(e, 1, past ? past->dtype : q->dtype, 4, state_dim, &out));
  double *state = LP_NEW_ARRAY(e->arena, double, size + 1);
  for (int64_t b = 0; b < r->batch; b++)
    for (int64_t head = 0; head < r->kv_heads; head++) {
      int64_t at = (b * r->kv_heads + head) * size;
      for (int64_t i = 0; i < size; i++)
        state[i] = past ? lp_array_f64(past, at + i) : 0;
      for (int64_t t = b * r->rows; t < (b + 1) * r->rows; t++) {
        step(r, t, head, state);
        read_state(r, t, head, state, y);
      }
      for (int64_t i = 0; i < size; i++)
        lp_array_set_f64(out, at + i, state[i]);
    }
  return LP_OK;
}

lp_status eval_onnx_linear_attention(const lp_eval *e) {
  const char *rule = lp_op_str(e->op, "update_rule", "gated_delta");
  recurrence r = {.heads = lp_op_i64(e->op, "q_num_heads", 0), .kv_heads = lp_op_i64(e->op, "kv_num_heads", 0)};
  r.delta = lp_streq(rule, "delta") || lp_streq(rule, "gated_delta");
  r.scale = lp_op_f64(e->op, "scale", 0);
  int64_t width = r.heads > 0 && e->in[Q]->rank == 3 ? e->in[Q]->dim[2] / r.heads : 0;
  if (r.scale == 0 && width > 0) r.scale = 1 / sqrt((double)width);
  return run(e, &r);
}

/* A state that is a cache is zeros. */
lp_status eval_op_LINEAR_ATTENTION(const lp_eval *e) {
  if (lp_op_state(e->op) >= 0) LP_TRY(lp_eval_begins(e));
  recurrence r = {.heads = lp_op_i64(e->op, "heads", 0), .kv_heads = lp_op_i64(e->op, "kv_heads", 0)};
  r.delta = lp_op_bool(e->op, "delta", false);
  r.scale = lp_op_f64(e->op, "scale", 1);
  return run(e, &r);
}
