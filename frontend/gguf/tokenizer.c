/* The tokenizer of a GGUF file as the text of tokenizer.json. Two kinds are supported: byte-level BPE, which GGUF calls
 * "gpt2", and SentencePiece's BPE with scores, which it calls "llama". */
#include "base/json/writer.h"
#include "base/utf8.h"
#include "frontend/gguf/file.h"
#include "frontend/gguf/gguf.h"

/* ---- merges ------------------------------------------------------------------------------------------------------ */

/* A GGUF file stores the merges of a SentencePiece vocabulary as scores of pieces. */

typedef struct {
  const lp_gguf_value *tokens, *types, *scores; /* equally long */
} lp_gguf_pieces;

/* The tokens `left` and `right` become `merged`. The lowest rank merges first, and of equal ones the leftmost pair. */
typedef struct {
  uint32_t left, right, merged, rank;
} lp_gguf_merge;

typedef LP_VEC(lp_gguf_merge) lp_gguf_merges;

static const double normal_type = 1; /* of tokenizer.ggml.token_type: other pieces are not made by merging */

typedef struct {
  const lp_gguf *file;
  const lp_gguf_pieces *pieces;
  lp_arena *arena;
  lp_map *ids; /* text -> its number (uint32_t), of normal pieces */
  lp_diag *diag;
} finder;

static uint32_t *id_of(const finder *f, const char *text, size_t size) {
  return lp_map_get(f->ids, lp_arena_strndup(f->arena, text, size));
}

static void add_ids(finder *f) {
  for (uint32_t i = 0; i < f->pieces->tokens->count; i++) {
    const lp_gguf_text *text = &f->pieces->tokens->text[i];
    if (lp_gguf_number(f->pieces->types, i) != normal_type || text->size == 0) continue;
    uint32_t *id = LP_NEW(f->arena, uint32_t);
    *id = i;
    lp_map_put(f->ids, lp_arena_strndup(f->arena, text->data, text->size), id);
  }
}

/* Appends the pairs of pieces that make piece `merged`; a piece of one character has none. */
static lp_status add_pairs(const finder *f, uint32_t merged, lp_gguf_merges *out) {
  const lp_gguf_text *text = &f->pieces->tokens->text[merged];
  size_t bad, at = 0;
  while (at < text->size) {
    size_t length = lp_utf8_length(text->data + at, text->size - at, &bad);
    if (length == 0 || !id_of(f, text->data + at, length))
      return lp_error(f->diag, LP_LOC_FILE(f->file->path),
                      "the tokenizer's piece '%.*s' has a character that is not a piece", (int)text->size, text->data);
    at += length;
    const uint32_t *left = at < text->size ? id_of(f, text->data, at) : NULL;
    const uint32_t *right = at < text->size ? id_of(f, text->data + at, text->size - at) : NULL;
    if (left && right) lp_vec_push(out, ((lp_gguf_merge){*left, *right, merged, 0}));
  }
  return LP_OK;
}

typedef struct {
  double score;
  lp_gguf_merge merge;
} ranked;

/* The higher score first, then the order of the vocabulary. */
static int by_score(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->merge.merged != y->merge.merged) return x->merge.merged < y->merge.merged ? -1 : 1;
  if (x->merge.left != y->merge.left) return x->merge.left < y->merge.left ? -1 : 1;
  return x->merge.right < y->merge.right ? -1 : x->merge.right > y->merge.right;
}

/* Orders the merges by score and numbers the scores. */
static void rank(const finder *f, lp_gguf_merges *merges) {
  ranked *list = LP_NEW_ARRAY(f->arena, ranked, (int64_t)merges->count + 1);
  for (size_t i = 0; i < merges->count; i++)
    list[i] = (ranked){lp_gguf_number(f->pieces->scores, merges->data[i].merged), merges->data[i]};
  if (merges->count > 1) qsort(list, merges->count, sizeof *list, by_score);
  for (size_t i = 0, number = 0; i < merges->count; i++) {
    if (i > 0 && list[i].score != list[i - 1].score) number++;
    merges->data[i] = list[i].merge;
    merges->data[i].rank = (uint32_t)number;
  }
}

