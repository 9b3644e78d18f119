/* The reference interpreter, on numbers worked out by hand: moves, arithmetic, dtypes, op.* operators, and its
 * refusals. The standard's operators are also run against the packaged node tests (tests/frontend/test_models.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ir/onnx_build.h"
#include "tests/suite.h"

static lp_arena *arena;
static int64_t sym[16];

static void open_test(void) {
  test_open();
  arena = lp_arena_create();
  memset(sym, 0, sizeof sym);
}

static void close_test(void) {
  lp_arena_free(arena);
  test_close();
}

LP_CASE(.setup = open_test, .teardown = close_test);

static lp_array evaluate(lp_value *value, size_t count, const lp_binding *bindings) {
  lp_array out;
  lp_status status = lp_value_eval(test_module, value, bindings, count, sym, arena, &out, test_diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(test_diag) ? lp_diag_get(test_diag, 0)->text : "failed");
  return out;
}

static double at(const lp_array *array, int64_t index) {
  lp_tensor tensor = {.type = {.dtype = array->dtype}, .data = array->data};
  return lp_tensor_f64(&tensor, index);
}

/* The elements, separated by spaces. */
static void is_array(const lp_array *array, const char *wanted) {
  lp_buf text = {0};
  int64_t count = 1;
  for (int32_t i = 0; i < array->rank; i++)
    count *= array->dim[i];
  for (int64_t i = 0; i < count; i++)
    lp_buf_printf(&text, "%s%.6g", i ? " " : "", at(array, i));
  ck_assert_str_eq(lp_buf_text(&text), wanted);
  lp_buf_free(&text);
}

static void is(lp_value *value, const char *wanted) {
  lp_array found = evaluate(value, 0, NULL);
  is_array(&found, wanted);
}

