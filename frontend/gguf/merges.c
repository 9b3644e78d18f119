/* Finds the merges of a SentencePiece vocabulary: see merges.h. */
#include "frontend/gguf/merges.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

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

lp_status lp_gguf_merges_find(const lp_gguf *file, const lp_gguf_pieces *pieces, lp_gguf_merges *out, lp_diag *diag) {
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
