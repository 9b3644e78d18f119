/* Any bytes as the body of an HTTP request, of a completion and of a chat; its schema becomes a grammar. */
#include "runtime/grammar/grammar.h"
#include "runtime/serve/request.h"

static void read_body(bool chat, const uint8_t *data, size_t size) {
  static const lp_serve_config config = {.max_tokens = 64};
  lp_diag *diag = lp_diag_create();
  lp_completion completion;
  lp_status status = lp_completion_read(&config, chat, (const char *)data, size, &completion, diag);
  if (status == LP_OK && completion.format == LP_FORMAT_SCHEMA) {
    lp_grammar *grammar = NULL;
    lp_json schema = lp_json_root("schema", completion.document);
    schema.value = completion.schema;
    if (lp_grammar_of_schema(&schema, &grammar, diag) == LP_OK) lp_grammar_free(grammar);
  }
  lp_completion_free(&completion);
  lp_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_body(false, data, size);
  read_body(true, data, size);
  return 0;
}
