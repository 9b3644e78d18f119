/* Has the bound of a plan confirmed, or a better one found, by the checker of certificates, which shares no code with
 * the scheduler, before a report states it. */
#include "passes/plan/plan.h"
#include "proof/proof.h"
#include "tools/compile/compile.h"

#include <math.h>

/* Bounds that differ by this share are equal. */
static const double rounding = 1e-9;

/* A complete proof by the prices needs no search. */
lp_status lp_compile_prove(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  const lp_plan_proof proof = lp_plan_proof_read(module);
  lp_buf text = {0};
  lp_certificate c;
  if (!proof.known || (proof.complete && proof.lower_bound <= proof.dual_bound * (1 + rounding))) return LP_OK;
  LP_TRY(lp_report_write(module, &compile->request, "json", false, &text, diag));
  double proved = proof.dual_bound, aim = NAN;
  if (lp_certificate_read("the plan", lp_buf_text(&text), text.size, &c, NULL) == LP_OK)
    proved = lp_certificate_find_bound(&c, proof.lower_bound, lp_certificate_least_value(&c), &aim);
  if (fabs(proved - proof.lower_bound) > rounding * fabs(proved)) lp_plan_proof_replace(module, proved);
  if (!isnan(aim)) lp_plan_proof_aim(module, aim);
  lp_certificate_free(&c);
  lp_buf_free(&text);
  return LP_OK;
}
