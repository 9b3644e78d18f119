/* The model of a specification of a sweep or a fleet. Private to tools/. */
#pragma once

#include "passes/decoder.h"
#include "passes/passes.h"

/* Loads the file at `path`, without weights, or, with NULL, makes the decoder; annotated, as the request wants it.
 * `loc`: of the value that names it. */
LP_MUST_USE lp_status lp_tool_plan_model(const char *path, const lp_decoder_shape *decoder, lp_loc loc,
                                         const lp_compile_request *request, lp_module **out, lp_diag *diag);
