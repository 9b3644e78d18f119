/* Stacks of constants: matrices one after the other, as they lie or transposed, in memory and in files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/ir.h"
#include "tests/suite.h"

enum { PARTS = 3, ROWS = 37, COLUMNS = 70, BEFORE = 8, NUMBERS = PARTS * ROWS * COLUMNS };

static const char pattern[] = "/tmp/llmpart-constants-XXXXXX";
static char folder[sizeof pattern];
static float numbers[NUMBERS];
static lp_module *module;
static lp_diag *diag;

/* The file has BEFORE bytes, then all numbers. */
static void open_test(void) {
  char path[sizeof folder + 2];
  diag = lp_diag_create();
  module = lp_module_create("constants");
  memcpy(folder, pattern, sizeof pattern);
  ck_assert_ptr_nonnull(mkdtemp(folder));
  module->directory = folder;
  for (int i = 0; i < NUMBERS; i++)
    numbers[i] = (float)i;
  snprintf(path, sizeof path, "%s/w", folder);
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite("........", 1, BEFORE, file), BEFORE);
  ck_assert_uint_eq(fwrite(numbers, sizeof *numbers, NUMBERS, file), NUMBERS);
  ck_assert_int_eq(fclose(file), 0);
}

static void close_test(void) {
  char path[sizeof folder + 2];
  snprintf(path, sizeof path, "%s/w", folder);
  unlink(path);
  rmdir(folder);
  lp_module_free(module);
  lp_diag_free(diag);
}

LP_CASE(.setup = open_test, .teardown = close_test);

static lp_type type_of(int32_t rank, const int64_t *dim) {
  return lp_type_static(module, LP_F32, rank, dim);
}

static lp_value *small(lp_type type, int first, int count) {
  lp_tensor tensor = {type, numbers + first, (size_t)count * sizeof *numbers};
  return lp_constant_create(module, LP_LOC_NONE, tensor)->out[0];
}

static lp_value *large(lp_type type, int first, int count) {
  const int64_t bytes = (int64_t)sizeof *numbers;
  return lp_weight_create(module, LP_LOC_NONE, type, "w", BEFORE + first * bytes, count * bytes)->out[0];
}

/* Stacks the parts in the order 2, 0, 1, or the whole. */
static void stacks(lp_value *(*make)(lp_type, int, int), bool whole, bool turned) {
  const int64_t dim[] = {PARTS, ROWS, COLUMNS};
  const int order[] = {2, 0, 1};
  lp_value *parts[PARTS];
  for (int i = 0; i < PARTS; i++)
    parts[i] = whole ? make(type_of(3, dim), 0, NUMBERS)
                     : make(type_of(2, dim + 1), order[i] * ROWS * COLUMNS, ROWS * COLUMNS);
  lp_op *op = lp_constant_stack(module, LP_LOC_NONE, PARTS, parts, whole ? 1 : PARTS, turned);
  ck_assert_ptr_nonnull(op);
  const int64_t wanted[] = {PARTS * (turned ? COLUMNS : ROWS), turned ? ROWS : COLUMNS};
  ck_assert(lp_type_equal(op->out[0]->type, type_of(2, wanted)));
  lp_tensor found;
  ck_assert_int_eq(lp_weight_data(module, op->out[0], &found, diag), LP_OK);
  ck_assert_uint_eq(found.bytes, sizeof numbers);
  for (int64_t part = 0; part < PARTS; part++)
    for (int64_t row = 0; row < ROWS; row++)
      for (int64_t column = 0; column < COLUMNS; column++) {
        const int64_t at = turned ? (part * COLUMNS + column) * ROWS + row : (part * ROWS + row) * COLUMNS + column;
        const int64_t from = ((whole ? part : order[part]) * ROWS + row) * COLUMNS + column;
        ck_assert_float_eq(((const float *)found.data)[at], numbers[from]);
      }
  for (int64_t i = 0; i < PARTS && lp_op_attr(op, "offsets"); i++) {
    lp_value *own = lp_constant_part(module, op->out[0], i, PARTS);
    lp_tensor part;
    ck_assert(own && lp_type_equal(own->type, type_of(2, (const int64_t[]){wanted[0] / PARTS, wanted[1]})));
    ck_assert_int_eq(lp_weight_data(module, own, &part, diag), LP_OK);
    ck_assert_uint_eq(part.bytes, sizeof numbers / PARTS);
    ck_assert_mem_eq(part.data, (const char *)found.data + (size_t)i * part.bytes, part.bytes);
  }
  ck_assert_ptr_null(lp_constant_part(module, op->out[0], 0, PARTS + 1));
  const int64_t some[] = {2, 0};
  lp_value *chosen = lp_constant_select(module, op->out[0], PARTS, some, 2);
  lp_tensor two;
  ck_assert(chosen && lp_type_equal(chosen->type, type_of(2, (const int64_t[]){wanted[0] / PARTS * 2, wanted[1]})));
  ck_assert_int_eq(lp_weight_data(module, chosen, &two, diag), LP_OK);
  ck_assert_uint_eq(two.bytes, sizeof numbers / PARTS * 2);
  for (size_t i = 0; i < LP_COUNT(some); i++)
    ck_assert_mem_eq((const char *)two.data + i * sizeof numbers / PARTS,
                     (const char *)found.data + (size_t)some[i] * sizeof numbers / PARTS, sizeof numbers / PARTS);
  ck_assert_ptr_null(lp_constant_select(module, op->out[0], PARTS * 11, some, 2));
  lp_shards_release(module);
}

