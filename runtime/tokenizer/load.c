/* The model, the added tokens and the post-processor of tokenizer.json, and what tokenizer_config.json says beside it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/tokenizer/internal.h"

#define FILE_LOC(loader) LP_LOC_FILE((loader)->file)

/* ---- model: vocabulary ------------------------------------------------------------------------------------------- */

static lp_status load_vocab(lp_loader *loader, const lp_node *json) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const lp_node *key = lp_node_first(json);
  size_t ignored;
  for (uint32_t i = 0; i < json->size; i++, key = lp_node_next(lp_node_next(key))) {
    const lp_node *value = lp_node_next(key);
    const char *text = key->text;
    int64_t id = value->kind == LP_NODE_INTEGER ? value->integer : -1;
    if (id < 0 || id >= LP_VOCAB_MAX)
      return lp_error(loader->diag, FILE_LOC(loader), "'model.vocab': the id of '%s' is not an integer below %d", text,
                      LP_VOCAB_MAX);
    const char *other = lp_vocab_text(vocab, (int32_t)id, &ignored);
    if (other)
      return lp_error(loader->diag, FILE_LOC(loader), "'model.vocab': '%s' and '%s' have the same id %" PRId64, other,
                      text, id);
    lp_vocab_set(vocab, (int32_t)id, text, key->size, true);
  }
  int32_t twice = lp_vocab_index(vocab);
  if (twice < 0) return LP_OK;
  return lp_error(loader->diag, FILE_LOC(loader), "'model.vocab': '%s' is listed twice",
                  lp_vocab_text(vocab, twice, &ignored));
}

/* ---- model: merges ----------------------------------------------------------------------------------------------- */

typedef struct {
  const char *text;
  size_t size;
} slice;

static slice node_slice(const lp_node *node) {
  return (slice){node->text, node->size};
}

