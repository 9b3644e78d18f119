/* GGUF files: a small model becomes a graph, blocks have ggml's values, and errors name the part that is damaged or
 * unknown. */
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "ir/blocks.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

static char *folder;

static void make_folder(void) {
  ck_assert_int_eq(lp_dir_temporary("llmpart-gguf", &folder, NULL), LP_OK);
}

static void remove_folder(void) {
  lp_dir_abandon(folder);
  free(folder);
}

LP_CASE(.setup = make_folder, .teardown = remove_folder);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_number(lp_buf *out, uint64_t value, int width) {
  for (int i = 0; i < width; i++)
    lp_buf_append(out, &(uint8_t){(uint8_t)(value >> (8 * i))}, 1);
}

static void put_text(lp_buf *out, const char *text) {
  put_number(out, strlen(text), 8);
  lp_buf_append(out, text, strlen(text));
}

/* "key=u32", "key:text" or "key~f32" */
static void put_value(lp_buf *out, const char *pair) {
  size_t length = strcspn(pair, "=:~");
  put_number(out, length, 8);
  lp_buf_append(out, pair, length);
  const char *value = pair + length + 1;
  float number = strtof(value, NULL);
  put_number(out, pair[length] == '=' ? 4 : pair[length] == '~' ? 6 : 8, 4);
  if (pair[length] == '=') put_number(out, strtoull(value, NULL, 10), 4);
  if (pair[length] == '~') lp_buf_append(out, &number, sizeof number);
  if (pair[length] == ':') put_text(out, value);
}

typedef struct {
  const char *name;
  int64_t columns, rows; /* rows 0: a vector */
  uint32_t type;         /* 0: f32; 2: Q4_0; 8: Q8_0 */
} tensor;

/* A Llama of one layer: hidden 32, one head, MLP 32, vocabulary 5. */
static const tensor tensors[] = {
    {"token_embd.weight", 32, 5, 8},     {"output_norm.weight", 32, 0, 0},        {"blk.0.attn_norm.weight", 32, 0, 0},
    {"blk.0.ffn_norm.weight", 32, 0, 0}, {"blk.0.attn_q.weight", 32, 32, 2},      {"blk.0.attn_k.weight", 32, 32, 8},
    {"blk.0.attn_v.weight", 32, 32, 3},  {"blk.0.attn_output.weight", 32, 32, 0}, {"blk.0.ffn_gate.weight", 32, 32, 1},
    {"blk.0.ffn_up.weight", 32, 32, 0},  {"blk.0.ffn_down.weight", 32, 32, 0}};

static const char *const values[] = {"general.architecture:llama",
                                     "llama.block_count=1",
                                     "llama.embedding_length=32",
                                     "llama.feed_forward_length=32",
                                     "llama.attention.head_count=1",
                                     "llama.context_length=64",
                                     "llama.attention.layer_norm_rms_epsilon~1e-5"};

static size_t bytes_of(const tensor *t) {
  size_t rows = t->rows ? (size_t)t->rows : 1, blocks = rows * (size_t)t->columns / 32;
  switch (t->type) {
  case 1:
    return 2 * 32 * blocks;
  case 2:
    return 18 * blocks;
  case 3:
    return 20 * blocks;
  case 8:
    return 34 * blocks;
  default:
    return 4 * rows * (size_t)t->columns;
  }
}

/* The differences from the valid file. */
typedef struct {
  const char *value;  /* instead of the one with the same key, or in addition */
  const char *tensor; /* left out */
  uint32_t type;      /* of blk.0.attn_output.weight */
  size_t cut;         /* bytes less at the end */
  uint32_t version;   /* 0: 3 */
  const char *error;
  const char *more[4]; /* further values */
  tensor extra[2];     /* further tensors; the data of each begins with a float that is not positive */
  bool positive;       /* but these are of ones */
} change;

static bool same_key(const char *a, const char *b) {
  size_t length = strcspn(a, "=:~");
  return b && length == strcspn(b, "=:~") && strncmp(a, b, length) == 0;
}

static void put_tensors(lp_buf *out, const change *c) {
  size_t offset = 0, own = 0;
  for (size_t i = 0; i < LP_COUNT(tensors) + LP_COUNT(c->extra); i++) {
    if (i == LP_COUNT(tensors)) own = offset;
    tensor t = i < LP_COUNT(tensors) ? tensors[i] : c->extra[i - LP_COUNT(tensors)];
    if (!t.name || (c->tensor && lp_streq(t.name, c->tensor))) continue;
    if (lp_streq(t.name, "blk.0.attn_output.weight")) t.type = c->type;
    put_text(out, t.name);
    put_number(out, t.rows ? 2 : 1, 4);
    put_number(out, (uint64_t)t.columns, 8);
    if (t.rows) put_number(out, (uint64_t)t.rows, 8);
    put_number(out, t.type, 4);
    put_number(out, offset, 8);
    offset += (bytes_of(&t) + 31) / 32 * 32;
  }
  while (out->size % 32 != 0)
    put_number(out, 0, 1);
  for (size_t i = 0; i < own; i++)
    put_number(out, i % 5 == 1 ? 60 : 0, 1);
  for (float one = c->positive; own < offset; own += sizeof one)
    lp_buf_append(out, &one, sizeof one);
}

