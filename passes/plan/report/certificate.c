/* Fills the certificate of a plan (base/certificate.h), and writes it as JSON. proof/ confirms it by code of its own.
 *
 * The prices are those of the limits. They are 0 where the scheduler proves nothing; the bound then holds for all
 * placements, also those that break a limit. The bound is the least price of all placements, a minimum cut, minus the
 * prices of the limits. Each unit states its charge for messages and the amounts that it exchanges with its values and
 * holdings; after these exchanges the separate minima add up to the bound. */
#include "base/side.h"
#include "passes/plan/evaluate.h"
#include "passes/plan/exact/cut.h"
#include "passes/plan/report/report.h"

#include <math.h>

/* Bounds that differ by this share are equal. */
static const double rounding = 1e-9;

/* ---- the certificate --------------------------------------------------------------------------------------------- */

static void fill_problem(const lp_exact *x, lp_certificate *c) {
  memcpy(c->busy, x->weights.busy, sizeof c->busy);
  memcpy(c->link, x->weights.link, sizeof c->link);
  c->move = x->weights.move;
  memcpy(c->limit_ms, x->limit_ms, sizeof c->limit_ms);
  memcpy(c->limit_bytes, x->limit_bytes, sizeof c->limit_bytes);
  c->message_ms = x->rtt_half;
  memcpy(c->ms_per_byte, x->ms_per_byte, sizeof c->ms_per_byte);
  c->holding_count = (size_t)x->holding_count;
  c->holdings = LP_NEW_ARRAY(x->arena, lp_certificate_holding, x->holding_count);
  for (int32_t i = 0; i < x->holding_count; i++) {
    const lp_exact_holding *h = &x->holding[i];
    c->holdings[i] = (lp_certificate_holding){.cache = h->is_state, .move_bytes = h->is_state ? h->move_bytes : 0};
    memcpy(c->holdings[i].bytes, h->bytes, sizeof h->bytes);
    memcpy(c->holdings[i].ms, h->ms, sizeof h->ms);
  }
}

/* The unit of a row of the report's operators; NULL: one of another stage, or one that belongs to no unit. */
static lp_certificate_unit *unit_of_row(const lp_report *report, const lp_exact *x, int stage, int32_t row,
                                        lp_certificate_stage *s) {
  const lp_report_operator *item = &report->operators[row];
  if ((int)item->stage != stage) return NULL;
  const int32_t unit = x->unit_of[stage][item->op - report->problem[stage].ops];
  return unit < 0 ? NULL : &s->units[unit];
}

/* Sets the rows of the operators that each unit joins; the first one gives the unit its name and side. */
static void fill_rows(const lp_report *report, const lp_exact *x, int stage, lp_certificate_stage *s) {
  for (int32_t i = 0; i < report->operator_count; i++) {
    lp_certificate_unit *u = unit_of_row(report, x, stage, i, s);
    if (u) u->row_count++;
  }
  for (size_t i = 0; i < s->unit_count; i++) {
    s->units[i].rows = LP_NEW_ARRAY(x->arena, int32_t, s->units[i].row_count);
    s->units[i].row_count = 0;
  }
  for (int32_t i = 0; i < report->operator_count; i++) {
    lp_certificate_unit *u = unit_of_row(report, x, stage, i, s);
    if (!u) continue;
    if (u->row_count == 0) {
      u->name = lp_op_str(report->operators[i].op->op, "name", "");
      u->side = (int32_t)report->operators[i].side;
    }
    u->rows[u->row_count++] = i;
  }
}

/* A unit's slots are, in order: values read, values made, holdings, the returning token. */
static lp_certificate_unit unit_from(const lp_exact_unit *unit, double result_bytes, double *way, double *split) {
  const int32_t count = unit->in_count + unit->out_count + unit->hold_count;
  return (lp_certificate_unit){.name = "",
                               .ms = {unit->ms[0], unit->ms[1]},
                               .activation = {unit->activation[0], unit->activation[1]},
                               .result_bytes = unit->is_result ? result_bytes : -1,
                               .return_way = unit->is_result ? way[count] : 0,
                               .pin = unit->pin,
                               .in = unit->in,
                               .out = unit->out,
                               .hold = unit->hold,
                               .in_count = (size_t)unit->in_count,
                               .out_count = (size_t)unit->out_count,
                               .hold_count = (size_t)unit->hold_count,
                               .way = way,
                               .split = split};
}

