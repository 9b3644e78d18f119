/* Facts about the operators and values of a placed module that every backend and the manifest need. */
#pragma once

#include "ir/ir.h"

/* The buffer of a value at a place, -1 when it has none. */
int64_t lp_value_buffer(const lp_value *value, lp_place place);
/* A function's attribute `name` of a place, i64s; NULL when absent. */
const lp_attr *lp_func_place_attr(const lp_op *func, const char *name, lp_place place);
/* Looks through LP_ALIAS operators to the value that owns the memory. */
lp_value *lp_value_base(lp_value *value);
/* The rows of a cache from one head to the next: its capacity `c`, or those of a cache that is filled once. */
const lp_poly *lp_cache_rows(lp_module *module, const lp_op *append);
/* Tells whether the operator is an op.kv_append without rows to append, which reads a full cache. It emits nothing. */
bool lp_op_only_reads(const lp_op *op);
/* Tells whether a backend computes the operator. Constants, communication, terminators and declarations are not
 * computed. */
bool lp_op_is_run(const lp_op *op);
/* The place that holds an operator's results; the device where the operator names none. */
lp_place lp_op_at(const lp_op *op);
/* Tells whether all values are f32. Constants may be of another float type. If not, `why` (64 bytes) names the type
 * that was found. */
bool lp_op_all_f32(const lp_op *op, char why[64]);
