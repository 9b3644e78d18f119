/* Operators of ONNX keep their values: see values.h. A row is an operator in one of its forms. */
#include "base/base.h"
#include "tests/ir/op_text.h"
#include "tests/passes/values.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

/* Tries each row; all of them must have values. */
static void check(const op_row *rows, size_t count) {
  values_tally t = {0};
  values_begin();
  for (size_t i = 0; i < count; i++) {
    lp_buf text = {0};
    const values_tally before = t;
    op_put_module(&rows[i], &text);
    values_try_module(rows[i].op, (int)i, lp_buf_text(&text), text.size, &t);
    ck_assert_msg(t.computed > before.computed, "no form of %s {%s} has values:\n%s", rows[i].op, rows[i].attrs,
                  lp_buf_text(&text));
    lp_buf_free(&text);
  }
  ck_assert_int_eq(t.wrong, 0);
  values_end();
}

#define CHECK(rows) check(rows, LP_COUNT(rows))
#define UNARY(name) {"onnx." name, "", "f32 b,6", "f32 b,6", NULL}
#define BINARY(name) {"onnx." name, "", "f32 b,6; f32 6", "f32 b,6", NULL}
#define INTEGERS(name) {"onnx." name, "", "i64 b,6; i64 6", "i64 b,6", NULL}
#define COMPARED(name) {"onnx." name, "", "f32 b,6; f32 6", "i1 b,6", NULL}

