/* Tokenizers of GGUF files: SentencePiece's token numbers of 200 texts (gguf_tokenizers.py --write), and the tokenizers
 * that are refused. */
#include "base/dir.h"
#include "base/file.h"
#include "base/json/reader.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "runtime/runtime.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;

static void make_folder(void) {
  ck_assert_int_eq(lp_dir_temporary("llmpart-gguf", &folder, NULL), LP_OK);
}

static void remove_folder(void) {
  lp_dir_abandon(folder);
  free(folder);
}

LP_CASE(.setup = make_folder, .teardown = remove_folder);

/* Writes the companions of the file and loads its tokenizer. */
static lp_tokenizer *load(const char *gguf, lp_diag *diag) {
  lp_tokenizer *tokenizer = NULL;
  char *path = lp_path_join(folder, "tokenizer.json");
  ck_assert_int_eq(lp_gguf_write_companions(gguf, folder, diag), LP_OK);
  lp_status status = lp_tokenizer_load(path, &tokenizer, diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  free(path);
  return tokenizer;
}

/* ---- equal to sentencepiece -------------------------------------------------------------------------------------- */

static void expect_ids(const lp_json *wanted, const lp_tokens *found, const char *text) {
  ck_assert_msg(lp_json_count(wanted) == found->count, "%zu ids instead of %zu of '%s'", found->count,
                lp_json_count(wanted), text);
  for (size_t i = 0; i < found->count; i++) {
    int64_t id = wanted->value->items[i].integer;
    ck_assert_msg(id == found->data[i], "id %zu of '%s' is %d instead of %d", i, text, found->data[i], (int)id);
  }
}

/* `line` is [text, ids, decoded], or [text, ids] where the ids decode to the text. */
static void compare(const lp_tokenizer *tokenizer, const lp_json *line, lp_diag *diag) {
  bool differs = lp_json_count(line) == 3;
  lp_json text_at = lp_json_item(line, 0), ids_at = lp_json_item(line, 1),
          decoded_at = lp_json_item(line, differs ? 2 : 0);
  const char *text, *decoded;
  size_t size, decoded_size;
  lp_tokens ids = {0};
  lp_buf out = {0};
  ck_assert_int_eq(lp_json_bytes(&text_at, &text, &size, diag), LP_OK);
  ck_assert_int_eq(lp_json_bytes(&decoded_at, &decoded, &decoded_size, diag), LP_OK);
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, text, size, false, &ids, diag), LP_OK);
  expect_ids(&ids_at, &ids, text);
  lp_tokenizer_decode(tokenizer, ids.data, ids.count, true, &out);
  ck_assert_msg(out.size == decoded_size && memcmp(lp_buf_text(&out), decoded, out.size) == 0, "'%s' instead of '%s'",
                lp_buf_text(&out), decoded);
  lp_vec_free(&ids);
  lp_buf_free(&out);
}

static const char *const files[] = {"spaced", "plain", "ties"};

LP_LOOP_TEST(pieces_are_sentencepieces, 0, LP_COUNT(files)) {
  char *text, gguf[256], json[256];
  size_t size;
  lp_json_document *document = NULL;
  lp_diag *diag = lp_diag_create();
  snprintf(gguf, sizeof gguf, LP_TEST_DIR "/gguf/%s.gguf", files[_i]);
  snprintf(json, sizeof json, LP_TEST_DIR "/gguf/%s.json", files[_i]);
  ck_assert_int_eq(lp_file_read(json, &text, &size, diag), LP_OK);
  ck_assert_int_eq(lp_json_parse(json, text, size, 0, &document, diag), LP_OK);
  lp_tokenizer *tokenizer = load(gguf, diag);
  lp_json root = lp_json_root(json, document);
  ck_assert_uint_eq(lp_json_count(&root), 200);
  for (size_t i = 0; i < lp_json_count(&root); i++) {
    lp_json line = lp_json_item(&root, i);
    compare(tokenizer, &line, diag);
  }
  lp_tokenizer_free(tokenizer);
  lp_json_free(document);
  lp_diag_free(diag);
  free(text);
}

