/* Tensor types: construction, comparison, sizes. */
#include "base/poly.h"
#include "ir/ir.h"

#include <assert.h>

lp_type lp_type_make(lp_module *module, lp_dtype dtype, int32_t rank, const lp_poly *const *dim) {
  assert(rank <= LP_MAX_RANK);
  const lp_poly **copy = rank > 0 ? LP_NEW_ARRAY(module->arena, const lp_poly *, rank) : NULL;
  for (int32_t i = 0; i < rank; i++)
    copy[i] = dim[i];
  return (lp_type){dtype, rank, copy};
}

lp_type lp_type_static(lp_module *module, lp_dtype dtype, int32_t rank, const int64_t *dim) {
  const lp_poly *dims[LP_MAX_RANK];
  assert(rank <= LP_MAX_RANK);
  for (int32_t i = 0; i < rank; i++)
    dims[i] = lp_dim_const(module, dim[i]);
  return lp_type_make(module, dtype, rank, dims);
}

lp_type lp_type_with_dtype(lp_type type, lp_dtype dtype) {
  type.dtype = dtype;
  return type;
}

bool lp_type_equal(lp_type a, lp_type b) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int32_t i = 0; i < a.rank; i++)
    if (!lp_poly_equal(a.dim[i], b.dim[i])) return false;
  return true;
}

const lp_poly *lp_type_numel(lp_module *module, lp_type type) {
  if (type.rank < 0) return NULL;
  const lp_poly *product = lp_dim_const(module, 1);
  for (int32_t i = 0; i < type.rank; i++)
    product = lp_poly_mul(module->arena, product, type.dim[i]);
  return product;
}

const lp_poly *lp_type_bytes(lp_module *module, lp_type type) {
  const lp_poly *numel = lp_type_numel(module, type);
  int32_t bits = lp_dtype_bits(type.dtype);
  if (bits >= 8) return lp_poly_scale(module->arena, numel, bits / 8);
  int64_t count, in_byte = 8 / bits;
  if (lp_poly_is_const(numel, &count)) return lp_dim_const(module, (count + in_byte - 1) / in_byte);
  const lp_poly *part = lp_poly_div(module->arena, numel, lp_dim_const(module, in_byte));
  return part ? part : numel;
}

bool lp_type_static_dim(lp_type type, int32_t axis, int64_t *out) {
  if (axis < 0) axis += type.rank;
  return axis >= 0 && axis < type.rank && lp_poly_is_const(type.dim[axis], out);
}

bool lp_type_static_numel(lp_type type, int64_t *out) {
  int64_t product = 1, dim;
  for (int32_t i = 0; i < type.rank; i++)
    if (!lp_poly_is_const(type.dim[i], &dim) || !lp_i64_mul(product, dim, &product)) return false;
  if (type.rank < 0) return false;
  *out = product;
  return true;
}

const lp_poly *lp_dim_const(lp_module *module, int64_t value) {
  return lp_poly_const(module->arena, value);
}

const lp_poly *lp_dim_symbol(lp_module *module, const char *name) {
  return lp_poly_symbol(module->arena, lp_symbols_intern(&module->symbols, name));
}

const lp_poly *lp_dim_product(lp_module *module, const lp_poly *const *dim, int32_t from, int32_t to) {
  const lp_poly *product = lp_dim_const(module, 1);
  for (int32_t i = from; i < to; i++)
    product = lp_poly_mul(module->arena, product, dim[i]);
  return product;
}
