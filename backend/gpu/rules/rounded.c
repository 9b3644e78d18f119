/* Products of rounded activations, on GPUs that multiply halves or bytes faster than floats and have no tensor cores
 * for them. Activations are rounded in blocks of 32, each with a scale, once for all products of them. */
#include "backend/gpu/rules/product.h"

#include "backend/rows.h"
#include "backend/values.h"
#include "base/poly.h"

enum { THREADS = 256, BLOCK = LP_HW_ROUNDED_BLOCK, ONE = 1, AT_ONCE = 32, TILE = 64, COLUMNS = 16, SPLIT = 8 };

/* A form in which activations are multiplied, and the architectures on which it is the fastest. */
typedef struct {
  const char *name, *flag;
  bool dot;
  int64_t each; /* elements in 16 bytes */
  const lp_hw_architectures *on;
} form;

/* OpenCL counts devices as 1 if they multiply floats faster, as 2 if halves, and as 3 if these may be subnormal, which
 * products of small weights are; codes are whole numbers. */
static const lp_hw_architectures any = {0, LP_HW_MOST_SM}, with_halves = {2, LP_HW_MOST_SM},
                                 with_subnormal_halves = {3, LP_HW_MOST_SM};
static const form old_halves = {"half", "HALF", false, 8, &lp_hw_old_halves},
                  halves = {"half", "HALF", false, 8, &lp_hw_halves},
                  bytes = {"dot", "DOT", true, 16, &lp_hw_dot_bytes}, any_bytes = {"dot", "DOT", true, 16, &any},
                  coded_halves = {"half", "HALF", false, 8, &with_halves},
                  subnormal_halves = {"half", "HALF", false, 8, &with_subnormal_halves};

static int32_t find_forms(const gpu_builder *b, const gpu_linear *l, const form *found[2]) {
  const lp_dtype store = l->matrix->stored.dtype;
  const bool coded = !lp_dtype_is_float(store),
             to_bytes = coded && lp_streq(lp_op_str(b->op, "activations", ""), "int8");
  if (l->k % BLOCK != 0 || l->matrix->kept || (!coded && store != LP_F16)) return 0;
  if (b->list->halves != GPU_HALVES_BY_ARCHITECTURE) {
    found[0] = to_bytes ? &any_bytes : coded ? &coded_halves : &subnormal_halves;
    return to_bytes || b->list->halves == GPU_HALVES_BY_DEVICE;
  }
  found[0] = &old_halves;
  found[1] = to_bytes ? &bytes : &halves;
  return 2;
}

/* The number to which the largest activation of a block is scaled. A sum of 16 halves, each times a weight of f16,
 * stays within f16; codes are at most 128, so that products of larger activations do. */
static const char *most_of(const form *f, lp_dtype store) {
  return f->dot ? "127.0f" : store == LP_F16 ? "0.0625f" : "16.0f";
}

/* The architectures that do not multiply many rows by tensor cores. */
static lp_hw_architectures before_tensor(const form *f, const gpu_many *many) {
  if (many->sm == 0 || f->on->most < many->sm) return *f->on;
  return (lp_hw_architectures){f->on->least, many->sm - 1};
}

static gpu_launch *round_rows(gpu_builder *b, const gpu_linear *l, const form *f, lp_hw_architectures on, int64_t least,
                              int64_t most) {
  gpu_launch_list *list = b->list;
  const lp_dtype store = l->matrix->stored.dtype;
  const char *const params[] = {"FORM",    f->name,
                                "FLAG",    f->flag,
                                "CODES",   gpu_format(list, "%s_%s", f->name, gpu_store_name(store)),
                                "MOST",    most_of(f, store),
                                "EACH",    gpu_format(list, "%" PRId64, f->each),
                                "THREADS", "64",
                                NULL};
  const char *stem = gpu_format(list, "round_%s_%s", f->name, gpu_store_name(store));
  const lp_poly *count = lp_poly_scale(list->module->arena, l->rows, l->k);
  gpu_launch *launch = gpu_launch_add(b, gpu_kernel_get(list, "round", stem, params), 64, count, 64 * BLOCK);
  gpu_launch_when(launch, l->rows, least, most);
  gpu_launch_range(launch, on);
  gpu_arg_ref(launch, l->x);
  gpu_arg_scratch(launch);
  gpu_arg_size(launch, count);
  launch->spare = true;
  return launch;
}

