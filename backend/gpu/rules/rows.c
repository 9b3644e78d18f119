/* Products, norms, reductions. */
#include "backend/gpu/rules/element.h"

#include "backend/gpu/rules.h"
#include "backend/values.h"
#include "base/poly.h"

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

/* The index in an operand at which the matrix for the batch of the result begins. */
static const char *batch_offset(gpu_element *e, lp_type from) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  int64_t one;
  for (int32_t i = 0; i + 2 < from.rank; i++) {
    if (lp_poly_is_const(from.dim[i], &one) && one == 1) continue;
    lp_buf_printf(&text, "%s * (%s) + ", gpu_element_coordinate(e, e->type.rank - from.rank + i),
                  gpu_element_stride(e, from.dim, i + 1, from.rank));
  }
  return gpu_format(e->b->list, "%s0", lp_buf_text(&text));
}

static bool matmul_runs(const lp_op *op, char why[64]) {
  for (int32_t i = 0; i < 2; i++)
    if (lp_op_in(op, i)->type.rank < 2) return snprintf(why, 64, "operands of rank under 2"), false;
  return lp_op_all_f32(op, why);
}

static void lower_matmul(gpu_builder *b) {
  const lp_type left = lp_op_in(b->op, 0)->type, right = lp_op_in(b->op, 1)->type, to = b->op->out[0]->type;
  bool ta = lp_op_bool(b->op, "transpose_a", false), tb = lp_op_bool(b->op, "transpose_b", false);
  gpu_element e;
  gpu_element_begin(&e, b, to);
  const char *x = gpu_element_pointer(&e, gpu_ref_in(b, 0, GPU_FORM_F32), LP_F32, false);
  const char *w = gpu_element_pointer(&e, gpu_ref_in(b, 1, GPU_FORM_F32), LP_F32, false);
  const char *depth = gpu_element_size(&e, left.dim[left.rank - (ta ? 2 : 1)]);
  const char *m = gpu_element_size(&e, to.dim[to.rank - 2]), *n = gpu_element_size(&e, to.dim[to.rank - 1]);
  gpu_element_line(&e, "const long row = i / (%s) %% (%s), column = i %% (%s);", n, m, n);
  gpu_element_line(&e, "const long left = %s, right = %s;", batch_offset(&e, left), batch_offset(&e, right));
  gpu_element_line(&e, "float sum = 0;");
  gpu_element_line(&e, "for (long j = 0; j < %s; j++)", depth);
  const char *a_at = ta ? gpu_format(b->list, "j * %s + row", m) : gpu_format(b->list, "row * %s + j", depth);
  const char *b_at = tb ? gpu_format(b->list, "column * %s + j", depth) : gpu_format(b->list, "j * %s + column", n);
  gpu_element_line(&e, "  sum += %s[left + %s] * %s[right + %s];", x, a_at, w, b_at);
  gpu_element_store(&e, gpu_element_pointer(&e, gpu_ref_out(b, 0), LP_F32, true), LP_F32, "i", "sum");
  gpu_element_end(&e, "matmul");
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static bool norm_runs(const lp_op *op, char why[64]) {
  int64_t n = 0, length = 0;
  if (!lp_op_all_f32(op, why) || !gpu_static_last(op, why)) return false;
  lp_type_static_dim(lp_op_in(op, 0)->type, -1, &n);
  for (int32_t i = op->kind == LP_OP_ADD_NORM ? 2 : 1; i < op->in_count; i++)
    if (lp_op_in(op, i) && (!lp_type_static_numel(lp_op_in(op, i)->type, &length) || length != n))
      return snprintf(why, 64, "a weight or bias not as long as the last axis"), false;
  if (op->kind == LP_OP_ADD_NORM && !lp_type_equal(lp_op_in(op, 0)->type, lp_op_in(op, 1)->type))
    return snprintf(why, 64, "x and r of different shapes"), false;
  return true;
}

static void lower_any_norm(gpu_builder *b, int32_t residual, int32_t weight) {
  const lp_type x = lp_op_in(b->op, 0)->type;
  int64_t n = 0;
  lp_type_static_dim(x, -1, &n);
  int32_t threads = n <= 128 ? 32 : n <= 1024 ? 128 : n <= 8192 ? 256 : 1024;
  const char *const params[] = {"WHAT",    lp_op_info_get(b->op->kind)->name,
                                "N",       gpu_format(b->list, "%" PRId64, n),
                                "RMS",     lp_streq(lp_op_str(b->op, "type", ""), "rms") ? "1" : "0",
                                "EPSILON", gpu_format(b->list, "%.9ef", lp_op_f64(b->op, "epsilon", 1e-5)),
                                "THREADS", gpu_format(b->list, "%d", threads),
                                NULL};
  const char *stem = gpu_format(b->list, "norm_%s_%" PRId64, lp_op_str(b->op, "type", ""), n);
  int32_t refs[6] = {gpu_ref_in(b, 0, GPU_FORM_F32),        residual < 0 ? -1 : gpu_ref_in(b, residual, GPU_FORM_F32),
                     gpu_ref_in(b, weight, GPU_FORM_F32),   gpu_ref_in(b, weight + 1, GPU_FORM_F32),
                     residual < 0 ? -1 : gpu_ref_out(b, 0), gpu_ref_out(b, residual < 0 ? 0 : 1)};
  gpu_launch *launch = gpu_launch_add(b, gpu_kernel_get(b->list, "norm", stem, params), threads,
                                      lp_dim_product(b->list->module, x.dim, 0, x.rank - 1), 1);
  for (size_t i = 0; i < LP_COUNT(refs); i++)
    gpu_arg_ref(launch, refs[i]);
}

static void lower_norm(gpu_builder *b) {
  lower_any_norm(b, -1, 1);
}

static void lower_add_norm(gpu_builder *b) {
  lower_any_norm(b, 1, 2);
}

/* ---- along axes -------------------------------------------------------------------------------------------------- */

static bool softmax_runs(const lp_op *op, char why[64]) {
  if (op->out[0]->type.rank < 1) return snprintf(why, 64, "an operand without axes"), false;
  return lp_op_all_f32(op, why);
}

static void lower_softmax(gpu_builder *b) {
  const lp_type x = lp_op_in(b->op, 0)->type;
  bool log = lp_op_bool(b->op, "log", false);
  const char *const params[] = {"WHAT", "op.softmax", "LOG", log ? "1" : "0", "THREADS", "128", NULL};
  const gpu_kernel *kernel = gpu_kernel_get(b->list, "softmax", log ? "log_softmax" : "softmax", params);
  gpu_launch *launch = gpu_launch_add(b, kernel, 128, lp_dim_product(b->list->module, x.dim, 0, x.rank - 1), 1);
  gpu_arg_ref(launch, gpu_ref_in(b, 0, GPU_FORM_F32));
  gpu_arg_ref(launch, gpu_ref_out(b, 0));
  gpu_arg_size(launch, x.dim[x.rank - 1]);
}

/* The start, the step and the end of a reduction. */
static const struct {
  const char *fn, *begin, *step, *end;
} reductions[] = {{"sum", "0", "sum += v", "sum"},
                  {"mean", "0", "sum += v", "sum / each"},
                  {"max", "-INFINITY", "sum = isnan(v) || v > sum ? v : sum", "sum"},
                  {"min", "INFINITY", "sum = isnan(v) || v < sum ? v : sum", "sum"},
                  {"prod", "1", "sum *= v", "sum"},
                  {"l1", "0", "sum += fabsf(v)", "sum"},
                  {"l2", "0", "sum += v * v", "sqrtf(sum)"},
                  {"sumsq", "0", "sum += v * v", "sum"},
                  {"logsum", "0", "sum += v", "logf(sum)"}};

static bool reduce_runs(const lp_op *op, char why[64]) {
  const char *fn = lp_op_str(op, "fn", "");
  for (size_t i = 0; i < LP_COUNT(reductions); i++)
    if (lp_streq(reductions[i].fn, fn)) return lp_op_all_f32(op, why);
  return snprintf(why, 64, "fn '%s'", fn), false;
}

static bool is_reduced(const lp_attr *axes, int32_t axis) {
  for (int32_t i = 0; i < axes->count; i++)
    if (axes->is[i] == axis) return true;
  return false;
}

/* One loop for each reduced axis around the step. `at` is the index of the element that the step
 * reads. */
static void lower_reduce(gpu_builder *b) {
  const lp_attr *axes = lp_op_attr(b->op, "axes");
  const lp_type from = lp_op_in(b->op, 0)->type;
  bool keep = lp_op_bool(b->op, "keepdims", false);
  size_t which = 0;
  while (!lp_streq(reductions[which].fn, lp_op_str(b->op, "fn", "")))
    which++;
  LP_OWNED(lp_buf_free) lp_buf at = {0};
  gpu_element e;
  gpu_element_begin(&e, b, b->op->out[0]->type);
  const char *x = gpu_element_pointer(&e, gpu_ref_in(b, 0, GPU_FORM_F32), LP_F32, false), *each = "1";
  for (int32_t i = 0, k = 0; i < from.rank; i++) {
    bool gone = is_reduced(axes, i);
    const char *own = gone ? gpu_format(b->list, "r%d", i) : gpu_element_coordinate(&e, k);
    k += keep || !gone;
    lp_buf_printf(&at, "%s%s * (%s)", i ? " + " : "", own, gpu_element_stride(&e, from.dim, i + 1, from.rank));
    if (gone) each = gpu_format(b->list, "%s * %s", each, gpu_element_size(&e, from.dim[i]));
  }
  gpu_element_line(&e, "const float each = (float)(%s);", each);
  gpu_element_line(&e, "float sum = %s;", reductions[which].begin);
  for (int32_t i = 0; i < from.rank; i++)
    if (is_reduced(axes, i))
      gpu_element_line(&e, "for (long r%d = 0; r%d < %s; r%d++)", i, i, gpu_element_size(&e, from.dim[i]), i);
  gpu_element_line(&e, "{ const float v = %s[%s]; %s; }", x, from.rank ? lp_buf_text(&at) : "0",
                   reductions[which].step);
  gpu_element_line(&e, "(void)each;");
  gpu_element_store(&e, gpu_element_pointer(&e, gpu_ref_out(b, 0), LP_F32, true), LP_F32, "i", reductions[which].end);
  gpu_element_end(&e, gpu_format(b->list, "reduce_%s", reductions[which].fn));
}

static bool argmax_runs(const lp_op *op, char why[64]) {
  if (lp_op_in(op, 0)->type.dtype != LP_F32) return snprintf(why, 64, "it computes in f32"), false;
  return true;
}

static void lower_argmax(gpu_builder *b) {
  const lp_type from = lp_op_in(b->op, 0)->type, to = b->op->out[0]->type;
  int32_t axis = (int32_t)lp_op_i64(b->op, "axis", 0);
  bool min = lp_op_bool(b->op, "min", false), last = lp_op_bool(b->op, "last", false);
  gpu_element e;
  gpu_element_begin(&e, b, to);
  const char *x = gpu_element_pointer(&e, gpu_ref_in(b, 0, GPU_FORM_F32), LP_F32, false);
  const char *count = gpu_element_size(&e, from.dim[axis]);
  gpu_element_line(&e, "const long inner = %s, first = i / inner * %s * inner + i %% inner;",
                   gpu_element_stride(&e, from.dim, axis + 1, from.rank), count);
  gpu_element_line(&e, "long best = 0;");
  gpu_element_line(&e, "for (long j = 1; j < %s; j++)", count);
  gpu_element_line(&e, "  if (%s[first + j * inner] %s%s %s[first + best * inner]) best = j;", x, min ? "<" : ">",
                   last ? "=" : "", x);
  gpu_element_store(&e, gpu_element_pointer(&e, gpu_ref_out(b, 0), to.dtype, true), to.dtype, "i", "best");
  gpu_element_end(&e, min ? "argmin" : "argmax");
}

/* ---- the greatest elements --------------------------------------------------------------------------------------- */

static void lower_topk(gpu_builder *b) {
  lp_module *module = b->list->module;
  const lp_type from = lp_op_in(b->op, 0)->type, to = b->op->out[0]->type;
  const int32_t axis = (int32_t)lp_op_i64(b->op, "axis", 0);
  const bool min = lp_op_bool(b->op, "min", false);
  int64_t count = 0;
  lp_type_static_dim(from, axis, &count);
  const int32_t threads = count > 0 && count <= 32 ? 32 : 128;
  const char *const params[] = {
      "WHAT", "op.topk", "LEAST", min ? "1" : "0", "THREADS", gpu_format(b->list, "%d", threads), NULL};
  const lp_poly *inner = lp_dim_product(module, from.dim, axis + 1, from.rank);
  const lp_poly *lines = lp_poly_mul(module->arena, lp_dim_product(module, from.dim, 0, axis), inner);
  const lp_poly *const sizes[] = {lines, inner, from.dim[axis], to.dim[axis]};
  const char *stem = gpu_format(b->list, "%s_%d", min ? "topk_min" : "topk", threads);
  gpu_launch *launch = gpu_launch_add(b, gpu_kernel_get(b->list, "topk", stem, params), threads, lines, 1);
  gpu_arg_ref(launch, gpu_ref_in(b, 0, GPU_FORM_F32));
  gpu_arg_ref(launch, gpu_ref_out(b, 0));
  gpu_arg_ref(launch, gpu_ref_out(b, 1));
  for (size_t i = 0; i < LP_COUNT(sizes); i++)
    gpu_arg_size(launch, sizes[i]);
  launch->spare = true;
}

const gpu_rule gpu_rule_matmul = {LP_OP_MATMUL, matmul_runs, lower_matmul, NULL};
const gpu_rule gpu_rule_norm = {LP_OP_NORM, norm_runs, lower_norm, NULL};
const gpu_rule gpu_rule_add_norm = {LP_OP_ADD_NORM, norm_runs, lower_add_norm, NULL};
const gpu_rule gpu_rule_softmax = {LP_OP_SOFTMAX, softmax_runs, lower_softmax, NULL};
const gpu_rule gpu_rule_reduce = {LP_OP_REDUCE, reduce_runs, lower_reduce, NULL};
const gpu_rule gpu_rule_argmax = {LP_OP_ARGMAX, argmax_runs, lower_argmax, NULL};
const gpu_rule gpu_rule_topk = {LP_OP_TOPK, argmax_runs, lower_topk, NULL};
