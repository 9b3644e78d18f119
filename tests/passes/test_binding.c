/* The generation protocol in the forms that exporters give it: what bind-inputs finds, and what it refuses. */
#include "base/base.h"
#include "tests/passes/graphs.h"
#include "tests/suite.h"

#define CHECK(rows, passes) graph_check_rows(rows, LP_COUNT(rows), passes, GRAPH_TEXT)

#define ROLES(in) "input_roles = [" in "]"
#define GIVES(out) "output_roles = [" out "]"
#define IDS "input_ids: i64 batch,seq; "
#define TABLE "table: w f32 10,4; "
#define EMBED TABLE "h = Gather table input_ids; "
#define HEAD "head: w f32 4,10; "

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

LP_TEST(tokens) {
  static const graph_row rows[] = {
      {IDS EMBED HEAD "logits = MatMul h head", ROLES("\"tokens\"") "|" GIVES("\"logits\"")},
      {"input_ids: i32 batch,seq; " EMBED HEAD "logits = MatMul h head", ROLES("\"tokens\"")},
      {"x: i64 batch,seq; " TABLE HEAD "h = Gather table x; logits = MatMul h head", ROLES("\"tokens\"")},
      {"x: i64 batch,seq; my_position: i64 batch,seq; a_mask: i64 batch,seq; the_type: i64 batch,seq; n: f32 "
       "batch,seq; "
       "v: i64 seq; " TABLE HEAD "h = Gather table x; h1 = Gather table my_position; h2 = Gather table a_mask; "
       "h3 = Gather table the_type; s = Sum h h1 h2 h3; logits = MatMul s head",
       ROLES("\"tokens\", \"data\", \"data\", \"data\", \"data\", \"data\"")},
      {"x: i64 batch,seq; y: i64 batch,seq; " TABLE HEAD "h = Gather table x; h1 = Gather table y; s = Add h h1; "
       "logits = MatMul s head",
       "?the model has no token input: integers [batch, positions] that choose rows of an embedding|"
       "?a graph that is no language model does not generate; 'llmpart verify --test-data' runs it"},
      {"x: i64 batch,seq; y: i64 batch,seq; " TABLE HEAD
       "c = Cast x {to = 1 : i64}; h = Gather table y; logits = MatMul h head",
       ROLES("\"data\", \"tokens\"")},
      {"inputs_embeds: f32 batch,seq,4; " HEAD "logits = MatMul inputs_embeds head",
       "?the model has no token input|?put the embedding beside it (embed_tokens.onnx"},
      {"input_ids: i64 batch,7; " EMBED HEAD "logits = MatMul h head",
       "?input 'input_ids' is always 7 tokens long, and the graph's constants depend on it"},
      {"input_ids: i64 1,seq; " EMBED HEAD "logits = MatMul h head", ROLES("\"tokens\"") "|!warning"},
      {"input_ids: i64 3,seq; " EMBED HEAD "logits = MatMul h head", "the batch of input 'input_ids' is always 3"},
      {"input_ids: i64 batch + 1,seq; " EMBED HEAD "logits = MatMul h head",
       "?axis 0 of input 'input_ids' is a sum; the generation protocol needs a plain size"},
      {"input_ids: i64 batch,2*seq; " EMBED HEAD "logits = MatMul h head", "?axis 1 of input 'input_ids' is a sum"},
      {"input_ids: i64 batch,batch*seq; " EMBED HEAD "logits = MatMul h head", "?axis 1 of input 'input_ids' is a sum"},
      {IDS EMBED HEAD "encoder_input_ids: i64 batch,rows; g = Gather table encoder_input_ids; a: k i64 1=1; "
                      "m = ReduceMean g a; s = Add h m; logits = MatMul s head",
       ROLES("\"tokens\", \"source_tokens\"")},
      {IDS EMBED HEAD
       "encoder_input_ids: i64 batch,rows; encoder_hidden_states: f32 batch,rows,4; "
       "g = Gather table encoder_input_ids; i = Add g encoder_hidden_states; a: k i64 1=1; m = ReduceMean i a; "
       "s = Add h m; logits = MatMul s head",
       ROLES("\"tokens\", \"data\", \"data\"")},
  };
  CHECK(rows, "bind-inputs");
}

/* ---- logits and hidden states ------------------------------------------------------------------------------------ */

#define LAST "m1: k i64=-1; "
#define ONE_ROW                                                                                                        \
  "?the model has no logits output: floats [batch, positions, vocabulary]|?is of one position, and this does not "     \
  "choose"

