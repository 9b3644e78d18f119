/* Helpers of the fuzz targets that run passes. When a rule of the project is broken they abort, so that libFuzzer keeps
 * the input. */
#ifndef LP_TESTS_FUZZ_PASSES_H
#define LP_TESTS_FUZZ_PASSES_H

#include "passes/passes.h"

/* LP_OK goes with no error, anything else with exactly one; `diag` is emptied. */
void fuzz_check_reported(lp_status status, lp_diag *diag);
/* The module must verify. */
void fuzz_verify(const lp_module *module, lp_diag *diag);
/* Runs a pipeline for a small device, a cloud and a link, verified after each pass, and writes the report of what was
 * placed. False when it was refused. */
bool fuzz_run_passes(lp_module *module, const char *pipeline, bool generation, lp_diag *diag);

#endif
