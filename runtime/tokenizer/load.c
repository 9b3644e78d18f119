/* Loads the model and the added tokens of tokenizer.json. */
#include <float.h>

#include "base/map.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/added.h"
#include "runtime/tokenizer/internal.h"
#include "runtime/tokenizer/load.h"
#include "runtime/tokenizer/steps.h"
#include "runtime/tokenizer/vocab.h"

/* ---- members ----------------------------------------------------------------------------------------------------- */

lp_status lp_load_text(lp_loader *loader, const lp_json *object, const char *key, const char **out, size_t *size) {
  const char *text;
  LP_TRY(lp_json_bytes(LP_MEMBER(object, key), &text, size, loader->diag));
  *out = lp_arena_copy(loader->tokenizer->arena, text, *size + 1);
  return LP_OK;
}

lp_status lp_load_bool(lp_loader *loader, const lp_json *object, const char *key, bool fallback, bool *out) {
  lp_json member = lp_json_member(object, key);
  *out = fallback;
  return lp_json_is_given(&member) ? lp_json_bool(&member, out, loader->diag) : LP_OK;
}

/* ---- model: vocabulary ------------------------------------------------------------------------------------------- */

static lp_status add_token(lp_vocab *vocab, const lp_json *at, const lp_json_value *key, lp_diag *diag) {
  const lp_json_value *value = key + 1;
  int64_t id = value->kind == LP_JSON_INTEGER ? value->integer : -1;
  size_t ignored;
  if (id < 0 || id >= LP_VOCAB_MAX)
    return lp_json_error(at, diag, "the id of '%s' is not an integer below %d", key->text, LP_VOCAB_MAX);
  const char *other = lp_vocab_text(vocab, (int32_t)id, &ignored);
  if (other) return lp_json_error(at, diag, "'%s' and '%s' have the same id %" PRId64, other, key->text, id);
  lp_vocab_set(vocab, (int32_t)id, key->text, key->size, true);
  return LP_OK;
}

static lp_status load_vocab(lp_loader *loader, const lp_json *at) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  size_t ignored;
  LP_TRY(lp_json_object(at, loader->diag));
  for (size_t i = 0; i < at->value->size; i++)
    LP_TRY(add_token(vocab, at, &at->value->items[2 * i], loader->diag));
  int32_t twice = lp_vocab_index(vocab);
  if (twice < 0) return LP_OK;
  return lp_json_error(at, loader->diag, "'%s' is listed twice", lp_vocab_text(vocab, twice, &ignored));
}

/* ---- model: merges ----------------------------------------------------------------------------------------------- */

typedef struct {
  const char *text;
  size_t size;
} slice;

static slice slice_of(const lp_json_value *value) {
  return (slice){value->text, value->size};
}

/* Reads "a b" or ["a", "b"]. */
static bool read_merge(const lp_json_value *value, slice pair[2]) {
  if (value->kind == LP_JSON_ARRAY) {
    const lp_json_value *item = value->items;
    if (value->size != 2 || item[0].kind != LP_JSON_TEXT || item[1].kind != LP_JSON_TEXT) return false;
    pair[0] = slice_of(&item[0]);
    pair[1] = slice_of(&item[1]);
    return true;
  }
  if (value->kind != LP_JSON_TEXT) return false;
  slice whole = slice_of(value);
  const char *space = memchr(whole.text, ' ', whole.size);
  if (!space) return false;
  pair[0] = (slice){whole.text, (size_t)(space - whole.text)};
  pair[1] = (slice){space + 1, whole.size - pair[0].size - 1};
  return memchr(pair[1].text, ' ', pair[1].size) == NULL;
}

static lp_status unknown_part(const lp_json *at, slice part, lp_diag *diag) {
  return lp_json_error(at, diag, "'%.*s' is not in the vocabulary", (int)part.size, part.text);
}

static lp_status add_merge(lp_loader *loader, const lp_json *at, slice pair[2], uint32_t rank, lp_buf *scratch) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  size_t skip = vocab->prefix ? strlen(vocab->prefix) : 0;
  int32_t left = lp_vocab_find(vocab, pair[0].text, pair[0].size);
  int32_t right = lp_vocab_find(vocab, pair[1].text, pair[1].size);
  if (left < 0) return unknown_part(at, pair[0], loader->diag);
  if (right < 0) return unknown_part(at, pair[1], loader->diag);
  if (pair[1].size < skip)
    return lp_json_error(at, loader->diag, "'%.*s' is shorter than the continuing_subword_prefix", (int)pair[1].size,
                         pair[1].text);
  lp_buf_clear(scratch);
  lp_buf_append(scratch, pair[0].text, pair[0].size);
  lp_buf_append(scratch, pair[1].text + skip, pair[1].size - skip);
  int32_t merged = lp_vocab_find(vocab, lp_buf_text(scratch), scratch->size);
  if (merged < 0) return unknown_part(at, (slice){lp_buf_text(scratch), scratch->size}, loader->diag);
  lp_vocab_add_merge(vocab, left, right, rank, merged);
  return LP_OK;
}

