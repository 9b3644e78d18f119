/* Shape inference of operators whose types are all that it needs: forms that it refuses, beside forms that it takes. */
#include "tests/ir/op_text.h"
#include "tests/suite.h"

static lp_status infer(lp_module *module, lp_diag *diag) {
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    if (!lp_op_has(op, LP_CONSTANT) && !lp_op_has(op, LP_TERMINATOR)) LP_TRY(lp_op_infer(module, op, diag));
  return LP_OK;
}

#define CHECK(rows) op_check_rows(rows, LP_COUNT(rows), infer)

LP_TEST(experts) {
  static const char name[] = "llmpart.Experts", six[] = "experts = 6 : i64";
  static const op_row rows[] = {
      {name, six, "f32 b,1,8; i64 b,2; w f32 30,8", "f32 b,2,5", NULL},
      {name, six, "f32 b,2,8; i32 b,2; w f32 30,8; f32 30", "f32 b,2,5", NULL},
      {name, six, "f32 b,8; i64 b,2; w f32 30,8", "f32 b,2,5", "its x has not one axis more than its index"},
      {name, six, "f32 b,1,8; i64 b,2; w f32 32,8", "f32 b,2,5", "its weight does not divide into experts"},
      {name, "experts = 0 : i64", "f32 b,1,8; i64 b,2; w f32 30,8", "f32 b,2,5", "does not divide into experts"},
      {name, six, "f32 b,1,8; i64 b,2; w f32 30", "f32 b,2,5", "input 2 has 1 axes, 2 wanted"},
  };
  CHECK(rows);
}

LP_TEST(quantising) {
  static const char quantize[] = "onnx.QuantizeLinear", dequantize[] = "onnx.DequantizeLinear";
  static const op_row rows[] = {
      {quantize, "", "f32 b,8; f32; i8", "i8 b,8", NULL},
      {quantize, "axis = 1 : i64", "f32 b,8; f32 8; i8 8", "i8 b,8", NULL},
      {quantize, "axis = -1 : i64, block_size = 4 : i64", "f32 b,9; f32 b,3", "ui8 b,9", NULL},
      {quantize, "axis = 2 : i64", "f32 b,8; f32 8", "ui8 b,8", "axis 2 of a tensor with 2 axes"},
      {quantize, "axis = 1 : i64", "f32 b,8; f32 1,8", "ui8 b,8", "input 1 has 2 axes, 1 wanted"},
      {quantize, "axis = 1 : i64", "f32 b,8; f32 7", "ui8 b,8", "7"},
      {quantize, "axis = 1 : i64, block_size = -4 : i64", "f32 b,8; f32 b,2", "ui8 b,8", "its block size is -4"},
      {quantize, "axis = 0 : i64, block_size = 4 : i64", "f32 b,8; f32 2,8", "ui8 b,8",
       "blocks along an axis whose size is not known are not supported"},
      {quantize, "axis = 1 : i64, block_size = 4 : i64", "f32 b,9; f32 b,2", "ui8 b,9",
       "input 1 has 2 blocks of 4 for 9 elements"},
      {quantize, "axis = 1 : i64, block_size = 4 : i64", "f32 b,9; f32 b,4", "ui8 b,9",
       "input 1 has 4 blocks of 4 for 9 elements"},
      {quantize, "output_dtype = 8 : i64", "f32 b,8; f32", "ui8 b,8", "quantising to type 8 is not supported"},
      {dequantize, "", "i8 b,8; f32; i8", "f32 b,8", NULL},
      {dequantize, "", "i8 b,8; i32; i8", "f32 b,8", "its scale is of type i32"},
      {dequantize, "output_dtype = 8 : i64", "i8 b,8; f32; i8", "f32 b,8", "dequantising to type 8 is not supported"},
      {dequantize, "axis = 1 : i64", "i8 b,8; f32 8; i8 6", "f32 b,8", "6"},
      {"com.microsoft.QLinearConcat", "axis = 1 : i64", "f32; i8; i8 b,4; f32; i8; i8 b,5; f32; i8", "i8 b,9", NULL},
      {"com.microsoft.QLinearConcat", "axis = 1 : i64", "f32; i8; i8 b,4; f32; i8; i8 b,5; f32", "i8 b,9",
       "its operands are not a scale and a zero point, then threes"},
  };
  CHECK(rows);
}

#define NBITS(k, n, bits, block) "K = " k " : i64, N = " n " : i64, bits = " bits " : i64, block_size = " block " : i64"
#define BNB(type, transposed)                                                                                          \
  "K = 32 : i64, N = 3 : i64, block_size = 16 : i64, quant_type = " type " : i64, transB = " transposed " : i64"

