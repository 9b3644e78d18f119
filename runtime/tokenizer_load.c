/* The model, the added tokens and the post-processor of tokenizer.json, and what tokenizer_config.json says beside it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer_internal.h"

#define FILE_LOC(loader) LP_LOC_FILE((loader)->file)

/* ---- model: vocabulary ------------------------------------------------------------------------------------------- */

static lp_status load_vocab(lp_loader *loader, const json_t *json) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const char *text;
  json_t *value;
  json_object_foreach((json_t *)json, text, value) {
    int64_t id = json_integer_value(value);
    size_t ignored;
    if (!json_is_integer(value) || id < 0 || id >= LP_VOCAB_MAX)
      return lp_error(loader->diag, FILE_LOC(loader), "'model.vocab': the id of '%s' is not an integer below %d", text,
                      LP_VOCAB_MAX);
    const char *other = lp_vocab_text(vocab, (int32_t)id, &ignored);
    if (other != NULL)
      return lp_error(loader->diag, FILE_LOC(loader), "'model.vocab': '%s' and '%s' have the same id %" PRId64, other,
                      text, id);
    lp_vocab_set(vocab, (int32_t)id, text, strlen(text), true);
  }
  lp_vocab_index(vocab);
  return LP_OK;
}

/* ---- model: merges ----------------------------------------------------------------------------------------------- */

typedef struct {
  const char *text;
  size_t size;
} slice;

static slice json_slice(const json_t *json) { return (slice){json_string_value(json), json_string_length(json)}; }

/* Reads "a b" or ["a", "b"]. */
static bool read_merge(const json_t *json, slice pair[2]) {
  if (json_is_array(json)) {
    const json_t *left = json_array_get(json, 0), *right = json_array_get(json, 1);
    if (json_array_size(json) != 2 || !json_is_string(left) || !json_is_string(right)) return false;
    pair[0] = json_slice(left);
    pair[1] = json_slice(right);
    return true;
  }
  if (!json_is_string(json)) return false;
  slice whole = json_slice(json);
  const char *space = memchr(whole.text, ' ', whole.size);
  if (space == NULL) return false;
  pair[0] = (slice){whole.text, (size_t)(space - whole.text)};
  pair[1] = (slice){space + 1, whole.size - pair[0].size - 1};
  return memchr(pair[1].text, ' ', pair[1].size) == NULL;
}

static lp_status unknown_part(lp_loader *loader, size_t index, slice part) {
  return lp_error(loader->diag, FILE_LOC(loader), "'model.merges[%zu]': '%.*s' is not in the vocabulary", index,
                  (int)part.size, part.text);
}

static lp_status add_merge(lp_loader *loader, size_t index, slice pair[2], uint32_t rank, lp_buf *scratch) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  size_t skip = vocab->prefix != NULL ? strlen(vocab->prefix) : 0;
  int32_t left = lp_vocab_find(vocab, pair[0].text, pair[0].size);
  int32_t right = lp_vocab_find(vocab, pair[1].text, pair[1].size);
  if (left < 0) return unknown_part(loader, index, pair[0]);
  if (right < 0) return unknown_part(loader, index, pair[1]);
  if (pair[1].size < skip)
    return lp_error(loader->diag, FILE_LOC(loader),
                    "'model.merges[%zu]': '%.*s' is shorter than the continuing_subword_prefix", index,
                    (int)pair[1].size, pair[1].text);
  lp_buf_clear(scratch);
  lp_buf_append(scratch, pair[0].text, pair[0].size);
  lp_buf_append(scratch, pair[1].text + skip, pair[1].size - skip);
  int32_t merged = lp_vocab_find(vocab, lp_buf_text(scratch), scratch->size);
  if (merged < 0) return unknown_part(loader, index, (slice){lp_buf_text(scratch), scratch->size});
  lp_vocab_add_merge(vocab, left, right, rank, merged);
  return LP_OK;
}

static lp_status load_merges(lp_loader *loader, const json_t *json) {
  lp_buf scratch = {0};
  lp_status status = LP_OK;
  uint32_t rank = 0;
  lp_vocab_reserve_merges(&loader->tokenizer->vocab, json_array_size(json));
  for (size_t i = 0; i < json_array_size(json) && status == LP_OK; ++i) {
    const json_t *item = json_array_get(json, i);
    slice pair[2];
    if (json_is_string(item) && lp_has_prefix(json_string_value(item), "#version")) continue;
    if (read_merge(item, pair))
      status = add_merge(loader, i, pair, rank++, &scratch);
    else
      status = lp_error(loader->diag, FILE_LOC(loader), "'model.merges[%zu]': expected \"a b\" or [\"a\", \"b\"]", i);
  }
  lp_buf_free(&scratch);
  return status;
}

/* ---- model ------------------------------------------------------------------------------------------------------- */

/* A text member that may be null; then NULL, as for an empty one, which changes nothing. */
static lp_status optional_text(lp_loader *loader, const json_t *json, const char *key, const char **out) {
  const json_t *member = json_object_get(json, key);
  size_t size;
  *out = NULL;
  if (member == NULL || json_is_null(member)) return LP_OK;
  LP_TRY(lp_json_text(loader, json, "model", key, out, &size));
  if (size == 0) *out = NULL;
  return LP_OK;
}