/* Reads "a b" or ["a", "b"]. */
static bool read_merge(const lp_node *json, slice pair[2]) {
  if (lp_node_is(json, LP_NODE_ARRAY)) {
    const lp_node *left = lp_node_first(json);
    if (json->size != 2 || left->kind != LP_NODE_TEXT || lp_node_next(left)->kind != LP_NODE_TEXT) return false;
    pair[0] = node_slice(left);
    pair[1] = node_slice(lp_node_next(left));
    return true;
  }
  if (!lp_node_is(json, LP_NODE_TEXT)) return false;
  slice whole = node_slice(json);
  const char *space = memchr(whole.text, ' ', whole.size);
  if (!space) return false;
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
  size_t skip = vocab->prefix ? strlen(vocab->prefix) : 0;
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

static lp_status load_merges(lp_loader *loader, const lp_node *json) {
  lp_buf scratch = {0};
  lp_status status = LP_OK;
  uint32_t rank = 0;
  lp_vocab_reserve_merges(&loader->tokenizer->vocab, json->size);
  const lp_node *item = lp_node_first(json);
  for (size_t i = 0; i < json->size && status == LP_OK; i++, item = lp_node_next(item)) {
    slice pair[2];
    if (lp_node_is(item, LP_NODE_TEXT) && lp_has_prefix(item->text, "#version")) continue;
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
static lp_status optional_text(lp_loader *loader, const lp_node *json, const char *key, const char **out) {
  const lp_node *member = lp_node_member(json, key);
  size_t size;
  *out = NULL;
  if (lp_node_absent(member)) return LP_OK;
  LP_TRY(lp_member_text(loader, json, "model", key, out, &size));
  if (size == 0) *out = NULL;
  return LP_OK;
}

static lp_status load_model_options(lp_loader *loader, const lp_node *json) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const lp_node *dropout = lp_node_member(json, "dropout");
  bool drops = lp_node_is(dropout, LP_NODE_REAL) ? dropout->real != 0
                                                 : lp_node_is(dropout, LP_NODE_INTEGER) && dropout->integer != 0;
  if (drops) return lp_error(loader->diag, FILE_LOC(loader), "'model.dropout': random merges are not supported");
  LP_TRY(lp_member_bool(loader, json, "model", "fuse_unk", false, &vocab->fuse_unk));
  LP_TRY(lp_member_bool(loader, json, "model", "byte_fallback", false, &vocab->byte_fallback));
  LP_TRY(lp_member_bool(loader, json, "model", "ignore_merges", false, &vocab->ignore_merges));
  LP_TRY(optional_text(loader, json, "continuing_subword_prefix", &vocab->prefix));
  return optional_text(loader, json, "end_of_word_suffix", &vocab->suffix);
}

lp_status lp_load_model(lp_loader *loader, const lp_node *json, const char *path) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const lp_node *type = lp_node_member(json, "type"), *vocab_json, *merges;
  const char *unk;
  if (lp_node_is(type, LP_NODE_TEXT) && !lp_node_equals(type, "BPE"))
    return lp_error(loader->diag, FILE_LOC(loader), "'%s': the model '%s' is not supported, only BPE is", path,
                    type->text);
  LP_TRY(load_model_options(loader, json));
  LP_TRY(lp_member_get(loader, json, path, "vocab", LP_NODE_OBJECT, &vocab_json));
  LP_TRY(lp_member_get(loader, json, path, "merges", LP_NODE_ARRAY, &merges));
  LP_TRY(load_vocab(loader, vocab_json));
  LP_TRY(load_merges(loader, merges));
  LP_TRY(optional_text(loader, json, "unk_token", &unk));
  vocab->unk = unk ? lp_vocab_find(vocab, unk, strlen(unk)) : -1;
  if (unk && vocab->unk < 0)
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
static lp_status assign_id(lp_loader *loader, const lp_node *json, const char *path, lp_added *token) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const lp_node *member;
  int64_t id;
  size_t ignored;
  LP_TRY(lp_member_get(loader, json, path, "id", LP_NODE_INTEGER, &member));
  LP_TRY(lp_node_count(loader, member, lp_path_member(loader, path, "id"), LP_VOCAB_MAX - 1, &id));
  token->id = lp_vocab_find(vocab, token->text, token->size);
  if (token->id >= 0) return LP_OK;
  token->id = (int32_t)id;
  const char *other = lp_vocab_text(vocab, token->id, &ignored);
  if (other && !lp_streq(other, token->text))
    return lp_error(loader->diag, FILE_LOC(loader), "'%s': '%s' and '%s' have the same id %" PRId64, path, other,
                    token->text, id);
  lp_vocab_set(vocab, token->id, token->text, token->size, false);
  return LP_OK;
}

static lp_status load_added_token(lp_loader *loader, const lp_node *json, const char *path) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  lp_added token = {0};
  LP_TRY(lp_node_expect(loader, json, LP_NODE_OBJECT, path));
  LP_TRY(lp_member_text(loader, json, path, "content", &token.text, &token.size));
  LP_TRY(lp_member_bool(loader, json, path, "lstrip", false, &token.lstrip));
  LP_TRY(lp_member_bool(loader, json, path, "rstrip", false, &token.rstrip));
  LP_TRY(lp_member_bool(loader, json, path, "single_word", false, &token.single_word));
  LP_TRY(lp_member_bool(loader, json, path, "normalized", true, &token.normalized));
  LP_TRY(lp_member_bool(loader, json, path, "special", false, &token.special));
  if (token.size == 0) return LP_OK; /* as the reference: never matches */
  LP_TRY(assign_id(loader, json, path, &token));
  while (tokenizer->special.count < tokenizer->vocab.tokens.count)
    lp_vec_push(&tokenizer->special, false);
  if (token.special) tokenizer->special.data[token.id] = true;
  if (token.normalized) LP_TRY(normalize_added(loader, &token));
  if (token.size == 0) return LP_OK;
  if (token.normalized)
    lp_vec_push(&tokenizer->normalized.list, token);
  else
    lp_vec_push(&tokenizer->raw.list, token);
  return LP_OK;
}

lp_status lp_load_added(lp_loader *loader, const lp_node *json, const char *path) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  if (!lp_node_absent(json)) {
    LP_TRY(lp_node_expect(loader, json, LP_NODE_ARRAY, path));
    const lp_node *item = lp_node_first(json);
    for (size_t i = 0; i < json->size; i++, item = lp_node_next(item))
      LP_TRY(load_added_token(loader, item, lp_path_item(loader, path, i)));
  }
  while (tokenizer->special.count < tokenizer->vocab.tokens.count)
    lp_vec_push(&tokenizer->special, false);
  lp_added_complete(&tokenizer->raw);
  lp_added_complete(&tokenizer->normalized);
  return LP_OK;
}
