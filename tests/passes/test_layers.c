/* Small decoders on their way from layers to caches: what raise, exits, kv-cache and mark-sensitive make of them. */
#include "base/base.h"
#include "tests/passes/graphs.h"
#include "tests/suite.h"

#define CHECK(rows, passes) graph_check_rows(rows, LP_COUNT(rows), passes, GRAPH_TEXT)

#define PARTS                                                                                                          \
  "input_ids: i64 b,s; table: w f32 32,8; g: w f32 8; sq: w f32 8,8; wide: w f32 8,24; thin: w f32 24,8; "             \
  "head: w f32 8,32; "
#define EMBED "x0 = Gather table input_ids; "
#define HEADS "{q_num_heads = 2 : i64, kv_num_heads = 2 : i64, is_causal = 1 : i64}"
#define ATTEND(n, x)                                                                                                   \
  "n" n " = RMSNormalization " x " g; q" n " = MatMul n" n " sq; k" n " = MatMul n" n " sq; v" n " = MatMul n" n       \
  " sq; a" n " = Attention q" n " k" n " v" n " " HEADS "; o" n " = MatMul a" n " sq; h" n " = Add " x " o" n "; "
#define MLP(n, y)                                                                                                      \
  "m" n " = RMSNormalization h" n " g; u" n " = MatMul m" n " wide; r" n " = Relu u" n "; d" n " = MatMul r" n         \
  " thin; " y " = Add h" n " d" n "; "
#define LAYER(n, x, y) ATTEND(n, x) MLP(n, y)
#define TOP(x) "f = RMSNormalization " x " g; logits = MatMul f head; "
#define TWO LAYER("0", "x0", "x1") LAYER("1", "x1", "x2")
#define THREE TWO LAYER("2", "x2", "x3")

/* ---- layers ------------------------------------------------------------------------------------------------------ */

LP_TEST(layers) {
  static const graph_row rows[] = {
      {PARTS EMBED LAYER("0", "x0", "x1") TOP("x1") "return logits",
       "layer.embedding|layer.attention|layer.mlp|layer.lm_head|activation = \"relu\"|vocab = 32|hidden = 8|ffn = 24"},
      {PARTS EMBED LAYER("0", "x0", "x1") "logits = MatMul x1 head", "layer.lm_head"},
      {PARTS EMBED LAYER("0", "x0", "x1") "y = Tanh x1; return y", "!layer.lm_head|layer.generic"},
      {PARTS "t3: w f32 32,2,4; n: n b, s, 8; e = Gather t3 input_ids; x0 = Reshape e n; " LAYER("0", "x0", "x1")
           TOP("x1") "return logits",
       "!layer.embedding|layer.generic"},
      {PARTS "c: k f32=3.0; e = Gather table input_ids; x0 = Mul e c; " LAYER("0", "x0", "x1")
           TOP("x1") "return logits",
       "layer.embedding|!layer.generic"},
      /* a norm that closes a block is of the block; the norms of one value in two layers are parted */
      {PARTS EMBED "q = MatMul x0 sq; a = Attention q q q " HEADS "; o = MatMul a sq; p = RMSNormalization o g; "
                   "h0 = Add x0 p; " MLP("0", "x1") TOP("x1") "return logits",
       "layer.attention|layer.mlp|layer.lm_head"},
      {PARTS EMBED
       "one: k f32 8=1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0; n = RMSNormalization x0 one; na = Mul n g; nb = Mul g n; "
       "q = MatMul na sq; a = Attention q q q " HEADS "; o = MatMul a sq; h = Add x0 o; u = MatMul nb wide; "
       "r = Relu u; d = MatMul r thin; x1 = Add h d; " TOP("x1") "return logits",
       "layer.attention|layer.mlp"},
      {PARTS EMBED
       "one: k f32 8=1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0; n = RMSNormalization x0 one; c: k f32 "
       "1,8=1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0; "
       "na = Mul n g; nb = Mul n c; q = MatMul na sq; a = Attention q q q " HEADS "; o = MatMul a sq; "
       "h = Add x0 o; u = MatMul nb wide; r = Relu u; d = MatMul r thin; x1 = Add h d; " TOP("x1") "return logits",
       "layer.attention|layer.mlp"},
      {PARTS EMBED LAYER(
           "0", "x0", "x1") "r = Relu x1; s1 = Tanh r; s2 = Tanh s1; s3 = Tanh s2; s4 = Tanh s3; s5 = Tanh s4; "
                            "s6 = Tanh s5; s7 = Tanh s6; s8 = Tanh s7; s9 = Tanh s8; t0 = Tanh s9; t1 = Tanh t0; "
                            "t2 = Tanh t1; t3 = Tanh t2; t4 = Tanh t3; t5 = Tanh t4; t6 = Tanh t5; t7 = Tanh t6; " TOP(
                                "t7") "return logits",
       "layer.lm_head"},
      /* attention and mlp in parallel, joined before they are added to the stream */
      {PARTS EMBED
       "n = RMSNormalization x0 g; q = MatMul n sq; a = Attention q q q " HEADS "; o = MatMul a sq; "
       "u = MatMul n wide; r = Relu u; d = MatMul r thin; j = Add o d; x1 = Add x0 j; " TOP("x1") "return logits",
       "layer.attention|layer.mlp"},
      /* heads are separate from the order of operators */
      {PARTS EMBED "f0 = RMSNormalization x0 g; early = MatMul f0 head; " LAYER("0", "x0", "x1")
           TOP("x1") "return logits early",
       "layer.exit_head|layer.lm_head"},
      {PARTS EMBED LAYER("0", "x0", "x1")
           TOP("x1") "f0 = RMSNormalization x1 g; q = MatMul f0 head; return logits input_ids",
       "layer.lm_head|!layer.exit_head"},
      {PARTS EMBED "i: k i64=3; c = Gather table i; h0 = Add x0 c; " MLP("0", "x1") TOP("x1") "return logits",
       "layer.mlp"},
  };
  CHECK(rows, "bind-inputs,fold,raise");
}