LP_TEST(elementwise) {
  static const op_row rows[] = {
      UNARY("Abs"),
      UNARY("Neg"),
      UNARY("Sign"),
      UNARY("Floor"),
      UNARY("Ceil"),
      UNARY("Round"),
      UNARY("Sqrt"),
      UNARY("Reciprocal"),
      UNARY("Exp"),
      UNARY("Log"),
      UNARY("Sin"),
      UNARY("Cos"),
      UNARY("Tan"),
      UNARY("Tanh"),
      UNARY("Sinh"),
      UNARY("Cosh"),
      UNARY("Asin"),
      UNARY("Acos"),
      UNARY("Atan"),
      UNARY("Asinh"),
      UNARY("Acosh"),
      UNARY("Atanh"),
      UNARY("Erf"),
      UNARY("Sigmoid"),
      UNARY("HardSwish"),
      UNARY("Relu"),
      UNARY("Softplus"),
      UNARY("Softsign"),
      UNARY("Mish"),
      UNARY("Swish"),
      UNARY("Gelu"),
      UNARY("Identity"),
      {"onnx.Swish", "alpha = 1.702 : f64", "f16 b,6", "f16 b,6", NULL},
      {"onnx.Gelu", "approximate = \"tanh\"", "f32 b,6", "f32 b,6", NULL},
      {"onnx.HardSigmoid", "alpha = 0.3 : f64, beta = 0.25 : f64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.ThresholdedRelu", "alpha = 0.25 : f64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.LeakyRelu", "alpha = 0.25 : f64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Elu", "alpha = 0.25 : f64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Selu", "alpha = 1.5 : f64, gamma = 1.25 : f64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Celu", "alpha = 0.25 : f64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Shrink", "bias = 0.25 : f64, lambd = 0.125 : f64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.IsNaN", "", "f32 b,6", "i1 b,6", NULL},
      {"onnx.IsInf", "detect_negative = 0 : i64", "f32 b,6", "i1 b,6", NULL},
      {"onnx.Not", "", "i1 b,6", "i1 b,6", NULL},
      {"onnx.BitwiseNot", "", "i64 b,6", "i64 b,6", NULL},
      {"onnx.Clip", "", "f32 b,6; k f32=-0.25; k f32=0.5", "f32 b,6", NULL},
      {"onnx.Clip", "operand_mask = \"101\"", "f32 b,6; k f32=0.5", "f32 b,6", NULL},
      {"onnx.Clip", "", "i64 b,6; k i64=0; k i64=3", "i64 b,6", NULL},
      {"onnx.Clip", "", "f32 b,6; f32; f32", "f32 b,6", NULL},
      {"onnx.Cast", "to = 7 : i64", "f32 b,6", "i64 b,6", NULL},
      {"onnx.Cast", "to = 1 : i64", "i64 b,6", "f32 b,6", NULL},
      {"onnx.Cast", "to = 9 : i64", "f32 b,6", "i1 b,6", NULL},
      {"onnx.Cast", "to = 10 : i64", "f32 b,6", "f16 b,6", NULL},
      {"onnx.CastLike", "", "f32 b,6; i64 2", "i64 b,6", NULL},
      {"onnx.BitCast", "to = 6 : i64", "f32 b,6", "i32 b,6", NULL},
      {"onnx.Dropout", "", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Dropout", "", "f32 b,6", "f32 b,6; i1 b,6", NULL},
  };
  CHECK(rows);
}

LP_TEST(elementwise_of_several) {
  static const op_row rows[] = {
      BINARY("Add"),
      BINARY("Sub"),
      BINARY("Mul"),
      BINARY("Div"),
      BINARY("Pow"),
      BINARY("PRelu"),
      BINARY("Min"),
      BINARY("Max"),
      BINARY("Sum"),
      BINARY("Mean"),
      INTEGERS("Add"),
      INTEGERS("Sub"),
      INTEGERS("Mul"),
      INTEGERS("BitwiseAnd"),
      INTEGERS("BitwiseOr"),
      INTEGERS("BitwiseXor"),
      COMPARED("Equal"),
      COMPARED("Less"),
      COMPARED("LessOrEqual"),
      COMPARED("Greater"),
      COMPARED("GreaterOrEqual"),
      {"onnx.Div", "", "i64 b,6; k i64=3", "i64 b,6", NULL},
      {"onnx.Mod", "", "i64 b,6; k i64=3", "i64 b,6", NULL},
      {"onnx.Mod", "fmod = 1 : i64", "f32 b,6; k f32=0.75", "f32 b,6", NULL},
      {"onnx.Pow", "", "f32 b,6; k f32=2.0", "f32 b,6", NULL},
      {"onnx.Pow", "", "f32 b,6; k f32=0.5", "f32 b,6", NULL},
      {"onnx.Pow", "", "f32 b,6; k f32=3.0", "f32 b,6", NULL},
      {"onnx.Pow", "", "f32 b,6; k i64=2", "f32 b,6", NULL},
      {"onnx.Pow", "", "i64 b,6; k i64=2", "i64 b,6", NULL},
      {"onnx.And", "", "i1 b,6; i1 6", "i1 b,6", NULL},
      {"onnx.Or", "", "i1 b,6; i1 6", "i1 b,6", NULL},
      {"onnx.Xor", "", "i1 b,6; i1 6", "i1 b,6", NULL},
      {"onnx.BitShift", "direction = \"LEFT\"", "ui32 b,6; k ui32=3", "ui32 b,6", NULL},
      {"onnx.BitShift", "direction = \"RIGHT\"", "ui32 b,6; ui32 6", "ui32 b,6", NULL},
      {"onnx.Where", "", "i1 b,6; f32 6; f32", "f32 b,6", NULL},
      {"onnx.Max", "", "f32 b,6; f32 6; f32", "f32 b,6", NULL},
      {"onnx.Mean", "", "f32 b,6; f32 6; f32 b,1", "f32 b,6", NULL},
      {"onnx.Sum", "", "f32 b,6", "f32 b,6", NULL},
      {"onnx.SwiGLU", "", "f32 b,6; f32 b,6", "f32 b,6", NULL},
      {"onnx.SwiGLU", "alpha = 1.5 : f64", "f32 b,6; f32 b,6", "f32 b,6", NULL},
      {"com.microsoft.BiasGelu", "", "f32 b,6; f32 6", "f32 b,6", NULL},
      {"com.microsoft.FastGelu", "", "f32 b,6; f32 6", "f32 b,6", NULL},
      {"com.microsoft.FastGelu", "", "f32 b,6", "f32 b,6", NULL},
      {"com.microsoft.Gelu", "", "f32 b,6", "f32 b,6", NULL},
      {"com.microsoft.QuickGelu", "alpha = 1.702 : f64", "f32 b,6", "f32 b,6", NULL},
  };
  CHECK(rows);
}

LP_TEST(moves) {
  static const op_row rows[] = {
      {"onnx.Slice", "", "f32 b,8; k i64 1=2; k i64 1=7; k i64 1=1; k i64 1=2", "f32 b,3", NULL},
      {"onnx.Slice", "", "f32 b,8; k i64 1=-3; k i64 1=100; k i64 1=-1", "f32 b,3", NULL},
      {"onnx.Slice", "", "f32 b,8; k i64 1=6; k i64 1=1; k i64 1=1; k i64 1=-2", "f32 b,3", NULL},
      {"onnx.Slice", "", "f32 4,8; k i64 2=1,0; k i64 2=3,4", "f32 2,4", NULL},
      {"onnx.Concat", "axis = 1 : i64", "f32 b,3; f32 b,5", "f32 b,8", NULL},
      {"onnx.Concat", "axis = -2 : i64", "f32 b,3; f32 s,3; f32 2,3", "f32 b + s + 2,3", NULL},
      {"onnx.Concat", "axis = 0 : i64", "f32 b,3", "f32 b,3", NULL},
      {"onnx.Split", "axis = 1 : i64", "f32 b,8; k i64 2=3,5", "f32 b,3; f32 b,5", NULL},
      {"onnx.Split", "axis = -1 : i64", "f32 b,8", "f32 b,4; f32 b,4", NULL},
      {"onnx.Split", "axis = 1 : i64, num_outputs = 3 : i64", "f32 b,8", "f32 b,3; f32 b,3; f32 b,2", NULL},
      {"onnx.Transpose", "", "f32 b,3,5", "f32 5,3,b", NULL},
      {"onnx.Transpose", "perm = array<i64: 1, 2, 0>", "f32 b,3,5", "f32 3,5,b", NULL},
      {"onnx.Reshape", "", "f32 b,8; k i64 3=0,2,4", "f32 b,2,4", NULL},
      {"onnx.Reshape", "", "f32 b,8; k i64 2=-1,4", "f32 2*b,4", NULL},
      {"onnx.Flatten", "", "f32 b,3,5", "f32 b,15", NULL},
      {"onnx.Flatten", "axis = -1 : i64", "f32 b,3,5", "f32 3*b,5", NULL},
      {"onnx.Flatten", "axis = 0 : i64", "f32 b,3", "f32 1,3*b", NULL},
      {"onnx.Squeeze", "", "f32 b,1,5; k i64 1=1", "f32 b,5", NULL},
      {"onnx.Squeeze", "", "f32 3,1,5,1", "f32 3,5", NULL},
      {"onnx.Unsqueeze", "", "f32 b,5; k i64 2=0,-1", "f32 1,b,5,1", NULL},
      {"onnx.Expand", "", "f32 3,1; k i64 3=2,1,4", "f32 2,3,4", NULL},
      {"onnx.Tile", "", "f32 b,3; k i64 2=2,3", "f32 2*b,9", NULL},
      {"onnx.Tile", "", "f32 b,3; k i64 2=1,1", "f32 b,3", NULL},
      {"onnx.Pad", "", "f32 b,3; k i64 4=0,1,0,2", "f32 b,6", NULL},
      {"onnx.Pad", "", "f32 b,3; k i64 4=0,1,0,2; k f32=1.5", "f32 b,6", NULL},
      {"onnx.Pad", "", "f32 b,5; k i64 4=0,-1,0,-2", "f32 b,2", NULL},
      {"onnx.Pad", "", "f32 3,5; k i64 4=1,-1,0,2", "f32 4,6", NULL},
      {"onnx.Pad", "mode = \"reflect\"", "f32 b,5; k i64 4=0,2,0,3", "f32 b,10", NULL},
      {"onnx.Pad", "mode = \"edge\"", "f32 b,5; k i64 4=0,2,0,3", "f32 b,10", NULL},
      {"onnx.Pad", "mode = \"wrap\"", "f32 b,5; k i64 4=0,2,0,3", "f32 b,10", NULL},
      {"onnx.Pad", "mode = \"wrap\"", "f32 4,5; k i64 4=1,0,2,3", "f32 7,8", NULL},
      {"onnx.Pad", "", "f32 3,b,5; k i64 2=1,2; k f32=0.5; k i64 1=-1", "f32 3,b,8", NULL},
      {"onnx.Pad", "", "i64 b,3; k i64 4=0,1,0,2; k i64=7", "i64 b,6", NULL},
      {"onnx.DepthToSpace", "blocksize = 2 : i64", "f32 b,8,2,3", "f32 b,2,4,6", NULL},
      {"onnx.DepthToSpace", "blocksize = 2 : i64, mode = \"CRD\"", "f32 b,8,2,3", "f32 b,2,4,6", NULL},
      {"onnx.SpaceToDepth", "blocksize = 2 : i64", "f32 b,2,4,6", "f32 b,8,2,3", NULL},
      {"onnx.Trilu", "", "f32 b,5,6", "f32 b,5,6", NULL},
      {"onnx.Trilu", "upper = 0 : i64", "f32 b,5,6; k i64=1", "f32 b,5,6", NULL},
      {"onnx.Trilu", "upper = 0 : i64", "f32 b,s; k i64=-1", "f32 b,s", NULL},
      {"onnx.Trilu", "", "i64 b,5,6; k i64=2", "i64 b,5,6", NULL},
      {"onnx.EyeLike", "k = 1 : i64", "f32 4,6", "f32 4,6", NULL},
      {"onnx.Shape", "", "f32 b,3,s", "i64 3", NULL},
      {"onnx.Shape", "start = 1 : i64, end = -1 : i64", "f32 b,3,s,2", "i64 2", NULL},
      {"onnx.Size", "", "f32 b,3,s", "i64", NULL},
      {"onnx.ReverseSequence", "", "f32 s,b,4; i64 b", "f32 s,b,4", NULL},
      {"onnx.ReverseSequence", "batch_axis = 0 : i64, time_axis = 1 : i64", "f32 b,5,4; i64 b", "f32 b,5,4", NULL},
  };
  CHECK(rows);
}

LP_TEST(indices) {
  static const op_row rows[] = {
      {"onnx.Gather", "", "f32 7,4; i64 b,s", "f32 b,s,4", NULL},
      {"onnx.Gather", "axis = -1 : i64", "f32 b,7; i64 s", "f32 b,s", NULL},
      {"onnx.Gather", "axis = 1 : i64", "f32 b,7,2; k i64=-2", "f32 b,2", NULL},
      {"onnx.Gather", "axis = 1 : i64", "f32 b,7; k i64 2=1,-3", "f32 b,2", NULL},
      {"onnx.GatherElements", "axis = 1 : i64", "f32 3,7; i64 3,2", "f32 3,2", NULL},
      {"onnx.GatherElements", "", "f32 7,b; i64 2,b", "f32 2,b", NULL},
      {"onnx.GatherND", "", "f32 4,5,3; i64 b,2", "f32 b,3", NULL},
      {"onnx.GatherND", "batch_dims = 1 : i64", "f32 4,5,3; i64 4,1", "f32 4,3", NULL},
      {"onnx.GatherND", "", "f32 4,5; i64 b,2", "f32 b", NULL},
      {"onnx.ScatterND", "", "f32 4,5; k i64 1=2; f32 5", "f32 4,5", NULL},
      {"onnx.ScatterND", "reduction = \"add\"", "f32 4,5; i64 b,1; f32 b,5", "f32 4,5", NULL},
      {"onnx.ScatterElements", "axis = 1 : i64", "f32 3,7; i64 3,1; f32 3,1", "f32 3,7", NULL},
      {"onnx.ScatterElements", "axis = -1 : i64, reduction = \"mul\"", "f32 3,7; i64 3,2; f32 3,2", "f32 3,7", NULL},
      {"onnx.ScatterElements", "reduction = \"max\"", "f32 3,7; i64 2,7; f32 2,7", "f32 3,7", NULL},
      {"onnx.ScatterElements", "reduction = \"min\"", "f32 3,7; i64 2,7; f32 2,7", "f32 3,7", NULL},
      {"onnx.Scatter", "axis = 1 : i64", "f32 3,7; i64 3,1; f32 3,1", "f32 3,7", NULL},
      {"onnx.TensorScatter", "axis = 1 : i64", "f32 b,9,4; f32 b,s,4; i64 b", "f32 b,9,4", NULL},
      {"onnx.TensorScatter", "axis = 1 : i64, mode = \"circular\"", "f32 b,9,4; f32 b,s,4; i64 b", "f32 b,9,4", NULL},
      {"onnx.TensorScatter", "", "f32 b,9,4; f32 b,s,4", "f32 b,9,4", NULL},
      {"onnx.OneHot", "", "i64 b,3; k i64=5; f32 2", "f32 b,3,5", NULL},
      {"onnx.OneHot", "axis = 1 : i64", "i64 b,3; k i64=5; k f32 2=0.0,1.0", "f32 b,5,3", NULL},
      {"onnx.Compress", "axis = 1 : i64", "f32 b,4; k i1 4=1,0,1,1", "f32 b,3", NULL},
      {"onnx.ArgMax", "axis = 1 : i64", "f32 b,6", "i64 b,1", NULL},
      {"onnx.ArgMax", "axis = -1 : i64, keepdims = 0 : i64, select_last_index = 1 : i64", "f32 b,6", "i64 b", NULL},
      {"onnx.ArgMin", "axis = 1 : i64", "f32 b,6", "i64 b,1", NULL},
      {"onnx.TopK", "", "f32 b,6; k i64 1=2", "f32 b,2; i64 b,2", NULL},
      {"onnx.TopK", "axis = 1 : i64, largest = 0 : i64", "f32 b,6,2; k i64 1=2", "f32 b,2,2; i64 b,2,2", NULL},
      {"onnx.CumSum", "", "f32 b,6; k i64=1", "f32 b,6", NULL},
      {"onnx.CumSum", "exclusive = 1 : i64, reverse = 1 : i64", "f32 b,6; k i64=-1", "f32 b,6", NULL},
      {"onnx.CumSum", "", "i64 b,s; k i64=0", "i64 b,s", NULL},
      {"onnx.CumProd", "", "f32 b,6; k i64=1", "f32 b,6", NULL},
  };
  CHECK(rows);
}

#define REDUCE(name)                                                                                                   \
  {"onnx." name, "keepdims = 0 : i64", "f32 b,3,5; k i64 1=-1", "f32 b,3", NULL},                                      \
      {"onnx." name, "", "f32 b,3,5; k i64 2=0,2", "f32 1,3,1", NULL}, {                                               \
    "onnx." name, "", "f32 b,3", "f32 1,1", NULL                                                                       \
  }

LP_TEST(reductions_and_norms) {
  static const op_row rows[] = {
      REDUCE("ReduceSum"),
      REDUCE("ReduceMean"),
      REDUCE("ReduceMax"),
      REDUCE("ReduceMin"),
      REDUCE("ReduceProd"),
      REDUCE("ReduceL1"),
      REDUCE("ReduceL2"),
      REDUCE("ReduceSumSquare"),
      REDUCE("ReduceLogSum"),
      REDUCE("ReduceLogSumExp"),
      {"onnx.ReduceSum", "noop_with_empty_axes = 1 : i64", "f32 b,3", "f32 b,3", NULL},
      {"onnx.ReduceSum", "", "i64 b,3; k i64 1=1", "i64 b,1", NULL},
      {"onnx.ReduceMax", "", "f16 b,3; k i64 1=1", "f16 b,1", NULL},
      {"onnx.Softmax", "", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Softmax", "axis = 1 : i64", "f32 b,6,3", "f32 b,6,3", NULL},
      {"onnx.Softmax", "axis = 1 : i64, flatten = true", "f32 b,6,3", "f32 b,6,3", NULL},
      {"onnx.LogSoftmax", "axis = -1 : i64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Hardmax", "axis = -1 : i64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.Hardmax", "axis = 1 : i64, flatten = true", "f32 b,6,3", "f32 b,6,3", NULL},
      {"onnx.LayerNormalization", "", "f32 b,s,8; f32 8; f32 8", "f32 b,s,8", NULL},
      {"onnx.LayerNormalization", "axis = 1 : i64, epsilon = 0.125 : f64", "f32 b,3,8; f32 3,8", "f32 b,3,8", NULL},
      {"onnx.LayerNormalization", "", "f32 b,s,8; f32 8; f32 8", "f32 b,s,8; f32 b,s,1; f32 b,s,1", NULL},
      {"onnx.RMSNormalization", "epsilon = 0.125 : f64", "f32 b,s,8; f32 8", "f32 b,s,8", NULL},
      {"onnx.RMSNormalization", "axis = -2 : i64", "f32 b,3,8; f32 8", "f32 b,3,8", NULL},
      {"onnx.SimplifiedLayerNormalization", "", "f32 b,s,8; f32 8", "f32 b,s,8", NULL},
      {"onnx.InstanceNormalization", "", "f32 2,6,5; f32 6; f32 6", "f32 2,6,5", NULL},
      {"onnx.GroupNormalization", "num_groups = 3 : i64", "f32 2,6,5; f32 6; f32 6", "f32 2,6,5", NULL},
      {"onnx.BatchNormalization", "", "f32 b,6,5; f32 6; f32 6; f32 6; f32 6", "f32 b,6,5", NULL},
      {"onnx.MeanVarianceNormalization", "", "f32 2,3,2,2", "f32 2,3,2,2", NULL},
      {"onnx.MeanVarianceNormalization", "axes = array<i64: 1>", "f32 2,3,2", "f32 2,3,2", NULL},
      {"onnx.LpNormalization", "p = 1 : i64", "f32 b,6", "f32 b,6", NULL},
      {"com.microsoft.SkipLayerNormalization", "epsilon = 0.0625 : f64", "f32 b,s,8; f32 b,s,8; f32 8; f32 8; f32 8",
       "f32 b,s,8", NULL},
      {"com.microsoft.SkipSimplifiedLayerNormalization", "", "f32 b,s,8; f32 b,s,8; f32 8; f32 8", "f32 b,s,8", NULL},
      {"com.microsoft.SimplifiedLayerNormalization", "", "f32 b,s,8; f32 8", "f32 b,s,8", NULL},
  };
  CHECK(rows);
}

LP_TEST(products) {
  static const op_row rows[] = {
      {"onnx.MatMul", "", "f32 b,s,8; w f32 8,5", "f32 b,s,5", NULL},
      {"onnx.MatMul", "", "f32 b,3,8; f32 b,8,5", "f32 b,3,5", NULL},
      {"onnx.MatMul", "", "f32 b,2,3,8; f32 2,8,5", "f32 b,2,3,5", NULL},
      {"onnx.MatMul", "", "f32 8; w f32 8,5", "f32 5", NULL},
      {"onnx.MatMul", "", "f32 b,8; f32 8", "f32 b", NULL},
      {"onnx.Gemm", "", "f32 b,8; w f32 8,5; w f32 5", "f32 b,5", NULL},
      {"onnx.Gemm", "transB = 1 : i64", "f32 b,8; w f32 5,8; w f32 5", "f32 b,5", NULL},
      {"onnx.Gemm", "alpha = 0.5 : f64, beta = 0.25 : f64, transA = 1 : i64", "f32 8,b; f32 8,5; f32 b,5", "f32 b,5",
       NULL},
      {"onnx.Gemm", "", "f32 b,8; w f32 8,5", "f32 b,5", NULL},
      {"com.microsoft.FusedMatMul", "alpha = 0.5 : f64, transB = 1 : i64", "f32 b,3,8; f32 b,5,8", "f32 b,3,5", NULL},
      {"com.microsoft.FusedMatMul", "transA = 1 : i64", "f32 b,8,3; f32 b,8,5", "f32 b,3,5", NULL},
      {"com.microsoft.FusedMatMul", "transBatchA = 1 : i64", "f32 3,b,8; f32 b,8,5", "f32 b,3,5", NULL},
      {"onnx.Conv", "", "f32 b,4,9; w f32 6,4,3; w f32 6", "f32 b,6,7", NULL},
      {"onnx.Conv", "group = 2 : i64, strides = array<i64: 2>, pads = array<i64: 1, 1>", "f32 b,4,9; w f32 6,2,3",
       "f32 b,6,5", NULL},
      {"onnx.Conv", "dilations = array<i64: 2>, auto_pad = \"SAME_UPPER\"", "f32 b,4,9; w f32 6,4,3", "f32 b,6,9",
       NULL},
      {"onnx.Conv", "", "f32 b,2,5,4; w f32 3,2,2,2", "f32 b,3,4,3", NULL},
      {"onnx.CausalConvWithState", "", "f32 b,6,s; w f32 6,1,4", "f32 b,6,s; f32 b,6,3", NULL},
      {"onnx.CausalConvWithState", "activation = \"silu\"", "f32 b,6,s; w f32 6,1,4; f32 6; f32 b,6,3",
       "f32 b,6,s; f32 b,6,3", NULL},
  };
  CHECK(rows);
}

LP_TEST(quantised) {
  static const op_row rows[] = {
      {"onnx.QuantizeLinear", "", "f32 b,8; k f32=0.0125; k i8=3", "i8 b,8", NULL},
      {"onnx.QuantizeLinear", "axis = 1 : i64", "f32 b,3; k f32 3=0.1,0.2,0.01; k ui8 3=3,0,128", "ui8 b,3", NULL},
      {"onnx.DequantizeLinear", "", "i8 b,8; k f32=0.0125; k i8=3", "f32 b,8", NULL},
      {"onnx.DequantizeLinear", "axis = 0 : i64", "ui8 3,8; k f32 3=0.1,0.2,0.01", "f32 3,8", NULL},
      {"onnx.DynamicQuantizeLinear", "", "f32 b,8", "ui8 b,8; f32; ui8", NULL},
      {"onnx.MatMulInteger", "", "ui8 b,8; w i8 8,5; k ui8=3", "i32 b,5", NULL},
      {"onnx.MatMulInteger", "", "ui8 b,8; w ui8 8,5; ui8; ui8", "i32 b,5", NULL},
      {"onnx.QLinearMatMul", "", "ui8 b,8; k f32=0.0625; k ui8=3; w ui8 8,5; k f32=0.125; k ui8=1; k f32=0.5; k ui8=9",
       "ui8 b,5", NULL},
      {"com.microsoft.QuantizeLinear", "", "f32 b,8; k f32=0.0125; k ui8=3", "ui8 b,8", NULL},
      {"com.microsoft.DequantizeLinear", "", "ui8 b,8; k f32=0.0125; k ui8=3", "f32 b,8", NULL},
      {"com.microsoft.DynamicQuantizeMatMul", "", "f32 b,8; w ui8 8,5; k f32=0.0125; k ui8=3; f32 5", "f32 b,5", NULL},
      {"com.microsoft.MatMulIntegerToFloat", "", "ui8 b,8; w ui8 8,5; k f32=0.0125; k f32=0.25; k ui8=3; k ui8=1",
       "f32 b,5", NULL},
      {"com.microsoft.QLinearAdd", "",
       "ui8 b,8; k f32=0.0625; k ui8=3; ui8 8; k f32=0.125; k ui8=1; k f32=0.25; k ui8=9", "ui8 b,8", NULL},
      {"com.microsoft.QLinearMul", "", "i8 b,8; k f32=0.0625; k i8=3; i8 8; k f32=0.125; k i8=1; k f32=0.25; k i8=9",
       "i8 b,8", NULL},
      {"com.microsoft.QLinearSigmoid", "", "ui8 b,8; k f32=0.0625; k ui8=3; k f32=0.0078125; k ui8=0", "ui8 b,8", NULL},
      {"com.microsoft.QLinearLeakyRelu", "alpha = 0.25 : f64", "ui8 b,8; k f32=0.0625; k ui8=3; k f32=0.0625; k ui8=7",
       "ui8 b,8", NULL},
      {"com.microsoft.QLinearSoftmax", "axis = -1 : i64, opset = 13 : i64",
       "ui8 b,8; k f32=0.0625; k ui8=3; k f32=0.00390625; k ui8=0", "ui8 b,8", NULL},
      {"com.microsoft.QLinearConcat", "axis = 1 : i64",
       "k f32=0.0625; k i8=3; i8 b,4; k f32=0.125; k i8=1; i8 b,5; k f32=0.25; k i8=0", "i8 b,9", NULL},
      {"com.microsoft.QGemm", "transB = 1 : i64",
       "ui8 b,8; k f32=0.0625; k ui8=3; w ui8 5,8; k f32=0.125; k ui8=1; w i32 5; k f32=0.25; k ui8=9", "ui8 b,5",
       NULL},
      {"com.microsoft.MatMulNBits", "K = 32 : i64, N = 3 : i64, bits = 4 : i64, block_size = 16 : i64",
       "f32 b,32; w ui8 3,2,8; w f32 6", "f32 b,3", NULL},
      {"com.microsoft.MatMulNBits", "K = 32 : i64, N = 3 : i64, bits = 8 : i64, block_size = 16 : i64",
       "f32 b,32; w ui8 3,2,16; w f32 6; w ui8 6", "f32 b,3", NULL},
      {"com.microsoft.MatMulBnb4", "K = 32 : i64, N = 3 : i64, block_size = 16 : i64, quant_type = 1 : i64",
       "f32 b,32; w ui8 48; w f32 6", "f32 b,3", NULL},
      {"com.microsoft.GatherBlockQuantized", "bits = 4 : i64, block_size = 16 : i64", "w ui8 9,32; i64 s; w f32 9,4",
       "f32 s,64", NULL},
  };
  CHECK(rows);
}

#define HEADS "q_num_heads = 2 : i64, kv_num_heads = 2 : i64"
#define QKV "f32 b,s,8; f32 b,s,8; f32 b,s,8"
#define GQA "com.microsoft.GroupQueryAttention"
#define GQA_IN "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32"
#define GQA_OUT "f32 b,s,32; f32 b,2,p + s,8; f32 b,2,p + s,8"
#define GQA_HEADS "num_heads = 4 : i64, kv_num_heads = 2 : i64"
#define MHA "com.microsoft.MultiHeadAttention"
#define MS "com.microsoft.Attention"

LP_TEST(attention) {
  static const op_row rows[] = {
      {"onnx.Attention", HEADS, QKV, "f32 b,s,8", NULL},
      {"onnx.Attention", HEADS ", is_causal = 1 : i64, scale = 0.25 : f64, softcap = 2.0 : f64", QKV, "f32 b,s,8",
       NULL},
      {"onnx.Attention", HEADS, QKV "; f32 s,s", "f32 b,s,8", NULL},
      {"onnx.Attention", HEADS, QKV "; i1 b,1,s,s", "f32 b,s,8", NULL},
      {"onnx.Attention", HEADS ", is_causal = 1 : i64", QKV "; f32 s,s; f32 b,2,p,4; f32 b,2,p,4",
       "f32 b,s,8; f32 b,2,p + s,4; f32 b,2,p + s,4", NULL},
      {"onnx.Attention", "", "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,s,6", NULL},
      {"onnx.Attention", HEADS ", left_window_size = 1 : i64, right_window_size = 0 : i64", QKV, "f32 b,s,8", NULL},
      {"onnx.Attention", HEADS ", qk_matmul_output_mode = 1 : i64, operand_mask = \"111\"", QKV,
       "f32 b,s,8; f32 b,2,s,4; f32 b,2,s,4; f32 b,2,s,s", NULL},
      {"onnx.LinearAttention", HEADS ", update_rule = \"linear\"", QKV, "f32 b,s,8; f32 b,2,4,4", NULL},
      {"onnx.RotaryEmbedding", "num_heads = 2 : i64", "f32 b,s,16; f32 9,4; f32 9,4; i64 b,s", "f32 b,s,16", NULL},
      {"onnx.RotaryEmbedding", "interleaved = 1 : i64, rotary_embedding_dim = 4 : i64",
       "f32 b,2,s,8; f32 9,2; f32 9,2; i64 b,s", "f32 b,2,s,8", NULL},
      {"onnx.RotaryEmbedding", "", "f32 b,2,s,8; f32 b,s,4; f32 b,s,4", "f32 b,2,s,8", NULL},
      {"com.microsoft.RotaryEmbedding", "", "f32 b,2,s,8; i64 b,s; f32 64,4; f32 64,4", "f32 b,2,s,8", NULL},
      {"com.microsoft.RotaryEmbedding", "num_heads = 2 : i64, rotary_embedding_dim = 4 : i64, interleaved = 1 : i64",
       "f32 b,s,16; i64 1; f32 64,2; f32 64,2", "f32 b,s,16", NULL},
      {MHA, "num_heads = 2 : i64", QKV, "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64", "f32 b,s,24", "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64", "f32 b,s,2,3,4", "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64, unidirectional = 1 : i64, scale = 0.25 : f64", QKV "; f32 24", "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64, operand_mask = \"111011\"", QKV "; i32 b,s; f32 1,2,s,s", "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64, operand_mask = \"11100011\"", QKV "; f32 b,2,p,4; f32 b,2,p,4",
       "f32 b,s,8; f32 b,2,p + s,4; f32 b,2,p + s,4", NULL},
      {MS, "num_heads = 2 : i64", "f32 b,s,8; f32 8,24; f32 24", "f32 b,s,8", NULL},
      {MS, "num_heads = 2 : i64", "f32 b,s,8; f32 8,24; f32 24; i32 b,1", "f32 b,s,8", NULL}, /* no mask */
      {MS, "num_heads = 2 : i64, unidirectional = 1 : i64", "f32 b,s,8; f32 8,24; f32 24; i32 b,s", "f32 b,s,8", NULL},
      {MS, "num_heads = 2 : i64, qkv_hidden_sizes = array<i64: 8, 8, 12>", "f32 b,s,8; f32 8,28; f32 28", "f32 b,s,12",
       NULL},
      {MS, "num_heads = 2 : i64, operand_mask = \"11101\"", "f32 b,s,8; f32 8,24; f32 24; f32 2,b,2,p,4",
       "f32 b,s,8; f32 2,b,2,p + s,4", NULL},
      {GQA, GQA_HEADS, GQA_IN, GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"1001111\"", "f32 b,s,64; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32", GQA_OUT,
       NULL},
      {GQA, GQA_HEADS ", do_rotary = 1 : i64", GQA_IN "; f32 64,4; f32 64,4", GQA_OUT, NULL},
      {GQA, GQA_HEADS ", do_rotary = 1 : i64, rotary_interleaved = 1 : i64, softcap = 2.0 : f64, scale = 0.5 : f64",
       GQA_IN "; f32 64,4; f32 64,4", GQA_OUT, NULL},
      {GQA, GQA_HEADS ", local_window_size = 2 : i64", GQA_IN, GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"1111111000010\"", GQA_IN "; f32 1,4,s,p + s", GQA_OUT, NULL},
      {GQA, GQA_HEADS ", smooth_softmax = 1 : i64", GQA_IN, GQA_OUT, NULL},
  };
  CHECK(rows);
}

#define ROTATES ", do_rotary = 1 : i64"
#define TABLES "; f32 64,4; f32 64,4"
#define PACKED "f32 b,s,64; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32"

LP_TEST(grouped_queries) {
  static const op_row rows[] = {
      {GQA, GQA_HEADS ROTATES ", operand_mask = \"100111111\"", PACKED TABLES, GQA_OUT, NULL},
      {GQA, GQA_HEADS ROTATES, GQA_IN TABLES "; i64 b,s", GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"1111111000010\", local_window_size = 2 : i64", GQA_IN "; f32 1,1,s,p + s",
       GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"1111111000010\"", GQA_IN "; f32 b,4,s,p + s", GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"111111100001\"", GQA_IN "; f32 4", GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"1111111000000011\"", GQA_IN "; f32 8; f32 8", GQA_OUT, NULL},
      {GQA, GQA_HEADS ", qk_output = 1 : i64", GQA_IN, GQA_OUT "; f32 b,4,s,p + s", NULL},
      {GQA, GQA_HEADS ", qk_output = 2 : i64", GQA_IN, GQA_OUT "; f32 b,4,s,p + s", NULL},
      {GQA, GQA_HEADS ", causal = 0 : i64", GQA_IN, GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"1110011\"", "f32 b,s,32; f32 b,s,16; f32 b,s,16; i32 b; i32",
       "f32 b,s,32; f32 b,2,s,8; f32 b,2,s,8", NULL},
      {GQA, GQA_HEADS ", sliding_window_cache = 1 : i64, local_window_size = 2 : i64",
       "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,4,8; f32 b,2,4,8; i32 b; i32",
       "f32 b,s,32; f32 b,2,4,8; f32 b,2,4,8", NULL},
      {GQA, GQA_HEADS ROTATES ", sliding_window_cache = 1 : i64, local_window_size = 3 : i64",
       "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,4,8; f32 b,2,4,8; i32 b; i32" TABLES,
       "f32 b,s,32; f32 b,2,4,8; f32 b,2,4,8", NULL},
      {GQA, GQA_HEADS ", past_present_share_buffer = 1 : i64",
       "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,9,8; f32 b,2,9,8; i32 b; i32",
       "f32 b,s,32; f32 b,2,9,8; f32 b,2,9,8", NULL},
  };
  CHECK(rows);
}

#define MOE "com.microsoft.MoE"
#define EMBED "com.microsoft.EmbedLayerNormalization"

LP_TEST(experts_and_embeddings) {
  static const op_row rows[] = {
      {MOE, "activation_type = \"relu\"", "f32 s,4; f32 s,2; w f32 2,3,4; w f32 2,3; w f32 2,4,3", "f32 s,4", NULL},
      {MOE, "activation_type = \"gelu\", k = 2 : i64",
       "f32 s,4; f32 s,2; w f32 2,3,4; w f32 2,3; w f32 2,4,3; w f32 2,4", "f32 s,4", NULL},
      {MOE, "activation_type = \"silu\", k = 2 : i64, normalize_routing_weights = 1 : i64",
       "f32 b,s,4; f32 b*s,3; w f32 3,5,4; w f32 3,5; w f32 3,4,5", "f32 b,s,4", NULL},
      {MOE, "activation_type = \"identity\"", "f32 s,4; f32 s,2; w f32 2,3,4; w f32 2,3; w f32 2,4,3", "f32 s,4", NULL},
      {MOE, "activation_type = \"swiglu\", swiglu_fusion = 1 : i64",
       "f32 s,4; f32 s,2; w f32 2,6,4; w f32 2,6; w f32 2,4,3", "f32 s,4", NULL},
      {MOE, "activation_type = \"swiglu\", swiglu_fusion = 2 : i64, swiglu_limit = 0.5 : f64",
       "f32 s,4; f32 s,2; w f32 2,6,4; w f32 2,6; w f32 2,4,3", "f32 s,4", NULL},
      {MOE, "activation_type = \"silu\", operand_mask = \"1110101\"",
       "f32 s,4; f32 s,2; w f32 2,3,4; w f32 2,4,3; w f32 2,3,4", "f32 s,4", NULL},
      {EMBED, "", "i32 b,s; i32 b,s; f32 9,8; f32 7,8; f32 3,8; f32 8; f32 8", "f32 b,s,8; i32 b", NULL},
      {EMBED, "operand_mask = \"1011011\"", "i32 b,s; f32 9,8; f32 7,8; f32 8; f32 8", "f32 b,s,8", NULL},
      {EMBED, "mask_index_type = 1 : i64", "i32 b,s; i32 b,s; f32 9,8; f32 7,8; f32 3,8; f32 8; f32 8; i32 b,s",
       "f32 b,s,8; i32 b", NULL},
      {EMBED, "operand_mask = \"111111101\"", "i32 b,s; i32 b,s; f32 9,8; f32 7,8; f32 3,8; f32 8; f32 8; i32 b,s",
       "f32 b,s,8; i32 b; f32 b,s,8", NULL},
  };
  CHECK(rows);
}
