/* Lowering of convolutions: windows of the padded operand as columns, then one product per group. */
#include "base/poly.h"
#include "passes/lower/lower.h"

typedef struct {
  lp_lowering *l;
  lp_windows windows;
  int64_t groups;
  const lp_poly *area;    /* windows in all */
  const lp_poly *columns; /* elements of a window, over a group's channels */
} conv;

static lp_value *pad_axes(const conv *c, lp_value *x) {
  lp_build *b = &c->l->b;
  const lp_poly *dims[LP_MAX_RANK], *before[LP_MAX_RANK];
  bool any = false;
  for (int32_t i = 0; i < x->type.rank; i++) {
    int64_t low = i < 2 ? 0 : c->windows.before[i - 2], high = i < 2 ? 0 : c->windows.after[i - 2];
    before[i] = lp_dim_const(b->module, low);
    dims[i] = lp_poly_add(b->module->arena, x->type.dim[i], lp_dim_const(b->module, low + high));
    any = any || low > 0 || high > 0;
  }
  if (!any) return x;
  lp_type type = lp_type_make(b->module, x->type.dtype, x->type.rank, dims);
  lp_op *op = lp_build_typed(b, LP_OP_PAD, 1, &x, type);
  lp_op_set_polys(b->module, op, "before", before, x->type.rank);
  lp_op_set_f64(b->module, op, "value", 0);
  return op->out[0];
}

/* Tells whether the windows equal x (kernels of one element, steps of one). */
static bool is_pointwise(const conv *c) {
  for (int32_t i = 0; i < c->windows.count; i++)
    if (c->windows.window[i] != 1 || c->windows.steps[i] != 1) return false;
  return true;
}

/* [n][c][spatial...] as [n][c][kernel...][windows...] */
static lp_value *slide(const conv *c, lp_value *x) {
  lp_build *b = &c->l->b;
  const int32_t n = c->windows.count;
  const lp_poly *dims[LP_MAX_RANK] = {x->type.dim[0], x->type.dim[1]};
  if (is_pointwise(c)) return x;
  for (int32_t i = 0; i < n; i++) {
    dims[2 + i] = lp_dim_const(b->module, c->windows.window[i]);
    dims[2 + n + i] = c->windows.out[i];
  }
  lp_op *op = lp_build_typed(b, LP_OP_WINDOWS, 1, &x, lp_type_make(b->module, x->type.dtype, 2 + 2 * n, dims));
  lp_op_set_i64s(b->module, op, "window", c->windows.window, n);
  lp_op_set_i64s(b->module, op, "steps", c->windows.steps, n);
  lp_op_set_i64s(b->module, op, "dilations", c->windows.dilations, n);
  return op->out[0];
}

/* The product of the groups' weights [groups][maps][columns] with [n][groups][columns][windows]. */
static lp_value *multiply(const conv *c, lp_value *x, lp_value *w, lp_type y) {
  lp_build *b = &c->l->b;
  lp_arena *arena = b->module->arena;
  const lp_poly *groups = lp_dim_const(b->module, c->groups), *maps = lp_poly_div(arena, y.dim[1], groups);
  const lp_poly *column_dims[] = {y.dim[0], groups, c->columns, c->area};
  const lp_poly *weight_dims[] = {groups, maps, c->columns};
  const lp_poly *product_dims[] = {y.dim[0], groups, maps, c->area};
  lp_value *in[] = {lp_build_reshape(b, w, lp_type_make(b->module, w->type.dtype, 3, weight_dims)),
                    lp_build_reshape(b, x, lp_type_make(b->module, x->type.dtype, 4, column_dims))};
  lp_type type = lp_type_make(b->module, x->type.dtype, 4, product_dims);
  return lp_build_reshape(b, lp_build_typed(b, LP_OP_MATMUL, 2, in, type)->out[0], y);
}

static lp_value *add_bias(const conv *c, lp_value *y, lp_value *bias) {
  lp_build *b = &c->l->b;
  const lp_poly *dims[LP_MAX_RANK] = {bias->type.dim[0]};
  for (int32_t i = 0; i < c->windows.count; i++)
    dims[i + 1] = lp_dim_const(b->module, 1);
  lp_type type = lp_type_make(b->module, bias->type.dtype, c->windows.count + 1, dims);
  return lp_build_map2(b, "add", y, lp_build_reshape(b, bias, type), y->type.dtype);
}

lp_status lp_lower_conv(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0), *w = lp_op_in(l->op, 1), *bias = lp_op_in(l->op, 2);
  lp_arena *arena = l->b.module->arena;
  conv c = {.l = l, .groups = lp_op_i64(l->op, "group", 1)};
  LP_TRY(lp_op_windows(l->b.module, l->op, x->type, w->type, &c.windows, l->b.diag));
  c.area = lp_dim_const(l->b.module, 1);
  c.columns = w->type.dim[1];
  for (int32_t i = 0; i < c.windows.count; i++) {
    c.area = lp_poly_mul(arena, c.area, c.windows.out[i]);
    c.columns = lp_poly_scale(arena, c.columns, c.windows.window[i]);
  }
  if (!c.area || !c.columns) return lp_lower_refuse(l, "has sizes that overflow");
  lp_type type = lp_type_with_dtype(l->op->out[0]->type, x->type.dtype);
  lp_value *y = multiply(&c, slide(&c, pad_axes(&c, x)), w, type);
  l->result[0] = bias ? add_bias(&c, y, bias) : y;
  return LP_OK;
}
