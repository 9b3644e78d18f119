/* Streaming of text: the pieces together are the text, and every piece consists of complete characters. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/runtime.h"
#include "tests/suite.h"

/* Bytes as GPT-2 writes them: "H", "i", C3, A9, " ", F0, 9F, 98, 80. */
static const char json[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [{\"id\": 9, \"content\": "
    "\"<end>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": "
    "true}], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
    "\"trim_offsets\": true, \"use_regex\": true}, \"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\", "
    "\"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}, \"model\": {\"type\": \"BPE\", "
    "\"dropout\": null, \"unk_token\": null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
    "\"fuse_unk\": false, \"byte_fallback\": false, \"vocab\": {\"H\": 0, \"i\": 1, \"\\u00c3\": 2, \"\\u00a9\": 3, "
    "\"\\u0120\": 4, \"\\u00f0\": 5, \"\\u0141\": 6, \"\\u013a\": 7, \"\\u0122\": 8}, \"merges\": []}}";

static lp_tokenizer *load(void) {
  char path[] = "/tmp/llmpart-tokenizer-XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, json, sizeof json - 1), (ssize_t)sizeof json - 1);
  close(fd);
  lp_tokenizer *tokenizer = NULL;
  ck_assert_int_eq(lp_tokenizer_load(path, &tokenizer, NULL), LP_OK);
  unlink(path);
  return tokenizer;
}

static void expect_pieces(const int32_t *ids, size_t count, const char *const *pieces) {
  lp_tokenizer *tokenizer = load();
  lp_text_stream stream = {0};
  for (size_t i = 0; i < count; i++) {
    lp_buf out = {0};
    lp_text_stream_put(&stream, tokenizer, ids[i], &out);
    ck_assert_str_eq(lp_buf_text(&out), pieces[i]);
    ck_assert_uint_eq(out.size, strlen(pieces[i]));
    lp_buf_free(&out);
  }
  lp_text_stream_free(&stream);
  lp_tokenizer_free(tokenizer);
}

LP_TEST(plain) {
  expect_pieces((const int32_t[]){0, 1, 4, 0, 1}, 5, (const char *const[]){"H", "i", " ", "H", "i"});
}

LP_TEST(characters_of_many_tokens) {
  expect_pieces((const int32_t[]){0, 2, 3, 5, 6, 7, 8, 1}, 8,
                (const char *const[]){"H", "", "\xc3\xa9", "", "", "", "\xf0\x9f\x98\x80", "i"});
}

LP_TEST(special_tokens_are_silent) {
  expect_pieces((const int32_t[]){0, 9, 1}, 3, (const char *const[]){"H", "", "i"});
}
