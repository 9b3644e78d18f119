/* Caches of causal convolutions. The model passes the last n columns of a convolution's input from step to step. Here a
 * cache keeps the columns of all positions, as it keeps keys and values, and each step reads the n columns before its
 * own. So positions may be repeated or taken back, and sequences in one pass may have different lengths; columns that a
 * convolution overwrites in place allow neither. A model with states of linear attentions, which allow neither as well,
 * has columns that are carried so, in memory that does not grow. */
#include "base/poly.h"
#include "passes/build.h"
#include "passes/lower/kv_cache.h"

typedef struct {
  lp_build b;
  lp_type type;         /* of past and new columns: [b, channels, n + s] */
  const lp_poly *s, *n; /* the numbers of new columns, and of past ones that they read */
} columns;

static lp_value *reshaped(columns *c, lp_value *x, int32_t rank, const lp_poly *const *dims) {
  return lp_build_reshape(&c->b, x, lp_type_make(c->b.module, x->type.dtype, rank, dims));
}

/* Exchanges channels and positions. */
static lp_value *turned(columns *c, lp_value *x) {
  static const int64_t swap[] = {0, 2, 1};
  return lp_build_transpose(&c->b, x, swap);
}

/* The positions of the columns, from p - n on: [n + s]. The first n are negative at the beginning of a sequence. */
static lp_value *positions(columns *c) {
  lp_module *m = c->b.module;
  lp_op *iota = lp_build_typed(&c->b, LP_OP_IOTA, 0, NULL, lp_type_make(m, LP_I64, 1, &c->type.dim[2]));
  lp_op_set_poly(m, iota, "start", lp_poly_sub(m->arena, lp_dim_symbol(m, "p"), c->n));
  lp_op_set_poly(m, iota, "step", lp_dim_const(m, 1));
  return iota->out[0];
}

/* Zeros where the position is negative: a sequence begins with empty columns. */
static lp_value *without_negative(columns *c, lp_value *x, lp_value *position, lp_value *zero) {
  lp_module *m = c->b.module;
  const lp_poly *one = lp_dim_const(m, 1), *dims[] = {one, one, c->type.dim[2], one};
  lp_value *keep = reshaped(c, lp_build_map2(&c->b, "ge", position, zero, LP_BOOL), 4, dims);
  lp_op *none = lp_build_typed(&c->b, LP_OP_FILL, 0, NULL, lp_type_make(m, x->type.dtype, 0, NULL));
  lp_op_set_f64(m, none, "value", 0);
  lp_value *in[] = {keep, x, none->out[0]};
  return lp_build_map(&c->b, "where", 3, in, x->type);
}

/* The columns of the cache [b, 1, p + s, channels] that the step reads. */
static lp_value *read_columns(columns *c, lp_value *cache) {
  lp_module *m = c->b.module;
  static const int64_t nothing = 0;
  lp_value *position = positions(c), *zero = lp_build_constant(&c->b, LP_I64, 0, NULL, &nothing);
  lp_value *in[] = {cache, lp_build_map2(&c->b, "max", position, zero, LP_I64)};
  const lp_poly *dims[] = {c->type.dim[0], lp_dim_const(m, 1), c->type.dim[2], c->type.dim[1]};
  lp_op *gather = lp_build_typed(&c->b, LP_OP_GATHER, 2, in, lp_type_make(m, cache->type.dtype, 4, dims));
  lp_op_set_i64(m, gather, "axis", 2);
  lp_value *x = gather->out[0];
  if (x->type.dtype != c->type.dtype) x = lp_build_map1(&c->b, "cast", x, c->type.dtype);
  const lp_poly *flat[] = {dims[0], dims[2], dims[3]};
  return turned(c, reshaped(c, without_negative(c, x, position, zero), 3, flat));
}

/* The concatenation of past and new columns, the only use of the past. */
static lp_op *joins(const lp_value *past) {
  lp_op *concat = lp_value_has_one_use(past) ? past->uses->owner : NULL;
  bool joined = lp_op_is(concat, LP_OP_CONCAT) && concat->in_count == 2 && lp_op_in(concat, 0) == past;
  return joined && past->type.rank == 3 && lp_op_i64(concat, "axis", -1) == 2 ? concat : NULL;
}

lp_op *lp_kv_carry_columns(lp_module *module, const lp_value *past, lp_diag *diag) {
  lp_op *concat = joins(past);
  if (!concat) return NULL;
  lp_value *fresh = lp_op_in(concat, 1);
  lp_build b = lp_build_at(module, concat, diag);
  lp_op *carry = lp_build_typed(&b, LP_OP_CARRY_COLUMNS, 1, &fresh, concat->out[0]->type);
  lp_op_add_result(module, carry, past->type);
  lp_value_replace(concat->out[0], carry->out[0]);
  return carry;
}

lp_op *lp_kv_keep_columns(lp_module *module, const lp_value *past, lp_dtype dtype, lp_diag *diag) {
  lp_op *concat = joins(past);
  if (!concat) return NULL;
  lp_value *fresh = lp_op_in(concat, 1);
  columns c = {lp_build_at(module, concat, diag), concat->out[0]->type, fresh->type.dim[2], past->type.dim[2]};
  const lp_poly *one = lp_dim_const(module, 1), *rows[] = {c.type.dim[0], one, c.s, c.type.dim[1]};
  const lp_poly *total[] = {rows[0], one, lp_poly_add(module->arena, lp_dim_symbol(module, "p"), c.s), rows[3]};
  lp_value *in = reshaped(&c, turned(&c, fresh), 4, rows);
  lp_op *append = lp_build_typed(&c.b, LP_OP_KV_APPEND, 1, &in, lp_type_make(module, dtype, 4, total));
  lp_op_set_str(module, append, "layout", "bhsd");
  lp_value_replace(concat->out[0], read_columns(&c, append->out[0]));
  return append;
}
