/* tie-weights: lets a product read an embedding's table where its weight holds the same numbers. Exporters write the
 * head of a model with tied weights as a transposed copy of the table, which would be stored and counted twice. This
 * pass is the only one that reads weights; where they are absent, as when only a plan is wanted, it changes nothing. */
#include "ir/ir.h"
#include "passes/build.h"
#include "passes/passes.h"

enum { WEIGHT = 1, GATE = 4, SCALE = 5, TILE = 32 };

/* A table of an embedding, [rows][columns]. */
typedef struct {
  lp_value *value;
  lp_tensor data;
  int64_t rows, columns;
} table;

/* The bytes of a matrix of whole bytes with two constant sizes; false where it is another value, or cannot be read. */
static bool read_matrix(lp_module *module, lp_value *value, table *out) {
  *out = (table){.value = value};
  if (!value || !lp_value_is_constant(value) || value->type.rank != 2 || lp_dtype_bits(value->type.dtype) % 8 != 0 ||
      !lp_type_static_dim(value->type, 0, &out->rows) || !lp_type_static_dim(value->type, 1, &out->columns))
    return false;
  lp_diag *ignored = lp_diag_create();
  bool read = !lp_weight_blocks(value) && lp_weight_data(module, value, &out->data, ignored) == LP_OK;
  lp_diag_free(ignored);
  size_t bytes = 0;
  return read && out->rows > 0 && out->columns > 0 && lp_size_mul((size_t)out->rows, (size_t)out->columns, &bytes) &&
         lp_size_mul(bytes, (size_t)lp_dtype_bits(value->type.dtype) / 8, &bytes) && out->data.bytes >= bytes;
}

static bool equal_tile(const char *a, const char *b, const table *t, size_t size, int64_t row, int64_t column) {
  for (int64_t i = row; i < row + TILE && i < t->rows; i++)
    for (int64_t j = column; j < column + TILE && j < t->columns; j++)
      if (memcmp(a + (size_t)(i * t->columns + j) * size, b + (size_t)(j * t->rows + i) * size, size) != 0)
        return false;
  return true;
}

/* Tells whether `other`, [columns][rows], is the transpose of the table. */
static bool is_transpose(const table *t, const table *other) {
  size_t size = (size_t)lp_dtype_bits(t->value->type.dtype) / 8;
  if (other->rows != t->columns || other->columns != t->rows) return false;
  for (int64_t row = 0; row < t->rows; row += TILE)
    for (int64_t column = 0; column < t->columns; column += TILE)
      if (!equal_tile(t->data.data, other->data.data, t, size, row, column)) return false;
  return true;
}

static bool is_same(const table *t, const table *other) {
  size_t bytes = (size_t)(t->rows * t->columns) * (size_t)lp_dtype_bits(t->value->type.dtype) / 8;
  return other->rows == t->rows && other->columns == t->columns && memcmp(t->data.data, other->data.data, bytes) == 0;
}

/* Makes a product read the table if its weight equals it. */
static void tie(lp_module *module, lp_op *linear, const table *t) {
  bool transposed = lp_op_bool(linear, "transpose_b", false);
  lp_value *weight = lp_op_in(linear, WEIGHT);
  table other;
  if (lp_op_in(linear, GATE) || lp_op_in(linear, SCALE) || !weight || weight == t->value ||
      weight->type.dtype != t->value->type.dtype || !read_matrix(module, weight, &other) ||
      !(transposed ? is_same(t, &other) : is_transpose(t, &other)))
    return;
  lp_op_set_in(linear, WEIGHT, t->value);
  lp_op_set_bool(module, linear, "transpose_b", true);
}

static void tie_products(lp_module *module, lp_block *block, const lp_op *gather) {
  table t;
  if (lp_op_i64(gather, "axis", 0) != 0 || !read_matrix(module, lp_op_in(gather, 0), &t)) return;
  LP_FOR_OPS(op, block)
    if (op->kind == LP_OP_LINEAR) tie(module, op, &t);
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  (void)context;
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region)
      if (op->kind == LP_OP_GATHER) tie_products(module, func->region, op);
    lp_build_remove_dead(func->region);
    lp_block_renumber(func->region);
  }
  return LP_OK;
}

const lp_pass lp_pass_tie_weights = {
    .name = "tie-weights",
    .summary = "let a product read an embedding's table where its weight holds the same numbers",
    .needs = LP_STATE_LOWERED,
    .makes = LP_STATE_LOWERED,
    .breaks = LP_STATE_ANNOTATED,
    .run = run,
};
