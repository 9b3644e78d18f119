/* The models that look words up (words.c). Each appends the ids of one word, which is valid UTF-8 and not empty. It
 * fails when a part of the word is unknown and the vocabulary has no token for that. */
#ifndef LP_TOKENIZER_WORDS_H
#define LP_TOKENIZER_WORDS_H

#include "runtime/tokenizer/vocab.h"

/* The word or the unknown token. */
LP_MUST_USE lp_status lp_word_level_encode(const lp_vocab *vocab, const char *word, size_t size, lp_tokens *out,
                                           lp_diag *diag);
/* The longest token again and again; all of the word is unknown when a part is. */
LP_MUST_USE lp_status lp_wordpiece_encode(const lp_vocab *vocab, const char *word, size_t size, lp_tokens *out,
                                          lp_diag *diag);
/* The tokens whose scores have the largest sum. */
LP_MUST_USE lp_status lp_unigram_encode(const lp_vocab *vocab, const char *text, size_t size, lp_tokens *out,
                                        lp_diag *diag);

#endif