static void fill_stage(const lp_report *report, int stage, const lp_cut *cut, double *split, lp_certificate_stage *s) {
  const lp_exact *x = cut->x;
  const lp_plan_problem *problem = &x->problem[stage];
  s->value_count = (size_t)problem->value_count;
  s->value = LP_NEW_ARRAY(x->arena, double, problem->value_count);
  for (int32_t i = 0; i < problem->value_count; i++)
    s->value[i] = x->value[stage][i].bytes;
  s->unit_count = (size_t)x->unit_count[stage];
  s->units = LP_NEW_ARRAY(x->arena, lp_certificate_unit, x->unit_count[stage]);
  for (int32_t i = 0; i < x->unit_count[stage]; i++) {
    const int32_t slot = cut->first_slot[stage][i];
    s->units[i] = unit_from(&x->unit[stage][i], problem->result_bytes, cut->way + slot, split + slot);
  }
  fill_rows(report, x, stage, s);
}

/* The sides of a stage's units as digits, 0 the device; NULL where a unit's operators are on both. */
static const char *unit_sides(const lp_exact *x, int stage, const lp_side *side) {
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

static lp_certificate_sides sides_of(const lp_exact *x, const char *name, const lp_report_baseline *other) {
  if (!other->name) return (lp_certificate_sides){0};
  return (lp_certificate_sides){name, {unit_sides(x, 0, other->side[0]), unit_sides(x, 1, other->side[1])}};
}

static lp_certificate *create(const lp_report *report, const lp_cut *cut, double bound) {
  const lp_plan_proof *proof = &report->proof;
  lp_certificate *c = LP_NEW(report->arena, lp_certificate);
  double *split = lp_cut_splits(cut);
  double stall = 0;
  lp_plan_result full; /* the savings of early exits are not a sum over operators */
  lp_plan_evaluate(report->problem, &report->full, (lp_side *const *)report->side, &full);
  *c = (lp_certificate){.value = lp_plan_objective_value(&full, report->request),
                        .bound = bound,
                        .aim = NAN,
                        .streams = lp_plan_may_stream(report->problem, &report->full, &stall),
                        .price_ms = {proof->per_ms[0], proof->per_ms[1]},
                        .price_bytes = {proof->per_byte[0], proof->per_byte[1]},
                        .faster = sides_of(cut->x, "faster", &report->faster),
                        .cheapest = sides_of(cut->x, "cheapest", &report->cheapest),
                        .baseline_count = (size_t)report->baseline_count,
                        .arena = report->arena};
  fill_problem(cut->x, c);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    fill_stage(report, stage, cut, split, &c->stages[stage]);
  c->baselines = LP_NEW_ARRAY(report->arena, lp_certificate_sides, report->baseline_count);
  for (int32_t i = 0; i < report->baseline_count; i++)
    c->baselines[i] = sides_of(cut->x, report->baselines[i].name, &report->baselines[i]);
  return c;
}

/* Without a cloud every unit is on the device. */
static void pin_to_device(lp_exact *x) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      x->unit[stage][i].pin = LP_SIDE_DEVICE;
}

/* None where the proof belongs to another problem, because the module changed after the scheduler ran. */
static lp_certificate *certify(const lp_report *report) {
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
  return isinf(bound) ? NULL : create(report, &cut, bound);
}

const lp_certificate *lp_report_certificate(lp_report *report) {
  if (!report->certificate) report->certificate = certify(report);
  return report->certificate;
}

