/* Products, norms, reductions. */
#include "backend/gpu/rules/element.h"

#include "backend/gpu/rules.h"
#include "backend/gpu/rules/product.h"
#include "backend/values.h"
#include "base/poly.h"

#include <stdio.h>

enum { ONE = 1, SOME = 8, FEW_ROWS = 64, AT_ONCE = 32, THREADS = 256, TILE = 64, COLUMNS = 16, MANY_COLUMNS = 8192 };

static bool any_static_last(const lp_op *op, char why[64]) {
  int64_t n;
  if (op->out[0]->type.rank < 1 || !lp_type_static_dim(lp_op_in(op, 0)->type, -1, &n))
    return snprintf(why, 64, "a last axis that is not constant"), false;
  return true;
}

/* ---- linear ------------------------------------------------------------------------------------------------------ */

static bool linear_runs(const lp_op *op, char why[64]) {
  const lp_dtype x = lp_op_in(op, 0)->type.dtype, y = op->out[0]->type.dtype;
  if (x != LP_F32 || y != LP_F32) return snprintf(why, 64, "it computes in f32, found %s", lp_dtype_name(x)), false;
  for (int32_t i = 1; i < 5; i += 3)
    if (lp_op_in(op, i) && !lp_value_is_constant(lp_value_base(lp_op_in(op, i))))
      return snprintf(why, 64, "a weight that is not a constant"), false;
  return any_static_last(op, why);
}

/* Products of one launch: of the same x, by weights of the same type. Several have neither gates nor residuals. */
typedef struct {
  const gpu_linear *l;
  int32_t count;
} products;

static int64_t groups_of(const gpu_linear *l, int64_t columns) {
  return (l->n + columns - 1) / columns;
}

/* The parameters of the kernel for few rows that differ between products. */
static const char *operands_text(gpu_launch_list *list, const products *p) {
  const char *const params[] = {"WTYPE", gpu_type(p->l->matrix->stored.dtype), NULL};
  if (p->count == 1)
    return gpu_fill(list,
                    "const @global $WTYPE *@restrict w, const @global unsigned short *@restrict scale, "
                    "const @global $WTYPE *@restrict gate, const @global unsigned short *@restrict gate_scale, "
                    "const @global float *@restrict bias, const @global float *@restrict residual, "
                    "@global float *@restrict y",
                    params);
  const char *text = "";
  for (int32_t i = 0; i < p->count; i++) {
    const char *own = gpu_format(list,
                                 "const @global $WTYPE *@restrict w%d, const @global unsigned short *@restrict "
                                 "scale%d, const @global float *@restrict bias%d, @global float *@restrict y%d",
                                 i, i, i, i);
    text = gpu_format(list, "%s%s%s", text, i ? ",\n                   " : "", gpu_fill(list, own, params));
  }
  return text;
}

/* Lines that choose the product of a group, its number of columns N and the group's number `block` within it. */
static const char *product_text(gpu_launch_list *list, const products *p, int64_t columns) {
  if (p->count == 1) return gpu_format(list, "  enum { N = %" PRId64 " };\n  const int block = @block_x;\n", p->l->n);
  const char *text = gpu_format(list,
                                "  const @global %s *w = w0, *gate = 0;\n"
                                "  const @global unsigned short *scale = scale0, *gate_scale = 0;\n"
                                "  const @global float *bias = bias0, *residual = 0;\n"
                                "  @global float *y = y0;\n"
                                "  int N = %" PRId64 ", block = @block_x;\n",
                                gpu_type(p->l->matrix->stored.dtype), p->l->n);
  int64_t first = 0;
  for (int32_t i = 1; i < p->count; i++) {
    first += groups_of(&p->l[i - 1], columns);
    text = gpu_format(list,
                      "%s  if (@block_x >= %" PRId64 ") w = w%d, scale = scale%d, bias = bias%d, y = y%d, N = %" PRId64
                      ", block = @block_x - %" PRId64 ";\n",
                      text, first, i, i, i, i, p->l[i].n, first);
  }
  return text;
}

