/* Hugging Face folders: a small model becomes a graph, and errors name the part that is wrong or unknown. */
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

static char *folder;

static void make_folder(void) {
  ck_assert_int_eq(lp_dir_temporary("llmpart-huggingface", &folder, NULL), LP_OK);
}

static void remove_folder(void) {
  lp_dir_abandon(folder);
  free(folder);
}

LP_CASE(.setup = make_folder, .teardown = remove_folder);

static void write_file(const char *name, const void *data, size_t size) {
  char *path = lp_path_join(folder, name);
  ck_assert_int_eq(lp_file_write(path, data, size, NULL), LP_OK);
  free(path);
}

/* The tensors of a Llama of one layer: hidden 4, one head, MLP 6, vocabulary 5. */
static const struct {
  const char *name;
  int64_t rows, columns; /* 0: a vector */
} tensors[] = {{"model.embed_tokens.weight", 5, 4},
               {"model.norm.weight", 0, 4},
               {"model.layers.0.input_layernorm.weight", 0, 4},
               {"model.layers.0.post_attention_layernorm.weight", 0, 4},
               {"model.layers.0.self_attn.q_proj.weight", 4, 4},
               {"model.layers.0.self_attn.k_proj.weight", 4, 4},
               {"model.layers.0.self_attn.v_proj.weight", 4, 4},
               {"model.layers.0.self_attn.o_proj.weight", 4, 4},
               {"model.layers.0.mlp.gate_proj.weight", 6, 4},
               {"model.layers.0.mlp.up_proj.weight", 6, 4},
               {"model.layers.0.mlp.down_proj.weight", 4, 6}};

/* A safetensors file of the tensors but `left_out`, with `extra` in the header, cut by `cut` bytes. */
static void write_tensors(const char *file, const char *left_out, const char *extra, size_t cut) {
  lp_buf header = {0}, out = {0};
  size_t offset = 0;
  lp_buf_puts(&header, "{");
  for (size_t i = 0; i < LP_COUNT(tensors); i++) {
    int64_t rows = tensors[i].rows, columns = tensors[i].columns;
    size_t end = offset + 4 * (size_t)(rows ? rows * columns : columns);
    if (left_out && strstr(tensors[i].name, left_out)) continue;
    lp_buf_printf(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", header.size > 1 ? "," : "", tensors[i].name);
    if (rows) lp_buf_printf(&header, "%" PRId64 ",", rows);
    lp_buf_printf(&header, "%" PRId64 "],\"data_offsets\":[%zu,%zu]}", columns, offset, end);
    offset = end;
  }
  lp_buf_printf(&header, "%s}", extra);
  uint64_t size = header.size;
  for (int i = 0; i < 8; i++)
    lp_buf_append(&out, &(uint8_t){(uint8_t)(size >> (8 * i))}, 1);
  lp_buf_append(&out, header.data, header.size);
  for (size_t i = 0; i < offset / 4; i++)
    lp_buf_append(&out, &(float){(float)(i % 7) - 3}, sizeof(float));
  write_file(file, out.data, out.size - cut);
  lp_buf_free(&header);
  lp_buf_free(&out);
}

#define SIZES                                                                                                          \
  "\"hidden_size\":4,\"intermediate_size\":6,\"num_hidden_layers\":1,\"num_attention_heads\":1,\"vocab_size\":5,"      \
  "\"max_position_embeddings\":16,\"tie_word_embeddings\":true"

/* Imports the folder; NULL: it is refused. */
static lp_module *import(const char *config, lp_diag *diag) {
  lp_module *module = NULL;
  write_file("config.json", config, strlen(config));
  lp_status status = lp_model_import(folder, NULL, &module, diag);
  ck_assert_int_eq(status, module ? LP_OK : LP_FAILED);
  if (module) ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  return module;
}

static void expect_refused(const char *config, const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = import(config, diag);
  ck_assert_msg(!module, "%s is not refused", config);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->text, text), "found '%s', wanted '%s'", lp_diag_get(diag, 0)->text, text);
  lp_diag_free(diag);
}