static void fails(lp_value *value, const char *text) {
  lp_array out;
  ck_assert_int_eq(lp_value_eval(test_module, value, NULL, 0, sym, arena, &out, test_diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(test_diag), 1);
  ck_assert_msg(strstr(lp_diag_get(test_diag, 0)->text, text), "found '%s'", lp_diag_get(test_diag, 0)->text);
  lp_diag_clear(test_diag);
}

static lp_value *floats(const char *dims, ...) {
  float values[64] = {0};
  va_list args;
  va_start(args, dims);
  for (int i = 0; i < 64; i++) {
    double value = va_arg(args, double);
    if (isnan(value)) break;
    values[i] = (float)value;
  }
  va_end(args);
  return test_floats(dims, values);
}
#define FLOATS(dims, ...) floats(dims, __VA_ARGS__, (double)NAN)

/* An op.* operator of the given result type; its attributes are set by the caller. */
static lp_op *operator(lp_kind kind, lp_dtype dtype, const char *dims, int count, lp_value *const *in) {
  lp_type type = test_arg(dtype, dims)->type;
  lp_op *op = lp_op_create(test_module, kind, (lp_loc){.node = "n"}, count, in, 1, &type);
  lp_op_append(test_block, op);
  return op;
}

/* ---- onnx ---- */

LP_TEST(arithmetic) {
  is(of(NODE(Add, FLOATS("2,1", 1., 2.), FLOATS("3", 10., 20., 30.))), "11 21 31 12 22 32");
  is(of(NODE(Div, INTS(-7, 7), INT(2))), "-3 3");
  is(of(NODE(Mod, INTS(-7, 7), INT(3))), "2 1");
  with_i64("fmod", 1);
  is(of(NODE(Mod, INTS(-7, 7), INT(3))), "-1 1");
  is(of(NODE(Pow, FLOATS("2", 2., 3.), INT(2))), "4 9");
  is(of(NODE(Where, of(NODE(Less, INTS(1, 5), INT(3))), INT(-1), INTS(7, 8))), "-1 8");
  is(of(NODE(Mean, FLOATS("2", 1., 2.), FLOATS("2", 3., 6.))), "2 4");
  is(of(NODE(Clip, FLOATS("3", -1., 0.5, 2.), NULL, FLOATS("", 1.))), "-1 0.5 1");
  is(of(NODE(Round, FLOATS("4", 0.5, 1.5, -0.5, 2.5))), "0 2 -0 2");
  fails(of(NODE(Div, INTS(1), INTS(0))), "division by zero");
  fails(of(NODE(Div, INTS(8, 6), INTS(2, 0))), "division by zero");
  fails(of(NODE(Mod, INTS(1), INTS(0))), "division by zero");
  is(of(NODE(Div, FLOATS("2", 1., -1.), FLOATS("1", 0.))), "inf -inf");
  is(of(NODE(Mul, INTS(3, 4), INTS(0, 1))), "0 4"); /* only divisions mind a zero */
}

LP_TEST(bits) {
  with_str("direction", "LEFT");
  is(of(NODE(BitShift, INTS(1, 3, -1), INTS(2, 64, 1))), "4 0 -2");
  with_str("direction", "RIGHT");
  is(of(NODE(BitShift, INTS(9, -9), INTS(1, 70))), "4 -1");
  is(of(NODE(BitwiseXor, INTS(12, 10), INT(6))), "10 12");
  is(of(NODE(BitwiseNot, INTS(0, 5))), "-1 -6");
  with_i64("to", 6);
  is(of(NODE(BitCast, FLOATS("1", 1.))), "1.06535e+09");
}

LP_TEST(activations) {
  is(of(NODE(Sigmoid, FLOATS("1", 0.))), "0.5");
  is(of(NODE(Gelu, FLOATS("2", 0., 1.))), "0 0.841345");
  with_str("approximate", "tanh");
  is(of(NODE(Gelu, FLOATS("1", 1.))), "0.841192");
  with_f64("alpha", 2);
  is(of(NODE(Swish, FLOATS("1", 1.))), "0.880797");
  is(of(NODE(Softplus, FLOATS("2", 100., -100.))), "100 3.78351e-44");
  is(of(NODE(HardSwish, FLOATS("2", 1., -4.))), "0.666667 -0");
  is(of(NODE(ThresholdedRelu, FLOATS("3", 0.5, 1., 1.5))), "0 0 1.5");
  lp_value *zero_one = FLOATS("2", 0., 1.), *nan_one = of(NODE(Div, zero_one, zero_one));
  is(of(NODE(IsNaN, of(NODE(ThresholdedRelu, nan_one)))), "1 0");
  lp_value *low = of(NODE(Less, INTS(1, 2, 3, 4), INT(3))),
           *even = of(NODE(Equal, of(NODE(Mod, INTS(1, 2, 3, 4), INT(2))), INT(0)));
  is(of(NODE(And, low, even)), "0 1 0 0");
  is(of(NODE(Or, low, even)), "1 1 0 1");
  is(of(NODE(Xor, low, even)), "1 0 0 1");
  is(of(NODE(ReduceL1, INTS(-3, 4, -5))), "12");
  with_f64("bias", 0.25);
  is(of(NODE(Shrink, FLOATS("3", -1., 0.5, 1.))), "-0.75 0 0.75");
  is(of(NODE(Asinh, FLOATS("2", -1., 0.))), "-0.881374 0");
  is(of(NODE(Acosh, FLOATS("1", 2.))), "1.31696");
  is(of(NODE(Atanh, FLOATS("1", 0.5))), "0.549306");
}

/* TensorProto.DataType: 3 int8, 9 bool, 10 float16, 16 bfloat16 */
LP_TEST(casts) {
  lp_value *x = FLOATS("4", 1.75, -2.5, 300., 0.);
  with_i64("to", 7);
  is(of(NODE(Cast, x)), "1 -2 300 0");
  with_i64("to", 3);
  is(of(NODE(Cast, INTS(300, -1))), "44 -1");
  with_i64("to", 9);
  is(of(NODE(Cast, x)), "1 1 1 0");
  with_i64("to", 10);
  is(of(NODE(Cast, FLOATS("1", 0.1))), "0.0999756");
  with_i64("to", 16);
  is(of(NODE(Cast, FLOATS("1", 0.1))), "0.100098");
  with_i64("to", 7);
  is(of(NODE(Cast, FLOATS("2", 1e30, -1e30))), "9.22337e+18 -9.22337e+18");
  with_i64("to", 17);
  is(of(NODE(Cast, FLOATS("3", 500., -500., 0.3))), "448 -448 0.3125");
  with_i64("to", 17);
  with_i64("saturate", 0);
  is(of(NODE(Cast, FLOATS("2", 500., 448.))), "nan 448");
  with_i64("to", 24);
  with_str("round_mode", "down");
  is(of(NODE(Cast, FLOATS("2", 3., 5.))), "2 4");
  with_i64("to", 22);
  is(of(NODE(Cast, FLOATS("3", -8., -9., 7.5))), "-8 7 7");
}

LP_TEST(moves) {
  static const int64_t perm[] = {1, 0};
  lp_value *x = INTS(0, 1, 2, 3, 4, 5), *m = of(NODE(Reshape, x, INTS(2, 3)));
  with_i64s("perm", 2, perm);
  is(of(NODE(Transpose, m)), "0 3 1 4 2 5");
  with_i64("axis", 1);
  is(of(NODE(Gather, m, INTS(-1, 0))), "2 0 5 3");
  is(of(NODE(Slice, m, INTS(-1), INTS(INT64_MIN), INTS(1), INTS(-2))), "2 0 5 3");
  is(of(NODE(Slice, x, INTS(1), INTS(100), INTS(0), INTS(2))), "1 3 5");
  with_i64("axis", 1);
  is(of(NODE(Concat, m, m)), "0 1 2 0 1 2 3 4 5 3 4 5");
  is(of(NODE(Tile, INTS(1, 2), INTS(2))), "1 2 1 2");
  is(of(NODE(Expand, INTS(1, 2), INTS(2, 1))), "1 2 1 2");
  with_str("mode", "reflect");
  is(of(NODE(Pad, INTS(1, 2, 3), INTS(2, 1))), "3 2 1 2 3 2");
  is(of(NODE(Pad, INTS(1, 2, 3), INTS(-1, 2), INT(9))), "2 3 9 9");
  lp_value *square = of(NODE(Reshape, INTS(1, 2, 3, 4), INTS(2, 2)));
  with_i64("upper", 0);
  is(of(NODE(Trilu, square)), "1 0 3 4");
  fails(of(NODE(Gather, test_floats("2", (const float[]){1, 2}), INTS(2))), "index 2 into an axis of 2");
}

/* Pads that go around the vector more than once. */
LP_TEST(pads_longer_than_the_vector) {
  static const struct {
    const char *mode, *wanted;
  } rows[] = {{"reflect", "1 2 3 2 1 2 3 2 1 2 3 2"},
              {"wrap", "3 1 2 3 1 2 3 1 2 3 1 2"},
              {"edge", "1 1 1 1 1 2 3 3 3 3 3 3"},
              {"constant", "0 0 0 0 1 2 3 0 0 0 0 0"}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    with_str("mode", rows[i].mode);
    is(of(NODE(Pad, INTS(1, 2, 3), INTS(4, 5))), rows[i].wanted);
  }
}

/* The dimensions from `start` to `end`, each from the end if it is negative, and clamped. */
LP_TEST(shapes) {
  static const struct {
    int64_t start, end;
    const char *wanted;
  } rows[] = {{0, 3, "2 3 4"}, {1, 3, "3 4"},   {0, 1, "2"},      {-1, 3, "4"}, {-2, -1, "3"},
              {0, -1, "2 3"},  {0, 9, "2 3 4"}, {-9, 2, "2 3"},   {2, 1, ""},   {3, 3, ""},
              {9, 12, ""},     {-3, -3, ""},    {-3, 3, "2 3 4"}, {0, -9, ""},  {1, -1, "3"}};
  const float zeros[2 * 3 * 4] = {0};
  lp_value *x = test_floats("2,3,4", zeros);
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    with_i64("start", rows[i].start);
    with_i64("end", rows[i].end);
    is(of(NODE(Shape, x)), rows[i].wanted);
  }
}

