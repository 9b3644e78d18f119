/* null: a complete backend that emits nothing. To write another one, copy the folder, rename the table, and add it to
 * backend/backends.h and to the list in backend.c; the conformance suite (tests/backend) then runs it. */
#include "backend/backends.h"

/* Refuses an operator that the backend cannot compute; `why` gets the missing feature in at most 63 bytes. Placement
 * calls this. */
static bool null_runs(const lp_op *op, char why[64]) {
  (void)op, (void)why;
  return true;
}

/* Appends the code of options->side to `out`, as text or bytes, the same for the same module. Every operator that
 * `runs` allows must work; report any other one that you cannot emit at its `loc`. */
static lp_status null_emit(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                           lp_diag *diag) {
  (void)module, (void)options, (void)form, (void)out, (void)diag;
  return LP_OK;
}

/* Fills in the contents of the manifest: symbols of layouts and segments, buffers, the target. Generates no code. */
static lp_status null_describe(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                               lp_diag *diag) {
  (void)module, (void)options, (void)arena, (void)diag;
  *out = (lp_code){.triple = "none", .march = "none"};
  return LP_OK;
}

/* Writes the constants of options->side in the form your kernels read, each once, to a safetensors file
 * (backend/constants.h). Stream them, because a model does not fit in memory. */
static lp_status null_write_weights(lp_module *module, const lp_emit_options *options, lp_writer *writer,
                                    lp_diag *diag) {
  (void)module, (void)options, (void)writer, (void)diag;
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
