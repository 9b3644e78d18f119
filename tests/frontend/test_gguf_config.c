/* GGUF files of every architecture become graphs with the operators that it has, and numbers that no model can have are
 * refused. */
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 32, HEADS = 2, HEAD = HIDDEN / HEADS, FFN = 48, VOCAB = 5 }; /* one key head */

static char *folder;
static lp_diag *diag;

static void open_test(void) {
  ck_assert_int_eq(lp_dir_temporary("llmpart-gguf", &folder, NULL), LP_OK);
  diag = lp_diag_create();
}

static void close_test(void) {
  lp_diag_free(diag);
  lp_dir_abandon(folder);
  free(folder);
}

LP_CASE(.setup = open_test, .teardown = close_test);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_number(lp_buf *out, uint64_t value, int width) {
  for (int i = 0; i < width; i++)
    lp_buf_append(out, &(uint8_t){(uint8_t)(value >> (8 * i))}, 1);
}

static void put_text(lp_buf *out, const char *text, size_t size) {
  put_number(out, size, 8);
  lp_buf_append(out, text, size);
}

static const char kinds[] = "=:~?@";

/* "key=u32", "key?bool", "key:text", "key~f32" or "key@u32,u32,.."; '*' in the key is the architecture. */
static void put_value(lp_buf *out, const char *arch, const char *pair) {
  lp_buf key = {0};
  size_t length = strcspn(pair, kinds);
  const char *value = pair + length + 1;
  float number = strtof(value, NULL);
  for (size_t i = 0; i < length; i++)
    lp_buf_append(&key, pair[i] == '*' ? arch : pair + i, pair[i] == '*' ? strlen(arch) : 1);
  put_text(out, key.data, key.size);
  lp_buf_free(&key);
  static const uint8_t types[] = {4, 8, 6, 7, 9};
  put_number(out, types[strchr(kinds, pair[length]) - kinds], 4);
  if (pair[length] == '=') put_number(out, strtoull(value, NULL, 10), 4);
  if (pair[length] == '?') put_number(out, strtoull(value, NULL, 10), 1);
  if (pair[length] == '~') lp_buf_append(out, &number, sizeof number);
  if (pair[length] == ':') put_text(out, value, strlen(value));
  if (pair[length] != '@') return;
  put_number(out, 4, 4);
  put_number(out, (strlen(value) + 1) / 2, 8); /* of one digit each */
  for (; *value; value += value[1] ? 2 : 1)
    put_number(out, (uint64_t)(*value - '0'), 4);
}

typedef struct {
  lp_buf heads, data;
  uint64_t count;
} tensors;

/* Adds a tensor of ones; rows 0: a vector. */
static void add(tensors *t, int64_t layer, const char *name, int64_t rows, int64_t columns) {
  char full[64];
  const float one = 1;
  if (layer >= 0)
    snprintf(full, sizeof full, "blk.%d.%s", (int)layer, name);
  else
    snprintf(full, sizeof full, "%s", name);
  put_text(&t->heads, full, strlen(full));
  put_number(&t->heads, rows ? 2 : 1, 4);
  put_number(&t->heads, (uint64_t)columns, 8);
  if (rows) put_number(&t->heads, (uint64_t)rows, 8);
  put_number(&t->heads, 0, 4);
  put_number(&t->heads, t->data.size, 8);
  for (int64_t i = 0; i < (rows ? rows : 1) * columns; i++)
    lp_buf_append(&t->data, &one, sizeof one);
  while (t->data.size % 32 != 0)
    put_number(&t->data, 0, 1);
  t->count++;
}

static void add_linear(tensors *t, int64_t layer, const char *name, int64_t rows, int64_t columns, bool biased) {
  char full[64];
  snprintf(full, sizeof full, "%s.weight", name);
  add(t, layer, full, rows, columns);
  snprintf(full, sizeof full, "%s.bias", name);
  if (biased) add(t, layer, full, 0, rows ? rows : columns);
}

/* The file has the parts of these letters: norms before attention and MLP 'n', before attention 'a', after both 'e', of
 * heads 'h', of all heads at once 'w'; attention in three matrices 'q' or one 'p'; an MLP with a gate 'g', with both in
 * one matrix 'u', a plain one 'm'; positions 'P', an own head 'H', no last norm 'x'; biases of all 'b', of queries,
 * keys and values 'B'; factors of positions 'F', and those of LongRoPE 'S' and 'L'. */
