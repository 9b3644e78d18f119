/* The reports of a plan, over two places or more: each text is made once, before later passes change the module. The
 * bound that they state is the one that the checker proves (proof/). */
#include "base/file.h"
#include "passes/plan/places/places.h"
#include "passes/plan/plan.h"
#include "proof/proof.h"
#include "tools/compile/compile.h"
#include "tools/gate/gate.h"

#include <math.h>

/* A complete proof by the prices needs no checker, but prices prove nothing of placements that stream. */
static void prove(const lp_module *module, lp_report *report) {
  const lp_plan_proof proof = lp_plan_proof_read(module);
  if (!proof.known) return;
  const lp_certificate *stated = lp_report_certificate(report);
  const bool by_prices = proof.complete && proof.lower_bound <= proof.dual_bound * (1 + 1e-9);
  if (by_prices && !(stated && stated->streams)) return;
  double proved = proof.dual_bound, aim = NAN;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_certificate own = stated ? *stated : (lp_certificate){0};
  own.arena = arena;
  if (stated && lp_certificate_resolve(&own))
    proved = lp_certificate_find_bound(&own, proof.lower_bound, lp_certificate_least_value(&own), &aim);
  if (!by_prices || proved < proof.lower_bound) lp_report_state_bound(report, proved, aim);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Two places are reported from the placed module, more from their solution. */
static lp_status write_text(lp_compile_reports *r, const char *format, bool table1, lp_buf *out, lp_diag *diag) {
  const lp_compile_request *request = &r->compile->request;
  if (request->places) return lp_places_report(r->module, request->places, format, out, diag);
  if (!r->report) {
    LP_TRY(lp_report_create(r->module, request, &r->report, diag));
    LP_TRY(lp_compile_check_measured(r->compile, r->report, diag));
    prove(r->module, r->report);
  }
  return lp_report_write(r->report, format, table1, out, diag);
}

lp_status lp_compile_report_text(lp_compile_reports *r, const char *format, bool table1, const lp_buf **out,
                                 lp_diag *diag) {
  for (size_t i = 0; i < r->count; i++)
    if (lp_streq(r->made[i].format, format) && r->made[i].table1 == table1) {
      *out = &r->made[i].text;
      return LP_OK;
    }
  lp_buf text = {0};
  LP_TRY(write_text(r, format, table1, &text, diag));
  r->made[r->count] = (lp_compile_text){.format = format, .table1 = table1, .text = text};
  *out = &r->made[r->count++].text;
  return LP_OK;
}

void lp_compile_reports_release(lp_compile_reports *r) {
  for (size_t i = 0; i < r->count; i++)
    lp_buf_free(&r->made[i].text);
  lp_report_free(r->report);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static const char *format_of(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot && !strchr(dot, '/') ? dot + 1 : "txt";
}

static lp_status put_text(lp_compile_reports *r, const char *format, const char *path, lp_diag *diag) {
  const lp_buf *text;
  LP_TRY(lp_compile_report_text(r, format, r->compile->table1, &text, diag));
  return lp_file_write(path, lp_buf_text(text), text->size, diag);
}

lp_status lp_compile_make_reports(lp_compile_reports *r, lp_diag *diag) {
  const lp_buf *text;
  for (size_t i = 0; i < r->compile->reports.count; i++)
    LP_TRY(lp_compile_report_text(r, format_of(r->compile->reports.data[i]), r->compile->table1, &text, diag));
  return LP_OK;
}

lp_status lp_compile_put_reports(lp_compile_reports *r, lp_diag *diag) {
  for (size_t i = 0; i < r->compile->reports.count; i++)
    LP_TRY(put_text(r, format_of(r->compile->reports.data[i]), r->compile->reports.data[i], diag));
  return LP_OK;
}

/* To -o, or text to stdout when neither -o nor --report names a file. */
lp_status lp_compile_put_output_report(lp_compile_reports *r, lp_diag *diag) {
  static const char *const formats[] = {"txt", "json", "csv", "html"};
  const char *output = r->compile->output;
  if (!output) return r->compile->reports.count ? LP_OK : put_text(r, "txt", "-", diag);
  if (lp_streq(output, "text")) return put_text(r, "txt", "-", diag);
  for (size_t i = 0; i < LP_COUNT(formats); i++)
    if (lp_streq(output, formats[i])) return put_text(r, formats[i], "-", diag);
  return put_text(r, format_of(output), output, diag);
}

lp_status lp_compile_check_limits(lp_compile_reports *r, lp_diag *diag) {
  const lp_texts *limits = &r->compile->fail_if;
  lp_gate_report report = {0};
  const lp_buf *text;
  if (limits->count == 0) return LP_OK;
  LP_TRY(lp_compile_report_text(r, "json", false, &text, diag));
  lp_status status = lp_gate_report_read("the plan", lp_buf_text(text), text->size, &report, diag);
  for (size_t i = 0; i < limits->count && status == LP_OK; i++)
    status = lp_limit_check("--fail-if", limits->data[i], &report, diag);
  lp_gate_report_free(&report);
  return status;
}