LP_TEST(a_folder_becomes_a_graph) {
  lp_diag *diag = lp_diag_create();
  write_tensors("model.safetensors", NULL, "", 0);
  lp_module *module = import("{\"model_type\":\"llama\"," SIZES "}", diag);
  ck_assert_msg(module, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  const lp_op *func = lp_module_find_func(module, "main"), *end = lp_block_terminator(func->region);
  ck_assert_int_eq(func->region->arg_count, 4);
  ck_assert_int_eq(end->in_count, 3);
  int64_t vocab;
  ck_assert(lp_type_static_dim(lp_op_in(end, 0)->type, 2, &vocab));
  ck_assert_int_eq(vocab, 5);
  lp_module_free(module);
  lp_diag_free(diag);
}

static size_t count_weights(const lp_module *module, int64_t *bytes) {
  size_t count = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region) {
    if (op->kind != LP_OP_WEIGHT) continue;
    *bytes += lp_op_i64(op, "length", 0);
    count++;
  }
  return count;
}

LP_TEST(a_plan_needs_no_weight_file) {
  static const char config[] = "{\"model_type\":\"llama\"," SIZES "}";
  const lp_import_options options = {.weights_absent_ok = true};
  lp_diag *diag = lp_diag_create();
  lp_module *assumed = NULL;
  char *path = lp_path_join(folder, "config.json");
  expect_refused(config, "has neither model.safetensors nor model.safetensors.index.json");
  ck_assert_int_eq(lp_model_import(path, &options, &assumed, diag), LP_OK);
  ck_assert_int_eq(lp_module_verify(assumed, diag), LP_OK);
  ck_assert(strstr(lp_diag_get(diag, 0)->text, "in f32 and without biases"));
  write_tensors("model.safetensors", NULL, "", 0);
  lp_module *read = import(config, diag);
  ck_assert(read);
  int64_t bytes = 0, want = 0;
  ck_assert_uint_eq(count_weights(assumed, &bytes), count_weights(read, &want));
  ck_assert_int_eq(bytes, want);
  lp_module_free(read);
  lp_module_free(assumed);
  free(path);
  lp_diag_free(diag);
}

LP_TEST(shards_are_joined) {
  static const char index[] = "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}";
  lp_diag *diag = lp_diag_create();
  write_tensors("one.safetensors", "layers.0", "", 0);
  write_file("model.safetensors.index.json", index, strlen(index));
  expect_refused("{\"model_type\":\"llama\"," SIZES "}", "its weight file 'two.safetensors' does not exist");
  static const char outside[] = "{\"weight_map\":{\"a\":\"../one.safetensors\"}}";
  write_file("model.safetensors.index.json", outside, strlen(outside));
  expect_refused("{\"model_type\":\"llama\"," SIZES "}", "is not the name of a file");
  lp_diag_free(diag);
}

#define HEAD_AT(begin, end)                                                                                            \
  ",\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[5,4],\"data_offsets\":[" #begin "," #end "]}"

/* The configuration says that both are one. A copy is the embedding; other values are a head, as in transformers. */
LP_TEST(a_head_that_is_not_the_embedding_is_kept) {
  static const struct {
    const char *head;
    size_t warnings;
  } cases[] = {{"", 0}, {HEAD_AT(0, 80), 0}, {HEAD_AT(4, 84), 1}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_diag *diag = lp_diag_create();
    write_tensors("model.safetensors", NULL, cases[i].head, 0);
    lp_module *module = import("{\"model_type\":\"llama\"," SIZES "}", diag);
    ck_assert_msg(module, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
    ck_assert_uint_eq(lp_diag_count(diag), cases[i].warnings);
    if (cases[i].warnings) ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "'lm_head.weight' is not the"));
    lp_module_free(module);
    lp_diag_free(diag);
  }
}

