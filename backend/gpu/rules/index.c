/* Kernels with one thread for each element: parameters, coordinates and the indices of operands. */
#include "backend/gpu/rules/element.h"

#include "base/map.h"
#include "base/poly.h"

#include <assert.h>

enum { THREADS = 256 };

void gpu_element_begin(gpu_element *e, gpu_builder *b, lp_type type) {
  *e = (gpu_element){.b = b, .type = type, .sizes = lp_map_create(), .lines = lp_map_create(), .each = 1};
  e->first = b->params;
}

void gpu_element_line(gpu_element *e, const char *format, ...) {
  va_list args;
  va_start(args, format);
  lp_buf_puts(&e->body, "  ");
  lp_buf_vprintf(&e->body, format, args);
  lp_buf_puts(&e->body, "\n");
  va_end(args);
}

static gpu_arg *add_arg(gpu_element *e, gpu_arg_kind kind) {
  assert(e->arg_count < GPU_MOST_ARGS);
  gpu_arg *arg = &e->arg[e->arg_count++];
  *arg = (gpu_arg){.kind = kind};
  return arg;
}

const char *gpu_element_pointer(gpu_element *e, int32_t ref, lp_dtype dtype, bool written) {
  const char *name = gpu_format(e->b->list, "%s%d", written ? "y" : "x", e->first + e->arg_count);
  lp_buf_printf(&e->params, "PLACE(%s%s) %s_, ", written ? "" : "const ", gpu_type(dtype), name);
  lp_buf_printf(&e->pointer_lines, "  %s@global %s *@restrict %s = %s_;\n", written ? "" : "const ", gpu_type(dtype),
                name, name);
  add_arg(e, GPU_ARG_REF)->ref = ref;
  return name;
}

const char *gpu_element_size(gpu_element *e, const lp_poly *size) {
  int64_t number;
  if (lp_poly_is_const(size, &number)) return gpu_format(e->b->list, "%" PRId64, number);
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  lp_poly_print(size, &e->b->list->module->symbols, &key);
  const char *name = lp_map_get(e->sizes, lp_buf_text(&key));
  if (!name) {
    name = gpu_format(e->b->list, "n%d", e->first + e->arg_count);
    lp_buf_printf(&e->params, "@size %s_, ", name);
    lp_buf_printf(&e->size_lines, "  const long %s = %s_;\n", name, name);
    add_arg(e, GPU_ARG_SIZE)->size = size;
    lp_map_put(e->sizes, lp_buf_text(&key), (void *)(uintptr_t)name);
  }
  return name;
}

static bool is_one(const lp_poly *dim) {
  int64_t number;
  return lp_poly_is_const(dim, &number) && number == 1;
}

const char *gpu_element_coordinate(gpu_element *e, int32_t axis) {
  if (is_one(e->type.dim[axis])) return "0";
  if (!(e->coordinates & 1u << axis)) {
    const char *below = gpu_element_stride(e, e->type.dim, axis + 1, e->type.rank);
    const char *size = gpu_element_size(e, e->type.dim[axis]);
    if (lp_streq(below, "1"))
      gpu_element_line(e, "const long c%d = i %% %s;", axis, size);
    else
      gpu_element_line(e, "const long c%d = i / (%s) %% %s;", axis, below, size);
    e->coordinates |= 1u << axis;
  }
  return gpu_format(e->b->list, "c%d", axis);
}

const char *gpu_element_stride(gpu_element *e, const lp_poly *const *dim, int32_t from, int32_t to) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  int64_t constant = 1, number;
  for (int32_t i = from; i < to; i++)
    if (lp_poly_is_const(dim[i], &number))
      constant *= number;
    else
      lp_buf_printf(&text, "%s * ", gpu_element_size(e, dim[i]));
  const char *stride = gpu_format(e->b->list, "%s%" PRId64, lp_buf_text(&text), constant);
  if (constant == 1 && text.size > 3) {
    lp_buf_clear(&text);
    for (int32_t i = from; i < to; i++)
      if (!lp_poly_is_const(dim[i], &number))
        lp_buf_printf(&text, "%s%s", text.size ? " * " : "", gpu_element_size(e, dim[i]));
    stride = gpu_format(e->b->list, "%s", lp_buf_text(&text));
  }
  return stride;
}

/* Returns a variable that holds the expression. Equal expressions share one. */
static const char *variable(gpu_element *e, const char *expression) {
  const char *name = lp_map_get(e->lines, expression);
  if (name) return name;
  name = gpu_format(e->b->list, "at%zu", lp_map_count(e->lines));
  gpu_element_line(e, "const long %s = %s;", name, expression);
  lp_map_put(e->lines, expression, (void *)(uintptr_t)name);
  return name;
}

const char *gpu_element_index(gpu_element *e, lp_type from) {
  int64_t numel;
  bool same = from.rank <= e->type.rank;
  int32_t lead = e->type.rank - from.rank;
  for (int32_t i = 0; i < from.rank && same; i++)
    same = lp_poly_equal(from.dim[i], e->type.dim[lead + i]);
  for (int32_t i = 0; i < lead && same; i++)
    same = is_one(e->type.dim[i]);
  if (same) return "i";
  if (lp_type_static_numel(from, &numel) && numel == 1) return "0";
  LP_OWNED(lp_buf_free) lp_buf sum = {0};
  for (int32_t i = 0; i < from.rank; i++) {
    if (is_one(from.dim[i])) continue;
    const char *coordinate = gpu_element_coordinate(e, lead + i);
    const char *stride = gpu_element_stride(e, from.dim, i + 1, from.rank);
    lp_buf_printf(&sum, "%s%s", sum.size ? " + " : "", coordinate);
    if (!lp_streq(stride, "1")) lp_buf_printf(&sum, " * (%s)", stride);
  }
  return variable(e, lp_buf_text(&sum));
}

