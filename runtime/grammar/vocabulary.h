/* The bytes of a model's tokens, and a trie of them. Knows no tokenizer. */
#pragma once

#include "base/base.h"

/* A prefix of tokens. Nodes lie in preorder, so that a walk that leaves out a subtree goes on at its `end`. */
typedef struct {
  uint32_t end;
  int32_t token;       /* the first with these bytes; -1: none has */
  uint32_t byte : 8;   /* the last of the prefix */
  uint32_t depth : 24; /* bytes before it */
} lp_trie_node;

/* A token is plain if it is a piece of a JSON string's value that needs no escape: whole characters in UTF-8, none of
 * them a quote, a backslash or a control character. Most tokens are. A slice is about the plain tokens of up to `most`
 * characters: where a grammar takes that many plain characters, whichever they are, it takes all of these tokens, and
 * only the others are looked up one by one. */
typedef struct {
  int32_t most;               /* 0: no token is in the slice, and the trie has all of them */
  uint64_t *tokens;           /* [words] a bit for each token of the slice */
  LP_VEC(lp_trie_node) other; /* a trie of the tokens that are not in the slice */
} lp_slice;

enum { LP_SLICES = 3, LP_SLICE_MOST = 32 };

/* Immutable once it is made. The tries lack tokens without bytes, and those that end a text. */
typedef struct {
  int32_t size;
  size_t words;         /* of 64 bits, for a bit for each token */
  size_t depth;         /* bytes of the longest token */
  lp_buf bytes;         /* of all tokens, one after the other */
  LP_VEC(size_t) end;   /* [size] of each token's bytes */
  LP_VEC(int32_t) last; /* tokens that end a text, and may come where it is complete */
  int32_t *same; /* [size] another token with the same bytes; -1: there is none, or it comes earlier in the list */
  lp_slice slice[LP_SLICES]; /* from the longest to the one that is empty */
} lp_vocabulary;

lp_vocabulary *lp_vocabulary_begin(void);
void lp_vocabulary_add(lp_vocabulary *vocabulary, const char *bytes, size_t size, bool is_last); /* the next token */
void lp_vocabulary_end(lp_vocabulary *vocabulary);                                               /* makes the tries */
void lp_vocabulary_free(lp_vocabulary *vocabulary);                                              /* NULL is allowed */
const char *lp_vocabulary_bytes(const lp_vocabulary *vocabulary, int32_t token, size_t *size);
