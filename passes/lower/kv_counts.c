/* Counts of tokens. M2M-100 counts the tokens other than padding to get a token's position, so a position depends on
 * the tokens before it. A cache keeps for each token whether it counts, and each step counts all p + s of them. */
#include "base/poly.h"
#include "passes/build.h"
#include "passes/lower/kv_cache.h"

bool lp_kv_counts_tokens(const lp_op *op) {
  const lp_value *x = lp_op_in(op, 0);
  bool plain =
      !lp_op_bool(op, "reverse", false) && !lp_op_bool(op, "exclusive", false) && !lp_op_bool(op, "product", false);
  if (op->kind != LP_OP_CUMSUM || !plain || x->type.rank != 2 || lp_op_i64(op, "axis", 0) % 2 == 0) return false;
  while (lp_op_is(x->def, LP_OP_MAP) && lp_streq(lp_op_str(x->def, "fn", ""), "cast") && x->type.dtype != LP_BOOL)
    x = lp_op_in(x->def, 0);
  return x->type.dtype == LP_BOOL;
}

/* The rows of the cache [b, 1, p + s, 1] as a tensor. */
static lp_value *read_all(lp_build *b, lp_value *cache) {
  lp_op *iota = lp_build_typed(b, LP_OP_IOTA, 0, NULL, lp_type_make(b->module, LP_I64, 1, &cache->type.dim[2]));
  lp_op_set_poly(b->module, iota, "start", lp_dim_const(b->module, 0));
  lp_op_set_poly(b->module, iota, "step", lp_dim_const(b->module, 1));
  lp_value *in[] = {cache, iota->out[0]};
  lp_op *gather = lp_build_typed(b, LP_OP_GATHER, 2, in, cache->type);
  lp_op_set_i64(b->module, gather, "axis", 2);
  return gather->out[0];
}

lp_op *lp_kv_keep_counts(lp_module *module, lp_op *op, lp_dtype dtype, lp_diag *diag) {
  lp_build b = lp_build_at(module, op, diag);
  lp_value *x = lp_op_in(op, 0), *in[1];
  const lp_type type = x->type;
  const lp_poly *one = lp_dim_const(module, 1), *p = lp_dim_symbol(module, "p");
  const lp_poly *rows[] = {type.dim[0], one, type.dim[1], one};
  const lp_poly *every[] = {type.dim[0], one, lp_poly_add(module->arena, p, type.dim[1]), one};
  const lp_poly *flat[] = {every[0], every[2]}, *starts[] = {lp_dim_const(module, 0), p};
  static const int64_t steps[] = {1, 1};
  in[0] = lp_build_reshape(&b, lp_build_map1(&b, "cast", x, dtype), lp_type_make(module, dtype, 4, rows));
  lp_op *append = lp_build_typed(&b, LP_OP_KV_APPEND, 1, in, lp_type_make(module, dtype, 4, every));
  lp_op_set_str(module, append, "layout", "bhsd");
  lp_value *seen = lp_build_reshape(&b, read_all(&b, append->out[0]), lp_type_make(module, dtype, 2, flat));
  in[0] = lp_build_map1(&b, "cast", seen, type.dtype);
  lp_op *sum = lp_build_typed(&b, LP_OP_CUMSUM, 1, in, in[0]->type);
  lp_op_set_i64(module, sum, "axis", 1);
  lp_op *slice = lp_build_typed(&b, LP_OP_SLICE, 1, sum->out, type);
  lp_op_set_polys(module, slice, "starts", starts, 2);
  lp_op_set_i64s(module, slice, "steps", steps, 2);
  lp_value_replace(op->out[0], slice->out[0]);
  return append;
}