const char *gpu_element_load(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index) {
  if (dtype == LP_F16 || dtype == LP_BF16)
    return gpu_format(e->b->list, "to_float_%s(%s[%s])", gpu_store_name(dtype), pointer, index);
  return gpu_format(e->b->list, "%s[%s]", pointer, index);
}

void gpu_element_store(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index, const char *value) {
  if (dtype == LP_F16 || dtype == LP_BF16)
    gpu_element_line(e, "%s[%s] = from_float_%s(%s);", pointer, index, gpu_store_name(dtype), value);
  else if (dtype == LP_F32 || dtype == LP_I64)
    gpu_element_line(e, "%s[%s] = %s;", pointer, index, value);
  else
    gpu_element_line(e, "%s[%s] = (%s)(%s);", pointer, index, gpu_type(dtype), value);
}

static void free_texts(gpu_element *e) {
  lp_buf_free(&e->params);
  lp_buf_free(&e->pointer_lines);
  lp_buf_free(&e->size_lines);
  lp_buf_free(&e->body);
  lp_map_free(e->sizes);
  lp_map_free(e->lines);
}

static const lp_poly *count_of(const gpu_element *e) {
  return lp_dim_product(e->b->list->module, e->type.dim, 0, e->type.rank);
}

/* Launches a kernel for a number of elements; a thread computes e->each of them. */
static gpu_launch *add_launch(const gpu_element *e, const gpu_kernel *kernel, const lp_poly *elements) {
  gpu_launch *launch = gpu_launch_add(e->b, kernel, THREADS, elements, (int64_t)THREADS * e->each);
  launch->spare = launch->spread = true;
  return launch;
}

static void add_args(gpu_launch *launch, const gpu_element *e) {
  memcpy(launch->arg + launch->arg_count, e->arg, sizeof *e->arg * (size_t)e->arg_count);
  launch->arg_count += e->arg_count;
  gpu_arg_size(launch, count_of(e));
}

void gpu_element_end(gpu_element *e, const char *stem) {
  gpu_launch_list *list = e->b->list;
  lp_buf_puts(&e->params, "@size count_");
  const char *const params[] = {"WHAT",     lp_op_info_get(e->b->op->kind)->name,
                                "PARAMS",   lp_buf_text(&e->params),
                                "POINTERS", lp_buf_text(&e->pointer_lines),
                                "SIZES",    lp_buf_text(&e->size_lines),
                                "BODY",     lp_buf_text(&e->body),
                                "EACH",     gpu_format(list, "%" PRId32, e->each),
                                "THREADS",  gpu_format(list, "%d", THREADS),
                                NULL};
  add_args(add_launch(e, gpu_kernel_get(list, "elementwise", stem, params), count_of(e)), e);
  free_texts(e);
}

/* ---- several operators ------------------------------------------------------------------------------------------- */

/* The part of a kernel that computes operator `number` of several. */
static const char *part_text(const gpu_element *e, int32_t number) {
  const char *const params[] = {"COUNT",    gpu_format(e->b->list, "count%" PRId32 "_", number),
                                "POINTERS", lp_buf_text(&e->pointer_lines),
                                "SIZES",    lp_buf_text(&e->size_lines),
                                "BODY",     lp_buf_text(&e->body),
                                "THREADS",  gpu_format(e->b->list, "%d", THREADS),
                                NULL};
  return gpu_fill(e->b->list, gpu_template("elementwise_part"), params);
}

/* A number of elements for which the grid has at least as many groups as all operators together: each operator begins
 * with a new group. */
static const lp_poly *elements_of(const gpu_element *e, int32_t count) {
  lp_module *m = e->b->list->module;
  const lp_poly *sum = lp_dim_const(m, (count - 1) * (THREADS - 1));
  for (int32_t i = 0; i < count; i++)
    sum = lp_poly_add(m->arena, sum, count_of(&e[i]));
  return sum;
}

static void end_joined(gpu_builder *b, gpu_element *e, int32_t count, const char *stem) {
  gpu_launch_list *list = b->list;
  const char *text = "", *parts = "";
  for (int32_t i = 0; i < count; i++) {
    assert(e[i].each == 1);
    text = gpu_format(list, "%s%s%s@size count%" PRId32 "_", text, i ? ", " : "", lp_buf_text(&e[i].params), i);
    parts = gpu_format(list, "%s%s", parts, part_text(&e[i], i));
  }
  const char *const params[] = {"WHAT", lp_op_info_get(b->op->kind)->name, "PARAMS", text, "PARTS", parts, NULL};
  const gpu_kernel *kernel = gpu_kernel_get(list, "elementwise_joined", gpu_format(list, "%s_joined", stem), params);
  gpu_launch *launch = add_launch(e, kernel, elements_of(e, count));
  for (int32_t i = 0; i < count; i++) {
    add_args(launch, &e[i]);
    free_texts(&e[i]);
  }
}

void gpu_elements_make(gpu_builder *b, gpu_element_writer *write, const char *stem) {
  gpu_element e[GPU_MOST_JOINED];
  const int32_t count = b->group->count;
  assert(count > 0 && count <= GPU_MOST_JOINED);
  for (int32_t i = 0; i < count; i++) {
    b->op = b->group->op[i];
    write(&e[i], b);
    b->params += e[i].arg_count;
  }
  b->params = 0;
  if (count == 1)
    gpu_element_end(e, stem);
  else
    end_joined(b, e, count, stem);
}