#define PACKED(keys) "{\"model_type\":\"llama\",\"quantization_config\":{" keys "}," SIZES "}"
#define LFM2(keys) "{\"model_type\":\"lfm2\",\"num_key_value_heads\":1," keys "," SIZES "}"
#define MAMBA(keys)                                                                                                    \
  "{\"model_type\":\"granitemoehybrid\",\"shared_intermediate_size\":6,\"mamba_n_heads\":2," keys "," SIZES "}"
#define DELTA(keys) "{\"model_type\":\"qwen3_5_text\",\"num_key_value_heads\":1,\"head_dim\":8," keys "," SIZES "}"
#define LLAMA4(keys)                                                                                                   \
  "{\"model_type\":\"llama4_text\",\"num_key_value_heads\":1,\"head_dim\":4,\"intermediate_size_mlp\":8," keys         \
  "," SIZES "}"
#define ROPE(members) "{\"model_type\":\"llama\",\"rope_scaling\":{" members "}," SIZES "}"

/* Positions of every kind; the graph rotates queries and keys of its layer. */
static const char *const positions[] = {
    ROPE(""),
    ROPE("\"rope_type\":\"default\",\"rope_theta\":500"),
    ROPE("\"type\":\"linear\",\"factor\":2"),
    ROPE("\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
         "\"original_max_position_embeddings\":8"),
    ROPE("\"rope_type\":\"yarn\",\"factor\":2"),
    ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"beta_fast\":16,\"beta_slow\":2,\"truncate\":false,"
         "\"mscale\":1,\"mscale_all_dim\":0.5,\"original_max_position_embeddings\":8"),
    ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"truncate\":true,\"mscale\":1,\"attention_factor\":1.2"),
    ROPE("\"type\":\"su\",\"short_factor\":[1,2],\"long_factor\":[2,4]"),
    ROPE("\"type\":\"longrope\",\"short_factor\":[1,2],\"long_factor\":[2,4],\"factor\":4,"
         "\"original_max_position_embeddings\":8"),
    "{\"model_type\":\"llama\",\"original_max_position_embeddings\":8,\"rope_scaling\":{\"type\":\"longrope\","
    "\"short_factor\":[1,2],\"long_factor\":[2,4],\"attention_factor\":1.5}," SIZES "}",
    "{\"model_type\":\"llama\",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":300}," SIZES "}",
    "{\"model_type\":\"llama\",\"rope_scaling\":null," SIZES "}",
};

