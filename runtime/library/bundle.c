/* Bundles, text and tokens. */
#include "runtime/library/internal.h"

/* ---- bundles ----------------------------------------------------------------------------------------------------- */

static lp_status open_bundle(const char *path, const llmpart_bundle_options *given, llmpart_bundle *out,
                             lp_diag *diag) {
  llmpart_bundle_options options = {0};
  LP_TRY(lp_library_options(given, &options, sizeof options, "llmpart_bundle_options", diag));
  lp_bundle_options load = {.load = LP_LOAD_DEVICE, .check_hashes = options.check, .trust = options.trust};
  if (options.sides == LLMPART_BOTH_SIDES) load.load = LP_LOAD_ALL;
  out->sides = options.sides;
  return lp_bundle_load(path, &load, &out->bundle, diag);
}

llmpart_bundle *llmpart_bundle_open(const char *path, const llmpart_bundle_options *options) {
  lp_diag *diag = lp_library_begin();
  llmpart_bundle *bundle = lp_alloc(sizeof *bundle);
  *bundle = (llmpart_bundle){.path = lp_strdup(path)};
  if (lp_library_end(diag, open_bundle(path, options, bundle, diag))) return bundle;
  llmpart_bundle_close(bundle);
  return NULL;
}

void llmpart_bundle_close(llmpart_bundle *bundle) {
  if (!bundle) return;
  lp_bundle_free(bundle->bundle);
  free(bundle->path);
  free(bundle);
}

bool llmpart_bundle_is_split(const llmpart_bundle *bundle) {
  return lp_bundle_is_split(bundle->bundle);
}

int32_t llmpart_bundle_vocab_size(const llmpart_bundle *bundle) {
  return lp_bundle_vocab(bundle->bundle);
}

int64_t llmpart_bundle_context_length(const llmpart_bundle *bundle) {
  return lp_bundle_context_length(bundle->bundle);
}

lp_status lp_library_need_cloud(const llmpart_bundle *bundle, const char *what, lp_diag *diag) {
  if (bundle->sides == LLMPART_BOTH_SIDES) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(bundle->path),
                  "the bundle was opened with LLMPART_DEVICE_SIDE, and %s needs both sides", what);
}

/* ---- text and tokens --------------------------------------------------------------------------------------------- */

static lp_status tokenizer_of(const llmpart_bundle *bundle, const lp_tokenizer **out, lp_diag *diag) {
  *out = lp_bundle_tokenizer(bundle->bundle);
  if (*out) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(bundle->path), "the bundle has no tokenizer: give tokens instead of text");
}

lp_status lp_library_encode(const llmpart_bundle *bundle, const char *text, lp_tokens *out, lp_diag *diag) {
  const lp_tokenizer *tokenizer = NULL;
  LP_TRY(tokenizer_of(bundle, &tokenizer, diag));
  return lp_tokenizer_encode_typed(tokenizer, text, strlen(text), true, out, diag);
}

/* Hands tokens to the caller, and ends the call. */
static ptrdiff_t give_tokens(lp_diag *diag, lp_status status, lp_tokens *found, int32_t *tokens, size_t room) {
  ptrdiff_t count = lp_library_end(diag, status) ? (ptrdiff_t)found->count : -1;
  size_t copied = found->count < room ? found->count : room;
  if (count > 0 && copied > 0) memcpy(tokens, found->data, copied * sizeof *tokens);
  lp_vec_free(found);
  return count;
}

ptrdiff_t llmpart_encode(const llmpart_bundle *bundle, const char *text, int32_t *tokens, size_t room) {
  lp_diag *diag = lp_library_begin();
  lp_tokens found = {0};
  lp_status status = lp_library_encode(bundle, text, &found, diag);
  return give_tokens(diag, status, &found, tokens, room);
}

static lp_status encode_chat(const llmpart_bundle *bundle, const llmpart_message *messages, size_t count,
                             lp_tokens *out, lp_diag *diag) {
  const lp_tokenizer *tokenizer = NULL;
  LP_TRY(tokenizer_of(bundle, &tokenizer, diag));
  if (!lp_tokenizer_has_chat_template(tokenizer))
    return lp_error(diag, LP_LOC_FILE(bundle->path), "the model has no chat template: use llmpart_encode");
  LP_OWNED(lp_free_at) lp_chat_message *list = lp_alloc((count + 1) * sizeof *list);
  for (size_t i = 0; i < count; i++)
    list[i] = (lp_chat_message){messages[i].role, messages[i].content};
  return lp_tokenizer_encode_chat(tokenizer, list, count, NULL, out, diag);
}

ptrdiff_t llmpart_encode_chat(const llmpart_bundle *bundle, const llmpart_message *messages, size_t count,
                              int32_t *tokens, size_t room) {
  lp_diag *diag = lp_library_begin();
  lp_tokens found = {0};
  lp_status status = encode_chat(bundle, messages, count, &found, diag);
  return give_tokens(diag, status, &found, tokens, room);
}

ptrdiff_t llmpart_decode(const llmpart_bundle *bundle, const int32_t *tokens, size_t count, char *text, size_t room) {
  lp_diag *diag = lp_library_begin();
  const lp_tokenizer *tokenizer = NULL;
  lp_status status = tokenizer_of(bundle, &tokenizer, diag);
  if (!lp_library_end(diag, status)) return -1;
  LP_OWNED(lp_buf_free) lp_buf found = {0};
  lp_tokenizer_decode(tokenizer, tokens, count, true, &found);
  size_t copied = found.size < room ? found.size : room;
  if (copied > 0) memcpy(text, found.data, copied);
  if (found.size < room) text[found.size] = '\0';
  return (ptrdiff_t)found.size;
}