static lp_status load_model_options(lp_loader *loader, const json_t *json) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const json_t *dropout = json_object_get(json, "dropout");
  if (dropout != NULL && json_number_value(dropout) != 0)
    return lp_error(loader->diag, FILE_LOC(loader), "'model.dropout': random merges are not supported");
  LP_TRY(lp_json_bool(loader, json, "model", "fuse_unk", false, &vocab->fuse_unk));
  LP_TRY(lp_json_bool(loader, json, "model", "byte_fallback", false, &vocab->byte_fallback));
  LP_TRY(lp_json_bool(loader, json, "model", "ignore_merges", false, &vocab->ignore_merges));
  LP_TRY(optional_text(loader, json, "continuing_subword_prefix", &vocab->prefix));
  return optional_text(loader, json, "end_of_word_suffix", &vocab->suffix);
}

lp_status lp_load_model(lp_loader *loader, const json_t *json, const char *path) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const json_t *type = json_object_get(json, "type"), *vocab_json, *merges;
  const char *unk;
  if (json_is_string(type) && !lp_streq(json_string_value(type), "BPE"))
    return lp_error(loader->diag, FILE_LOC(loader), "'%s': the model '%s' is not supported, only BPE is", path,
                    json_string_value(type));
  LP_TRY(load_model_options(loader, json));
  LP_TRY(lp_json_member(loader, json, path, "vocab", JSON_OBJECT, &vocab_json));
  LP_TRY(lp_json_member(loader, json, path, "merges", JSON_ARRAY, &merges));
  LP_TRY(load_vocab(loader, vocab_json));
  LP_TRY(load_merges(loader, merges));
  LP_TRY(optional_text(loader, json, "unk_token", &unk));
  vocab->unk = unk == NULL ? -1 : lp_vocab_find(vocab, unk, strlen(unk));
  if (unk != NULL && vocab->unk < 0)
    lp_warning(loader->diag, FILE_LOC(loader),
               "'model.unk_token': '%s' is not in the vocabulary; unknown characters are left out", unk);
  return LP_OK;
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

/* The token's text as the normalizer leaves it: what the normalized input is searched for. */
static lp_status normalize_added(lp_loader *loader, lp_added *token) {
  lp_work work = {.diag = loader->diag};
  lp_work_begin(&work);
  lp_buf_append(&work.next.text, token->text, token->size);
  lp_work_add(&work, 0, -1, true);
  lp_work_swap(&work);
  lp_status status = lp_steps_run(&loader->tokenizer->normalizer, &work);
  if (status == LP_OK) {
    token->size = work.now.text.size;
    token->text = lp_arena_copy(loader->tokenizer->arena, lp_buf_text(&work.now.text), token->size + 1);
    lp_vocab_respell(&loader->tokenizer->vocab, token->id, token->text, token->size);
  }
  lp_work_free(&work);
  return status;
}

/* The model's id of the same text goes before the file's. */
static lp_status assign_id(lp_loader *loader, const json_t *json, const char *path, lp_added *token) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const json_t *member;
  int64_t id;
  size_t ignored;
  LP_TRY(lp_json_member(loader, json, path, "id", JSON_INTEGER, &member));
  LP_TRY(lp_json_count(loader, member, lp_json_path(loader, path, "id"), LP_VOCAB_MAX - 1, &id));
  token->id = lp_vocab_find(vocab, token->text, token->size);
  if (token->id >= 0) return LP_OK;
  token->id = (int32_t)id;
  const char *other = lp_vocab_text(vocab, token->id, &ignored);
  if (other != NULL && !lp_streq(other, token->text))
    return lp_error(loader->diag, FILE_LOC(loader), "'%s': '%s' and '%s' have the same id %" PRId64, path, other,
                    token->text, id);
  lp_vocab_set(vocab, token->id, token->text, token->size, false);
  return LP_OK;
}

static lp_status load_added_token(lp_loader *loader, const json_t *json, const char *path) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  lp_added token = {0};
  LP_TRY(lp_json_expect(loader, json, JSON_OBJECT, path));
  LP_TRY(lp_json_text(loader, json, path, "content", &token.text, &token.size));
  LP_TRY(lp_json_bool(loader, json, path, "lstrip", false, &token.lstrip));
  LP_TRY(lp_json_bool(loader, json, path, "rstrip", false, &token.rstrip));
  LP_TRY(lp_json_bool(loader, json, path, "single_word", false, &token.single_word));
  LP_TRY(lp_json_bool(loader, json, path, "normalized", true, &token.normalized));
  LP_TRY(lp_json_bool(loader, json, path, "special", false, &token.special));
  if (token.size == 0) return LP_OK; /* as the reference: never matches */
  LP_TRY(assign_id(loader, json, path, &token));
  while (tokenizer->special.count < tokenizer->vocab.tokens.count) lp_vec_push(&tokenizer->special, false);
  if (token.special) tokenizer->special.data[token.id] = true;
  if (token.normalized) LP_TRY(normalize_added(loader, &token));
  if (token.size == 0) return LP_OK;
  if (token.normalized)
    lp_vec_push(&tokenizer->normalized.list, token);
  else
    lp_vec_push(&tokenizer->raw.list, token);
  return LP_OK;
}

lp_status lp_load_added(lp_loader *loader, const json_t *json, const char *path) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  if (json != NULL && !json_is_null(json)) {
    LP_TRY(lp_json_expect(loader, json, JSON_ARRAY, path));
    for (size_t i = 0; i < json_array_size(json); ++i)
      LP_TRY(load_added_token(loader, json_array_get(json, i), lp_json_path_at(loader, path, i)));
  }
  while (tokenizer->special.count < tokenizer->vocab.tokens.count) lp_vec_push(&tokenizer->special, false);
  lp_added_complete(&tokenizer->raw);
  lp_added_complete(&tokenizer->normalized);
  return LP_OK;
}