static gpu_launch *linear_launch(gpu_builder *b, const products *p, const char *template, const char *kind,
                                 int64_t rows, int64_t columns) {
  gpu_launch_list *list = b->list;
  const gpu_linear *l = p->l;
  const char *store = gpu_store_name(l->matrix->stored.dtype);
  int64_t groups = 0, n = 0;
  for (int32_t i = 0; i < p->count; i++) {
    groups += groups_of(&l[i], columns);
    n += l[i].n;
  }
  /* Weights of 4 steps of 16 columns are held, of halves in shared memory, else in registers. Where there are many
   * groups, fewer registers let more of them read at once, and that is faster. */
  const bool many = n >= MANY_COLUMNS && columns == COLUMNS, halves = gpu_linear_halves(b, l);
  const int64_t held = many && !halves ? 1 : 4, ahead = held * COLUMNS / columns / (l->gate >= 0 ? 2 : 1);
  const int64_t bits = lp_dtype_bits(l->matrix->stored.dtype);
  /* Registers for three groups in a multiprocessor. The other kernels would spill some. */
  const bool bounded = halves && rows == ONE && l->gate < 0;
  const char *bounds = bounded ? gpu_format(list, "LP_BOUNDS(%d, 3) ", THREADS) : "";
  const char *const params[] = {"WHAT",     "op.linear",
                                "N",        gpu_format(list, "%" PRId64, l->n),
                                "K",        gpu_format(list, "%" PRId64, l->k),
                                "GATED",    l->gate >= 0 ? "1" : "0",
                                "WTYPE",    gpu_type(l->matrix->stored.dtype),
                                "OPERANDS", operands_text(list, p),
                                "PRODUCT",  product_text(list, p, columns),
                                "STORE",    store,
                                "ROWS",     gpu_format(list, "%" PRId64, rows),
                                "COLUMNS",  gpu_format(list, "%" PRId64, columns),
                                "TENSOR",   l->k % 32 == 0 && l->matrix->stored.dtype != LP_F32 ? "1" : "0",
                                "BOUNDS",   bounds,
                                "HALVES",   halves ? "1" : "0",
                                "GROUPS",   gpu_format(list, "%" PRId64, halves ? 16 / bits : 1),
                                "VECTOR",   l->k % 32 == 0 ? "8" : "1",
                                "AHEAD",    gpu_format(list, "%" PRId64, ahead > 0 ? ahead : 1),
                                "THREADS",  gpu_format(list, "%d", THREADS),
                                "EPILOGUE", lp_op_str(b->op, "epilogue", "none"),
                                NULL};
  const char *stem = gpu_format(list, "linear_%s%s_%s%s_%" PRId64 "x%" PRId64, gpu_linear_tag(b), store, kind,
                                p->count > 1 ? "_joined" : "", n, l->k);
  const gpu_kernel *kernel = gpu_kernel_get(list, template, stem, params);
  gpu_launch *launch =
      gpu_launch_add(b, kernel, THREADS, lp_dim_const(list->module, p->count > 1 ? groups * columns : n), columns);
  gpu_launch_rows(launch, l->rows, rows);
  launch->spare = true;
  gpu_arg_ref(launch, l->x);
  for (int32_t i = 0; i < p->count; i++) {
    const int32_t all[] = {l->w, l->scale, l->gate, l->gate_scale, l->bias, l->residual, l->y},
                  own[] = {l[i].w, l[i].scale, l[i].bias, l[i].y};
    for (size_t k = 0; k < (p->count > 1 ? LP_COUNT(own) : LP_COUNT(all)); k++)
      gpu_arg_ref(launch, p->count > 1 ? own[k] : all[k]);
  }
  return launch;
}

/* Multiplies floats of few rows on these architectures. */
static void multiply_few(gpu_builder *b, const products *p, lp_hw_architectures on) {
  const gpu_linear *l = p->l;
  const bool halves = gpu_linear_halves(b, l);
  const struct {
    const char *kind;
    int64_t rows, columns, least, most;
  } few[] = {{"one", ONE, COLUMNS, 0, ONE},
             {"some", SOME, COLUMNS, ONE + 1, SOME},
             {"few", halves ? AT_ONCE / 2 : AT_ONCE, l->gate >= 0 ? COLUMNS : 2 * COLUMNS, SOME + 1, FEW_ROWS}};
  for (size_t i = 0; i < LP_COUNT(few); i++) {
    gpu_launch *launch = linear_launch(b, p, "linear_few", few[i].kind, few[i].rows, few[i].columns);
    gpu_launch_when(launch, l->rows, few[i].least, few[i].most);
    gpu_launch_range(launch, on);
    if (halves && few[i].rows > ONE && on.least >= GPU_HALVES_SM)
      gpu_arg_scratch(launch);
    else
      gpu_arg_ref(launch, -1);
    gpu_arg_size(launch, l->rows);
  }
}

/* Multiplies floats of many rows on those of these architectures that have no tensor cores for them. */
static void multiply_many(gpu_builder *b, const gpu_linear *l, const gpu_many *many, lp_hw_architectures on) {
  if (many->sm > 0 && on.most >= many->sm) on.most = many->sm - 1;
  if (on.least > on.most) return;
  gpu_launch *launch = linear_launch(b, &(products){l, 1}, "linear_many", "many", TILE, TILE);
  gpu_launch_when(launch, l->rows, FEW_ROWS + 1, INT64_MAX);
  gpu_launch_range(launch, on);
  gpu_arg_size(launch, l->rows);
  if (many->library) launch->by = GPU_BY_KERNEL;
}