static void add_layer(tensors *t, int64_t i, const char *parts) {
  bool biased = strchr(parts, 'b'), all = strchr(parts, 'w'), qkv = biased || strchr(parts, 'B');
  if (strpbrk(parts, "na")) add_linear(t, i, "attn_norm", 0, HIDDEN, biased);
  if (strchr(parts, 'n')) add_linear(t, i, "ffn_norm", 0, HIDDEN, biased);
  if (strchr(parts, 'e')) add(t, i, "post_attention_norm.weight", 0, HIDDEN);
  if (strchr(parts, 'e')) add(t, i, "post_ffw_norm.weight", 0, HIDDEN);
  if (strpbrk(parts, "hw")) add(t, i, "attn_q_norm.weight", 0, all ? HIDDEN : HEAD);
  if (strpbrk(parts, "hw")) add(t, i, "attn_k_norm.weight", 0, HEAD);
  if (strchr(parts, 'p')) {
    add_linear(t, i, "attn_qkv", HIDDEN + 2 * HEAD, HIDDEN, qkv);
  } else {
    add_linear(t, i, "attn_q", HIDDEN, HIDDEN, qkv);
    add_linear(t, i, "attn_k", HEAD, HIDDEN, qkv);
    add_linear(t, i, "attn_v", HEAD, HIDDEN, qkv);
  }
  add_linear(t, i, "attn_output", HIDDEN, HIDDEN, biased);
  if (strchr(parts, 'g')) add_linear(t, i, "ffn_gate", FFN, HIDDEN, biased);
  add_linear(t, i, "ffn_up", strchr(parts, 'u') ? 2 * FFN : FFN, HIDDEN, biased);
  add_linear(t, i, "ffn_down", HIDDEN, FFN, biased);
}

typedef struct {
  const char *arch, *parts;
  int layers;
  const char *value[5]; /* more keys, or others than the usual ones */
} model;

static const char *const usual[] = {"*.embedding_length=32",
                                    "*.feed_forward_length=48",
                                    "*.attention.head_count=2",
                                    "*.attention.head_count_kv=1",
                                    "*.context_length=64",
                                    "*.attention.layer_norm_rms_epsilon~1e-5",
                                    "*.attention.layer_norm_epsilon~1e-5"};

static bool is_replaced(const model *m, const char *pair) {
  size_t length = strcspn(pair, kinds);
  for (size_t i = 0; i < LP_COUNT(m->value) && m->value[i]; i++)
    if (strcspn(m->value[i], kinds) == length && strncmp(m->value[i], pair, length) == 0) return true;
  return false;
}

static char *write_model(const model *m) {
  lp_buf out = {0}, keys = {0};
  tensors t = {.count = 0};
  uint64_t count = 0;
  char layers[32], arch[64];
  snprintf(layers, sizeof layers, "*.block_count=%d", m->layers);
  snprintf(arch, sizeof arch, "general.architecture:%s", m->arch);
  put_value(&keys, m->arch, arch);
  put_value(&keys, m->arch, layers);
  for (size_t i = 0; i < LP_COUNT(usual); i++)
    if (!is_replaced(m, usual[i])) put_value(&keys, m->arch, usual[i]), count++;
  for (size_t i = 0; i < LP_COUNT(m->value) && m->value[i]; i++)
    put_value(&keys, m->arch, m->value[i]), count++;
  add(&t, -1, "token_embd.weight", VOCAB, HIDDEN);
  if (!strchr(m->parts, 'x')) add_linear(&t, -1, "output_norm", 0, HIDDEN, strchr(m->parts, 'b'));
  if (strchr(m->parts, 'H')) add(&t, -1, "output.weight", VOCAB, HIDDEN);
  if (strchr(m->parts, 'P')) add(&t, -1, "position_embd.weight", 64, HIDDEN);
  if (strchr(m->parts, 'F')) add(&t, -1, "rope_freqs.weight", 0, HEAD / 2);
  if (strchr(m->parts, 'S')) add(&t, -1, "rope_factors_short.weight", 0, HEAD / 2);
  if (strchr(m->parts, 'L')) add(&t, -1, "rope_factors_long.weight", 0, HEAD / 2);
  for (int64_t i = 0; i < m->layers; i++)
    add_layer(&t, i, m->parts);
  lp_buf_puts(&out, "GGUF");
  put_number(&out, 3, 4);
  put_number(&out, t.count, 8);
  put_number(&out, count + 2, 8);
  lp_buf_append(&out, keys.data, keys.size);
  lp_buf_append(&out, t.heads.data, t.heads.size);
  while (out.size % 32 != 0)
    put_number(&out, 0, 1);
  lp_buf_append(&out, t.data.data, t.data.size);
  char *path = lp_path_join(folder, "m.gguf");
  ck_assert_int_eq(lp_file_write(path, out.data, out.size, NULL), LP_OK);
  lp_buf_free(&out);
  lp_buf_free(&keys);
  lp_buf_free(&t.heads);
  lp_buf_free(&t.data);
  return path;
}