LP_TEST(logits) {
  static const graph_row rows[] = {
      {IDS EMBED HEAD "x = MatMul h head; logits = MatMul h head; return x logits",
       GIVES("\"exit_logits\", \"logits\"")},
      {IDS EMBED HEAD "x = MatMul h head; hidden = MatMul h head; return x hidden", GIVES("\"logits\", \"data\"")},
      {IDS EMBED HEAD "x = MatMul h head; y = Add x x; i = ArgMax x {axis = 2 : i64}; return i h y",
       GIVES("\"data\", \"data\", \"logits\"")},
      {IDS EMBED HEAD "x = MatMul h head; y = Cast x {to = 10 : i64}", GIVES("\"logits\"") "|onnx.Cast"},
      {IDS EMBED HEAD "x = MatMul h head; y = Cast x {to = 7 : i64}", "?the model has no logits output"},
      /* of the last position */
      {IDS EMBED HEAD LAST "l = Gather h m1 {axis = 1 : i64}; logits = MatMul l head",
       GIVES("\"logits\"") "|!axis = 1|tensor<?x?x10xf32, [\"b\", \"s\"]>"},
      {IDS EMBED HEAD LAST "l = Gather h m1 {axis = -2 : i64}; logits = MatMul l head",
       GIVES("\"logits\"") "|!axis = -2"},
      {IDS EMBED HEAD "m1: k i64=0; l = Gather h m1 {axis = 1 : i64}; logits = MatMul l head", ONE_ROW},
      {IDS EMBED HEAD "m1: k i64 2=-1,-1; l = Gather h m1 {axis = 1 : i64}; logits = MatMul l head",
       "?the model has no logits"},
      {IDS EMBED HEAD "at: i64; l = Gather h at {axis = 1 : i64}; logits = MatMul l head", ONE_ROW},
      {IDS EMBED HEAD
       "f: k i64 1=-1; t: k i64 1=9223372036854775807; a: k i64 1=1; l = Slice h f t a; logits = MatMul l head",
       GIVES("\"logits\"") "|!onnx.Slice"},
      {IDS EMBED HEAD "f: k i64 1=-2; t: k i64 1=-1; a: k i64 1=1; l = Slice h f t a; logits = MatMul l head", ONE_ROW},
      {IDS EMBED HEAD "n: n seq - 1; l = Gather h n {axis = 1 : i64}; logits = MatMul l head",
       GIVES("\"logits\"") "|!axis = 1"},
      {IDS EMBED HEAD LAST "a: k i64 1=1; l = Gather h m1 {axis = 1 : i64}; u = Unsqueeze l a; logits = MatMul u head",
       GIVES("\"logits\"") "|!onnx.Unsqueeze"},
      /* heads of several operators, each of one row */
      {IDS EMBED HEAD LAST "w: k f32 4=1.0,2.0,3.0,4.0; c: w f32 10; l = Gather h m1 {axis = 1 : i64}; "
                           "n = RMSNormalization l w; logits = Gemm n head c",
       "onnx.RMSNormalization|onnx.MatMul|onnx.Add|!onnx.Gemm"},
      {IDS EMBED "head: w f32 10,4; " LAST "l = Gather h m1 {axis = 1 : i64}; logits = Gemm l head {transB = 1 : i64}",
       "onnx.Transpose|onnx.MatMul|!onnx.Add|!onnx.Gemm"},
      {IDS EMBED HEAD LAST "l = Gather h m1 {axis = 1 : i64}; logits = Gemm l head {alpha = 2.0 : f64}", ONE_ROW},
      {IDS EMBED HEAD LAST "c: w f32 10; l = Gather h m1 {axis = 1 : i64}; logits = Gemm l head c {beta = 2.0 : f64}",
       ONE_ROW},
      {IDS EMBED HEAD LAST "c: f32 10; l = Gather h m1 {axis = 1 : i64}; logits = Gemm l head c", ONE_ROW},
      {IDS EMBED LAST "head: f32 4,10; l = Gather h m1 {axis = 1 : i64}; logits = Gemm l head", ONE_ROW},
      {IDS EMBED LAST "head: f32 4,10; l = Gather h m1 {axis = 1 : i64}; logits = MatMul l head", ONE_ROW},
      {IDS EMBED HEAD LAST "w: k f32 4=1.0,2.0,3.0,4.0; a: k i64 1=-1; l = Gather h m1 {axis = 1 : i64}; "
                           "m = ReduceMean l a; d = Sub l m; t = Mul d w; logits = MatMul t head",
       GIVES("\"logits\"") "|onnx.ReduceMean"},
      {IDS EMBED HEAD LAST "a: k i64 1=0; l = Gather h m1 {axis = 1 : i64}; m = ReduceMean l a; d = Sub l m; "
                           "logits = MatMul d head",
       ONE_ROW},
      {IDS EMBED HEAD LAST
       "w: f32 4; l = Gather h m1 {axis = 1 : i64}; n = RMSNormalization l w; logits = MatMul n head",
       ONE_ROW},
      {IDS EMBED HEAD LAST "w: k f32 4=1.0,2.0,3.0,4.0; l = Gather h m1 {axis = 1 : i64}; "
                           "n = RMSNormalization l w {axis = 0 : i64}; logits = MatMul n head",
       ONE_ROW},
      {IDS EMBED HEAD LAST "l = Gather h m1 {axis = 1 : i64}; x = MatMul l head; g = Tanh x; logits = Add g x",
       GIVES("\"logits\"") "|onnx.Tanh"},
      {IDS EMBED HEAD LAST "z: f32 batch,10; l = Gather h m1 {axis = 1 : i64}; x = MatMul l head; logits = Add x z",
       ONE_ROW},
      {IDS EMBED HEAD LAST "l = Gather h m1 {axis = 1 : i64}; x = MatMul l head; a: k i64 1=1; s = CumSum x a; "
                           "logits = Add s x",
       ONE_ROW},
      {IDS EMBED HEAD LAST
       "l = Gather h m1 {axis = 1 : i64}; logits = MatMul l head; m = ArgMax logits {axis = 1 : i64}; "
       "return logits m",
       ONE_ROW},
      {IDS EMBED HEAD LAST "l = Gather h m1 {axis = 1 : i64}; logits = MatMul l head; return logits h l",
       GIVES("\"logits\", \"data\", \"data\"") "|axis = 1"},
      {IDS EMBED HEAD LAST "x = MatMul h head; logits = Gather x m1 {axis = 1 : i64}; y = Tanh logits; return y logits",
       GIVES("\"data\", \"logits\"") "|axis = 1|onnx.Tanh"},
  };
  CHECK(rows, "bind-inputs");
}

