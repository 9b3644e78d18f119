/* Any bytes as tokenizer.json; after a NUL, the text that is encoded and decoded. */
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/internal.h"

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
  lp_tokenizer_free(tokenizer);
  lp_diag_free(diag);
  return 0;
}
