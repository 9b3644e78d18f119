/* What tests expect of the grammars of schemas. */
#ifndef GRAMMAR_EXPECT_H
#define GRAMMAR_EXPECT_H

#include "runtime/grammar/grammar.h"

lp_grammar *expect_made(const char *schema, lp_diag *diag); /* NULL: the schema is refused */
/* Tells whether the grammar takes the whole text, byte by byte, as the oracle does. */
bool expect_takes(const lp_grammar *grammar, const char *text);
/* A schema takes the texts of one list, and not those of the other; NULL ends each. */
void expect_texts(const char *schema, const char *const *good, const char *const *bad);
void expect_refused(const char *schema, const char *why); /* with one report that has this text */
#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