LP_LOOP_TEST(positions_of_all_kinds, 0, LP_COUNT(positions)) {
  lp_diag *diag = lp_diag_create();
  write_tensors("model.safetensors", NULL, "", 0);
  lp_module *module = import(positions[_i], diag);
  ck_assert_msg(module, "%s: %s", positions[_i], lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  int rotations = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    rotations += op->kind == LP_ONNX_RotaryEmbedding;
  ck_assert_int_eq(rotations, 2);
  lp_module_free(module);
  lp_diag_free(diag);
}

static const struct {
  const char *config, *error;
} configs[] = {
    {ROPE("\"rope_type\":3"), "positions of type '' are not supported"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":[]," SIZES "}", "wanted an object"},
    {ROPE("\"rope_theta\":0"), "0 is not positive"},
    {ROPE("\"rope_type\":\"yarn\""), "the key 'factor' is missing"},
    {ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"beta_fast\":0"), "0 is not positive"},
    {ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"beta_slow\":-1"), "-1 is not positive"},
    {ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"mscale\":\"a\""), "wanted a number"},
    {ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"attention_factor\":0"), "0 is not positive"},
    {ROPE("\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1"), "the key 'high_freq_factor' is missing"},
    {ROPE("\"rope_type\":\"llama3\",\"factor\":8"), "the key 'low_freq_factor' is missing"},
    {ROPE("\"rope_type\":\"longrope\",\"short_factor\":[1,2],\"long_factor\":[1,2],"
          "\"original_max_position_embeddings\":1"),
     "an original context of 1 positions is not supported"},
    {ROPE("\"rope_type\":\"longrope\",\"short_factor\":[1,2],\"long_factor\":[1,2],"
          "\"original_max_position_embeddings\":1e12"),
     "an original context of 1e+12 positions is not supported"},
    {ROPE("\"rope_type\":\"longrope\",\"short_factor\":[1,\"2\"]"), "wanted a number"},
    {ROPE("\"truncate\":false,\"unknown\":1"), "this key is unknown"},
    {"{\"model_type\":\"phi3\",\"partial_rotary_factor\":1e20," SIZES "}", "8 of the 4 elements of a head rotate"},
    {"{\"model_type\":\"phi3\",\"partial_rotary_factor\":0.25," SIZES "}", "1 of the 4 elements of a head rotate"},

    {"{", "not valid JSON"},
    {"[]", "wanted an object"},
    {"{}", "wanted a string"},
    {"{\"model_type\":\"t5\"}", "models of type 't5' are not supported"},
    {"{\"model_type\":\"jamba\"}",
     "models of type 'jamba' are not supported: they have layers of state spaces (Mamba)"},
    {LLAMA4("\"attention_chunk_size\":null"), "chunked attention needs a size of chunks"},
    {LLAMA4("\"attention_chunk_size\":0"), "0 lies outside of 1..268435456"},
    {LLAMA4("\"layer_types\":[\"sliding_attention\"]"), "layer_types[0]: "},
    {LLAMA4("\"floor_scale\":0"), "0 is not positive"},
    {LLAMA4("\"moe_layers\":[-1]"), "-1 lies outside of 0..268435456"},
    {LLAMA4("\"moe_layers\":[1]"), "tensor 'layers.0.feed_forward.gate_proj.weight' is missing"},
    {LLAMA4("\"no_rope_layers\":[]"), "tensor 'layers.0.feed_forward.router.weight' is missing"},
    {MAMBA("\"num_local_experts\":0"), "tensor 'layers.0.mamba.in_proj.weight' is missing"},
    {MAMBA("\"layer_types\":[\"attention\"]"), "tensor 'layers.0.mlp.router.layer.weight' is missing"},
    {MAMBA("\"num_local_experts\":0,\"layer_types\":[\"attention\"]"),
     "tensor 'layers.0.shared_mlp.input_linear.weight' is missing"},
    {DELTA("\"full_attention_interval\":2"), "tensor 'layers.0.linear_attn.in_proj_qkv.weight' is missing"},
    {DELTA("\"full_attention_interval\":1"), "tensor 'layers.0.self_attn.q_proj.weight'"},
    {DELTA("\"layer_types\":[\"mamba\"]"), "layer_types[0]: "},
    {DELTA("\"linear_conv_kernel_dim\":1"), "convolutions of 1 taps; 2 to 64 are supported"},
    {DELTA("\"linear_num_key_heads\":3"), "32 heads of values and 3 of keys do not go together"},
    {DELTA("\"linear_key_head_dim\":100000000"), "do not go together"},
    {DELTA("\"linear_value_head_dim\":100000000"), "do not go together"},
    {MAMBA("\"layer_types\":[\"conv\"]"), "layer_types[0]: "},
    {MAMBA("\"mamba_d_conv\":1"), "convolutions of 1 taps; 2 to 64 are supported"},
    {MAMBA("\"mamba_n_groups\":3"),
     "2 heads of 4 elements in 3 groups do not go together with 8 elements of the mixer"},
    {MAMBA("\"mamba_d_head\":5"), "2 heads of 5 elements in 1 groups"},
    {MAMBA("\"mamba_d_head\":\"large\""), "mamba_d_head: "},
    {MAMBA("\"mamba_expand\":0"), "0 lies outside of 1..268435456"},
    {MAMBA("\"mamba_d_state\":268435456,\"mamba_n_groups\":2"), "2 heads of 4 elements in 2 groups"},
    {MAMBA("\"time_step_limit\":[0,0.1]"), "limits of time steps other than 0 and infinity"},
    {MAMBA("\"time_step_limit\":[0.001,{\"__float__\":\"Infinity\"}]"), "limits of time steps other than 0"},
    {LFM2("\"full_attn_idxs\":[0]"), "tensor 'layers.0.operator_norm.weight' is missing"},
    {LFM2("\"full_attn_idxs\":[-1]"), "-1 lies outside of 0..268435456"},
    {LFM2("\"layer_types\":[\"conv\"],\"conv_L_cache\":1"), "convolutions of 1 taps; 2 to 64 are supported"},
    {LFM2("\"layer_types\":[\"conv\"],\"conv_L_cache\":65"), "convolutions of 65 taps; 2 to 64 are supported"},
    {LFM2("\"layer_types\":[\"sliding_attention\"]"), "layer_types[0]: "},
    {LFM2("\"block_ffn_dim_multiplier\":1e9"), "MLPs of "},
    {LFM2("\"block_ffn_dim_multiplier\":0"), "0 is not positive"},
    {"{\"model_type\":\"mixtral\",\"num_local_experts\":2,\"num_experts_per_tok\":3,\"num_key_value_heads\":1," SIZES
     "}",
     "num_experts_per_tok is 3 of 2 experts"},
    {"{\"model_type\":\"glm4_moe\",\"n_group\":3,\"num_key_value_heads\":1," SIZES "}", "1 of 3 groups of 128 experts"},
    {"{\"model_type\":\"deepseek_v3\"," SIZES "}", "tensor 'layers.0.self_attn.q_a_proj.weight' is missing"},
    {"{\"model_type\":\"deepseek_v3\",\"scoring_func\":\"softmax\"," SIZES "}", "only 'sigmoid' is supported"},
    {"{\"model_type\":\"deepseek_v3\",\"topk_method\":\"greedy\"," SIZES "}", "do not choose experts so"},
    {"{\"model_type\":\"deepseek_v3\",\"v_head_dim\":268435456," SIZES "}", "elements are too many"},
    {"{\"model_type\":\"deepseek_v3\",\"moe_layer_freq\":2," SIZES "}", "only 1 is supported"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":3," SIZES "}", "3 of the 3 elements of a head rotate"},
    {"{\"model_type\":\"deepseek_v2\",\"norm_topk_prob\":true," SIZES "}", "does not divide the weights"},
    {"{\"model_type\":\"deepseek_v2\",\"rope_interleave\":true," SIZES "}", "this key is unknown"},
    {"{\"model_type\":\"gpt_oss\",\"num_key_value_heads\":1," SIZES "}", "the key 'rope_parameters' is missing"},
    {"{\"model_type\":\"gpt_oss\",\"num_key_value_heads\":1,\"rope_scaling\":{\"rope_type\":\"default\"},"
     "\"head_dim\":4," SIZES "}",
     "tensor 'layers.0.self_attn.sinks' is missing"},
    {"{\"model_type\":\"ernie4_5_moe\",\"num_key_value_heads\":1,\"moe_layer_start_index\":0," SIZES "}",
     "tensor 'layers.0.mlp.gate.weight' is missing"},
    {"{\"model_type\":\"ernie4_5_moe\",\"num_key_value_heads\":1,\"moe_layer_start_index\":0,\"moe_norm_min\":-1," SIZES
     "}",
     "-1 is not positive"},
    {"{\"model_type\":\"hunyuan_v1_moe\",\"num_experts\":[2,3]," SIZES "}", "only layers of equal sizes are supported"},
    {"{\"model_type\":\"hunyuan_v1_moe\",\"num_experts\":[2,2],\"moe_topk\":3," SIZES "}",
     "num_experts_per_tok is 3 of 2 experts"},
    {ROPE("\"rope_type\":\"dynamic\",\"alpha\":2"), "this key is unknown"},
    {"{\"model_type\":\"granitemoe\",\"num_key_value_heads\":1," SIZES "}",
     "tensor 'layers.0.mlp.router.layer.weight' is missing"},
    {"{\"model_type\":\"phimoe\",\"num_experts_per_tok\":1,\"num_key_value_heads\":1," SIZES "}",
     "num_experts_per_tok is 1 of 16 experts"},
    {"{\"model_type\":\"mixtral\",\"num_key_value_heads\":1," SIZES "}",
     "tensor 'layers.0.mlp.gate.weight' is missing"},
    {"{\"model_type\":\"llama\"}", "wanted"},
    {"{\"model_type\":\"llama\",\"new_trick\":2," SIZES "}", "this key is unknown"},
    {"{\"model_type\":\"llama\",\"text_config\":{\"hidden_size\":4}}", "this key is unknown"},
    {"{\"model_type\":\"gemma3\",\"text_config\":{" SIZES "}}", "text_config.model_type: wanted a string"},
    {"{\"model_type\":\"gemma3\",\"text_config\":[]}", "models of type 'gemma3' are not supported"},
    {"{\"model_type\":\"paligemma\",\"text_config\":{\"model_type\":\"gemma\"," SIZES "}}",
     "models of type 'paligemma' are not supported"},
    {"{\"model_type\":\"llava\",\"quantization_config\":{\"quant_method\":\"hqq\"},\"text_config\":{\"model_type\":"
     "\"llama\"," SIZES "}}",
     "quantised weights ('hqq') are not supported"},
    {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\",\"new_trick\":2," SIZES "}}",
     "this key is unknown"},
    {"{\"model_type\":\"llama\",\"embedding_multiplier\":2," SIZES "}", "this key is unknown"},
    {"{\"model_type\":\"granite\",\"logits_scaling\":0," SIZES "}", "0 is not positive"},
    {"{\"model_type\":\"starcoder2\",\"mlp_type\":\"gated\"," SIZES "}", "only 'default' is supported"},
    {"{\"model_type\":\"stablelm\",\"qk_layernorm\":true," SIZES "}", "this key is unknown"},
    {"{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"aqlm\"}," SIZES "}",
     "quantised weights ('aqlm') are not supported"},
    {PACKED("\"quant_method\":\"gptq\",\"bits\":5,\"group_size\":128"), "this number of bits are not supported"},
    {PACKED("\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":128"), "3 lies outside of 4..8"},
    {PACKED("\"quant_method\":\"awq\",\"bits\":8,\"group_size\":128"), "this number of bits are not supported"},
    {PACKED("\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"version\":\"gemv\""),
     "this version are not supported: 'gemv'"},
    {PACKED("\"quant_method\":\"compressed-tensors\",\"format\":\"marlin-24\",\"config_groups\":{\"g\":{\"weights\":"
            "{\"num_bits\":4}}}"),
     "this format are not supported: 'marlin-24'"},
    {PACKED("\"quant_method\":\"compressed-tensors\""), "one group of settings is supported"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"dynamic\"}," SIZES "}",
     "positions of type 'dynamic' are not supported"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"longrope\"}," SIZES "}", "wanted an array"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[1,2,3]}," SIZES "}",
     "3 numbers instead of"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[0,0]}," SIZES "}",
     "0 is not positive"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"short_factor\":[1]}," SIZES "}",
     "positions of type 'linear' have no such key"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"more\":1}," SIZES "}",
     "this key is unknown"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\"}," SIZES "}", "the key 'factor' is missing"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":-1}," SIZES "}", "-1 is not positive"},
    {"{\"model_type\":\"llama\",\"hidden_act\":\"tanh\"," SIZES "}", "activation 'tanh' is not supported"},
    {"{\"model_type\":\"llama\",\"num_key_value_heads\":2," SIZES "}", "or these are not a multiple of 2 key heads"},
    {"{\"model_type\":\"llama\",\"head_dim\":3," SIZES "}", "an even number of at least 2 is needed"},
    {"{\"model_type\":\"llama\",\"architectures\":[\"LlamaForSequenceClassification\"]," SIZES "}",
     "is not a model that generates text"},
    {"{\"model_type\":\"llama\",\"head_dim\":8," SIZES "}", "8 x 4 is wanted"},
    {"{\"model_type\":\"qwen3\",\"head_dim\":4,\"num_key_value_heads\":1," SIZES "}",
     "tensor 'layers.0.self_attn.q_norm.weight' is missing"},
};