/* Appends the merges in the order of their ranks: the pair of the highest score merges first (Kudo and Richardson,
 * "SentencePiece", section 3.1), and pieces of one score have one rank. `out` is released with lp_vec_free. Reports
 * LP_FAILED, with `out` empty, when merges cannot make the pieces: a piece has a character that is not a piece. */
static lp_status find_merges(const lp_gguf *file, const lp_gguf_pieces *pieces, lp_gguf_merges *out, lp_diag *diag) {
  finder f = {.file = file, .pieces = pieces, .arena = lp_arena_create(), .ids = lp_map_create(), .diag = diag};
  lp_status status = LP_OK;
  add_ids(&f);
  for (size_t i = 0; i < lp_map_count(f.ids) && status == LP_OK; i++) {
    const uint32_t *id = lp_map_value_at(f.ids, i);
    status = add_pairs(&f, *id, out);
  }
  if (status == LP_OK)
    rank(&f, out);
  else
    lp_vec_free(out);
  lp_map_free(f.ids);
  lp_arena_free(f.arena);
  return status;
}

/* Of tokenizer.ggml.token_type. */
static const double unknown_type = 2, control_type = 3, user_defined_type = 4, byte_type = 6;

/* The rules by which text is split before merging, for each value of tokenizer.ggml.pre: the settings of the models'
 * own tokenizer.json. */
typedef struct {
  const char *names;       /* with a space before and after each */
  const char *patterns[4]; /* one after the other, up to the first NULL; none: ByteLevel's own */
  bool digits, nfc, ignore_merges;
  bool begins; /* a text begins with the first token unless the file says otherwise, as in llama.cpp */
} splitter;

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CL100K(digits) CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits REST
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K(ending, digits)                                                                                          \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ending             \
  "|\\p{N}" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const splitter splitters[] = {
    {.names = " gpt-2 phi-2 a.x-4.0 mellum "},
    {.names = " olmo mpt ", .nfc = true},
    {.names = " smollm starcoder refact minerva-7b ", .digits = true},
    {.names = " qwen2 deepseek-r1-qwen stablelm2 megrez ", .patterns = {CL100K("")}, .nfc = true},
    {.names = " llama-bpe llama3 llama-v3 falcon3 pixtral midm-2.0 ",
     .patterns = {CL100K("{1,3}")},
     .ignore_merges = true,
     .begins = true},
    {.names = " dbrx smaug-bpe ", .patterns = {CL100K("{1,3}")}},
    {.names = " gpt-4o llama4 ", .patterns = {O200K(CONTRACTION "?", "{1,3}")}},
    {.names = " deepseek-coder ",
     .patterns = {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"},
     .digits = true},
    {.names = " tekken ", .patterns = {O200K("", "")}, .ignore_merges = true, .begins = true}};

typedef struct {
  const lp_gguf *file;
  const lp_gguf_value *tokens, *types, *merges, *scores;
  const splitter *split; /* NULL: SentencePiece */
  lp_arena *arena;
  lp_diag *diag;
} reader;

static const char *text_at(const reader *r, const lp_gguf_value *list, uint64_t index) {
  return lp_arena_strndup(r->arena, list->text[index].data, list->text[index].size);
}

/* SentencePiece marks a space with U+2581. Tokens that users defined hold it in some files and the space in others. */
static const char *token_at(const reader *r, uint64_t index) {
  static const char mark[] = "\xE2\x96\x81";
  const char *text = text_at(r, r->tokens, index), *found;
  if (r->split || lp_gguf_number(r->types, index) != user_defined_type) return text;
  while ((found = strstr(text, mark)))
    text = lp_arena_format(r->arena, "%.*s %s", (int)(found - text), text, found + strlen(mark));
  return text;
}

static lp_status missing(const reader *r, const char *what) {
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "the tokenizer's list of %s is missing or damaged", what);
}

static lp_status find_splitter(reader *r) {
  const char *pre = lp_gguf_string(r->file, "tokenizer.ggml.pre");
  const char *name = lp_arena_format(r->arena, " %s ", pre ? pre : "");
  for (size_t i = 0; i < LP_COUNT(splitters); i++)
    if (strstr(splitters[i].names, name)) r->split = &splitters[i];
  if (r->split && pre && !strchr(pre, ' ')) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "tokenizers with the pre-tokenizer '%.40s' are not supported",
                  pre ? pre : "");
}