bool gpu_linear_halves(const gpu_builder *b, const gpu_linear *l) {
  return b->list->tensor && l->k % BLOCK == 0 && l->coded;
}

/* Makes x into sums of two halves. */
static void split_rows(gpu_builder *b, const gpu_linear *l, int64_t few) {
  gpu_launch_list *list = b->list;
  const char *order = gpu_linear_order(l);
  const char *const params[] = {"ORDER", order, NULL};
  const gpu_kernel *kernel = gpu_kernel_get(list, "split", gpu_format(list, "split_%s", order), params);
  const lp_poly *count = lp_poly_scale(list->module->arena, l->rows, l->k);
  gpu_launch *launch = gpu_launch_add(b, kernel, THREADS, count, THREADS * SPLIT);
  gpu_launch_when(launch, l->rows, ONE + 1, few);
  gpu_launch_on(launch, GPU_HALVES_SM, LP_HW_MOST_SM);
  gpu_arg_ref(launch, l->x);
  gpu_arg_scratch(launch);
  gpu_arg_size(launch, count);
  launch->spare = true;
}

/* Rounds x into the scratch, unless an earlier operator has left it there. Where a library may compute the product of
 * many rows, it leaves other activations there. */
static void round_activations(gpu_builder *b, const gpu_linear *l, const form *const *forms, int32_t count,
                              const gpu_many *many) {
  gpu_program *program = b->program;
  gpu_narrowed *known = &program->rounded, *narrowed = &program->narrowed;
  const gpu_narrowed wanted = {.value = lp_value_base(lp_op_in(b->op, 0)),
                               .dtype = l->matrix->stored.dtype,
                               .dot = count > 0 && forms[count - 1]->dot,
                               .every_rows = !many->library,
                               .segment = lp_op_i64(b->op, "segment", 0),
                               .jointly = lp_op_is_joint(b->list->module, b->op)};
  const bool same = known->value == wanted.value && known->segment == wanted.segment &&
                    known->jointly == wanted.jointly && known->dtype == wanted.dtype && known->dot == wanted.dot;
  for (int32_t i = 0; i < count; i++) {
    if (!same) (void)round_rows(b, l, forms[i], *forms[i]->on, 0, many->few);
    if (same && known->every_rows && !many->library) continue;
    gpu_launch *launch = round_rows(b, l, forms[i], before_tensor(forms[i], many), many->few + 1, INT64_MAX);
    if (many->library) launch->by = GPU_BY_KERNEL;
  }
  if (gpu_linear_halves(b, l)) {
    if (!same) split_rows(b, l, many->few);
    const int64_t row = (l->k + l->k / BLOCK) * (int64_t)sizeof(float);
    lp_vec_push(&program->scratch,
                ((gpu_scratch){lp_poly_scale(b->list->module->arena, l->rows, row), l->rows, many->few, false}));
  }
  if (narrowed->value != wanted.value || narrowed->segment != wanted.segment || narrowed->jointly != wanted.jointly)
    narrowed->value = NULL;
  const lp_poly *room =
      lp_poly_scale(b->list->module->arena, l->rows, 2 * l->k + l->k / BLOCK * (int64_t)sizeof(float));
  lp_vec_push(&program->scratch, ((gpu_scratch){room, l->rows, INT64_MAX, false}));
  *known = wanted;
}