LP_TEST(places) {
  is(of(NODE(NonZero, of(NODE(Reshape, INTS(0, 5, 7, 0), INTS(2, 2))))), "0 1 1 0");
  is(of(NODE(NonZero, INTS(0, 0))), "");
}

LP_TEST(scatters) {
  lp_value *x = INTS(1, 2, 3), *at = of(NODE(Unsqueeze, INTS(-1, 0), INTS(1)));
  is(of(NODE(ScatterND, x, at, INTS(8, 9))), "9 2 8");
  with_str("reduction", "add");
  is(of(NODE(ScatterND, x, at, INTS(8, 9))), "10 2 11");
  is(of(NODE(ScatterElements, x, INTS(1), INTS(7))), "1 7 3");
  with_str("reduction", "max");
  is(of(NODE(ScatterElements, x, INTS(0, 0, 0), INTS(7, 9, 8))), "9 2 3");
  with_str("reduction", "mul");
  is(of(NODE(ScatterND, x, at, INTS(8, 9))), "9 2 24");
  with_str("reduction", "min");
  lp_value *nan = of(NODE(Div, FLOATS("1", 0.), FLOATS("1", 0.)));
  is(of(NODE(IsNaN, of(NODE(ScatterElements, FLOATS("2", 1., 2.), INTS(0), nan)))), "1 0");
  lp_value *updates = FLOATS("1", 1.), *too_far = of(NODE(Unsqueeze, INTS(5), INTS(1)));
  fails(of(NODE(ScatterND, FLOATS("2", 1., 2.), too_far, updates)), "index 5 into an axis of 2");
}

