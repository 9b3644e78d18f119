/* The models that look words up: Unigram, WordPiece and WordLevel, with the behaviour of PyPI `tokenizers`. */
#include "runtime/tokenizer/words.h"

#include "base/utf8.h"

static lp_status missing_unknown(lp_diag *diag) {
  return lp_error(diag, LP_LOC_NONE,
                  "the text has a character that the tokenizer does not know, and it has no token "
                  "for unknown characters");
}

static lp_status push_unknown(const lp_vocab *vocab, lp_tokens *out, lp_diag *diag) {
  if (vocab->unk < 0) return missing_unknown(diag);
  lp_vec_push(out, vocab->unk);
  return LP_OK;
}

/* ---- WordLevel and WordPiece ------------------------------------------------------------------------------------- */

lp_status lp_word_level_encode(const lp_vocab *vocab, const char *word, size_t size, lp_tokens *out, lp_diag *diag) {
  int32_t id = lp_vocab_find(vocab, word, size);
  if (id < 0) return push_unknown(vocab, out, diag);
  lp_vec_push(out, id);
  return LP_OK;
}

static bool walk_text(lp_prefix_walk *walk, const char *text) {
  for (; *text != '\0'; text++)
    if (!lp_prefix_step(walk, (uint8_t)*text)) return false;
  return true;
}

/* The longest token at the start of text[size], which continues a word unless `first`; -1: none. */
static int32_t longest_piece(const lp_vocab *vocab, const char *text, size_t size, bool first, size_t *length) {
  lp_prefix_walk walk = {.set = &vocab->prefixes};
  int32_t id = -1;
  if (!first && vocab->prefix && !walk_text(&walk, vocab->prefix)) return -1;
  for (size_t at = 0; at < size && lp_prefix_step(&walk, (uint8_t)text[at]); at++) {
    if (!walk.found) continue;
    id = walk.found->value;
    *length = at + 1;
  }
  return id;
}

lp_status lp_wordpiece_encode(const lp_vocab *vocab, const char *word, size_t size, lp_tokens *out, lp_diag *diag) {
  size_t begin = out->count, length = 0;
  if (lp_utf8_count(word, size) > vocab->longest_word) return push_unknown(vocab, out, diag);
  for (size_t at = 0; at < size; at += length) {
    int32_t id = longest_piece(vocab, word + at, size - at, at == 0, &length);
    if (id < 0) {
      out->count = begin;
      return push_unknown(vocab, out, diag);
    }
    lp_vec_push(out, id);
  }
  return LP_OK;
}

/* ---- Unigram: the most probable segmentation, by Viterbi (Kudo 2018) --------------------------------------------- */

#define UNKNOWN_PENALTY 10.0

/* The best path from the start to a byte of the text. */
typedef struct {
  double score;
  size_t start; /* start of its last token; SIZE_MAX: no path yet */
  int32_t id;
} path;

static void offer(path *at, double score, size_t start, int32_t id) {
  if (at->start == SIZE_MAX || score > at->score) *at = (path){score, start, id};
}

/* Extends the path to `start` by every token that begins there; `length` is that of the character there. */
static void offer_tokens(const lp_vocab *vocab, const char *text, size_t size, size_t start, size_t length,
                         path *paths) {
  lp_prefix_walk walk = {.set = &vocab->prefixes};
  bool has_character = false;
  double score = paths[start].score;
  for (size_t at = start; at < size && lp_prefix_step(&walk, (uint8_t)text[at]); at++) {
    if (!walk.found) continue;
    offer(&paths[at + 1], score + vocab->scores.data[walk.found->value], start, walk.found->value);
    has_character = has_character || at + 1 - start == length;
  }
  if (!has_character) offer(&paths[start + length], score + (vocab->least_score - UNKNOWN_PENALTY), start, vocab->unk);
}

/* Encodes a stretch that no token covers: as bytes if the vocabulary has them, else as one unknown token. */
static void push_uncovered(const lp_vocab *vocab, const char *text, size_t size, lp_tokens *out) {
  int32_t id = lp_vocab_find(vocab, text, size);
  bool bytes = id < 0 && vocab->byte_fallback;
  for (size_t i = 0; bytes && i < size; i++)
    bytes = vocab->byte_token[(uint8_t)text[i]] >= 0;
  for (size_t i = 0; bytes && i < size; i++)
    lp_vec_push(out, vocab->byte_token[(uint8_t)text[i]]);
  if (!bytes) lp_vec_push(out, id >= 0 ? id : vocab->unk);
}

/* Pushes the tokens of the best path; adjacent unknown tokens become one. */
static void push_path(const lp_vocab *vocab, const char *text, size_t size, const path *paths, lp_tokens *out) {
  LP_VEC(size_t) ends = {0}; /* from the last token to the first */
  for (size_t at = size; at > 0; at = paths[at].start)
    lp_vec_push(&ends, at);
  for (size_t i = ends.count; i-- > 0;) {
    size_t start = paths[ends.data[i]].start;
    if (paths[ends.data[i]].id != vocab->unk) {
      lp_vec_push(out, paths[ends.data[i]].id);
      continue;
    }
    while (i > 0 && paths[ends.data[i - 1]].id == vocab->unk)
      i--;
    push_uncovered(vocab, text + start, ends.data[i] - start, out);
  }
  lp_vec_free(&ends);
}

lp_status lp_unigram_encode(const lp_vocab *vocab, const char *text, size_t size, lp_tokens *out, lp_diag *diag) {
  LP_OWNED(lp_free_at) path *paths = lp_alloc((size + 1) * sizeof *paths);
  lp_status status = LP_OK;
  for (size_t i = 1; i <= size; i++)
    paths[i].start = SIZE_MAX;
  uint32_t code;
  for (size_t at = 0, length; at < size; at += length) {
    length = lp_utf8_next(text + at, &code);
    offer_tokens(vocab, text, size, at, length, paths);
  }
  for (size_t at = size; at > 0 && status == LP_OK; at = paths[at].start)
    if (paths[at].id < 0) status = missing_unknown(diag);
  if (status == LP_OK) push_path(vocab, text, size, paths, out);
  return status;
}