/* ---- small files ------------------------------------------------------------------------------------------------- */

static void put_number(lp_buf *out, uint64_t value, int width) {
  for (int i = 0; i < width; i++)
    lp_buf_append(out, &(uint8_t){(uint8_t)(value >> (8 * i))}, 1);
}

static void put_text(lp_buf *out, const char *text) {
  put_number(out, strlen(text), 8);
  lp_buf_append(out, text, strlen(text));
}

static void put_key(lp_buf *out, const char *key, uint32_t type) {
  put_text(out, key);
  put_number(out, type, 4);
}

typedef struct {
  const char *text;
  uint32_t type;
  float score;
} token;

enum { MOST = 8 };

/* A file's differences from one of the kind "llama". */
typedef struct {
  const char *kind, *pre; /* NULL: "llama", none */
  token tokens[MOST];     /* up to the first without a text */
  const char *key;        /* a true one more; NULL: none */
  const char *error;      /* part of the note; NULL: the file has a tokenizer */
} small;

static size_t count_of(const small *s) {
  size_t count = 0;
  while (count < MOST && s->tokens[count].text)
    count++;
  return count;
}

static void put_list(lp_buf *out, const char *key, uint32_t type, size_t count) {
  put_key(out, key, 9);
  put_number(out, type, 4);
  put_number(out, count, 8);
}

static char *write_small(const small *s) {
  lp_buf out = {0};
  size_t count = count_of(s);
  lp_buf_puts(&out, "GGUF");
  put_number(&out, 3, 4);
  put_number(&out, 0, 8);
  put_number(&out, 6u + (s->pre != NULL) + (s->key != NULL), 8);
  put_key(&out, "tokenizer.ggml.model", 8);
  put_text(&out, s->kind ? s->kind : "llama");
  if (s->pre) put_key(&out, "tokenizer.ggml.pre", 8);
  if (s->pre) put_text(&out, s->pre);
  put_list(&out, "tokenizer.ggml.tokens", 8, count);
  for (size_t i = 0; i < count; i++)
    put_text(&out, s->tokens[i].text);
  put_list(&out, "tokenizer.ggml.token_type", 5, count);
  for (size_t i = 0; i < count; i++)
    put_number(&out, s->tokens[i].type, 4);
  put_list(&out, "tokenizer.ggml.scores", 6, count);
  for (size_t i = 0; i < count; i++)
    lp_buf_append(&out, &s->tokens[i].score, sizeof s->tokens[i].score);
  put_key(&out, "tokenizer.ggml.bos_token_id", 4);
  put_number(&out, 1, 4);
  put_key(&out, "tokenizer.ggml.eos_token_id", 4);
  put_number(&out, 2, 4);
  if (s->key) put_key(&out, s->key, 7);
  if (s->key) put_number(&out, 1, 1);
  char *path = lp_path_join(folder, "m.gguf");
  ck_assert_int_eq(lp_file_write(path, out.data, out.size, NULL), LP_OK);
  lp_buf_free(&out);
  return path;
}

#define ENDS {"<unk>", 2, 0}, {"<s>", 3, 0}, {"</s>", 3, 0}

static const small smalls[] = {
    {.tokens = {ENDS, {"a", 1, -1}, {"ac", 1, -3}}, .error = "'ac' has a character that is not a piece"},
    {.tokens = {ENDS, {"a\xFF", 1, -1}}, .error = "has a character that is not a piece"},
    {.tokens = {ENDS}, .key = "tokenizer.ggml.remove_extra_whitespaces", .error = "remove_extra_whitespaces' is not"},
    {.kind = "t5", .tokens = {ENDS}, .error = "tokenizers of the kind 't5' are not supported"},
    {.kind = "gpt2", .tokens = {ENDS}, .error = "pre-tokenizer '' are not supported"},
    {.kind = "gpt2", .pre = "gpt-2 phi-2", .tokens = {ENDS}, .error = "pre-tokenizer 'gpt-2 phi-2' are not supported"},
    {.kind = "gpt2", .pre = "qwen2", .tokens = {ENDS}, .error = "the tokenizer's list of merges is missing"},
};

