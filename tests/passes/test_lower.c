/* Forms of operators that lower, fuse and tie-weights take, and near misses of them. */
#include "base/base.h"
#include "tests/passes/graphs.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

#define CHECK(rows, passes) graph_check_rows(rows, LP_COUNT(rows), passes, GRAPH_VALUES)
/* The experts `i` that a router chooses for rows `u`, and weights `w`. */
#define CHOSEN                                                                                                         \
  "x: f32 b,8; r: w f32 8,6; w: w f32 30,8; k: k i64 1=2; n: k i64 1=1; l = MatMul x r; t i = TopK l k; "              \
  "u = Unsqueeze x n; "

/* ---- products ---------------------------------------------------------------------------------------------------- */

#define CODES "c: w i8 8,6; "
#define SCALES "s: w f32 6; "

LP_TEST(products) {
  static const graph_row rows[] = {
      {"x: f32 b,8; w: w f32 8,6; y = MatMul x w", "op.linear|!transpose_b"},
      {"x: f32 b,8; w: w f32 6,8; t = Transpose w; y = MatMul x t", "op.linear|transpose_b = true"},
      {"x: f32 8; w: w f32 8,6; y = MatMul x w", "op.linear"},
      {"x: f64 b,8; w: w f64 8,6; y = MatMul x w", "op.matmul"},
      {"x: f32 b,8; w: w f32 2,8,6; z: k i64 1=0; e = Unsqueeze x z; y = MatMul e w", "op.matmul"},
      {"x: f32 b,8; w: f32 8,6; y = MatMul x w", "op.matmul"},
      {"x: f32 b,8; w: f32 8; y = MatMul x w", "op.matmul|op.reshape"},
      {"x: i32 b,8; w: i32 8,6; y = MatMul x w", "op.matmul"},
      {"x: i64 b,8; w: i64 8,6; y = MatMul x w", "op.matmul"},
      {"x: ui32 b,8; w: ui32 8,6; y = MatMul x w", "op.matmul"},
      {"x: ui64 b,8; w: ui64 8,6; y = MatMul x w", "op.matmul"},
      {"x: i8 b,8; w: i8 8,6; y = MatMul x w", "?multiplies matrices of a type other than f32"},
      {"x: f8E4M3FN b,8; w: f8E4M3FN 8,6; y = MatMul x w", "?multiplies matrices of a type other than f32"},
      {"x: i8 b,8; w: i8 8,6; y = Gemm x w", "?multiplies matrices of a type other than f32"},
      /* packed weights: along the sum, or with one scale for each column */
      {"x: f32 b,8; " CODES SCALES "d = DequantizeLinear c s {axis = 1 : i64}; y = MatMul x d",
       "op.linear|!op.dequantize"},
      {"x: f32 b,8; " CODES "s: w f32 8; d = DequantizeLinear c s {axis = 0 : i64}; y = MatMul x d", "op.dequantize"},
      {"x: f32 b,8; " CODES "s: w f32; d = DequantizeLinear c s; y = MatMul x d", "op.linear|!op.dequantize"},
      {"x: f32 b,8; " CODES "s: w f32 1; d = DequantizeLinear c s {axis = 0 : i64}; y = MatMul x d",
       "op.linear|!op.dequantize"},
      {"x: f32 b,8; " CODES
       "s: w f32 2,6; d = DequantizeLinear c s {axis = 0 : i64, block_size = 4 : i64}; y = MatMul x d",
       "group = 4|!op.dequantize"},
      {"x: f32 b,8; " CODES
       "s: w f32 8,2; d = DequantizeLinear c s {axis = 1 : i64, block_size = 3 : i64}; y = MatMul x d",
       "op.dequantize"},
      {"x: f32 b,8; " CODES SCALES "z: w i8 6; d = DequantizeLinear c s z {axis = 1 : i64}; y = MatMul x d",
       "op.linear|!op.dequantize"},
      {"x: f32 b,8; " CODES SCALES "z: i8 6; d = DequantizeLinear c s z {axis = 1 : i64}; y = MatMul x d",
       "op.dequantize"},
      {"x: f32 b,8; " CODES "s: f32 6; d = DequantizeLinear c s {axis = 1 : i64}; y = MatMul x d", "op.dequantize"},
      {"x: f32 b,8; c: i8 8,6; " SCALES "d = DequantizeLinear c s {axis = 1 : i64}; y = MatMul x d", "op.dequantize"},
      {"x: f32 b,8; c: w i32 8,6; " SCALES "d = DequantizeLinear c s {axis = 1 : i64}; y = MatMul x d",
       "op.dequantize"},
      {"x: f32 b,8; c: w i8 6,8; " SCALES "t = Transpose c; d = DequantizeLinear t s {axis = 1 : i64}; y = MatMul x d",
       "op.linear|transpose_b = true|!op.dequantize"},
      {"x: f32 b,8; c: w i8 6,8; s: w f32 2,6; t = Transpose c; "
       "d = DequantizeLinear t s {axis = 0 : i64, block_size = 4 : i64}; y = MatMul x d",
       "op.dequantize"},
      {"x: f32 b,8; c: w i8 6,8; s: w f32 6; d = DequantizeLinear c s {axis = 0 : i64}; t = Transpose d; y = MatMul x "
       "t",
       "op.linear|transpose_b = true|!op.dequantize"},
      /* a cut of the padding of blocks */
      {"x: f32 b,6; c: w i8 5,8; s: w f32 5,2; f: k i64 1=0; e: k i64 1=6; a: k i64 1=1; "
       "d = DequantizeLinear c s {axis = 1 : i64, block_size = 4 : i64}; k = Slice d f e a; t = Transpose k; y = "
       "MatMul x t",
       "op.linear|group = 4|!op.dequantize"},
      {"x: f32 b,6; c: w i8 5,8; s: w f32 5,2; f: k i64 1=2; e: k i64 1=8; a: k i64 1=1; "
       "d = DequantizeLinear c s {axis = 1 : i64, block_size = 4 : i64}; k = Slice d f e a; t = Transpose k; y = "
       "MatMul x t",
       "op.dequantize"},
      {"x: f32 b,4; c: w i8 5,8; s: w f32 5,2; f: k i64 1=0; e: k i64 1=8; a: k i64 1=1; st: k i64 1=2; "
       "d = DequantizeLinear c s {axis = 1 : i64, block_size = 4 : i64}; k = Slice d f e a st; t = Transpose k; y = "
       "MatMul x t",
       "op.dequantize"},
      {"x: f32 b,6; c: w i8 8,5; s: w f32 5; f: k i64 1=0; e: k i64 1=6; a: k i64 1=0; "
       "d = DequantizeLinear c s {axis = 1 : i64}; k = Slice d f e a; y = MatMul x k",
       "op.dequantize"},
      {"x: f32 b,6; c: w f32 8,5; f: k i64 1=0; e: k i64 1=6; a: k i64 1=0; k = Slice c f e a; y = MatMul x k",
       "op.slice"},
      {"x: f32 b,t; c: w f32 8,5; n: n t; z: k i64 1=0; e = Unsqueeze n z; k = Slice c z e z; y = MatMul x k",
       "op.matmul"},
      /* experts; the router's product keeps its weight's type */
      {CHOSEN "y = llmpart.Experts u i w {experts = 6 : i64}", "op.experts|exact = true"},
      {CHOSEN "c: w i8 30,8; s: w f32 30,2; d = DequantizeLinear c s {axis = 1 : i64, block_size = 4 : i64}; "
              "y = llmpart.Experts u i d {experts = 6 : i64}",
       "op.experts|group = 4|!op.dequantize"},
      /* Gemm */
      {"x: f32 4,8; w: w f32 8,6; c: w f32 6; y = Gemm x w c", "op.linear|!op.map"},
      {"x: f32 4,8; w: w f32 8,6; c: w f32 6; y = Gemm x w c {alpha = 2.0 : f64}", "op.map"},
      {"x: f32 4,8; w: w f32 8,6; c: w f32 6; y = Gemm x w c {beta = 2.0 : f64}", "op.map"},
      {"x: f32 4,8; w: w f32 8,6; c: w f32 4,6; y = Gemm x w c", "op.map"},
      {"x: f32 4,8; w: w f32 8,6; c: w f32 4,1; y = Gemm x w c", "op.map"},
      {"x: f32 4,8; w: w f32 8,6; c: f32; y = Gemm x w c", "op.map"},
      {"x: f32 4,8; w: w f32 8,1; c: f32; y = Gemm x w c", "op.linear"},
      {"x: f32 4,8; w: w f32 8,6; c: f32 1,6; y = Gemm x w c", "op.linear"},
      {"x: f32 8,4; w: w f32 6,8; y = Gemm x w {transA = 1 : i64, transB = 1 : i64}", "op.linear|op.transpose"},
  };
  CHECK(rows, "lower");
}