static gpu_linear read_linear(gpu_builder *b) {
  const lp_type x = lp_op_in(b->op, 0)->type;
  const gpu_constant *scale, *gate, *gate_scale;
  gpu_linear l = {.x = gpu_ref_in(b, 0, GPU_FORM_F32), .gate = -1, .gate_scale = -1};
  gpu_constant_weight(&b->list->constants, b->op, false, &l.matrix, &scale);
  l.n = l.matrix->stored.dim[0];
  l.k = l.matrix->stored.dim[1];
  l.w = gpu_ref_constant(b, l.matrix);
  l.scale = gpu_ref_constant(b, scale);
  if (lp_op_in(b->op, 4)) {
    gpu_constant_weight(&b->list->constants, b->op, true, &gate, &gate_scale);
    l.gate = gpu_ref_constant(b, gate);
    l.gate_scale = gpu_ref_constant(b, gate_scale);
  }
  l.bias = gpu_ref_in(b, 2, GPU_FORM_F32);
  l.residual = gpu_ref_in(b, 3, GPU_FORM_F32);
  l.y = gpu_ref_out(b, 0);
  l.rows = gpu_product(b->list->module, x.dim, 0, x.rank - 1);
  return l;
}

/* Products of one operand without gates and residuals. */
static bool linear_joins(const gpu_group *group) {
  const lp_op *first = group->op[0];
  for (int32_t i = 0; i < group->count; i++) {
    const lp_op *op = group->op[i];
    if (lp_op_in(op, 3) || lp_op_in(op, 4) || lp_value_base(lp_op_in(op, 0)) != lp_value_base(lp_op_in(first, 0)) ||
        !lp_streq(lp_op_str(op, "epilogue", "none"), lp_op_str(first, "epilogue", "none")) ||
        !lp_streq(lp_op_str(op, "activations", ""), lp_op_str(first, "activations", "")))
      return false;
  }
  return true;
}

/* Many rows are multiplied in one launch for each product, and few rows by weights of the same type in one for all. */
static void lower_linear(gpu_builder *b) {
  const int32_t count = b->group->count;
  gpu_linear l[GPU_MOST_JOINED];
  lp_hw_architectures on[GPU_MOST_RANGES];
  bool alike = true;
  for (int32_t i = 0; i < count; i++) {
    b->op = b->group->op[i];
    l[i] = read_linear(b);
    alike = alike && l[i].matrix->stored.dtype == l[0].matrix->stored.dtype && l[i].k == l[0].k &&
            lp_poly_equal(l[i].rows, l[0].rows);
  }
  int32_t ranges = 0;
  for (int32_t i = 0; i < count; i++) {
    b->op = b->group->op[i];
    gpu_many many = gpu_linear_tensor(b, &l[i], FEW_ROWS);
    const gpu_product_form form = {.dtype = LP_F32, .scale = 1, .x = l[i].x, .few = FEW_ROWS};
    many.library |= l[i].matrix->stored.dtype == LP_F32 && gpu_linear_product(b, &l[i], &form);
    ranges = gpu_linear_rounded(b, &l[i], &many, on);
    for (int32_t k = 0; k < ranges; k++) {
      if (!alike || count == 1) multiply_few(b, &(products){&l[i], 1}, on[k]);
      multiply_many(b, &l[i], &many, on[k]);
    }
  }
  for (int32_t k = 0; k < ranges && alike && count > 1; k++)
    multiply_few(b, &(products){l, count}, on[k]);
}

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

/* The index in an operand at which the matrix for the batch of the result begins. */
static const char *batch_offset(gpu_element *e, lp_type from) {
  lp_buf text = {0};
  int64_t one;
  for (int32_t i = 0; i + 2 < from.rank; i++) {
    if (lp_poly_is_const(from.dim[i], &one) && one == 1) continue;
    lp_buf_printf(&text, "%s * (%s) + ", gpu_element_coordinate(e, e->type.rank - from.rank + i),
                  gpu_element_stride(e, from.dim, i + 1, from.rank));
  }
  const char *offset = gpu_format(e->b->list, "%s0", lp_buf_text(&text));
  lp_buf_free(&text);
  return offset;
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
  if (!lp_op_all_f32(op, why) || !any_static_last(op, why)) return false;
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
                                      gpu_product(b->list->module, x.dim, 0, x.rank - 1), 1);
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
  gpu_launch *launch = gpu_launch_add(b, kernel, 128, gpu_product(b->list->module, x.dim, 0, x.rank - 1), 1);
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
  lp_buf at = {0};
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
  lp_buf_free(&at);
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

const gpu_rule gpu_rule_linear = {LP_OP_LINEAR, linear_runs, lower_linear, linear_joins};
const gpu_rule gpu_rule_matmul = {LP_OP_MATMUL, matmul_runs, lower_matmul, NULL};
const gpu_rule gpu_rule_norm = {LP_OP_NORM, norm_runs, lower_norm, NULL};
const gpu_rule gpu_rule_add_norm = {LP_OP_ADD_NORM, norm_runs, lower_add_norm, NULL};
const gpu_rule gpu_rule_softmax = {LP_OP_SOFTMAX, softmax_runs, lower_softmax, NULL};
const gpu_rule gpu_rule_reduce = {LP_OP_REDUCE, reduce_runs, lower_reduce, NULL};
const gpu_rule gpu_rule_argmax = {LP_OP_ARGMAX, argmax_runs, lower_argmax, NULL};
