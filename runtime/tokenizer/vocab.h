/* The vocabulary, its merges, and byte pair encoding (bpe.c); words.h has the other models. */
#pragma once

#include "runtime/runtime.h"
#include "runtime/tokenizer/prefixes.h"

typedef struct {
  size_t offset; /* in lp_vocab.text */
  uint32_t size;
  bool known;    /* a token has this id */
  bool in_model; /* false: the id is only in added_tokens */
} lp_token;

typedef struct {
  uint64_t pair; /* left id << 32 | right id */
  uint32_t rank;
  int32_t merged; /* id; -1: free slot */
} lp_merge;

typedef enum { LP_MODEL_BPE, LP_MODEL_UNIGRAM, LP_MODEL_WORDPIECE, LP_MODEL_WORDLEVEL } lp_model_kind;

typedef struct {
  lp_model_kind kind;
  lp_buf text;
  LP_VEC(lp_token) tokens;     /* [id] */
  int32_t *slots;              /* open addressing: id or -1 */
  size_t slot_count;           /* a power of two */
  lp_merge *merges;            /* open addressing */
  size_t merge_slots;          /* a power of two */
  int32_t *low;                /* [0x200] id of the single character, -1: none */
  int32_t byte_token[256];     /* id of <0xNN>, -1: none */
  int32_t unk;                 /* -1: none, and unknown characters are dropped */
  const char *prefix, *suffix; /* prefix of a subword after the first, suffix of the last subword; NULL: none */
  bool fuse_unk, byte_fallback, ignore_merges;
  LP_VEC(double) scores; /* Unigram: [id] logarithm of the probability */
  double least_score;    /* Unigram */
  size_t longest_word;   /* WordPiece: words of more characters are unknown */
  lp_prefixes prefixes;  /* Unigram, WordPiece: the tokens */
} lp_vocab;

enum { LP_VOCAB_MAX = 1 << 22 }; /* larger ids are an error */

void lp_vocab_free(lp_vocab *vocab);
/* Stores the text of a free id below LP_VOCAB_MAX. */
void lp_vocab_set(lp_vocab *vocab, int32_t id, const char *text, size_t size, bool in_model);
/* Builds the lookups; call it after the last token of the model. Returns -1, or the id of a token with the same text as
 * another. */
int32_t lp_vocab_index(lp_vocab *vocab);
/* Builds the set that Unigram and WordPiece search; call it after the last token of any kind. */
void lp_vocab_complete(lp_vocab *vocab);
int32_t lp_vocab_find(const lp_vocab *vocab, const char *text, size_t size); /* model tokens only; -1 */
const char *lp_vocab_text(const lp_vocab *vocab, int32_t id, size_t *size);  /* NULL when unknown */
void lp_vocab_reserve_merges(lp_vocab *vocab, size_t count);
void lp_vocab_add_merge(lp_vocab *vocab, int32_t left, int32_t right, uint32_t rank, int32_t merged);

/* Memory for encoding words, reused for each word. */
typedef struct lp_bpe_scratch lp_bpe_scratch;
lp_bpe_scratch *lp_bpe_scratch_create(void);
void lp_bpe_scratch_free(lp_bpe_scratch *scratch);
/* Appends the ids of one word (valid UTF-8, below 2 GiB). */
void lp_bpe_encode(const lp_vocab *vocab, const char *word, size_t size, lp_bpe_scratch *scratch, lp_tokens *out);