/* ---- epilogues --------------------------------------------------------------------------------------------------- */

#define XW "x: f32 b,8; w: w f32 8,8; "
#define TWO CHOSEN "v: w f32 30,8; g = llmpart.Experts u i w {experts = 6 : i64}; a = Swish g; "

LP_TEST(epilogues) {
  static const graph_row rows[] = {
      {XW "c: w f32 8; l = MatMul x w; y = Add l c", "op.linear|!op.map"},
      {XW "c: w f32 1,8; l = MatMul x w; y = Add c l", "op.linear|!\"add\""},
      {XW "c: f32 8; l = MatMul x w; y = Add l c", "op.linear"},
      {XW "c: w f32 2,8; x2: f32 2,8; l = MatMul x2 w; y = Add l c", "op.linear"},
      {XW "c: w f32 1; l = MatMul x w; y = Add l c", "fn = \"add\""},
      {XW "c: w f32; l = MatMul x w; y = Add l c", "op.linear"},
      {XW "c: w f64 8; l = MatMul x w; d = Cast l {to = 11 : i64}; y = Add d c", "op.linear"},
      {XW "l = MatMul x w; y = Add l l", "fn = \"add\""},
      {XW "l = MatMul x w; y = Add l x", "op.linear|!fn = \"add\""},
      {XW "l = MatMul x w; m = MatMul x w; a = Add l m; y = Add a x", "op.linear"},
      {XW "l = MatMul x w; a = Add l x; y = Add a x", "op.linear"},
      {TWO "h = llmpart.Experts u i v {experts = 6 : i64}; y = Mul a h", "op.experts|epilogue = \"silu\"|!\"mul\""},
      {TWO "j: i64 b,2; h = llmpart.Experts u j v {experts = 6 : i64}; y = Mul a h", "\"mul\""},
      {CHOSEN "c: w f32 5; g = llmpart.Experts u i w {experts = 6 : i64}; y = Add g c", "fn = \"add\""},
      {CHOSEN "z: f32 b,2,5; g = llmpart.Experts u i w {experts = 6 : i64}; y = Add g z", "fn = \"add\""},
      {XW "l = MatMul x w; y = Relu l", "epilogue = \"relu\"|!op.map"},
      {XW "l = MatMul x w; y = LeakyRelu l {alpha = 0.25 : f64}", "op.linear|leaky"},
      {XW "l = MatMul x w; y = Relu l; z = Tanh l; return y z", "op.linear"},
      {XW "l = MatMul x w; n: n b, 2, 4; r = Reshape l n; y = Relu r", "op.linear"},
      {XW "v: w f32 8,8; g = MatMul x w; u = MatMul x v; s = Swish g; y = Mul s u", "op.linear|!\"mul\""},
      {XW "v: w f32 8,8; g = MatMul x w; u = MatMul x v; s = Swish g; y = Mul u s", "op.linear|!\"mul\""},
      {XW "v: w f32 8,8; g = MatMul x w; t = Transpose v; u = MatMul x t; s = Swish g; y = Mul u s", "\"mul\""},
      {XW "v: w f32 8,8; z: f32 b,8; g = MatMul x w; u = MatMul z v; s = Swish g; y = Mul u s", "\"mul\""},
      {XW "v: w f32 8,8; c: w f32 8; g0 = MatMul x w; g = Add g0 c; u = MatMul x v; s = Swish g; y = Mul u s",
       "op.linear"},
      {XW "v: w f32 8,8; g0 = MatMul x w; g = Add g0 x; u = MatMul x v; s = Swish g; y = Mul u s", "op.linear"},
      {XW "v: w f32 8,8; g = MatMul x w; u0 = MatMul x v; u = Relu u0; s = Swish g; y = Mul u s", "op.linear"},
      {XW "g = MatMul x w; s = Swish g; y = Mul s s", "\"mul\""},
      {XW "g = MatMul x w; s = Swish g; y = Mul s x", "\"mul\""},
      {XW "g = MatMul x w; s = Swish g; c: k f32=2.0; y = Mul s c", "\"mul\""},
      {"x: f32 b,8; c: w i8 8,8; d: w i8 8,8; s: w f32 8; sb: w f32 2,8; g0 = DequantizeLinear c s {axis = 1 : i64}; "
       "u0 = DequantizeLinear d sb {axis = 0 : i64, block_size = 4 : i64}; g = MatMul x g0; u = MatMul x u0; w = Swish "
       "g; y = Mul u w",
       "\"mul\""},
      {"x: f32 b,8; c: w i8 8,8; d: w f32 8,8; s: w f32 8; g0 = DequantizeLinear c s {axis = 1 : i64}; "
       "g = MatMul x g0; u = MatMul x d; w = Swish g; y = Mul u w",
       "\"mul\""},
      {"x: f32 b,8; c: w i8 8,8; d: w i8 8,8; s: w f32 8; t: w f32 8; z: w i8 8; g0 = DequantizeLinear c s z {axis = 1 "
       ": i64}; "
       "u0 = DequantizeLinear d t {axis = 1 : i64}; g = MatMul x g0; u = MatMul x u0; w = Swish g; y = Mul u w",
       "\"mul\""},
  };
  CHECK(rows, "lower,fuse");
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

LP_TEST(moves) {
  static const graph_row rows[] = {
      {"x: f32 b,8; f: k i64 1=-3; t: k i64 1=100; a: k i64 1=-1; y = Slice x f t a", "\"0, 5\""},
      {"x: f32 b,8; f: k i64 1=-100; t: k i64 1=5; a: k i64 1=1; y = Slice x f t a", "\"0, 0\""},
      {"x: f32 b,8; f: k i64 1=100; t: k i64 1=-100; a: k i64 1=1; st: k i64 1=-1; y = Slice x f t a st",
       "\"0, 7\"|array<i64: 1, -1>"},
      {"x: f32 b,s; f: k i64 1=9223372036854775807; t: k i64 1=-9223372036854775807; a: k i64 1=1; st: k i64 1=-1; y = "
       "Slice x f t a st",
       "\"0, s - 1\"|array<i64: 1, -1>"},
      {"x: f32 b,s; f: k i64 1=-9223372036854775807; t: k i64 1=9223372036854775807; a: k i64 1=1; y = Slice x f t a",
       "return\"(%0)"},
      {"x: f32 b,s; f: k i64 1=-1; t: k i64 1=9223372036854775807; a: k i64 1=1; y = Slice x f t a", "\"0, s - 1\""},
      {"x: f32 b,s + p; n: n p; z: k i64 1=0; f = Unsqueeze n z; t: k i64 1=9223372036854775807; a: k i64 1=1; y = "
       "Slice x f t a",
       "\"0, p\""},
      {"x: f32 b,s + p; n: n -s; z: k i64 1=0; f = Unsqueeze n z; t: k i64 1=9223372036854775807; a: k i64 1=1; y = "
       "Slice x f t a",
       "\"0, p\""},
      {"x: f32 3,2; e: f32 0,2; y = Concat x e {axis = 0 : i64}", "return\"(%0)"},
      {"x: f32 3,2; e: f32 0,2; z: f32 1,2; y = Concat e x z {axis = 0 : i64}", "op.concat\"(%0, %2)"},
      {"x: f32 b,2; e: f32 b,0; z: f32 b,1; y = Concat e x z {axis = 1 : i64}", "op.concat\"(%0, %2)"},
      {"e: f32 0,2; d: f32 0,2; y = Concat e d {axis = 0 : i64}", "op.concat"},
      {"x: f32 b,3,4; y = Transpose x {perm = array<i64: 0, 1, 2>}", "return\"(%0)"},
      {"x: f32 b,3; n: n b, 3; y = Expand x n", "return\"(%0)"},
      {"x: f32 b,3; n: n 2, 1; y = Tile x n", "op.expand"},
      {"x: f32 b,3; n: n 1, 1; y = Tile x n", "return\"(%0)"},
      {"x: f32 1,1,1,1,1; n: n 2, 2, 2, 2, 2; y = Tile x n", "?repeats too many axes"},
      {"f: k f32=0.0; t: k f32=4.0; d: k f32=1.0; x: f32; r = Range f t d; y = Add r x", "op.iota|cast"},
      {"f: k i32=1; t: k i32=5; d: k i32=2; x: i32; r = Range f t d; y = Add r x", "op.dims"},
      {"n: n b; z: k i64 1=0; u = Unsqueeze n z; x: f32; c = ConstantOfShape u; y = Add c x", "value = 0.0"},
      {"x: f32 b,5; k: i64; y = Trilu x k", "fn = \"add\""},
      {"x: f32 b,5; k: k i64=1; y = Trilu x k {upper = 0 : i64}", "fn = \"le\""},
  };
  CHECK(rows, "lower");
}

LP_TEST(maps_and_reductions) {
  static const graph_row rows[] = {
      {"x: i32 b,4; p: k f32=0.5; y = Pow x p", "fn = \"pow\""},
      {"x: i64 b,4; p: k f32=0.5; y = Pow x p", "fn = \"pow\"|f64"},
      {"x: f32 b,4; y = Swish x {alpha = 0.5 : f64}", "fn = \"sigmoid\""},
      {"x: f32 b,4; y = Cast x {to = 17 : i64, saturate = 0 : i64}", "saturate = false"},
      {"x: f32 b,4; y = Cast x {to = 17 : i64}", "!saturate"},
      {"x: f16 b,4; w = Cast x {to = 1 : i64}; y = Cast w {to = 16 : i64}", "op.map"},
      {"x: f32 b,4; y = Cast x {to = 24 : i64}", "round"},
      {"x: i1 b,4; a: k i64 1=1; c = Cast x {to = 2 : i64}; y = ReduceMax c a", "op.reduce"},
      {"x: i8 b,4; a: k i64 1=1; y = ReduceMin x a", "op.reduce"},
      {"x: i1 b,4; a: k i64 1=1; y = ReduceMax x a", "op.reduce"},
      {"x: i1 b,4; a: k i64 1=1; y = ReduceMin x a", "op.reduce"},
      {"x: i32 b,4; a: k i64 1=1; y = ReduceL2 x a", "f64"},
      {"x: i32 b,4; a: k i64 1=1; y = ReduceLogSum x a", "f64"},
      {"x: i32 b,4; a: k i64 1=1; y = ReduceLogSumExp x a", "f64"},
      {"x: ui64 b,4; a: k i64 1=1; y = ReduceSum x a", "ui64"},
      {"x: f32 b,4; y m = Dropout x; return y m", "op.fill"},
      {"x: f32 b,4; y m = Dropout x; return y", "!op.fill"},
      {"x: f32 b,4; lo: k f32=-1.0; y = Clip x lo", "fn = \"max\"|!fn = \"min\""},
      {"x: f32 b,4; hi: k f32=1.0; y = Clip x _ hi", "fn = \"min\"|!fn = \"max\""},
      {"x: f32 b,4; z: f32 b,4; w: f32 b,4; y = Mean x z w", "fn = \"mul\""},
      {"x: f32 b,4; i: i32 b; y = Gather x i {axis = 1 : i64}", "op.gather"},
      {"x: f32 b,4; i: k i64=-9223372036854775808; y = Gather x i {axis = 1 : i64}", "op.gather"},
  };
  CHECK(rows, "lower");
}

/* ---- 16 bits ----------------------------------------------------------------------------------------------------- */

#define HALF "c: w f16 3,4; "

LP_TEST(constants_of_16_bits) {
  static const graph_row rows[] = {
      {"x: f16 b,4; i: i1 4; c: k f16=-30000.0; y = Where i x c", "fn = \"where\""},
      {"x: bf16 b,4; i: i1 4; c: k bf16 4=1.0,2.0,3.0,4.0; y = Where i c x", "fn = \"where\""},
      {"x: f16 3,4; c: k f16 3,4=0.5; y = Concat x c {axis = 0 : i64}", "op.concat|cast"},
      {"x: f16 3,4; c: k f16 3,4=0.5; y = Add x c", "op.map"},
      {"i: i64 b; c: k f16 3,4=0.5; y = Gather c i", "op.gather"},
      {"i: i64 b; c: k f16 3,4=0.5; y = Gather c i {axis = 1 : i64}", "op.gather"},
      {"i: i64 b; c: k f16 3,2,2=0.5; y = Gather c i", "op.gather"},
      {"i: i64 1,4; x: f16 1,4; c: k f16 3,4=0.5; y = ScatterElements c i x", "op.scatter_elements"},
      {"i: i64 1,1; x: f16 1,4; c: k f16 3,4=0.5; y = ScatterND c i x", "op.scatter_nd"},
      {"x: f16 b,4; c: k f16 3,4=0.5; t = Transpose c; y = MatMul x t", "op.linear"},
      {"x: f16 b,4; c: k f16 3,4=0.5; t = Transpose c; y = MatMul x t; return y t", "op.linear"},
      {"x: f16 3,b; c: k f16 4,3=0.5; t = Transpose c; y = Concat x t {axis = 1 : i64}; w = MatMul x y; return y",
       "op.concat"},
      {"x: f16 b,4; y = BitCast x {to = 5 : i64}", "op.map"},
      {"x: i16 b,4; y = BitCast x {to = 10 : i64}", "op.map"},
      {"x: f16 b,4; y = BitCast x {to = 16 : i64}", "op.map"},
      {"x: f16 b,4; z: bf16 b,4; y = Neg x; v = Neg z; return y v", "op.map"},
  };
  CHECK(rows, "lower");
}
