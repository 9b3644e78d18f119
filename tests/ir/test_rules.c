/* The type rules of op.*: each refuses what its operator's sentence in ops.def excludes, and says what. */
#include "base/poly.h"
#include "tests/ir/op_text.h"
#include "tests/suite.h"

LP_TEST(products) {
  static const op_row rows[] = {
      {"op.matmul", "", "f32 b,4,3; f32 b,3,5", "f32 b,4,5", NULL},
      {"op.matmul", "transpose_a = true, transpose_b = true", "f32 b,3,4; f32 b,5,3", "f32 b,4,5", NULL},
      {"op.matmul", "", "f32 3; f32 3,5", "f32 5", "operands need two axes at least"},
      {"op.matmul", "", "f32 b,4,3; f32 b,4,5", "f32 b,4,5", "inner size is 4, should be 3"},
      {"op.matmul", "", "f32 b,4,3; f32 b,3,5", "f32 b,3,5", "rows is 3, should be 4"},
      {"op.matmul", "", "f32 b,4,3; f32 b,3,5", "f32 b,4,3", "columns is 3, should be 5"},
      {"op.matmul", "transpose_a = true", "f32 b,3,4; f32 b,4,5", "f32 b,3,5", "inner size is 4, should be 3"},
      {"op.linear", "", "f32 b,4; f32 4,5", "f32 b,5", "weight is not a constant"},
      {"op.linear", "", "f32 b,4; f32 4,5", "f32 5", "result has another number of axes than x"},
      {"op.linear", "", "f32; f32 4,5", "f32", "result has another number of axes than x"},
      {"op.linear", "epilogue = \"tanh\"", "f32 b,4; f32 4,5", "f32 b,5", "unknown epilogue"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

LP_TEST(experts) {
  static const char six[] = "experts = 6 : i64, transpose_b = true, operand_mask = \"1101\"";
  static const char with_bias[] = "experts = 6 : i64, transpose_b = true";
  static const op_row rows[] = {
      {"op.experts", six, "f32 b,1,8; w f32 30,8; i64 b,2", "f32 b,2,5", NULL},
      {"op.experts", six, "f32 b,2,8; w f32 30,8; i64 b,2", "f32 b,2,5", NULL},
      {"op.experts", with_bias, "f32 b,2,8; w f32 30,8; f32 30; i64 b,2", "f32 b,2,5", NULL},
      {"op.experts", with_bias, "f32 b,2,8; w f32 30,8; f32 5; i64 b,2", "f32 b,2,5", "bias is 5, should be 30"},
      {"op.experts", six, "f32 b,3,8; w f32 30,8; i64 b,2", "f32 b,2,5", "x's number of choices is 3, should be 2"},
      {"op.experts", six, "f32 b,2,8; w f32 25,8; i64 b,2", "f32 b,2,5", "weight's outer size is 25, should be 30"},
      {"op.experts", six, "f32 b,2,7; w f32 30,8; i64 b,2", "f32 b,2,5", "weight's inner size is 8, should be 7"},
      {"op.experts", six, "f32 s,2,8; w f32 30,8; i64 b,2", "f32 b,2,5", "x's axis is s, should be b"},
      {"op.experts", six, "f32 b,2,8; w f32 30,8; i64 b,2", "f32 s,2,5", "result axis is s, should be b"},
      {"op.experts", six, "f32 b,8; w f32 30,8; i64 b,2", "f32 b,5",
       "index is not of type i64 with one axis less than x"},
      {"op.experts", six, "f32 b,2,8; w f32 30,8; i32 b,2", "f32 b,2,5",
       "index is not of type i64 with one axis less than x"},
      {"op.experts", six, "f32 b,2,8; f32 30,8; i64 b,2", "f32 b,2,5", "weight is not a constant"},
      {"op.experts", "experts = 6 : i64, transpose_b = true, operand_mask = \"11001\"",
       "f32 b,2,8; w f32 30,8; w f32 30,8", "f32 b,2,5", "experts, transpose_b or index are missing"},
      {"op.experts", "experts = 6 : i64, transpose_b = false, operand_mask = \"1101\"",
       "f32 b,2,8; w f32 30,8; i64 b,2", "f32 b,2,5", "experts, transpose_b or index are missing"},
      {"op.experts", "experts = 0 : i64, transpose_b = true, operand_mask = \"1101\"", "f32 b,2,8; w f32 30,8; i64 b,2",
       "f32 b,2,5", "experts, transpose_b or index are missing"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

LP_TEST(weights) {
  static const char grouped[] = "group = 4 : i64, operand_mask = \"110001\"";
  static const char zeros[] = "operand_mask = \"1100011\"", scaled[] = "operand_mask = \"110001\"";
  static const op_row rows[] = {
      {"op.linear", "", "f32 b,8; w f32 8,5", "f32 b,5", NULL},
      {"op.linear", "transpose_b = true", "f32 b,8; w f32 5,8; f32 5", "f32 b,5", NULL},
      {"op.linear", "", "f32 b,8; w f32 40", "f32 b,5", "weight is not a matrix"},
      {"op.linear", "", "f32 b,8; w f32 8,6", "f32 b,5", "weight's outer size is 6, should be 5"},
      {"op.linear", "", "f32 b,8; w f32 7,5", "f32 b,5", "weight's inner size is 7, should be 8"},
      {"op.linear", "", "f32 b,8; w f32 8,5", "f32 s,5", "result axis is s, should be b"},
      {"op.linear", "", "f32 b,8; w f32 8,5; f32 4", "f32 b,5", "bias is 4, should be 5"},
      {"op.linear", "", "f32 b,8; w f32 8,5; f32", "f32 b,5", "a parameter has no axis"},
      {"op.linear", "operand_mask = \"1101\"", "f32 b,8; w f32 8,5; f32 b,4", "f32 b,5", "residual is 4, should be 5"},
      {"op.linear", "operand_mask = \"11001\"", "f32 b,8; w f32 8,5; w f32 8,5", "f32 b,5", NULL},
      {"op.linear", "operand_mask = \"11001\"", "f32 b,8; w f32 8,5; w f32 8,4", "f32 b,5",
       "weight's outer size is 4, should be 5"},
      {"op.linear", scaled, "f32 b,8; w i8 8,5; w f32 1", "f32 b,5", NULL},
      {"op.linear", scaled, "f32 b,8; w i8 8,5; w f32 5", "f32 b,5", NULL},
      {"op.linear", scaled, "f32 b,8; w i8 8,5; w f32 4", "f32 b,5", "number of scales is 4, should be 5"},
      {"op.linear", scaled, "f32 b,8; w i8 8,5; f32 5", "f32 b,5", "scale or zero point is not a constant"},
      {"op.linear", scaled, "f32 b,8; w f32 8,5; w f32 5", "f32 b,5", "a scale for a weight of floats"},
      {"op.linear", scaled, "f32 8,s; w i8 8,5; w f32 5", "f32 8,5", "weight's inner size is 8, should be s"},
      {"op.linear", grouped, "f32 b,8; w i8 8,5; w f32 2,5", "f32 b,5", NULL},
      {"op.linear", grouped, "f32 b,9; w i8 9,5; w f32 3,5", "f32 b,5", NULL},
      {"op.linear", grouped, "f32 b,8; w i8 8,5; w f32 3,5", "f32 b,5", "groups is 3, should be 2"},
      {"op.linear", grouped, "f32 b,8; w i8 8,5; w f32 2,4", "f32 b,5", "scale's outer size is 4, should be 5"},
      {"op.linear", grouped, "f32 b,8; w i8 8,5; w f32 10", "f32 b,5", "scales are not a matrix of groups"},
      {"op.linear", "group = -4 : i64, operand_mask = \"110001\"", "f32 b,8; w i8 8,5; w f32 2,5", "f32 b,5",
       "scales are not a matrix of groups"},
      {"op.linear", "group = 9223372036854775807 : i64, operand_mask = \"110001\"", "f32 b,8; w i8 8,5; w f32 2,5",
       "f32 b,5", "groups is 2, should be 1"},
      {"op.linear", "transpose_b = true, group = 4 : i64, operand_mask = \"110001\"", "f32 b,7; w i8 5,8; w f32 5,2",
       "f32 b,5", NULL},
      {"op.linear", zeros, "f32 b,8; w i8 8,5; w f32 5; w i8 4", "f32 b,5", "number of scales is 4, should be 5"},
      {"op.linear", "operand_mask = \"1100001\"", "f32 b,8; w i8 8,5; w i8 5", "f32 b,5", "zero point without scale"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

#define HEADS(heads, kv_heads, layout)                                                                                 \
  "heads = " heads " : i64, kv_heads = " kv_heads " : i64, head_dim = 8 : i64, scale = 1.0e+00 : f64, layout = "       \
  "\"" layout "\""

LP_TEST(attention) {
  static const op_row rows[] = {
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,s,6", NULL},
      {"op.attention", HEADS("4", "2", "bshd"), "f32 b,s,4,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,s,4,6", NULL},
      {"op.attention", HEADS("4", "2", "bsdh"), "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,s,6",
       "layout is neither bshd nor bhsd"},
      {"op.attention", HEADS("4", "3", "bhsd"), "f32 b,4,s,8; f32 b,3,p,8; f32 b,3,p,6", "f32 b,4,s,6",
       "kv_heads does not divide heads"},
      {"op.attention", HEADS("4", "0", "bhsd"), "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,s,6",
       "kv_heads does not divide heads"},
      {"op.attention", HEADS("0", "1", "bhsd"), "f32 b,4,s,8; f32 b,1,p,8; f32 b,1,p,6", "f32 b,4,s,6",
       "kv_heads does not divide heads"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 4,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,s,6",
       "operands need four axes"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,3,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,s,6",
       "query heads is 3, should be 4"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,4,s,8; f32 b,4,p,8; f32 b,2,p,6", "f32 b,4,s,6",
       "key heads is 4, should be 2"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,4,s,8; f32 b,2,p,8; f32 b,1,p,6", "f32 b,4,s,6",
       "value heads is 1, should be 2"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,4,s,8; f32 b,2,p,7; f32 b,2,p,6", "f32 b,4,s,6",
       "query's head size is 8, should be 7"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,s,6", "f32 b,4,s,6",
       "key and value length is s, should be p"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,p,6",
       "result axis is p, should be s"},
      {"op.attention", HEADS("4", "2", "bhsd"), "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6", "f32 b,4,s,8",
       "result's head size is 8, should be 6"},
      {"op.attention", HEADS("4", "2", "bhsd") ", operand_mask = \"11101\"",
       "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6; f32 4", "f32 b,4,s,6", NULL},
      {"op.attention", HEADS("4", "2", "bhsd") ", operand_mask = \"11101\"",
       "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6; f32 2", "f32 b,4,s,6", "number of sinks is 2, should be 4"},
      {"op.attention", HEADS("4", "2", "bhsd") ", operand_mask = \"11101\"",
       "f32 b,4,s,8; f32 b,2,p,8; f32 b,2,p,6; f32 1,4", "f32 b,4,s,6", "sinks need one axis"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

#define LINEAR_HEADS "heads = 4 : i64, kv_heads = 2 : i64, scale = 1.0e+00 : f64"

LP_TEST(linear_attention) {
  static const op_row rows[] = {
      {"op.linear_attention", LINEAR_HEADS, "f32 b,s,32; f32 b,s,16; f32 b,s,12", "f32 b,s,24; f32 b,2,8,6", NULL},
      {"op.linear_attention", LINEAR_HEADS, "f32 b,s,32; f32 b,s,16; f32 b,s,12", "f32 b,s,24; f32 b,2,8",
       "wrong ranks"},
      {"op.linear_attention", LINEAR_HEADS, "f32 b,s,31; f32 b,s,16; f32 b,s,12", "f32 b,s,24; f32 b,2,8,6",
       "query's width is 31, should be 32"},
      {"op.linear_attention", LINEAR_HEADS, "f32 b,s,32; f32 b,s,15; f32 b,s,12", "f32 b,s,24; f32 b,2,8,6",
       "key's width is 15, should be 16"},
      {"op.linear_attention", LINEAR_HEADS, "f32 b,s,32; f32 b,s,16; f32 b,s,11", "f32 b,s,24; f32 b,2,8,6",
       "value's width is 11, should be 12"},
      {"op.linear_attention", LINEAR_HEADS, "f32 b,s,32; f32 b,s,16; f32 b,s,12", "f32 b,s,25; f32 b,2,8,6",
       "result's width is 25, should be 24"},
      {"op.linear_attention", LINEAR_HEADS ", delta = true", "f32 b,s,32; f32 b,s,16; f32 b,s,12",
       "f32 b,s,24; f32 b,2,8,6", "delta and beta go together"},
      {"op.linear_attention", LINEAR_HEADS, "f32 b,s,32; f32 b,s,16; f32 b,s,12; f32 b,2,8,5",
       "f32 b,s,24; f32 b,2,8,6", "state's shape differs is 5, should be 6"},
      {"op.linear_attention", "heads = 4 : i64, kv_heads = 3 : i64, scale = 1.0e+00 : f64",
       "f32 b,s,32; f32 b,s,16; f32 b,s,12", "f32 b,s,24; f32 b,2,8,6", "kv_heads does not divide heads"},
      {"op.linear_attention", LINEAR_HEADS ", state = 0 : i64", "f32 b,s,32; f32 b,s,16; f32 b,s,12",
       "f32 b,s,24; f32 b,2,8,6", NULL},
      {"op.linear_attention", LINEAR_HEADS ", state = 0 : i64", "f32 b,s,32; f32 b,s,16; f32 b,s,12; f32 b,2,8,6",
       "f32 b,s,24; f32 b,2,8,6", "its state is both an operand and a cache"},
      {"op.linear_attention", "heads = 4000000000000000000 : i64, kv_heads = 2 : i64, scale = 1.0e+00 : f64",
       "f32 b,s,32; f32 b,s,16; f32 b,s,12", "f32 b,s,24; f32 b,2,8,6", "query's width is 32, should be too large"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

LP_TEST(caches_and_positions) {
  static const op_row rows[] = {
      {"op.carry_columns", "state = 0 : i64", "f32 b,8,s", "f32 b,8,s + 3; f32 b,8,3", NULL},
      {"op.carry_columns", "state = 0 : i64", "f32 b,8,s", "f32 b,8,s + 3; f32 b,24",
       "x and both results need three axes"},
      {"op.carry_columns", "state = 0 : i64", "f32 b,8,s", "f32 b,7,s + 3; f32 b,8,3", "result axis is 7, should be 8"},
      {"op.carry_columns", "state = 0 : i64", "f32 b,8,s", "f32 b,8,s + 3; f32 b,7,3", "result axis is 7, should be 8"},
      {"op.carry_columns", "state = 0 : i64", "f32 b,8,s", "f32 b,8,s + 3; f32 b,8,2",
       "number of columns is s + 3, should be s + 2"},
      {"op.kv_append", "state = 0 : i64, layout = \"bshd\"", "f32 b,s,2,8", "f32 b,2,p + s,8", NULL},
      {"op.kv_append", "state = 0 : i64, layout = \"bhsd\"", "f32 b,2,s,8", "f32 b,2,p + s,8", NULL},
      {"op.kv_append", "state = 0 : i64, layout = \"hsd\"", "f32 b,2,s,8", "f32 b,2,p + s,8",
       "layout is neither bshd nor bhsd"},
      {"op.kv_append", "state = 0 : i64, layout = \"bhsd\"", "f32 b,2,s,8", "f32 b,2,p + s", "operands need four axes"},
      {"op.kv_append", "state = 0 : i64, layout = \"bhsd\"", "f32 2,s,8", "f32 b,2,p + s,8", "operands need four axes"},
      {"op.kv_append", "state = 0 : i64, layout = \"bhsd\"", "", "f32 b,2,p + s,8", "the rows to append are missing"},
      {"op.kv_append", "state = 0 : i64, layout = \"bhsd\", once = true", "", "f32 b,2,p,8", NULL},
      {"op.kv_append", "state = 0 : i64, layout = \"bshd\"", "f32 b,2,s,8", "f32 b,2,p + s,8",
       "heads is 2, should be s"},
      {"op.kv_append", "state = 0 : i64, layout = \"bhsd\"", "f32 b,2,s,7", "f32 b,2,p + s,8",
       "head size is 8, should be 7"},
      {"op.kv_append", "state = 0 : i64, layout = \"bhsd\", once = true", "f32 b,2,s,8", "f32 b,2,p,8",
       "rows is p, should be s"},
      {"op.rotary", "rotary_dim = 8 : i64, layout = \"bhsd\"", "f32 b,2,s,8; f32 1,s,4; f32 1,s,4", "f32 b,2,s,8",
       NULL},
      {"op.rotary", "rotary_dim = 8 : i64, layout = \"bhsd\"", "f32 b,2,s,8; f32 s,4; f32 s,4", "f32 b,2,s,8",
       "x needs four axes, cos and sin three"},
      {"op.rotary", "rotary_dim = 8 : i64, layout = \"bhsd\"", "f32 b,2,s,8; f32 1,s,4; f32 1,s,3", "f32 b,2,s,8",
       "sin is 3, should be 4"},
      {"op.rotary", "rotary_dim = 8 : i64, layout = \"bshd\"", "f32 b,2,s,8; f32 1,s,4; f32 1,s,4", "f32 b,2,s,8",
       "positions is s, should be 2"},
      {"op.rotary", "rotary_dim = 6 : i64, layout = \"bhsd\"", "f32 b,2,s,8; f32 1,s,4; f32 1,s,4", "f32 b,2,s,8",
       "half of rotary_dim is 4, should be 3"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

#define NORM(type) "type = \"" type "\", epsilon = 1.0e-05 : f64"

LP_TEST(norms_and_maps) {
  static const op_row rows[] = {
      {"op.norm", NORM("rms"), "f32 b,s,8; f32 8", "f32 b,s,8", NULL},
      {"op.norm", NORM("layer"), "f32 b,s,8; f32 8; f32 8", "f32 b,s,8", NULL},
      {"op.norm", NORM("group"), "f32 b,s,8; f32 8", "f32 b,s,8", "type is neither rms nor layer"},
      {"op.norm", NORM("rms"), "f32 b,s,8; f32 7", "f32 b,s,8", "parameter is 7, should be 8"},
      {"op.norm", NORM("rms"), "f32 b,s,8; f32 8; f32 7", "f32 b,s,8", "parameter is 7, should be 8"},
      {"op.norm", NORM("rms"), "f32 b,s,8; f32 8", "f32 b,s,7", "result is 7, should be 8"},
      {"op.norm", NORM("rms"), "f32; f32 8", "f32", "x has no axis"},
      {"op.norm", NORM("rms"), "f32 b,s,8; f32", "f32 b,s,8", "a parameter has no axis"},
      {"op.add_norm", NORM("rms"), "f32 b,8; f32 b,8; f32 8", "f32 b,8; f32 b,8", NULL},
      {"op.add_norm", NORM("rms"), "f32 b,8; f32 s,8; f32 8", "f32 b,8; f32 b,8", "residual is s, should be b"},
      {"op.map", "fn = \"add\"", "f32 b,1,8; f32 s,1", "f32 b,s,8", NULL},
      {"op.map", "fn = \"add\"", "f32 b,s,8; f32 8", "f32 s,8", "operand has more axes than the result"},
      {"op.map", "fn = \"add\"", "f32 b,s,8; f32 4", "f32 b,s,8", "operand axis is 4, should be 8"},
      {"op.softmax", "", "f32 b,8", "f32 b,7", "result is 7, should be 8"},
      {"op.quantize", "axis = 1 : i64, block_size = 0 : i64", "f32 b,8; f32 8", "i8 b,8", NULL},
      {"op.quantize", "axis = 2 : i64, block_size = 0 : i64", "f32 b,8; f32", "i8 b,8", NULL},
      {"op.quantize", "axis = 2 : i64, block_size = 0 : i64", "f32 b,8; f32 8", "i8 b,8", "axis is out of range"},
      {"op.quantize", "axis = -1 : i64, block_size = 0 : i64", "f32 b,8; f32 8", "i8 b,8", "axis is out of range"},
      {"op.quantize", "axis = 1 : i64, block_size = 4 : i64", "f32 b,8; f32 8", "i8 b,8",
       "scale has a wrong number of axes"},
      {"op.dequantize", "axis = 1 : i64, block_size = 0 : i64", "i8 b,8; f32 1,8", "f32 b,8",
       "scale has a wrong number of axes"},
      {"op.dequantize", "axis = 1 : i64, block_size = 0 : i64", "i8 b,8; f32 8", "f32 b,7", "result is 7, should be 8"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

LP_TEST(along_axes) {
  static const op_row rows[] = {
      {"op.reduce", "fn = \"sum\", axes = array<i64: 0, 2>, keepdims = false", "f32 b,s,8", "f32 s", NULL},
      {"op.reduce", "fn = \"sum\", axes = array<i64: 0, 2>, keepdims = true", "f32 b,s,8", "f32 1,s,1", NULL},
      {"op.reduce", "fn = \"sum\", axes = array<i64: 3>, keepdims = true", "f32 b,s,8", "f32 1,s,1",
       "axis is out of range"},
      {"op.reduce", "fn = \"sum\", axes = array<i64: -1>, keepdims = true", "f32 b,s,8", "f32 b,s,1",
       "axis is out of range"},
      {"op.reduce", "fn = \"sum\", axes = array<i64: 2, 2>, keepdims = true", "f32 b,s,8", "f32 b,s,1",
       "axes do not ascend"},
      {"op.reduce", "fn = \"sum\", axes = array<i64: 2, 1>, keepdims = true", "f32 b,s,8", "f32 b,1,1",
       "axes do not ascend"},
      {"op.reduce", "fn = \"sum\", axes = array<i64: 0, 2>, keepdims = false", "f32 b,s,8", "f32 1,s,1",
       "result has a wrong number of axes"},
      {"op.argmax", "axis = 2 : i64, keepdims = true", "f32 b,8", "i64 b,1", "axis is out of range"},
      {"op.argmax", "axis = 1 : i64, keepdims = true", "f32 b,8", "i64 b", "result has a wrong number of axes"},
      {"op.argmax", "axis = 1 : i64, keepdims = false", "f32 b,8", "i64 b,1", "result has a wrong number of axes"},
      {"op.argmax", "axis = 1 : i64, keepdims = false", "f32 b,8", "i64 b", NULL},
      {"op.topk", "axis = 1 : i64", "f32 b,8", "f32 b,3; i64 b,3", NULL},
      {"op.topk", "axis = 2 : i64", "f32 b,8", "f32 b,3; i64 b,3", "axis is out of range"},
      {"op.topk", "axis = 1 : i64", "f32 b,8", "f32 3; i64 3", "result has a wrong number of axes"},
      {"op.topk", "axis = 1 : i64", "f32 b,8", "f32 b,3; i32 b,3", "results are not of x's type and i64"},
      {"op.topk", "axis = 1 : i64", "f32 b,8", "f16 b,3; i64 b,3", "results are not of x's type and i64"},
      {"op.topk", "axis = 1 : i64", "f32 b,8", "f32 s,3; i64 s,3", "result axis is s, should be b"},
      {"op.topk", "axis = 1 : i64", "f32 b,8", "f32 b,3; i64 b,2", "places is 2, should be 3"},
      {"op.cumsum", "axis = 0 : i64", "f32 b,8", "f32 b,7", "result is 7, should be 8"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

LP_TEST(indices) {
  static const op_row rows[] = {
      {"op.gather", "axis = 1 : i64", "f32 b,9,8; i64 s", "f32 b,s,8", NULL},
      {"op.gather", "axis = 3 : i64", "f32 b,9,8; i64 s", "f32 b,s,8", "axis is out of range"},
      {"op.gather", "axis = 1 : i64", "f32 b,9,8; f32 s", "f32 b,s,8", "index is neither i32 nor i64"},
      {"op.gather", "axis = 1 : i64", "f32 b,9,8; i32 s", "f32 b,8", "result has a wrong number of axes"},
      {"op.gather_elements", "axis = 1 : i64", "f32 9,8; i64 9,3", "f32 9,3", NULL},
      {"op.gather_elements", "axis = 1 : i64", "f32 9,8; i8 9,3", "f32 9,3", "index is neither i32 nor i64"},
      {"op.gather_elements", "axis = 1 : i64", "f32 9,8; i64 9", "f32 9", "index has another number of axes than x"},
      {"op.gather_elements", "axis = 1 : i64", "f32 9,8; i64 10,3", "f32 10,3",
       "index axis, which may exceed that of x, is 10, should be 9"},
      {"op.gather_elements", "axis = 1 : i64", "f32 9,8; i64 9,3", "f32 9,8", "result is 8, should be 3"},
      {"op.scatter_elements", "axis = 1 : i64, reduction = \"add\"", "f32 9,8; i64 9,3; f32 9,3", "f32 9,8", NULL},
      {"op.scatter_elements", "axis = 1 : i64, reduction = \"sub\"", "f32 9,8; i64 9,3; f32 9,3", "f32 9,8",
       "unknown reduction"},
      {"op.scatter_elements", "axis = 1 : i64, reduction = \"add\"", "f32 9,8; i64 9,3; f32 9,4", "f32 9,8",
       "updates is 4, should be 3"},
      {"op.scatter_elements", "axis = 1 : i64, reduction = \"add\"", "f32 9,8; i64 9,3; f16 9,3", "f32 9,8",
       "x, updates and result are not of one type"},
      {"op.scatter_elements", "axis = 1 : i64, reduction = \"add\"", "f32 9,8; i64 9,3; f32 9,3", "f16 9,8",
       "x, updates and result are not of one type"},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64 s,1; f32 s,8", "f32 9,8", NULL},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64 s,2; f32 s", "f32 9,8", NULL},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64 s,3; f32 s", "f32 9,8", "index does not fit x"},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64 s,0; f32 s", "f32 9,8", "index does not fit x"},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64; f32 8", "f32 9,8", "index does not fit x"},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; f32 s,1; f32 s,8", "f32 9,8", "index is neither i32 nor i64"},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64 s,1; f32 s", "f32 9,8",
       "updates have a wrong number of axes"},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64 s,1; f32 b,8", "f32 9,8",
       "updates axis is b, should be s"},
      {"op.scatter_nd", "reduction = \"none\"", "f32 9,8; i64 s,1; f32 s,7", "f32 9,8",
       "updates axis is 7, should be 8"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

LP_TEST(moves) {
  static const op_row rows[] = {
      {"op.concat", "axis = 1 : i64", "f32 b,s; f32 b,p", "f32 b,p + s", NULL},
      {"op.concat", "axis = 2 : i64", "f32 b,s; f32 b,p", "f32 b,p + s", "axis is out of range"},
      {"op.concat", "axis = 1 : i64", "f32 b,s; f32 p", "f32 b,p + s", "operand has another number of axes"},
      {"op.concat", "axis = 1 : i64", "f32 b,s; f32 r,p", "f32 b,p + s", "operand axis is r, should be b"},
      {"op.concat", "axis = 1 : i64", "f32 b,s; f32 b,p", "f32 b,p", "joined axis is p, should be s + p"},
      {"op.slice", "starts = #llmpart.polys<\"0, p\">, steps = array<i64: 1, 1>", "f32 b,p + s", "f32 b,s", NULL},
      {"op.slice", "starts = #llmpart.polys<\"p\">, steps = array<i64: 1, 1>", "f32 b,p + s", "f32 b,s",
       "starts and steps need one entry per axis"},
      {"op.slice", "starts = #llmpart.polys<\"0, p\">, steps = array<i64: 1>", "f32 b,p + s", "f32 b,s",
       "starts and steps need one entry per axis"},
      {"op.slice", "starts = #llmpart.polys<\"0, -1\">, steps = array<i64: 1, 1>", "f32 b,p + s", "f32 b,s",
       "a start is negative"},
      {"op.transpose", "perm = array<i64: 1, 0>", "f32 b,8", "f32 8,b", NULL},
      {"op.transpose", "perm = array<i64: 1>", "f32 b,8", "f32 8,b", "perm needs one entry per axis"},
      {"op.transpose", "perm = array<i64: 2, 0>", "f32 b,8", "f32 8,b", "axis is out of range"},
      {"op.transpose", "perm = array<i64: 1, 1>", "f32 b,8", "f32 8,8", "perm is no permutation"},
      {"op.transpose", "perm = array<i64: 1, 0>", "f32 b,8", "f32 b,8", "result axis is b, should be 8"},
      {"op.reshape", "", "f32 b,8", "f32 2,4,b", NULL},
      {"op.reshape", "", "f32 b,8", "f32 b,7", "number of elements is 7*b, should be 8*b"},
      {"op.reshape", "", "f32 4000000000,4000000000", "f32 5", "number of elements is 5, should be too large"},
      {"op.expand", "", "f32 1,8", "f32 b,8", NULL},
      {"op.expand", "", "f32 4,8", "f32 b,8", "operand axis is 4, should be b"},
      {"op.pad", "before = #llmpart.polys<\"0, 1\">, value = 0.0e+00 : f64", "f32 b,8", "f32 b,9", NULL},
      {"op.pad", "before = #llmpart.polys<\"1\">, value = 0.0e+00 : f64", "f32 b,8", "f32 b,9",
       "before needs one entry per axis"},
      {"op.pad", "before = #llmpart.polys<\"0, 1\">, value = 0.0e+00 : f64", "f32 b,8", "f32 b",
       "result has a wrong number of axes"},
      {"op.iota", "start = #llmpart.poly<\"0\">, step = #llmpart.poly<\"1\">", "", "i64 b,s", "result is not a vector"},
      {"op.dims", "values = #llmpart.polys<\"b, s\">", "", "i64 2", NULL},
      {"op.dims", "values = #llmpart.polys<\"b, s\">", "", "i64 3", "result's shape differs from the number of values"},
      {"op.fill", "value = 0.0e+00 : f64", "", "f32 *", "result's shape is not known"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

#define WINDOWS(window, steps, dilations)                                                                              \
  "window = array<i64: " window ">, steps = array<i64: " steps ">, dilations = array<i64: " dilations ">"

LP_TEST(windows) {
  static const op_row rows[] = {
      {"op.windows", WINDOWS("3", "2", "1"), "f32 b,9", "f32 b,3,4", NULL},
      {"op.windows", WINDOWS("3, 1", "2", "1"), "f32 b,9", "f32 b,3,4", "need one entry per axis"},
      {"op.windows", WINDOWS("3", "2, 2", "1"), "f32 b,9", "f32 b,3,4", "need one entry per axis"},
      {"op.windows", WINDOWS("3", "2", "1, 1"), "f32 b,9", "f32 b,3,4", "need one entry per axis"},
      {"op.windows", WINDOWS("1, 1, 3", "1, 1, 2", "1, 1, 1"), "f32 b,9", "f32 b,3,4", "need one entry per axis"},
      {"op.windows", WINDOWS("3", "2", "1"), "f32 b,9", "f32 b,4", "result has a wrong number of axes"},
      {"op.windows", WINDOWS("3", "2", "1"), "f32 b,9", "f32 s,3,4", "result axis is s, should be b"},
      {"op.windows", WINDOWS("3", "2", "1"), "f32 b,9", "f32 b,2,4", "window is 2, should be 3"},
      {"op.windows", WINDOWS("0", "2", "1"), "f32 b,9", "f32 b,0,4", "are at least 1"},
      {"op.windows", WINDOWS("3", "0", "1"), "f32 b,9", "f32 b,3,4", "are at least 1"},
      {"op.windows", WINDOWS("3", "2", "0"), "f32 b,9", "f32 b,3,4", "are at least 1"},
  };
  op_check_rows(rows, LP_COUNT(rows), NULL);
}

static int64_t heads_seen, flops_seen, macs_seen, bytes_seen; /* of the operator, for 5 new tokens of 8 */

static lp_status read_cost(lp_module *module, lp_diag *diag) {
  (void)diag;
  const lp_op *op = lp_module_find_func(module, "main")->region->first;
  const lp_cost cost = lp_op_cost(module, op);
  const int64_t value[] = {1, 5, 3, 1, 1, 8}; /* b s p r c t */
  ck_assert_ptr_nonnull(cost.flops);
  ck_assert_ptr_nonnull(cost.macs);
  heads_seen = lp_op_i64(op, "heads", 0);
  flops_seen = lp_poly_eval(cost.flops, value, LP_COUNT(value));
  macs_seen = lp_poly_eval(cost.macs, value, LP_COUNT(value));
  bytes_seen =
      lp_poly_eval(cost.bytes_read, value, LP_COUNT(value)) + lp_poly_eval(cost.bytes_written, value, LP_COUNT(value));
  return LP_OK;
}

/* Counted pair by pair: query i of the last 5 sees 8 - 5 + i + 1 keys. The softmax takes 5 or 6 operations a pair. */
LP_TEST(cost_of_causal_attention) {
  static const op_row rows[] = {
      {"op.attention", HEADS("4", "2", "bhsd") ", causal = true", "f32 1,4,s,8; f32 1,2,t,8; f32 1,2,t,6",
       "f32 1,4,s,6", NULL},
      {"op.attention", HEADS("3", "3", "bhsd") ", causal = true", "f32 1,3,s,8; f32 1,3,t,8; f32 1,3,t,6",
       "f32 1,3,s,6", NULL},
      {"op.attention", HEADS("1", "1", "bhsd") ", causal = true", "f32 1,1,s,8; f32 1,1,t,8; f32 1,1,t,6",
       "f32 1,1,s,6", NULL},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    int64_t pairs = 0;
    op_check_rows(&rows[i], 1, read_cost);
    for (int64_t query = 0; query < 5; query++)
      pairs += 8 - 5 + query + 1;
    ck_assert_int_eq(macs_seen, heads_seen * pairs * (8 + 6));
    ck_assert_int_ge(flops_seen, heads_seen * pairs * (2 * (8 + 6) + 5));
    ck_assert_int_le(flops_seen, heads_seen * pairs * (2 * (8 + 6) + 6));
  }
}

/* Linear attention decays, writes and reads 2 heads of 8 x 6, and a state that is a cache is also read. */
LP_TEST(cost_of_carried_states) {
  static const op_row rows[] = {
      {"op.linear_attention", LINEAR_HEADS ", operand_mask = \"11101\", state = 0 : i64",
       "f32 1,s,32; f32 1,s,16; f32 1,s,12; f32 1,s,2", "f32 1,s,24; f32 1,2,8,6", NULL},
      {"op.carry_columns", "state = 0 : i64", "f32 1,7,s", "f32 1,7,s + 3; f32 1,7,3", NULL},
  };
  op_check_rows(&rows[0], 1, read_cost);
  ck_assert_int_eq(macs_seen, 5 * 48 * (4 + 2));
  ck_assert_int_eq(flops_seen, 2 * macs_seen + 5 * 48 * 2);
  ck_assert_int_eq(bytes_seen, 4 * (5 * (32 + 16 + 12 + 2 + 24) + 2 * 2 * 48));
  op_check_rows(&rows[1], 1, read_cost);
  ck_assert_int_eq(bytes_seen, 4 * 7 * (5 + 3 + 8 + 3));
}

/* Codes of 4 bits share bytes, of which the last may be half full. */
LP_TEST(bytes_of_types) {
  static const struct {
    lp_dtype dtype;
    int64_t count, bytes;
  } rows[] = {{LP_U4, 4, 2}, {LP_U4, 5, 3}, {LP_U4, 1, 1}, {LP_U4, 0, 0}, {LP_I8, 5, 5}, {LP_F16, 5, 10}};
  lp_module *module = lp_module_create("types");
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    int64_t bytes = -1;
    const lp_type type = lp_type_static(module, rows[i].dtype, 1, &rows[i].count);
    ck_assert(lp_poly_is_const(lp_type_bytes(module, type), &bytes));
    ck_assert_msg(bytes == rows[i].bytes, "row %zu: %" PRId64, i, bytes);
  }
  lp_module_free(module);
}