/* ---- architectures ----------------------------------------------------------------------------------------------- */

/* Operators of the graph, as the architecture has them. */
typedef struct {
  model file;
  int rms, layer_norms, rotations, swish, gelu, tanh, clip;
} expected;

static const expected architectures[] = {
    {{"llama", "nqg", 2, {NULL}}, 5, 0, 4, 2, 0, 0, 0},
    {{"llama", "nqgH", 2, {"*.attention.key_length=16", "*.rope.dimension_count=16"}}, 5, 0, 4, 2, 0, 0, 0},
    {{"llama", "nqgF", 1, {NULL}}, 3, 0, 2, 1, 0, 0, 0},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:linear", "*.rope.scaling.factor~4"}}, 3, 0, 2, 1, 0, 0, 0},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:none"}}, 3, 0, 2, 1, 0, 0, 0},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:yarn", "*.rope.scaling.factor~4"}}, 3, 0, 2, 1, 0, 0, 0},
    {{"llama", "nqgSL", 1, {"*.rope.scaling.type:longrope", "*.rope.scaling.original_context_length=32"}},
     3,
     0,
     2,
     1,
     0,
     0,
     0},
    {{"qwen2", "nqgB", 2, {NULL}}, 5, 0, 4, 2, 0, 0, 0},
    {{"qwen3", "nqgh", 2, {NULL}}, 9, 0, 4, 2, 0, 0, 0},
    {{"gemma", "nqg", 2, {NULL}}, 5, 0, 4, 0, 2, 0, 0},
    {{"gemma2",
      "nqge",
      2,
      {"*.attention.sliding_window=8", "*.attn_logit_softcapping~50", "*.final_logit_softcapping~30"}},
     9,
     0,
     4,
     0,
     2,
     1,
     0},
    {{"gemma2",
      "nqge",
      46,
      {"*.attention.sliding_window=8", "*.attn_logit_softcapping~50", "*.final_logit_softcapping~30"}},
     185,
     0,
     92,
     0,
     46,
     1,
     0},
    {{"gemma3", "nqgeh", 7, {"*.attention.sliding_window=8"}}, 43, 0, 14, 0, 7, 0, 0},
    {{"olmo2", "qgew", 2, {NULL}}, 9, 0, 4, 2, 0, 0, 0},
    {{"olmo", "qgx", 2, {"*.attention.clamp_kqv~8"}}, 0, 5, 4, 2, 0, 0, 6},
    {{"granite",
      "nqg",
      2,
      {"*.embedding_scale~12", "*.residual_scale~0.2", "*.logit_scale~8", "*.attention.scale~0.1"}},
     5,
     0,
     4,
     2,
     0,
     0,
     0},
    {{"granite", "nqg", 2, {NULL}}, 5, 0, 4, 2, 0, 0, 0},
    {{"granite", "nqg", 2, {"*.rope.scaling.finetuned?0"}}, 5, 0, 0, 2, 0, 0, 0},
    {{"llama", "nqg", 2, {"*.attention.head_count_kv@1,1"}}, 5, 0, 4, 2, 0, 0, 0},
    {{"smollm3", "nqg", 5, {NULL}}, 11, 0, 8, 5, 0, 0, 0},
    {{"stablelm", "nqgb", 2, {"*.rope.dimension_count=4"}}, 0, 5, 4, 2, 0, 0, 0},
    {{"stablelm", "aqgb", 2, {"*.use_parallel_residual?1"}}, 0, 3, 4, 2, 0, 0, 0},
    {{"starcoder2", "nqmb", 2, {"*.attention.sliding_window=8"}}, 0, 5, 4, 0, 2, 0, 0},
    {{"starcoder2", "nqmb", 2, {NULL}}, 0, 5, 4, 0, 2, 0, 0},
    {{"gpt2", "npmPb", 2, {"*.attention.head_count_kv=1"}}, 0, 5, 0, 0, 2, 0, 0},
    {{"phi2", "apmb", 2, {"*.rope.dimension_count=8"}}, 0, 3, 4, 0, 2, 0, 0},
    {{"phi2", "aqmbH", 2, {NULL}}, 0, 3, 4, 0, 2, 0, 0},
    {{"phi3", "npu", 2, {"*.attention.sliding_window=8"}}, 5, 0, 4, 2, 0, 0, 0},
};