LP_TEST(reductions) {
  lp_value *x = of(NODE(Reshape, FLOATS("4", 1., 2., 3., 4.), INTS(2, 2)));
  is(of(NODE(ReduceMean, x, INTS(0))), "2 3");
  is(of(NODE(ReduceL2, x, INTS(1))), "2.23607 5");
  is(of(NODE(ReduceLogSumExp, x)), "4.44019");
  with_i64("axis", 1);
  is(of(NODE(ArgMax, x)), "1 1");
  with_i64("exclusive", 1);
  with_i64("reverse", 1);
  is(of(NODE(CumSum, x, INT(1))), "2 0 4 0");
  with_i64("axis", 1);
  is(of(NODE(Softmax, of(NODE(Mul, x, FLOATS("", 0.))))), "0.5 0.5 0.5 0.5");
}

LP_TEST(along_an_axis) {
  is(of(NODE(ReduceLogSum, FLOATS("1,2", 1., 2.))), "1.09861");
  is(of(NODE(ReduceMax, test_ints(0, (const int64_t[]){0}))), "-9.22337e+18");
  is(of(NODE(ReduceProd, INTS(3, -5))), "-15");
  is(of(NODE(ArgMin, INTS(4, 2, 2))), "1");
  with_i64("select_last_index", 1);
  is(of(NODE(ArgMin, INTS(4, 2, 2))), "2");
  is(of(NODE(CumProd, INTS(2, 3, 4), INT(0))), "2 6 24");
  with_i64("exclusive", 1);
  with_i64("reverse", 1);
  is(of(NODE(CumProd, FLOATS("3", 2., 3., 4.), INT(0))), "12 4 1");
  is(of(NODE(Hardmax, FLOATS("2,3", 1., 5., 5., 0., -1., -2.))), "0 1 0 1 0 0");
}

LP_TEST(greatest) {
  lp_op *op = NODES(TopK, 2, INTS(3, 7, 5, 7), INTS(3));
  is(op->out[0], "7 7 5");
  is(op->out[1], "1 3 2");
  lp_value *nan = of(NODE(Div, FLOATS("3,2", 4., 0., 2., 1., 2., -0.), FLOATS("3,2", 1., 0., 1., 1., 1., 1.)));
  with_i64("largest", 0);
  with_i64("axis", 0);
  op = NODES(TopK, 2, nan, INTS(3));
  is(op->out[1], "1 2 2 1 0 0");
  with_i64("axis", 0);
  is(NODES(TopK, 2, nan, INTS(1))->out[1], "0 0");
  is(NODES(TopK, 2, INTS(3, 7), INTS(0))->out[0], "");
}

