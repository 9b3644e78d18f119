/* The backend that is complete and does nothing: the template of another. Copy the folder, rename the table, name it in
 * backend_internal.h and in backend.c's list; the conformance suite (tests/backend) then runs it. */
#include "backend/backend_internal.h"

/* Say no to what you cannot compute, and what is missing, in at most 63 bytes: placement reads this. */
static bool null_runs(const lp_op *op, char why[64]) {
  (void)op, (void)why;
  return true;
}

/* Append the code of options->side to `out`: text or bytes, the same for the same module. Report at an operator's `loc`
 * what you cannot do; what `runs` allows must work. */
static lp_status null_emit(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                           lp_diag *diag) {
  (void)module, (void)options, (void)form, (void)out, (void)diag;
  return LP_OK;
}

/* Name what the manifest must know: symbols of layouts and segments, buffers, the target. It is called before emit and
 * for as little as a manifest, so generate no code here. */
static lp_status null_describe(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                               lp_diag *diag) {
  (void)module, (void)options, (void)arena, (void)diag;
  *out = (lp_code){.triple = "none", .march = "none"};
  return LP_OK;
}

/* Write the constants of options->side in the form your kernels read, each once, to a safetensors file; stream them, a
 * model does not fit in memory. Write through lp_writer, so that nothing is left behind on failure. */
static lp_status null_write_weights(lp_module *module, const lp_emit_options *options, const char *path,
                                    lp_diag *diag) {
  (void)module, (void)options, (void)path, (void)diag;
  return LP_OK;
}

const lp_backend lp_backend_null = {
    .name = "null",
    .summary = "does nothing; the template of a backend",
    .emits_code = false,
    .runs = null_runs,
    .emit = null_emit,
    .describe = null_describe,
    .write_weights = null_write_weights,
};
