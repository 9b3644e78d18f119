/* Follows the texts of a grammar. A state is the set of all places in the grammar where a text may be after some bytes.
 * States and the steps between them are found once and remembered, as a deterministic automaton that is built where it
 * is walked (Thompson, "Regular expression search algorithm", 1968; Cox, "Regular expression matching in the wild",
 * 2010).
 *
 * Work is bounded, since grammars come from strangers. A step is a node of the grammar that is visited, or some nodes
 * of a vocabulary's trie, and takes 10 to 50 ns. */
#pragma once

#include <stdatomic.h>

#include "runtime/grammar/grammar.h"

typedef enum {
  LP_MATCH_NO,
  LP_MATCH_YES,
  LP_MATCH_LATER,   /* the steps of this call are used up: call it again with the same arguments */
  LP_MATCH_TOO_MUCH /* a limit is exceeded, and the automaton can do nothing any more */
} lp_match;

/* What all automata of an engine share; the counter may change from any thread. */
typedef struct {
  uint64_t key;        /* of hashes; random, so that nobody can make states that are taken for each other */
  atomic_size_t bytes; /* that the automata hold together */
} lp_match_pool;

/* An automaton belongs to one thread at a time. It has LP_MATCH_SAVED steps at first, and gains LP_MATCH_GAINED with
 * each token that it takes, up to the first number again: a request that needs more ends. Twice as many let a hostile
 * request use twice the time; half as many still allow two looks at a whole vocabulary of 128,000 tokens for each
 * token. */
enum { LP_MATCH_SAVED = 8000000, LP_MATCH_GAINED = 250000 };

typedef struct lp_automaton lp_automaton;
/* `grammar` and `pool` are borrowed; without a pool (NULL) nothing is shared. */
lp_automaton *lp_automaton_create(const lp_grammar *grammar, lp_match_pool *pool);
void lp_automaton_free(lp_automaton *automaton); /* NULL is allowed */
/* Sets the steps of the next calls. `whole`: a step of the automaton that has begun is completed, however many nodes it
 * visits; false: it is begun anew by a later call. */
void lp_automaton_grant(lp_automaton *automaton, int64_t steps, bool whole);
/* Tells whether some text of the grammar continues with these bytes. */
lp_match lp_automaton_allows(lp_automaton *automaton, const char *bytes, size_t size);
/* Takes a token's bytes. LP_MATCH_NO: no text continues so, and none does from now on. */
lp_match lp_automaton_take(lp_automaton *automaton, const char *bytes, size_t size);
bool lp_automaton_can_end(const lp_automaton *automaton); /* the bytes so far are a text of the grammar */
size_t lp_automaton_bytes(const lp_automaton *automaton); /* of memory that it holds */

/* Looks at the states that are nearest to the beginning. LP_MATCH_NO: the grammar has no text; LP_MATCH_TOO_MUCH: one
 * of them exceeds a limit. */
lp_match lp_grammar_explore(const lp_grammar *grammar);

/* ---- states, for the computation of masks ------------------------------------------------------------------------ */

typedef uint32_t lp_match_state;                                /* valid until bytes are taken */
enum { LP_MATCH_DEAD = 0 };                                     /* the state without places */
lp_match_state lp_automaton_now(const lp_automaton *automaton); /* after the bytes so far */
/* Finds the state after another byte. */
lp_match lp_automaton_follow(lp_automaton *automaton, lp_match_state from, uint8_t byte, lp_match_state *to);
/* Tells whether up to `most` plain characters (vocabulary.h) may follow, whichever they are. */
lp_match lp_automaton_takes_plain(lp_automaton *automaton, lp_match_state from, int32_t most);
/* Counts other work: LP_MATCH_YES, or what it has come to. */
lp_match lp_automaton_spend(lp_automaton *automaton, int64_t steps);
/* Names the grammar and the state among all those of the pool. */
typedef struct {
  uint64_t of[4];
} lp_match_name;
lp_match_name lp_automaton_name(const lp_automaton *automaton, lp_match_state state);
