/* What decompose makes of norms and of moves between depth and space has the values that ONNX says. */
#include <math.h>
#include <stdlib.h>

#include "passes/passes.h"
#include "tests/ir/op_text.h"
#include "tests/suite.h"

enum { MOST_VALUES = 8 };

static int64_t count_of(const lp_array *array) {
  int64_t count = 1;
  for (int32_t i = 0; i < array->rank; i++)
    count *= array->dim[i];
  return count;
}

static double element(const lp_array *array, int64_t index) {
  const lp_tensor tensor = {.type = {.dtype = array->dtype}, .data = array->data};
  return lp_tensor_f64(&tensor, index);
}

/* Floats between -1 and 1, the same in each run; integers are 0. */
static lp_array make_input(lp_arena *arena, lp_type type, uint64_t seed) {
  lp_array array = {.dtype = type.dtype, .rank = type.rank};
  for (int32_t i = 0; i < type.rank; i++)
    ck_assert(lp_type_static_dim(type, i, &array.dim[i]));
  int64_t count = count_of(&array);
  array.data = lp_arena_alloc(arena, (size_t)count * 8 + 1);
  for (int64_t i = 0; i < count && lp_dtype_is_float(type.dtype); i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    lp_array_set_f64(&array, i, (double)(seed >> 11) / 4503599627370496.0 - 1);
  }
  return array;
}

/* Computes the function's first result from inputs, which it makes. */
static lp_status evaluate(lp_module *module, lp_arena *arena, lp_array *in, lp_array *out, lp_diag *diag) {
  const lp_block *block = lp_module_find_func(module, "main")->region;
  int64_t sym[16] = {0};
  lp_binding bindings[MOST_VALUES];
  for (int32_t i = 0; i < block->arg_count; i++) {
    in[i] = make_input(arena, block->arg[i]->type, (uint64_t)i + 7);
    bindings[i] = (lp_binding){block->arg[i], in[i]};
  }
  return lp_value_eval(module, lp_op_in(lp_block_terminator(block), 0), bindings, (size_t)block->arg_count, sym, arena,
                       out, diag);
}

/* ---- what ONNX says ---------------------------------------------------------------------------------------------- */

/* The value of result element `i`, by the operator's numbers. */
typedef double oracle(const lp_array *in, const int64_t *number, int64_t i);

/* x [n][c][rest], a scale and a bias for each channel; groups of c. */
static double normalised(const lp_array *in, const int64_t *number, int64_t i) {
  const int64_t channels = in[0].dim[1], groups = number[0] ? number[0] : channels;
  const int64_t rest = count_of(&in[0]) / in[0].dim[0] / channels, size = channels / groups * rest,
                first = i / size * size;
  double mean = 0, variance = 0;
  for (int64_t k = 0; k < size; k++)
    mean += element(&in[0], first + k) / (double)size;
  for (int64_t k = 0; k < size; k++)
    variance += pow(element(&in[0], first + k) - mean, 2) / (double)size;
  const int64_t channel = i / rest % channels;
  return (element(&in[0], i) - mean) / sqrt(variance + 1e-5) * element(&in[1], channel) + element(&in[2], channel);
}

/* p, and the axis of a matrix. */
static double by_norm(const lp_array *in, const int64_t *number, int64_t i) {
  const int64_t columns = in[0].dim[1], row = i / columns, column = i % columns;
  double sum = 0;
  for (int64_t k = 0; k < in[0].dim[number[1]]; k++)
    sum += pow(fabs(element(&in[0], number[1] == 0 ? k * columns + column : row * columns + k)), (double)number[0]);
  return element(&in[0], i) / (number[0] == 1 ? sum : sqrt(sum));
}

/* x [n][c][h][w] to [n][c / b^2][h b][w b]: the block's place comes first in the depth, or with `last` last. */
static double spread(const lp_array *in, const int64_t *number, int64_t i) {
  const int64_t b = number[0], last = number[1], h = in[0].dim[2], w = in[0].dim[3], depth = in[0].dim[1] / (b * b);
  const int64_t x = i % (w * b), y = i / (w * b) % (h * b), c = i / (w * b * h * b) % depth,
                n = i / (w * b * h * b * depth);
  const int64_t place = y % b * b + x % b, channel = last ? c * b * b + place : place * depth + c;
  return element(&in[0], ((n * in[0].dim[1] + channel) * h + y / b) * w + x / b);
}

