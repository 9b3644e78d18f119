/* Gates of build pipelines: which changes of a report are worse, and which expressions hold. */
#include "tests/suite.h"
#include "tools/gate/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lp_gate_report read_text(const char *text) {
  lp_gate_report report;
  lp_diag *diag = lp_diag_create();
  ck_assert_msg(lp_gate_report_read("report", text, strlen(text), &report, diag) == LP_OK, "'%s' is refused", text);
  lp_diag_free(diag);
  return report;
}

static lp_gate_report plan(const char *figures) {
  char text[1024];
  (void)snprintf(text, sizeof text,
                 "{\"schema\": \"llmpart.report/1\", \"feasible\": true, \"plan\": {%s}, \"operators\": []}", figures);
  return read_text(text);
}

/* ---- plans over places ------------------------------------------------------------------------------------------- */

static lp_gate_report plan_over_places(const char *feasible, const char *link, const char *place) {
  char text[1024];
  (void)snprintf(
      text, sizeof text,
      "{\"schema\": \"llmpart.places/1\", \"places\": [{\"name\": \"a\", \"kind\": 0}, {\"name\": \"b\", "
      "\"kind\": 1}], \"links\": [{\"from\": \"a\", \"to\": \"b\", \"link\": \"%s\"}], \"plan\": "
      "{\"feasible\": %s, \"tpot_ms\": 4}, \"pairs\": [{\"with\": \"%s\"}], \"operators\": [{\"name\": \"x\", "
      "\"stage\": \"decode\", \"layer\": 2, \"place\": \"%s\"}]}",
      link, feasible, place, place);
  return read_text(text);
}

LP_TEST(plans_over_places_are_compared) {
  lp_gate_report before = plan_over_places("true", "lan", "a"), after = plan_over_places("false", "wifi", "b");
  lp_changes changes;
  ck_assert_int_eq(lp_gate_compare(&before, &after, 0, &changes, NULL), LP_OK);
  ck_assert(changes.is_worse); /* it is not feasible any more */
  ck_assert_str_eq(changes.figures.data[0].name, "feasible");
  ck_assert(changes.figures.data[0].is_worse);
  ck_assert_uint_eq(changes.settings.count, 1); /* the pairs are no setting */
  ck_assert_str_eq(changes.settings.data[0].name, "links.a-b.link");
  ck_assert_str_eq(changes.settings.data[0].new_text, "wifi");
  ck_assert_uint_eq(changes.moved.count, 1);
  ck_assert_str_eq(changes.moved.data[0].old_side, "a");
  ck_assert_str_eq(changes.moved.data[0].new_side, "b");
  ck_assert_int_eq(changes.moved.data[0].layer, 2);
  lp_changes_free(&changes);
  ck_assert_int_eq(lp_gate_compare(&after, &before, 0, &changes, NULL), LP_OK);
  ck_assert(!changes.is_worse);
  lp_changes_free(&changes);
  lp_gate_report_free(&before);
  lp_gate_report_free(&after);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* The status of an expression over ttft_ms 200, tpot_ms 40, cost_per_mtok_usd 0.5 and an unknown energy_j. */
static lp_status judge(const char *expression, size_t *notes) {
  lp_gate_report report = plan("\"ttft_ms\": 200, \"tpot_ms\": 40.0, \"cost_per_mtok_usd\": 5e-1, \"energy_j\": null");
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_limit_check("--fail-if", expression, &report, diag);
  ck_assert_uint_eq(lp_diag_error_count(diag), status != LP_OK);
  if (notes) *notes = lp_diag_count(diag) - lp_diag_error_count(diag);
  lp_diag_free(diag);
  lp_gate_report_free(&report);
  return status;
}

LP_TEST(comparisons_hold) {
  static const char *const holding[] = {"tpot_ms > 39",
                                        "tpot_ms >= 40",
                                        "tpot_ms <= 40",
                                        "tpot_ms<41",
                                        "tpot_ms == 40",
                                        "tpot_ms != 41",
                                        "cost_usd_per_mtok > 0.4",
                                        "tpot_ms > 40 or ttft_ms > 100",
                                        "ttft_ms > 100 or tpot_ms > 40",
                                        "tpot_ms > 10 and ttft_ms > 100",
                                        "not tpot_ms > 40",
                                        "not (tpot_ms > 40 or ttft_ms > 200)",
                                        "tpot_ms > 40 and ttft_ms > 1 or cost_per_mtok_usd == 0.5",
                                        "ttft_ms == 200 or ttft_ms == 1 and tpot_ms == 1",
                                        "energy_j != 1"};
  for (size_t i = 0; i < LP_COUNT(holding); i++)
    ck_assert_msg(judge(holding[i], NULL) == LP_MISMATCH, "'%s' does not hold", holding[i]);
}

LP_TEST(comparisons_do_not_hold) {
  static const char *const failing[] = {"tpot_ms > 40",
                                        "tpot_ms < 40",
                                        "tpot_ms >= 40.1",
                                        "tpot_ms <= 39.9",
                                        "tpot_ms == 41",
                                        "tpot_ms != 40",
                                        "tpot_ms > 40 and ttft_ms > 100",
                                        "ttft_ms > 100 and tpot_ms > 40",
                                        "tpot_ms > 40 or ttft_ms > 200",
                                        "not tpot_ms >= 40",
                                        "(ttft_ms == 200 or ttft_ms == 1) and tpot_ms == 1",
                                        "energy_j > 0",
                                        "energy_j <= 0",
                                        "energy_j == 0"};
  for (size_t i = 0; i < LP_COUNT(failing); i++)
    ck_assert_msg(judge(failing[i], NULL) == LP_OK, "'%s' holds", failing[i]);
}

LP_TEST(values_are_noted) {
  size_t notes = 0;
  ck_assert_int_eq(judge("tpot_ms > 10 and ttft_ms > 10", &notes), LP_MISMATCH);
  ck_assert_uint_eq(notes, 2);
  ck_assert_int_eq(judge("tpot_ms > 10 or ttft_ms > 1000", &notes), LP_MISMATCH);
  ck_assert_uint_eq(notes, 1);
}

LP_TEST(mistakes_are_located) {
  static const struct {
    const char *expression, *text;
    int32_t col;
  } mistakes[] = {{"", "wanted the name", 1},
                  {"tpot_ms", "wanted one of <", 8},
                  {"tpot_ms > fast", "wanted a number", 11},
                  {"tpot_ms > 1e999", "wanted a number", 11},
                  {"tpot_ms > 40ms", "without a unit", 13},
                  {"(tpot_ms > 40", "wanted ')'", 14},
                  {"tpot_ms > 40 ttft_ms > 1", "wanted 'and', 'or' or the end", 14},
                  {"tpot_ms > 40 orttft_ms > 1", "wanted 'and', 'or' or the end", 14},
                  {"tpot_ms > 1 and 3 > 2", "wanted the name", 17}};
  for (size_t i = 0; i < LP_COUNT(mistakes); i++) {
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_limit_check_syntax("--fail-if", mistakes[i].expression, diag), LP_USAGE);
    ck_assert_uint_eq(lp_diag_count(diag), 1);
    const lp_diag_entry *found = lp_diag_get(diag, 0);
    ck_assert_msg(strstr(found->text, mistakes[i].text) != NULL, "'%s': %s", mistakes[i].expression, found->text);
    ck_assert_int_eq(found->loc.col, mistakes[i].col);
    lp_diag_free(diag);
  }
}

