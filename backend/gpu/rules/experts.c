/* The rows of op.experts: one at a time, or sorted by expert and in tiles. */
#include "backend/gpu/rules/product.h"

#include "base/poly.h"

enum { THREADS = 256 };

/* Lines of op.experts that move the pointers of a product to those of `expert`. */
static const char *expert_text(gpu_launch_list *list, const gpu_linear *l) {
  const int64_t elements = l->n * l->k, step = lp_dtype_bits(l->matrix->stored.dtype) == 4 ? elements / 2 : elements;
  const int64_t scales = l->matrix->kept ? elements / l->matrix->kept * 2 : elements / LP_WEIGHT_GROUP;
  const char *text = gpu_format(list, "  w += expert * %" PRId64 ";\n", step);
  if (l->gate >= 0) text = gpu_format(list, "%s  gate += expert * %" PRId64 ";\n", text, step);
  if (l->scale >= 0) text = gpu_format(list, "%s  scale += expert * %" PRId64 ";\n", text, scales);
  if (l->gate_scale >= 0) text = gpu_format(list, "%s  gate_scale += expert * %" PRId64 ";\n", text, scales);
  return l->bias >= 0 ? gpu_format(list, "%s  bias += expert * %" PRId64 ";\n", text, l->n) : text;
}

const char *gpu_experts_row(gpu_launch_list *list, const gpu_linear *l) {
  return gpu_format(
      list,
      "  enum { N = %" PRId64 ", EXPERTS = %" PRId64 " };\n"
      "  @after;\n"
      "  const long all = rows_, own = (long)@block_y < all ? (long)@block_y : 0, chosen = index[own];\n"
      "  const int has_expert = chosen >= 0 && chosen < EXPERTS, block = @block_x;\n"
      "  const long rows = (long)@block_y < all, first = 0, expert = has_expert ? chosen : 0;\n"
      "  x += own / %" PRId64 " * K;\n"
      "  y += own * N;\n"
      "  for (int i = @thread, n = block * COLUMNS; rows && !has_expert && i < COLUMNS; i += WARPS * 32)\n"
      "    if (n + i < N) y[n + i] = 0;\n"
      "  if (!has_expert) return;\n%s",
      l->n, l->experts, l->shared, expert_text(list, l));
}

const lp_poly *gpu_linear_tiles(const gpu_builder *b, const gpu_linear *l, int64_t tile) {
  if (!l->experts) return l->rows;
  return lp_poly_add(b->list->module->arena, l->rows, lp_dim_const(b->list->module, (l->experts - 1) * tile));
}

const char *gpu_linear_work(const gpu_linear *l) {
  return l->experts ? ", const @global char *@restrict work, @size at_" : "";
}

void gpu_arg_order(gpu_launch *launch, const gpu_linear *l) {
  if (!l->experts) return;
  gpu_arg_scratch(launch);
  gpu_arg_size(launch, l->order);
}

const char *gpu_linear_tile(gpu_launch_list *list, const gpu_linear *l, int64_t tile) {
  if (!l->experts) return gpu_format(list, "  const long rows = rows_, top = (long)@block_y * %" PRId64 ";", tile);
  return gpu_format(
      list,
      "  const long all = rows_, at = at_;\n"
      "  const @global int *order = (const @global int *)(work + at), *tile = order + all + @block_y * 3;\n"
      "  if (@block_y >= all / %" PRId64 " + %" PRId64 ") return;\n"
      "  const long expert = tile[0], top = tile[1], rows = tile[2];\n"
      "  if (top >= rows) return;\n%s",
      tile, l->experts, expert_text(list, l));
}

void gpu_experts_order(gpu_builder *b, const gpu_linear *l, int64_t few, int64_t tile, lp_hw_architectures on) {
  gpu_launch_list *list = b->list;
  if (on.least > on.most) return;
  const char *const params[] = {"WHAT",    "op.experts",
                                "EXPERTS", gpu_format(list, "%" PRId64, l->experts),
                                "N",       gpu_format(list, "%" PRId64, l->n),
                                "TILE",    gpu_format(list, "%" PRId64, tile),
                                "THREADS", gpu_format(list, "%d", THREADS),
                                NULL};
  const char *stem = gpu_format(list, "experts_order_%" PRId64 "_%" PRId64 "_%" PRId64, l->experts, l->n, tile);
  gpu_launch *launch = gpu_launch_add(b, gpu_kernel_get(list, "experts_order", stem, params), THREADS,
                                      lp_dim_const(list->module, l->experts), 1);
  gpu_launch_when(launch, l->rows, few + 1, INT64_MAX);
  gpu_launch_range(launch, on);
  gpu_arg_ref(launch, l->index);
  gpu_arg_ref(launch, l->y);
  gpu_arg_size(launch, l->rows);
  gpu_arg_order(launch, l);
}