LP_LOOP_TEST(stacks_matrices, 0, 8) {
  stacks(_i & 1 ? small : large, _i & 2, _i & 4);
}

/* Parts that follow each other in their file stay one range of it. */
LP_TEST(keeps_one_range) {
  lp_value *whole = large(type_of(3, (const int64_t[]){PARTS, ROWS, COLUMNS}), 0, NUMBERS);
  const lp_op *op = lp_constant_stack(module, LP_LOC_NONE, PARTS, &whole, 1, false);
  ck_assert_ptr_null(lp_op_attr(op, "offsets"));
  ck_assert_int_eq(lp_op_i64(op, "offset", 0), BEFORE);
}

LP_TEST(stacks_vectors) {
  const int64_t dim[] = {2, COLUMNS};
  lp_value *parts[] = {small(type_of(1, dim + 1), COLUMNS, COLUMNS), small(type_of(1, dim + 1), 0, COLUMNS)};
  const lp_op *op = lp_constant_stack(module, LP_LOC_NONE, 2, parts, 2, false);
  lp_tensor found;
  ck_assert(op && lp_type_equal(op->out[0]->type, type_of(2, dim)));
  ck_assert(lp_value_constant(op->out[0], &found));
  ck_assert_mem_eq(found.data, numbers + COLUMNS, COLUMNS * sizeof *numbers);
  ck_assert_mem_eq((const float *)found.data + COLUMNS, numbers, COLUMNS * sizeof *numbers);
}

static void refuses(lp_value *a, lp_value *b, int64_t count, bool turned) {
  ck_assert_ptr_null(lp_constant_stack(module, LP_LOC_NONE, 2, (lp_value *[]){a, b}, count, turned));
}

LP_TEST(refuses_other_constants) {
  const int64_t dim[] = {2, 6}, other[] = {6, 2};
  lp_value *a = small(type_of(2, dim), 0, 12), *b = small(type_of(2, other), 0, 12);
  refuses(a, b, 2, false);
  refuses(a, large(type_of(2, dim), 0, 12), 2, false);
  refuses(a, NULL, 1, false); /* one constant has three axes */
  lp_value *vector = small(type_of(1, dim), 0, 2);
  refuses(vector, vector, 2, true);
  lp_value *packed =
      lp_constant_create(module, LP_LOC_NONE, (lp_tensor){lp_type_static(module, LP_U4, 2, dim), numbers, 6})->out[0];
  refuses(packed, packed, 2, false);
}

LP_TEST(reports_parts_that_do_not_fit) {
  static const char text[] =
      "\"builtin.module\"() ({\n  \"llmpart.func\"() ({\n  ^bb0:\n    %w = \"llmpart.weight\"() {file = \"w\", files = "
      "[\"w\", \"w\"], length = 16 : i64, offset = 8 : i64, offsets = array<i64: 8, 16>, turned = true} : () -> "
      "tensor<3x2xf32>\n    \"llmpart.return\"(%w) : (tensor<3x2xf32>) -> ()\n  }) {sym_name = \"main\"} : () -> ()\n"
      "}) {llmpart.symbols = [\"b\", \"s\", \"p\", \"r\", \"c\", \"t\"]} : () -> ()\n";
  lp_module *parsed;
  lp_tensor found;
  ck_assert_int_eq(lp_module_parse("test", text, sizeof text - 1, &parsed, diag), LP_OK);
  parsed->directory = folder;
  const lp_value *w = lp_op_in(lp_block_terminator(lp_module_find_func(parsed, "main")->region), 0);
  ck_assert_int_ne(lp_weight_data(parsed, w, &found, diag), LP_OK);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  lp_module_free(parsed);
}