LP_TEST(convolution) {
  static const int64_t pads[] = {1, 1}, twos[] = {2};
  lp_value *x = FLOATS("1,2,3", 1., 2., 3., 4., 5., 6.), *w = FLOATS("1,2,2", 1., 2., 3., 4.);
  is(of(NODE(Conv, x, w, FLOATS("1", 0.5))), "37.5 47.5");
  with_i64s("pads", 2, pads);
  with_i64s("dilations", 1, twos);
  is(of(NODE(Conv, x, w)), "24 43 17");
  with_i64("group", 2);
  is(of(NODE(Conv, x, FLOATS("2,1,2", 1., 2., 3., 4.))), "5 8 32 39");
  lp_value *in[] = {FLOATS("5", 0., 1., 2., 3., 4.)};
  lp_op *op = operator(LP_OP_WINDOWS, LP_F32, "2,2", 1, in);
  lp_op_set_i64s(test_module, op, "window", twos, 1);
  lp_op_set_i64s(test_module, op, "steps", twos, 1);
  lp_op_set_i64s(test_module, op, "dilations", twos, 1);
  is(op->out[0], "0 2 2 4");
}

LP_TEST(norms) {
  lp_value *x = FLOATS("1,2", 1., 3.), *w = FLOATS("2", 2., 2.);
  with_f64("epsilon", 0);
  is(of(NODE(LayerNormalization, x, w)), "-2 2");
  with_f64("epsilon", 0);
  is(of(NODE(RMSNormalization, x, w)), "0.894427 2.68328");
  /* Rows of their own, an epsilon, and numbers that differ along the row. */
  lp_value *rows = FLOATS("2,2", 1., 3., 2., 6.), *scale = FLOATS("2", 2., 3.), *bias = FLOATS("2", 10., 20.);
  with_f64("epsilon", 3);
  is(of(NODE(LayerNormalization, rows, scale, bias)), "9 21.5 8.48814 22.2678");
  with_f64("epsilon", 4);
  is(of(NODE(RMSNormalization, rows, scale)), "0.666667 3 0.816497 3.67423");
  with_i64("axis", 0);
  with_f64("epsilon", 0);
  is(of(NODE(RMSNormalization, rows, FLOATS("2,2", 1., 2., 3., 4.))), "0.282843 1.69706 1.69706 6.78823");
}

/* Two keys, one query that sees only the first. */
LP_TEST(attention) {
  lp_value *q = FLOATS("1,1,1,1", 1.), *k = FLOATS("1,1,2,1", 1., 5.), *v = FLOATS("1,1,2,1", 10., 20.);
  with_i64("is_causal", 1);
  is(of(NODE(Attention, q, k, v)), "10");
  with_i64("is_causal", 1);
  with_i64("bottom_right", 1);
  with_f64("scale", 0);
  is(of(NODE(Attention, q, k, v)), "15");
  with_f64("scale", 0);
  is(of(NODE(Attention, q, k, v, of(NODE(Equal, INTS(1, 0), INT(0))))), "20");
  lp_op *op;
  with_i64("is_causal", 1);
  with_f64("scale", 0);
  op = NODES(Attention, 2, q, q, q, NULL, k, v);
  is(of(op), "10.3333");
  is(op->out[1], "1 5 1");
}

/* Scores of one query are 1 and 5; masked and capped ones, windows, lengths, sinks. */
LP_TEST(attention_forms) {
  lp_value *q = FLOATS("1,1,1,1", 1.), *k = FLOATS("1,1,2,1", 1., 5.), *v = FLOATS("1,1,2,1", 10., 20.);
  lp_value *mask = FLOATS("1,2", 0., 1.), *absent = NULL;
  static const char *const modes[] = {"1 5", "1 5", "1 6", "0.00669285 0.993307"};
  for (int64_t mode = 0; mode < 4; mode++) {
    with_i64("qk_matmul_output_mode", mode);
    is(NODES(Attention, 4, q, k, v, mask)->out[3], modes[mode]);
  }
  with_i64("qk_matmul_output_mode", 1);
  with_f64("softcap", 1);
  is(NODES(Attention, 4, q, k, v, mask)->out[3], "0.761594 0.999909");
  with_i64("right_window_size", 0);
  is(of(NODE(Attention, q, k, v)), "10");
  with_i64("left_window_size", 0);
  is(of(NODE(Attention, q, k, v, absent, absent, absent, INTS(2))), "20"); /* the query is at the second key */
  is(of(NODE(Attention, q, k, v, absent, absent, absent, INTS(1))), "10");
  with_f64("scale", 0);
  is(of(NODE(Attention, q, k, v, absent, absent, absent, absent, FLOATS("1", 0.))), "10"); /* 30 over three */
}