/* Reads the rank of merge `index` from merge_ranks; without that list the ranks are the merges' order. */
static lp_status read_rank(lp_loader *loader, const lp_json *ranks, size_t index, uint32_t *rank) {
  int64_t number = *rank;
  if (lp_json_is_given(ranks)) LP_TRY(lp_json_i64(LP_ITEM(ranks, index), 0, UINT32_MAX, &number, loader->diag));
  *rank = (uint32_t)number;
  return LP_OK;
}

static lp_status load_merges(lp_loader *loader, const lp_json *at, const lp_json *ranks) {
  LP_OWNED(lp_buf_free) lp_buf scratch = {0};
  lp_status status = lp_json_array(at, loader->diag);
  uint32_t made = 0;
  lp_vocab_reserve_merges(&loader->tokenizer->vocab, lp_json_count(at));
  for (size_t i = 0; status == LP_OK && i < lp_json_count(at); i++) {
    lp_json item = lp_json_item(at, i);
    slice pair[2];
    uint32_t rank = made;
    if (lp_json_is(&item, LP_JSON_TEXT) && lp_has_prefix(item.value->text, "#version")) continue;
    made++;
    status = read_rank(loader, ranks, i, &rank);
    if (status != LP_OK) break;
    if (read_merge(item.value, pair))
      status = add_merge(loader, &item, pair, rank, &scratch);
    else
      status = lp_json_error(&item, loader->diag, "wanted \"a b\" or [\"a\", \"b\"]");
  }
  return status;
}

/* ---- model ------------------------------------------------------------------------------------------------------- */

/* Reads a text that may be null. NULL for a null and for an empty text, which changes nothing. */
static lp_status optional_text(lp_loader *loader, const lp_json *model, const char *key, const char **out) {
  size_t size;
  *out = NULL;
  if (!lp_json_is_given(LP_MEMBER(model, key))) return LP_OK;
  LP_TRY(lp_load_text(loader, model, key, out, &size));
  if (size == 0) *out = NULL;
  return LP_OK;
}

static lp_status load_model_options(lp_loader *loader, const lp_json *model) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  lp_json dropout = lp_json_member(model, "dropout");
  bool drops = (lp_json_is(&dropout, LP_JSON_REAL) && dropout.value->real != 0) ||
               (lp_json_is(&dropout, LP_JSON_INTEGER) && dropout.value->integer != 0);
  if (drops) return lp_json_error(&dropout, loader->diag, "random merges are not supported");
  LP_TRY(lp_load_bool(loader, model, "fuse_unk", false, &vocab->fuse_unk));
  LP_TRY(lp_load_bool(loader, model, "byte_fallback", false, &vocab->byte_fallback));
  LP_TRY(lp_load_bool(loader, model, "ignore_merges", false, &vocab->ignore_merges));
  LP_TRY(optional_text(loader, model, "continuing_subword_prefix", &vocab->prefix));
  return optional_text(loader, model, "end_of_word_suffix", &vocab->suffix);
}

static lp_status load_unknown(lp_loader *loader, const lp_json *model) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  const char *unk;
  LP_TRY(optional_text(loader, model, "unk_token", &unk));
  vocab->unk = unk ? lp_vocab_find(vocab, unk, strlen(unk)) : -1;
  if (unk && vocab->unk < 0)
    lp_warning(loader->diag, LP_LOC_FILE(loader->file),
               "'model.unk_token': '%s' is not in the vocabulary; unknown characters are left out", unk);
  return LP_OK;
}

static lp_status load_bpe(lp_loader *loader, const lp_json *model) {
  lp_json tokens = lp_json_member(model, "vocab"), merges = lp_json_member(model, "merges"),
          ranks = lp_json_member(model, "merge_ranks"); /* of bundles: llmpart's reader of GGUF files writes it */
  LP_TRY(load_model_options(loader, model));
  LP_TRY(load_vocab(loader, &tokens));
  LP_TRY(load_merges(loader, &merges, &ranks));
  return load_unknown(loader, model);
}