LP_TEST(packed_weights) {
  static const char nbits[] = "com.microsoft.MatMulNBits", bnb[] = "com.microsoft.MatMulBnb4";
  static const op_row rows[] = {
      {nbits, NBITS("32", "3", "4", "16"), "f32 b,32; ui8 3,2,8; f32 6", "f32 b,3", NULL},
      {nbits, NBITS("33", "3", "4", "16"), "f32 b,33; ui8 3,3,8; f32 9; ui8 6", "f32 b,3", NULL},
      {nbits, NBITS("33", "3", "4", "16"), "f32 b,33; ui8 3,3,8; f32 9; f32 9", "f32 b,3", NULL},
      {nbits, NBITS("33", "3", "4", "16"), "f32 b,33; ui8 3,3,8; f32 9; ui8 9", "f32 b,3",
       "input 3 should have 6 elements"},
      {nbits, NBITS("33", "3", "4", "16"), "f32 b,33; ui8 3,2,8; f32 9", "f32 b,3", "input 1 should have 72 elements"},
      {nbits, NBITS("33", "3", "4", "16"), "f32 b,33; ui8 3,3,8; f32 6", "f32 b,3", "input 2 should have 9 elements"},
      {nbits, NBITS("32", "3", "3", "16"), "f32 b,32; ui8 3,2,8; f32 6", "f32 b,3",
       "weights of 3 bits are not supported"},
      {nbits, NBITS("32", "3", "4", "8"), "f32 b,32; ui8 3,4,4; f32 12", "f32 b,3",
       "its block size is 8, a power of two"},
      {nbits, NBITS("32", "3", "4", "24"), "f32 b,32; ui8 3,2,12; f32 6", "f32 b,3", "its block size is 24"},
      {nbits, NBITS("32", "3", "4", "0"), "f32 b,32; ui8 3,2,8; f32 6", "f32 b,3", "its block size is 0"},
      {nbits, NBITS("0", "3", "4", "16"), "f32 b,0; ui8 3,0,8; f32 0", "f32 b,3", "its sizes K and N are 0 and 3"},
      {nbits, NBITS("32", "2147483648", "4", "16"), "f32 b,32; ui8 3,2,8; f32 6", "f32 b,3",
       "its sizes K and N are 32 and 2147483648"},
      {nbits, NBITS("32", "3", "4", "16"), "f32 b,32; i8 3,2,8; f32 6", "f32 b,3", "its weight is not of uint8"},
      {nbits, NBITS("32", "3", "4", "16"), "f32 b,31; ui8 3,2,8; f32 6", "f32 b,3", "31"},
      {nbits, NBITS("32", "3", "4", "16") ", operand_mask = \"11101\"", "f32 b,32; ui8 3,2,8; f32 6; i32 32", "f32 b,3",
       "an order of input channels (g_idx) is not supported"},
      {nbits, NBITS("32", "3", "4", "16") ", operand_mask = \"111001\"", "f32 b,32; ui8 3,2,8; f32 6; f32 2", "f32 b,3",
       "input 5 should have 3 elements"},
      {nbits, NBITS("32", "3", "4", "16") ", weight_prepacked = 1 : i64", "f32 b,32; ui8 3,2,8; f32 6", "f32 b,3",
       "prepacked weights are not supported"},
      {bnb, BNB("1", "1"), "f32 b,32; ui8 48; f32 6", "f32 b,3", NULL},
      {bnb, BNB("2", "1"), "f32 b,32; ui8 48; f32 6", "f32 b,3", "its quant_type is 2, 0 or 1 wanted"},
      {bnb, BNB("1", "0"), "f32 b,32; ui8 48; f32 6", "f32 b,3", "a weight that is not transposed is not supported"},
      {bnb, BNB("0", "1"), "f32 b,32; ui8 47; f32 6", "f32 b,3", "input 1 should have 48 elements"},
      {bnb, BNB("0", "1"), "f32 b,32; ui8 48; f32 5", "f32 b,3", "input 2 should have 6 elements"},
      {"com.microsoft.GatherBlockQuantized", "gather_axis = 1 : i64", "ui8 9,64; i64 s; f32 9,1", "f32 s,128",
       "only rows by the first axis, quantised along the last, are supported"},
      {"com.microsoft.GatherBlockQuantized", "quantize_axis = 0 : i64", "ui8 9,64; i64 s; f32 9,1", "f32 s,128",
       "only rows by the first axis, quantised along the last, are supported"},
  };
  CHECK(rows);
}

