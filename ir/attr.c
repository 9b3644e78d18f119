/* Attributes: a sorted array per operator; lists and texts live in the module's arena. */
#include "base/poly.h"
#include "ir/ir.h"

static int32_t attr_position(const lp_op *op, const char *name, bool *found) {
  int32_t low = 0, high = op->attr_count;
  while (low < high) {
    int32_t middle = (low + high) / 2, order = strcmp(op->attr[middle].name, name);
    if (order == 0) {
      *found = true;
      return middle;
    }
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *found = false;
  return low;
}

const lp_attr *lp_op_attr(const lp_op *op, const char *name) {
  bool found;
  int32_t at = attr_position(op, name, &found);
  return found ? &op->attr[at] : NULL;
}

static lp_attr *attr_put(lp_module *module, lp_op *op, const char *name, lp_attr_kind kind) {
  bool found;
  int32_t at = attr_position(op, name, &found);
  lp_attr *attrs = LP_NEW_ARRAY(module->arena, lp_attr, op->attr_count + (found ? 0 : 1));
  for (int32_t i = 0; i < at; i++)
    attrs[i] = op->attr[i];
  for (int32_t i = at + (found ? 1 : 0); i < op->attr_count; i++)
    attrs[i + (found ? 0 : 1)] = op->attr[i];
  attrs[at] = (lp_attr){.name = found ? op->attr[at].name : name, .kind = kind};
  op->attr = attrs;
  op->attr_count += found ? 0 : 1;
  return &attrs[at];
}

void lp_op_remove_attr(lp_op *op, const char *name) {
  bool found;
  int32_t at = attr_position(op, name, &found);
  if (!found) return;
  for (int32_t i = at; i + 1 < op->attr_count; i++)
    op->attr[i] = op->attr[i + 1];
  op->attr_count--;
}

static const lp_attr *attr_of(const lp_op *op, const char *name, lp_attr_kind kind) {
  const lp_attr *attr = lp_op_attr(op, name);
  return attr && attr->kind == kind ? attr : NULL;
}

bool lp_op_bool(const lp_op *op, const char *name, bool otherwise) {
  const lp_attr *attr = attr_of(op, name, LP_ATTR_BOOL);
  return attr ? attr->b : otherwise;
}

int64_t lp_op_i64(const lp_op *op, const char *name, int64_t otherwise) {
  const lp_attr *attr = attr_of(op, name, LP_ATTR_I64);
  return attr ? attr->i : otherwise;
}

double lp_op_f64(const lp_op *op, const char *name, double otherwise) {
  const lp_attr *attr = attr_of(op, name, LP_ATTR_F64);
  return attr ? attr->f : otherwise;
}

const char *lp_op_str(const lp_op *op, const char *name, const char *otherwise) {
  const lp_attr *attr = attr_of(op, name, LP_ATTR_STR);
  return attr ? attr->s : otherwise;
}

const lp_poly *lp_op_poly(const lp_op *op, const char *name) {
  const lp_attr *attr = attr_of(op, name, LP_ATTR_POLY);
  return attr ? attr->poly : NULL;
}

void lp_op_set_bool(lp_module *module, lp_op *op, const char *name, bool value) {
  attr_put(module, op, name, LP_ATTR_BOOL)->b = value;
}

void lp_op_set_i64(lp_module *module, lp_op *op, const char *name, int64_t value) {
  attr_put(module, op, name, LP_ATTR_I64)->i = value;
}

void lp_op_set_f64(lp_module *module, lp_op *op, const char *name, double value) {
  attr_put(module, op, name, LP_ATTR_F64)->f = value;
}

void lp_op_set_str(lp_module *module, lp_op *op, const char *name, const char *value) {
  attr_put(module, op, name, LP_ATTR_STR)->s = lp_arena_strdup(module->arena, value);
}

void lp_op_set_poly(lp_module *module, lp_op *op, const char *name, const lp_poly *value) {
  attr_put(module, op, name, LP_ATTR_POLY)->poly = value;
}

static lp_attr *attr_put_list(lp_module *module, lp_op *op, const char *name, lp_attr_kind kind, int32_t count) {
  lp_attr *attr = attr_put(module, op, name, kind);
  attr->count = count;
  return attr;
}

static void *list_copy(lp_module *module, const void *values, int32_t count, size_t size) {
  return count > 0 ? lp_arena_copy(module->arena, values, (size_t)count * size) : NULL;
}

void lp_op_set_i64s(lp_module *module, lp_op *op, const char *name, const int64_t *values, int32_t count) {
  attr_put_list(module, op, name, LP_ATTR_I64S, count)->is = list_copy(module, values, count, sizeof *values);
}

void lp_op_set_f64s(lp_module *module, lp_op *op, const char *name, const double *values, int32_t count) {
  attr_put_list(module, op, name, LP_ATTR_F64S, count)->fs = list_copy(module, values, count, sizeof *values);
}

void lp_op_set_strs(lp_module *module, lp_op *op, const char *name, const char *const *values, int32_t count) {
  const char **copy = LP_NEW_ARRAY(module->arena, const char *, count);
  for (int32_t i = 0; i < count; i++)
    copy[i] = lp_arena_strdup(module->arena, values[i]);
  attr_put_list(module, op, name, LP_ATTR_STRS, count)->ss = copy;
}

void lp_op_set_polys(lp_module *module, lp_op *op, const char *name, const lp_poly *const *values, int32_t count) {
  attr_put_list(module, op, name, LP_ATTR_POLYS, count)->polys = list_copy(module, values, count, sizeof *values);
}

void lp_op_set_tensor(lp_module *module, lp_op *op, const char *name, lp_tensor value) {
  attr_put(module, op, name, LP_ATTR_TENSOR)->tensor = value;
}

void lp_op_set_attr(lp_module *module, lp_op *op, const lp_attr *attr) {
  lp_attr *put = attr_put(module, op, attr->name, attr->kind);
  const char *name = put->name;
  *put = *attr;
  put->name = name;
}

/* 0.0 and -0.0 differ, NaNs are equal. */
static bool same_bits(double a, double b) {
  uint64_t x, y;
  memcpy(&x, &a, sizeof x);
  memcpy(&y, &b, sizeof y);
  return x == y;
}

static bool equal_list(const lp_attr *a, const lp_attr *b) {
  if (a->count != b->count) return false;
  for (int32_t i = 0; i < a->count; i++) {
    bool equal = a->kind == LP_ATTR_I64S    ? a->is[i] == b->is[i]
                 : a->kind == LP_ATTR_F64S  ? same_bits(a->fs[i], b->fs[i])
                 : a->kind == LP_ATTR_STRS  ? lp_streq(a->ss[i], b->ss[i])
                 : a->kind == LP_ATTR_POLYS ? lp_poly_equal(a->polys[i], b->polys[i])
                                            : false;
    if (!equal) return false;
  }
  return true;
}

static bool equal_attr(const lp_attr *a, const lp_attr *b) {
  if (a->kind != b->kind || !lp_streq(a->name, b->name)) return false;
  switch (a->kind) {
  case LP_ATTR_BOOL:
    return a->b == b->b;
  case LP_ATTR_I64:
    return a->i == b->i;
  case LP_ATTR_F64:
    return same_bits(a->f, b->f);
  case LP_ATTR_STR:
    return lp_streq(a->s, b->s);
  case LP_ATTR_POLY:
    return lp_poly_equal(a->poly, b->poly);
  case LP_ATTR_TENSOR:
    return a->tensor.bytes == b->tensor.bytes && lp_type_equal(a->tensor.type, b->tensor.type) &&
           memcmp(a->tensor.data, b->tensor.data, a->tensor.bytes) == 0;
  default:
    return equal_list(a, b);
  }
}

bool lp_op_same_attrs(const lp_op *a, const lp_op *b) {
  if (a->attr_count != b->attr_count) return false;
  for (int32_t i = 0; i < a->attr_count; i++)
    if (!equal_attr(&a->attr[i], &b->attr[i])) return false;
  return true;
}
