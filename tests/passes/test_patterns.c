/* Patterns that recognise looks for, in the forms that exporters write, and near misses of them. */
#include "base/base.h"
#include "tests/passes/graphs.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

#define CHECK(rows, passes) graph_check_rows(rows, LP_COUNT(rows), passes, GRAPH_VALUES)

/* ---- norms ------------------------------------------------------------------------------------------------------- */

#define WEIGHT "w: k f32 4=1.0,2.0,3.0,4.0; "
#define NORM "a: k i64 1=-1; two: k f32=2.0; one: k f32=1.0; e: k f32=0.001; "
#define ROOT "q = Pow x two; m = ReduceMean q a; n = Add m e; r = Sqrt n; "

LP_TEST(norms) {
  static const graph_row rows[] = {
      {"x: f32 b,s,4; " WEIGHT NORM ROOT "d = Div x r; y = Mul d w", "onnx.RMSNormalization|!onnx.Mul"},
      {"x: f32 b,s,4; " WEIGHT NORM ROOT "d = Div x r; y = Mul w d", "onnx.RMSNormalization|!onnx.Mul"},
      {"x: f32 b,s,4; " NORM ROOT "y = Div x r", "onnx.RMSNormalization|!onnx.Sqrt"},
      {"x: f32 b,s,4; " NORM ROOT "i = Div one r; y = Mul x i", "onnx.RMSNormalization|!onnx.Sqrt"},
      {"x: f32 b,s,4; " NORM ROOT "i = Div two r; y = Mul x i", "!Normalization|onnx.Sqrt"},
      {"x: f32 b,s,4; " NORM "q = Mul x x; b: k i64 1=2; m = ReduceMean q b; n = Add m e; r = Sqrt n; y = Div x r",
       "onnx.RMSNormalization|!onnx.Sqrt"},
      {"x: f32 b,s,4; " NORM "q = Mul x x; b: k i64 2=1,2; m = ReduceMean q b; n = Add m e; r = Sqrt n; "
       "y = Div x r",
       "!Normalization"},
      {"x: f32 b,s,4; " NORM "q = Mul x x; m = ReduceMean q; n = Add m e; r = Sqrt n; y = Div x r", "!Normalization"},
      /* no constant length of a row, or one too long for a scale of ones */
      {"x: f32 b,s; " NORM ROOT "y = Div x r", "!Normalization"},
      {"x: f32 b,65537; " NORM ROOT "y = Div x r", "!Normalization"},
      {"x: f32 b,65536; " NORM ROOT "y = Div x r", "onnx.RMSNormalization"},
      /* what is added is no number, or factors are no scale of the row */
      {"x: f32 b,s,4; z: f32; " NORM "q = Pow x two; m = ReduceMean q a; n = Add m z; r = Sqrt n; y = Div x r",
       "!Normalization"},
      {"x: f32 b,s,4; " NORM ROOT "d = Div x r; y = Mul d two", "onnx.RMSNormalization|onnx.Mul"},
      {"x: f32 b,s,4; z: f32 4; " NORM ROOT "d = Div x r; y = Mul d z", "onnx.RMSNormalization|onnx.Mul"},
      {"x: f32 b,s,4; u: k f32 1=3.0; " NORM ROOT "d = Div x r; y = Mul d u", "onnx.RMSNormalization|onnx.Mul"},
      {"x: f32 2,4; u: k f32 2,4=1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0; " NORM ROOT "d = Div x r; y = Mul d u",
       "onnx.RMSNormalization|onnx.Mul"},
      {"x: f32 b,s,4; " WEIGHT NORM "mean = ReduceMean x a; c = Sub x mean; q = Pow c two; m = ReduceMean q a; "
       "n = Add m e; r = Sqrt n; d = Div c r; g = Mul d w; y = Add w g",
       "onnx.LayerNormalization|!onnx.Add"},
  };
  CHECK(rows, "fold,recognise");
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

#define NEGATE "n1 = Neg s; n2 = Neg n1; n3 = Neg n2; n4 = Neg n3; n5 = Neg n4; n6 = Neg n5; n7 = Neg n6; n8 = Neg n7; "

LP_TEST(activations) {
  static const graph_row rows[] = {
      {"x: f32 b,4; s = Sigmoid x; y = Mul s x", "onnx.Swish|!onnx.Sigmoid"},
      {"x: f64 b,4; s = Sigmoid x; y = Mul s x", "!onnx.Swish|onnx.Sigmoid"},
      {"x: f32 b,4; " WEIGHT "s = Sigmoid x; y = Mul s w", "!onnx.Swish"},
      {"x: f32 b,4; c: k f32 1,1=1.0; s = Sigmoid x; u = Mul s c; y = Mul u x", "onnx.Swish"},
      {"x: f32 b,4; s = Sigmoid x; h = Cast s {to = 10 : i64}; g = Cast x {to = 10 : i64}; y = Mul h g",
       "onnx.Sigmoid"},
      {"x: f32 b,4; c: k f32=1.0; s = Sigmoid x; u = Clip s _ c; y = Mul u x", "onnx.Swish"},
      {"x: f32 b,4; s = Sigmoid x; u m = Dropout s; v = Not m; w = Mul u x; return w v", "onnx.Sigmoid"},
      {"x: f32 b,4; s = Sigmoid x; " NEGATE "m1 = Neg n8; m2 = Neg m1; m3 = Neg m2; m4 = Neg m3; y = Mul m4 x",
       "onnx.Swish"},
      {"x: f32 b,4; s = Sigmoid x; " NEGATE "m1 = Neg n8; m2 = Neg m1; m3 = Neg m2; m4 = Neg m3; m5 = Neg m4; "
       "m6 = Neg m5; m7 = Neg m6; m8 = Neg m7; y = Mul m8 x",
       "!onnx.Swish"},
  };
  static const graph_row unfolded[] = {
      {"x: f32 b,4; c: k f32=0.5; s = Sigmoid c; n = Neg s; y = Mul n x", "onnx.Sigmoid|!onnx.Swish"},
  };
  CHECK(rows, "fold,recognise");
  CHECK(unfolded, "recognise");
}

/* ---- rotary embeddings ------------------------------------------------------------------------------------------- */

#define NUMBERS                                                                                                        \
  "zero: k i64 1=0; one: k i64 1=1; two: k i64 1=2; three: k i64 1=3; four: k i64 1=4; eight: k i64 1=8; "             \
  "last: k i64 1=-1; "
#define X4 "x: f32 b,2,s,8; " NUMBERS
#define HALVES "lo = Slice x zero four last; hi = Slice x four eight last; "
#define TURN "n = Neg hi; t = Concat n lo {axis = -1 : i64}; "
#define PAIRS                                                                                                          \
  "ev = Slice x zero eight last two; od = Slice x one eight last two; n = Neg od; u1 = Unsqueeze n last; "             \
  "u2 = Unsqueeze ev last; j = Concat u1 u2 {axis = -1 : i64}; xs = Shape x; t = Reshape j xs; "
#define TABLES "f: f32 b,1,s,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; "
#define SUM "c = Mul x cos; r = Mul t sin; y = Add c r"

#define HALF_ROW "0.5,0.25,0.125,0.75,0.5,0.25,0.125,0.75"
#define PAIR_ROW "0.5,0.5,0.25,0.25,0.125,0.125,0.75,0.75"
#define OTHER_ROW "0.5,0.25,0.125,0.75,0.5,0.25,0.125,0.5"
#define IDS "ids: i64 s; "

LP_TEST(rotary_embeddings) {
  static const graph_row rows[] = {
      {X4 HALVES TURN TABLES SUM, "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4
       "lo = Slice x zero four three; hi = Slice x four eight three; n = Neg hi; t = Concat n lo {axis = 3 : i64}; "
       "f: f32 b,1,s,4; ff = Concat f f {axis = 3 : i64}; cos = Cos ff; sin = Sin ff; y1 = Mul cos x; y2 = Mul sin t; "
       "y = Add y2 y1",
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 "lo hi = Split x {axis = -1 : i64}; " TURN TABLES SUM, "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 "lo hi = Split x {axis = 3 : i64}; " TURN TABLES SUM, "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 "parts: k i64 2=3,5; lo hi = Split x parts {axis = 3 : i64}; " TURN TABLES SUM, "!Rotary"},
      {X4 "parts: k i64 3=2,4,2; o lo hi = Split x parts {axis = 3 : i64}; n = Neg hi; "
          "t = Concat n lo o {axis = 3 : i64}; " TABLES SUM,
       "!Rotary"},
      {X4 "m4: k i64 1=-4; lo = Slice x zero m4 last; hi = Slice x m4 eight last; " TURN TABLES SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 "far: k i64 1=-9; lo = Slice x three far last last; hi = Slice x four eight last; " TURN TABLES SUM,
       "!Rotary"},
      {X4 "at: k i64 4=0,0,0,0; to: k i64 4=99,9,999,4; lo = Slice x at to; hi = Slice x four eight last; " TURN TABLES
           SUM,
       "!Rotary"},
      {X4
       "at: k i64 2=0,0; to: k i64 2=2,4; ax: k i64 2=1,3; lo = Slice x at to ax; hi = Slice x four eight last; " TURN
           TABLES SUM,
       "!Rotary"},
      {"x: f32 b,2,8,8; " NUMBERS "lo = Slice x zero four two; hi = Slice x four eight two; n = Neg hi; "
       "t = Concat n lo {axis = 2 : i64}; f: f32 b,1,8,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin "
       "ff; " SUM,
       "!Rotary"},
      {"x: f32 2,b,s,8; z: f32 2,b,s,4; " NUMBERS HALVES "n = Neg hi; t = Concat n z {axis = -1 : i64}; "
       "f: f32 2,1,s,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM,
       "!Rotary"},
      {"x: f32 b,s,8; " NUMBERS HALVES TURN "f: f32 b,s,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; "
       "sin = Sin ff; " SUM,
       "!Rotary"},
      /* tables with other axes, casts, scales and views */
      {X4 HALVES TURN "f: f32 1,s,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 HALVES TURN "f: f32 s,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 HALVES TURN "f: f32 4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM, "!Rotary"},
      {X4 HALVES TURN "f: f32 b,2,s,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM, "!Rotary"},
      {X4 HALVES TURN "f: f32 b,1,1,4; ff = Concat f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM, "!Rotary"},
      {X4 HALVES TURN
       "f: f32 b,1,s,4; g: f32 b,1,s,4; ff = Concat f g {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM,
       "!Rotary"},
      {"x: f32 b,2,2,8; " NUMBERS HALVES TURN "f: f32 b,1,1,8; ff = Concat f f {axis = 2 : i64}; cos = Cos ff; "
       "sin = Sin ff; " SUM,
       "!Rotary"},
      {X4 HALVES TURN "f: f32 b,1,s,2; ff = Concat f f f f {axis = -1 : i64}; cos = Cos ff; sin = Sin ff; " SUM,
       "!Rotary"},
      {X4 HALVES TURN "k: k f32=1.5; f: f32 b,s,4; ff = Concat f f {axis = -1 : i64}; c0 = Cos ff; s0 = Sin ff; "
                      "c1 = Mul c0 k; s1 = Mul k s0; cos = Unsqueeze c1 one; sin = Unsqueeze s1 one; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 HALVES TURN "k: f32 8; f: f32 b,1,s,4; ff = Concat f f {axis = -1 : i64}; c0 = Cos ff; s0 = Sin ff; "
                      "cos = Mul c0 k; sin = Mul k s0; " SUM,
       "!Rotary"},
      {X4 HALVES TURN "f: f16 b,1,s,4; ff = Concat f f {axis = -1 : i64}; c0 = Cos ff; s0 = Sin ff; "
                      "cos = Cast c0 {to = 1 : i64}; sin = Cast s0 {to = 1 : i64}; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 HALVES TURN "f: f32 b,1,s,1,4; ff = Concat f f {axis = -1 : i64}; c0 = Cos ff; s0 = Sin ff; "
                      "cos = Squeeze c0 three; sin = Squeeze s0 three; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 HALVES TURN "sh: n b, 1, s, 8; f: f32 1,1,s,4; ff = Concat f f {axis = -1 : i64}; c0 = Cos ff; s0 = Sin ff; "
                      "cos = Expand c0 sh; sin = Expand s0 sh; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 HALVES TURN
       "sh: n b, 1, s, 8; f: f32 b,1,8*s; c0 = Cos f; s0 = Sin f; cos = Reshape c0 sh; sin = Reshape s0 sh; " SUM,
       "!Rotary"},
      {X4 HALVES TURN "n1: n s; ns = Unsqueeze n1 zero; f: f32 b,1,s + 2,4; ff = Concat f f {axis = -1 : i64}; "
                      "c0 = Cos ff; s0 = Sin ff; cos = Slice c0 zero ns two; sin = Slice s0 zero ns two; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      /* constant tables, and their rows by position */
      {X4 HALVES TURN IDS "k: k f32 2,8=" HALF_ROW "," HALF_ROW "; cos = Gather k ids; sin = Gather k ids; " SUM,
       "onnx.RotaryEmbedding|!onnx.Neg"},
      {X4 HALVES TURN IDS "k: k f32 2,8=" HALF_ROW "," OTHER_ROW "; cos = Gather k ids; sin = Gather k ids; " SUM,
       "!Rotary"},
      {X4 HALVES TURN IDS "k: k f32 2,8=" PAIR_ROW "," PAIR_ROW "; cos = Gather k ids; sin = Gather k ids; " SUM,
       "!Rotary"},
      {X4 PAIRS IDS "k: k f32 2,8=" PAIR_ROW "," PAIR_ROW "; cos = Gather k ids; sin = Gather k ids; " SUM,
       "onnx.RotaryEmbedding|interleaved|!onnx.Neg"},
      {X4 PAIRS IDS "k: k f32 2,8=" PAIR_ROW "," HALF_ROW "; cos = Gather k ids; sin = Gather k ids; " SUM, "!Rotary"},
      {X4 HALVES TURN IDS "k: k f32 1,8=" HALF_ROW "; cos = Gather k zero {axis = 0 : i64}; sin = Gather k ids; " SUM,
       "!Rotary"},
      {X4 HALVES TURN IDS "k: k f32 2,1,8=" HALF_ROW "," HALF_ROW "; cos = Gather k ids; sin = Gather k ids; "
                          "c0 = Squeeze cos one; s0 = Squeeze sin one; c = Mul x c0; r = Mul t s0; y = Add c r",
       "!Rotary"},
      {X4 HALVES TURN "ids: k i64 8=0,1,2,3,0,1,2,3; k: f32 s,8; cos = Gather k ids {axis = 1 : i64}; "
                      "sin = Gather k ids {axis = 1 : i64}; " SUM,
       "!Rotary"},
      /* neighbours */
      {X4 PAIRS TABLES SUM, "!Rotary"},
      {"x: f32 b,2,s,8; " NUMBERS "ev = Slice x zero eight last two; od = Slice x one eight last two; n = Neg od; "
       "u1 = Unsqueeze n last; u2 = Unsqueeze ev last; u3 = Unsqueeze ev last; sh: n b, 2, s, 12; "
       "j = Concat u1 u2 u3 {axis = -1 : i64}; t0 = Reshape j sh; t = Slice t0 zero eight last; " TABLES SUM,
       "!Rotary"},
  };
  CHECK(rows, "fold,recognise");
}

#define PART "p4 = Slice x zero eight last; lo = Slice p4 zero four last; hi = Slice p4 four eight last; "
#define ROTATED "c = Mul p4 cos; r = Mul t sin; o = Add c r; "

LP_TEST(partial_rotary_embeddings) {
  static const graph_row rows[] = {
      {"x: f32 b,2,s,12; end: k i64 1=12; " NUMBERS PART TURN TABLES ROTATED "p = Slice x eight end last; "
       "y = Concat o p {axis = -1 : i64}",
       "rotary_embedding_dim = 8|!onnx.Concat\"(%0"},
      {"x: f32 b,2,s,12; end: k i64 1=12; " NUMBERS PART TURN TABLES ROTATED "p = Slice x eight end last; "
       "y = Concat o p p {axis = -1 : i64}",
       "!rotary_embedding_dim"},
      {"x: f32 b,2,s,12; end: k i64 1=12; z: f32 b,2,s,12; " NUMBERS PART TURN TABLES ROTATED
       "p = Slice z eight end last; y = Concat o p {axis = -1 : i64}",
       "!rotary_embedding_dim"},
      {"p4: f32 b,2,s,8; z: f32 b,2,s,4; " NUMBERS
       "lo = Slice p4 zero four last; hi = Slice p4 four eight last; " TURN TABLES ROTATED
       "y = Concat o z {axis = -1 : i64}",
       "!rotary_embedding_dim"},
      {"x: f32 b,2,s,12; end: k i64 1=12; " NUMBERS "p4 = Slice x four end last; lo = Slice p4 zero four last; "
       "hi = Slice p4 four eight last; " TURN TABLES ROTATED
       "p = Slice x zero four last; y = Concat o p {axis = -1 : i64}",
       "!rotary_embedding_dim"},
      {"x: f32 b,2,s,12; end: k i64 1=12; " NUMBERS PART TURN TABLES ROTATED
       "ot = Transpose o {perm = array<i64: 0, 2, 1, 3>}; xt = Transpose x {perm = array<i64: 0, 2, 1, 3>}; "
       "p = Slice xt eight end last; y = Concat ot p {axis = -1 : i64}",
       "!rotary_embedding_dim"},
  };
  CHECK(rows, "fold,recognise");
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

#define QKV "q: f32 b,2,s,4; k: f32 b,2,r,4; v: f32 b,2,r,4; "
#define KT "kt = Transpose k {perm = array<i64: 0, 1, 3, 2>}; "
#define SCORES KT "x = MatMul q kt; "
#define CONTEXT "pr = Softmax x {axis = -1 : i64}; y = MatMul pr v"
#define FOLDED "q: f32 2*b,s,4; k: f32 2*b,r,4; v: f32 2*b,r,4; "
#define FOLDED_KT "kt = Transpose k {perm = array<i64: 0, 2, 1>}; "

LP_TEST(attention) {
  static const graph_row rows[] = {
      {QKV SCORES CONTEXT, "onnx.Attention|scale = 1.0e+00|!onnx.Softmax"},
      {QKV KT "x = MatMul q kt; pr = Softmax x {axis = 3 : i64}; y = MatMul pr v", "onnx.Attention"},
      {QKV KT "x = MatMul q kt; pr = Softmax x {axis = 2 : i64}; y = MatMul pr v", "!onnx.Attention"},
      {QKV KT "c: k f32=2.0; d: k f32=8.0; qs = Div q c; ks = Mul d kt; x = MatMul qs ks; " CONTEXT,
       "onnx.Attention|scale = 4.0e+00"},
      {QKV KT "c: k f32=0.0; qs = Div q c; x = MatMul qs kt; " CONTEXT, "onnx.Attention|onnx.Div"},
      {QKV KT "c: k f32 4=1.0,2.0,3.0,4.0; qs = Mul q c; x = MatMul qs kt; " CONTEXT, "onnx.Attention|onnx.Mul"},
      {QKV KT "c: k f32 4=1.0,2.0,3.0,4.0; qs = Div q c; x = MatMul qs kt; " CONTEXT, "onnx.Attention|onnx.Div"},
      {"q: f64 b,2,s,4; k: f64 b,2,r,4; v: f64 b,2,r,4; " SCORES CONTEXT, "!onnx.Attention"},
      {"q: f32 s,4; k: f32 r,4; v: f32 r,4; kt = Transpose k {perm = array<i64: 1, 0>}; x = MatMul q kt; " CONTEXT,
       "!onnx.Attention"},
      {"q: f32 1,b,2,s,4; k: f32 1,b,2,r,4; v: f32 1,b,2,r,4; kt = Transpose k {perm = array<i64: 0, 1, 2, 4, 3>}; "
       "x = MatMul q kt; " CONTEXT,
       "!onnx.Attention"},
      /* keys that are transposed otherwise */
      {"q: f32 b,2,s,4; k: f32 r,4,2,b; v: f32 b,2,r,4; kt = Transpose k; x = MatMul q kt; " CONTEXT,
       "!onnx.Attention"},
      {"q: f32 b,2,s,4; k: f32 b,r,2,4; v: f32 b,2,r,4; kt = Transpose k {perm = array<i64: 0, 2, 3, 1>}; "
       "x = MatMul q kt; " CONTEXT,
       "onnx.Attention"},
      {"q: f32 b,2,s,4; kt: f32 b,2,4,r; v: f32 b,2,r,4; x = MatMul q kt; " CONTEXT, "!onnx.Attention"},
      {"q: f32 b,2,s,4; pk: f32 b,2,4,p; k: f32 b,2,s,4; v: f32 b,2,p + s,4; nt = Transpose k {perm = array<i64: 0, 1, "
       "3, 2>}; "
       "kt = Concat pk nt {axis = 3 : i64}; x = MatMul q kt; " CONTEXT,
       "onnx.Attention"},
      {"q: f32 b,2,s,4; pk: f32 b,2,4,p; k: f32 b,2,s,4; v: f32 b,2,p + s,4; nt = Transpose k {perm = array<i64: 0, 1, "
       "3, 2>}; "
       "kt = Concat pk nt {axis = -1 : i64}; x = MatMul q kt; " CONTEXT,
       "onnx.Attention"},
      {"q: f32 b,2,s,4; pk: f32 b,2,4,p; k: f32 b,2,s,4; v: f32 b,2,2*p + s,4; "
       "nt = Transpose k {perm = array<i64: 0, 1, 3, 2>}; kt = Concat pk nt pk {axis = -1 : i64}; x = MatMul q "
       "kt; " CONTEXT,
       "!onnx.Attention"},
      {"q: f32 b,2,s,4; k1: f32 b,1,4,r; k2: f32 b,1,4,r; v: f32 b,2,r,4; kt = Concat k1 k2 {axis = 1 : i64}; "
       "x = MatMul q kt; " CONTEXT,
       "!onnx.Attention"},
      {"q: f32 b,2,s,4; k: f32 b,1,r,4; v: f32 b,2,r,4; " SCORES CONTEXT, "!onnx.Attention"},
      /* batch and heads on one axis */
      {FOLDED FOLDED_KT "x = MatMul q kt; " CONTEXT, "onnx.Attention|!onnx.Softmax"},
      {"q: f32 2*b,s,4; kt: f32 2*b,4,r; v: f32 2*b,r,4; x = MatMul q kt; " CONTEXT, "onnx.Attention|!onnx.Softmax"},
      {"q: f32 b + 1,s,4; k: f32 b + 1,r,4; v: f32 b + 1,r,4; " FOLDED_KT "x = MatMul q kt; " CONTEXT,
       "!onnx.Attention"},
      {"q: f32 2*b,s,4; k: f32 r,4,2*b; v: f32 2*b,r,4; kt = Transpose k {perm = array<i64: 2, 1, 0>}; x = MatMul q "
       "kt; " CONTEXT,
       "onnx.Attention"},
      {"q: f32 2*b,s,4; k: f32 r,4,2*b; v: f32 2*b,r,4; kt = Transpose k; h = Transpose kt {perm = array<i64: 0, 1, "
       "2>}; "
       "x = MatMul q h; " CONTEXT,
       "onnx.Attention"},
      {"q4: f32 b,2,s,4; k4: f32 b,2,r,4; v4: f32 b,2,r,4; qn: n 2*b, s, 4; kn: n 2*b, r, 4; q = Reshape q4 qn; "
       "k = Reshape k4 kn; v = Reshape v4 kn; " FOLDED_KT "x = MatMul q kt; " CONTEXT,
       "onnx.Attention|!onnx.Softmax"},
      {"q4: f32 b,s,2,4; k4: f32 b,2,r,4; v4: f32 b,2,r,4; qn: n 2*b, s, 4; kn: n 2*b, r, 4; tn: n 2*b, 4, r; "
       "q = Reshape q4 qn; k = Transpose k4 {perm = array<i64: 0, 1, 3, 2>}; kt = Reshape k tn; v = Reshape v4 kn; "
       "x = MatMul q kt; " CONTEXT,
       "onnx.Attention|!onnx.Softmax"},
      {"q: f32 2*b,s,4; k3: f32 2*b,r,2,2; v: f32 2*b,r,4; kn: n 2*b, r, 4; k = Reshape k3 kn; " FOLDED_KT
       "x = MatMul q kt; " CONTEXT,
       "onnx.Attention|!onnx.Softmax"},
      {FOLDED "m: f32 2*b,s,r; " FOLDED_KT "z = MatMul q kt; x = Add z m; " CONTEXT, "onnx.Attention|!onnx.Softmax"},
      {FOLDED "m: f32 1,s,r; " FOLDED_KT "z = MatMul q kt; x = Add z m; " CONTEXT, "!onnx.Attention"},
      {FOLDED "m: f32 s,r; " FOLDED_KT "z = MatMul q kt; x = Add z m; " CONTEXT, "onnx.Attention|!onnx.Softmax"},
      {"q: f32 b + 1,s,4; k: f32 b + 1,r,4; v: f32 b + 1,r,4; m: f32 b + 1,s,r; " FOLDED_KT
       "z = MatMul q kt; x = Add z m; " CONTEXT,
       "!onnx.Attention"},
      {QKV "m: f32; " KT "z = MatMul q kt; x = Add z m; " CONTEXT, "!onnx.Attention"},
      /* scores are cut or turned before the softmax */
      {"q: f32 b,2,s,4; k: f32 b,2,s,4; v: f32 b,2,s,4; " KT "z = MatMul q kt; n: n b, 2, s*s, 1; m: n b, 2, s, s; "
       "x = Transpose z {perm = array<i64: 0, 1, 3, 2>}; " CONTEXT,
       "!onnx.Attention"},
      {"q: f32 b,2,s,4; k: f32 b,2,r,4; v: f32 b,2,s,4; " KT
       "z = MatMul q kt; n: n b, 2, r, s; x = Reshape z n; " CONTEXT,
       "!onnx.Attention"},
  };
  CHECK(rows, "fold,recognise");
}

#define GROUPED "q: f32 b,4,s,4; k1: f32 b,2,r,4; v1: f32 b,2,r,4; "
#define WIDEN(k) k " = Reshape " k "w fold; "

LP_TEST(repeated_heads) {
  static const graph_row rows[] = {
      {GROUPED "ax: k i64 1=2; wide: n b, 2, 2, r, 4; fold: n b, 4, r, 4; ku = Unsqueeze k1 ax; vu = Unsqueeze v1 ax; "
               "kw = Expand ku wide; vw = Expand vu wide; " WIDEN("k") WIDEN("v") SCORES CONTEXT,
       "onnx.Attention|!onnx.Expand"},
      {GROUPED
       "five: n b, 2, 1, r, 4; wide: n b, 2, 2, r, 4; fold: n b, 4, r, 4; ku = Reshape k1 five; vu = Reshape v1 five; "
       "kw = Expand ku wide; vw = Expand vu wide; " WIDEN("k") WIDEN("v") SCORES CONTEXT,
       "onnx.Attention|!onnx.Expand"},
      /* heads in another order: the first ones are repeated as a whole */
      {GROUPED "ax: k i64 1=1; wide: n b, 2, 2, r, 4; fold: n b, 4, r, 4; ku = Unsqueeze k1 ax; vu = Unsqueeze v1 ax; "
               "kw = Expand ku wide; vw = Expand vu wide; " WIDEN("k") WIDEN("v") SCORES CONTEXT,
       "onnx.Attention|onnx.Expand"},
      {"q: f32 b,4,s,4; k1: f32 b,2,2,r,4; v1: f32 b,2,2,r,4; fold: n b, 4, r, 4; wide: n b, 2, 2, r, 4; "
       "kr = Relu k1; vr = Relu v1; kw = Expand kr wide; vw = Expand vr wide; " WIDEN("k") WIDEN("v") SCORES CONTEXT,
       "onnx.Attention"},
      {"q: f32 b,4,s,4; k1: f32 b,2,1,1,4; v1: f32 b,2,1,1,4; fold: n b, 4, r, 4; wide: n b, 2, 2, r, 4; "
       "kr = Relu k1; vr = Relu v1; kw = Expand kr wide; vw = Expand vr wide; " WIDEN("k") WIDEN("v") SCORES CONTEXT,
       "onnx.Attention|onnx.Expand"},
      {"q: f32 b,4,s,4; k1: f32 b,2,1,4; v1: f32 b,2,1,4; fold: n b, 4, r, 4; wide: n b, 2, 2, r, 4; ax: k i64 1=2; "
       "ku = Unsqueeze k1 ax; vu = Unsqueeze v1 ax; kw = Expand ku wide; vw = Expand vu wide; " WIDEN("k") WIDEN("v")
           SCORES CONTEXT,
       "onnx.Attention|onnx.Expand"},
      {"q: f32 b,4,s,4; k1: f32 b,r,4; v1: f32 b,r,4; fold: n b, 4, r, 4; wide: n b, 4, r, 4; ax: k i64 1=1; "
       "ku = Unsqueeze k1 ax; vu = Unsqueeze v1 ax; kw = Expand ku wide; vw = Expand vu wide; k = Relu kw; v = Relu "
       "vw; " SCORES CONTEXT,
       "onnx.Attention|onnx.Expand"},
  };
  CHECK(rows, "fold,recognise");
}

#define JOIN KT "z = MatMul q kt; x = Concat z l {axis = -1 : i64}; "
#define CUT "p = Softmax x {axis = -1 : i64}; pr = Slice p from to last; y = MatMul pr v"
#define ENDS "from: k i64 1=0; to: k i64 1=-1; last: k i64 1=3; one: k i64 1=1; four: n b, 2, s, 1; "

LP_TEST(sinks) {
  static const graph_row rows[] = {
      {QKV ENDS "c: k f32 2,1,1=0.5,-2.0; l = Expand c four; " JOIN CUT, "operand_mask|onnx.Attention"},
      {QKV ENDS "c: k f32 2,1,1=0.5,-2.0; l = Expand c four; " JOIN
                "p = Softmax x {axis = -1 : i64}; pr = Slice p from to last one; y = MatMul pr v",
       "onnx.Attention"},
      {QKV ENDS "c: k f32 2,1,1=0.5,-2.0; l = Expand c four; " KT
                "z = MatMul q kt; x = Concat z l {axis = 3 : i64}; p = Softmax x {axis = -1 : i64}; pr = Slice p from "
                "to last _; "
                "y = MatMul pr v",
       "onnx.Attention"},
      {QKV ENDS
       "c: k f32 2,1,1=0.5,-2.0; l = Expand c four; " KT "z = MatMul q kt; "
       "x = Concat z l l {axis = 3 : i64}; m2: k i64 1=-2; p = Softmax x {axis = -1 : i64}; pr = Slice p from m2 last; "
       "y = MatMul pr v",
       "!onnx.Attention"},
      {QKV ENDS
       "c: k f32 2,1,2=0.5,-2.0,1.0,2.0; two: n b, 2, s, 2; l = Expand c two; " KT "z = MatMul q kt; "
       "x = Concat z l {axis = 3 : i64}; m2: k i64 1=-2; p = Softmax x {axis = -1 : i64}; pr = Slice p from m2 last; "
       "y = MatMul pr v",
       "!onnx.Attention"},
      /* logits of each row, of the input, or one for all heads */
      {QKV ENDS "l: f32 b,2,s,1; " JOIN CUT, "!onnx.Attention"},
      {QKV ENDS "c: f32 2,1,1; l = Expand c four; " JOIN CUT, "!onnx.Attention"},
      {QKV ENDS "c: k f32=0.5; l = Expand c four; " JOIN CUT, "!onnx.Attention"},
      {QKV ENDS "c: k f32 1,1,1=0.5; l = Expand c four; " JOIN CUT, "!onnx.Attention"},
      {"q: f32 2,2,s,4; k: f32 2,2,r,4; v: f32 2,2,r,4; " ENDS "c: k f32 2,2,1,1=0.5,1.0,2.0,3.0; four2: n 2, 2, s, 1; "
       "l = Expand c four2; " JOIN CUT,
       "!onnx.Attention"},
      {"q: f32 2*b,s,4; k: f32 2*b,r,4; v: f32 2*b,r,4; l: k f32 1,1,1=0.5; n: n 2*b, s, 1; w = Expand l n; " FOLDED_KT
       "from: k i64 1=0; to: k i64 1=-1; last: k i64 1=2; z = MatMul q kt; x = Concat z w {axis = 2 : i64}; " CUT,
       "!onnx.Attention"},
      {"q: f32 b,2,s,4; k: f32 b,2,2,4; v: f32 b,2,3,4; l: f32 b,2,s,1; " KT "z = MatMul q kt; "
       "x = Concat z l {axis = 3 : i64}; " CONTEXT,
       "!onnx.Attention"},
      {"q: f32 b,2,2,4; k: f32 b,2,r,4; v: f32 b,2,r,4; " KT "z = MatMul q kt; w = Relu z; "
       "x = Concat z w {axis = 2 : i64}; " CONTEXT,
       "!onnx.Attention"},
  };
  CHECK(rows, "fold,recognise");
}

/* ---- between the product and the softmax ------------------------------------------------------------------------- */

#define HIDE "low: k f32=-30000.0; seen: i1 s,r; "
#define MORE(a, b) b " = Add " a " m; "
#define RAW KT "z = MatMul q kt; "

LP_TEST(scores) {
  static const graph_row rows[] = {
      {"q: f16 b,2,s,4; k: f16 b,2,r,4; v: f16 2*b,r,4; low: k f16=-30000.0; seen: i1 s,r; n: n 2*b, s, r; " RAW
       "h = Where seen z low; x = Reshape h n; " CONTEXT,
       "onnx.Attention|-1.0e+30"},
      {"q: f16 b,2,s,4; k: f16 b,2,r,4; v: f16 2*b,r,4; m: f16 s,r; low: k f16=-30000.0; seen: i1 s,r; n: n 2*b, s, "
       "r; " RAW "a = Add z m; h = Where seen a low; x = Reshape h n; " CONTEXT,
       "onnx.Attention|-1.0e+30"},
      {QKV RAW "lo: k f32=-50000.0; hi: k f32=50000.0; x = Clip z lo hi; " CONTEXT, "onnx.Attention"},
      {QKV RAW "lo: k f32=-5.0; hi: k f32=5.0; x = Clip z lo hi; " CONTEXT, "!onnx.Attention"},
      {QKV RAW "lo: k f32=-50000.0; x = Max z lo lo; " CONTEXT, "!onnx.Attention"},
      {QKV RAW "c: k f32=0.0; x = Mul z c; " CONTEXT, "!onnx.Attention"},
      {QKV RAW "t = Tanh z; x = Tanh t; " CONTEXT, "!onnx.Attention"},
      {QKV RAW "m: f32 s,r; a = Add z m; x = Tanh a; " CONTEXT, "!onnx.Attention"},
      {QKV RAW "c: k f32=5.0; d = Div z c; t = Tanh d; x = Mul t c; " CONTEXT, "onnx.Attention|softcap = 5.0"},
      {QKV RAW "c: k f32=5.0; lo: k f32=-50000.0; d = Div z c; t = Tanh d; u = Mul t c; x = Max u lo; " CONTEXT,
       "onnx.Attention|softcap = 5.0"},
      {QKV RAW HIDE "h = Where seen z low; x = Identity h; " CONTEXT, "onnx.Attention|onnx.Where"},
      {QKV RAW HIDE "m: f32 s,r; h = Sub z m; x = Where seen h low; " CONTEXT, "onnx.Attention"},
      {QKV RAW "low: k f32=-10000000000.0; seen: i1 s,r; x = Where seen z low; " CONTEXT, "onnx.Attention"},
      {QKV RAW "low: f32; seen: i1 s,r; x = Where seen z low; " CONTEXT, "!onnx.Attention"},
      {QKV RAW HIDE "n: n b, 2, s, r; five: n 1, b, 2, s, r; h = Where seen z low; g = Reshape h five; w = Relu g; "
                    "x = Reshape h n; " CONTEXT,
       "onnx.Attention"},
      {"q: f32 b,2,s,4; v: f32 b,2,3,4; kt: k f32 4,3=1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,1.0,2.0,3.0; x = MatMul q "
       "kt; " CONTEXT,
       "!onnx.Attention"},
      {"k: f32 b,2,r,4; v: f32 b,2,r,4; q: k f32 2,4=1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0; " SCORES CONTEXT,
       "!onnx.Attention"},
      {QKV "m: k f32=0.5; " RAW MORE("z", "z1") MORE("z1", "z2") MORE("z2", "z3") MORE("z3", "z4") MORE("z4", "z5")
           MORE("z5", "z6") MORE("z6", "z7") MORE("z7", "z8") MORE("z8", "z9") MORE("z9", "za") MORE("za", "zb") MORE(
               "zb", "zc") MORE("zc", "zd") MORE("zd", "ze") MORE("ze", "zf") MORE("zf", "zg") MORE("zg", "x") CONTEXT,
       "!onnx.Attention"},
      {QKV "m: k f32=0.5; " RAW MORE("z", "z1") MORE("z1", "z2") MORE("z2", "z3") MORE("z3", "z4") MORE("z4", "z5")
           MORE("z5", "z6") MORE("z6", "z7") MORE("z7", "z8") MORE("z8", "z9") MORE("z9", "za") MORE("za", "zb")
               MORE("zb", "zc") MORE("zc", "zd") MORE("zd", "ze") MORE("ze", "zf") MORE("zf", "zg") MORE("zg", "zh")
                   MORE("zh", "x") CONTEXT,
       "!onnx.Attention"},
      {"q: f16 b,2,s,4; k: f16 b,2,r,4; v: f16 b,2,r,4; " RAW "lo: k f16=-50000.0; x = Max z lo; " CONTEXT,
       "onnx.Attention"},
      {"q: bf16 b,2,s,4; k: bf16 b,2,r,4; v: bf16 b,2,r,4; " RAW "lo: k bf16=-50000.0; x = Max z lo; " CONTEXT,
       "!onnx.Attention"},
  };
  CHECK(rows, "fold,recognise");
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* A bias that falls by 0.5 with each position of distance, and off by `more` at the third key: by less than 1e-4 it is
 * ALiBi. */
#define FALLING(more)                                                                                                  \
  "q: f32 b,2,s,4; k: f32 b,2,s + p,4; v: f32 b,2,s + p,4; low: k f32=-30000.0; " KT                                   \
  "z = MatMul q kt; zero: k i64=0; one: k i64=1; past: n p; total: n p + s; keys = Range zero total one; "             \
  "rows = Range past total one; ax: k i64 1=1; column = Unsqueeze rows ax; seen = LessOrEqual keys column; "           \
  "f = Cast keys {to = 1 : i64}; half: k f32=0.5; third: k f32=2.0; off: k f32=" more "; at = Equal f third; "         \
  "at1 = Cast at {to = 1 : i64}; by = Mul at1 off; even = Mul f half; bias = Add even by; g = Add z bias; "            \
  "x = Where seen g low; "

LP_TEST(biases_that_fall_evenly) {
  static const graph_row rows[] = {
      {FALLING("0.0") CONTEXT, "polys<\"-s - p + 1\">|is_causal = 1|!onnx.Where"},
      {FALLING("0.00005") CONTEXT, "polys<\"-s - p + 1\">|is_causal = 1|!onnx.Where"},
      {FALLING("-0.00005") CONTEXT, "polys<\"-s - p + 1\">|is_causal = 1|!onnx.Where"},
      {FALLING("0.0002") CONTEXT, "!polys<\"-s - p + 1\">|is_causal = 1|onnx.Where"},
      {FALLING("-0.0002") CONTEXT, "!polys<\"-s - p + 1\">|is_causal = 1|onnx.Where"},
  };
  graph_check_rows(rows, LP_COUNT(rows), "fold,recognise", GRAPH_TEXT);
}

/* ---- folding ----------------------------------------------------------------------------------------------------- */

LP_TEST(folding) {
  static const graph_row rows[] = {
      {"x: f32 3,2; st: k i64 1=-1; f: k i64 1=-1; t: k i64 1=-9; a: k i64 1=0; y = Slice x f t a st", "onnx.Slice"},
      {"x: f32 3,2; st: k i64 1=1; f: k i64 1=0; t: k i64 1=3; a: k i64 1=0; y = Slice x f t a st", "!onnx.Slice"},
      {"x: f32 3,2; st: i64 1; f: k i64 1=0; t: k i64 1=3; a: k i64 1=0; y = Slice x f t a", "!onnx.Slice"},
      {"x: f32 3,2,4; y = Transpose x {perm = array<i64: 0, 1, 2>}", "!onnx.Transpose"},
      {"x: f32 b,4; s: n b, 4; c = ConstantOfShape s; y = Add x c", "!onnx.Add"},
      {"x: f32 b,4; s: n b, 4; u: k f32 1=1.0; c = ConstantOfShape s; e = Exp c; y = Mul x e", "onnx.Mul"},
      {"x: f32 b,4; s: n b, 4; i: k i64=1; e = Expand i s; c = Cast e {to = 1 : i64}; y = Mul x c", "!onnx.Mul"},
      {"x: f32 b,4; s: n b, 4; i: k i64=2; e = Expand i s; c = Cast e {to = 1 : i64}; y = Mul x c", "onnx.Mul"},
      {"x: f32 b,4; s: n b, 4; i: k i64=2; e = Expand i s; c = Cast e {to = 9 : i64}; z = Neg x; y = Where c x z",
       "!onnx.Where"},
      {"x: f32 b,4; i: i64 b,4; c = Cast i {to = 9 : i64}; z = Neg x; y = Where c x z", "onnx.Where"},
      {"x: f32 1,4; s: n b, 4; i: k i1=1; e = Expand i s; z: f32 b,4; y = Where e x z", "onnx.Where"},
      {"x: f32 b,4; s: n 4, b; u: k f32=0.0; e = Expand u s; t = Transpose e; y = Add x t", "!onnx.Add"},
      {"x: f32 b,4; s: n b, 9; u: k f32=0.0; f: k i64 1=0; t: k i64 1=4; a: k i64 1=1; e = Expand u s; c = Slice e f t "
       "a; y = Add x c",
       "!onnx.Add"},
      {"x: f32 b,4; i: i64 b,4; s: n b, 9; u: k f32=0.0; e = Expand u s; c = GatherElements e i {axis = 1 : i64}; y = "
       "Add x c",
       "!onnx.Add"},
      {"x: f32 b,4; i: i64 b,1; s: n 5, 4; u: k f32=0.0; e = Expand u s; c = GatherND e i; y = Add x c", "!onnx.Add"},
      {"x: f32 b,4; w: w f32 5000; u: k f32 5000=0.0; a: f32 b,5000; y = Add a u", "onnx.Add"},
      {"x: f32 b,4; y m = Dropout x; return y m", "onnx.Dropout"},
      {"x: f32 b,4; y m = Dropout x; z = Tanh y; return z", "!onnx.Dropout"},
      {"x: f32 b,4; y = Split x {axis = 1 : i64}; z = Tanh y", "!onnx.Split"},
      {"x: f32 b,4; y = Concat x {axis = 1 : i64}; z = Sum y; w = Mean z; v = Min w; u = Max v; t = Tanh u",
       "!onnx.Concat|!onnx.Max"},
      /* merged, or not for one attribute, operand or type */
      {"x: f32 b,4; a: k i64 1=1; u = ReduceSum x a; v = ReduceSum x a; y = Mul u v", "\"onnx.Mul\"(%2, %2)"},
      {"x: f32 b,4; a: k i64 1=1; u = ReduceSum x a; v = ReduceSum x a {keepdims = 0 : i64}; return u v",
       "keepdims = 0"},
      {"x: f32 4,4; u = Transpose x {perm = array<i64: 1, 0>}; v = Transpose x {perm = array<i64: 1, 0>}; y = Mul u v",
       "\"onnx.Mul\"(%1, %1)"},
      {"x: f32 4,4,4; u = Transpose x {perm = array<i64: 1, 0, 2>}; v = Transpose x {perm = array<i64: 1, 2, 0>}; y = "
       "Mul u v",
       "\"onnx.Mul\"(%1, %2)"},
      {"x: f32 4,4; u = Softmax x {axis = 1 : i64, flatten = true}; v = Softmax x {axis = 1 : i64, flatten = true}; y "
       "= Mul u v",
       "\"onnx.Mul\"(%1, %1)"},
      {"x: f32 4,4; u = Softmax x {axis = 1 : i64, flatten = true}; v = Softmax x {axis = 1 : i64, flatten = false}; y "
       "= Mul u v",
       "\"onnx.Mul\"(%1, %2)"},
      {"x: f32 4,4; u = LeakyRelu x {alpha = 0.5 : f64}; v = LeakyRelu x {alpha = 0.25 : f64}; y = Mul u v",
       "\"onnx.Mul\"(%1, %2)"},
      {"x: f32 4,4; u = Gelu x {approximate = \"tanh\"}; v = Gelu x {approximate = \"tanh\"}; w = Gelu x {approximate "
       "= \"none\"}; "
       "y = Sum u v w",
       "\"onnx.Sum\"(%1, %1, %2)"},
      {"x: f32 b,4; s = Shape x; t = Shape x {start = 0 : i64}; u = Expand x s; v = Expand x t; y = Add u v",
       "onnx.Add"},
  };
  CHECK(rows, "fold");
}