static char *write_model(const change *c) {
  lp_buf out = {0};
  bool added = c->value != NULL;
  size_t more = 0, extra = 0;
  while (more < LP_COUNT(c->more) && c->more[more])
    more++;
  while (extra < LP_COUNT(c->extra) && c->extra[extra].name)
    extra++;
  for (size_t i = 0; i < LP_COUNT(values); i++)
    if (same_key(values[i], c->value)) added = false;
  lp_buf_puts(&out, "GGUF");
  put_number(&out, c->version ? c->version : 3, 4);
  put_number(&out, LP_COUNT(tensors) - (c->tensor != NULL) + extra, 8);
  put_number(&out, LP_COUNT(values) + added + more, 8);
  for (size_t i = 0; i < LP_COUNT(values); i++)
    put_value(&out, same_key(values[i], c->value) ? c->value : values[i]);
  if (added) put_value(&out, c->value);
  for (size_t i = 0; i < more; i++)
    put_value(&out, c->more[i]);
  put_tensors(&out, c);
  char *path = lp_path_join(folder, "m.gguf");
  ck_assert_int_eq(lp_file_write(path, out.data, out.size - c->cut, NULL), LP_OK);
  lp_buf_free(&out);
  return path;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

LP_TEST(a_file_becomes_a_graph) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  char *path = write_model(&(change){0});
  lp_status status = lp_model_import(path, NULL, &module, diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  int32_t packed = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    packed += op->kind == LP_OP_WEIGHT && lp_weight_blocks(op->out[0]);
  ck_assert_int_eq(packed, 5); /* the table, queries, keys, values, and the head, which is the table */
  lp_module_free(module);
  lp_diag_free(diag);
  free(path);
}

static const change changes[] = {
    {.value = "general.architecture:mamba", .error = "architecture 'mamba' are not supported"},
    {.value = "llama.expert_weights_scale=4", .error = "the key 'llama.expert_weights_scale' is unknown"},
    {.value = "llama.rope.scaling.type:dynamic", .error = "the scaling 'dynamic' of positions is not supported"},
    {.value = "llama.rope.scaling.type:yarn", .error = "the numbers of yarn are missing"},
    {.value = "llama.rope.scaling.type:longrope", .error = "the lists of longrope's factors"},
    {.value = "llama.rope.scaling.type:linear", .error = "the factor of linear scaling is absent"},
    {.value = "llama.rope.scaling.type:yarn",
     .more = {"llama.rope.scaling.factor~2", "llama.rope.scaling.yarn_beta_fast~0"},
     .error = "the numbers of yarn are missing"},
    {.value = "llama.rope.scaling.type:yarn",
     .more = {"llama.rope.scaling.factor~2", "llama.rope.scaling.yarn_beta_slow~0"},
     .error = "the numbers of yarn are missing"},
    {.value = "llama.rope.scaling.type:yarn",
     .more = {"llama.rope.scaling.factor~2", "llama.rope.scaling.original_context_length=0"},
     .error = "the numbers of yarn are missing"},
    {.value = "llama.rope.scaling.type:yarn",
     .more = {"llama.rope.scaling.factor~2", "llama.rope.scaling.attn_factor~0"},
     .error = "the numbers of yarn are missing"},
    {.extra = {{"rope_freqs.weight", 16, 0, 0}}, .error = "tensor 'rope_freqs.weight': 0 is not positive"},
    {.extra = {{"rope_freqs.weight", 32, 0, 0}},
     .positive = true,
     .error = "tensor 'rope_freqs.weight' is not a vector of 16 elements of type f32"},
    {.extra = {{"rope_freqs.weight", 16, 2, 0}}, .positive = true, .error = "is not a vector of 16 elements"},
    {.extra = {{"rope_freqs.weight", 32, 0, 8}}, .error = "is not a vector of 16 elements"},
    {.extra = {{"rope_factors_long.weight", 16, 0, 0}}, .positive = true, .error = "the lists of longrope's factors"},
    {.extra = {{"rope_factors_long.weight", 16, 0, 0}, {"rope_factors_short.weight", 16, 0, 0}},
     .positive = true,
     .error = "or the original context are missing"},
    {.extra = {{"rope_factors_long.weight", 16, 0, 0}, {"rope_factors_short.weight", 16, 0, 0}},
     .positive = true,
     .more = {"llama.rope.scaling.original_context_length=16", "llama.rope.scaling.attn_factor~0"},
     .error = "the lists of longrope's factors"},
    {.value = "llama.rope.dimension_count=34", .error = "rotary positions over 34 elements of a head"},
    {.value = "general.alignment=0", .error = "the alignment is not a valid size"},
    {.value = "general.alignment=1048577", .error = "the alignment is not a valid size"},
    {.value = "llama.block_count=1", .more = {"llama.context_length=64"}, .error = "a key occurs twice"},
    {.value = "llama.embedding_scale~2", .error = "the key 'llama.embedding_scale' is unknown"},
    {.value = "llama.rope.freq_base~0", .error = "elements of a head with the base"},
    {.value = "llama.rope.dimension_count=31", .error = "rotary positions over 31 elements of a head"},
    {.value = "llama.attention.sliding_window=8", .error = "a sliding window of 8 is not supported"},
    {.value = "llama.attention.head_count_kv=2", .error = "2 key heads is not supported"},
    {.value = "llama.block_count=0", .error = "'llama.block_count' is not a valid size"},
    {.value = "llama.block_count=2", .error = "tensor 'blk.1.attn_norm.weight' is missing"},
    {.value = "llama.embedding_length=64", .error = "is wanted"},
    {.value = "llama.attention.layer_norm_rms_epsilon~0",
     .error = "the epsilon of the norms is absent or not positive"},
    {.tensor = "blk.0.ffn_down.weight", .error = "tensor 'blk.0.ffn_down.weight' is missing"},
    {.tensor = "token_embd.weight", .error = "the matrix 'token_embd.weight' is missing"},
    {.type = 9, .error = "is of ggml's type 9"},
    {.type = 14, .error = "not of whole blocks"},
    {.cut = 64, .error = "does not fit the file, which may be cut off"},
    /* keys of another type, which would count as absent */
    {.value = "llama.rope.freq_base:500000", .error = "'llama.rope.freq_base' has another type than a number"},
    {.value = "llama.block_count~1", .error = "'llama.block_count' has another type than a whole number"},
    {.value = "llama.rope.scaling.type=1", .error = "'llama.rope.scaling.type' has another type than a text"},
    {.value = "llama.use_parallel_residual=2", .error = "'llama.use_parallel_residual' has another type than true or"},
    {.value = "tokenizer.ggml.tokens:a", .error = "'tokenizer.ggml.tokens' has another type than a list of texts"},
    {.value = "tokenizer.ggml.scores=1", .error = "'tokenizer.ggml.scores' has another type than a list of numbers"},
    {.value = "tokenizer.ggml.bos_token_id:a", .error = "'tokenizer.ggml.bos_token_id' has another type than a whole"},
    {.version = 0x03000000, .error = "a big-endian GGUF file is not supported"},
    {.version = 1, .error = "GGUF of version 1 is not supported"},
    /* parts of a model */
    {.value = "split.count=3", .more = {"split.no=1"}, .error = "this is part 2 of 3: the model is named by its first"},
    {.value = "split.count=3", .more = {"split.no=0"}, .error = "does not end in '-00001-of-00003.gguf'"},
    {.value = "split.count=3", .error = "this is part 1 of 3, and its name does not end in"},
    {.value = "split.count=3", .more = {"split.no=3"}, .error = "are no part of a file"},
    {.value = "split.count=70000", .error = "are no part of a file"},
};

/* Of what is within the limits, and of the scalings of positions. */
static const change taken[] = {
    {.value = "llama.rope.scaling.type:none"},
    {.value = "llama.rope.scaling.type:linear", .more = {"llama.rope.scaling.factor~2"}},
    {.value = "llama.rope.scaling.type:yarn", .more = {"llama.rope.scaling.factor~2"}},
    {.value = "llama.rope.dimension_count=32"},
    {.value = "llama.rope.dimension_count=16"},
    {.value = "general.alignment=1"},
    {.value = "split.count=1", .more = {"split.no=0"}},
    {.value = "llama.rope.freq_base=500000"},
    {.value = "llama.use_parallel_residual=0"},
    {.value = "tokenizer.ggml.model:none"}, /* a key of no architecture */
    {.extra = {{"rope_freqs.weight", 16, 0, 0}}, .positive = true},
    {.extra = {{"rope_factors_long.weight", 16, 0, 0}, {"rope_factors_short.weight", 16, 0, 0}},
     .positive = true,
     .more = {"llama.rope.scaling.type:longrope", "llama.rope.scaling.original_context_length=1"}},
};

LP_LOOP_TEST(what_is_taken, 0, LP_COUNT(taken)) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  char *path = write_model(&taken[_i]);
  lp_status status = lp_model_import(path, NULL, &module, diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  lp_module_free(module);
  lp_diag_free(diag);
  free(path);
}

LP_LOOP_TEST(what_is_wrong_is_named, 0, LP_COUNT(changes)) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  char *path = write_model(&changes[_i]);
  ck_assert_int_eq(lp_model_import(path, NULL, &module, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const char *found = lp_diag_get(diag, 0)->text;
  ck_assert_msg(strstr(found, changes[_i].error), "found '%s', wanted '%s'", found, changes[_i].error);
  lp_diag_free(diag);
  free(path);
}

/* Every beginning of a file is refused once, without a crash. */
LP_TEST(cut_files_are_refused) {
  char *path = write_model(&(change){0}), *data;
  size_t size;
  ck_assert_int_eq(lp_file_read(path, &data, &size, NULL), LP_OK);
  for (size_t length = 0; length < size - 64; length += length < 1200 ? 7 : 997) {
    lp_diag *diag = lp_diag_create();
    lp_module *module = NULL;
    ck_assert_int_eq(lp_file_write(path, data, length, NULL), LP_OK);
    ck_assert_int_eq(lp_model_import(path, NULL, &module, diag), LP_FAILED);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    lp_diag_free(diag);
  }
  free(data);
  free(path);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Byte i of a block is 17 i + 5 (mod 256), and its f16 are 1.0 and 0.5; `at` are elements, `value` those that the
 * Python package gguf 0.19 gives. */
static const struct {
  uint32_t ggml;
  int d, m; /* the offsets of the f16; -1: none */
  int at[6];
  float value[6];
} blocks[] = {
    {2, 0, -1, {0, 5, 17, 31, 20, 9}, {-1, 4, -5, -6, -2, -8}},
    {3, 0, 2, {0, 5, 17, 31, 20, 9}, {9.5, 14.5, 5.5, 4.5, 8.5, 2.5}},
    {6, 0, -1, {0, 5, 17, 31, 20, 9}, {11, 0, -9, -10, -6, -12}},
    {7, 0, 2, {0, 5, 17, 31, 20, 9}, {29.5, 2.5, 25.5, 8.5, 13.5, 22.5}},
    {8, 0, -1, {0, 5, 17, 31, 20, 9}, {39, 124, 72, 54, 123, -64}},
    {10, 80, 82, {0, 37, 70, 101, 159, 251}, {5, 13, 25, 8, -4.5, 0}},
    {11, 108, -1, {0, 37, 70, 101, 159, 251}, {-11, 46, -100, 27, 0, -0}},
    {12, 0, 2, {0, 37, 70, 101, 159, 251}, {38.5, 141, 449.5, 480, 45.5, 56}},
    {13, 0, 2, {0, 37, 70, 101, 159, 251}, {182.5, 609, 449.5, 1560, 45.5, 416}},
    {14, 208, -1, {0, 37, 70, 101, 159, 251}, {649, -250, 54, 989, -2632, 780}},
    {20, 0, -1, {0, 5, 17, 31, 20, 9}, {-10, 53, -65, -83, -22, -127}},
    {23, 0, -1, {0, 37, 70, 101, 159, 251}, {1725, 996, -650, 2241, -1113, -950}},
    {39, 15, -1, {0, 5, 17, 31, 20, 9}, {0x1p-120F, -0x3p-123F, 0x1p-122F, 0x3p-123F, 0x3p-122F, -0x3p-121F}},
};

LP_LOOP_TEST(blocks_have_their_values, 0, LP_COUNT(blocks)) {
  const lp_block_form *form = lp_block_form_find(blocks[_i].ggml);
  uint8_t block[256];
  float out[256];
  ck_assert_ptr_nonnull(form);
  for (int i = 0; i < form->bytes; i++)
    block[i] = (uint8_t)(17 * i + 5);
  memcpy(block + blocks[_i].d, (uint8_t[]){0x00, 0x3c}, 2);
  if (blocks[_i].m >= 0) memcpy(block + blocks[_i].m, (uint8_t[]){0x00, 0x38}, 2);
  lp_blocks_decode(form, block, 1, out);
  for (size_t k = 0; k < LP_COUNT(blocks[_i].at); k++)
    ck_assert_msg(out[blocks[_i].at[k]] == blocks[_i].value[k], "%s[%d] is %g, wanted %g", form->name, blocks[_i].at[k],
                  (double)out[blocks[_i].at[k]], (double)blocks[_i].value[k]);
  lp_block_parts parts;
  lp_block_split(form, block, &parts);
  const int low = form->mins ? 0 : -(1 << (form->bits - 1)), high = low + (1 << form->bits);
  for (int i = 0; i < form->size; i++)
    ck_assert(parts.code[i] >= low && parts.code[i] < high);
}
