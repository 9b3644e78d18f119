/* Operators that the importer makes although the file has no node for them. */
#pragma once

#include "frontend/onnx/importer.h"

/* Appends an operator with one result to the block and infers its type. */
LP_MUST_USE lp_status lp_import_built(lp_importer *im, lp_op *op, lp_value **out);
/* Reads an integer or a bool of one element that is known at import; false for any other value. */
bool lp_import_number(const lp_value *value, int64_t *out);