/* ---- exits ------------------------------------------------------------------------------------------------------- */

#define EARLY "f0 = RMSNormalization x1 g; early = MatMul f0 head; "

LP_TEST(exits) {
  static const graph_row rows[] = {
      {PARTS EMBED TWO TOP("x2") "return logits",
       "exits = array<i64: 1>|outputs = [\"logits\", \"exit_logits_1\"]|output_roles = [\"logits\", \"exit_logits\"]"},
      {PARTS EMBED THREE TOP("x3") "return logits", "exits = array<i64: 1>|layer.exit_head"},
      {PARTS EMBED TWO EARLY TOP("x2") "return early logits",
       "exits = array<i64: 1>|outputs = [\"logits\", \"early\"]"},
      {PARTS EMBED TWO EARLY TOP("x2") "x = Tanh h1; return early logits x",
       "exits = array<i64: 1>|outputs = [\"logits\", \"x\", \"early\"]"},
      {PARTS EMBED THREE "f0 = RMSNormalization x2 g; later = MatMul f0 head; " TOP("x3") "return later logits",
       "exits = array<i64: 1>|outputs = [\"logits\", \"exit_logits_1\"]"},
      {PARTS EMBED TWO "c: k f32=2.0; f = RMSNormalization x2 g; l = MatMul f head; logits = Mul l c; n: n b, s, 32; "
                       "return logits",
       "exits = array<i64: 1>|exit_logits_1"},
      {PARTS EMBED TWO "n: n b, 4*s, 8; n2: n b, s, 32; f = RMSNormalization x2 g; l = MatMul f head; v = Reshape l n; "
                       "t = Tanh v; logits = Reshape t n2; return logits",
       "exits = array<i64: 1>|exit_logits_1"},
      {PARTS EMBED TWO "z: f32 8; f = RMSNormalization x2 g; w = Mul f z; logits = MatMul w head; return logits",
       "exits = array<i64: 1>|exit_logits_1"},
      {PARTS EMBED TWO "w = Add x1 x2; " TOP("w") "return logits", "exits"},
      {PARTS EMBED TWO "w = Mul x2 x0; " TOP("w") "return logits",
       "?the model's head reads more than the result of its last layer, so it cannot be reused after another layer"},
      {PARTS EMBED LAYER("0", "x0", "x1") TOP("x1") "return logits",
       "?there is no exit after 1 layers: the model has 1 layers"},
      {PARTS EMBED TOP("x0") "return logits", "?there is no exit after 1 layers: the model has 0 layers"},
      {PARTS EMBED TWO "hidden = RMSNormalization x2 g; return hidden",
       "?the model's head cannot be reused after 1 layers"},
      {PARTS EMBED TWO TOP("x2") "y = MatMul x0 head; logits2 = Tanh y; return logits logits2", "exit_logits_1"},
  };
  static const graph_row far[] = {
      {PARTS EMBED TWO TOP("x2") "return logits",
       "?there is no exit after 2 layers: the model has 2 layers|?an exit can stand after 1 to 1 layers"},
      {PARTS EMBED TWO EARLY TOP("x2") "return early logits", "?the model has its own exit head after 1"},
      {PARTS EMBED THREE TOP("x3") "return logits", "exits = array<i64: 2>|exit_logits_2"},
      {PARTS EMBED THREE EARLY TOP("x3") "return logits early", "exits = array<i64: 2>|!\"early\"|exit_logits_2"},
  };
  static const graph_row none[] = {
      {PARTS EMBED TWO TOP("x2") "return logits", "?there is no exit after 0 layers: the model has 2 layers"},
  };
  static const graph_row both[] = {
      {PARTS EMBED THREE TOP("x3") "return logits", "exits = array<i64: 1, 2>|exit_logits_1\", \"exit_logits_2"},
  };
  static const graph_row kept[] = {
      {PARTS EMBED TWO EARLY TOP("x2") "return early logits", "outputs = [\"early\", \"logits\"]|!exits ="},
  };
  static const graph_row words[] = {
      {PARTS EMBED TWO TOP("x2") "return logits", "?'x'"},
  };
  CHECK(rows, "bind-inputs,raise,exits{layers=1}");
  CHECK(far, "bind-inputs,raise,exits{layers=2}");
  CHECK(none, "bind-inputs,raise,exits{layers=0}");
  CHECK(both, "bind-inputs,raise,exits{layers=1:2}");
  CHECK(kept, "bind-inputs,raise,exits");
  CHECK(words, "bind-inputs,raise,exits{layers=1:x}");
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

#define A EMBED "a = Attention x0 x0 x0 " HEADS "; "
#define END "logits = MatMul y head"
#define MIXED "?positions are mixed outside attention, so no KV cache can be kept"
#define AXES "i0: k i64 1=0; i1: k i64 1=1; i2: k i64 1=2; sc1: k i64=1; "

LP_TEST(caches) {
  static const graph_row rows[] = {
      {PARTS EMBED "v = Tanh x0; a = Attention x0 x0 v " HEADS "; y = Tanh a; " END,
       "name = \"layer.0.k\"|name = \"layer.0.v\"|op.kv_append"},
      {PARTS AXES A "y = CumSum a sc1; " END, MIXED},
      {PARTS AXES A "sc2: k i64=2; y = CumSum a sc2; " END, "op.kv_append"},
      {PARTS AXES A "m = ReduceMean a i1; y = Add a m; " END, MIXED},
      {PARTS AXES A "m = ReduceMean a i2; y = Add a m; " END, "op.kv_append"},
      {PARTS AXES A "i = ArgMax a {axis = 1 : i64}; m = Cast i {to = 1 : i64}; y = Add a m; " END, MIXED},
      {PARTS AXES A "m i = TopK a i1 {axis = 2 : i64}; y = Add a m; " END, "op.kv_append"},
      {PARTS AXES A "m = Gather a i0 {axis = 1 : i64}; y = Add a m; " END, MIXED},
      {PARTS AXES A "sh: n b, s, 8; z: k i64=0; i = Expand z sh; y = GatherElements a i {axis = 1 : i64}; " END, MIXED},
      {PARTS AXES A "sh: n b, s, 8; z: k i64=0; i = Expand z sh; y = GatherElements a i {axis = 2 : i64}; " END,
       "op.kv_append"},
      {PARTS AXES A "sh: n b, 1, 8; z: k i64=0; c: k f32=0.5; i = Expand z sh; e = Expand c sh; "
                    "y = ScatterElements a i e {axis = 1 : i64}; " END,
       MIXED},
      {PARTS AXES A
       "t = Transpose a {perm = array<i64: 1, 0, 2>}; z: k i64 1,1=0; sh: n 1, b, 8; c: k f32=0.5; e = Expand c sh; "
       "w = ScatterND t z e; y = Transpose w {perm = array<i64: 1, 0, 2>}; " END,
       MIXED},
      {PARTS AXES A
       "t = Transpose a {perm = array<i64: 2, 0, 1>}; z: k i64 1,1=0; sh: n 1, b, s; c: k f32=0.5; e = Expand c sh; "
       "w = ScatterND t z e; y = Transpose w {perm = array<i64: 1, 2, 0>}; " END,
       "op.kv_append"},
      {PARTS AXES A
       "c: k f32=0.5; sh: n b, 1, 8; e = Expand c sh; j = Concat e a {axis = 1 : i64}; n: n s; u = Unsqueeze n i0; "
       "y = Slice j i0 u i1; " END,
       MIXED},
      {PARTS AXES A "f = Slice a i0 i1 i1; y = Add a f; " END, MIXED},
      {PARTS AXES A "im1: k i64 1=-1; imax: k i64 1=9223372036854775807; f = Slice a im1 imax i1; y = Add a f; " END,
       "op.kv_append"},
      {PARTS AXES A "t = Transpose a {perm = array<i64: 0, 2, 1>}; p = MatMul a t; w = Tanh p; "
                    "y = MatMul w a; " END,
       MIXED},
      {PARTS AXES A "t = Transpose a {perm = array<i64: 0, 2, 1>}; w = Softmax t {axis = -1 : i64}; "
                    "y = Transpose w {perm = array<i64: 0, 2, 1>}; " END,
       MIXED},
      {PARTS AXES A
       "t = Transpose a {perm = array<i64: 0, 2, 1>}; c: k f32 8,8,3=0.5; w = Conv t c {pads = array<i64: 1, 1>}; "
       "y = Transpose w {perm = array<i64: 0, 2, 1>}; " END,
       MIXED},
      {PARTS AXES A "t = Transpose a {perm = array<i64: 0, 2, 1>}; sh: n b, s, 8; c: k f32=0.5; e = Expand c sh; "
                    "p = MatMul t e; m = ReduceMean p i1; y = Add a m; " END,
       MIXED},
      {PARTS AXES A
       "sh: n b, 1, 8; c: k f32=0.5; pads: k i64 6=0,1,0,0,0,0; q = Pad a pads; n: n s; u = Unsqueeze n i0; "
       "y = Slice q i0 u i1; " END,
       MIXED},
      {PARTS AXES A "pads: k i64 6=0,0,1,0,0,0; q = Pad a pads; i8: k i64 1=8; y = Slice q i0 i8 i2; " END,
       "op.kv_append"},
      /* the length as a number */
      {PARTS A "n: n s; f = Cast n {to = 1 : i64}; y = Mul a f; " END,
       "?the length of the sequence is used as a number, so no KV cache can be kept"},
      {PARTS A "n: n b; f = Cast n {to = 1 : i64}; y = Mul a f; " END, "op.kv_append"},
      /* positions */
      {PARTS AXES
       "t: k f32 6,8=0.5; n: n s; u = Unsqueeze n i0; w = Slice t i0 u i0; e = Gather table input_ids; x0 = Add e w; "
       "a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       "context = 6|\"p, 0\""},
      {PARTS AXES
       "t: w f32 6,8; z: k i64=0; n: n s; r = Range z n sc1; w = Gather t r; e = Gather table input_ids; x0 = Add e w; "
       "a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       "context = 6|start = #llmpart.poly<\"p\">"},
      {PARTS AXES
       "t: w f32 6,8; z: k i64=2; n: n s + 2; r = Range z n sc1; w = Gather t r; e = Gather table input_ids; "
       "x0 = Add e w; a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       "context = 4"},
      {PARTS AXES
       "t: w f32 6,8; t2: w f32 9,8; z: k i64=0; n: n s; r0 = Range z n sc1; r = Add r0 sc1; r2 = Sub r0 sc1; "
       "w = Gather t r; w2 = Gather t2 r2; w3 = Add w w2; e = Gather table input_ids; x0 = Add e w3; "
       "a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       "context = 5"},
      {PARTS AXES "t: w f32 6,8; z: k i64=0; n: n 2*s; two: k i64=2; r = Range z n two; w = Gather t r; e = Gather "
                  "table input_ids; "
                  "x0 = Add e w; a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       "!context"},
      /* a count of ones is a position */
      {PARTS AXES
       "attention_mask: i64 b,s; t: w f32 6,8; c = CumSum attention_mask sc1; r = Sub c sc1; w = Gather t r; "
       "e = Gather table input_ids; x0 = Add e w; a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       "context = 6|!op.cumsum"},
      {PARTS AXES "attention_mask: f32 b,s; t: w f32 6,8; c = CumSum attention_mask sc1; d = Cast c {to = 7 : i64}; r "
                  "= Sub d sc1; "
                  "w = Gather t r; e = Gather table input_ids; x0 = Add e w; a = Attention x0 x0 x0 " HEADS
                  "; y = Tanh a; " END,
       "!op.cumsum"},
      {PARTS AXES
       "attention_mask: i64 b,s; t: w f32 6,8; c = CumSum attention_mask sc1 {reverse = 1 : i64}; w = Gather t c; "
       "e = Gather table input_ids; x0 = Add e w; a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       MIXED},
      {PARTS AXES
       "attention_mask: i64 b,s; t: w f32 6,8; c = CumSum attention_mask sc1 {exclusive = 1 : i64}; w = Gather t c; "
       "e = Gather table input_ids; x0 = Add e w; a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       MIXED},
      {PARTS AXES "token_type_ids: i64 b,s; t: w f32 6,8; c = CumSum token_type_ids sc1; w = Gather t c; e = Gather "
                  "table input_ids; "
                  "x0 = Add e w; a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END,
       MIXED},
      /* outputs that a generation does not read */
      {PARTS A "y = Tanh a; logits = MatMul y head; h = MatMul a head; x = Tanh a; return logits x h",
       "outputs = [\"logits\"]"},
      {PARTS A "y_hidden = Tanh a; return y_hidden", "outputs = [\"y_hidden\"]"},
      /* others */
      {PARTS EMBED "a = Attention x0 x0 x0 {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}; y = Tanh a; " END,
       "warning: tokens attend to later ones|!kv_append"},
      {PARTS EMBED
       "k: k f32 1,3,8=0.5; sh: n b, 3, 8; ke = Expand k sh; y = Attention x0 ke ke {q_num_heads = 2 : i64, "
       "kv_num_heads = 2 : i64}; " END,
       "!kv_append"},
      {PARTS A "b1 = Attention a a a {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}; y = Tanh b1; " END,
       "?attention is not causal, so it can keep no KV cache"},
  };
  CHECK(rows, "bind-inputs,fold,decompose,recognise,raise,lower,kv-cache");
}

#define ENCODER                                                                                                        \
  "encoder_input_ids: i64 b,t; e = Gather table encoder_input_ids; "                                                   \
  "c = Attention a e e {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}; y = Add a c; "

LP_TEST(caches_of_encoders_and_types) {
  static const graph_row encoders[] = {
      {PARTS A ENCODER END, "layer.0.encoder.k|layer.0.encoder.v|once = true|layer.0.k"},
      {PARTS "pos: w f32 7,8; encoder_input_ids: i64 b,t; z: k i64=0; n: n t; o: k i64=1; r = Range z n o; "
             "w = Gather pos r; " A "e0 = Gather table encoder_input_ids; e = Add e0 w; "
             "c = Attention a e e {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}; y = Add a c; " END,
       "source_context = 7"},
      {PARTS
       "encoder_hidden_states: f32 b,t,8; " A
       "c = Attention a encoder_hidden_states encoder_hidden_states {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}; "
       "y = Add a c; " END,
       "!encoder.k|layer.0.k"},
  };
  static const graph_row half[] = {{PARTS A "y = Tanh a; " END, "dtype = \"f16\"|tensor<?x2x?x4xf16"}};
  static const graph_row brain[] = {{PARTS A "y = Tanh a; " END, "dtype = \"bf16\""}};
  static const graph_row single[] = {{PARTS A "y = Tanh a; " END, "dtype = \"f32\""}};
  static const graph_row bytes[] = {
      {PARTS A "y = Tanh a; " END, "?KV caches of 'i8' are not supported: f32, f16, bf16, int8 or int4"}};
  static const graph_row narrow[] = {{PARTS A "y = Tanh a; " END, "?have blocks of 32 elements, and a head has 4"}};
  static const graph_row words[] = {{PARTS A "y = Tanh a; " END, "?KV caches of 'tiny' are not supported"}};
  CHECK(encoders, "bind-inputs,fold,decompose,recognise,raise,lower,kv-cache");
  CHECK(half, "bind-inputs,decompose,raise,lower,kv-cache{dtype=f16}");
  CHECK(brain, "bind-inputs,decompose,raise,lower,kv-cache{dtype=bf16}");
  CHECK(single, "bind-inputs,decompose,raise,lower,kv-cache{dtype=f32}");
  CHECK(bytes, "bind-inputs,decompose,raise,lower,kv-cache{dtype=i8}");
  CHECK(narrow, "bind-inputs,decompose,raise,lower,kv-cache{dtype=int4}");
  CHECK(words, "bind-inputs,decompose,raise,lower,kv-cache{dtype=tiny}");
}

/* ---- masks that are lengthened ----------------------------------------------------------------------------------- */

#define BIAS(m) EMBED "a = Attention x0 x0 x0 " m " " HEADS "; y = Tanh a; "

LP_TEST(masks) {
  static const graph_row rows[] = {
      {PARTS "z: k i64=0; n: n s; o: k i64=1; r = Range z n o; f = Cast r {to = 1 : i64}; m = Sin f; " BIAS("m") END,
       "op.kv_append"},
      {PARTS
       "z: k i64=0; n: n s; o: k i64=1; r = Range z n o; f = Cast r {to = 1 : i64}; u: k i64 1=1; c = Unsqueeze f u; "
       "d = Sub f c; m = Sin d; " BIAS("m") END,
       "op.kv_append|\"p, 0\""},
      {PARTS
       "z: k i64=0; n: n s; o: k i64=1; r = Range z n o; f = Cast r {to = 1 : i64}; u: k i64 1=1; c = Unsqueeze f u; "
       "d = Sub f c; m = Sin d; " EMBED "a1 = Attention x0 x0 x0 m " HEADS "; a = Attention a1 a1 a1 m " HEADS
       "; y = Tanh a; " END,
       "op.kv_append|layer.1.k"},
      {PARTS "bias: f32 s,s; " BIAS("bias") END, "?attention's mask is not recognised, so it can keep no KV cache"},
      {PARTS "bias: f32 s,s; m = Tanh bias; " BIAS("m") END, "?attention's mask is not recognised"},
  };
  CHECK(rows, "bind-inputs,fold,decompose,recognise,raise,lower,kv-cache");
}

/* ---- sensitive products ------------------------------------------------------------------------------------------ */

LP_TEST(sensitive_products) {
  static const graph_row all[] = {
      {PARTS EMBED THREE TOP("x3") "return logits", "sensitive = true"},
      {PARTS EMBED
       "k: k f32 1,3,8=0.5; sh: n b, 3, 8; ke = Expand k sh; a = Attention x0 ke ke {q_num_heads = 2 : i64, "
       "kv_num_heads = 2 : i64}; y = Tanh a; " END,
       "!sensitive"},
      {PARTS EMBED "a = Attention x0 x0 x0 " HEADS "; y = Tanh a; " END, "!sensitive"},
      {PARTS EMBED "v = Tanh x0; w: w f32 8,8; v1 = MatMul v w; v2 = MatMul v w; a = Attention x0 x0 v1 " HEADS
                   "; c = Attention a x0 v1 " HEADS "; y = Tanh c; " END,
       "sensitive = true"},
  };
  static const graph_row few[] = {{PARTS EMBED THREE TOP("x3") "return logits", "!sensitive"}};
  static const graph_row words[] = {{PARTS EMBED THREE TOP("x3") "return logits", "?'much'"}};
  CHECK(all, "bind-inputs,decompose,raise,lower,mark-sensitive{budget=100%}");
  CHECK(few, "bind-inputs,decompose,raise,lower,mark-sensitive{budget=1%}");
  CHECK(few, "bind-inputs,decompose,raise,lower,mark-sensitive");
  CHECK(words, "bind-inputs,decompose,raise,lower,mark-sensitive{budget=much}");
}
