/* Forms of operators that decompose and lower refuse, beside forms that they take. */
#include "passes/passes.h"
#include "tests/ir/op_text.h"
#include "tests/suite.h"

static lp_status decompose(lp_module *module, lp_diag *diag) {
  const lp_run_options quiet = {0};
  return lp_passes_run(module, "decompose", NULL, &quiet, diag);
}

#define CHECK(rows, act) op_check_rows(rows, LP_COUNT(rows), act)

/* query, key, value, past keys and values, seqlens_k, the total length */
#define GQA "com.microsoft.GroupQueryAttention"
#define GQA_IN "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32"
#define GQA_OUT "f32 b,s,32; f32 b,2,p + s,8; f32 b,2,p + s,8"
#define GQA_HEADS "num_heads = 4 : i64, kv_num_heads = 2 : i64"

LP_TEST(group_query_attention) {
  static const op_row rows[] = {
      {GQA, GQA_HEADS, GQA_IN, GQA_OUT, NULL},
      {GQA, GQA_HEADS ", operand_mask = \"1001111\"", "f32 b,s,64; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32", GQA_OUT,
       NULL},
      {GQA, GQA_HEADS ", k_quant_type = \"PER_TENSOR\"", GQA_IN, GQA_OUT, "with a quantised cache is not supported"},
      {GQA, GQA_HEADS ", v_quant_type = \"PER_TENSOR\"", GQA_IN, GQA_OUT, "with a quantised cache is not supported"},
      {GQA, GQA_HEADS ", operand_mask = \"1111111000001\"", GQA_IN "; f32", GQA_OUT,
       "with a quantised cache is not supported"},
      {GQA, GQA_HEADS ", sliding_window_cache = 1 : i64", GQA_IN, GQA_OUT,
       "with sliding_window_cache lacks a past or a window"},
      {GQA, GQA_HEADS ", operand_mask = \"1111101\"",
       "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,p,8; f32 b,2,p,8; i32", GQA_OUT, "lacks seqlens_k"},
      {GQA, GQA_HEADS ", operand_mask = \"111111\"",
       "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,p,8; f32 b,2,p,8; i32 b", GQA_OUT, "lacks total_sequence_length"},
      {GQA, GQA_HEADS ", operand_mask = \"1111011\"", "f32 b,s,32; f32 b,s,16; f32 b,s,16; f32 b,2,p,8; i32 b; i32",
       GQA_OUT, "has past keys without values"},
      {GQA, GQA_HEADS ", do_rotary = 1 : i64", GQA_IN, GQA_OUT, "with do_rotary lacks its tables"},
      {GQA, GQA_HEADS ", operand_mask = \"1101111\"", "f32 b,s,32; f32 b,s,16; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32",
       GQA_OUT, "has keys without values"},
      {GQA, GQA_HEADS ", operand_mask = \"1001111\"", "f32 b,s,63; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32", GQA_OUT,
       "of a width that its heads do not divide"},
      {GQA, "num_heads = 4 : i64, kv_num_heads = -2 : i64, operand_mask = \"1001111\"",
       "f32 b,s,64; f32 b,2,p,8; f32 b,2,p,8; i32 b; i32", GQA_OUT,
       "has a kv_num_heads of -2, a number of heads wanted"},
      {GQA, "num_heads = 0 : i64, kv_num_heads = 2 : i64", GQA_IN, GQA_OUT, "has a num_heads of 0"},
  };
  CHECK(rows, decompose);
}

#define MHA "com.microsoft.MultiHeadAttention"
#define MHA_IN "f32 b,s,8; f32 b,s,8; f32 b,s,8"

