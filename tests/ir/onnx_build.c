#include "tests/ir/onnx_build.h"
#include "base/poly.h"

#include <stdlib.h>
#include <string.h>

lp_module *test_module;
lp_diag *test_diag;
lp_block *test_block;
static lp_attr pending[8];
static int pending_count;

void test_open(void) {
  test_module = lp_module_create("test");
  test_diag = lp_diag_create();
  test_block = lp_module_add_func(test_module, "main", 0, NULL)->region;
  pending_count = 0;
}

void test_close(void) {
  lp_module_free(test_module);
  lp_diag_free(test_diag);
}

static lp_type type_of(lp_dtype dtype, const char *dims) {
  const lp_poly *dim[LP_MAX_RANK];
  int32_t rank = 0;
  char *copy = lp_strdup(dims), *state = NULL;
  for (char *word = strtok_r(copy, ",", &state); word; word = strtok_r(NULL, ",", &state))
    ck_assert_int_eq(lp_poly_parse(test_module->arena, &test_module->symbols, word, &dim[rank++], NULL, LP_LOC_NONE),
                     LP_OK);
  free(copy);
  return lp_type_make(test_module, dtype, rank, dim);
}

lp_value *test_arg(lp_dtype dtype, const char *dims) {
  return lp_block_add_arg(test_block, type_of(dtype, dims));
}

static lp_value *constant(lp_type type, const void *data, size_t bytes) {
  lp_tensor tensor = {.type = type, .data = lp_arena_copy(test_module->arena, data, bytes), .bytes = bytes};
  lp_op *op = lp_constant_create(test_module, LP_LOC_NONE, tensor);
  lp_op_append(test_block, op);
  return op->out[0];
}

lp_value *test_ints(int count, const int64_t *values) {
  int64_t dim = count;
  lp_type type = lp_type_static(test_module, LP_I64, count < 0 ? 0 : 1, &dim);
  return constant(type, values, (size_t)(count < 0 ? 1 : count) * sizeof(int64_t));
}

lp_value *test_floats(const char *dims, const float *values) {
  lp_type type = type_of(LP_F32, dims);
  int64_t count = 0;
  ck_assert(lp_type_static_numel(type, &count));
  return constant(type, values, (size_t)count * sizeof(float));
}

/* ---- operators ---- */

void with_i64(const char *name, int64_t value) {
  pending[pending_count++] = (lp_attr){.name = name, .kind = LP_ATTR_I64, .i = value};
}

void with_f64(const char *name, double value) {
  pending[pending_count++] = (lp_attr){.name = name, .kind = LP_ATTR_F64, .f = value};
}

void with_str(const char *name, const char *value) {
  pending[pending_count++] = (lp_attr){.name = name, .kind = LP_ATTR_STR, .s = value};
}

void with_i64s(const char *name, int count, const int64_t *values) {
  const int64_t *copy = lp_arena_copy(test_module->arena, values, (size_t)count * sizeof(int64_t));
  pending[pending_count++] = (lp_attr){.name = name, .kind = LP_ATTR_I64S, .count = count, .is = copy};
}

lp_op *test_node(lp_kind kind, int out_count, int in_count, lp_value *const *in) {
  lp_type unknown[8];
  for (int i = 0; i < 8; i++)
    unknown[i] = (lp_type){.rank = -1};
  lp_op *op = lp_op_create(test_module, kind, (lp_loc){.file = "t", .node = "n"}, in_count, in, out_count, unknown);
  for (int i = 0; i < pending_count; i++)
    lp_op_set_attr(test_module, op, &pending[i]);
  pending_count = 0;
  lp_op_append(test_block, op);
  if (lp_op_infer(test_module, op, test_diag) == LP_OK) return op;
  lp_op_erase(op);
  return NULL;
}

/* ---- expectations ---- */

lp_value *of(lp_op *op) {
  ck_assert_msg(op, "%s", lp_diag_count(test_diag) > 0 ? lp_diag_get(test_diag, 0)->text : "refused");
  return op->out[0];
}

static void print_plain(const lp_poly *poly, lp_buf *out) {
  lp_buf text = {0};
  lp_poly_print(poly, &test_module->symbols, &text);
  for (const char *c = lp_buf_text(&text); *c; c++)
    if (*c != ' ') lp_buf_append(out, c, 1);
  lp_buf_free(&text);
}

void gives_at(lp_op *op, int index, const char *type) {
  lp_buf text = {0};
  (void)of(op);
  lp_type found = op->out[index]->type;
  lp_buf_printf(&text, "%s[", lp_dtype_name(found.dtype));
  for (int32_t i = 0; i < found.rank; i++) {
    if (i > 0) lp_buf_puts(&text, ",");
    print_plain(found.dim[i], &text);
  }
  lp_buf_puts(&text, "]");
  ck_assert_str_eq(lp_buf_text(&text), type);
  lp_buf_free(&text);
}

void gives(lp_op *op, const char *type) {
  gives_at(op, 0, type);
}

void knows(lp_op *op, const char *elements) {
  const lp_value *value = of(op);
  lp_buf text = {0};
  if (!value->known) lp_buf_puts(&text, "?");
  for (int32_t i = 0; value->known && i < value->known_count; i++) {
    if (i > 0) lp_buf_puts(&text, " ");
    print_plain(value->known[i], &text);
  }
  ck_assert_str_eq(lp_buf_text(&text), elements);
  lp_buf_free(&text);
}

void refuses(const lp_op *op, const char *text) {
  ck_assert_msg(!op, "accepted, wanted: %s", text);
  ck_assert_uint_eq(lp_diag_error_count(test_diag), 1);
  const char *found = lp_diag_get(test_diag, 0)->text;
  ck_assert_msg(strstr(found, text), "found '%s', wanted '%s'", found, text);
  lp_diag_clear(test_diag);
}
