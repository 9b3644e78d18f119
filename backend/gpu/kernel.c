/* Kernels from templates, and launches of them. */
#include "backend/gpu/builder.h"

#include "backend/gpu/templates.h"
#include "base/map.h"
#include "base/poly.h"

#include <ctype.h>

const char *gpu_template(const char *name) {
  for (size_t i = 0; i < gpu_template_count; i++)
    if (lp_streq(gpu_templates[i].name, name)) return gpu_templates[i].text;
  return NULL;
}

static size_t word_length(const char *text) {
  size_t length = 0;
  while (isalnum((unsigned char)text[length]) || text[length] == '_')
    length++;
  return length;
}

/* The value of the parameter with that name, or NULL. */
static const char *find_param(const char *const *params, const char *text, size_t length) {
  for (size_t i = 0; params[i]; i += 2)
    if (strlen(params[i]) == length && strncmp(params[i], text, length) == 0) return params[i + 1];
  return NULL;
}

/* Fills in all parameters except $NAME, because the name of a kernel is chosen last. */
static void fill(const char *template, const char *const *params, lp_buf *out) {
  for (const char *at = template; *at;) {
    size_t length = *at == '$' ? word_length(at + 1) : 0;
    const char *value = length ? find_param(params, at + 1, length) : NULL;
    if (!value) {
      lp_buf_append(out, at++, 1);
      continue;
    }
    lp_buf_puts(out, value);
    at += 1 + length;
  }
}

const char *gpu_fill(gpu_launch_list *list, const char *text, const char *const *params) {
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  fill(text, params, &out);
  return lp_arena_strdup(list->arena, lp_buf_text(&out));
}

static const char *unique_name(gpu_launch_list *list, const char *stem) {
  const char *name = stem;
  for (int n = 2; lp_map_has(list->kernel_names, name); n++)
    name = lp_arena_format(list->arena, "%s_v%d", stem, n);
  lp_map_put(list->kernel_names, name, NULL);
  return name;
}

gpu_kernel *gpu_kernel_get(gpu_launch_list *list, const char *template, const char *stem, const char *const *params) {
  LP_OWNED(lp_buf_free) lp_buf key = {0}, text = {0};
  fill(gpu_template(template), params, &key);
  gpu_kernel *kernel = lp_map_get(list->kernels, lp_buf_text(&key));
  if (!kernel) {
    kernel = LP_NEW(list->arena, gpu_kernel);
    kernel->name = unique_name(list, stem);
    const char *const name[] = {"NAME", kernel->name, NULL};
    fill(lp_buf_text(&key), name, &text);
    kernel->text = lp_arena_strdup(list->arena, lp_buf_text(&text));
    lp_map_put(list->kernels, lp_buf_text(&key), kernel);
  }
  return kernel;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

gpu_launch *gpu_launch_add(gpu_builder *b, const gpu_kernel *kernel, int32_t threads, const lp_poly *x, int64_t per) {
  gpu_launch launch = {.kernel = kernel, .threads = threads};
  launch.grid[0].size = x;
  launch.grid[0].per = per;
  launch.grid[1].size = lp_dim_const(b->list->module, 1);
  launch.grid[1].per = 1;
  lp_vec_push(&b->launches, launch);
  return &b->launches.data[b->launches.count - 1];
}

void gpu_launch_rows(gpu_launch *launch, const lp_poly *y, int64_t per) {
  launch->grid[1].size = y;
  launch->grid[1].per = per;
}

void gpu_launch_when(gpu_launch *launch, const lp_poly *few, int64_t least, int64_t most) {
  launch->few = few;
  launch->least = least;
  launch->most = most;
}

void gpu_launch_on(gpu_launch *launch, int32_t least_sm, int32_t most_sm) {
  launch->least_sm = least_sm;
  launch->most_sm = most_sm;
}

void gpu_launch_range(gpu_launch *launch, lp_hw_architectures on) {
  if (on.least > 0 || on.most < LP_HW_MOST_SM) gpu_launch_on(launch, on.least, on.most);
}

static gpu_arg *add_arg(gpu_launch *launch, gpu_arg_kind kind) {
  gpu_arg *arg = &launch->arg[launch->arg_count++];
  arg->kind = kind;
  return arg;
}

void gpu_arg_ref(gpu_launch *launch, int32_t ref) {
  add_arg(launch, ref < 0 ? GPU_ARG_NULL : GPU_ARG_REF)->ref = ref;
}

void gpu_arg_size(gpu_launch *launch, const lp_poly *size) {
  add_arg(launch, GPU_ARG_SIZE)->size = size;
}

void gpu_arg_scratch(gpu_launch *launch) {
  (void)add_arg(launch, GPU_ARG_SCRATCH);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

const char *gpu_type(lp_dtype dtype) {
  static const char *const names[LP_DTYPE_COUNT] = {
      [LP_F32] = "float",      [LP_F16] = "unsigned short", [LP_BF16] = "unsigned short",
      [LP_I8] = "signed char", [LP_I16] = "short",          [LP_I32] = "int",
      [LP_I64] = "long",       [LP_U8] = "unsigned char",   [LP_U16] = "unsigned short",
      [LP_U32] = "unsigned",   [LP_BOOL] = "unsigned char", [LP_U4] = "unsigned char"};
  return names[dtype];
}

const char *gpu_store_name(lp_dtype dtype) {
  static const char *const names[LP_DTYPE_COUNT] = {
      [LP_F32] = "f32", [LP_F16] = "f16", [LP_BF16] = "bf16", [LP_I8] = "int8", [LP_U4] = "int4", [LP_BOOL] = "bool"};
  return names[dtype];
}

bool gpu_type_is_empty(lp_type type) {
  for (int32_t i = 0; i < type.rank; i++)
    if (type.dim[i]->count == 0) return true;
  return false;
}

bool gpu_static_last(const lp_op *op, char why[64]) {
  int64_t n;
  if (op->out[0]->type.rank < 1 || !lp_type_static_dim(lp_op_in(op, 0)->type, -1, &n))
    return snprintf(why, 64, "a last axis that is not constant"), false;
  return true;
}

const char *gpu_format(gpu_launch_list *list, const char *format, ...) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  va_list args;
  va_start(args, format);
  lp_buf_vprintf(&text, format, args);
  va_end(args);
  return lp_arena_strdup(list->arena, lp_buf_text(&text));
}