LP_LOOP_TEST(what_is_not_known_is_named, 0, LP_COUNT(configs)) {
  write_tensors("model.safetensors", NULL, "", 0);
  expect_refused(configs[_i].config, configs[_i].error);
}

static const struct {
  const char *left_out, *extra;
  size_t cut;
  const char *error;
} files[] = {
    {"down_proj", "", 0, "tensor 'layers.0.mlp.down_proj.weight' is missing"},
    {NULL, ",\"model.layers.0.adapter.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 0,
     "no operator of this family of models reads tensor 'model.layers.0.adapter.weight'"},
    {NULL, ",\"norm.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}", 0, "occurs twice"},
    {"model.norm", ",\"model.norm.weight\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}", 0,
     "is of type i8; f32, f16 and bf16 are supported"},
    {"model.norm", ",\"model.norm.weight\":{\"dtype\":\"F8_E5M2\",\"shape\":[4],\"data_offsets\":[0,4]}", 0,
     "is of type F8_E5M2, which is not supported"},
    {"model.norm", ",\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}", 0,
     "one of 4 is wanted"},
    {NULL, "", 8, "lies outside"},
    {NULL, "", 880, "does not fit a file"},
};

LP_LOOP_TEST(damaged_files_are_refused, 0, LP_COUNT(files)) {
  write_tensors("model.safetensors", files[_i].left_out, files[_i].extra, files[_i].cut);
  expect_refused("{\"model_type\":\"llama\"," SIZES "}", files[_i].error);
}

