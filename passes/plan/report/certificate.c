/* The certificate of a plan: the problem as the exact scheduler sees it, the plan, and the prices that prove the
 * bound. `llmpart check-plan` confirms it by code of its own. Prices are those of the limits. The bound is the least
 * price of all placements, a minimum cut, less the prices of the limits. Each unit states its charge for messages
 * and what it exchanges with its values and holdings; after these exchanges the separate minima add up to the bound. */
#include "base/json/writer.h"
#include "base/side.h"
#include "passes/plan/exact/cut.h"
#include "passes/plan/report/report.h"

#include <math.h>
#include <string.h>

static void put_pair(lp_buf *out, const char *name, double a, double b) {
  lp_buf_printf(out, "\"%s\": [%.17g, %.17g]", name, a, b);
}

static void put_list(lp_buf *out, const char *name, const int32_t *list, int32_t count) {
  lp_buf_printf(out, ", \"%s\": [", name);
  for (int32_t i = 0; i < count; i++)
    lp_buf_printf(out, "%s%" PRId32, i ? ", " : "", list[i]);
  lp_buf_puts(out, "]");
}

static void put_problem(const lp_exact *x, lp_buf *out) {
  const lp_plan_weights *w = &x->weights;
  lp_buf_puts(out, "    \"objective\": {");
  put_pair(out, "prefill_per_ms", w->busy[0][0], w->busy[0][1]);
  lp_buf_puts(out, ", ");
  put_pair(out, "decode_per_ms", w->busy[1][0], w->busy[1][1]);
  lp_buf_puts(out, ", ");
  put_pair(out, "link_per_ms", w->link[0], w->link[1]);
  lp_buf_printf(out, ", \"move_per_ms\": %.17g},\n    \"limits\": {", w->move);
  put_pair(out, "ms", x->limit_ms[0], x->limit_ms[1]);
  lp_buf_puts(out, ", ");
  put_pair(out, "bytes", x->limit_bytes[0], x->limit_bytes[1]);
  lp_buf_printf(out, "},\n    \"link\": {\"message_ms\": %.17g, ", x->rtt_half);
  put_pair(out, "ms_per_byte", x->ms_per_byte[0], x->ms_per_byte[1]);
  lp_buf_puts(out, "},\n");
}

static void put_holdings(const lp_exact *x, lp_buf *out) {
  lp_buf_puts(out, "    \"holdings\": [");
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *h = &x->holding[i];
    lp_buf_printf(out, "%s\n      {", i ? "," : "");
    put_pair(out, "bytes", h->bytes[0], h->bytes[1]);
    if (h->is_state) lp_buf_printf(out, ", \"cache\": true, \"move_bytes\": %.17g", h->move_bytes);
    if (h->ms[0][0] > 0 || h->ms[0][1] > 0 || h->ms[1][0] > 0 || h->ms[1][1] > 0) {
      lp_buf_puts(out, ", ");
      put_pair(out, "prefill_ms", h->ms[0][0], h->ms[0][1]);
      lp_buf_puts(out, ", ");
      put_pair(out, "decode_ms", h->ms[1][0], h->ms[1][1]);
    }
    lp_buf_puts(out, "}");
  }
  lp_buf_puts(out, "],\n");
}

static void put_numbers(lp_buf *out, const char *name, const double *list, int32_t count) {
  lp_buf_printf(out, ", \"%s\": [", name);
  for (int32_t i = 0; i < count; i++)
    lp_buf_printf(out, "%s%.17g", i ? ", " : "", list[i]);
  lp_buf_puts(out, "]");
}

/* The unit's slots, in order: values read, values made, holdings, the returning token. */
static void put_slots(const lp_exact_unit *unit, const double *way, const double *split, lp_buf *out) {
  int32_t count = unit->in_count + unit->out_count + unit->hold_count;
  put_numbers(out, "way", way, unit->in_count);
  if (unit->is_result) lp_buf_printf(out, ", \"return_way\": %.17g", way[count]);
  put_numbers(out, "split", split, count);
}