/* One head of two: the state is the sum of the outer products of keys and values; a result reads it by its query. */
LP_TEST(recurrences) {
  lp_value *q = FLOATS("1,2,2", 1., 2., 1., -1.), *k = FLOATS("1,2,2", 3., 4., 1., 2.),
           *v = FLOATS("1,2,2", 5., 7., 10., 20.);
  with_i64("q_num_heads", 1);
  with_i64("kv_num_heads", 1);
  with_str("update_rule", "linear");
  with_f64("scale", 1);
  lp_op *op = NODES(LinearAttention, 2, q, k, v);
  is(op->out[0], "55 77 -15 -27");
  is(op->out[1], "25 41 40 68");
  with_i64("q_num_heads", 1);
  with_i64("kv_num_heads", 1);
  with_str("update_rule", "linear");
  with_f64("scale", 0.5);
  op = NODES(LinearAttention, 2, q, k, v, FLOATS("1,1,2,2", 1., 2., 3., 4.)); /* on a state */
  is(op->out[0], "31 43.5 -8.5 -14.5");
  is(op->out[1], "26 43 43 72");
}

LP_TEST(rotates) {
  lp_value *x = FLOATS("1,1,1,4", 1., 2., 3., 4.), *c = FLOATS("1,1,2", 0., 1.), *s = FLOATS("1,1,2", 1., 0.);
  is(of(NODE(RotaryEmbedding, x, c, s)), "-3 2 1 4");
  with_i64("interleaved", 1);
  is(of(NODE(RotaryEmbedding, x, c, s)), "-2 1 3 4");
}

/* ---- op.* ---- */

LP_TEST(linear) {
  lp_value *x = FLOATS("1,2", 1., 2.), *w = FLOATS("2,2", 1., 2., 3., 4.), *bias = FLOATS("2", -20., 1.);
  lp_value *plain[] = {x, w, bias}, *gated[] = {x, w, NULL, FLOATS("1,2", 100., 100.), w};
  lp_op *op = operator(LP_OP_LINEAR, LP_F32, "1,2", 3, plain);
  lp_op_set_str(test_module, op, "epilogue", "relu");
  is(op->out[0], "0 11");
  op = operator(LP_OP_LINEAR, LP_F32, "1,2", 5, gated);
  lp_op_set_bool(test_module, op, "transpose_b", true);
  is(op->out[0], "125 221");
}

LP_TEST(experts) {
  lp_value *x = FLOATS("1,2", 1., 2.), *w = FLOATS("4,2", 1., 2., 3., 4., 5., 6., 7., 8.), *index = INTS(1, 0);
  with_i64("experts", 2);
  is(of(NODE(Experts, x, index, w)), "17 23 5 11");
  with_i64("experts", 2);
  is(of(NODE(Experts, x, INTS(9, -9), w, FLOATS("4", 1., 2., 3., 4.))), "0 0 0 0"); /* outside */
  lp_value *in[] = {FLOATS("2,2", 1., 0., 0., 1.), w, NULL, index, w};
  lp_op *op = operator(LP_OP_EXPERTS, LP_F32, "2,2", 5, in);
  lp_op_set_i64(test_module, op, "experts", 2);
  lp_op_set_bool(test_module, op, "transpose_b", true);
  lp_op_set_str(test_module, op, "epilogue", "relu");
  is(op->out[0], "25 49 4 16");
}

LP_TEST(sizes_come_from_symbols) {
  sym[0] = 2; /* b */
  sym[1] = 3; /* s */
  lp_op *iota = operator(LP_OP_IOTA, LP_I64, "s", 0, NULL);
  lp_op_set_poly(test_module, iota, "start", lp_dim_symbol(test_module, "b"));
  lp_op_set_poly(test_module, iota, "step", lp_dim_const(test_module, 2));
  is(iota->out[0], "2 4 6");
  lp_op *expand = operator(LP_OP_EXPAND, LP_I64, "b,s", 1, iota->out);
  is(expand->out[0], "2 4 6 2 4 6");
  is(operator(LP_OP_RESHAPE, LP_I64, "s,b", 1, expand->out)->out[0], "2 4 6 2 4 6");
  /* known values need no argument */
  is(of(NODE(Shape, test_arg(LP_F32, "b,s,7"))), "2 3 7");
}

