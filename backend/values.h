/* Questions about the operators and values of a placed module, which every backend and the manifest ask. */
#ifndef LP_BACKEND_VALUES_H
#define LP_BACKEND_VALUES_H

#include "base/side.h"
#include "ir/ir.h"

/* The buffer of a value on a side, -1 when it has none. */
int64_t lp_value_buffer(const lp_value *value, lp_side side);
/* The attribute `name`_`side` of a function, i64s; NULL when absent. */
const lp_attr *lp_func_side_attr(const lp_op *func, const char *name, lp_side side);
/* Looks through LP_ALIAS operators to the value whose memory it is. */
lp_value *lp_value_base(lp_value *value);
/* The op.kv_append that `value` is the result of, or NULL. */
const lp_op *lp_value_cache(const lp_value *value);
/* Does a backend compute it? Constants, communication, terminators and declarations are not computed. */
bool lp_op_is_run(const lp_op *op);
/* The side that has an operator's results; the device where the operator names none. */
lp_side lp_op_side(const lp_op *op);
/* The side that the attribute `name` says ("from", "to"); LP_SIDE_COUNT when it says none. */
lp_side lp_op_side_attr(const lp_op *op, const char *name);
/* Are all values f32? Constants may be of another float type. If not, `why` says what was found. */
bool lp_op_all_f32(const lp_op *op, char why[64]);

#endif
