/* P1's Table I, as printed: multiply-adds and elements of linear, attention, FFN and LM head operators. The counting
 * differs from the one that llmpart computes by (docs/measurements/planning.md): the score matrix is counted once for
 * all heads, Q.K^T is not counted, the LM head reads 2 h elements, and no other operator is counted. */
#include "passes/plan/report/report.h"

static bool is_head(const lp_plan_op *item, int32_t layer_count) {
  return lp_streq(lp_op_str(item->op, "layer_kind", NULL), "lm_head") || item->layer >= layer_count;
}

static int64_t last_dim(const lp_value *value) {
  int64_t size = 0;
  return lp_type_static_dim(value->type, -1, &size) ? size : 0;
}

/* m rows: s h f multiply-adds over s h + s f + h f elements. */
static lp_table1_row linear_row(const lp_report *report, const lp_plan_op *item, lp_stage stage) {
  double m = stage == LP_STAGE_PREFILL ? (double)report->request->isl : 1;
  int64_t k = last_dim(item->op->in[0].value), n = last_dim(item->op->out[0]);
  double dk = (double)k, dn = (double)n;
  bool mlp = lp_streq(lp_op_str(item->op, "layer_kind", NULL), "mlp");
  lp_table1_row row = {mlp ? "FFN" : "Q, K, V, O linear", lp_stage_names[stage], k, n, m * dk * dn,
                       m * dk + m * dn + dk * dn};
  if (is_head(item, report->problem[stage].layer_count)) {
    row.name = "LM head";
    row.ops = dk * dn;
    row.elements = 2 * dk + dk * dn;
  }
  return row;
}

/* Prefill: s^2 h over 2 s h + s^2; decode, with one token after s: (s + 1) h over h + (s + 1) h + s + 1. */
static lp_table1_row attention_row(const lp_report *report, const lp_plan_op *item, lp_stage stage) {
  double s = (double)report->request->isl;
  int64_t width = lp_op_i64(item->op, "heads", 1) * lp_op_i64(item->op, "head_dim", 1);
  double h = (double)width;
  lp_table1_row row = {"S.V attention", lp_stage_names[stage], width, 0, s * s * h, 2 * s * h + s * s};
  if (stage == LP_STAGE_DECODE) {
    row.ops = (s + 1) * h;
    row.elements = h + (s + 1) * h + s + 1;
  }
  return row;
}

static bool same_row(const lp_table1_row *a, const lp_table1_row *b) {
  return lp_streq(a->name, b->name) && lp_streq(a->stage, b->stage) && a->k == b->k && a->n == b->n;
}

int32_t lp_table1_rows(const lp_report *report, lp_table1_row *rows, int32_t most) {
  int32_t count = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *problem = &report->problem[stage];
    LP_FOR_EACH(const lp_plan_op, item, problem->ops, problem->op_count) {
      lp_table1_row row;
      if (item->op->kind == LP_OP_LINEAR)
        row = linear_row(report, item, (lp_stage)stage);
      else if (item->op->kind == LP_OP_ATTENTION)
        row = attention_row(report, item, (lp_stage)stage);
      else
        continue;
      if (lp_streq(row.name, "LM head") && stage == LP_STAGE_PREFILL) continue; /* the table has it only in decode */
      int32_t at = 0;
      while (at < count && !same_row(&rows[at], &row))
        at++;
      if (at == count && count < most) rows[count++] = row;
    }
  }
  return count;
}
