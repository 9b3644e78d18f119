/* Declarations that only the files of ir/ share. */
#pragma once

#include "ir/ir.h"

/* An attribute that exists in text only: it says which operands of an operator are present ("1101"). */
#define LP_MASK_ATTR "operand_mask"

/* The MLIR name of an element type: "i1", "ui8"; an opaque type of llmpart where MLIR has none. */
const char *lp_dtype_text(lp_dtype dtype);

/* Takes steps from module->eval_steps; false, without taking any, when fewer are left. */
bool lp_module_spend(lp_module *module, int64_t steps);

/* The type rule of an op.* operator, from ops.def (rules.c). */
LP_MUST_USE lp_status lp_op_check_types(lp_module *module, const lp_op *op, lp_diag *diag);

/* Checks the types of an llmpart.shard (constant.c). */
LP_MUST_USE lp_status lp_shard_check(const lp_op *op, lp_diag *diag);
/* Checks the attributes `places` of all functions, which are equal or absent (places.c). */
LP_MUST_USE lp_status lp_module_check_places(const lp_module *module, lp_diag *diag);