static gpu_launch *multiply(gpu_builder *b, const gpu_linear *l, const form *f, const char *template, const char *kind,
                            int64_t rows, int64_t columns) {
  gpu_launch_list *list = b->list;
  const char *const params[] = {"WHAT",     "op.linear",
                                "FORM",     f->name,
                                "FLAG",     f->flag,
                                "CODES",    gpu_format(list, "%s_%s", f->name, l->store),
                                "EACH",     gpu_format(list, "%" PRId64, f->each),
                                "N",        gpu_format(list, "%" PRId64, l->n),
                                "K",        gpu_format(list, "%" PRId64, l->k),
                                "GATED",    l->gate >= 0 ? "1" : "0",
                                "WTYPE",    l->type,
                                "STORE",    l->store,
                                "ROWS",     gpu_format(list, "%" PRId64, rows),
                                "COLUMNS",  gpu_format(list, "%" PRId64, columns),
                                "THREADS",  gpu_format(list, "%d", THREADS),
                                "EPILOGUE", lp_op_str(b->op, "epilogue", "none"),
                                NULL};
  const char *stem =
      gpu_format(list, "%s%s_%s_%s_%" PRId64 "x%" PRId64, gpu_linear_tag(b), l->store, f->name, kind, l->n, l->k);
  const gpu_kernel *kernel = gpu_kernel_get(list, template, stem, params);
  gpu_launch *launch = gpu_launch_add(b, kernel, THREADS, lp_dim_const(list->module, l->n), columns);
  gpu_launch_rows(launch, l->rows, rows);
  gpu_launch_range(launch, *f->on);
  gpu_arg_scratch(launch);
  const int32_t refs[] = {l->w, l->scale, l->gate, l->gate_scale, l->bias, l->residual, l->y};
  for (size_t i = 0; i < LP_COUNT(refs); i++)
    gpu_arg_ref(launch, refs[i]);
  gpu_arg_size(launch, l->rows);
  launch->spare = true;
  return launch;
}

/* The architectures before, between and after those of the forms. */
static int32_t find_others(const form *const *forms, int32_t count, lp_hw_architectures others[GPU_MOST_RANGES]) {
  int32_t next = 0, found = 0;
  for (int32_t i = 0; i < count; i++) {
    if (next < forms[i]->on->least) others[found++] = (lp_hw_architectures){next, forms[i]->on->least - 1};
    next = forms[i]->on->most + 1;
  }
  if (next <= LP_HW_MOST_SM) others[found++] = (lp_hw_architectures){next, LP_HW_MOST_SM};
  return found;
}

int32_t gpu_linear_rounded(gpu_builder *b, const gpu_linear *l, const gpu_many *many,
                           lp_hw_architectures others[GPU_MOST_RANGES]) {
  static const lp_hw_architectures before = {0, GPU_HALVES_SM - 1}, since = {GPU_HALVES_SM, LP_HW_MOST_SM};
  const form *forms[2];
  const int32_t count = find_forms(b, l, forms);
  if (count > 0 || gpu_linear_halves(b, l)) round_activations(b, l, forms, count, many);
  for (int32_t i = 0; i < count; i++) {
    gpu_launch_when(multiply(b, l, forms[i], "linear_few_rounded", "one", ONE, COLUMNS), l->rows, 0, ONE);
    gpu_launch_when(multiply(b, l, forms[i], "linear_few_rounded", "few", AT_ONCE, COLUMNS), l->rows, ONE + 1,
                    many->few);
    gpu_launch *launch = multiply(b, l, forms[i], "linear_many_rounded", "many", TILE, TILE);
    gpu_launch_when(launch, l->rows, many->few + 1, INT64_MAX);
    gpu_launch_range(launch, before_tensor(forms[i], many));
    if (many->library) launch->by = GPU_BY_KERNEL;
    b->list->any_rounded = true;
    b->list->any_bytes |= forms[i]->dot;
  }
  if (count > 0 || !gpu_linear_halves(b, l)) return find_others(forms, count, others);
  others[0] = before, others[1] = since;
  return 2;
}