LP_TEST(attention_of_onnx_runtime) {
  static const op_row rows[] = {
      {MHA, "num_heads = 2 : i64", MHA_IN, "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64", "f32 b,s,24", "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64", "f32 b,s,2,3,4", "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64", MHA_IN "; f32 24", "f32 b,s,8", NULL},
      {MHA, "num_heads = 0 : i64", MHA_IN, "f32 b,s,8", "has a num_heads of 0, a number of heads wanted"},
      {MHA, "num_heads = 2147483648 : i64", MHA_IN, "f32 b,s,8", "a number of heads wanted"},
      {MHA, "num_heads = 2 : i64", "f32 b,s,25", "f32 b,s,8", "of a width that is no multiple of 3"},
      {MHA, "num_heads = 2 : i64", "f32 b,s,8; f32 b,s,8", "f32 b,s,8", "has keys without values"},
      {MHA, "num_heads = 2 : i64", MHA_IN "; f32 23", "f32 b,s,8", "has a bias of another width"},
      {MHA, "num_heads = 2 : i64", "f32 b,s,8; f32 b,s,8; f32 b,s,p; f32 24", "f32 b,s,p",
       "has a bias but no constant width"},
      {MHA, "num_heads = 2 : i64, operand_mask = \"111000001\"", MHA_IN "; i32 1", "f32 b,s,8",
       "with a shared buffer (past_sequence_length) is not supported"},
      {MHA, "num_heads = 2 : i64, operand_mask = \"1110000001\"", MHA_IN "; i32 b,1,p", "f32 b,s,8",
       "with cache_indirection is not supported"},
      {MHA, "num_heads = 2 : i64, unidirectional = 1 : i64", "f32 b,s,8; f32 b,p,8; f32 b,p,8", "f32 b,s,8",
       "is unidirectional over other keys than its queries'"},
      {MHA, "num_heads = 2 : i64, operand_mask = \"11101\"", MHA_IN "; i32 7", "f32 b,s,8",
       "has a mask whose size is neither the batch nor twice it"},
      {MHA, "num_heads = 2 : i64, operand_mask = \"11101\"", MHA_IN "; i32 b,1,1,s,s", "f32 b,s,8",
       "has a mask of more than 4 axes"},
      {"com.microsoft.DecoderMaskedMultiHeadAttention", "num_heads = 2 : i64, past_present_share_buffer = 1 : i64",
       MHA_IN, "f32 b,s,8", "with past_present_share_buffer is not supported"},
      {"com.microsoft.Attention", "num_heads = 2 : i64", "f32 b,s,8; f32 8,24; f32 24", "f32 b,s,8", NULL},
      {"com.microsoft.Attention", "num_heads = -1 : i64", "f32 b,s,8; f32 8,24; f32 24", "f32 b,s,8",
       "has a num_heads of -1, a number of heads wanted"},
      {"com.microsoft.Attention", "num_heads = 2 : i64, qkv_hidden_sizes = array<i64: 8, 8, 8>",
       "f32 b,s,8; f32 8,24; f32 24", "f32 b,s,8", NULL},
      {"com.microsoft.Attention", "num_heads = 2 : i64, qkv_hidden_sizes = array<i64: 8, 16>",
       "f32 b,s,8; f32 8,24; f32 24", "f32 b,s,8", "has qkv_hidden_sizes that are not three"},
      {"com.microsoft.Attention", "num_heads = 2 : i64", "f32 b,s,8; f32 8,p; f32 p", "f32 b,s,8",
       "needs weights of constant width"},
      {"com.microsoft.Attention", "num_heads = 2 : i64, do_rotary = 1 : i64", "f32 b,s,8; f32 8,24; f32 24",
       "f32 b,s,8", "with do_rotary is not supported"},
      {"com.microsoft.Attention", "num_heads = 2 : i64, past_present_share_buffer = 1 : i64",
       "f32 b,s,8; f32 8,24; f32 24", "f32 b,s,8", "with past_present_share_buffer is not supported"},
  };
  CHECK(rows, decompose);
}

/* Whether the one Attention of the function has a mask after decompose. */
static lp_status decompose_to(lp_module *module, bool masked, lp_diag *diag) {
  int attentions = 0;
  LP_TRY(decompose(module, diag));
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region) {
    if (op->kind != LP_ONNX_Attention) continue;
    ck_assert_int_eq(lp_op_in(op, 3) != NULL, masked);
    attentions++;
  }
  ck_assert_int_eq(attentions, 1);
  return LP_OK;
}

static lp_status without_mask(lp_module *module, lp_diag *diag) {
  return decompose_to(module, false, diag);
}

static lp_status with_mask(lp_module *module, lp_diag *diag) {
  return decompose_to(module, true, diag);
}

#define QUANTISED "ui8 b,s,8; i8 8,24; f32 24; f32; f32"

/* Exporters pass a mask [b, 1] to Attention where there is none; other operators take it as a mask. */
LP_TEST(a_mask_of_one_column_stands_for_none) {
  static const op_row none[] = {
      {"com.microsoft.Attention", "num_heads = 2 : i64", "f32 b,s,8; f32 8,24; f32 24; i32 b,1", "f32 b,s,8", NULL},
      {"com.microsoft.QAttention", "num_heads = 2 : i64", QUANTISED "; i32 b,1", "f32 b,s,8", NULL},
  };
  static const op_row some[] = {
      {"com.microsoft.Attention", "num_heads = 2 : i64", "f32 b,s,8; f32 8,24; f32 24; i32 b,s", "f32 b,s,8", NULL},
      {"com.microsoft.QAttention", "num_heads = 2 : i64", QUANTISED "; i32 b", "f32 b,s,8", NULL},
      {MHA, "num_heads = 2 : i64, operand_mask = \"11101\"", "f32 b,1,8; f32 b,1,8; f32 b,1,8; i32 b,1", "f32 b,1,8",
       NULL},
  };
  CHECK(none, without_mask);
  CHECK(some, with_mask);
}

#define ATTENTION_HEADS "q_num_heads = 2 : i64, kv_num_heads = 2 : i64"