/* Sets the reference's defaults, since old files lack some members. */
static lp_status load_wordpiece(lp_loader *loader, const lp_json *model) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  lp_json tokens = lp_json_member(model, "vocab"), longest = lp_json_member(model, "max_input_chars_per_word");
  int64_t count = 100;
  vocab->kind = LP_MODEL_WORDPIECE;
  LP_TRY(load_vocab(loader, &tokens));
  if (lp_json_is_given(&longest)) LP_TRY(lp_json_i64(&longest, 0, INT64_MAX, &count, loader->diag));
  vocab->longest_word = (size_t)count;
  LP_TRY(optional_text(loader, model, "continuing_subword_prefix", &vocab->prefix));
  return load_unknown(loader, model);
}

static lp_status load_word_level(lp_loader *loader, const lp_json *model) {
  loader->tokenizer->vocab.kind = LP_MODEL_WORDLEVEL;
  LP_TRY(load_vocab(loader, LP_MEMBER(model, "vocab")));
  return load_unknown(loader, model);
}

/* Reads the vocabulary, a list of [text, score]; a text that occurs twice gets the later id. */
static lp_status load_scores(lp_loader *loader, const lp_json *at) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  LP_TRY(lp_json_array(at, loader->diag));
  if (lp_json_count(at) > LP_VOCAB_MAX)
    return lp_json_error(at, loader->diag, "wanted at most %d tokens", LP_VOCAB_MAX);
  for (size_t i = 0; i < lp_json_count(at); i++) {
    lp_json item = lp_json_item(at, i), text_at = lp_json_item(&item, 0), score_at = lp_json_item(&item, 1);
    const char *text;
    size_t size;
    double score;
    LP_TRY(lp_json_array(&item, loader->diag));
    LP_TRY(lp_json_bytes(&text_at, &text, &size, loader->diag));
    LP_TRY(lp_json_number(&score_at, -DBL_MAX, DBL_MAX, &score, loader->diag));
    lp_vocab_set(vocab, (int32_t)i, text, size, true);
    lp_vec_push(&vocab->scores, score);
    if (i == 0 || score < vocab->least_score) vocab->least_score = score;
  }
  (void)lp_vocab_index(vocab);
  return LP_OK;
}

static lp_status load_unigram(lp_loader *loader, const lp_json *model) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  lp_json tokens = lp_json_member(model, "vocab"), unk = lp_json_member(model, "unk_id");
  int64_t id = -1;
  vocab->kind = LP_MODEL_UNIGRAM;
  LP_TRY(load_scores(loader, &tokens));
  if (lp_json_is_given(&unk)) LP_TRY(lp_json_i64(&unk, 0, (int64_t)vocab->tokens.count - 1, &id, loader->diag));
  vocab->unk = (int32_t)id;
  return lp_load_bool(loader, model, "byte_fallback", false, &vocab->byte_fallback);
}

