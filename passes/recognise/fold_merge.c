/* Merges equal constants, weights and pure operators of one block, so that repeated shape arithmetic, positions and
 * masks exist once. */
#include "base/map.h"
#include "base/poly.h"
#include "passes/recognise/fold.h"

static uint64_t mix(uint64_t hash, const void *data, size_t size) {
  return lp_hash_bytes(data, size, hash);
}

static uint64_t hash_type(uint64_t hash, lp_type type) {
  int64_t dim = 0;
  hash = mix(hash, &type.dtype, sizeof type.dtype);
  for (int32_t i = 0; i < type.rank; i++) {
    bool constant = lp_poly_is_const(type.dim[i], &dim);
    hash = mix(hash, constant ? (const void *)&dim : (const void *)"?", constant ? sizeof dim : 1);
  }
  return hash;
}

static uint64_t hash_attr(uint64_t hash, const lp_attr *attr) {
  hash = mix(hash, attr->name, strlen(attr->name));
  switch (attr->kind) {
  case LP_ATTR_BOOL:
    return mix(hash, &attr->b, sizeof attr->b);
  case LP_ATTR_I64:
    return mix(hash, &attr->i, sizeof attr->i);
  case LP_ATTR_F64:
    return mix(hash, &attr->f, sizeof attr->f);
  case LP_ATTR_STR:
    return mix(hash, attr->s, strlen(attr->s));
  case LP_ATTR_I64S:
    return mix(hash, attr->is, (size_t)attr->count * sizeof(int64_t));
  case LP_ATTR_TENSOR:
    return mix(hash_type(hash, attr->tensor.type), attr->tensor.data, attr->tensor.bytes);
  default:
    return hash;
  }
}

static bool equal_ops(const lp_op *a, const lp_op *b) {
  if (a->kind != b->kind || a->in_count != b->in_count || a->out_count != b->out_count) return false;
  for (int32_t i = 0; i < a->in_count; i++)
    if (lp_op_in(a, i) != lp_op_in(b, i)) return false;
  for (int32_t i = 0; i < a->out_count; i++)
    if (!lp_type_equal(a->out[i]->type, b->out[i]->type)) return false;
  return lp_op_same_attrs(a, b);
}

static uint64_t hash_op(const lp_op *op) {
  uint64_t hash = mix(0, &op->kind, sizeof op->kind);
  for (int32_t i = 0; i < op->in_count; i++) {
    uintptr_t value = (uintptr_t)lp_op_in(op, i);
    hash = mix(hash, &value, sizeof value);
  }
  for (int32_t i = 0; i < op->attr_count; i++)
    hash = hash_attr(hash, &op->attr[i]);
  return op->out_count > 0 ? hash_type(hash, op->out[0]->type) : hash;
}

/* ---- values known as polynomials: equal values are merged, however they were computed ---------------------------- */

static uint64_t hash_known(const lp_value *value) {
  uint64_t hash = mix(1, &value->type.dtype, sizeof value->type.dtype);
  for (int32_t i = 0; i < value->known_count; i++)
    for (int32_t t = 0; t < value->known[i]->count; t++) {
      const lp_term *term = &value->known[i]->term[t];
      hash = mix(mix(hash, &term->coef, sizeof term->coef), term->symbol, sizeof term->symbol);
    }
  return hash;
}

static bool equal_known(const lp_value *a, const lp_value *b) {
  if (!lp_type_equal(a->type, b->type) || a->known_count != b->known_count) return false;
  for (int32_t i = 0; i < a->known_count; i++)
    if (!lp_poly_equal(a->known[i], b->known[i])) return false;
  return true;
}

static void merge_known(lp_fold *f, lp_map *firsts, lp_value *value) {
  char key[20];
  if (!value->known || !value->uses || lp_value_is_constant(value)) return;
  snprintf(key, sizeof key, "%016" PRIx64, hash_known(value));
  lp_value *first = lp_map_get(firsts, key);
  if (!first) {
    lp_map_put(firsts, key, value);
  } else if (equal_known(first, value)) {
    lp_value_replace(value, first);
    f->changed = true;
  }
}

/* ---- the merge --------------------------------------------------------------------------------------------------- */

static void merge(lp_fold *f, lp_op *op, const lp_op *first) {
  for (int32_t i = 0; i < op->out_count; i++) {
    if (!first->out[i]->name) first->out[i]->name = op->out[i]->name;
    if (op->out[i]->uses) f->changed = true;
    if (op->out[i]->uses) lp_value_replace(op->out[i], first->out[i]);
  }
}

void lp_fold_merge(lp_fold *f, lp_block *block) {
  LP_OWNED(lp_map_free_at) lp_map *firsts = lp_map_create(), *known = lp_map_create();
  LP_FOR_OPS(op, block) {
    char key[20];
    lp_level level = lp_op_info_get(op->kind)->level;
    bool mergeable = (level == LP_LEVEL_ONNX || lp_op_has(op, LP_CONSTANT)) && lp_op_has(op, LP_PURE) && !op->region;
    if (!mergeable) continue;
    for (int32_t i = 0; i < op->out_count; i++)
      merge_known(f, known, op->out[i]);
    snprintf(key, sizeof key, "%016" PRIx64, hash_op(op));
    const lp_op *first = lp_map_get(firsts, key);
    if (!first)
      lp_map_put(firsts, key, op);
    else if (equal_ops(first, op))
      merge(f, op, first);
  }
}
