/* Compares the figures of a plan's report with the expressions of --fail-if. */
#include "tools/compile/compile.h"
#include "tools/gate/gate.h"

lp_status lp_compile_check_limits(const lp_compile *compile, const char *text, size_t size, lp_diag *diag) {
  lp_gate_report report = {0};
  lp_status status = lp_gate_report_read("the plan", text, size, &report, diag);
  for (size_t i = 0; i < compile->fail_if.count && status == LP_OK; i++)
    status = lp_limit_check("--fail-if", compile->fail_if.data[i], &report, diag);
  lp_gate_report_free(&report);
  return status;
}