LP_TEST(map_and_fused) {
  lp_value *in[] = {FLOATS("2", 1., 4.), FLOATS("", 2.)};
  lp_op *map = operator(LP_OP_MAP, LP_F32, "2", 2, in);
  lp_op_set_str(test_module, map, "fn", "pow");
  is(map->out[0], "1 16");
  lp_op *fused = operator(LP_OP_FUSED, LP_F32, "2", 2, in);
  lp_type types[] = {in[0]->type, in[1]->type};
  lp_block *body = lp_op_add_region(test_module, fused, 2, types);
  lp_op *inner = lp_op_create(test_module, LP_OP_MAP, LP_LOC_NONE, 2, body->arg, 1, types);
  lp_op_set_str(test_module, inner, "fn", "mul");
  lp_op_append(body, inner);
  lp_op_append(body, lp_op_create(test_module, LP_OP_YIELD, LP_LOC_NONE, 1, inner->out, 0, NULL));
  is(fused->out[0], "2 8");
  lp_op_set_str(test_module, map, "fn", "frobnicate");
  fails(map->out[0], "unknown function 'frobnicate'");
}

LP_TEST(caches) {
  sym[0] = 1; /* b */
  sym[1] = 2; /* s */
  lp_value *x = FLOATS("1,2,2,1", 1., 2., 3., 4.);
  lp_op *append = operator(LP_OP_KV_APPEND, LP_F32, "b,2,s+p,1", 1, &x);
  lp_op_set_i64(test_module, append, "state", 0);
  is(append->out[0], "1 2 3 4");
  lp_op_set_str(test_module, append, "layout", "bshd");
  is(append->out[0], "1 3 2 4");
  sym[2] = 1; /* p */
  fails(append->out[0], "the past rows of cache 0 are not bound");
  sym[2] = 0;
  x = FLOATS("1,2,2", 1., 2., 3., 4.);
  lp_op *carry = operator(LP_OP_CARRY_COLUMNS, LP_F32, "b,2,s+3", 1, &x);
  lp_op_set_i64(test_module, carry, "state", 1);
  lp_op_add_result(test_module, carry, test_arg(LP_F32, "b,2,3")->type);
  is(carry->out[0], "0 0 0 1 2 0 0 0 3 4");
  is(carry->out[1], "0 1 2 0 3 4");
  sym[2] = 1;
  fails(carry->out[0], "the past of cache 1 is not bound");
}

/* ---- values ---- */

LP_TEST(bindings) {
  lp_value *x = test_arg(LP_F32, "s");
  lp_value *twice = of(NODE(Add, x, x));
  float data[] = {1, 2};
  lp_binding binding = {x, {.dtype = LP_F32, .rank = 1, .dim = {2}, .data = data}};
  lp_array found = evaluate(twice, 1, &binding);
  is_array(&found, "2 4");
  fails(twice, "operand 0 has no value");
  lp_array out;
  ck_assert_int_eq(lp_value_eval(test_module, twice, NULL, 0, sym, arena, &out, NULL), LP_FAILED);
  binding.value = twice; /* a bound result is not computed */
  found = evaluate(of(NODE(Neg, twice)), 1, &binding);
  is_array(&found, "-1 -2");
}

LP_TEST(constants_have_a_tensor) {
  lp_op *op = operator(LP_ONNX_Constant, LP_I64, "1", 0, NULL);
  fails(op->out[0], "attribute 'value' is missing");
  lp_op_set_str(test_module, op, "value", "7");
  fails(op->out[0], "attribute 'value' is missing");
}

LP_TEST(depth_and_size) {
  lp_value *value = FLOATS("1", 1.), *one = value;
  for (int i = 0; i < 50000; i++)
    value = of(NODE(Add, value, one));
  is(value, "50001");
  fails(of(NODE(ConstantOfShape, INTS(1000000, 1000000))), "it is too large to be evaluated at compile time");
  lp_value *x = test_arg(LP_F32, "b,s,12");
  with_i64("num_heads", 2);
  fails(of(NODE(MsMultiHeadAttention, x)), "operand 0 has no value");
}
