/* The reference interpreter: to come. */
#include "ir/ir.h"
lp_status lp_op_eval(lp_module *module, const lp_op *op, const lp_array *const *in, lp_array *out, const int64_t *sym,
                     lp_arena *arena, lp_diag *diag) {
  (void)module, (void)in, (void)out, (void)sym, (void)arena;
  return lp_error(diag, op->loc, "cannot be evaluated");
}
lp_status lp_value_eval(lp_module *module, lp_value *value, const lp_binding *bindings, size_t count,
                        const int64_t *sym, lp_arena *arena, lp_array *out, lp_diag *diag) {
  (void)module, (void)value, (void)bindings, (void)count, (void)sym, (void)arena, (void)out;
  return lp_error(diag, LP_LOC_NONE, "cannot be evaluated");
}
