/* op.linear and op.experts: for many rows tensor cores, and libraries of products (tensor.c, product.c). */
#pragma once

#include "backend/gpu/builder.h"

/* op.linear with the numbers of its refs, -1 for absent operands: y[rows][n] of x[rows][k] and w[n][k]. Of op.experts,
 * row r of y is that of x[r / shared] and w[index[r]][n][k]. */
typedef struct {
  int32_t x, w, scale, gate, gate_scale, bias, residual, index, y;
  const gpu_constant *matrix;
  const char *store, *type; /* of its elements: the end of the names of functions that load them, and a type of C */
  bool coded;               /* integers or floats of 8 bits, with scales */
  int64_t n, k, experts, shared; /* op.linear has 0 experts */
  const lp_poly *rows;
  const lp_poly *order; /* of op.experts: where the order of its rows begins in the scratch, in bytes */
} gpu_linear;
/* ---- experts.c: the rows that a group multiplies, all by the same expert ---- */
/* Lines of a kernel of op.experts that make a group's row the only one. */
const char *gpu_experts_row(gpu_launch_list *list, const gpu_linear *l);
/* Launches the kernel that sorts more than `few` rows by expert and lists their tiles of `tile` rows, on the
 * architectures `on`. */
void gpu_experts_order(gpu_builder *b, const gpu_linear *l, int64_t few, int64_t tile, lp_hw_architectures on);
/* The size of the grid's second axis, of which a group takes `tile`. op.experts has more than its rows there, because
 * the last tile of each expert may not be full. */
const lp_poly *gpu_linear_tiles(const gpu_builder *b, const gpu_linear *l, int64_t tile);
/* Lines of a kernel: `rows`, of which the group multiplies those from `top` on, and pointers to the expert's matrices.
 * Rows of op.experts are numbered by their place in `order`. */
const char *gpu_linear_tile(gpu_launch_list *list, const gpu_linear *l, int64_t tile);
/* The last parameters of such a kernel, and their arguments; op.linear has none. */
const char *gpu_linear_work(const gpu_linear *l);
void gpu_arg_order(gpu_launch *launch, const gpu_linear *l);
/* "int4" or "int8": the halves of activations are in the order in which a word holds codes of this type
 * (cuda_tensor.kernel). */
static inline const char *gpu_linear_order(const gpu_linear *l) {
  return lp_dtype_bits(l->matrix->stored.dtype) == 4 ? "int4" : "int8";
}
/* "linear_gated_silu_": the beginning of the names of kernels for this operator. */
const char *gpu_linear_tag(const gpu_builder *b);
/* The way a library computes the product: for more than `few` rows, on architectures from `sm` on. x is stored as
 * `dtype`, divided by `scale`. */
typedef struct {
  lp_dtype dtype;
  int32_t scale;
  int32_t x; /* a ref; negative: x lies at the beginning of the scratch */
  int32_t sm;
  int64_t few;
  bool coded; /* the weight's codes are widened to `dtype` first */
} gpu_product_form;
/* Adds the product. The caller launches kernels for the same rows GPU_BY_KERNEL. false: the dialect has no library. */
bool gpu_linear_product(gpu_builder *b, const gpu_linear *l, const gpu_product_form *form);
/* Who computes a product of more than `few` rows. */
typedef struct {
  int64_t few;
  int32_t sm;   /* the first architecture with tensor cores for the weight's type; 0: none has them */
  bool library; /* a library may compute it, also on some architectures before that */
} gpu_many;
/* The first architecture with a kernel on tensor cores for the weight's type, or 0 if there is none. */
int32_t gpu_linear_tensor_sm(const gpu_builder *b, const gpu_linear *l);
enum { GPU_TENSOR_TILE = 128 }; /* rows of a group */
/* Adds a launch on tensor cores for more than `few` rows, and one by a library. */
gpu_many gpu_linear_tensor(gpu_builder *b, const gpu_linear *l, int64_t few);
/* Adds launches that multiply rounded activations on the architectures where they are the fastest, on those before
 * tensor cores also for many rows; `others` gets the ranges of all other architectures. Returns how many. */
enum { GPU_MOST_RANGES = 3 };
int32_t gpu_linear_rounded(gpu_builder *b, const gpu_linear *l, const gpu_many *many,
                           lp_hw_architectures others[GPU_MOST_RANGES]);
/* Tells whether few rows are multiplied as sums of two halves on tensor cores, from GPU_HALVES_SM on. Where there are
 * several rows, gpu_linear_rounded leaves the halves at the beginning of the scratch (split.kernel). */
enum { GPU_HALVES_SM = 80 };
bool gpu_linear_halves(const gpu_builder *b, const gpu_linear *l);