static int count_of(const lp_module *module, lp_kind kind) {
  int count = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    count += op->kind == kind;
  return count;
}

LP_LOOP_TEST(architectures_become_graphs, 0, LP_COUNT(architectures)) {
  const expected *e = &architectures[_i];
  const struct {
    lp_kind kind;
    int wanted;
  } counts[] = {{LP_ONNX_RMSNormalization, e->rms},
                {LP_ONNX_LayerNormalization, e->layer_norms},
                {LP_ONNX_RotaryEmbedding, e->rotations},
                {LP_ONNX_Swish, e->swish},
                {LP_ONNX_Gelu, e->gelu},
                {LP_ONNX_Tanh, e->tanh},
                {LP_ONNX_Clip, e->clip},
                {LP_ONNX_Attention, e->file.layers}};
  lp_module *module = NULL;
  char *path = write_model(&e->file);
  lp_status status = lp_model_import(path, NULL, &module, diag);
  ck_assert_msg(status == LP_OK, "%s: %s", e->file.arch, lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  for (size_t i = 0; i < LP_COUNT(counts); i++)
    ck_assert_msg(count_of(module, counts[i].kind) == counts[i].wanted, "%s has %d of %s, %d wanted", e->file.arch,
                  count_of(module, counts[i].kind), lp_op_info_get(counts[i].kind)->name, counts[i].wanted);
  lp_module_free(module);
  free(path);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* The attribute of the first operator of a kind, and the key that sets it. A head has 16 elements. */
static const struct {
  model file;
  lp_kind kind;
  const char *attribute;
  double wanted;
} numbers[] = {
    {{"llama", "nqg", 1, {NULL}}, LP_ONNX_Attention, "scale", 0.25},
    {{"granite", "nqg", 1, {"*.attention.scale~0.125"}}, LP_ONNX_Attention, "scale", 0.125},
    {{"gemma2",
      "nqge",
      1,
      {"*.attention.sliding_window=8", "*.attn_logit_softcapping~50", "*.final_logit_softcapping~30"}},
     LP_ONNX_Attention,
     "softcap",
     50},
    {{"phi3", "npu", 1, {"*.attention.sliding_window=8"}}, LP_ONNX_Attention, "left_window_size", 7},
    {{"llama", "nqg", 1, {"*.attention.layer_norm_rms_epsilon~0.5"}}, LP_ONNX_RMSNormalization, "epsilon", 0.5},
    {{"olmo", "qgx", 1, {"*.attention.clamp_kqv~8"}}, LP_ONNX_LayerNormalization, "epsilon", 1e-5},
};

LP_LOOP_TEST(keys_set_numbers, 0, LP_COUNT(numbers)) {
  lp_module *module = NULL;
  double found = -1;
  char *path = write_model(&numbers[_i].file);
  lp_status status = lp_model_import(path, NULL, &module, diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    if (op->kind == numbers[_i].kind && found < 0) {
      found = (double)lp_op_i64(op, numbers[_i].attribute, -1);
      if (found < 0) found = lp_op_f64(op, numbers[_i].attribute, -1);
    }
  ck_assert_double_eq_tol(found, numbers[_i].wanted, 1e-6);
  lp_module_free(module);
  free(path);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

#define DEEPSEEK "*.attention.kv_lora_rank=16", "*.rope.dimension_count=8", "*.expert_count=4", "*.expert_used_count=2"

#define STATE(heads, groups, inner)                                                                                    \
  "*.ssm.time_step_rank=" #heads, "*.ssm.group_count=" #groups, "*.ssm.state_size=4", "*.ssm.inner_size=" #inner

static const struct {
  model file;
  const char *error;
} refused[] = {
    {{"llama", "nqg", 1, {"*.attention.layer_norm_rms_epsilon~nan"}},
     "'llama.attention.layer_norm_rms_epsilon' is not a finite number"},
    {{"llama", "nqg", 1, {"*.attention.layer_norm_rms_epsilon~-1"}}, "the epsilon of the norms is absent or not"},
    {{"llama", "nqg", 1, {"*.rope.freq_base~nan"}}, "'llama.rope.freq_base' is not a finite number"},
    {{"llama", "nqg", 1, {"*.rope.freq_base~inf"}}, "'llama.rope.freq_base' is not a finite number"},
    {{"llama", "nqg", 1, {"*.rope.dimension_count=18"}}, "rotary positions over 18 elements of a head"},
    {{"llama", "nqg", 1, {"*.rope.dimension_count=0"}}, "'llama.rope.dimension_count' is not a valid size"},
    {{"llama", "nqg", 1, {"*.attention.value_length=8"}}, "with 2 heads and 1 key heads is not supported"},
    {{"llama", "nqg", 1, {"*.embedding_length=400000000"}}, "'llama.embedding_length' is not a valid size"},
    {{"llama", "nqg", 1, {"*.embedding_length:many"}}, "'llama.embedding_length' has another type than a whole number"},
    {{"llama", "nqg", 1, {"*.attention.clamp_kqv~-1"}}, "the soft caps of scores and logits are absent or negative"},
    {{"llama", "nqg", 1, {"*.attention.clamp_kqv~nan"}}, "'llama.attention.clamp_kqv' is not a finite number"},
    {{"llama", "nqg", 1, {"*.final_logit_softcapping~-1"}}, "the soft caps of scores and logits are absent or"},
    {{"llama", "nqg", 1, {"*.attn_logit_softcapping~-1"}}, "the soft caps of scores and logits are absent or"},
    {{"llama", "nqg", 1, {"*.attn_logit_softcapping~inf"}}, "'llama.attn_logit_softcapping' is not a finite number"},
    {{"llama", "nqg", 1, {"*.expert_count=2", "*.expert_used_count=3"}},
     "3 of 2 experts are not supported for 'llama'"},
    {{"qwen2", "nqg", 1, {"*.expert_count=2", "*.expert_used_count=1"}},
     "1 of 2 experts are not supported for 'qwen2'"},
    {{"llama", "nqg", 1, {"*.expert_count=2"}}, "'llama.expert_used_count' is absent or not a valid size"},
    {{"llama", "nqg", 1, {"*.expert_count=2", "*.expert_used_count=1"}},
     "tensor 'blk.0.ffn_gate_inp.weight' is missing"},
    {{"llama", "nqgS", 1, {NULL}}, "the lists of longrope's factors or the original context are missing"},
    {{"llama", "nqgL", 1, {NULL}}, "the lists of longrope's factors or the original context are missing"},
    {{"llama", "nqgSL", 1, {NULL}}, "the lists of longrope's factors or the original context are missing"},
    {{"llama", "nqgSL", 1, {"*.rope.scaling.original_context_length~1e9"}}, "the lists of longrope's factors or the"},
    {{"llama", "nqgSL", 1, {"*.rope.scaling.original_context_length=32", "*.rope.scaling.attn_factor~0"}},
     "the lists of longrope's factors or the original context are missing"},
    {{"llama", "nqgS", 1, {"*.rope.dimension_count=8"}},
     "tensor 'rope_factors_short.weight' is not a vector of 4 elements of type f32"},
    {{"llama", "nqgF", 1, {"*.rope.dimension_count=8"}},
     "tensor 'rope_freqs.weight' is not a vector of 4 elements of type f32"},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:linear", "*.rope.scaling.factor~inf"}},
     "'llama.rope.scaling.factor' is not a finite number"},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:yarn", "*.rope.scaling.factor~nan"}},
     "'llama.rope.scaling.factor' is not a finite number"},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:yarn", "*.rope.scaling.factor~2", "*.rope.scaling.yarn_beta_fast~0"}},
     "the numbers of yarn are missing or not valid"},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:yarn", "*.rope.scaling.factor~2", "*.rope.scaling.yarn_beta_slow~0"}},
     "the numbers of yarn are missing or not valid"},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:yarn", "*.rope.scaling.factor~2", "*.context_length=0"}},
     "the numbers of yarn are missing or not valid"},
    {{"llama", "nqg", 1, {"*.rope.scaling.type:yarn", "*.rope.scaling.factor~2", "*.rope.scaling.attn_factor~-1"}},
     "the numbers of yarn are missing or not valid"},
    {{"llamas", "nqg", 1, {NULL}}, "models of architecture 'llamas' are not supported"},
    {{"gemma2", "nqge", 2, {"*.attention.sliding_window=8", "*.final_logit_softcapping~30"}},
     "the soft caps of scores"},
    {{"gemma2", "nqge", 2, {"*.attention.sliding_window=8", "*.attn_logit_softcapping~30"}}, "the soft caps of scores"},
    {{"gemma3", "nqgeh", 2, {NULL}}, "a sliding window of 0 is not supported for 'gemma3'"},
    {{"phi3", "npu", 2, {"*.attention.sliding_window=300000000"}}, "a sliding window of 300000000 is not supported"},
    {{"gpt2", "npmb", 2, {NULL}}, "the matrix 'position_embd.weight' is missing"},
    {{"deepseek2", "nqg", 1, {NULL}}, "'deepseek2.attention.kv_lora_rank' is absent or not a valid size"},
    {{"deepseek2", "nqg", 1, {"*.attention.kv_lora_rank=16"}}, "'deepseek2.rope.dimension_count' is absent or not"},
    {{"deepseek2", "nqg", 1, {"*.attention.kv_lora_rank=16", "*.rope.dimension_count=16"}},
     "2 heads of 0 and 16 elements are not supported"},
    {{"deepseek2", "nqg", 1, {DEEPSEEK, "*.expert_gating_func=3"}}, "experts with gating 3, 1 of 1 groups"},
    {{"deepseek2", "nqg", 1, {DEEPSEEK, "*.expert_group_count=3"}}, "experts with gating 1, 1 of 3 groups"},
    {{"deepseek2", "nqg", 1, {DEEPSEEK, "*.expert_group_used_count=2"}}, "experts with gating 1, 2 of 1 groups"},
    {{"deepseek2", "nqg", 1, {DEEPSEEK, "*.expert_weights_scale~0"}}, "the scale 0 are not supported"},
    {{"deepseek2", "nqg", 1, {DEEPSEEK, "*.expert_shared_count=400000000"}}, "400000000 shared ones"},
    {{"deepseek2", "nqg", 1, {DEEPSEEK}}, "tensor 'blk.0.attn_kv_b.weight' is missing"},
    {{"llama", "nqg", 1, {"*.expert_weights_scale~2"}}, "the key 'llama.expert_weights_scale' is unknown"},
    {{"granite", "nqg", 1, {"*.logit_scale~0"}}, "a factor of embeddings, scores, branches or logits is not positive"},
    {{"granite", "nqg", 1, {"*.logit_scale~-2"}}, "a factor of embeddings, scores, branches or logits is not positive"},
    {{"granite", "nqg", 1, {"*.embedding_scale~0"}}, "a factor of embeddings, scores, branches or logits is not"},
    {{"granite", "nqg", 1, {"*.residual_scale~nan"}}, "'granite.residual_scale' is not a finite number"},
    {{"granite", "nqg", 1, {"*.attention.scale~-1"}}, "a factor of embeddings, scores, branches or logits is not"},
    {{"granite", "nqg", 1, {"*.embedding_scale~inf"}}, "'granite.embedding_scale' is not a finite number"},
    {{"llama", "nqg", 2, {"*.attention.head_count_kv@1,0"}},
     "'llama.attention.head_count_kv' is not one number for all"},
    {{"llama", "nqg", 2, {"*.attention.head_count_kv@1"}}, "'llama.attention.head_count_kv' is not one number for all"},
    {{"llama", "nqg", 2, {"*.attention.head_count_kv:one"}}, "has another type than whole numbers"},
    {{"falcon-h1", "nqg", 2, {"*.attention.head_count_kv@1,0"}},
     "'falcon-h1.attention.head_count_kv' is not one number for all"},
    {{"llama", "nqg", 2, {"*.feed_forward_length@8,0"}}, "'llama.feed_forward_length' is not one number for all"},
    {{"nemotron_h", "nqg", 2, {"*.feed_forward_length@8,9"}}, "'nemotron_h.feed_forward_length' is not one number"},
    {{"nemotron_h", "nqg", 2, {"*.feed_forward_length@8"}}, "'nemotron_h.feed_forward_length' is not one number"},
    {{"nemotron_h", "nqg", 2, {"*.feed_forward_length@0,0", STATE(4, 2, 8)}}, "reads tensor 'blk.0.ffn_norm.weight'"},
    {{"nemotron_h", "nqg", 2, {"*.feed_forward_length@8,0", "*.moe_latent_size=8"}}, "moe_latent_size' is unknown"},
    {{"nemotron_h_moe", "nqg", 2, {"*.expert_count=4", "*.expert_used_count=2", "*.moe_latent_size=0"}},
     "'nemotron_h_moe.moe_latent_size' is not a valid size"},
    {{"nemotron_h_moe", "nqg", 2, {"*.expert_count=4", "*.expert_used_count=2", "*.expert_weights_scale~0"}},
     "experts with gating 2, 1 of 1 groups"},
    {{"lfm2", "nqg", 2, {"*.attention.head_count_kv@1,2"}}, "'lfm2.attention.head_count_kv' is not one number for all"},
    {{"lfm2", "nqg", 2, {"*.attention.head_count_kv@1,0"}}, "'lfm2.shortconv.l_cache' is absent or not a valid size"},
    {{"lfm2", "nqg", 2, {"*.attention.head_count_kv@1,0", "*.shortconv.l_cache=1"}}, "convolutions of 1 taps"},
    {{"lfm2", "nqg", 2, {"*.attention.head_count_kv@1,0", "*.shortconv.l_cache=65"}}, "convolutions of 65 taps"},
    {{"lfm2", "nqg", 2, {"*.ssm.conv_kernel=4"}}, "the key 'lfm2.ssm.conv_kernel' is unknown"},
    {{"granitehybrid", "nqg", 2, {"*.ssm.group_count=1"}}, "'granitehybrid.ssm.time_step_rank' is absent or not"},
    {{"granitehybrid", "nqg", 2, {STATE(4, 3, 8)}}, "4 heads in 3 groups do not go together with 8 elements"},
    {{"granitehybrid", "nqg", 2, {STATE(4, 2, 6)}}, "4 heads in 2 groups do not go together with 6 elements"},
    {{"granitehybrid", "nqg", 2, {STATE(4, 2, 200000000)}}, "4 heads in 2 groups do not go together with 200000000"},
    {{"qwen35", "nqg", 2, {"*.nextn_predict_layers=2"}}, "2 layers beside the model's are not supported"},
    {{"qwen35", "nqg", 2, {"*.full_attention_interval=0"}}, "'qwen35.ssm.time_step_rank' is absent"},
    {{"qwen35", "nqg", 2, {STATE(2, 2, 8), "*.full_attention_interval=0"}},
     "'qwen35.full_attention_interval' is not a"},
    {{"granite", "nqg", 1, {"*.window~1"}}, "the key 'granite.window' is unknown and may change the model's results"},
};

LP_LOOP_TEST(what_no_model_has_is_refused, 0, LP_COUNT(refused)) {
  lp_module *module = NULL;
  char *path = write_model(&refused[_i].file);
  lp_status status = lp_model_import(path, NULL, &module, diag);
  lp_module_free(module);
  ck_assert_msg(status == LP_FAILED, "imported: %s", refused[_i].error);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const char *found = lp_diag_get(diag, 0)->text;
  ck_assert_msg(strstr(found, refused[_i].error), "found '%s', wanted '%s'", found, refused[_i].error);
  free(path);
}
