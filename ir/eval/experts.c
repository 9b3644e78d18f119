/* Products whose weights data chooses, of the reference interpreter. */
#include "ir/eval/eval.h"

typedef struct {
  const lp_array *x, *index, *bias; /* bias may be NULL */
  lp_array w, gate;                 /* [experts * n][k]; gate.data NULL: none */
  const char *epilogue;
  int64_t experts, n, k;
} mixture;

/* Element `column` of x's row times the matrix of an expert. */
static double dot(const mixture *m, const lp_array *w, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < m->k; i++)
    sum += lp_array_f64(m->x, row * m->k + i) * lp_array_f64(w, column * m->k + i);
  return sum;
}

static double element(const mixture *m, int64_t x_row, int64_t column) {
  const double y = dot(m, &m->w, x_row, column) + (m->bias ? lp_array_f64(m->bias, column) : 0);
  return m->gate.data ? lp_eval_epilogue(m->epilogue, dot(m, &m->gate, x_row, column)) * y
                      : lp_eval_epilogue(m->epilogue, y);
}

static void write_row(const mixture *m, int64_t at, int64_t x_row, lp_array *out) {
  const int64_t expert = lp_array_i64(m->index, at);
  const bool is_inside = expert >= 0 && expert < m->experts;
  for (int64_t j = 0; j < m->n; j++)
    lp_array_set_f64(out, at * m->n + j, is_inside ? element(m, x_row, expert * m->n + j) : 0);
}

static lp_status run(const lp_eval *e, mixture *m) {
  const lp_array *x = m->x, *index = m->index;
  int64_t dim[LP_MAX_RANK], chosen = index->rank > 0 ? index->dim[index->rank - 1] : 0;
  lp_array *out;
  bool fits = x->rank == index->rank + 1 && x->rank >= 2 && m->w.rank == 2 && m->experts > 0;
  for (int32_t i = 0; fits && i + 1 < index->rank; i++)
    fits = x->dim[i] == index->dim[i];
  if (!fits || m->w.dim[0] % m->experts || (x->dim[x->rank - 2] != 1 && x->dim[x->rank - 2] != chosen) ||
      m->w.dim[1] != m->k)
    return lp_eval_fail(e, "its rows, index and weight do not fit");
  m->n = m->w.dim[0] / m->experts;
  memcpy(dim, x->dim, sizeof dim);
  dim[x->rank - 2] = chosen;
  dim[x->rank - 1] = m->n;
  LP_TRY(lp_eval_out(e, 0, e->op->out[0]->type.dtype, x->rank, dim, &out));
  int64_t shared = x->dim[x->rank - 2] == chosen || chosen < 1 ? 1 : chosen;
  for (int64_t at = 0; at < lp_array_numel(index); at++)
    write_row(m, at, at / shared, out);
  return LP_OK;
}

lp_status eval_onnx_experts(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 3));
  mixture m = {.x = e->in[0], .index = e->in[1], .w = *e->in[2], .bias = lp_eval_in(e, 3), .epilogue = "none"};
  m.experts = lp_op_i64(e->op, "experts", 0);
  m.k = m.x->rank > 0 ? m.x->dim[m.x->rank - 1] : 0;
  return run(e, &m);
}

lp_status eval_op_EXPERTS(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  mixture m = {.x = e->in[0], .bias = lp_eval_in(e, 2), .index = lp_eval_in(e, 3)};
  if (!m.index || m.x->rank < 1) return lp_eval_fail(e, "its index is missing");
  m.epilogue = lp_op_str(e->op, "epilogue", "none");
  m.experts = lp_op_i64(e->op, "experts", 0);
  m.k = m.x->dim[m.x->rank - 1];
  LP_TRY(lp_eval_weight(e, 1, 5, m.k, &m.w));
  if (lp_eval_in(e, 4)) LP_TRY(lp_eval_weight(e, 4, 7, m.k, &m.gate));
  return run(e, &m);
}
