/* runtime/grammar: the grammars of answers, over bytes, and the tokens that they allow. A grammar is a graph of nodes
 * with calls; schema.c makes it of a JSON schema, and an automaton (automaton.h) follows all of its texts at once.
 * Knows no model and no engine. */
#pragma once

#include "base/json/reader.h"

typedef struct lp_grammar lp_grammar;

/* ---- making (schema.c) ------------------------------------------------------------------------------------------- */

/* A grammar is immutable, and any number of threads may use it. Release it with lp_grammar_free.
 *
 * The texts of the first are JSON values that the schema accepts. An absent `schema` accepts every object. The grammar
 * may have fewer texts than the schema: objects have the listed properties, in their order, and white space is short.
 * A keyword that restricts values and that it cannot follow is refused by name. */
LP_MUST_USE lp_status lp_grammar_of_schema(const lp_json *schema, lp_grammar **out, lp_diag *diag);
/* The texts are {"name": NAME, "arguments": ARGUMENTS} for the functions of a list of tools as in OpenAI's API; `name`
 * NULL: any of them. */
LP_MUST_USE lp_status lp_grammar_of_tools(const lp_json *tools, const char *name, lp_grammar **out, lp_diag *diag);
void lp_grammar_free(lp_grammar *grammar); /* NULL is allowed */

/* ---- building (grammar.c) ---------------------------------------------------------------------------------------- */

typedef enum { LP_NODE_BYTE, LP_NODE_CALL, LP_NODE_SPLIT, LP_NODE_RETURN } lp_node_kind;
typedef struct {
  lp_node_kind kind;
  uint8_t low, high; /* byte: the range that it takes */
  int32_t to;        /* call: the node that it calls */
  int32_t next;      /* byte, call: what follows; split: one way */
  int32_t other;     /* split: the other way */
} lp_node;

struct lp_grammar {
  LP_VEC(lp_node) nodes;
  int32_t root;
  uint64_t digest[2]; /* half of the SHA-256 of all nodes */
};

/* The characters of a JSON string that need no escape, in UTF-8 (RFC 8259, 7; RFC 3629, 4): each form has up to four
 * pairs of a byte's least and greatest value, and zeros after them. */
enum { LP_PLAIN_FORMS = 11 };
extern const int lp_plain_forms[LP_PLAIN_FORMS][8];

enum { LP_GRAMMAR_MOST_NODES = 1 << 18 };
/* Each appends a node and returns its number. Graphs are built from their ends: `next` exists already. */
int32_t lp_grammar_byte(lp_grammar *grammar, uint8_t low, uint8_t high, int32_t next);
int32_t lp_grammar_call(lp_grammar *grammar, int32_t to, int32_t next);
int32_t lp_grammar_split(lp_grammar *grammar, int32_t next, int32_t other);
int32_t lp_grammar_return(lp_grammar *grammar);
int32_t lp_grammar_text(lp_grammar *grammar, const char *text, size_t size, int32_t next);

/* Sets the digest of a grammar that is complete. */
void lp_grammar_sign(lp_grammar *grammar);
