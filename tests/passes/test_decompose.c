/* Operators of ONNX Runtime and of the standard that decompose takes apart, in their rarer forms. */
#include "base/base.h"
#include "tests/passes/graphs.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

#define CHECK(rows, passes) graph_check_rows(rows, LP_COUNT(rows), passes, GRAPH_VALUES)

/* ---- experts with packed weights --------------------------------------------------------------------------------- */

#define EXPERTS "x: f32 s,8; r: f32 s,2; "
#define UP "w1: w ui8 2,8,4; s1: w f32 2,8; "
#define DOWN "w2: w ui8 2,8,4; s2: w f32 2,8; "
#define QMOE "y = com.microsoft.QMoE x r w1 s1 _ w2 s2 "
#define NORMAL "normalize_routing_weights = 1 : i64"

LP_TEST(experts) {
  static const graph_row rows[] = {
      {EXPERTS UP DOWN QMOE "{" NORMAL "}", "onnx.DequantizeLinear|!QMoE\"("},
      {EXPERTS UP DOWN "b1: w f32 2,8; b2: w f32 2,8; y = com.microsoft.QMoE x r w1 s1 b1 w2 s2 b2 {" NORMAL
                       ", k = 2 : i64}",
       "onnx.DequantizeLinear|!QMoE\"("},
      {EXPERTS "w1: w ui8 2,8,8; s1: w f32 2,8; w2: w ui8 2,8,8; s2: w f32 2,8; " QMOE "{" NORMAL
               ", expert_weight_bits = 8 : i64}",
       "!QMoE\"("},
      {EXPERTS "w1: w ui8 2,8,2; s1: w f32 2,8; w2: w ui8 2,8,8; s2: w f32 2,8; " QMOE "{" NORMAL
               ", fc1_expert_weight_bits = 2 : i64, fc2_expert_weight_bits = 8 : i64}",
       "!QMoE\"("},
      /* scales by block, zero points by block or by row */
      {EXPERTS "w1: w ui8 2,8,4; s1: w f32 2,8,2; w2: w ui8 2,8,4; s2: w f32 2,8,2; " QMOE "{" NORMAL
               ", block_size = 4 : i64}",
       "block_size = 4|!QMoE\"("},
      {EXPERTS "w1: w ui8 2,8,4; s1: w f32 2,8,2; w2: w ui8 2,8,4; s2: w f32 2,8,2; z1: w ui8 2,8,1; z2: w ui8 2,8,1; "
               "y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ z1 z2 {" NORMAL ", block_size = 4 : i64}",
       "block_size = 4|!QMoE\"("},
      {EXPERTS UP DOWN "z1: w ui8 2,4; z2: w ui8 2,4; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ z1 z2 {" NORMAL
                       "}",
       "!QMoE\"("},
      {EXPERTS UP DOWN "w3: w ui8 2,8,4; s3: w f32 2,8; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ w3 s3 {" NORMAL
                       ", activation_type = \"swiglu\", activation_beta = 1.0 : f64}",
       "onnx.Swish|!QMoE\"("},
      {EXPERTS UP DOWN "rw: f32 s,2; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ _ _ _ rw {k = 1 : i64}",
       "onnx.GatherElements|!QMoE\"("},
      /* refused */
      {EXPERTS UP DOWN QMOE "{k = 1 : i64}", "?without normalize_routing_weights, where ONNX Runtime's devices differ"},
      {EXPERTS UP DOWN QMOE "{" NORMAL ", quant_type = \"fp8\"}", "?with another quant_type than int is not supported"},
      {EXPERTS UP DOWN QMOE "{" NORMAL ", weights_prepacked = 1 : i64}", "?with prepacked weights is not supported"},
      {EXPERTS UP DOWN QMOE "{" NORMAL ", weights_prepacked = 0 : i64}", "!QMoE\"("},
      {EXPERTS UP DOWN "gs: f32 2; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ _ _ _ _ gs {" NORMAL "}",
       "?with global or activation scales is not supported"},
      {EXPERTS UP DOWN QMOE "{" NORMAL ", expert_weight_bits = 3 : i64}", "?QMoE"},
      {EXPERTS "w1: w ui8 2,8,4; s1: f32 2,8; " DOWN QMOE "{" NORMAL "}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS "w1: w ui8 2,8,4; s1: w f32 2,7; " DOWN QMOE "{" NORMAL "}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS UP DOWN "y = com.microsoft.QMoE x r w1 s1 _ w2 _ {" NORMAL "}", "?QMoE"},
      {EXPERTS UP DOWN "z1: ui8 2,4; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ z1 {" NORMAL "}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS UP DOWN "z1: w ui8 2,3; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ z1 {" NORMAL "}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS UP DOWN "z1: w ui8 2,8,2; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ z1 {" NORMAL "}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS "w1: w ui8 2,8,4; s1: w f32 2,8,2; z1: w ui8 2,4; " DOWN
               "y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ _ _ _ z1 {" NORMAL ", block_size = 4 : i64}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS "w1: w ui8 2,8,4; s1: w f32 2,8,2; " DOWN QMOE "{" NORMAL ", block_size = 3 : i64}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS "w1: w ui8 2,8,4; s1: w f32 2,8,2; " DOWN QMOE "{" NORMAL "}",
       "?has scales or zero points that do not fit its weights"},
      {EXPERTS "w1: w ui8 2,8,3; s1: w f32 2,8; " DOWN QMOE "{" NORMAL "}",
       "?has weights that do not fit its hidden size"},
      {EXPERTS "w1: ui8 2,8,4; s1: w f32 2,8; " DOWN QMOE "{" NORMAL "}", "?has a weight that is not a constant"},
      {EXPERTS UP DOWN "w3: w ui8 2,8,4; s3: w f32 2,8; y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ w3 s3 {" NORMAL "}",
       "?with a third weight and another activation_type than swiglu is not supported"},
      {EXPERTS "w1: w ui8 2,16,4; s1: w f32 2,16; " DOWN "w3: w ui8 2,8,4; s3: w f32 2,8; "
               "y = com.microsoft.QMoE x r w1 s1 _ w2 s2 _ w3 s3 {" NORMAL
               ", activation_type = \"swiglu\", swiglu_fusion = 1 : i64}",
       "?has a third weight, although swiglu_fusion is set"},
      {EXPERTS UP DOWN "b1: f32 2,8; y = com.microsoft.QMoE x r w1 s1 b1 w2 s2 {" NORMAL "}",
       "?has a bias that is not a constant"},
      {"x: f32 s,t; r: f32 s,2; " UP DOWN QMOE "{" NORMAL "}", "?QMoE"},
      {"x: f32 s,8; r: f32 s,t; " UP DOWN QMOE "{" NORMAL "}", "?has no constant number of experts"},
  };
  CHECK(rows, "decompose");
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

#define QKV "q: f32 b,s,8; k: f32 b,r,8; v: f32 b,r,8; "
#define HEADS "q_num_heads = 2 : i64, kv_num_heads = 2 : i64"
#define QKV4 "q: f32 b,2,s,4; k: f32 b,2,r,4; v: f32 b,2,r,4; "
#define PAST "pk: f32 b,2,p,4; pv: f32 b,2,p,4; "

LP_TEST(attention_of_the_standard) {
  static const graph_row rows[] = {
      {QKV "y = Attention q k v {" HEADS "}", "is_causal = 0"},
      {QKV "y = Attention q k v {" HEADS ", is_causal = 1 : i64}", "onnx.LessOrEqual|is_causal = 0"},
      {QKV "y = Attention q k v {" HEADS ", right_window_size = 0 : i64}", "onnx.LessOrEqual|is_causal = 0"},
      {QKV "y = Attention q k v {" HEADS ", right_window_size = 2 : i64}", "onnx.LessOrEqual|!window"},
      {QKV "y = Attention q k v {" HEADS ", left_window_size = 2 : i64, right_window_size = 1 : i64}",
       "onnx.GreaterOrEqual|onnx.And|!window"},
      {QKV "y = Attention q k v {" HEADS ", is_causal = 1 : i64, right_window_size = 2 : i64}",
       "onnx.LessOrEqual|!window"},
      {"q: f32 b,s,8; k: f32 b,s,8; v: f32 b,s,8; y = Attention q k v {" HEADS
       ", is_causal = 1 : i64, left_window_size = 2 : i64}",
       "window = 3|bottom_right = 1"},
      {QKV4 "y = Attention q k v {left_window_size = 2 : i64}", "onnx.GreaterOrEqual|!window"},
      {"q: f32 b,s,8; k: f32 b,s,8; v: f32 b,s,8; " PAST "y pk2 pv2 = Attention q k v _ pk pv {" HEADS
       ", is_causal = 1 : i64}; "
       "return y pk2",
       "bottom_right = 1|onnx.Attention"},
      {"q: f32 b,s,8; k: f32 b,s,8; v: f32 b,s,8; " PAST "y pk2 pv2 = Attention q k v _ pk pv {" HEADS
       ", left_window_size = 1 : i64, right_window_size = 1 : i64}; return y pv2",
       "onnx.GreaterOrEqual|onnx.Attention"},
      {QKV "n: i64 b; y = Attention q k v _ _ _ n {" HEADS "}", "onnx.Less\"|onnx.Attention"},
      {QKV4 "n: i64 b; y = Attention q k v _ _ _ n {is_causal = 1 : i64}", "onnx.Less\"|onnx.LessOrEqual"},
      {QKV "n: i64 b; m: i1 s,r; y = Attention q k v m _ _ n {" HEADS "}", "onnx.And"},
      {QKV "n: i64 b; m: f32 s,r; y = Attention q k v m _ _ n {" HEADS "}", "onnx.Where"},
      {QKV "m: f16 s,r; y = Attention q k v m {" HEADS "}", "onnx.Cast"},
      /* masks with fewer columns than keys */
      {"q: f32 b,s,8; k: f32 b,5,8; v: f32 b,5,8; m: f32 s,3; y = Attention q k v m {" HEADS "}", "onnx.Pad"},
      {"q: f32 b,s,8; k: f32 b,5,8; v: f32 b,5,8; m: i1 s,3; y = Attention q k v m {" HEADS "}", "onnx.Pad|onnx.Cast"},
      {"q: f32 b,s,8; k: f32 b,5,8; v: f32 b,5,8; m: i1 s,5; y = Attention q k v m {" HEADS "}", "!onnx.Pad"},
      /* scores as a result */
      {QKV "y _k _v z = Attention q k v {" HEADS "}; return y z", "onnx.MatMul"},
      {QKV4 "m: f32 s,r; y _k _v z = Attention q k v m {qk_matmul_output_mode = 2 : i64}; return y z",
       "onnx.MatMul|onnx.Add"},
      {QKV4 "m: i1 s,r; y _k _v z = Attention q k v m {qk_matmul_output_mode = 3 : i64}; return y z",
       "onnx.Softmax|onnx.Where"},
      {QKV4 "y _k _v z = Attention q k v {qk_matmul_output_mode = 3 : i64}; return y z", "onnx.Softmax"},
      {QKV4 "y _k _v z = Attention q k v {qk_matmul_output_mode = 1 : i64, softcap = 3.0 : f64}; return y z",
       "onnx.Tanh"},
      {QKV4 "y _k _v z = Attention q k v {qk_matmul_output_mode = 0 : i64, softcap = 3.0 : f64}; return y z",
       "!onnx.Tanh"},
      {QKV4 "y _k _v z = Attention q k v {qk_matmul_output_mode = 2 : i64}; return y", "!onnx.MatMul"},
      {"q: f32 b,4,s,4; k: f32 b,2,r,4; v: f32 b,2,r,4; y _k _v z = Attention q k v {qk_matmul_output_mode = 1 : i64}; "
       "return y z",
       "onnx.MatMul|onnx.Reshape"},
  };
  CHECK(rows, "decompose");
}

#define GQA "y pk2 pv2 = com.microsoft.GroupQueryAttention "
#define GQA_IN "q: f32 b,s,32; k: f32 b,s,16; v: f32 b,s,16; "
#define GQA_PAST "pk: f32 b,2,p,8; pv: f32 b,2,p,8; total: i32; "
#define GQA_HEADS "num_heads = 4 : i64, kv_num_heads = 2 : i64"
#define EVEN                                                                                                           \
  "n: n p + s - 1; nb: n b; one: k i64=0; ax: k i64 1=0; nu = Unsqueeze nb ax; e = Expand n nu; lens = Cast e {to = "  \
  "6 : i64}; "
#define TABLES "cos: f32 64,4; sin: f32 64,4; "

LP_TEST(group_query_attention) {
  static const graph_row rows[] = {
      {GQA_IN GQA_PAST EVEN GQA "q k v pk pv lens total {" GQA_HEADS "}; return y pk2",
       "onnx.Attention|!onnx.GatherElements"},
      {GQA_IN GQA_PAST EVEN TABLES GQA "q k v pk pv lens total cos sin {" GQA_HEADS
                                       ", do_rotary = 1 : i64}; return y pk2",
       "onnx.RotaryEmbedding|!onnx.GatherElements"},
      {GQA_IN GQA_PAST EVEN TABLES "ids: i64 b,s; " GQA "q k v pk pv lens total cos sin ids {" GQA_HEADS
                                   ", do_rotary = 1 : i64}; return y pk2",
       "onnx.RotaryEmbedding|!onnx.GatherElements"},
      {GQA_IN GQA_PAST EVEN "bias: f32 b,4,s,p + s; " GQA "q k v pk pv lens total _ _ _ bias {" GQA_HEADS
                            "}; return y pk2",
       "onnx.Attention"},
      {GQA_IN GQA_PAST "lens: i32 b; bias: f32 1,4,s,p + s; " GQA "q k v pk pv lens total _ _ _ bias {" GQA_HEADS
                       "}; return y pk2",
       "onnx.GatherElements|onnx.Where|!onnx.Pad\"(%bias"},
      {GQA_IN "pk: f32 b,2,9,8; pv: f32 b,2,9,8; total: i32; lens: i32 b; bias: f32 1,4,s,5; " GQA
              "q k v pk pv lens total _ _ _ bias {" GQA_HEADS ", past_present_share_buffer = 1 : i64}; return y pk2",
       "onnx.Pad"},
      {GQA_IN GQA_PAST "lens: i32 b; " GQA "q k v pk pv lens total {" GQA_HEADS
                       ", smooth_softmax = 1 : i64, local_window_size = 2 : i64}; "
                       "return y pk2",
       "operand_mask|onnx.Greater\""},
      {GQA_IN GQA_PAST "lens: i32 b; " GQA "q k v pk pv lens total {" GQA_HEADS
                       ", causal = 0 : i64, local_window_size = 2 : i64}; "
                       "return y pk2",
       "onnx.Greater\""},
      {GQA_IN "pk: f32 b,2,4,8; pv: f32 b,2,4,8; total: i32; lens: i32 b; bias: f32 1,4,s,4; " GQA
              "q k v pk pv lens total _ _ _ bias {" GQA_HEADS
              ", sliding_window_cache = 1 : i64, local_window_size = 2 : i64}; return y",
       "?with sliding_window_cache has a bias or gives scores"},
      {GQA_IN "pk: f32 b,2,4,8; pv: f32 b,2,4,8; total: i32; lens: i32 b; "
              "y pk2 pv2 z = com.microsoft.GroupQueryAttention q k v pk pv lens total {" GQA_HEADS
              ", sliding_window_cache = 1 : i64, local_window_size = 2 : i64, qk_output = 1 : i64}; return y z",
       "?with sliding_window_cache has a bias or gives scores"},
      {GQA_IN "pk: f32 b,2,4,8; pv: f32 b,2,4,8; total: i32; lens: i32 b; " GQA "q k v pk pv lens total {" GQA_HEADS
              ", sliding_window_cache = 1 : i64, local_window_size = 0 : i64}; return y",
       "?with sliding_window_cache lacks a past or a window"},
      {GQA_IN GQA_PAST "lens: i32 b; cos: f32 64,t; sin: f32 64,t; " GQA "q k v pk pv lens total cos sin {" GQA_HEADS
                       ", do_rotary = 1 : i64}; return y",
       "?needs tables of constant width"},
      {GQA_IN GQA_PAST "lens: i32 b; vs: f32 1; " GQA "q k v pk pv lens total _ _ _ _ _ _ vs {" GQA_HEADS "}; return y",
       "?with a quantised cache is not supported"},
      {"q: f32 b,s,8*t; total: i32; lens: i32 b; " GQA "q _ _ _ _ lens total {" GQA_HEADS "}; return y",
       "?of a width that its heads do not divide"},
  };
  CHECK(rows, "decompose");
}

#define MS "y = com.microsoft.MultiHeadAttention q k v "
#define MS_IN "q: f32 b,s,8; k: f32 b,s,8; v: f32 b,s,8; "

LP_TEST(masks_of_onnx_runtime) {
  static const graph_row rows[] = {
      {MS_IN "m: i32 b; " MS "_ m {num_heads = 2 : i64}", "onnx.Less\""},
      {MS_IN "m: i32 2*b; " MS "_ m {num_heads = 2 : i64}", "onnx.GreaterOrEqual|onnx.And"},
      {MS_IN "m: i32 b,s; " MS "_ m {num_heads = 2 : i64}", "onnx.Cast"},
      {MS_IN "m: i32 b,s,s; " MS "_ m {num_heads = 2 : i64}", "onnx.Cast"},
      {MS_IN "m: i32 b,1,16,16; " MS "_ m {num_heads = 2 : i64}", "onnx.Slice"},
      {MS_IN "m: i32 b,s; bias: f32 b,2,s,s; " MS "_ m bias {num_heads = 2 : i64}", "onnx.Where"},
      {"q: f32 b,s,8; k: f32 b,2,r,4; v: f32 b,2,r,4; " MS "{num_heads = 2 : i64}", "onnx.Attention"},
      {"q: f32 b,s,8; kv: f32 b,r,2,2,4; y = com.microsoft.MultiHeadAttention q kv {num_heads = 2 : i64}",
       "onnx.Attention"},
      {"q: f32 b,s,6*t; y = com.microsoft.MultiHeadAttention q {num_heads = 2 : i64}",
       "?of a width that is no multiple of 3"},
      {"x: f32 b,s,8; w: f32 8,24; c: f32 24; m: i32 b,1; y = com.microsoft.Attention x w c m {num_heads = 2 : i64}",
       "onnx.Attention"},
      {"x: f32 b,s,8; w: f32 8,24; c: f32 24; m: i32 b,1; y = com.microsoft.Attention x w c m {num_heads = 2 : i64, "
       "unidirectional = 1 : i64}",
       "onnx.Attention"},
      {"x: f32 b,s,8; w: f32 8,24; c: f32 24; past: f32 2,b,2,p,4; y z = com.microsoft.Attention x w c _ past "
       "{num_heads = 2 : i64, "
       "unidirectional = 1 : i64}; return y z",
       "onnx.Attention"},
  };
  CHECK(rows, "decompose");
}

/* ---- norms, indices and tables ----------------------------------------------------------------------------------- */

LP_TEST(norms_and_indices) {
  static const graph_row rows[] = {
      {"x: f32 2,6,5; w: f32 3; c: f32 3; y = GroupNormalization x w c {num_groups = 3 : i64}", "!GroupNormalization"},
      {"x: f32 2,3,5; w: f32 3; c: f32 3; y = GroupNormalization x w c {num_groups = 3 : i64}", "!GroupNormalization"},
      {"x: f16 2,6,5; w: f32 6; c: f32 6; y = InstanceNormalization x w c", "!InstanceNormalization"},
      {"x: f32 4,6,5; w: f32 6; c: f32 6; m: f32 6; v: f32 6; y m2 v2 = BatchNormalization x w c m v {training_mode = "
       "1 : i64, "
       "momentum = 0.75 : f64}; return y m2 v2",
       "!BatchNormalization"},
      {"x: f32 4,6; w: f32 6; c: f32 6; m: f32 6; v: f32 6; y = BatchNormalization x w c m v", "!BatchNormalization"},
      {"x: f32 4,6; c: k i1 5=1,0,1,1,1; y = Compress x c", "onnx.Gather|!Compress"},
      {"x: f32 4,6; c: k i1 7=1,0,1,1,0,0,1; y = Compress x c {axis = 0 : i64}", "onnx.Gather|!Compress"},
      {"x: f32 4,6; c: k i1 3=1,0,1; y = Compress x c {axis = -1 : i64}", "onnx.Gather|!Compress"},
      {"ids: i32 b,s; seg: i32 b,s; w: w ui8 9,8; p: w ui8 7,8; t: w ui8 3,8; g: w ui8 8; c: w ui8 8; ws: w f32; ps: w "
       "f32; ts: w f32; "
       "gs: w f32; cs: w f32; wz: w ui8; pz: w ui8; tz: w ui8; gz: w ui8; cz: w ui8; "
       "y i = com.microsoft.QEmbedLayerNormalization ids seg w p t g c _ ws ps ts gs cs wz pz tz gz cz; return y",
       "onnx.LayerNormalization"},
      {"ids: i32 b,s; w: w ui8 9,8; p: w ui8 7,8; g: w ui8 8; c: w ui8 8; ws: w f32; ps: w f32; "
       "gs: w f32; cs: w f32; wz: w ui8; pz: w ui8; gz: w ui8; cz: w ui8; "
       "y i = com.microsoft.QEmbedLayerNormalization ids _ w p _ g c _ ws ps _ gs cs wz pz _ gz cz; return y",
       "onnx.LayerNormalization"},
      {"x: f32 b,2,s,8; cos: f32 64,4; sin: f32 64,4; at: i64 1; y = com.microsoft.RotaryEmbedding x at cos sin",
       "onnx.Tile"},
      {"x: f32 b,s,16; cos: f32 64,4; sin: f32 64,4; at: i64 b,s; y = com.microsoft.RotaryEmbedding x at cos sin",
       "num_heads = 2"},
      {"x: f32 b,s,t; cos: f32 64,4; sin: f32 64,4; at: i64 b,s; y = com.microsoft.RotaryEmbedding x at cos sin",
       "?needs num_heads, or a width and tables of constant size"},
      {"x: f32 b,s,16; cos: f32 64,t; sin: f32 64,t; at: i64 b,s; y = com.microsoft.RotaryEmbedding x at cos sin",
       "?needs num_heads, or a width and tables of constant size"},
      {"x: f32 b,s,16; cos: f32 64,0; sin: f32 64,0; at: i64 b,s; y = com.microsoft.RotaryEmbedding x at cos sin",
       "?RotaryEmbedding"},
      {"x: f32 b,2,s,8; cos: f32 64,4; long: f32 99,4; sin: f32 64,4; lsin: f32 99,4; c: i1; pads: k i64 4=0,0,35,0; "
       "pc = Pad cos pads; "
       "ps = Pad sin pads; wc = Where c long pc; ws = Where c lsin ps; at: i64 b,s; y = com.microsoft.RotaryEmbedding "
       "x at wc ws",
       "onnx.RotaryEmbedding|!onnx.Pad"},
  };
  CHECK(rows, "decompose");
}

LP_TEST(packed_products) {
  static const graph_row rows[] = {
      {"x: f32 b,32; w: w ui8 6,2,8; s: w f32 12; y = com.microsoft.MatMulNBits x w s {N = 6 : i64, K = 32 : i64, "
       "block_size = 16 : i64}",
       "onnx.DequantizeLinear"},
      {"x: f32 b,32; w: w ui8 6,2,8; s: w f32 12; c: w f32 6; y = com.microsoft.MatMulNBits x w s _ _ c {N = 6 : i64, "
       "K = 32 : i64, "
       "block_size = 16 : i64}",
       "onnx.DequantizeLinear|onnx.Add"},
      {"x: f32 b,32; w: w ui8 6,2,4; s: w f32 12; y = com.microsoft.MatMulNBits x w s {N = 6 : i64, K = 32 : i64, "
       "block_size = 16 : i64, "
       "bits = 2 : i64}",
       "onnx.DequantizeLinear|ui2"},
      {"x: f32 b,48; w: w ui8 6,3,8; s: w f32 18; z: k ui8 12=1,2,3,4,5,6,7,8,9,10,11,12; y = "
       "com.microsoft.MatMulNBits x w s z {N = 6 : i64, "
       "K = 48 : i64, block_size = 16 : i64}",
       "onnx.DequantizeLinear"},
      {"x: f32 b,48; w: w ui8 6,3,8; s: w f32 18; z: w f32 18; y = com.microsoft.MatMulNBits x w s z {N = 6 : i64, K = "
       "48 : i64, "
       "block_size = 16 : i64}",
       "onnx.DequantizeLinear"},
      {"x: f32 b,32; w: ui8 6,2,8; s: w f32 12; y = com.microsoft.MatMulNBits x w s {N = 6 : i64, K = 32 : i64, "
       "block_size = 16 : i64}",
       "?has a weight that is not a constant"},
      {"ids: i64 b; w: w ui4 6,32; s: w f32 6,2; y = com.microsoft.GatherBlockQuantized w ids s {block_size = 16 : "
       "i64}",
       "onnx.DequantizeLinear"},
      {"ids: i64 b; w: w ui4 6,32; s: w f32 6,2; z: w ui4 6,2; y = com.microsoft.GatherBlockQuantized w ids s z "
       "{block_size = 16 : i64}",
       "onnx.DequantizeLinear"},
      {"ids: i64 b; w: w ui8 6,16; s: w f32 6,2; y = com.microsoft.GatherBlockQuantized w ids s {block_size = 16 : "
       "i64}",
       "onnx.DequantizeLinear"},
      {"ids: i64 b; w: w ui8 2,6,16; s: w f32 2,6,2; y = com.microsoft.GatherBlockQuantized w ids s {quantize_axis = 2 "
       ": i64, block_size = 16 : i64}",
       "?reads a table that is not a constant matrix"},
      {"ids: i64 b; w: ui4 6,32; s: w f32 6,2; y = com.microsoft.GatherBlockQuantized w ids s {block_size = 16 : i64}",
       "?has a weight that is not a constant"},
      {"a: ui8 4,8; b1: i8 8,6; az: ui8 4; bz: i8 6; y = MatMulInteger a b1 az bz", "onnx.Unsqueeze"},
      {"a: ui8 4,8; b1: i8 8,6; az: ui8 1; y = MatMulInteger a b1 az", "!onnx.Unsqueeze"},
      {"a: f32 4,8; b1: i8 8,6; bs: f32 6; y = com.microsoft.DynamicQuantizeMatMul a b1 bs", "onnx.QuantizeLinear"},
      {"a: f32 4; y s z = DynamicQuantizeLinear a; return y s z", "onnx.QuantizeLinear"},
      {"a: i8 4,8; s1: f32; z1: i8; b1: i8 8,6; s2: f32 6; z2: i8 6; s3: f32; z3: i8; y = QLinearMatMul a s1 z1 b1 s2 "
       "z2 s3 z3",
       "onnx.QuantizeLinear"},
      {"a: i8 8; s1: f32; z1: i8; b1: i8 8,6; s2: f32; z2: i8; s3: f32; z3: i8; y = QLinearMatMul a s1 z1 b1 s2 z2 s3 "
       "z3",
       "onnx.QuantizeLinear"},
  };
  CHECK(rows, "decompose");
}