/* Refuses the settings of SentencePiece that change the text before it is split. */
static lp_status check_sentencepiece(const reader *r) {
  static const char *const keys[] = {"tokenizer.ggml.remove_extra_whitespaces", "tokenizer.ggml.precompiled_charsmap"};
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    const lp_gguf_value *value = lp_gguf_find(r->file, keys[i]);
    if (value && (value->is_array ? value->count > 0 : lp_gguf_bool(r->file, keys[i], true)))
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "a tokenizer with '%s' is not supported", keys[i]);
  }
  return LP_OK;
}

static bool is_list(const reader *r, const lp_gguf_value *list) {
  return list && list->is_array && list->data && list->count == r->tokens->count;
}

static lp_status read_lists(reader *r) {
  const char *model = lp_gguf_string(r->file, "tokenizer.ggml.model");
  r->tokens = lp_gguf_find(r->file, "tokenizer.ggml.tokens");
  r->types = lp_gguf_find(r->file, "tokenizer.ggml.token_type");
  r->merges = lp_gguf_find(r->file, "tokenizer.ggml.merges");
  r->scores = lp_gguf_find(r->file, "tokenizer.ggml.scores");
  bool pieces = model && lp_streq(model, "llama");
  if (!pieces && (!model || !lp_streq(model, "gpt2")))
    return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                    "tokenizers of the kind '%.40s' are not supported, only 'gpt2' (byte-level BPE) and 'llama' "
                    "(SentencePiece)",
                    model ? model : "");
  LP_TRY(pieces ? check_sentencepiece(r) : find_splitter(r));
  if (!r->tokens || !r->tokens->text) return missing(r, "tokens");
  if (!is_list(r, r->types)) return missing(r, "types");
  if (pieces) return is_list(r, r->scores) ? LP_OK : missing(r, "scores");
  return r->merges && r->merges->text ? LP_OK : missing(r, "merges");
}

/* ---- tokenizer.json ---------------------------------------------------------------------------------------------- */

/* A mark stands before every text. */
static bool has_prefix(const reader *r) {
  return lp_gguf_bool(r->file, "tokenizer.ggml.add_space_prefix", true);
}

static void put_added_tokens(const reader *r, lp_json_writer *w) {
  lp_json_put_array(w, "added_tokens");
  for (uint64_t i = 0; i < r->tokens->count; i++) {
    double type = lp_gguf_number(r->types, i);
    if (type != control_type && type != user_defined_type && (r->split || type != unknown_type)) continue;
    lp_json_put_object(w, NULL);
    lp_json_put_integer(w, "id", (int64_t)i);
    lp_json_put_text(w, "content", token_at(r, i));
    static const char *const off[] = {"single_word", "lstrip", "rstrip"};
    for (size_t k = 0; k < LP_COUNT(off); k++)
      lp_json_put_bool(w, off[k], false);
    /* SentencePiece looks for them in the text with marks, where no mark stands before the token's own text. */
    lp_json_put_bool(w, "normalized", !r->split && type == user_defined_type && !has_prefix(r));
    lp_json_put_bool(w, "special", type != user_defined_type);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_byte_level(lp_json_writer *w, const char *key, bool own_pattern) {
  lp_json_put_object(w, key);
  lp_json_put_text(w, "type", "ByteLevel");
  lp_json_put_bool(w, "add_prefix_space", false);
  lp_json_put_bool(w, "trim_offsets", true);
  lp_json_put_bool(w, "use_regex", own_pattern);
  lp_json_put_end(w);
}

static void put_split(lp_json_writer *w, const char *pattern) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "type", "Split");
  lp_json_put_object(w, "pattern");
  lp_json_put_text(w, "Regex", pattern);
  lp_json_put_end(w);
  lp_json_put_text(w, "behavior", "Isolated");
  lp_json_put_bool(w, "invert", false);
  lp_json_put_end(w);
}

static void put_digits(lp_json_writer *w) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "type", "Digits");
  lp_json_put_bool(w, "individual_digits", true);
  lp_json_put_end(w);
}

