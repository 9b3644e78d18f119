/* The certificate of a plan: the problem as the exact scheduler sees it, the plan, the plans it is compared with, and
 * the prices that prove the bound. `llmpart check-plan` confirms it by code of its own.
 *
 * The prices are those of the limits. They are 0 where the scheduler proves nothing; the bound then holds for all
 * placements, also those that break a limit. The bound is the least price of all placements, a minimum cut, minus the
 * prices of the limits. Each unit states its charge for messages and the amounts that it exchanges with its values and
 * holdings; after these exchanges the separate minima add up to the bound. */
#include "base/side.h"
#include "passes/plan/exact/cut.h"
#include "passes/plan/report/report.h"

#include <math.h>
#include <string.h>

static void put_pair(lp_json_writer *j, const char *name, double a, double b) {
  lp_json_put_flat_array(j, name);
  lp_json_put_number(j, NULL, a);
  lp_json_put_number(j, NULL, b);
  lp_json_put_end(j);
}

static void put_list(lp_json_writer *j, const char *name, const int32_t *list, int32_t count) {
  lp_json_put_flat_array(j, name);
  for (int32_t i = 0; i < count; i++)
    lp_json_put_integer(j, NULL, list[i]);
  lp_json_put_end(j);
}

static void put_numbers(lp_json_writer *j, const char *name, const double *list, int32_t count) {
  lp_json_put_flat_array(j, name);
  for (int32_t i = 0; i < count; i++)
    lp_json_put_number(j, NULL, list[i]);
  lp_json_put_end(j);
}

static void put_problem(const lp_exact *x, lp_json_writer *j) {
  const lp_plan_weights *w = &x->weights;
  lp_json_put_flat_object(j, "objective");
  put_pair(j, "prefill_per_ms", w->busy[0][0], w->busy[0][1]);
  put_pair(j, "decode_per_ms", w->busy[1][0], w->busy[1][1]);
  put_pair(j, "link_per_ms", w->link[0], w->link[1]);
  lp_json_put_number(j, "move_per_ms", w->move);
  lp_json_put_end(j);
  lp_json_put_flat_object(j, "limits");
  put_pair(j, "ms", x->limit_ms[0], x->limit_ms[1]);
  put_pair(j, "bytes", x->limit_bytes[0], x->limit_bytes[1]);
  lp_json_put_end(j);
  lp_json_put_flat_object(j, "link");
  lp_json_put_number(j, "message_ms", x->rtt_half);
  put_pair(j, "ms_per_byte", x->ms_per_byte[0], x->ms_per_byte[1]);
  lp_json_put_end(j);
}