LP_TEST(hidden_states) {
  static const graph_row rows[] = {
      {IDS EMBED "y = Tanh h", GIVES("\"hidden\"") "|vocab = 10"},
      {IDS EMBED "first_hidden = Tanh h; last_hidden_state = Tanh first_hidden; return first_hidden last_hidden_state",
       GIVES("\"data\", \"hidden\"")},
      {IDS EMBED "a_hidden = Tanh h; b_hidden = Tanh a_hidden; return a_hidden b_hidden",
       GIVES("\"hidden\", \"data\"")},
      {IDS EMBED HEAD "embedding = MatMul h head", GIVES("\"hidden\"")},
      {IDS EMBED "logits = Tanh h", GIVES("\"logits\"")},
      {IDS "table: w f32 4,4; h = Gather table input_ids; y = Tanh h", GIVES("\"logits\"")},
      {IDS EMBED "a: k i64 1=1; y = Tanh h; sentence_embedding = ReduceMean y a {keepdims = 0 : i64}; return y "
                 "sentence_embedding",
       GIVES("\"hidden\", \"embedding\"")},
      {IDS EMBED "a: k i64 1=1; sentence_embedding = ReduceMean h a {keepdims = 0 : i64}", GIVES("\"embedding\"")},
      {IDS EMBED "a: k i64 1=1; m = ReduceMean h a {keepdims = 0 : i64}; sentence_embedding = Cast m {to = 7 : i64}",
       "?the model has no logits output"},
      {IDS EMBED "a: k i64 2=1,2; m = ReduceMean h a {keepdims = 0 : i64}; sentence_embedding = Tanh m",
       "?the model has no logits output"},
      {IDS EMBED "a: k i64 1=0; m = ReduceMean h a {keepdims = 0 : i64}; sentence_embedding = Tanh m",
       "?the model has no logits output"},
      {IDS "u: k i64 1=1; " TABLE "i = Unsqueeze input_ids u; e = Squeeze i u; h = Gather table e; y = Tanh h",
       GIVES("\"hidden\"") "|vocab = 10"},
      {IDS "u: k i64 1=1; t3: w f32 10,2,2; n: n batch, seq, 4; g = Gather t3 input_ids; h = Reshape g n; y_hidden = "
           "Tanh h",
       GIVES("\"hidden\"") "|!vocab"},
      {IDS "e: w f32 10,4; pos: w f32 8,4; g: w f32 4; c: w f32 4; "
           "y z m = com.microsoft.EmbedLayerNormalization input_ids _ e pos _ g c; return y",
       "output_roles"},
  };
  CHECK(rows, "bind-inputs");
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

#define LOGITS EMBED HEAD "logits = MatMul h head; "
#define SPLIT "n: n batch, seq, 2, 2; r0 = Reshape h n; rows = Transpose r0 {perm = array<i64: 0, 2, 1, 3>}; "
#define CACHE(name) name ": f32 batch,2,rows,2; "
#define NO_CACHE "?: a cache that grows is needed|?caches are [b, heads, p, d]"

LP_TEST(caches) {
  static const graph_row rows[] = {
      {IDS CACHE("past_key_values.0.key") LOGITS SPLIT
       "present.0.key = Concat past_key_values.0.key rows {axis = 2 : i64}; return logits present.0.key",
       ROLES("\"tokens\", \"past_key\"") "|\"present_key\"|past_pair = array<i64: -1, 1>"},
      {IDS CACHE("past_key_values.0.value") LOGITS SPLIT "new_key_values.0.value = Concat past_key_values.0.value rows "
                                                         "{axis = 2 : i64}; return new_key_values.0.value logits",
       ROLES("\"tokens\", \"past_value\"") "|past_pair = array<i64: -1, 0>"},
      {IDS CACHE("past_k0") LOGITS SPLIT "x = Concat past_k0 rows {axis = 2 : i64}; return logits x",
       ROLES("\"tokens\", \"past_key\"")},
      {IDS CACHE("cache_v0") LOGITS SPLIT
       "new_cache_v0 = Concat cache_v0 rows {axis = 2 : i64}; return logits new_cache_v0",
       ROLES("\"tokens\", \"past_value\"")},
      /* caches without names of a kind: keys come before values; a pair is taken once */
      {IDS CACHE("x") CACHE("y") LOGITS SPLIT "u = Concat x rows {axis = 2 : i64}; v = Concat y rows {axis = 2 : i64}; "
                                              "return logits u v",
       ROLES("\"tokens\", \"past_key\", \"past_value\"") "|past_pair = array<i64: -1, 1, 2>"},
      /* axes in another order */
      {IDS "past: f32 batch,rows,2,2; " LOGITS SPLIT "present = Concat past r0 {axis = 1 : i64}; return logits present",
       "grows_past = 1|tensor<?x2x?x2xf32, [\"b\", \"p\"]>"},
      {IDS "past: f32 batch,2,2,rows; " LOGITS SPLIT "r1 = Transpose rows {perm = array<i64: 0, 1, 3, 2>}; "
           "present = Concat past r1 {axis = -1 : i64}; other = Concat past past past {axis = -1 : i64}; "
           "return logits present other",
       "grows_past = 3|tensor<?x2x?x2xf32, [\"b\", \"p\"]>"},
      /* stacked */
      {IDS "past: f32 2,batch,2,rows,2; " LOGITS SPLIT
           "a: k i64 1=0; u = Unsqueeze rows a; w = Concat u u {axis = 0 : i64}; "
           "present = Concat past w {axis = 3 : i64}; return logits present",
       ROLES("\"tokens\", \"past_kv\"")},
      {IDS "past_key: f32 r,batch,2,rows,2; nr: n r, batch, 2, seq, 2; " LOGITS SPLIT
           "a: k i64 1=0; u = Unsqueeze rows a; "
           "w = Expand u nr; present_key = Concat past_key w {axis = 3 : i64}; return logits present_key",
       NO_CACHE},
      {IDS "x: f32 1,1,1,batch,2,rows,2; nr: n 1, 1, 1, batch, 2, seq, 2; " LOGITS SPLIT "w = Expand rows nr; "
           "y = Concat x w {axis = 5 : i64}; return logits y",
       ROLES("\"tokens\", \"data\"")},
      /* caches of f16 that are widened before they are read */
      {IDS "past: f16 batch,2,rows,2; " LOGITS SPLIT "wide = Cast past {to = 1 : i64}; s = Shape past; "
           "present = Concat wide rows {axis = 2 : i64}; return logits present s",
       ROLES("\"tokens\", \"past_key\"") "|!f16"},
      {IDS "past_key: f16 batch,2,rows,2; " LOGITS SPLIT "wide = Cast past_key {to = 1 : i64}; half = Neg past_key; "
           "present_key = Concat wide rows {axis = 2 : i64}; return logits present_key half",
       NO_CACHE},
      {IDS "past_key: f32 batch,2,rows,2; " LOGITS SPLIT
           "half = Cast past_key {to = 10 : i64}; r2 = Cast rows {to = 10 : i64}; "
           "present_key = Concat half r2 {axis = 2 : i64}; return logits present_key",
       NO_CACHE},
      {IDS "past_key: f32 batch,2,rows,2; " LOGITS SPLIT "join = Concat past_key rows {axis = 2 : i64}; "
           "present_key = Cast join {to = 7 : i64}; return logits present_key",
       NO_CACHE},
      /* caches that do not grow */
      {IDS CACHE("past_key_values.0.key") LOGITS
       "present.0.key = Tanh past_key_values.0.key; return logits present.0.key",
       "?is as long as it, because old rows leave it|?past_key_values.0.key"},
      {IDS CACHE("past_key_values.0.key") LOGITS
       "a: k i64 4=0,0,0,0; b: k i64 4=9999,1,9999,9999; "
       "present.0.key = Slice past_key_values.0.key a b; return logits present.0.key",
       "?does not hold all its rows and the new ones"},
      {IDS CACHE("past_key_values.0.key") LOGITS "a: k i64 1=3; present.0.key = ReduceMean past_key_values.0.key a "
                                                 "{keepdims = 0 : i64}; return logits present.0.key",
       "?does not hold all its rows and the new ones"},
      {IDS CACHE("past_key_values.0.key") LOGITS "x = Tanh past_key_values.0.key; return logits x",
       "?no output continues this cache: an output of its type with one longer axis is needed"},
      {IDS CACHE("past_key_values") LOGITS "x = Tanh past_key_values; return logits x",
       "?no output continues this cache"},
      {IDS CACHE("a_cache_value") LOGITS "x = Tanh a_cache_value; return logits x", "?no output continues this cache"},
      {IDS CACHE("a_cache_size") LOGITS "x = Tanh a_cache_size; return logits x", ROLES("\"tokens\", \"data\"")},
      {IDS CACHE("past_key_values.0.encoder.key") LOGITS "x = Tanh past_key_values.0.encoder.key; return logits x",
       ROLES("\"tokens\", \"data\"")},
      {IDS CACHE("past_key_cross_0") LOGITS "x = Tanh past_key_cross_0; return logits x",
       ROLES("\"tokens\", \"data\"")},
      {IDS "past_key: i64 batch,2,rows,2; " LOGITS "x = Neg past_key; return logits x", ROLES("\"tokens\", \"data\"")},
      {IDS "past_key: f32 batch,rows,2; " LOGITS "x = Neg past_key; return logits x", ROLES("\"tokens\", \"data\"")},
      /* buffers that the graph writes in another way than at the positions after the past */
      {IDS "past_key: f32 2,2,9,2; i: i64 2,2,1,2; v: f32 2,2,1,2; " LOGITS
           "x = ScatterElements past_key i v {axis = 2 : i64}; return logits x",
       "?the graph writes new rows into this cache, a buffer of constant length"},
      {IDS "z: f32 2,2,9,2; i: i64 1,1; v: f32 1,2,9,2; " LOGITS "t = Transpose z {perm = array<i64: 1, 0, 2, 3>}; "
           "x = ScatterND t i v; return logits x",
       "?a buffer of constant length"},
      {IDS "z: f32 2,9,2; v: f32 2,1,2; " LOGITS "x = TensorScatter z v; return logits x",
       "?a buffer of constant length"},
      {IDS "z: f32 2,9,2; i: i64 2,9,2; " LOGITS
           "x = ScatterElements i i i {axis = 1 : i64}; y = GatherElements z x {axis = 1 : i64}; "
           "return logits y",
       ROLES("\"tokens\", \"data\", \"data\"")},
      {IDS "z: f32 9; i: i64 2; v: f32 2; " LOGITS "x = ScatterElements z i v; return logits x",
       ROLES("\"tokens\", \"data\", \"data\", \"data\"")},
      {IDS "z: f32 2,9,2; i: i64 2,9,2; d: f32 2,9,2; " LOGITS "x = ScatterElements d i z; y = Tanh d; return logits x",
       "?a buffer of constant length"},
      {IDS "z: f32 2,9,2; i: i64 2,9,2; " LOGITS "d = Tanh z; x = ScatterElements d i z; return logits x",
       ROLES("\"tokens\", \"data\", \"data\"")},
  };
  CHECK(rows, "bind-inputs");
}

#define BUFFER "past: f32 1,2,9,2; "
#define AT "idx: i64 1,2,seq,2; "
#define WRITE "present = ScatterElements past idx rows {axis = 2 : i64}; return logits present"
#define IDS1 "input_ids: i64 1,seq; "
#define SPLIT1 "n: n 1, seq, 2, 2; r0 = Reshape h n; rows = Transpose r0 {perm = array<i64: 0, 2, 1, 3>}; "

LP_TEST(buffers) {
  static const graph_row rows[] = {
      {IDS1 BUFFER AT LOGITS SPLIT1 WRITE, "context = 9|\"past_key\"|tensor<1x2x?x2xf32, [\"p\"]>"},
      {IDS1 BUFFER AT LOGITS SPLIT1 "present = ScatterElements past idx rows {axis = -2 : i64}; return logits present",
       "context = 9"},
      {IDS1 BUFFER AT LOGITS SPLIT1 "present = ScatterElements past idx rows {axis = 2 : i64, reduction = \"add\"}; "
                                    "return logits present",
       "?a buffer of constant length"},
      {IDS1 "past: f32 2,9,1,2; i2: i64 seq,1; i1 : i64 9; " LOGITS "n: n seq, 9, 1, 2; r0: f32 seq,9,1,2; "
            "present = ScatterND past i2 r0; return logits present",
       "?a buffer of constant length"},
      {IDS1 "past: f32 9,2,1,2; i2: i64 seq,2; r0: f32 seq,1,2; " LOGITS
            "present = ScatterND past i2 r0; return logits present",
       "?a buffer of constant length"},
      {IDS1 "past: f32 9,2,1,2; i2: i64 1,seq,1; r0: f32 1,seq,2,1,2; " LOGITS
            "present = ScatterND past i2 r0; return logits present",
       "?a buffer of constant length"},
      {IDS1 "past: f32 1,2,9,2; past2: f32 1,2,7,2; idx: i64 1,2,seq,2; " LOGITS SPLIT1
            "present = ScatterElements past idx rows {axis = 2 : i64}; present2 = ScatterElements past2 idx rows {axis "
            "= 2 : i64}; "
            "return logits present present2",
       "context = 7"},
      {IDS1 "past: f32 1,2,9,2; past2: f32 1,2,11,2; idx: i64 1,2,seq,2; " LOGITS SPLIT1
            "present = ScatterElements past idx rows {axis = 2 : i64}; present2 = ScatterElements past2 idx rows {axis "
            "= 2 : i64}; "
            "return logits present present2",
       "context = 9"},
      {IDS1 BUFFER AT LOGITS SPLIT1 "x = ScatterElements past idx rows {axis = 2 : i64}; y = Tanh x; return logits y",
       "?a buffer of constant length"},
      {IDS1 "past: f32 1,2,rows,2; " AT LOGITS SPLIT1 WRITE, "?a buffer of constant length"},
      {IDS1 "past: f32 1,2,9,2; idx: i64 1,2,seq,1; v: f32 1,2,seq,1; " LOGITS
            "present = ScatterElements past idx v {axis = 2 : i64}; return logits present",
       "?a buffer of constant length"},
  };
  /* what the graph reads of a buffer must be the written rows */
  static const graph_row refused[] = {
      {IDS1 BUFFER AT LOGITS SPLIT1 WRITE,
       "?this cache is a buffer of constant length, and it is not proved to write the new rows after the past ones"},
      {IDS1 BUFFER LOGITS SPLIT1
       "p: n p; t: n p + seq; o: k i64=1; i = Range p t o; s: k i64 3=0,1,3; u = Unsqueeze i s; "
       "w: n 1, 2, seq, 2; idx = Expand u w; " WRITE " past",
       "?the graph reads its rows that are not written yet"},
      {IDS1 BUFFER LOGITS SPLIT1 "t: n p + seq; p: n p + 1; o: k i64=1; t1: n p + seq + 1; i = Range p t1 o; "
                                 "s: k i64 3=0,1,3; u = Unsqueeze i s; w: n 1, 2, seq, 2; idx = Expand u w; " WRITE,
       "?it is not proved to write the new rows after the past ones"},
      {IDS1 BUFFER LOGITS SPLIT1
       "p: n p; t: n p + seq; o: k i64=1; i = Range p t o; s: k i64 3=0,1,3; u = Unsqueeze i s; "
       "w: n 1, 2, seq, 2; idx = Expand u w; present = ScatterElements past idx rows {axis = 2 : i64}; y = Tanh "
       "present; "
       "return logits present y",
       "?the graph reads its rows that are not written yet"},
  };
  static const graph_row joined[] = {
      {IDS1 BUFFER LOGITS SPLIT1
       "p: n p; t: n p + seq; o: k i64=1; i = Range p t o; s: k i64 3=0,1,3; u = Unsqueeze i s; "
       "w: n 1, 2, seq, 2; idx = Expand u w; " WRITE,
       "axis = 2|!ScatterElements"},
  };
  CHECK(rows, "bind-inputs");
  CHECK(refused, "bind-inputs,fold,recognise");
  CHECK(joined, "bind-inputs,fold,recognise");
}

/* ---- inputs that follow from the sizes --------------------------------------------------------------------------- */

#define SEE(mask) "c = Cast " mask " {to = 1 : i64}; a: k i64 1=1; m = ReduceMean c a; g = Mul h m; "
#define POSITIONS "e0 = Gather table pos; g = Add h e0; "
#define END "logits = MatMul g head"

LP_TEST(followers) {
  static const graph_row rows[] = {
      {IDS "attention_mask: i64 batch,seq; " EMBED HEAD "c = Cast attention_mask {to = 1 : i64}; u: k i64 1=2; "
           "m = Unsqueeze c u; g = Mul h m; " END,
       ROLES("\"tokens\"") "|!attention_mask"},
      {IDS "input_mask: f32 batch,seq; " EMBED HEAD "u: k i64 1=2; m = Unsqueeze input_mask u; g = Mul h m; " END,
       ROLES("\"tokens\"")},
      {IDS "mask: i1 1,seq; " EMBED HEAD
           "c = Cast mask {to = 1 : i64}; u: k i64 1=2; m = Unsqueeze c u; g = Mul h m; " END,
       ROLES("\"tokens\"")},
      {IDS "position_ids: i64 batch,seq; " EMBED HEAD "e0 = Gather table position_ids; g = Add h e0; " END,
       ROLES("\"tokens\"") "|onnx.Range"},
      {IDS "position_ids: i64 1,seq; " EMBED HEAD "e0 = Gather table position_ids; g = Add h e0; " END,
       ROLES("\"tokens\"")},
      {IDS "position_ids: i32 seq; " EMBED HEAD "e0 = Gather table position_ids; g = Add h e0; " END,
       ROLES("\"tokens\"") "|onnx.Range"},
      {IDS "cache_position: i64 seq; " EMBED HEAD "e0 = Gather table cache_position; g = Add h e0; " END,
       ROLES("\"tokens\"")},
      {IDS "token_type_ids: i64 batch,seq; " EMBED HEAD "e0 = Gather table token_type_ids; g = Add h e0; " END,
       ROLES("\"tokens\"") "|onnx.ConstantOfShape"},
      {IDS "seqlens_k: i32 batch; total_sequence_length: i32; " EMBED HEAD "s = Add seqlens_k total_sequence_length; "
           "f = Cast s {to = 1 : i64}; u: k i64 2=1,2; m = Unsqueeze f u; g = Mul h m; " END,
       ROLES("\"tokens\"")},
      {IDS "seqlens_k: i32 1; total_sequence_length: i64 1; " EMBED HEAD "s = Cast seqlens_k {to = 7 : i64}; "
           "t = Add s total_sequence_length; f = Cast t {to = 1 : i64}; g = Mul h f; " END,
       ROLES("\"tokens\"")},
      {IDS "use_cache_branch: i1 1; " EMBED HEAD "f = Cast use_cache_branch {to = 1 : i64}; g = Mul h f; " END,
       ROLES("\"tokens\"")},
      {IDS "use_cache_branch: i1 9; " EMBED HEAD
           "f = Cast use_cache_branch {to = 1 : i64}; a: k i64 1=0; s = ReduceMean f a; "
           "g = Mul h s; " END,
       ROLES("\"tokens\", \"data\"")},
      {IDS "use_cache_branch: i1 rows; " EMBED HEAD "f = Cast use_cache_branch {to = 1 : i64}; a: k i64 1=0; "
           "s = ReduceMean f a; g = Mul h s; " END,
       ROLES("\"tokens\", \"data\"")},
      {IDS "position_ids: f32 batch,seq; " EMBED HEAD "u: k i64 1=2; m = Unsqueeze position_ids u; g = Mul h m; " END,
       ROLES("\"tokens\", \"data\"")},
      {IDS "position_ids: i64 2,batch,seq; " EMBED HEAD "e0 = Gather table position_ids; a: k i64 1=0; "
           "m = ReduceMean e0 a {keepdims = 0 : i64}; g = Add h m; " END,
       ROLES("\"tokens\", \"data\"")},
      {IDS "position_ids: i64 batch,7; " EMBED HEAD
           "e0 = Gather table position_ids; a: k i64 1=1; m = ReduceMean e0 a; "
           "g = Add h m; " END,
       "?its shape is not that of the generation protocol"},
      {IDS "position_ids: i64 batch,seq + rows; " EMBED HEAD
           "e0 = Gather table position_ids; a: k i64 1=1; m = ReduceMean e0 a; "
           "g = Add h m; " END,
       "?axis 1 of input 'position_ids' is a sum"},
      {"position_ids: i64 batch,seq; " IDS EMBED HEAD "e0 = Gather table position_ids; g = Add h e0; " END,
       ROLES("\"tokens\"")},
  };
  CHECK(rows, "bind-inputs");
}

/* ---- masks with rows of queries ---------------------------------------------------------------------------------- */

#define Q "ht = Transpose h {perm = array<i64: 0, 2, 1>}; x = MatMul h ht; "
#define MASK4 "causal_mask: f32 batch,1,seq,seq; z: k i64 1=1; "
#define BOOL2 "attn_mask: i1 seq,seq; "
#define DONE "p = Softmax y {axis = -1 : i64}; g = MatMul p h; " END
#define MEANING_UNKNOWN "?the meaning of its elements is unknown"

LP_TEST(masks) {
  static const graph_row rows[] = {
      {IDS BOOL2 EMBED HEAD Q "low: k f32=-30000.0; y = Where attn_mask x low; " DONE, "mask_of_attn_mask = \"shows\""},
      {IDS BOOL2 EMBED HEAD Q "low: k f32=-30000.0; y = Where attn_mask low x; " DONE, "mask_of_attn_mask = \"hides\""},
      {IDS BOOL2 EMBED HEAD Q "low: k f32=-3.0; y = Where attn_mask low x; " DONE, MEANING_UNKNOWN},
      {IDS BOOL2 EMBED HEAD Q "y = Where attn_mask x x; " DONE, MEANING_UNKNOWN},
      {IDS BOOL2 EMBED HEAD Q "low: k f32=-30000.0; n = Not attn_mask; y = Where n x low; " DONE,
       "mask_of_attn_mask = \"hides\""},
      {IDS BOOL2 EMBED HEAD Q "low: k f32=-30000.0; n = Not attn_mask; y = Where n low x; " DONE,
       "mask_of_attn_mask = \"shows\""},
      {IDS BOOL2 EMBED HEAD Q "low: k f32=-30000.0; z = Where attn_mask x low; y = Where attn_mask z low; " DONE,
       "mask_of_attn_mask = \"shows\""},
      {IDS BOOL2 EMBED HEAD Q "low: k f32=-30000.0; z = Where attn_mask x low; y = Where attn_mask low z; " DONE,
       MEANING_UNKNOWN},
      {IDS BOOL2 EMBED HEAD Q "s = Shape attn_mask; n = Size attn_mask; f = Cast n {to = 1 : i64}; y = Mul x f; " DONE,
       "mask_of_attn_mask = \"shows\""},
      {IDS BOOL2 EMBED HEAD Q
       "low: k f32=-30000.0; s = Shape attn_mask; y = Where attn_mask x low; p = Softmax y {axis = -1 : i64}; "
       "g = MatMul p h; logits = MatMul g head; return logits s",
       "mask_of_attn_mask = \"shows\""},
      {IDS "attention_bias: f32 seq,seq; " EMBED HEAD Q "y = Add x attention_bias; " DONE,
       "mask_of_attention_bias = \"added\""},
      {IDS "attention_bias: f16 seq,seq; " EMBED HEAD Q "c = Cast x {to = 10 : i64}; a = Add c attention_bias; "
           "y = Cast a {to = 1 : i64}; " DONE,
       "mask_of_attention_bias = \"added\"|-6.5504"},
      {IDS "causal_mask: i64 seq,seq; " EMBED HEAD Q "o: k i64=1; s = Sub o causal_mask; f = Cast s {to = 1 : i64}; "
           "low: k f32=-30000.0; m = Mul f low; y = Add x m; " DONE,
       "mask_of_causal_mask = \"shows\""},
      {IDS "causal_mask: i64 seq,seq; " EMBED HEAD Q "o: k i64=2; s = Sub o causal_mask; f = Cast s {to = 1 : i64}; "
           "low: k f32=-30000.0; m = Mul f low; y = Add x m; " DONE,
       MEANING_UNKNOWN},
      {IDS "causal_mask: i64 seq,seq; " EMBED HEAD Q "o: k i64=1; s = Sub causal_mask o; f = Cast s {to = 1 : i64}; "
           "low: k f32=-30000.0; m = Mul f low; y = Add x m; " DONE,
       MEANING_UNKNOWN},
      {IDS "causal_mask: i64 seq,seq; " EMBED HEAD Q "o: k i64=1; s = Add causal_mask o; f = Cast s {to = 1 : i64}; "
           "y = Mul x f; " DONE,
       MEANING_UNKNOWN},
      {IDS "causal_mask: f32 seq,seq; " EMBED HEAD Q "y = Mul causal_mask x; " DONE, "mask_of_causal_mask = \"shows\""},
      {IDS "causal_mask: f32 seq,seq; " EMBED HEAD Q "low: k f32=-30000.0; m = Mul low causal_mask; y = Add x m; " DONE,
       "mask_of_causal_mask = \"hides\""},
      {IDS "causal_mask: i64 seq,seq; " EMBED HEAD Q "o: k i64=0; e = Equal causal_mask o; low: k f32=-30000.0; "
           "y = Where e low x; " DONE,
       "mask_of_causal_mask = \"shows\""},
      {IDS "causal_mask: i64 seq,seq; " EMBED HEAD Q "o: k i64=1; e = Equal o causal_mask; low: k f32=-30000.0; "
           "y = Where e low x; " DONE,
       "mask_of_causal_mask = \"hides\""},
      {IDS "causal_mask: i64 seq,seq; " EMBED HEAD Q "o: k i64=2; e = Equal o causal_mask; low: k f32=-30000.0; "
           "y = Where e low x; " DONE,
       MEANING_UNKNOWN},
      {IDS "causal_mask: i64 seq,seq; o: i64; " EMBED HEAD Q
           "e = Equal o causal_mask; low: k f32=-30000.0; y = Where e low x; " DONE,
       MEANING_UNKNOWN},
      {IDS "causal_mask: f32 seq,seq; " EMBED HEAD Q
           "u: k i64 1=0; m = Unsqueeze causal_mask u; f: k i64 1=0; t: k i64 1=999; "
           "s = Slice m f t u; y = Add x s; " DONE,
       "mask_of_causal_mask = \"added\""},
      {IDS "causal_mask: f32 seq,seq; i1: i1 seq,seq; " EMBED HEAD Q "w = Where i1 causal_mask x; y = Add w x; " DONE,
       MEANING_UNKNOWN},
      {IDS "causal_mask: f32 seq,seq; " EMBED HEAD Q "w = Tanh causal_mask; y = Add w x; " DONE, MEANING_UNKNOWN},
      {IDS "causal_mask: f32 seq,seq; " EMBED HEAD Q "g = Add h h; " END, "mask_of_causal_mask"},
      {IDS "attention_mask: i1 seq,seq; " EMBED HEAD Q "low: k f32=-30000.0; y = Where attention_mask x low; " DONE,
       "mask_of_attention_mask = \"shows\""},
      {IDS "attention_mask: i64 batch,1,5,5; " EMBED HEAD Q "f: k i64 1=0; n: n seq; t = Unsqueeze n f; a: k i64 1=2; "
           "a3: k i64 1=3; s0 = Slice attention_mask f t a; s1 = Slice s0 f t a3; o: k i64 1=1; s2 = Squeeze s1 o; "
           "c = Cast s2 {to = 1 : i64}; y = Mul x c; " DONE,
       ROLES("\"tokens\"") "|onnx.Trilu"},
      {IDS "attention_mask: i64 1,1,5,5; " EMBED HEAD Q "f: k i64 1=0; n: n seq; t = Unsqueeze n f; a: k i64 1=2; "
           "a3: k i64 1=3; s0 = Slice attention_mask f t a; s1 = Slice s0 f t a3; o: k i64 1=1; s2 = Squeeze s1 o; "
           "c = Cast s2 {to = 1 : i64}; y = Mul x c; " DONE,
       ROLES("\"tokens\"") "|onnx.Trilu"},
      {IDS "attention_mask: f32 batch,1,5,5; " EMBED HEAD Q "f: k i64 1=0; n: n seq; t = Unsqueeze n f; a: k i64 1=2; "
           "a3: k i64 1=3; s0 = Slice attention_mask f t a; s1 = Slice s0 f t a3; o: k i64 1=1; s2 = Squeeze s1 o; "
           "y = Add x s2; " DONE,
       "?its shape is not that of the generation protocol"},
      {IDS "attention_mask: f32 batch,1,1,seq; " EMBED HEAD Q
           "o: k i64 1=1; s2 = Squeeze attention_mask o; y = Add x s2; " DONE,
       "mask_of_attention_mask = \"added\""},
      {IDS "attention_mask: f32 batch,1,5,6; " EMBED HEAD Q "a: k i64 2=2,3; m = ReduceMean attention_mask a; "
           "o: k i64 1=1; s2 = Squeeze m o; y = Add x s2; " DONE,
       "?its shape is not that of the generation protocol"},
  };
  CHECK(rows, "bind-inputs");
}

LP_TEST(masks_of_attention_operators) {
  static const graph_row rows[] = {
      {IDS BOOL2 EMBED HEAD "g = Attention h h h attn_mask {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}; " END,
       "mask_of_attn_mask = \"shows\""},
      {IDS "attn_mask: f32 seq,seq; " EMBED HEAD
           "g = Attention h h h attn_mask {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}; " END,
       "mask_of_attn_mask = \"added\""},
      {IDS "attention_bias: f32 batch,1,seq,seq; " EMBED HEAD
           "g = com.microsoft.MultiHeadAttention h h h _ _ attention_bias {num_heads = 2 : i64}; " END,
       "mask_of_attention_bias = \"added\""},
  };
  CHECK(rows, "bind-inputs");
}
