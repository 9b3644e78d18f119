/* Helpers of the fuzz targets that run passes. When a rule of the project is broken they abort, so that libFuzzer keeps
 * the input. */
#ifndef LP_TESTS_FUZZ_PASSES_H
#define LP_TESTS_FUZZ_PASSES_H

#include "passes/passes.h"

/* Checks that `diag` has no error for LP_OK and exactly one for any other status, and empties it. */
void fuzz_check_reported(lp_status status, lp_diag *diag);
/* The module must verify. */
void fuzz_verify(const lp_module *module, lp_diag *diag);
/* Runs a pipeline for a small device, a cloud and a link, verifies after each pass, and writes the report of the
 * placement. False when a pass refused the module. */
bool fuzz_run_passes(lp_module *module, const char *pipeline, bool generation, lp_diag *diag);

#endif