static void put_holdings(const lp_exact *x, lp_json_writer *j) {
  lp_json_put_lines(j, "holdings");
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *h = &x->holding[i];
    lp_json_put_object(j, NULL);
    put_pair(j, "bytes", h->bytes[0], h->bytes[1]);
    if (h->is_state) {
      lp_json_put_bool(j, "cache", true);
      lp_json_put_number(j, "move_bytes", h->move_bytes);
    }
    if (h->ms[0][0] > 0 || h->ms[0][1] > 0 || h->ms[1][0] > 0 || h->ms[1][1] > 0) {
      put_pair(j, "prefill_ms", h->ms[0][0], h->ms[0][1]);
      put_pair(j, "decode_ms", h->ms[1][0], h->ms[1][1]);
    }
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

/* The unit's slots, in order: values read, values made, holdings, the returning token. */
static void put_slots(const lp_exact_unit *unit, const double *way, const double *split, lp_json_writer *j) {
  int32_t count = unit->in_count + unit->out_count + unit->hold_count;
  put_numbers(j, "way", way, unit->in_count);
  if (unit->is_result) lp_json_put_number(j, "return_way", way[count]);
  put_numbers(j, "split", split, count);
}

/* The report's rows for a unit: the operators that it joins, as a list of rows of `operators`. */
typedef struct {
  int32_t *first; /* [unit] row; -1: none */
  int32_t *next;  /* [row] the next one of the same unit; -1: none */
} unit_rows;

static unit_rows list_rows(const lp_report *report, const lp_exact *x, lp_stage stage) {
  unit_rows rows = {LP_NEW_ARRAY(x->arena, int32_t, x->unit_count[stage]),
                    LP_NEW_ARRAY(x->arena, int32_t, report->operator_count)};
  for (int32_t i = 0; i < x->unit_count[stage]; i++)
    rows.first[i] = -1;
  for (int32_t i = report->operator_count; i-- > 0;) {
    const lp_report_operator *item = &report->operators[i];
    if (item->stage != stage) continue;
    int32_t unit = x->unit_of[stage][item->op - report->problem[stage].ops];
    if (unit < 0) continue;
    rows.next[i] = rows.first[unit];
    rows.first[unit] = i;
  }
  return rows;
}

static void put_unit(const lp_exact_unit *unit, const lp_report *report, const unit_rows *rows, int32_t first,
                     double result_bytes, lp_json_writer *j) {
  lp_json_put_text(j, "name", first < 0 ? "" : lp_op_str(report->operators[first].op->op, "name", ""));
  lp_json_put_integer(j, "side", first < 0 ? 0 : (int64_t)report->operators[first].side);
  lp_json_put_flat_array(j, "operators");
  for (int32_t i = first; i >= 0; i = rows->next[i])
    lp_json_put_integer(j, NULL, i);
  lp_json_put_end(j);
  put_pair(j, "ms", unit->ms[0], unit->ms[1]);
  put_pair(j, "activation", unit->activation[0], unit->activation[1]);
  put_list(j, "in", unit->in, unit->in_count);
  put_list(j, "out", unit->out, unit->out_count);
  put_list(j, "hold", unit->hold, unit->hold_count);
  if (unit->pin >= 0) lp_json_put_integer(j, "pin", unit->pin);
  if (unit->is_result) lp_json_put_number(j, "result_bytes", result_bytes);
}

static void put_stage(const lp_report *report, lp_stage stage, const lp_cut *cut, const double *split,
                      lp_json_writer *j) {
  const lp_exact *x = cut->x;
  const lp_plan_problem *problem = &x->problem[stage];
  const unit_rows rows = list_rows(report, x, stage);
  lp_json_put_flat_object(j, lp_stage_names[stage]);
  lp_json_put_array(j, "values");
  for (int32_t i = 0; i < problem->value_count; i++)
    lp_json_put_number(j, NULL, x->value[stage][i].bytes);
  lp_json_put_end(j);
  lp_json_put_lines(j, "units");
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    int32_t slot = cut->first_slot[stage][i];
    lp_json_put_object(j, NULL);
    put_unit(&x->unit[stage][i], report, &rows, rows.first[i], problem->result_bytes, j);
    put_slots(&x->unit[stage][i], cut->way + slot, split + slot, j);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
  lp_json_put_end(j);
}

/* The sides of a stage's units as digits, 0 the device; NULL where a unit's operators are on both. */
static const char *unit_sides(const lp_exact *x, lp_stage stage, const lp_side *side) {
  char *text = LP_NEW_ARRAY(x->arena, char, x->unit_count[stage] + 1);
  for (int32_t i = 0; i < x->problem[stage].op_count; i++) {
    int32_t unit = x->unit_of[stage][i];
    if (unit < 0) continue;
    char digit = side[i] == LP_SIDE_CLOUD ? '1' : '0';
    if (text[unit] && text[unit] != digit) return NULL;
    text[unit] = digit;
  }
  return text;
}

static void put_sides(const lp_exact *x, const char *name, const lp_report_baseline *other, lp_json_writer *j) {
  lp_json_put_flat_object(j, name);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_json_put_text(j, lp_stage_names[stage], unit_sides(x, (lp_stage)stage, other->side[stage]));
  lp_json_put_end(j);
}

/* Writes the sides of the units in the plans that the report compares with. */
static void put_others(const lp_report *report, const lp_exact *x, lp_json_writer *j) {
  lp_json_put_object(j, "baselines");
  for (int32_t i = 0; i < report->baseline_count; i++)
    put_sides(x, report->baselines[i].name, &report->baselines[i], j);
  lp_json_put_end(j);
  if (report->faster.name) put_sides(x, "faster", &report->faster, j);
  if (report->cheapest.name) put_sides(x, "cheapest", &report->cheapest, j);
}

static void put_whole(const lp_report *report, const lp_cut *cut, double bound, lp_json_writer *j) {
  const lp_plan_proof *proof = &report->proof;
  const double *split = lp_cut_splits(cut);
  lp_plan_result full; /* the savings of early exits are not a sum over operators */
  lp_plan_evaluate(report->problem, &report->full, (lp_side *const *)report->side, &full);
  lp_json_put_object(j, "certificate");
  lp_json_put_number(j, "value", lp_plan_objective_value(&full, report->request));
  lp_json_put_number(j, "bound", bound);
  if (proof->known && !isnan(proof->aim)) lp_json_put_number(j, "aim", proof->aim);
  lp_json_put_flat_object(j, "prices");
  put_pair(j, "ms", proof->per_ms[0], proof->per_ms[1]);
  put_pair(j, "bytes", proof->per_byte[0], proof->per_byte[1]);
  lp_json_put_end(j);
  put_problem(cut->x, j);
  put_holdings(cut->x, j);
  put_stage(report, LP_STAGE_PREFILL, cut, split, j);
  put_stage(report, LP_STAGE_DECODE, cut, split, j);
  put_others(report, cut->x, j);
  lp_json_put_end(j);
}

/* Without a cloud every unit is on the device. */
static void pin_to_device(lp_exact *x) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      x->unit[stage][i].pin = LP_SIDE_DEVICE;
}

/* "null" where the proof belongs to another problem, because the module changed after the scheduler ran. */
void lp_report_certificate(const lp_report *report, lp_json_writer *json) {
  const lp_plan_proof *proof = &report->proof;
  lp_exact_duals duals = {.per_ms = {proof->per_ms[0], proof->per_ms[1]},
                          .per_byte = {proof->per_byte[0], proof->per_byte[1]}};
  lp_exact x;
  lp_cut cut;
  lp_exact_build(report->problem, report->request, report->arena, &x);
  if (!report->request->cloud) pin_to_device(&x);
  lp_cut_create(&x, &cut);
  bool fits = !proof->known || proof->way_count == cut.slot_count;
  if (fits && proof->known) memcpy(cut.way, proof->way, (size_t)cut.slot_count * sizeof *cut.way);
  double bound = fits ? lp_cut_solve(&cut, &duals) : INFINITY;
  int digits = json->style.digits;
  json->style.digits = 17; /* the checker adds up the same doubles */
  if (isinf(bound))
    lp_json_put_null(json, "certificate");
  else
    put_whole(report, &cut, bound, json);
  json->style.digits = digits;
}