static double gathered(const lp_array *in, const int64_t *number, int64_t i) {
  const int64_t b = number[0], c = in[0].dim[1], h = in[0].dim[2] / b, w = in[0].dim[3] / b, depth = c * b * b;
  const int64_t x = i % w, y = i / w % h, channel = i / (w * h) % depth, n = i / (w * h * depth);
  const int64_t place = channel / c, from = channel % c;
  return element(&in[0], ((n * c + from) * h * b + y * b + place / b) * w * b + x * b + place % b);
}

static double diagonal(const lp_array *in, const int64_t *number, int64_t i) {
  return i % in[0].dim[1] == i / in[0].dim[1] + number[0];
}

/* x [time][2][rest], of which the first number[sequence] steps of a sequence are turned round. */
static double turned(const lp_array *in, const int64_t *number, int64_t i) {
  const int64_t rest = in[0].dim[2], row = 2 * rest, t = i / row, length = number[i / rest % 2];
  return element(&in[0], t < length ? (length - 1 - t) * row + i % row : i);
}

static const struct {
  op_row row;
  oracle *wanted;
  int64_t number[2];
} rows[] = {
    {{"onnx.InstanceNormalization", "", "f32 2,6,5; f32 6; f32 6", "f32 2,6,5", NULL}, normalised, {0}},
    {{"onnx.InstanceNormalization", "", "f32 2,6,3,2; f32 6; f32 6", "f32 2,6,3,2", NULL}, normalised, {0}},
    {{"onnx.GroupNormalization", "num_groups = 3 : i64", "f32 2,6,5; f32 6; f32 6", "f32 2,6,5", NULL},
     normalised,
     {3}},
    {{"onnx.GroupNormalization", "num_groups = 1 : i64", "f32 2,6,2,2; f32 6; f32 6", "f32 2,6,2,2", NULL},
     normalised,
     {1}},
    {{"onnx.LpNormalization", "p = 1 : i64", "f32 2,6", "f32 2,6", NULL}, by_norm, {1, 1}},
    {{"onnx.LpNormalization", "p = 2 : i64", "f32 2,6", "f32 2,6", NULL}, by_norm, {2, 1}},
    {{"onnx.LpNormalization", "p = 2 : i64, axis = 0 : i64", "f32 2,6", "f32 2,6", NULL}, by_norm, {2, 0}},
    {{"onnx.DepthToSpace", "blocksize = 2 : i64", "f32 2,8,3,5", "f32 2,2,6,10", NULL}, spread, {2, 0}},
    {{"onnx.DepthToSpace", "blocksize = 2 : i64, mode = \"CRD\"", "f32 2,8,3,5", "f32 2,2,6,10", NULL}, spread, {2, 1}},
    {{"onnx.SpaceToDepth", "blocksize = 2 : i64", "f32 2,3,6,4", "f32 2,12,3,2", NULL}, gathered, {2}},
    {{"onnx.ReverseSequence", "", "f32 4,2,3; k i64 2=3,1", "f32 4,2,3", NULL}, turned, {3, 1}},
    {{"onnx.ReverseSequence", "", "f32 4,2,3; k i64 2=2,4", "f32 4,2,3", NULL}, turned, {2, 4}},
    {{"onnx.EyeLike", "", "f32 4,6", "f32 4,6", NULL}, diagonal, {0}},
    {{"onnx.EyeLike", "k = 1 : i64", "f32 4,6", "f32 4,6", NULL}, diagonal, {1}},
    {{"onnx.EyeLike", "k = -2 : i64", "f32 6,4", "f32 6,4", NULL}, diagonal, {-2}},
};
static size_t now; /* the row whose module `compare` has */

static lp_status compare(lp_module *module, lp_diag *diag) {
  const lp_run_options quiet = {0};
  lp_arena *arena = lp_arena_create();
  lp_array in[MOST_VALUES], out;
  lp_status status = lp_passes_run(module, "decompose", NULL, &quiet, diag);
  if (status == LP_OK) status = evaluate(module, arena, in, &out, diag);
  for (int64_t i = 0; status == LP_OK && i < count_of(&out); i++) {
    const double wanted = rows[now].wanted(in, rows[now].number, i), found = element(&out, i);
    ck_assert_msg(fabs(found - wanted) <= 2e-5, "%s {%s}: element %d is %g, should be %g", rows[now].row.op,
                  rows[now].row.attrs, (int)i, found, wanted);
  }
  lp_arena_free(arena);
  return status;
}

LP_TEST(operators_of_the_standard) {
  for (now = 0; now < LP_COUNT(rows); now++)
    op_check_rows(&rows[now].row, 1, compare);
}
