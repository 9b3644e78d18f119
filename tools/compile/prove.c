/* Has the bound of a plan confirmed, or a better one found, by the checker of certificates, which shares no code with
 * the scheduler, before a report states it. */
#include "passes/plan/plan.h"
#include "tools/certificate/certificate.h"
#include "tools/compile/compile.h"

#include <math.h>

/* Bounds that differ by this share are equal. */
static const double rounding = 1e-9;

/* The objective of the best plan of a report: of the cheapest one, where the tolerance made the scheduler take a faster
 * one. Moves the units. */
static double least_value(certificate *c) {
  const lp_json report = lp_json_root("the plan", c->report), own = lp_json_member(&report, "certificate"),
                cheapest = lp_json_member(&own, "cheapest");
  if (!lp_json_is_given(&cheapest) || !certificate_place(c, &cheapest)) return c->value;
  return fmin(c->value, certificate_add_up(c).value);
}

/* A complete proof by the prices needs no search. */
lp_status lp_compile_prove(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  const lp_plan_proof proof = lp_plan_proof_read(module);
  lp_buf text = {0};
  certificate c;
  if (!proof.known || (proof.complete && proof.lower_bound <= proof.dual_bound * (1 + rounding))) return LP_OK;
  LP_TRY(lp_report_write(module, &compile->request, "json", false, &text, diag));
  double proved = proof.dual_bound;
  if (certificate_read("the plan", lp_buf_text(&text), text.size, &c, NULL) == LP_OK)
    proved = certificate_find_bound(&c, proof.lower_bound, least_value(&c));
  if (fabs(proved - proof.lower_bound) > rounding * fabs(proved)) lp_plan_proof_replace(module, proved);
  certificate_free(&c);
  lp_buf_free(&text);
  return LP_OK;
}
