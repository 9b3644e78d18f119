/* Convolutions and windows of the reference interpreter. */
#include "base/poly.h"
#include "ir/eval/eval.h"

static lp_type type_of(const lp_eval *e, const lp_array *array) {
  return lp_type_static(e->m, array->dtype, array->rank, array->dim);
}

/* Splits a flat index over `dim` into one index per axis. */
static void unflatten(int64_t at, int32_t rank, const int64_t *dim, int64_t *index) {
  for (int32_t i = rank - 1; i >= 0; i--) {
    index[i] = at % dim[i];
    at /= dim[i];
  }
}

/* Flat offset in the spatial axes of x of kernel element `k` of window `o`; -1 in the padding. */
static int64_t spatial_offset(const lp_windows *w, const int64_t *dim, int64_t o, int64_t k, const int64_t *out) {
  int64_t window[LP_MAX_SPATIAL], element[LP_MAX_SPATIAL], offset = 0;
  unflatten(o, w->count, out, window);
  unflatten(k, w->count, w->window, element);
  for (int32_t i = 0; i < w->count; i++) {
    int64_t at = window[i] * w->steps[i] + element[i] * w->dilations[i] - w->before[i];
    if (at < 0 || at >= dim[i]) return -1;
    offset = offset * dim[i] + at;
  }
  return offset;
}

typedef struct {
  lp_windows windows;
  /* channels and maps; number of windows, of elements of x, of w */
  int64_t out[LP_MAX_SPATIAL], per_group, maps, area, size, kernel;
  const double *x, *w;
} convolution;

static double convolve(const convolution *c, const lp_array *in, int64_t batch, int64_t map, int64_t window) {
  int64_t groups = in->dim[1] / c->per_group, group = map / (c->maps / groups);
  double sum = 0;
  for (int64_t k = 0; k < c->kernel; k++) {
    int64_t at = spatial_offset(&c->windows, in->dim + 2, window, k, c->out);
    if (at < 0) continue;
    for (int64_t i = 0; i < c->per_group; i++)
      sum += c->x[(batch * in->dim[1] + group * c->per_group + i) * c->size + at] *
             c->w[(map * c->per_group + i) * c->kernel + k];
  }
  return sum;
}

lp_status eval_onnx_conv(const lp_eval *e) {
  const lp_array *in = e->in[0], *weight = e->in[1], *bias = lp_eval_in(e, 2);
  lp_array *out;
  convolution c = {.area = 1, .size = 1, .kernel = 1};
  LP_TRY(lp_op_windows(e->m, e->op, type_of(e, in), type_of(e, weight), &c.windows, e->diag));
  int64_t dim[LP_MAX_RANK] = {in->dim[0], weight->dim[0]};
  c.per_group = weight->dim[1];
  c.maps = weight->dim[0];
  if (c.per_group < 1 || in->dim[1] % c.per_group != 0 || c.maps % (in->dim[1] / c.per_group) != 0)
    return lp_eval_fail(e, "its channels do not agree");
  if (bias && lp_array_numel(bias) != c.maps) return lp_eval_fail(e, "its bias is not one number per map");
  for (int32_t i = 0; i < c.windows.count; i++) {
    (void)lp_poly_is_const(c.windows.out[i], &c.out[i]);
    dim[i + 2] = c.out[i];
    c.area *= c.out[i], c.size *= in->dim[i + 2], c.kernel *= weight->dim[i + 2];
  }
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, dim, &out));
  c.x = lp_eval_doubles(e, in);
  c.w = lp_eval_doubles(e, weight);
  for (int64_t i = 0; i < lp_array_numel(out); i++) {
    int64_t map = i / c.area % c.maps;
    double y = convolve(&c, in, i / c.area / c.maps, map, i % c.area);
    lp_array_set_f64(out, i, y + (bias ? lp_array_f64(bias, map) : 0));
  }
  return LP_OK;
}

lp_status eval_op_WINDOWS(const lp_eval *e) {
  const lp_attr *window = lp_op_attr(e->op, "window"), *steps = lp_op_attr(e->op, "steps"),
                *dilations = lp_op_attr(e->op, "dilations");
  const lp_array *in = e->in[0];
  lp_array *out;
  LP_TRY(lp_eval_out_typed(e, 0, &out));
  int32_t n = window->count, lead = in->rank - n;
  if (lead < 0 || out->rank != in->rank + n) return lp_eval_fail(e, "its result has %d axes", out->rank);
  for (int64_t i = 0; i < lp_array_numel(out); i++) {
    int64_t index[LP_MAX_RANK] = {0}, at = 0;
    unflatten(i, out->rank, out->dim, index);
    for (int32_t k = 0; k < in->rank; k++) {
      int64_t own = k < lead ? index[k] : index[k] * dilations->is[k - lead] + index[k + n] * steps->is[k - lead];
      if (own >= in->dim[k]) return lp_eval_fail(e, "a window leaves axis %d", k);
      at = at * in->dim[k] + own;
    }
    lp_array_copy(out, i, in, at);
  }
  return LP_OK;
}
