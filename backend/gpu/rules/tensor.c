/* Products of many rows on tensor cores. Activations are rounded to the type in which the weight is multiplied; sums
 * are f32. */
#include "backend/gpu/rules/product.h"

#include "backend/rows.h"
#include "backend/values.h"
#include "base/poly.h"

enum { THREADS = 256, TILE = GPU_TENSOR_TILE, NARROW = LP_HW_TENSOR_ELEMENTS, MOST_WIDENED = 1 << 28 };

/* Activations are divided by it, so that those of models trained in bf16 fit into f16. */
static int32_t range_of(lp_dtype dtype) {
  return dtype == LP_F16 ? 16 : 1;
}

/* Narrows x to 16 bits in the scratch on architectures in [least, most]. */
static gpu_launch *add_narrow(gpu_builder *b, const gpu_linear *l, const lp_hw_tensor *h, int64_t few, int32_t least,
                              int32_t most) {
  gpu_launch_list *list = b->list;
  const char *store = gpu_store_name(h->dtype);
  const char *from = "at * 8";
  if (l->experts)
    from = gpu_format(list,
                      "((const int *)(work + (long)at_))[at * 8 / %" PRId64 "] / %" PRId64 " * %" PRId64
                      "L + at * 8 %% %" PRId64,
                      l->k, l->shared, l->k, l->k);
  const char *const params[] = {"STORE", store, "RANGE", gpu_format(list, "%" PRId32, range_of(h->dtype)),
                                "FROM",  from,  "WORK",  gpu_linear_work(l),
                                NULL};
  const gpu_kernel *kernel =
      gpu_kernel_get(list, "narrow", gpu_format(list, "narrow_%s%s", l->experts ? "sorted_" : "", store), params);
  const lp_poly *count = lp_poly_scale(list->module->arena, l->rows, l->k);
  gpu_launch *launch = gpu_launch_add(b, kernel, THREADS, count, THREADS * NARROW);
  gpu_launch_when(launch, l->rows, few + 1, INT64_MAX);
  gpu_launch_on(launch, least, most);
  gpu_arg_ref(launch, l->x);
  gpu_arg_scratch(launch);
  gpu_arg_size(launch, count);
  gpu_arg_order(launch, l);
  launch->spare = true;
  return launch;
}

/* Narrows x for our kernel, and for a library on the same architectures, unless an earlier operator has left it in the
 * scratch. */
static void narrow(gpu_builder *b, const gpu_linear *l, const lp_hw_tensor *h, int64_t few) {
  const lp_module *module = b->list->module;
  const gpu_narrowed *known = &b->program->narrowed;
  if (l->experts) {
    (void)add_narrow(b, l, h, few, h->sm, LP_HW_MOST_SM);
    return;
  }
  const gpu_narrowed wanted = {.value = lp_value_base(lp_op_in(b->op, 0)),
                               .dtype = h->dtype,
                               .segment = lp_op_i64(b->op, "segment", 0),
                               /* An operator that is not joint has a scratch for each sequence. */
                               .jointly = lp_op_is_joint(module, b->op)};
  if (known->value == wanted.value && known->dtype == wanted.dtype && known->segment == wanted.segment &&
      known->jointly == wanted.jointly)
    return;
  (void)add_narrow(b, l, h, few, h->sm, LP_HW_MOST_SM);
  gpu_add_scratch(b, lp_poly_scale(module->arena, l->rows, 2 * l->k), l->rows, INT64_MAX);
  b->program->narrowed = wanted;
}

static const gpu_kernel *kernel_of(gpu_builder *b, const gpu_linear *l, const lp_hw_tensor *h) {
  gpu_launch_list *list = b->list;
  const char *const params[] = {"WHAT",     lp_op_info_get(b->op->kind)->name,
                                "N",        gpu_format(list, "%" PRId64, l->n),
                                "K",        gpu_format(list, "%" PRId64, l->k),
                                "GATED",    l->gate >= 0 ? "1" : "0",
                                "WTYPE",    l->type,
                                "STORE",    l->store,
                                "CODED",    l->coded ? "1" : "0",
                                "HALF",     gpu_store_name(h->dtype),
                                "SM",       gpu_format(list, "%" PRId32, h->sm),
                                "RANGE",    gpu_format(list, "%" PRId32, range_of(h->dtype)),
                                "EPILOGUE", lp_op_str(b->op, "epilogue", "none"),
                                "TILE",     gpu_linear_tile(list, l, TILE),
                                "TO",       l->experts ? "order[row]" : "row",
                                "WORK",     gpu_linear_work(l),
                                NULL};
  const char *stem = gpu_format(list, "%s%s_tensor_%" PRId64 "x%" PRId64, gpu_linear_tag(b), l->store, l->n, l->k);
  return gpu_kernel_get(list, "linear_tensor", stem, params);
}

/* Adds the product by a library. On architectures without our kernel each operator narrows its own activations, because
 * it does so only where the library computes its products. */
static bool add_library(gpu_builder *b, const gpu_linear *l, const lp_hw_tensor *h, int64_t few) {
  const gpu_product_form form = {
      .dtype = h->dtype, .scale = range_of(h->dtype), .x = -1, .sm = h->sm_of_library, .few = few, .coded = l->coded};
  if (!b->list->products || l->experts || (l->coded && l->n * l->k > MOST_WIDENED)) return false;
  if (h->sm_of_library < h->sm) add_narrow(b, l, h, few, h->sm_of_library, h->sm - 1)->by = GPU_BY_LIBRARY;
  return gpu_linear_product(b, l, &form);
}

/* Rows begin at multiples of 16 bytes. */
int32_t gpu_linear_tensor_sm(const gpu_builder *b, const gpu_linear *l) {
  const lp_dtype store = l->matrix->stored.dtype;
  return b->list->tensor && store != LP_F32 && l->k % NARROW == 0 ? lp_hw_tensor_of(store).sm : 0;
}

gpu_many gpu_linear_tensor(gpu_builder *b, const gpu_linear *l, int64_t few) {
  const lp_hw_tensor h = lp_hw_tensor_of(l->matrix->stored.dtype);
  if (gpu_linear_tensor_sm(b, l) == 0) return (gpu_many){.few = few};
  narrow(b, l, &h, few);
  const bool library = add_library(b, l, &h, few);
  gpu_launch *launch = gpu_launch_add(b, kernel_of(b, l, &h), THREADS, lp_dim_const(b->list->module, l->n),
                                      l->gate >= 0 ? TILE / 2 : TILE);
  gpu_launch_rows(launch, gpu_linear_tiles(b, l, TILE), TILE);
  gpu_launch_when(launch, l->rows, few + 1, INT64_MAX);
  gpu_launch_on(launch, h.sm, LP_HW_MOST_SM);
  if (library) launch->by = GPU_BY_KERNEL;
  gpu_arg_scratch(launch);
  const int32_t refs[] = {l->w, l->scale, l->gate, l->gate_scale, l->bias, l->residual, l->y};
  for (size_t i = 0; i < LP_COUNT(refs); i++)
    gpu_arg_ref(launch, refs[i]);
  gpu_arg_size(launch, l->rows);
  gpu_arg_order(launch, l);
  launch->spare = true;
  b->list->any_tensor = true;
  return (gpu_many){.few = few, .sm = h.sm, .library = library};
}
