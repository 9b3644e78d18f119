/* tools/gate: what a build pipeline asks of results. lp_gate_compare tells what changed between two reports and whether
 * it is worse; lp_limit_check tells whether the figures of one satisfy an expression. A report is a document of the
 * schema llmpart.report/1 (a plan) or llmpart.bench/1 (a measurement). Private to tools/. */
#pragma once

#include "base/json/reader.h"

/* ---- figures (figures.c) ----------------------------------------------------------------------------------------- */

/* How two values of a figure compare. */
typedef enum {
  LP_GATE_LESS, /* a smaller value is better */
  LP_GATE_MORE, /* a greater value is better */
  LP_GATE_INFO  /* neither: the change is shown only */
} lp_gate_better;

typedef struct {
  const char *name; /* the key in the document, "tpot_ms"; of a measurement with its test, "tg128.tokens_per_s" */
  double value;     /* NaN: unknown */
  lp_gate_better better;
} lp_figure;

/* A report that was read. Texts are borrowed from it. Release with lp_gate_report_free, also after a failure. */
typedef struct {
  char *path, *schema; /* owned */
  lp_arena *arena;
  lp_json_document *document;
  lp_json root;
  LP_VEC(lp_figure) figures;
} lp_gate_report;

/* Reads a file, "-" for stdin. */
LP_MUST_USE lp_status lp_gate_report_load(const char *path, lp_gate_report *out, lp_diag *diag);
/* The same of a text; `path` is its name in diagnostics. */
LP_MUST_USE lp_status lp_gate_report_read(const char *path, const char *text, size_t size, lp_gate_report *out,
                                          lp_diag *diag);
void lp_gate_report_free(lp_gate_report *report);
/* Tells whether the report is of a plan, of either schema. */
bool lp_gate_is_plan(const lp_gate_report *report);
/* NULL: the report has no such figure. */
const lp_figure *lp_gate_find(const lp_gate_report *report, const char *name);

/* ---- changes (changes.c) ----------------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  double old_value, new_value; /* NaN: unknown */
  double change;               /* relative to the old value: 0.05 is 5 % more; infinite from 0 to a value */
  bool is_judged, is_worse;
} lp_figure_change;

/* A setting that differs, as text: "link.rtt_ms", "4", "10". */
typedef struct {
  const char *name, *old_text, *new_text;
} lp_setting_change;

/* Operators of one layer and stage that changed sides, or places. */
typedef struct {
  int64_t layer; /* -1: before the first layer; the number of layers: after the last */
  const char *stage, *old_side, *new_side;
  int64_t count;
} lp_moved;

typedef struct {
  LP_VEC(lp_figure_change) figures;
  LP_VEC(lp_setting_change) settings;
  LP_VEC(lp_moved) moved;
  bool is_worse;
} lp_changes;

/* Compares two reports of one schema. A figure is worse when it is worse by more than `regression`, a share of its old
 * value, or when only the old report has a value. Release with lp_changes_free, also after a failure; texts live in
 * `new_report`. */
LP_MUST_USE lp_status lp_gate_compare(const lp_gate_report *old_report, lp_gate_report *new_report, double regression,
                                      lp_changes *out, lp_diag *diag);
void lp_changes_free(lp_changes *changes);

/* Writes a figure for people, in the unit that its name ends with, to the caller's buffer and returns it. */
const char *lp_gate_format(const char *name, double value, char out[32]);

/* The forms in which changes are written: "text", "json" (llmpart.diff/1), "junit", "github" (annotations of GitHub's
 * workflows). */
#define LP_GATE_FORMS "text|json|junit|github"
void lp_gate_write(const lp_changes *changes, const lp_gate_report *old_report, const lp_gate_report *new_report,
                   double regression, const char *form, lp_buf *out);

/* ---- limits (limits.c) ------------------------------------------------------------------------------------------- */

/* An expression over figures: comparisons NAME < NUMBER (also <=, >, >=, ==, !=) joined by `and`, `or`, `not` and
 * parentheses. Reports its syntax without a report, so that a mistake is found before the work begins. */
LP_MUST_USE lp_status lp_limit_check_syntax(const char *option, const char *expression, lp_diag *diag);
/* LP_MISMATCH with the values of the figures when the expression holds. A name that the report lacks is LP_USAGE. A
 * comparison with an unknown value holds for != only. */
LP_MUST_USE lp_status lp_limit_check(const char *option, const char *expression, const lp_gate_report *report,
                                     lp_diag *diag);
