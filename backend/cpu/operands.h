/* Facts about operands that rules use, and the kernels' numbers for element types. */
#pragma once

#include "backend/cpu/constants/constants.h"

/* A constant of one element, which the code carries as an immediate. */
bool cpu_value_immediate(const lp_value *value, lp_tensor *out);
/* `form` of rules that read all constants alike. */
cpu_form cpu_form_raw(const lp_op *op, int32_t index);
cpu_form cpu_form_f32(const lp_op *op, int32_t index);

int cpu_kernel_dtype(lp_dtype dtype); /* LPK_* */
int32_t cpu_dtype_bytes(lp_dtype dtype);