/* Tensors of layers that guess further tokens are left out, those of other layers are not. */
LP_TEST(predictors_are_left_out) {
  static const char extra[] =
      ",\"model.layers.1.eh_proj.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}"
      ",\"model.layers.2.eh_proj.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}";
  write_tensors("model.safetensors", NULL, extra, 0);
  expect_refused("{\"model_type\":\"glm4_moe\",\"first_k_dense_replace\":1,\"num_key_value_heads\":1,"
                 "\"num_nextn_predict_layers\":1," SIZES "}",
                 "reads tensor 'model.layers.2.eh_proj.weight'");
}

/* Biases are those of the file, unless config.json says that there are none. */
LP_TEST(biases_that_are_excluded_are_refused) {
#define BIAS(name, size)                                                                                               \
  ",\"model.layers.0." name "\":{\"dtype\":\"F32\",\"shape\":[" #size "],\"data_offsets\":[0,16]}"
  static const struct {
    const char *family, *keys, *tensor;
    bool refused;
  } cases[] = {
      {"llama", "\"attention_bias\":false,", BIAS("self_attn.q_proj.bias", 4), true},
      {"llama", "\"mlp_bias\":false,", BIAS("self_attn.q_proj.bias", 4), false},
      {"llama", "\"mlp_bias\":false,", BIAS("mlp.down_proj.bias", 4), true},
      {"llama", "\"attention_bias\":false,", BIAS("mlp.down_proj.bias", 4), false},
      {"qwen2", "\"attention_bias\":false,", BIAS("self_attn.q_proj.bias", 4), false},
      {"ernie4_5", "\"use_bias\":false,", BIAS("mlp.down_proj.bias", 4), true},
  };
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    char config[400];
    (void)snprintf(config, sizeof config, "{\"model_type\":\"%s\",%s\"num_key_value_heads\":1," SIZES "}",
                   cases[i].family, cases[i].keys);
    write_tensors("model.safetensors", NULL, cases[i].tensor, 0);
    if (cases[i].refused) {
      expect_refused(config, "and its configuration says that there are no biases");
      continue;
    }
    lp_diag *diag = lp_diag_create();
    lp_module *module = import(config, diag);
    ck_assert_msg(module, "%zu: %s", i, lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
    lp_module_free(module);
    lp_diag_free(diag);
  }
}