static void put_pre_tokenizer(const reader *r, lp_json_writer *w) {
  const char *const *patterns = r->split->patterns;
  lp_json_put_object(w, "pre_tokenizer");
  lp_json_put_text(w, "type", "Sequence");
  lp_json_put_array(w, "pretokenizers");
  for (size_t i = 0; i < LP_COUNT(r->split->patterns) && patterns[i]; i++)
    put_split(w, patterns[i]);
  if (r->split->digits) put_digits(w);
  put_byte_level(w, NULL, !patterns[0]);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

/* A token that stands before or after every text; -1: none. */
static int64_t end_of(const reader *r, const char *asks, bool otherwise, const char *key) {
  int64_t id = lp_gguf_i64(r->file, key, -1);
  bool valid = id >= 0 && (uint64_t)id < r->tokens->count;
  return valid && lp_gguf_bool(r->file, asks, otherwise) ? id : -1;
}

static void put_template_token(const reader *r, lp_json_writer *w, int64_t id, int64_t type) {
  if (id < 0) return;
  lp_json_put_object(w, NULL);
  lp_json_put_object(w, "SpecialToken");
  lp_json_put_text(w, "id", token_at(r, (uint64_t)id));
  lp_json_put_integer(w, "type_id", type);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

static void put_template(const reader *r, lp_json_writer *w, const char *key, const int64_t ends[2]) {
  static const char *const names[] = {"A", "B"};
  lp_json_put_array(w, key);
  for (int64_t i = 0; i < (lp_streq(key, "pair") ? 2 : 1); i++) {
    put_template_token(r, w, ends[0], i);
    lp_json_put_object(w, NULL);
    lp_json_put_object(w, "Sequence");
    lp_json_put_text(w, "id", names[i]);
    lp_json_put_integer(w, "type_id", i);
    lp_json_put_end(w);
    lp_json_put_end(w);
    put_template_token(r, w, ends[1], i);
  }
  lp_json_put_end(w);
}

static void put_special_tokens(const reader *r, lp_json_writer *w, const int64_t ends[2]) {
  lp_json_put_object(w, "special_tokens");
  for (int i = 0; i < 2; i++) {
    if (ends[i] < 0 || (i == 1 && ends[1] == ends[0])) continue;
    const char *token = token_at(r, (uint64_t)ends[i]);
    lp_json_put_object(w, token);
    lp_json_put_text(w, "id", token);
    lp_json_put_array(w, "ids");
    lp_json_put_integer(w, NULL, ends[i]);
    lp_json_put_end(w);
    lp_json_put_array(w, "tokens");
    lp_json_put_text(w, NULL, token);
    lp_json_put_end(w);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* Puts the tokens at both ends of every text, where the file asks for them. */
static void put_post_processor(const reader *r, lp_json_writer *w) {
  bool begins = r->split ? r->split->begins : true;
  const int64_t ends[] = {end_of(r, "tokenizer.ggml.add_bos_token", begins, "tokenizer.ggml.bos_token_id"),
                          end_of(r, "tokenizer.ggml.add_eos_token", false, "tokenizer.ggml.eos_token_id")};
  if (ends[0] < 0 && ends[1] < 0) {
    if (r->split) put_byte_level(w, "post_processor", true);
    return;
  }
  lp_json_put_object(w, "post_processor");
  lp_json_put_text(w, "type", "TemplateProcessing");
  put_template(r, w, "single", ends);
  put_template(r, w, "pair", ends);
  put_special_tokens(r, w, ends);
  lp_json_put_end(w);
}

/* ---- SentencePiece ----------------------------------------------------------------------------------------------- */

static void put_replace(lp_json_writer *w, const char *from, const char *to) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "type", "Replace");
  lp_json_put_object(w, "pattern");
  lp_json_put_text(w, "String", from);
  lp_json_put_end(w);
  lp_json_put_text(w, "content", to);
  lp_json_put_end(w);
}

static void put_step(lp_json_writer *w, const char *type) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "type", type);
  lp_json_put_end(w);
}

/* Puts the normalizer and the decoder: a space becomes the mark, one stands before the text, and bytes are text. */
static void put_sentencepiece(const reader *r, lp_json_writer *w) {
  static const char mark[] = "\xE2\x96\x81";
  bool prefix = has_prefix(r);
  lp_json_put_object(w, "normalizer");
  lp_json_put_text(w, "type", "Sequence");
  lp_json_put_array(w, "normalizers");
  if (prefix) {
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "type", "Prepend");
    lp_json_put_text(w, "prepend", mark);
    lp_json_put_end(w);
  }
  put_replace(w, " ", mark);
  lp_json_put_end(w);
  lp_json_put_end(w);
  lp_json_put_object(w, "decoder");
  lp_json_put_text(w, "type", "Sequence");
  lp_json_put_array(w, "decoders");
  put_replace(w, mark, " ");
  put_step(w, "ByteFallback");
  put_step(w, "Fuse");
  if (prefix) {
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "type", "Strip");
    lp_json_put_text(w, "content", " ");
    lp_json_put_integer(w, "start", 1);
    lp_json_put_integer(w, "stop", 0);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
  lp_json_put_end(w);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