LP_TEST(nesting_is_limited) {
  char deep[512];
  for (int open = 60; open <= 70; open += 10) {
    (void)snprintf(deep, sizeof deep, "%.*stpot_ms > 40%.*s", open,
                   "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((", open,
                   "))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))");
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_limit_check_syntax("--fail-if", deep, diag), open <= 64 ? LP_OK : LP_USAGE);
    lp_diag_free(diag);
  }
}

LP_TEST(unknown_figure_is_named) {
  ck_assert_int_eq(judge("tpt_ms > 1", NULL), LP_USAGE);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Compares one figure of two plans. */
static lp_figure_change change_of(const char *old_text, const char *new_text, double regression, bool *is_worse) {
  lp_gate_report before = plan(old_text), after = plan(new_text);
  lp_changes changes;
  ck_assert_int_eq(lp_gate_compare(&before, &after, regression, &changes, NULL), LP_OK);
  ck_assert_uint_eq(changes.figures.count, 2); /* "feasible" and the figure */
  lp_figure_change change = changes.figures.data[1];
  *is_worse = changes.is_worse;
  change.name = NULL; /* dies with the report */
  lp_changes_free(&changes);
  lp_gate_report_free(&before);
  lp_gate_report_free(&after);
  return change;
}

LP_TEST(a_figure_is_worse) {
  static const struct {
    const char *old_text, *new_text;
    double regression;
    bool is_worse, is_judged;
  } cases[] = {{"\"tpot_ms\": 100", "\"tpot_ms\": 100", 0, false, true},
               {"\"tpot_ms\": 100", "\"tpot_ms\": 101", 0, true, true},
               {"\"tpot_ms\": 100", "\"tpot_ms\": 99", 0, false, true},
               {"\"tpot_ms\": 100", "\"tpot_ms\": 105", 0.05, false, true},
               {"\"tpot_ms\": 100", "\"tpot_ms\": 105.1", 0.05, true, true},
               {"\"tpot_ms\": 0", "\"tpot_ms\": 0", 0, false, true},
               {"\"tpot_ms\": 0", "\"tpot_ms\": 1e-9", 0.5, true, true},
               {"\"tpot_ms\": 1", "\"tpot_ms\": null", 0, true, true},
               {"\"tpot_ms\": null", "\"tpot_ms\": 1", 0, false, true},
               {"\"tpot_ms\": 1", "\"binding\": \"tpot\"", 0, true, true}, /* the figure is gone */
               {"\"sla_probability\": 0.9", "\"sla_probability\": 0.8", 0, true, true},
               {"\"sla_probability\": 0.8", "\"sla_probability\": 0.9", 0, false, true},
               {"\"kv_move_ms\": 1", "\"kv_move_ms\": 2", 0, false, false}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    bool is_worse = false;
    lp_figure_change change = change_of(cases[i].old_text, cases[i].new_text, cases[i].regression, &is_worse);
    ck_assert_msg(change.is_worse == cases[i].is_worse, "%s -> %s", cases[i].old_text, cases[i].new_text);
    ck_assert_int_eq(is_worse, cases[i].is_worse);
    ck_assert_int_eq(change.is_judged, cases[i].is_judged);
  }
}

LP_TEST(changes_are_relative) {
  bool is_worse = false;
  ck_assert_double_eq_tol(change_of("\"ttft_ms\": 200", "\"ttft_ms\": 150", 0, &is_worse).change, -0.25, 1e-15);
  ck_assert_double_infinite(change_of("\"ttft_ms\": 0", "\"ttft_ms\": 1", 0, &is_worse).change);
  ck_assert_double_nan(change_of("\"ttft_ms\": null", "\"ttft_ms\": 1", 0, &is_worse).change);
}

#define OPERATOR(name, layer, side)                                                                                    \
  "{\"name\": \"" name "\", \"layer\": " layer ", \"stage\": \"decode\", \"side\": \"" side "\"}"
#define REPORT(feasible, rtt, operators)                                                                               \
  "{\"schema\": \"llmpart.report/1\", \"link\": {\"rtt_ms\": " rtt "}, \"feasible\": " feasible                        \
  ", \"plan\": {}, \"operators\": [" operators "]}"

LP_TEST(settings_and_moves_are_listed) {
  lp_gate_report before = read_text(REPORT("true", "4",
                                           OPERATOR("a", "0", "device") "," OPERATOR("b", "0", "device") "," OPERATOR(
                                               "c", "1", "device") "," OPERATOR("d", "1", "cloud"))),
                 after = read_text(
                     REPORT("false", "10",
                            OPERATOR("a", "0", "cloud") "," OPERATOR("b", "0", "cloud") "," OPERATOR(
                                "c", "1", "device") "," OPERATOR("c", "1", "cloud") "," OPERATOR("d", "1", "cloud")));
  lp_changes changes;
  ck_assert_int_eq(lp_gate_compare(&before, &after, 0, &changes, NULL), LP_OK);
  ck_assert(changes.is_worse); /* an SLA that held is missed */
  ck_assert_uint_eq(changes.settings.count, 1);
  ck_assert_str_eq(changes.settings.data[0].name, "link.rtt_ms");
  ck_assert_str_eq(changes.settings.data[0].old_text, "4");
  ck_assert_str_eq(changes.settings.data[0].new_text, "10");
  ck_assert_uint_eq(changes.moved.count, 2);
  ck_assert_int_eq(changes.moved.data[0].count, 2);
  ck_assert_int_eq(changes.moved.data[0].layer, 0);
  ck_assert_str_eq(changes.moved.data[0].old_side, "device");
  ck_assert_str_eq(changes.moved.data[0].new_side, "cloud");
  ck_assert_int_eq(changes.moved.data[1].layer, 1);
  ck_assert_str_eq(changes.moved.data[1].new_side, "both");
  lp_changes_free(&changes);
  lp_gate_report_free(&before);
  lp_gate_report_free(&after);
}

LP_TEST(a_measurement_is_compared) {
#define BENCH(speed, peak)                                                                                             \
  "{\"schema\": \"llmpart.bench/1\", \"load_ms\": 1, \"peak_bytes\": " peak                                            \
  ", \"tests\": [{\"test\": \"tg128\", \"tokens_per_s\": " speed "}]}"
  static const struct {
    const char *text;
    bool is_worse;
  } cases[] = {{BENCH("100", "50"), false},
               {BENCH("95", "50"), false},
               {BENCH("94", "50"), true},
               {BENCH("200", "50"), false},
               {BENCH("100", "53"), true}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_gate_report before = read_text(BENCH("100", "50")), after = read_text(cases[i].text);
    lp_changes changes;
    ck_assert_int_eq(lp_gate_compare(&before, &after, 0.05, &changes, NULL), LP_OK);
    ck_assert_msg(changes.is_worse == cases[i].is_worse, "%s", cases[i].text);
    ck_assert_ptr_nonnull(lp_gate_find(&after, "tg128.tokens_per_s"));
    lp_changes_free(&changes);
    lp_gate_report_free(&before);
    lp_gate_report_free(&after);
  }
}

LP_TEST(schemas_must_agree) {
  lp_gate_report before = plan(""), after = read_text(BENCH("1", "1"));
  lp_changes changes;
  ck_assert_int_eq(lp_gate_compare(&before, &after, 0, &changes, NULL), LP_FAILED);
  lp_changes_free(&changes);
  lp_gate_report_free(&before);
  lp_gate_report_free(&after);
}
