/* LoRA adapters: which modules a configuration names, the factor of a product, the weights after merging by hand, and
 * what is refused. */
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "frontend/huggingface/lora.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *folder;
static lp_diag *diag;

static void setup(void) {
  ck_assert_int_eq(lp_dir_temporary("llmpart-lora", &folder, NULL), LP_OK);
  diag = lp_diag_create();
}

static void teardown(void) {
  lp_dir_abandon(folder);
  free(folder);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

static const char *first_error(void) {
  return lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "";
}

static char *write_file(const char *name, const void *data, size_t size) {
  char *path = lp_path_join(folder, name);
  ck_assert_int_eq(lp_file_write(path, data, size, NULL), LP_OK);
  return path;
}

/* ---- configurations ---------------------------------------------------------------------------------------------- */

/* Reads {"peft_type":"LORA"REST}. The caller frees the path. */
static lp_status load(const char *rest, char **path, lp_lora_config *out) {
  lp_buf text = {0};
  lp_buf_printf(&text, "{\"peft_type\":\"LORA\"%s}", rest);
  *path = write_file("adapter_config.json", text.data, text.size);
  lp_buf_free(&text);
  return lp_lora_config_load(*path, out, diag);
}

LP_LOOP_TEST(keys_of_a_configuration, 0, 22) {
  static const struct {
    const char *rest, *refusal;
  } rows[] = {
      {"", NULL},
      {",\"use_dora\":false,\"new_trick\":null,\"another\":[],\"third\":{}", NULL}, /* these are off */
      {",\"bias\":\"none\",\"init_lora_weights\":true", NULL},
      {",\"bias\":null,\"init_lora_weights\":false", NULL},
      {",\"init_lora_weights\":\"gaussian\"", NULL},
      {",\"init_lora_weights\":\"eva\"", NULL},
      {",\"lora_dropout\":0.1,\"task_type\":\"CAUSAL_LM\"", NULL},
      {",\"use_dora\":true", "DoRA, which scales whole weights, is not supported"},
      {",\"bias\":\"all\"", "trained biases are not supported"},
      {",\"bias\":7", "trained biases are not supported"},
      {",\"new_trick\":1", "this key is not supported, and it may change what the adapter adds"},
      {",\"new_trick\":true", "this key is not supported, and it may change what the adapter adds"},
      {",\"new_trick\":0", "this key is not supported, and it may change what the adapter adds"},
      {",\"new_trick\":\"\"", "this key is not supported, and it may change what the adapter adds"},
      {",\"new_trick\":[0]", "this key is not supported, and it may change what the adapter adds"},
      {",\"new_trick\":{\"a\":0}", "this key is not supported, and it may change what the adapter adds"},
      {",\"init_lora_weights\":\"pissa\"", "adapters that begin with 'pissa' change the base model's weights"},
      {",\"init_lora_weights\":4",
       "adapters that begin with 'a value of another kind' change the base model's weights"},
      {",\"r\"", "not valid JSON: ':' was expected"},
      {",\"peft_type\":\"IA3\"", "adapters of type 'IA3' are not supported: LORA"},
      {",\"peft_type\":7", "adapters of type '' are not supported: LORA"},
      {",\"r\":\"\\u0000\"", "the character \\u0000, which is not supported"},
  };
  char *path;
  lp_lora_config config;
  lp_status status;
  if (strstr(rows[_i].rest, "peft_type")) { /* the only one */
    lp_buf text = {0};
    lp_buf_printf(&text, "{%s}", rows[_i].rest + 1);
    path = write_file("adapter_config.json", text.data, text.size);
    lp_buf_free(&text);
    status = lp_lora_config_load(path, &config, diag);
  } else {
    status = load(rows[_i].rest, &path, &config);
  }
  ck_assert_int_eq(status, rows[_i].refusal ? LP_FAILED : LP_OK);
  ck_assert_uint_eq(lp_diag_count(diag), rows[_i].refusal ? 1 : 0);
  if (rows[_i].refusal) ck_assert_ptr_nonnull(strstr(first_error(), rows[_i].refusal));
  lp_lora_config_release(&config);
  free(path);
}

LP_TEST(a_configuration_that_is_not_there) {
  lp_lora_config config;
  char *path = lp_path_join(folder, "none.json");
  ck_assert_int_eq(lp_lora_config_load(path, &config, diag), LP_FAILED);
  lp_lora_config_release(&config);
  free(path);
  path = write_file("list.json", "[]", 2);
  ck_assert_int_eq(lp_lora_config_load(path, &config, diag), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(diag, 1)->text, "wanted an object, found an array");
  lp_lora_config_release(&config);
  free(path);
}

LP_TEST(names_of_modules) {
  static const struct {
    const char *module, *name;
    bool named;
  } rows[] = {{"a.b.q_proj", "q_proj", true},   {"q_proj", "q_proj", true},
              {"a.b.q_proj", "b.q_proj", true}, {"a.b.q_proj", ".q_proj", false},
              {"a.b.xq_proj", "q_proj", false}, {"q_proj", "a.q_proj", false},
              {"a.q_proj", "q_pro", false},     {"a", "", false},
              {"a.q_proj", "a", false}};
  for (size_t i = 0; i < LP_COUNT(rows); i++)
    ck_assert_msg(lp_lora_names(rows[i].module, rows[i].name) == rows[i].named, "%s of %s", rows[i].name,
                  rows[i].module);
}

#define TARGETS(list) ",\"target_modules\":" list
#define QV TARGETS("[\"q_proj\",\"v_proj\"]")
#define LAYERS(which) QV ",\"layers_to_transform\":" which
#define Q(layer) "model.layers." layer ".self_attn.q_proj"

/* Of PEFT's check_target_module_exists. */
LP_LOOP_TEST(modules_that_are_changed, 0, 28) {
  static const struct {
    const char *rest, *module;
    bool changed;
  } rows[] = {
      {QV, Q("0"), true},
      {QV, "model.layers.0.self_attn.k_proj", false},
      {TARGETS("[7,\"q_proj\"]"), Q("0"), true},
      {TARGETS("\".*\""), "model.anything", true}, /* a pattern counts as a match */
      {"", "model.anything", true},
      {QV ",\"exclude_modules\":[\"layers.1.self_attn.q_proj\"]", Q("1"), false},
      {QV ",\"exclude_modules\":[\"layers.1.self_attn.q_proj\"]", Q("0"), true},
      {QV ",\"exclude_modules\":\".*\"", Q("0"), true}, /* and a pattern here as none */
      {LAYERS("1"), Q("1"), true},
      {LAYERS("1"), Q("0"), false},
      {LAYERS("1"), Q("11"), false},
      {LAYERS("[0,2]"), Q("2"), true},
      {LAYERS("[0,2]"), Q("0"), true},
      {LAYERS("[0,2]"), Q("1"), false},
      {LAYERS("[\"0\"]"), Q("0"), false},
      {LAYERS("[]"), Q("0"), true},
      {LAYERS("null"), Q("0"), true},
      {LAYERS("0"), "q_proj", false},
      {LAYERS("-1"), "q_proj", false},
      {LAYERS("0"), "model.0.q_proj", false}, /* the name of the layers is not the first part */
      {LAYERS("0"), "0.q_proj", false},
      {LAYERS("0") ",\"layers_pattern\":\"layers\"", Q("0"), true},
      {LAYERS("0") ",\"layers_pattern\":\"layer\"", Q("0"), false},
      {LAYERS("0") ",\"layers_pattern\":[\"h\",\"layers\"]", Q("0"), true},
      {LAYERS("0") ",\"layers_pattern\":[\"h\",\"block\"]", Q("0"), false},
      {LAYERS("0") ",\"layers_pattern\":[]", Q("0"), true},
      {LAYERS("3") ",\"layers_pattern\":\"block\"", "model.layers.0.block.3.q_proj", true},
      {LAYERS("0") ",\"layers_pattern\":[\"layers\",\"block\"]", "model.layers.0.block.3.q_proj", true},
  };
  char *path;
  lp_lora_config config;
  ck_assert_int_eq(load(rows[_i].rest, &path, &config), LP_OK);
  ck_assert_int_eq(lp_lora_targets(&config, rows[_i].module), rows[_i].changed);
  lp_lora_config_release(&config);
  free(path);
}

LP_LOOP_TEST(factors, 0, 14) {
  static const struct {
    const char *rest;
    int64_t rank;
    double scale;
    const char *refusal;
  } rows[] = {
      {",\"r\":4,\"lora_alpha\":8", 4, 2, NULL},
      {",\"r\":4,\"lora_alpha\":8,\"use_rslora\":false", 4, 2, NULL},
      {",\"r\":4,\"lora_alpha\":8,\"use_rslora\":true", 4, 4, NULL},
      {",\"r\":4,\"lora_alpha\":8,\"rank_pattern\":{\"q_proj\":2}", 2, 4, NULL},
      {",\"r\":4,\"lora_alpha\":8,\"rank_pattern\":{\"k_proj\":2}", 4, 2, NULL},
      {",\"r\":4,\"lora_alpha\":8,\"rank_pattern\":{\"q_proj\":2,\"self_attn.q_proj\":1}", 2, 4, NULL},
      {",\"r\":4,\"lora_alpha\":8,\"alpha_pattern\":{\"self_attn.q_proj\":1}", 4, 0.25, NULL},
      {",\"r\":4,\"lora_alpha\":8,\"rank_pattern\":{\"q_.*\":2}", 4, 0,
       "names that are regular expressions are not supported"},
      {",\"r\":4,\"lora_alpha\":8,\"alpha_pattern\":{\"q_proj\":\"a\"}", 4, 0, "wanted a number, found a string"},
      {",\"lora_alpha\":8", 4, 0, "wanted a number, found nothing"},
      {",\"r\":4", 4, 0, "wanted a number, found nothing"},
      {",\"r\":5,\"lora_alpha\":8", 4, 0,
       "the tensors of 'model.layers.0.self_attn.q_proj' are of rank 4, the configuration says 5"},
      {",\"r\":0,\"lora_alpha\":8", 0, 0, "are of rank 0, the configuration says 0"},
      {",\"r\":1,\"lora_alpha\":8", 1, 8, NULL},
  };
  char *path;
  lp_lora_config config;
  double scale = -1;
  ck_assert_int_eq(load(rows[_i].rest, &path, &config), LP_OK);
  lp_status status = lp_lora_scale(&config, Q("0"), rows[_i].rank, &scale, diag);
  ck_assert_int_eq(status, rows[_i].refusal ? LP_FAILED : LP_OK);
  if (rows[_i].refusal)
    ck_assert_ptr_nonnull(strstr(first_error(), rows[_i].refusal));
  else
    ck_assert_double_eq(scale, rows[_i].scale);
  lp_lora_config_release(&config);
  free(path);
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name;      /* NULL: the end */
  int64_t rows, columns; /* no rows: a vector */
} tensor;

/* Of a Llama of one layer: hidden 4, one head, MLP 6, vocabulary 5. */
static const tensor model[] = {{"model.embed_tokens.weight", 5, 4},
                               {"model.norm.weight", 0, 4},
                               {"model.layers.0.input_layernorm.weight", 0, 4},
                               {"model.layers.0.post_attention_layernorm.weight", 0, 4},
                               {"model.layers.0.self_attn.q_proj.weight", 4, 4},
                               {"model.layers.0.self_attn.k_proj.weight", 4, 4},
                               {"model.layers.0.self_attn.v_proj.weight", 4, 4},
                               {"model.layers.0.self_attn.o_proj.weight", 4, 4},
                               {"model.layers.0.mlp.gate_proj.weight", 6, 4},
                               {"model.layers.0.mlp.up_proj.weight", 6, 4},
                               {"model.layers.0.mlp.down_proj.weight", 4, 6},
                               {NULL, 0, 0}};

/* The elements of a file's tensors, one after another. */
static float element(size_t index, float first) {
  return first + (float)(index % 97) * 0.25F;
}

static void write_tensors(const char *file, const tensor *list, float first) {
  lp_buf header = {0}, out = {0};
  size_t offset = 0;
  lp_buf_puts(&header, "{");
  for (const tensor *t = list; t->name; t++) {
    size_t end = offset + 4 * (size_t)(t->rows ? t->rows * t->columns : t->columns);
    lp_buf_printf(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", t > list ? "," : "", t->name);
    if (t->rows) lp_buf_printf(&header, "%" PRId64 ",", t->rows);
    lp_buf_printf(&header, "%" PRId64 "],\"data_offsets\":[%zu,%zu]}", t->columns, offset, end);
    offset = end;
  }
  lp_buf_puts(&header, "}");
  uint64_t size = header.size;
  for (int i = 0; i < 8; i++)
    lp_buf_append(&out, &(uint8_t){(uint8_t)(size >> (8 * i))}, 1);
  lp_buf_append(&out, header.data, header.size);
  for (size_t i = 0; i < offset / 4; i++)
    lp_buf_append(&out, &(float){element(i, first)}, sizeof(float));
  free(write_file(file, out.data, out.size));
  lp_buf_free(&header);
  lp_buf_free(&out);
}

/* Merges the adapter twice as strongly as it was trained; `tied`: embedding and head are one. NULL: it is refused. */
static lp_module *merge(const tensor *adapter, const char *rest, bool tied) {
  static const char sizes[] = "{\"model_type\":\"llama\",\"hidden_size\":4,\"intermediate_size\":6,"
                              "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"vocab_size\":5,"
                              "\"max_position_embeddings\":16,\"tie_word_embeddings\":";
  tensor all[LP_COUNT(model) + 1];
  lp_buf text = {0};
  char *path = lp_path_join(folder, "adapter");
  ck_assert_int_eq(mkdir(path, 0700), 0);
  memcpy(all, model, sizeof model);
  all[LP_COUNT(model) - 1] = (tensor){tied ? NULL : "lm_head.weight", 5, 4};
  all[LP_COUNT(model)] = (tensor){0};
  write_tensors("model.safetensors", all, 1);
  write_tensors("adapter/adapter_model.safetensors", adapter, -2);
  lp_buf_printf(&text, "%s%s}", sizes, tied ? "true" : "false");
  free(write_file("config.json", text.data, text.size));
  lp_buf_clear(&text);
  lp_buf_printf(&text, "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":1%s}", rest);
  free(write_file("adapter/adapter_config.json", text.data, text.size));
  lp_buf_free(&text);
  const lp_adapter one = {path, 2};
  const lp_import_options options = {.adapters = &one, .adapter_count = 1};
  lp_module *module = NULL;
  ck_assert_int_eq(lp_model_import(folder, &options, &module, diag), module ? LP_OK : LP_FAILED);
  free(path);
  return module;
}

/* Where the elements of a tensor begin in its file. */
static size_t begin_of(const tensor *list, const char *name) {
  size_t at = 0;
  for (; strcmp(list->name, name) != 0; list++)
    at += (size_t)(list->rows ? list->rows * list->columns : list->columns);
  return at;
}

/* The constants of these elements. */
static int count_constants(lp_module *module, const float *data, size_t count) {
  int found = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region) {
    lp_tensor t;
    if (op->out_count != 1 || !lp_value_is_constant(lp_op_out(op, 0))) continue;
    ck_assert_int_eq(lp_weight_data(module, lp_op_out(op, 0), &t, NULL), LP_OK);
    found += t.bytes == count * sizeof *data && memcmp(t.data, data, t.bytes) == 0;
  }
  return found;
}

#define BASE "base_model.model."
#define UP "model.layers.0.mlp.up_proj"

/* W + 2 * (1 / 2) B A, with A of the file's first elements and B of the next. */
LP_TEST(a_product_is_added) {
  static const tensor adapter[] = {{BASE UP ".lora_A.weight", 2, 4}, {BASE UP ".lora_B.weight", 6, 2}, {NULL, 0, 0}};
  lp_module *module = merge(adapter, ",\"target_modules\":[\"up_proj\"]", true);
  ck_assert_msg(module, "%s", first_error());
  float before[24], after[24];
  for (size_t o = 0; o < 6; o++)
    for (size_t i = 0; i < 4; i++) {
      before[4 * o + i] = after[4 * o + i] = element(begin_of(model, UP ".weight") + 4 * o + i, 1);
      for (size_t r = 0; r < 2; r++)
        after[4 * o + i] += element(8 + 2 * o + r, -2) * element(4 * r + i, -2);
    }
  ck_assert_int_eq(count_constants(module, after, 24), 1);
  ck_assert_int_eq(count_constants(module, before, 24), 0);
  lp_module_free(module);
}

/* A tensor of modules_to_save takes the place of the weight. */
LP_TEST(a_weight_is_replaced) {
  static const char *const names[] = {BASE UP ".weight", BASE UP ".base_layer.weight"};
  for (size_t n = 0; n < LP_COUNT(names); n++) {
    const tensor adapter[] = {{names[n], 6, 4}, {NULL, 0, 0}};
    lp_module *module = merge(adapter, ",\"modules_to_save\":[\"up_proj\",\"no_such_module\"]", true);
    ck_assert_msg(module, "%s", first_error());
    float before[24], after[24];
    for (size_t i = 0; i < 24; i++) {
      before[i] = element(begin_of(model, UP ".weight") + i, 1);
      after[i] = element(i, -2);
    }
    ck_assert_int_eq(count_constants(module, after, 24), 1);
    ck_assert_int_eq(count_constants(module, before, 24), 0);
    lp_module_free(module);
    teardown();
    setup();
  }
}

/* Rows of A are tokens' columns there: W + (A B)^T of the embedding, which is not the head. */
LP_TEST(an_embedding_is_changed) {
  static const tensor adapter[] = {{BASE "model.embed_tokens.lora_embedding_A", 2, 5},
                                   {BASE "model.embed_tokens.lora_embedding_B", 4, 2},
                                   {NULL, 0, 0}};
  lp_module *module = merge(adapter, "", false);
  ck_assert_msg(module, "%s", first_error());
  float after[20];
  for (size_t token = 0; token < 5; token++)
    for (size_t i = 0; i < 4; i++) {
      after[4 * token + i] = element(4 * token + i, 1);
      for (size_t r = 0; r < 2; r++)
        after[4 * token + i] += element(10 + 2 * i + r, -2) * element(5 * r + token, -2);
    }
  ck_assert_int_eq(count_constants(module, after, 20), 1);
  lp_module_free(module);
}

LP_LOOP_TEST(adapters_that_are_refused, 0, 15) {
  static const struct {
    tensor adapter[4];
    const char *rest;
    bool tied;
    const char *refusal;
  } rows[] = {
      {{{0}}, "", true, "the adapter has no tensors"},
      {{{BASE UP ".lora_A.weight", 2, 4}}, "", true, "has no second factor"},
      {{{BASE UP ".lora_A.weight", 2, 4}, {BASE UP ".lora_B.weight", 6, 3}}, "", true, "do not fit"},
      {{{BASE UP ".lora_A.weight", 2, 5}, {BASE UP ".lora_B.weight", 6, 2}}, "", true, "do not fit"},
      {{{BASE UP ".lora_A.weight", 2, 4}, {BASE UP ".lora_B.weight", 5, 2}}, "", true, "do not fit"},
      {{{BASE UP ".lora_A.weight", 3, 4}, {BASE UP ".lora_B.weight", 6, 3}}, "", true, "are of rank 3"},
      {{{BASE UP ".lora_A.weight", 2, 4}, {BASE UP ".lora_B.weight", 0, 12}}, "", true, "is no matrix of f32"},
      {{{BASE "x.lora_A.weight", 2, 4}, {BASE "x.lora_B.weight", 6, 2}}, "", true, "belongs to no weight of the model"},
      {{{BASE UP ".lora_A.weight", 2, 4}, {BASE UP ".lora_B.weight", 6, 2}},
       ",\"target_modules\":[\"down_proj\"]",
       true,
       "adapter_model.safetensors has no tensor of 'down_proj'"},
      {{{BASE UP ".lora_A.weight", 2, 4}, {BASE UP ".lora_B.weight", 6, 2}},
       ",\"target_modules\":[\"x\"]",
       true,
       "is for a module that target_modules, exclude_modules or layers_to_transform leave out"},
      {{{BASE UP ".lora_A.weight", 2, 4}, {BASE UP ".lora_B.weight", 6, 2}},
       ",\"fan_in_fan_out\":true",
       true,
       "the matrices of this family lie as [out][in]"},
      {{{BASE UP ".weight", 4, 6}}, "", true, "has another shape than the weight that it replaces"},
      {{{BASE UP ".lora_B.weight", 6, 2}}, "", true, "is of no kind that is merged"},
      {{{BASE "model.embed_tokens.weight", 5, 4}},
       "",
       true,
       "changes an embedding or a head that share one matrix, which is not supported"},
      {{{BASE UP ".weight", 6, 4}}, ",\"modules_to_save\":[7]", true, "wanted a string, found an integer"},
  };
  lp_module *module = merge(rows[_i].adapter, rows[_i].rest, rows[_i].tied);
  ck_assert_ptr_null(module);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const char *refusal = rows[_i].refusal ? rows[_i].refusal : "";
  ck_assert_msg(strstr(first_error(), refusal), "found '%s', wanted '%s'", first_error(), refusal);
}
