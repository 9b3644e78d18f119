/* The oracle of the tests of grammars: every byte of every token is followed on its own. Possibilities beyond its
 * limits are given up. */
#ifndef SLOW_GRAMMAR_H
#define SLOW_GRAMMAR_H

#include "runtime/grammar/grammar.h"

typedef struct slow_grammar slow_grammar;
slow_grammar *slow_grammar_begin(const lp_grammar *grammar);
void slow_grammar_free(slow_grammar *state);
/* Tells whether some text of the grammar continues with these bytes. */
bool slow_grammar_allows(slow_grammar *state, const char *bytes, size_t size);
void slow_grammar_take(slow_grammar *state, const char *bytes, size_t size); /* bytes that it allows */
bool slow_grammar_gave_up(const slow_grammar *grammar); /* it has come to a limit, and may refuse too much */
bool slow_grammar_can_end(const slow_grammar *state);   /* the bytes so far are a text of it */

#endif