LP_TEST(the_standards_attention) {
  static const op_row rows[] = {
      {"onnx.Attention", ATTENTION_HEADS, MHA_IN, "f32 b,s,8", NULL},
      {"onnx.Attention", ATTENTION_HEADS ", left_window_size = 4 : i64", MHA_IN, "f32 b,s,8", NULL},
      {"onnx.Attention", ATTENTION_HEADS ", qk_matmul_output_mode = 3 : i64", MHA_IN, "f32 b,s,8", NULL},
      {"onnx.Attention", ATTENTION_HEADS ", qk_matmul_output_mode = 4 : i64", MHA_IN, "f32 b,s,8",
       "has a qk_matmul_output_mode that is not known"},
      {"onnx.Attention", ATTENTION_HEADS ", qk_matmul_output_mode = -1 : i64", MHA_IN, "f32 b,s,8",
       "has a qk_matmul_output_mode that is not known"},
      {"onnx.Attention", ATTENTION_HEADS ", left_window_size = -2 : i64", MHA_IN, "f32 b,s,8",
       "has a window size below -1"},
      {"onnx.Attention", ATTENTION_HEADS ", right_window_size = -9 : i64", MHA_IN, "f32 b,s,8",
       "has a window size below -1"},
      {"onnx.Attention", ATTENTION_HEADS ", operand_mask = \"11101\"", MHA_IN "; f32 b,2,p,4", "f32 b,s,8",
       "has past keys without values"},
      {"onnx.Attention", ATTENTION_HEADS ", operand_mask = \"1110111\"", MHA_IN "; f32 b,2,p,4; f32 b,2,p,4; i64 b",
       "f32 b,s,8", "has both past keys and nonpad_kv_seqlen"},
  };
  CHECK(rows, decompose);
}

#define CONV "com.microsoft.CausalConvWithState"
#define CONV_IN "f32 b,6,s; w f32 6,1,4"
#define CONV_OUT "f32 b,6,s; f32 b,6,3"

LP_TEST(convolutions_norms_and_indices) {
  static const op_row rows[] = {
      {CONV, "", CONV_IN, CONV_OUT, NULL},
      {CONV, "ndim = 2 : i64", CONV_IN, CONV_OUT, "with another ndim than 1 is not supported"},
      {CONV, "dilation = 2 : i64", CONV_IN, CONV_OUT, "with another dilation than 1 is not supported"},
      {CONV, "channels_last = 1 : i64", CONV_IN, CONV_OUT, "with another channels_last than 0 is not supported"},
      {CONV, "activation = \"relu\"", CONV_IN, CONV_OUT, "has an activation that is not known"},
      {CONV, "", "f32 b,6,s; w f32 6,1,65", CONV_OUT, "needs a kernel of a constant width up to 64"},
      {CONV, "", "f32 b,6,s; w f32 6,1,0", CONV_OUT, "needs a kernel of a constant width up to 64"},
      {CONV, "", "f32 b,6,s; f32 6,1,p", CONV_OUT, "needs a kernel of a constant width up to 64"},
      {"onnx.InstanceNormalization", "", "f32 b,6,s; f32 6; f32 6", "f32 b,6,s", NULL},
      {"onnx.InstanceNormalization", "", "f32 b,6; f32 6; f32 6", "f32 b,6", "has no spatial axes"},
      {"onnx.GroupNormalization", "num_groups = 3 : i64", "f32 b,6,s; f32 6; f32 6", "f32 b,6,s", NULL},
      {"onnx.GroupNormalization", "num_groups = 0 : i64", "f32 b,6,s; f32 6; f32 6", "f32 b,6,s",
       "needs spatial axes and num_groups"},
      {"onnx.GroupNormalization", "num_groups = 3 : i64", "f32 b,6; f32 6; f32 6", "f32 b,6",
       "needs spatial axes and num_groups"},
      {"onnx.BatchNormalization", "", "f32 b,6,s; f32 6; f32 6; f32 6; f32 6", "f32 b,6,s", NULL},
      {"onnx.BatchNormalization", "", "f32 b; f32 b; f32 b; f32 b; f32 b", "f32 b", "has no channels"},
      {"onnx.LpNormalization", "p = 1 : i64", "f32 b,6", "f32 b,6", NULL},
      {"onnx.LpNormalization", "p = 3 : i64", "f32 b,6", "f32 b,6", "has a p other than 1 and 2"},
      {"onnx.DepthToSpace", "blocksize = 2 : i64", "f32 b,8,4,s", "f32 b,2,8,2*s", NULL},
      {"onnx.DepthToSpace", "blocksize = 2 : i64, mode = \"CDR\"", "f32 b,8,4,s", "f32 b,2,8,2*s",
       "has a mode that is not known"},
      {"onnx.TensorScatter", "mode = \"ring\"", "f32 b,9,4; f32 b,s,4", "f32 b,9,4", "has a mode that is not known"},
      {"onnx.Compress", "axis = 0 : i64", "f32 9,4; i1 9", "f32 s,4", "to evaluate at compile time"},
      {"com.microsoft.RotaryEmbedding", "is_packed_batching = 1 : i64", "f32 b,2,s,8; i64 b,s; f32 64,4; f32 64,4",
       "f32 b,2,s,8", "with is_packed_batching is not supported"},
  };
  CHECK(rows, decompose);
}
