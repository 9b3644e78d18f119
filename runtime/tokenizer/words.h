/* The models that look words up (words.c). Each appends the ids of one word, which is valid UTF-8 and not empty, and
 * fails when a part of the word is unknown and the vocabulary has no unknown token. */
#pragma once

#include "runtime/tokenizer/vocab.h"

/* WordLevel: the word's token, or the unknown token. */
LP_MUST_USE lp_status lp_word_level_encode(const lp_vocab *vocab, const char *word, size_t size, lp_tokens *out,
                                           lp_diag *diag);
/* WordPiece: repeatedly the longest token; the whole word is unknown if a part of it is. */
LP_MUST_USE lp_status lp_wordpiece_encode(const lp_vocab *vocab, const char *word, size_t size, lp_tokens *out,
                                          lp_diag *diag);
/* Unigram: the tokens with the largest sum of scores. */
LP_MUST_USE lp_status lp_unigram_encode(const lp_vocab *vocab, const char *text, size_t size, lp_tokens *out,
                                        lp_diag *diag);
