/* Any bytes as tokenizer.json; after a NUL, the text that is encoded, decoded and rendered as a chat template. */
#include <stdlib.h>
#include <string.h>

#include "runtime/chat/chat.h"
#include "runtime/tokenizer/internal.h"

static const lp_chat_special specials[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

static void use(const lp_tokenizer *tokenizer, const char *text, size_t size, lp_diag *diag) {
  lp_tokens ids = {0};
  lp_buf out = {0};
  if (lp_tokenizer_encode(tokenizer, text, size, true, &ids, diag) == LP_OK)
    lp_tokenizer_decode(tokenizer, ids.data, ids.count, false, &out);
  ids.count = 0;
  (void)!lp_tokenizer_encode_typed(tokenizer, text, size, true, &ids, diag);
  ids.count = 0;
  for (size_t i = 0; i < size; i++)
    lp_vec_push(&ids, (int32_t)(uint8_t)text[i]);
  lp_tokenizer_decode(tokenizer, ids.data, ids.count, true, &out);
  lp_vec_free(&ids);
  lp_buf_free(&out);
}

static void render(const char *text, size_t size, lp_diag *diag) {
  static const lp_chat_message messages[] = {{"system", "s"}, {"user", " u "}, {"assistant", "\xC3\xA9"}};
  lp_chat_input input = {
      .file = "f", .specials = specials, .special_count = LP_COUNT(specials), .messages = messages, .count = 3};
  lp_buf out = {0};
  (void)!lp_chat_render(text, size, &input, &out, diag);
  static const char variables[] = "{\"tools\":[{\"a\":[1,2.5,null]}],\"messages\":[{\"role\":\"user\",\"content\":"
                                  "[{\"type\":\"text\"}]},{\"role\":\"tool\",\"content\":{\"x\":true}}]}";
  lp_json_document *document = NULL;
  if (lp_json_parse("v", variables, sizeof variables - 1, 0, &document, diag) == LP_OK) {
    lp_json root = lp_json_root("v", document);
    input.variables = root.value;
    (void)!lp_chat_render(text, size, &input, &out, diag);
    lp_json_free(document);
  }
  lp_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
  size_t file_size = end ? (size_t)(end - data) : size;
  const char *text = end ? (const char *)end + 1 : "";
  size_t text_size = end ? size - file_size - 1 : 0;
  lp_diag *diag = lp_diag_create();
  lp_tokenizer *tokenizer = NULL;
  if (lp_tokenizer_parse("tokenizer.json", (const char *)data, file_size, &tokenizer, diag) == LP_OK)
    use(tokenizer, text, text_size, diag);
  render(text, text_size, diag);
  lp_tokenizer_free(tokenizer);
  lp_diag_free(diag);
  return 0;
}