LP_LOOP_TEST(a_note_says_why_there_is_no_tokenizer, 0, LP_COUNT(smalls)) {
  lp_diag *diag = lp_diag_create();
  char *path = write_small(&smalls[_i]), *tokenizer = lp_path_join(folder, "tokenizer.json");
  ck_assert_int_eq(lp_gguf_write_companions(path, folder, diag), LP_OK);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  const char *found = lp_diag_get(diag, 0)->text;
  ck_assert_msg(strstr(found, smalls[_i].error), "found '%s', wanted '%s'", found, smalls[_i].error);
  ck_assert(!lp_path_exists(tokenizer));
  lp_diag_free(diag);
  free(tokenizer);
  free(path);
}

/* The first token stands before a text by default, as in llama.cpp, the last one after it when the file says so. */
LP_TEST(ends_of_a_text_follow_the_file) {
  static const small with_end = {.tokens = {ENDS, {"\xE2\x96\x81", 1, -1}, {"a", 1, -2}},
                                 .key = "tokenizer.ggml.add_eos_token"};
  static const int32_t wanted[] = {1, 3, 4, 2};
  lp_diag *diag = lp_diag_create();
  lp_tokens ids = {0};
  char *path = write_small(&with_end);
  lp_tokenizer *tokenizer = load(path, diag);
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, "a", 1, true, &ids, diag), LP_OK);
  ck_assert_uint_eq(ids.count, LP_COUNT(wanted));
  for (size_t i = 0; i < LP_COUNT(wanted); i++)
    ck_assert_int_eq(ids.data[i], wanted[i]);
  lp_vec_free(&ids);
  lp_tokenizer_free(tokenizer);
  lp_diag_free(diag);
  free(path);
}

/* Tokens that end a turn by their name join the one that the metadata names, but texts with such a name do not. */
LP_TEST(ends_of_a_turn_are_known_by_name) {
  static const small phi = {
      .tokens = {ENDS, {"<|end|>", 3, 0}, {"<|im_end|>", 1, 0}, {"<|user|>", 3, 0}, {"<eos>", 4, 0}}};
  static const int64_t wanted[] = {2, 3, 6};
  lp_diag *diag = lp_diag_create();
  char *path = write_small(&phi), *settings = lp_path_join(folder, "config.json"), *text;
  size_t size;
  lp_json_document *document = NULL;
  ck_assert_int_eq(lp_gguf_write_companions(path, folder, diag), LP_OK);
  ck_assert_int_eq(lp_file_read(settings, &text, &size, diag), LP_OK);
  ck_assert_int_eq(lp_json_parse(settings, text, size, 0, &document, diag), LP_OK);
  lp_json root = lp_json_root(settings, document), ends = lp_json_member(&root, "eos_token_id");
  ck_assert_uint_eq(lp_json_count(&ends), LP_COUNT(wanted));
  for (size_t i = 0; i < LP_COUNT(wanted); i++)
    ck_assert_int_eq(ends.value->items[i].integer, wanted[i]);
  lp_json_free(document);
  lp_diag_free(diag);
  free(text);
  free(settings);
  free(path);
}

/* A tokenizer for which there is no room is an error, not a model without one. */
LP_TEST(a_tokenizer_that_cannot_be_written) {
  static const small plain = {.tokens = {ENDS, {"a", 1, -1}}};
  lp_diag *diag = lp_diag_create();
  char *path = write_small(&plain), *in_the_way = lp_path_join(folder, "tokenizer.json");
  ck_assert_int_eq(mkdir(in_the_way, 0700), 0);
  ck_assert_int_eq(lp_gguf_write_companions(path, folder, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_int_eq(rmdir(in_the_way), 0);
  lp_diag_free(diag);
  free(in_the_way);
  free(path);
}
