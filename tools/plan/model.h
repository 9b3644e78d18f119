/* The model of a specification of a sweep or a fleet. Private to tools/. */
#ifndef LP_TOOLS_PLAN_MODEL_H
#define LP_TOOLS_PLAN_MODEL_H

#include "passes/decoder.h"
#include "passes/passes.h"

/* Loads the file at `path`, without weights, or, with NULL, makes the decoder; annotated, as the request wants it. */
LP_MUST_USE lp_status lp_tool_plan_model(const char *path, const lp_decoder_shape *decoder,
                                         const lp_compile_request *request, lp_module **out, lp_diag *diag);

#endif