/* Puts the merges that the scores of pieces mean, and their ranks, a key of llmpart's own: pieces of one score merge
 * from the left to the right, which the order of the merges cannot say. */
static lp_status put_score_merges(const reader *r, lp_json_writer *w) {
  lp_gguf_merges merges = {0};
  lp_gguf_pieces pieces = {r->tokens, r->types, r->scores};
  LP_TRY(find_merges(r->file, &pieces, &merges, r->diag));
  lp_json_put_array(w, "merges");
  for (size_t i = 0; i < merges.count; i++) {
    lp_json_put_flat_array(w, NULL);
    lp_json_put_text(w, NULL, text_at(r, r->tokens, merges.data[i].left));
    lp_json_put_text(w, NULL, text_at(r, r->tokens, merges.data[i].right));
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
  lp_json_put_flat_array(w, "merge_ranks");
  for (size_t i = 0; i < merges.count; i++)
    lp_json_put_integer(w, NULL, merges.data[i].rank);
  lp_json_put_end(w);
  lp_vec_free(&merges);
  return LP_OK;
}

static void put_listed_merges(const reader *r, lp_json_writer *w) {
  lp_json_put_array(w, "merges");
  for (uint64_t i = 0; i < r->merges->count; i++)
    lp_json_put_text(w, NULL, text_at(r, r->merges, i));
  lp_json_put_end(w);
}

/* The unknown token of the vocabulary; NULL: none. */
static const char *unknown_token(const reader *r) {
  for (uint64_t i = 0; i < r->tokens->count && !r->split; i++)
    if (lp_gguf_number(r->types, i) == unknown_type) return token_at(r, i);
  return NULL;
}

static bool has_bytes(const reader *r) {
  for (uint64_t i = 0; i < r->tokens->count && !r->split; i++)
    if (lp_gguf_number(r->types, i) == byte_type) return true;
  return false;
}

static lp_status put_model(const reader *r, lp_json_writer *w) {
  lp_json_put_object(w, "model");
  lp_json_put_text(w, "type", "BPE");
  lp_json_put_text(w, "unk_token", unknown_token(r));
  lp_json_put_bool(w, "fuse_unk", r->split == NULL);
  lp_json_put_bool(w, "byte_fallback", has_bytes(r));
  lp_json_put_bool(w, "ignore_merges", r->split && r->split->ignore_merges);
  lp_json_put_object(w, "vocab");
  for (uint64_t i = 0; i < r->tokens->count; i++)
    lp_json_put_integer(w, token_at(r, i), (int64_t)i);
  lp_json_put_end(w);
  if (r->split)
    put_listed_merges(r, w);
  else
    LP_TRY(put_score_merges(r, w));
  lp_json_put_end(w);
  return LP_OK;
}

lp_status lp_gguf_tokenizer(const lp_gguf *file, lp_buf *out, lp_diag *diag) {
  reader r = {.file = file, .arena = file->arena, .diag = diag};
  LP_TRY(read_lists(&r));
  lp_json_writer w = lp_json_writer_begin(out, (lp_json_style){0});
  lp_json_put_object(&w, NULL);
  lp_json_put_text(&w, "version", "1.0");
  put_added_tokens(&r, &w);
  if (r.split && r.split->nfc) {
    lp_json_put_object(&w, "normalizer");
    lp_json_put_text(&w, "type", "NFC");
    lp_json_put_end(&w);
  }
  if (r.split) {
    put_pre_tokenizer(&r, &w);
    put_byte_level(&w, "decoder", true);
  } else {
    put_sentencepiece(&r, &w);
  }
  put_post_processor(&r, &w);
  LP_TRY(put_model(&r, &w));
  lp_json_put_end(&w);
  return LP_OK;
}