lp_status lp_load_model(lp_loader *loader, const lp_json *at) {
  static const struct {
    const char *type;
    lp_status (*load)(lp_loader *loader, const lp_json *model);
  } kinds[] = {
      {"BPE", load_bpe}, {"Unigram", load_unigram}, {"WordPiece", load_wordpiece}, {"WordLevel", load_word_level}};
  lp_json type = lp_json_member(at, "type");
  LP_TRY(lp_json_object(at, loader->diag));
  if (!lp_json_is(&type, LP_JSON_TEXT)) return load_bpe(loader, at);
  for (size_t i = 0; i < LP_COUNT(kinds); i++)
    if (lp_json_equals(&type, kinds[i].type)) return kinds[i].load(loader, at);
  return lp_json_error(at, loader->diag,
                       "the model '%s' is not supported, only BPE, Unigram, WordPiece and WordLevel are",
                       type.value->text);
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

/* The token's text after the normalizer, which is searched for in the normalized input. */
static lp_status normalize_added(lp_loader *loader, lp_added *token) {
  LP_OWNED(lp_work_free) lp_work work = {.diag = loader->diag};
  lp_work_begin(&work);
  lp_buf_append(&work.next.text, token->text, token->size);
  lp_work_add(&work, 0, -1, 0);
  lp_work_swap(&work);
  LP_TRY(lp_steps_run(&loader->tokenizer->normalizer, &work));
  const lp_piece piece = work.now.list.count > 0 ? work.now.list.data[0] : (lp_piece){0};
  token->size = piece.size;
  token->text = lp_arena_strndup(loader->tokenizer->arena, lp_buf_text(&work.now.text) + piece.start, piece.size);
  return LP_OK;
}

/* The model's id of the same text takes precedence over the file's. */
static lp_status assign_id(lp_loader *loader, const lp_json *at, lp_added *token) {
  lp_vocab *vocab = &loader->tokenizer->vocab;
  int64_t id;
  size_t ignored;
  LP_TRY(lp_json_i64(LP_MEMBER(at, "id"), 0, LP_VOCAB_MAX - 1, &id, loader->diag));
  token->id = lp_vocab_find(vocab, token->text, token->size);
  if (token->id >= 0) return LP_OK;
  token->id = (int32_t)id;
  const char *other = lp_vocab_text(vocab, token->id, &ignored);
  if (other && !lp_streq(other, token->text))
    return lp_json_error(at, loader->diag, "'%s' and '%s' have the same id %" PRId64, other, token->text, id);
  lp_vocab_set(vocab, token->id, token->text, token->size, false);
  return LP_OK;
}

/* An added token that is found after the normalizer decodes to its normalized text (tokenizers 0.23). */
static void set_decoded(lp_tokenizer *tokenizer, const lp_added *token) {
  while (tokenizer->decoded.count <= (size_t)token->id)
    lp_vec_push(&tokenizer->decoded, (lp_decoded){0});
  tokenizer->decoded.data[token->id] = (lp_decoded){.text = token->text, .size = token->size};
}

static lp_status load_added_token(lp_loader *loader, const lp_json *at) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  lp_added token = {0};
  LP_TRY(lp_json_object(at, loader->diag));
  LP_TRY(lp_load_text(loader, at, "content", &token.text, &token.size));
  LP_TRY(lp_load_bool(loader, at, "lstrip", false, &token.lstrip));
  LP_TRY(lp_load_bool(loader, at, "rstrip", false, &token.rstrip));
  LP_TRY(lp_load_bool(loader, at, "single_word", false, &token.single_word));
  LP_TRY(lp_load_bool(loader, at, "normalized", true, &token.normalized));
  LP_TRY(lp_load_bool(loader, at, "special", false, &token.special));
  if (token.size == 0) return LP_OK; /* never matches, as in the reference */
  LP_TRY(assign_id(loader, at, &token));
  while (tokenizer->special.count < tokenizer->vocab.tokens.count)
    lp_vec_push(&tokenizer->special, false);
  if (token.special) tokenizer->special.data[token.id] = true;
  if (token.normalized) {
    LP_TRY(normalize_added(loader, &token));
    set_decoded(tokenizer, &token);
  }
  if (token.size == 0) return LP_OK;
  if (token.normalized)
    lp_vec_push(&tokenizer->normalized.list, token);
  else
    lp_vec_push(&tokenizer->raw.list, token);
  return LP_OK;
}

/* Marks the ids with the text of a special token, since a Unigram vocabulary may list a text twice. */
static void mark_equal_texts(lp_tokenizer *tokenizer) {
  size_t size;
  for (size_t id = 0; id < tokenizer->vocab.tokens.count; id++) {
    const char *text = lp_vocab_text(&tokenizer->vocab, (int32_t)id, &size);
    int32_t other =
        text && tokenizer->vocab.kind == LP_MODEL_UNIGRAM ? lp_vocab_find(&tokenizer->vocab, text, size) : -1;
    if (other >= 0 && tokenizer->special.data[other]) tokenizer->special.data[id] = true;
  }
}

/* Marks the normalized texts that are those of special tokens. */
static void mark_special_texts(lp_tokenizer *tokenizer) {
  LP_OWNED(lp_map_free_at) lp_map *texts = lp_map_create();
  size_t size;
  for (size_t id = 0; id < tokenizer->special.count; id++)
    if (tokenizer->special.data[id]) lp_map_put(texts, lp_vocab_text(&tokenizer->vocab, (int32_t)id, &size), NULL);
  LP_FOR_VEC(lp_decoded, decoded, &tokenizer->decoded)
    decoded->special = decoded->text && lp_map_has(texts, decoded->text);
}

lp_status lp_load_added(lp_loader *loader, const lp_json *at) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  if (lp_json_is_given(at)) LP_TRY(lp_json_array(at, loader->diag));
  LP_FOR_ITEMS(item, at)
    LP_TRY(load_added_token(loader, &item));
  while (tokenizer->special.count < tokenizer->vocab.tokens.count)
    lp_vec_push(&tokenizer->special, false);
  mark_equal_texts(tokenizer);
  mark_special_texts(tokenizer);
  lp_added_complete(&tokenizer->raw);
  lp_added_complete(&tokenizer->normalized);
  return LP_OK;
}