static void put_unit(const lp_exact_unit *unit, const char *name, lp_side side, double result_bytes, lp_buf *out) {
  lp_buf_puts(out, "{\"name\": ");
  lp_json_quote(name, out);
  lp_buf_printf(out, ", \"side\": %d, ", (int)side);
  put_pair(out, "ms", unit->ms[0], unit->ms[1]);
  lp_buf_puts(out, ", ");
  put_pair(out, "activation", unit->activation[0], unit->activation[1]);
  put_list(out, "in", unit->in, unit->in_count);
  put_list(out, "out", unit->out, unit->out_count);
  put_list(out, "hold", unit->hold, unit->hold_count);
  if (unit->pin >= 0) lp_buf_printf(out, ", \"pin\": %d", unit->pin);
  if (unit->is_result) lp_buf_printf(out, ", \"result_bytes\": %.17g", result_bytes);
}

static void put_stage(const lp_exact *x, lp_stage stage, const lp_side *side, const lp_cut *cut, const double *split,
                      lp_buf *out) {
  const lp_plan_problem *problem = &x->problem[stage];
  lp_side *of_unit = LP_NEW_ARRAY(x->arena, lp_side, x->unit_count[stage]);
  const char **name = LP_NEW_ARRAY(x->arena, const char *, x->unit_count[stage]);
  for (int32_t i = 0; i < problem->op_count; i++) {
    int32_t unit = x->unit_of[stage][i];
    if (unit < 0) continue;
    of_unit[unit] = side[i];
    if (!name[unit]) name[unit] = lp_op_str(problem->ops[i].op, "name", "");
  }
  lp_buf_printf(out, "    \"%s\": {\"values\": [", lp_stage_names[stage]);
  for (int32_t i = 0; i < problem->value_count; i++)
    lp_buf_printf(out, "%s%.17g", i ? ", " : "", x->value[stage][i].bytes);
  lp_buf_puts(out, "], \"units\": [");
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    lp_buf_printf(out, "%s\n      ", i ? "," : "");
    put_unit(&x->unit[stage][i], name[i], of_unit[i], problem->result_bytes, out);
    int32_t slot = cut->first_slot[stage][i];
    put_slots(&x->unit[stage][i], cut->way + slot, split + slot, out);
    lp_buf_puts(out, "}");
  }
  lp_buf_puts(out, "]}");
}

static void put_whole(const lp_report *report, const lp_cut *cut, double bound, lp_buf *out) {
  const lp_plan_proof *proof = &report->proof;
  const double *split = lp_cut_splits(cut);
  lp_buf_printf(out, "{\n    \"value\": %.17g,\n    \"bound\": %.17g,\n",
                lp_plan_objective_value(&report->plan, report->request), bound);
  lp_buf_puts(out, "    \"prices\": {");
  put_pair(out, "ms", proof->per_ms[0], proof->per_ms[1]);
  lp_buf_puts(out, ", ");
  put_pair(out, "bytes", proof->per_byte[0], proof->per_byte[1]);
  lp_buf_puts(out, "},\n");
  put_problem(cut->x, out);
  put_holdings(cut->x, out);
  put_stage(cut->x, LP_STAGE_PREFILL, report->side[0], cut, split, out);
  lp_buf_puts(out, ",\n");
  put_stage(cut->x, LP_STAGE_DECODE, report->side[1], cut, split, out);
  lp_buf_puts(out, "\n  }");
}

/* "null" where the proof belongs to another problem: the module changed after the scheduler ran. */
void lp_report_certificate(const lp_report *report, lp_buf *out) {
  const lp_plan_proof *proof = &report->proof;
  lp_exact_duals duals = {.per_ms = {proof->per_ms[0], proof->per_ms[1]},
                          .per_byte = {proof->per_byte[0], proof->per_byte[1]}};
  lp_exact x;
  lp_cut cut;
  lp_exact_build(report->problem, report->request, report->arena, &x);
  lp_cut_create(&x, &cut);
  bool fits = proof->way_count == cut.slot_count;
  if (fits) memcpy(cut.way, proof->way, (size_t)cut.slot_count * sizeof *cut.way);
  double bound = fits ? lp_cut_solve(&cut, &duals) : INFINITY;
  if (isinf(bound))
    lp_buf_puts(out, "null");
  else
    put_whole(report, &cut, bound, out);
}