#define HEADS "q_num_heads = 2 : i64, kv_num_heads = 2 : i64"
#define QKV "f32 b,s,8; f32 b,p,8; f32 b,p,8"

LP_TEST(attention) {
  static const op_row rows[] = {
      {"onnx.Attention", HEADS, QKV "; f32 s,p", "f32 b,s,8", NULL},
      {"onnx.Attention", "q_num_heads = -2 : i64, kv_num_heads = 2 : i64", QKV, "f32 b,s,8",
       "attribute 'q_num_heads' is -2, a number of heads wanted"},
      {"onnx.Attention", "q_num_heads = 2147483648 : i64, kv_num_heads = 2 : i64", QKV, "f32 b,s,8",
       "a number of heads wanted"},
      {"onnx.Attention", "q_num_heads = 3 : i64, kv_num_heads = 2 : i64", QKV, "f32 b,s,8",
       "8 does not divide into 3 heads"},
      {"onnx.Attention", HEADS, QKV "; f32 1,b,1,s,p", "f32 b,s,8", "its mask has 5 axes, 1 to 4 wanted"},
      {"onnx.Attention", HEADS, QKV "; f32", "f32 b,s,8", "its mask has 0 axes, 1 to 4 wanted"},
      {"onnx.Attention", HEADS, "f32 1,3,8; f32 1,5,8; f32 1,5,8; f32 2,1,3,5", "f32 1,3,8",
       "its mask has a size of 2 where 1 is wanted"},
      {"onnx.Attention", HEADS ", operand_mask = \"11101\"", QKV "; f32 b,2,p,4", "f32 b,s,8",
       "it has past keys or values without the other"},
      {"onnx.LinearAttention", "q_num_heads = 3 : i64, kv_num_heads = 2 : i64, update_rule = \"linear\"",
       "f32 b,s,12; f32 b,s,8; f32 b,s,8", "f32 b,s,12; f32 b,2,4,4", "its key heads do not divide its query heads"},
      {"com.microsoft.MultiHeadAttention", "num_heads = 2 : i64", "f32 b,s,8; f32 p,8; f32 b,p,8", "f32 b,s,8",
       "its key has 2 axes, 3 to 5 wanted"},
  };
  CHECK(rows);
}

LP_TEST(constants) {
  static const op_row rows[] = {
      {"onnx.Constant", "value = dense<[1.0, 2.0]> : tensor<2xf32>", "", "f32 2", NULL},
      {"onnx.Constant", "", "", "f32 2", "attribute 'value' is missing"},
      {"onnx.Constant", "value = 3 : i64", "", "f32 2", "attribute 'value' is missing"},
  };
  CHECK(rows);
}

LP_TEST(rotary) {
  static const char standard[] = "onnx.RotaryEmbedding", ms[] = "com.microsoft.RotaryEmbedding";
  static const op_row rows[] = {
      {standard, "", "f32 b,2,s,8; f32 b,s,4; f32 b,s,4", "f32 b,2,s,8", NULL},
      {standard, "", "f32 b,2,s,8; f32 9,4; f32 9,4; i64 b,s", "f32 b,2,s,8", NULL},
      {standard, "", "f32 b,8; f32 b,s,4; f32 b,s,4", "f32 b,8", "input 0 has 2 axes, 3 or 4 wanted"},
      {standard, "", "f32 b,2,s,1,8; f32 b,s,4; f32 b,s,4", "f32 b,2,s,1,8", "input 0 has 5 axes, 3 or 4 wanted"},
      {standard, "", "f32 b,2,s,8; f32 9,4; f32 b,s,4", "f32 b,2,s,8", "input 1 has 2 axes, 3 wanted"},
      {standard, "", "f32 b,2,s,8; f32 9,4; f32 b,s,4; i64 b,s", "f32 b,2,s,8", "input 2 has 3 axes, 2 wanted"},
      {standard, "", "f32 b,2,s,8; f32 9,4; f32 9,4; i64 s", "f32 b,2,s,8", "input 3 has 1 axes, 2 wanted"},
      {ms, "", "f32 b,2,s,8; i64 1; f32 9,4; f32 9,4", "f32 b,2,s,8", NULL},
      {ms, "", "f32 b,s,16; i64 b,s; f32 9,4; f32 9,4", "f32 b,s,16", NULL},
      {ms, "", "f32 b,s,16; i64; f32 9,4; f32 9,4", "f32 b,s,16", "input 1 has 0 axes, 2 wanted"},
      {ms, "", "f32 b,s,16; i64 b,s; f32 b,9,4; f32 9,4", "f32 b,s,16", "input 2 has 3 axes, 2 wanted"},
  };
  CHECK(rows);
}