void lp_report_state_bound(lp_report *report, double bound, double aim) {
  if (report->certificate) report->certificate->aim = aim;
  if (fabs(bound - report->proof.lower_bound) <= rounding * fabs(bound)) return;
  report->proof.lower_bound = bound;
  report->proof.complete = false;
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

static void put_list(lp_json_writer *j, const char *name, const int32_t *list, size_t count) {
  lp_json_put_flat_array(j, name);
  for (size_t i = 0; i < count; i++)
    lp_json_put_integer(j, NULL, list[i]);
  lp_json_put_end(j);
}

static void put_problem(const lp_certificate *c, lp_json_writer *j) {
  lp_json_put_flat_object(j, "objective");
  lp_json_put_numbers(j, "prefill_per_ms", c->busy[0], 2);
  lp_json_put_numbers(j, "decode_per_ms", c->busy[1], 2);
  lp_json_put_numbers(j, "link_per_ms", c->link, 2);
  lp_json_put_number(j, "move_per_ms", c->move);
  lp_json_put_end(j);
  lp_json_put_flat_object(j, "limits");
  lp_json_put_numbers(j, "ms", c->limit_ms, 2);
  lp_json_put_numbers(j, "bytes", c->limit_bytes, 2);
  lp_json_put_end(j);
  lp_json_put_flat_object(j, "link");
  lp_json_put_number(j, "message_ms", c->message_ms);
  lp_json_put_numbers(j, "ms_per_byte", c->ms_per_byte, 2);
  if (c->streams) lp_json_put_bool(j, "streams", true);
  lp_json_put_end(j);
}

static void put_holdings(const lp_certificate *c, lp_json_writer *j) {
  lp_json_put_lines(j, "holdings");
  LP_FOR_EACH(const lp_certificate_holding, h, c->holdings, c->holding_count) {
    lp_json_put_object(j, NULL);
    lp_json_put_numbers(j, "bytes", h->bytes, 2);
    if (h->cache) {
      lp_json_put_bool(j, "cache", true);
      lp_json_put_number(j, "move_bytes", h->move_bytes);
    }
    if (h->ms[0][0] > 0 || h->ms[0][1] > 0 || h->ms[1][0] > 0 || h->ms[1][1] > 0) {
      lp_json_put_numbers(j, "prefill_ms", h->ms[0], 2);
      lp_json_put_numbers(j, "decode_ms", h->ms[1], 2);
    }
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_unit(const lp_certificate_unit *u, lp_json_writer *j) {
  lp_json_put_object(j, NULL);
  lp_json_put_text(j, "name", u->name);
  lp_json_put_integer(j, "side", u->side);
  put_list(j, "operators", u->rows, u->row_count);
  lp_json_put_numbers(j, "ms", u->ms, 2);
  lp_json_put_numbers(j, "activation", u->activation, 2);
  put_list(j, "in", u->in, u->in_count);
  put_list(j, "out", u->out, u->out_count);
  put_list(j, "hold", u->hold, u->hold_count);
  if (u->pin >= 0) lp_json_put_integer(j, "pin", u->pin);
  if (u->result_bytes >= 0) lp_json_put_number(j, "result_bytes", u->result_bytes);
  lp_json_put_numbers(j, "way", u->way, u->in_count);
  if (u->result_bytes >= 0) lp_json_put_number(j, "return_way", u->return_way);
  lp_json_put_numbers(j, "split", u->split, u->in_count + u->out_count + u->hold_count);
  lp_json_put_end(j);
}

static void put_stage(const lp_certificate_stage *s, const char *name, lp_json_writer *j) {
  lp_json_put_flat_object(j, name);
  lp_json_put_array(j, "values");
  for (size_t i = 0; i < s->value_count; i++)
    lp_json_put_number(j, NULL, s->value[i]);
  lp_json_put_end(j);
  lp_json_put_lines(j, "units");
  for (size_t i = 0; i < s->unit_count; i++)
    put_unit(&s->units[i], j);
  lp_json_put_end(j);
  lp_json_put_end(j);
}

static void put_sides(const lp_certificate_sides *sides, lp_json_writer *j) {
  if (!sides->name) return;
  lp_json_put_flat_object(j, sides->name);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_json_put_text(j, lp_stage_names[stage], sides->side[stage]);
  lp_json_put_end(j);
}

static void put_certificate(const lp_certificate *c, lp_json_writer *j) {
  lp_json_put_object(j, "certificate");
  lp_json_put_number(j, "value", c->value);
  lp_json_put_number(j, "bound", c->bound);
  if (!isnan(c->aim)) lp_json_put_number(j, "aim", c->aim);
  lp_json_put_flat_object(j, "prices");
  lp_json_put_numbers(j, "ms", c->price_ms, 2);
  lp_json_put_numbers(j, "bytes", c->price_bytes, 2);
  lp_json_put_end(j);
  put_problem(c, j);
  put_holdings(c, j);
  put_stage(&c->stages[0], lp_stage_names[0], j);
  put_stage(&c->stages[1], lp_stage_names[1], j);
  lp_json_put_object(j, "baselines");
  for (size_t i = 0; i < c->baseline_count; i++)
    put_sides(&c->baselines[i], j);
  lp_json_put_end(j);
  put_sides(&c->faster, j);
  put_sides(&c->cheapest, j);
  lp_json_put_end(j);
}

void lp_report_certificate_json(const lp_report *report, lp_json_writer *json) {
  const int digits = json->style.digits;
  json->style.digits = 17; /* the checker adds up the same doubles */
  if (report->certificate)
    put_certificate(report->certificate, json);
  else
    lp_json_put_null(json, "certificate");
  json->style.digits = digits;
}
