/* op.linear and op.experts on any GPU: few rows, of which each group reads a part of the weights once, and many rows
 * in tiles. */
#include "backend/gpu/rules/product.h"

#include "backend/gpu/rules.h"
#include "backend/values.h"
#include "base/poly.h"

enum { ONE = 1, SOME = 8, FEW_ROWS = 64, AT_ONCE = 32, THREADS = 256, TILE = 64, COLUMNS = 16, MANY_COLUMNS = 8192 };

static bool linear_runs(const lp_op *op, char why[64]) {
  const lp_dtype x = lp_op_in(op, 0)->type.dtype, y = op->out[0]->type.dtype;
  if (x != LP_F32 || y != LP_F32) return snprintf(why, 64, "it computes in f32, found %s", lp_dtype_name(x)), false;
  for (int32_t i = 1; i < 5; i += 3)
    if (lp_op_in(op, i) && !lp_value_is_constant(lp_value_base(lp_op_in(op, i))))
      return snprintf(why, 64, "a weight that is not a constant"), false;
  return gpu_static_last(op, why);
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
  const char *const params[] = {"WTYPE", p->l->type, "INDEX",
                                p->l->experts ? ", const @global long *@restrict index" : "", NULL};
  if (p->count == 1)
    return gpu_fill(list,
                    "const @global $WTYPE *@restrict w, const @global unsigned short *@restrict scale, "
                    "const @global $WTYPE *@restrict gate, const @global unsigned short *@restrict gate_scale, "
                    "const @global float *@restrict bias, const @global float *@restrict residual, "
                    "@global float *@restrict y$INDEX",
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

/* Lines that choose the product of a group, its rows and columns. */
static const char *product_text(gpu_launch_list *list, const products *p, int64_t rows, int64_t columns) {
  if (p->l->experts) return gpu_experts_row(list, p->l);
  const char *text = gpu_format(list, "  const long rows = rows_, first = (long)@block_y * %" PRId64 ";\n", rows);
  if (p->count == 1)
    return gpu_format(list, "%s  enum { N = %" PRId64 " };\n  const int block = @block_x;\n", text, p->l->n);
  text = gpu_format(list,
                    "%s  const @global %s *w = w0, *gate = 0;\n"
                    "  const @global unsigned short *scale = scale0, *gate_scale = 0;\n"
                    "  const @global float *bias = bias0, *residual = 0;\n"
                    "  @global float *y = y0;\n"
                    "  int N = %" PRId64 ", block = @block_x;\n",
                    text, p->l->type, p->l->n);
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
  const char *const params[] = {
      "WHAT",     lp_op_info_get(b->op->kind)->name,
      "N",        gpu_format(list, "%" PRId64, l->n),
      "K",        gpu_format(list, "%" PRId64, l->k),
      "GATED",    l->gate >= 0 ? "1" : "0",
      "WTYPE",    l->type,
      "OPERANDS", operands_text(list, p),
      "PRODUCT",  product_text(list, p, rows, columns),
      "STORE",    l->store,
      "ORDER",    gpu_linear_order(l),
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
      "TILE",     gpu_linear_tile(list, l, rows),
      "FROM",     l->experts ? gpu_format(list, "order[top + at] / %" PRId64, l->shared) : "(top + at)",
      "TO",       l->experts ? "order[row]" : "row",
      "WORK",     gpu_linear_work(l),
      NULL};
  const char *stem = gpu_format(list, "%s%s_%s%s_%" PRId64 "x%" PRId64, gpu_linear_tag(b), l->store, kind,
                                p->count > 1 ? "_joined" : "", n, l->k);
  const gpu_kernel *kernel = gpu_kernel_get(list, template, stem, params);
  gpu_launch *launch =
      gpu_launch_add(b, kernel, THREADS, lp_dim_const(list->module, p->count > 1 ? groups * columns : n), columns);
  gpu_launch_rows(launch, rows > 1 ? gpu_linear_tiles(b, l, rows) : l->rows, rows);
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

/* ---- op.linear --------------------------------------------------------------------------------------------------- */

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
  gpu_launch_when(launch, l->rows, many->few + 1, INT64_MAX);
  gpu_launch_range(launch, on);
  gpu_arg_size(launch, l->rows);
  gpu_arg_order(launch, l);
  if (many->library) launch->by = GPU_BY_KERNEL;
}

/* Adds the functions that load the model's own codes to the kernels, and returns the suffix of their names. */
static const char *kept_store(gpu_launch_list *list, const gpu_constant *matrix) {
  const bool floats = matrix->codes == LP_F8E4M3FN;
  const int32_t bits = lp_dtype_bits(matrix->codes);
  const char *form = floats      ? "float8"
                     : bits == 4 ? "code4"
                                 : "code8",
             *group = gpu_format(list, "%" PRId64, matrix->kept);
  const char *const params[] = {
      "FORM",  form,
      "GROUP", group,
      "BITS",  bits == 4 ? "4" : "8",
      "MASK",  bits == 4 ? "15" : "255",
      "SCALE", floats ? "word" : "word & ~255u",
      "VALUE", floats ? "to_float_f16((unsigned short)((code & 128) << 8 | (code & 127) << 7)) * 256" : "(float)code",
      "ZERO",  floats ? "0" : "(float)(word & 255)",
      NULL};
  return gpu_kernel_get(list, "codes", gpu_format(list, "%s_%s", form, group), params)->name;
}

static gpu_linear read_linear(gpu_builder *b) {
  const bool experts = b->op->kind == LP_OP_EXPERTS;
  const lp_type y = b->op->out[0]->type;
  const gpu_constant *scale, *gate, *gate_scale;
  gpu_linear l = {.x = gpu_ref_in(b, 0, GPU_FORM_F32), .gate = -1, .gate_scale = -1, .index = -1, .residual = -1};
  gpu_constant_weight(&b->list->constants, b->op, false, &l.matrix, &scale);
  l.k = l.matrix->stored.dim[1];
  l.coded = lp_dtype_is_code(l.matrix->stored.dtype);
  l.store = l.matrix->kept ? kept_store(b->list, l.matrix) : gpu_store_name(l.matrix->stored.dtype);
  l.type = l.matrix->kept ? "unsigned char" : gpu_type(l.matrix->stored.dtype);
  l.w = gpu_ref_constant(b, l.matrix);
  l.scale = gpu_ref_constant(b, scale);
  if (lp_op_in(b->op, 4)) {
    gpu_constant_weight(&b->list->constants, b->op, true, &gate, &gate_scale);
    l.gate = gpu_ref_constant(b, gate);
    l.gate_scale = gpu_ref_constant(b, gate_scale);
  }
  l.bias = gpu_ref_in(b, 2, GPU_FORM_F32);
  *(experts ? &l.index : &l.residual) = gpu_ref_in(b, 3, GPU_FORM_F32);
  l.y = gpu_ref_out(b, 0);
  l.experts = experts ? lp_op_i64(b->op, "experts", 1) : 0;
  l.n = l.matrix->stored.dim[0] / (experts ? l.experts : 1);
  l.rows = lp_dim_product(b->list->module, y.dim, 0, y.rank - 1);
  return l;
}

/* Products of one operand without gates and residuals. */
static bool linear_joins(const gpu_group *group) {
  const lp_op *first = group->op[0];
  LP_FOR_REFS(lp_op, op, group->op, group->count)
    if (lp_op_in(op, 3) || lp_op_in(op, 4) || lp_value_base(lp_op_in(op, 0)) != lp_value_base(lp_op_in(first, 0)) ||
        !lp_streq(lp_op_str(op, "epilogue", "none"), lp_op_str(first, "epilogue", "none")) ||
        !lp_streq(lp_op_str(op, "activations", ""), lp_op_str(first, "activations", "")))
      return false;
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
    alike = alike && lp_streq(l[i].store, l[0].store) && l[i].k == l[0].k && lp_poly_equal(l[i].rows, l[0].rows);
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

/* ---- op.experts -------------------------------------------------------------------------------------------------- */

static bool experts_run(const lp_op *op, char why[64]) {
  int64_t chosen;
  if (!lp_type_static_dim(lp_op_in(op, 3)->type, -1, &chosen))
    return snprintf(why, 64, "a number of chosen experts that is not constant"), false;
  return linear_runs(op, why);
}

/* Of as few tokens as op.linear's few rows, each row reads its expert's weights alone, so that a sum does not depend on
 * the other sequences of a pass. */
static void lower_experts(gpu_builder *b) {
  gpu_launch_list *list = b->list;
  lp_arena *arena = list->module->arena;
  gpu_linear l = read_linear(b);
  int64_t chosen = 1, x_rows = 1;
  lp_type_static_dim(lp_op_in(b->op, 3)->type, -1, &chosen);
  lp_type_static_dim(lp_op_in(b->op, 0)->type, -2, &x_rows);
  l.shared = x_rows == chosen ? 1 : chosen;
  const int64_t few = FEW_ROWS * chosen, entries = l.experts + 1;
  const int32_t sm = gpu_linear_tensor_sm(b, &l);
  const lp_hw_architectures all = {0, LP_HW_MOST_SM};
  /* The rows in 16 bits for tensor cores, their order, and three numbers for each tile, of which a row has less than
   * one. */
  l.order = lp_poly_scale(arena, l.rows, sm > 0 ? 2 * l.k : 0);
  const lp_poly *numbers = lp_poly_scale(arena, l.rows, 2 * (int64_t)sizeof(int32_t));
  const lp_poly *room = lp_poly_add(arena, numbers, lp_dim_const(list->module, 3 * entries * (int64_t)sizeof(int32_t)));
  gpu_add_scratch(b, lp_poly_add(arena, l.order, room), l.rows, INT64_MAX);
  gpu_launch *launch = linear_launch(b, &(products){&l, 1}, "linear_few", "one", ONE, COLUMNS);
  gpu_launch_when(launch, l.rows, 0, few);
  gpu_arg_ref(launch, l.index);
  gpu_arg_ref(launch, -1);
  gpu_arg_size(launch, l.rows);
  gpu_experts_order(b, &l, few, TILE, sm > 0 ? (lp_hw_architectures){0, sm - 1} : all);
  if (sm > 0) gpu_experts_order(b, &l, few, GPU_TENSOR_TILE, (lp_hw_architectures){sm, LP_HW_MOST_SM});
  const gpu_many many = gpu_linear_tensor(b, &l, few);
  multiply_many(b, &l, &many, all);
}

const gpu_rule gpu_rule_linear = {LP_OP_LINEAR, linear_runs, lower_linear, linear_joins};
const gpu_rule gpu_rule_experts = {LP_OP_EXPERTS, experts_run, lower_experts, NULL};
