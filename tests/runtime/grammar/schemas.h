/* Random schemas and vocabularies, for tests and the fuzz target of grammars. */
#ifndef GRAMMAR_SCHEMAS_H
#define GRAMMAR_SCHEMAS_H

#include "runtime/grammar/masks.h"

/* Random numbers below a limit. */
typedef struct {
  uint64_t seed, drawn;
} dice;
uint32_t dice_below(dice *of, uint32_t limit);

/* Appends a schema of those that lp_grammar_of_schema takes, within `depth` others. */
void schemas_append(dice *of, int depth, lp_buf *out);
lp_grammar *schemas_grammar(const char *schema); /* NULL: it is refused */
/* Tokens of one byte for all bytes, and `words` longer ones, some of them equal, some without bytes, and some that end
 * a text. */
lp_vocabulary *schemas_vocabulary(dice *of, int words);

#endif
