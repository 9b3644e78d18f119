/* The parts of manifest.json, which manifest.c puts together: docs/bundle.md has its members. */
#pragma once

#include "backend/bundle/bundle_internal.h"
#include "base/json/writer.h"

/* Writes states, inputs, outputs and exits. Fails if a state's number is not its place. */
LP_MUST_USE lp_status lp_bundle_put_ports(lp_json_writer *w, const bundle *b, lp_diag *diag);
/* Writes programs and, when there are several plans, plans. Fails if a tensor that a step needs has no buffer. */
LP_MUST_USE lp_status lp_bundle_put_programs(lp_json_writer *w, const bundle *b, lp_diag *diag);

/* Writes name, dtype and shape as members of the object that is open. */
void lp_bundle_put_tensor(lp_json_writer *w, const bundle *b, const char *name, lp_type type);
/* The function that states the model's inputs and outputs. Prefill and decode have the same ones, but only decode has
 * their general shapes. NULL: the module has no function. */
const lp_op *lp_bundle_model_func(const bundle *b);
/* Entry `index` of the list of texts that is the function's attribute `name`; `otherwise` if there is none. */
const char *lp_bundle_text_at(const lp_op *func, const char *name, int32_t index, const char *otherwise);
/* Tells whether the function's output is the logits of an exit. */
bool lp_bundle_exits_at(const lp_op *func, int32_t output);
