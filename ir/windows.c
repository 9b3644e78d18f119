/* The windows of a convolution: their padding and number, as polynomials. */
#include "base/poly.h"
#include "ir/ir.h"

typedef struct {
  lp_module *m;
  const lp_op *op;
  lp_diag *diag;
} context;

/* An attribute with one number per spatial axis, `per_axis` of them; `otherwise` when absent. */
static lp_status read_numbers(const context *c, const char *name, int32_t count, int64_t least, int64_t otherwise,
                              int64_t *out) {
  const lp_attr *attr = lp_op_attr(c->op, name);
  for (int32_t i = 0; i < count; i++)
    out[i] = otherwise;
  if (!attr) return LP_OK;
  if (attr->count != count)
    return lp_error(c->diag, c->op->loc, "'%s' has %d numbers, %d wanted", name, attr->count, count);
  for (int32_t i = 0; i < count; i++) {
    out[i] = attr->is[i];
    if (out[i] < least || out[i] > INT32_MAX)
      return lp_error(c->diag, c->op->loc, "'%s' has the number %" PRId64 ", at least %" PRId64 " wanted", name, out[i],
                      least);
  }
  return LP_OK;
}

/* floor(a / by) for whole symbols: every term but the constant must divide; NULL otherwise. */
static const lp_poly *floor_div(const context *c, const lp_poly *a, int64_t by) {
  lp_arena *arena = c->m->arena;
  int64_t constant = 0;
  for (int32_t i = 0; a && i < a->count; i++)
    if (!a->term[i].symbol[0]) constant = a->term[i].coef;
  const lp_poly *rest = lp_poly_sub(arena, a, lp_dim_const(c->m, constant));
  const lp_poly *quotient = rest ? lp_poly_div(arena, rest, lp_dim_const(c->m, by)) : NULL;
  int64_t whole = constant / by - (constant % by < 0);
  return lp_poly_add(arena, quotient, lp_dim_const(c->m, whole));
}

/* auto_pad SAME: one window per step, and the odd element of padding at one end. */
static lp_status pad_same(const context *c, const lp_poly *size, bool upper, int32_t axis, lp_windows *w) {
  int64_t span = (w->window[axis] - 1) * w->dilations[axis] + 1, total = span - 1, number, count;
  const lp_poly *rounded = lp_poly_add(c->m->arena, size, lp_dim_const(c->m, w->steps[axis] - 1));
  w->out[axis] = floor_div(c, rounded, w->steps[axis]);
  if (w->steps[axis] > 1) {
    if (!lp_poly_is_const(size, &number) || !w->out[axis] || !lp_poly_is_const(w->out[axis], &count))
      return lp_error(c->diag, c->op->loc, "auto_pad with strides needs sizes that are constant");
    total = (count - 1) * w->steps[axis] + span - number;
  }
  if (total < 0) total = 0;
  w->before[axis] = upper ? total / 2 : total - total / 2;
  w->after[axis] = total - w->before[axis];
  return LP_OK;
}

static lp_status place_axis(const context *c, const lp_poly *size, const char *mode, const int64_t *pads, int32_t axis,
                            lp_windows *w) {
  bool upper = lp_streq(mode, "SAME_UPPER");
  if (upper || lp_streq(mode, "SAME_LOWER")) return pad_same(c, size, upper, axis, w);
  bool valid = lp_streq(mode, "VALID");
  w->before[axis] = valid ? 0 : pads[axis];
  w->after[axis] = valid ? 0 : pads[axis + w->count];
  int64_t span = (w->window[axis] - 1) * w->dilations[axis] + 1, number;
  const lp_poly *room = lp_poly_add(c->m->arena, size, lp_dim_const(c->m, w->before[axis] + w->after[axis] - span));
  if (room && lp_poly_is_const(room, &number) && number < 0)
    return lp_error(c->diag, c->op->loc, "its kernel spans %" PRId64 " elements, more than its padded input has", span);
  const lp_poly *steps = room ? floor_div(c, room, w->steps[axis]) : NULL;
  w->out[axis] = lp_poly_add(c->m->arena, steps, lp_dim_const(c->m, 1));
  if (w->out[axis]) return LP_OK;
  return lp_error(c->diag, c->op->loc, "strides of %" PRId64 " need a size that is a multiple of them", w->steps[axis]);
}

lp_status lp_op_windows(lp_module *module, const lp_op *op, lp_type x, lp_type w, lp_windows *out, lp_diag *diag) {
  context c = {module, op, diag};
  const char *mode = lp_op_str(op, "auto_pad", "NOTSET");
  static const char *const modes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  int64_t pads[2 * LP_MAX_SPATIAL], stated[LP_MAX_SPATIAL];
  bool known = false;
  *out = (lp_windows){.count = x.rank - 2};
  for (size_t i = 0; i < LP_COUNT(modes); i++)
    known = known || lp_streq(mode, modes[i]);
  if (!known) return lp_error(diag, op->loc, "auto_pad '%s' is not known", mode);
  if (out->count < 1 || out->count > LP_MAX_SPATIAL)
    return lp_error(diag, op->loc, "input 0 has %d axes, 3 to %d wanted", x.rank, LP_MAX_SPATIAL + 2);
  if (w.rank != x.rank) return lp_error(diag, op->loc, "its weight has %d axes, %d wanted", w.rank, x.rank);
  for (int32_t i = 0; i < out->count; i++)
    if (!lp_type_static_dim(w, i + 2, &out->window[i]) || out->window[i] < 1 || out->window[i] > INT32_MAX)
      return lp_error(diag, op->loc, "its kernel's sizes are not constant");
  LP_TRY(read_numbers(&c, "kernel_shape", out->count, 1, 0, stated));
  LP_TRY(read_numbers(&c, "strides", out->count, 1, 1, out->steps));
  LP_TRY(read_numbers(&c, "dilations", out->count, 1, 1, out->dilations));
  LP_TRY(read_numbers(&c, "pads", 2 * out->count, 0, 0, pads));
  for (int32_t i = 0; i < out->count; i++) {
    if (stated[i] && stated[i] != out->window[i])
      return lp_error(diag, op->loc, "kernel_shape says %" PRId64 ", its weight has %" PRId64, stated[i],
                      out->window[i]);
    LP_TRY(place_axis(&c, x.dim[i + 2], mode, pads, i, out));
  }
  return LP_OK;
}