/* The tensors of two experts, as transformers saves them or as one of all; they share the file's first bytes. */
#define ROUTER ",\"model.layers.0.mlp.gate.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32]}"
#define EXPERT(name, type, shape, end)                                                                                 \
  ",\"model.layers.0.mlp.experts." name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[0," end "]}"
#define APART(e, type, end)                                                                                            \
  EXPERT(#e ".w1.weight", type, "6,4", end)                                                                            \
  EXPERT(#e ".w3.weight", type, "6,4", end) EXPERT(#e ".w2.weight", type, "4,6", end)

static const struct {
  const char *tensors, *error; /* NULL: a graph */
} mixtures[] = {
    {ROUTER APART(0, "F32", "96") APART(1, "F32", "96"), NULL},
    {ROUTER EXPERT("gate_up_proj", "F32", "2,12,4", "384") EXPERT("down_proj", "F32", "2,4,6", "192"), NULL},
    {ROUTER APART(0, "F32", "96"), "tensor 'layers.0.mlp.experts.1.w1.weight' is missing"},
    {ROUTER APART(0, "F32", "96") APART(1, "F16", "48"),
     "has another type than 'model.layers.0.mlp.experts.0.w1.weight'"},
    {ROUTER EXPERT("gate_up_proj", "F32", "3,6,4", "288"), "is not the matrices of 2 experts, 12 x 4 each"},
};

LP_LOOP_TEST(experts_are_stacked, 0, LP_COUNT(mixtures)) {
  static const char config[] =
      "{\"model_type\":\"mixtral\",\"num_local_experts\":2,\"num_key_value_heads\":1," SIZES "}";
  write_tensors("model.safetensors", ".mlp.", mixtures[_i].tensors, 0);
  if (mixtures[_i].error) {
    expect_refused(config, mixtures[_i].error);
    return;
  }
  lp_diag *diag = lp_diag_create();
  lp_module *module = import(config, diag);
  ck_assert_msg(module, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  int products = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    products += op->kind == LP_ONNX_Experts;
  ck_assert_int_eq(products, 3);
  lp_module_free(module);
  lp_diag_free(diag);
}

LP_TEST(a_folder_without_weights_is_refused) {
  expect_refused("{\"model_type\":\"llama\"," SIZES "}", "has neither model.safetensors nor");
}

/* Gates and ups of experts alternate, and blocks need scales of their shape. */
LP_TEST(experts_that_are_damaged_are_refused) {
#define GPT_OSS                                                                                                        \
  "{\"model_type\":\"gpt_oss\",\"num_key_value_heads\":1,\"rope_scaling\":{\"rope_type\":\"default\"},\"head_dim\":"   \
  "4," SIZES "}"
#define TENSOR(name, type, shape, end)                                                                                 \
  ",\"model.layers.0.mlp.experts." name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[0," end "]}"
  static const struct {
    const char *extra, *error;
  } cases[] = {
      {TENSOR("gate_up_proj_blocks", "U8", "1,2,1,16", "32"), "have no scales of their shape"},
      {TENSOR("gate_up_proj_blocks", "U8", "1,2,1,16", "32") TENSOR("gate_up_proj_scales", "U8", "1,1,1", "1"),
       "have no scales of their shape"},
      {TENSOR("gate_up_proj", "F32", "4,4", "64"), "is no matrix of experts"},
      {TENSOR("gate_up_proj", "F32", "1,4,4", "64") TENSOR("gate", "F32", "4,4", "64"), "occurs twice"},
      {TENSOR("gate_up_proj", "F32", "1,4,3", "48"), "has not as many gates as ups"},
      {TENSOR("gate_up_proj_bias", "F32", "1,3", "12"), "has not as many gates as ups"},
  };
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    write_tensors("model.safetensors", NULL, cases[i].extra, 0);
    expect_refused(GPT_OSS, cases[i].error);
  }
}
