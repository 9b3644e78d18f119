/* Reads the figures of a report. */
#include "base/file.h"
#include "tools/gate/gate.h"

#include <math.h>

/* The figures of a plan that a change is judged by; all others are for information. */
static const char *const judged[] = {"ttft_ms",
                                     "cold_ttft_ms",
                                     "tpot_ms",
                                     "e2e_ms",
                                     "cost_usd",
                                     "cost_per_mtok_usd",
                                     "energy_j",
                                     "bytes_up",
                                     "bytes_down",
                                     "device_memory_bytes",
                                     "cloud_memory_bytes",
                                     "device_energy_j",
                                     "cloud_energy_j",
                                     "total_cost_usd",
                                     "usd_per_month"};

static lp_gate_better direction(const char *name) {
  for (size_t i = 0; i < LP_COUNT(judged); i++)
    if (lp_streq(name, judged[i])) return LP_GATE_LESS;
  return lp_streq(name, "sla_probability") ? LP_GATE_MORE : LP_GATE_INFO;
}

static bool number_of(const lp_json *at, double *out) {
  if (lp_json_is(at, LP_JSON_INTEGER))
    *out = (double)at->value->integer;
  else if (lp_json_is(at, LP_JSON_REAL))
    *out = at->value->real;
  else if (lp_json_is(at, LP_JSON_NULL))
    *out = NAN;
  else
    return false;
  return true;
}

static void push(lp_gate_report *report, const char *name, double value, lp_gate_better better) {
  const lp_figure figure = {.name = name, .value = value, .better = better};
  lp_vec_push(&report->figures, figure);
}

/* `key`: the object with the figures. */
static lp_status read_plan(lp_gate_report *report, const char *key, lp_diag *diag) {
  lp_json plan = lp_json_member(&report->root, key);
  LP_TRY(lp_json_object(&plan, diag));
  for (size_t i = 0; i < lp_json_count(&plan); i++) {
    lp_json member = lp_json_entry(&plan, i);
    double value = 0;
    if (!lp_streq(member.key, "binding") && !lp_streq(member.key, "proof") && number_of(&member, &value))
      push(report, member.key, value, direction(member.key));
  }
  return LP_OK;
}

static lp_status read_bench(lp_gate_report *report, lp_diag *diag) {
  static const struct {
    const char *name;
    lp_gate_better better;
  } whole[] = {{"load_ms", LP_GATE_INFO}, {"weight_bytes", LP_GATE_LESS}, {"peak_bytes", LP_GATE_LESS}},
    of_test[] = {
        {"tokens_per_s", LP_GATE_MORE}, {"deviation_tokens_per_s", LP_GATE_INFO}, {"gbytes_per_s", LP_GATE_INFO}};
  double value = 0;
  for (size_t i = 0; i < LP_COUNT(whole); i++)
    if (number_of(LP_MEMBER(&report->root, whole[i].name), &value)) push(report, whole[i].name, value, whole[i].better);
  lp_json tests = lp_json_member(&report->root, "tests");
  LP_TRY(lp_json_array(&tests, diag));
  for (size_t i = 0; i < lp_json_count(&tests); i++) {
    lp_json test = lp_json_item(&tests, i), named = lp_json_member(&test, "test");
    const char *name = NULL;
    LP_TRY(lp_json_text(&named, &name, diag));
    for (size_t k = 0; k < LP_COUNT(of_test); k++)
      if (number_of(LP_MEMBER(&test, of_test[k].name), &value))
        push(report, lp_arena_format(report->arena, "%s.%s", name, of_test[k].name), value, of_test[k].better);
  }
  return LP_OK;
}

bool lp_gate_is_plan(const lp_gate_report *report) {
  return lp_streq(report->schema, "llmpart.report/1") || lp_streq(report->schema, "llmpart.places/1");
}

lp_status lp_gate_report_read(const char *path, const char *text, size_t size, lp_gate_report *out, lp_diag *diag) {
  *out = (lp_gate_report){.path = lp_strdup(path), .arena = lp_arena_create()};
  LP_TRY(lp_json_parse(out->path, text, size, LP_JSON_REFUSE_NUL, &out->document, diag));
  out->root = lp_json_root(out->path, out->document);
  const char *name = lp_json_text_or(LP_MEMBER(&out->root, "schema"), "");
  out->schema = lp_strdup(name);
  if (lp_gate_is_plan(out)) return read_plan(out, "plan", diag);
  if (lp_streq(name, "llmpart.fleet/1")) return read_plan(out, "fleet", diag);
  if (lp_streq(name, "llmpart.bench/1")) return read_bench(out, diag);
  return lp_error(
      diag, LP_LOC_FILE(out->path),
      "found the schema '%s', wanted llmpart.report/1, llmpart.places/1, llmpart.fleet/1 or llmpart.bench/1", name);
}

lp_status lp_gate_report_load(const char *path, lp_gate_report *out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  *out = (lp_gate_report){0};
  LP_TRY(lp_file_read(path, &text, &size, diag));
  return lp_gate_report_read(path, text, size, out, diag);
}

void lp_gate_report_free(lp_gate_report *report) {
  lp_vec_free(&report->figures);
  lp_json_free(report->document);
  lp_arena_free(report->arena);
  free(report->path);
  free(report->schema);
  *report = (lp_gate_report){0};
}

const lp_figure *lp_gate_find(const lp_gate_report *report, const char *name) {
  return LP_FIND(report->figures.data, report->figures.count, name);
}
