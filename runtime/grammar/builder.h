/* What the files share that make the grammar of a schema. Each rule is built from its end, so that a node's successor
 * exists before it. */
#pragma once

#include "runtime/grammar/grammar.h"

/* Limits: items that a keyword may count, and alternatives; characters of a string beyond its least, where its length
 * is limited, and of one with a pattern; characters that a string may need. */
enum { LP_MOST_COUNT = 1024, LP_MOST_CHARACTERS = 65536, LP_MOST_OF_PATTERN = 512, LP_MOST_LEAST = 1 << 20 };
/* Of strings and lists that were built, those that are looked at for an equal one: alternatives are near each other. */
enum { LP_LOOKED_AT = 128 };

/* The most states of an object that counts its properties. */
enum { LP_MOST_COUNTED = 8192 };
/* The most comparisons of two values, which take half a second. To try a value against a grammar is as much work as 16,
 * and to build that of a pattern as a thousand. */
enum { LP_MOST_TRIED = 1 << 18, LP_TRIED_VALUE = 16, LP_TRIED_PATTERN = 1 << 10 };

/* A schema that was built, or is being built. */
typedef struct {
  const lp_json_value *schema; /* its items: copies of a value share them */
  bool joins;                  /* of what it is joined to, rather than as it stands */
  int32_t node;                /* a split to the rule, so that a rule can call itself before it is complete */
} lp_built;

/* A string or a list that was built: the same again is the same node, so that equal alternatives are one. */
typedef struct {
  const char *text; /* a string's pattern; NULL: none */
  int32_t item;     /* of a list; -1: it has none; -2: it is a string; -3: a key */
  int64_t least, most;
  int32_t node;
} lp_counted;

/* Two schemas, and the one of what both accept (conjunction.c). */
typedef struct {
  const lp_json_value *one, *other, *both;
} lp_pair;

/* A rule's node is -1 where its schema accepts nothing. */
typedef struct lp_builder {
  lp_grammar *grammar;
  lp_json root;
  lp_diag *diag;
  lp_diag *none;   /* why the first schema that accepts nothing does so */
  lp_arena *arena; /* of joined schemas */
  LP_VEC(lp_pair) pairs;
  /* Builds a schema that needs no joining (schema.c). */
  lp_status (*build)(struct lp_builder *b, const lp_json *schema, int depth, int32_t *out);
  int32_t tried; /* comparisons so far */
  LP_VEC(lp_built) rules;
  LP_VEC(lp_counted) counted;
  LP_VEC(int32_t) up_to; /* [n] up to n characters and the end of a string */
  LP_VEC(int32_t) exact; /* [i] rules of 2^i characters */
  int32_t done;          /* the node that ends every rule */
  /* Rules of their own, which call each other. */
  int32_t space, string, character, number, integer, value, object, array;
} lp_builder;

static inline int32_t text(lp_builder *b, const char *of, size_t size, int32_t next) {
  return lp_grammar_text(b->grammar, of, size, next);
}

static inline int32_t call(lp_builder *b, int32_t rule, int32_t next) {
  return lp_grammar_call(b->grammar, rule, next);
}

static inline int32_t either(lp_builder *b, int32_t one, int32_t other) {
  return lp_grammar_split(b->grammar, one, other);
}

static inline int32_t range(lp_builder *b, int low, int high, int32_t next) {
  return lp_grammar_byte(b->grammar, (uint8_t)low, (uint8_t)high, next);
}

/* A rule that can be called before it is defined. */
static inline int32_t declare(lp_builder *b) {
  return either(b, 0, 0);
}

static inline void define(lp_builder *b, int32_t rule, int32_t node) {
  b->grammar->nodes.data[rule].next = b->grammar->nodes.data[rule].other = node;
}

/* ---- plain JSON (plain.c) ---------------------------------------------------------------------------------------- */

/* Defines the rules of any JSON value. */
void lp_builder_define_plain(lp_builder *b);
void lp_builder_free(lp_builder *b); /* leaves the grammar */
/* Between `least` and `most` characters and the end of a string; `most` < 0: any number. */
int32_t lp_builder_string(lp_builder *b, int64_t least, int64_t most);
/* ITEM, ITEM, ... between brackets. The first `first_count` items have rules of their own, further ones the rule `item`
 * (-1: there are none). `least` and `most` count the items; `most` < 0: any number. */
typedef struct {
  char open, close;
  const int32_t *first;
  size_t first_count;
  int32_t item;
  int64_t least, most;
} lp_builder_list;
int32_t lp_builder_items(lp_builder *b, const lp_builder_list *list);
/* The same without `first`: equal lists that are near each other have one node. */
int32_t lp_builder_same_items(lp_builder *b, const lp_builder_list *list);
int32_t lp_builder_find(const lp_builder *b, const lp_counted *wanted); /* -1: it is not there */
/* Any of the nodes, in a tree of splits, since an expansion follows chains of limited length. `count` > 0. */
int32_t lp_builder_any_of(lp_builder *b, const int32_t *node, size_t count);

/* ---- scalars (literals.c, strings.c, numbers.c) ------------------------------------------------------------------ */

/* One of the values that have the type, if one is given, as JSON without spaces. */
LP_MUST_USE lp_status lp_builder_literals(lp_builder *b, const lp_json *schema, const lp_json *values,
                                          const lp_json *type, int32_t *out);
/* A string, with the keywords minLength, maxLength, pattern and format of the schema. */
LP_MUST_USE lp_status lp_builder_text(lp_builder *b, const lp_json *schema, int32_t *out);
/* A string with a pattern, which the value at `at` has. */
LP_MUST_USE lp_status lp_builder_pattern(lp_builder *b, const lp_json *at, const char *pattern, int32_t *out);
/* A number or an integer (`whole`), with minimum, maximum, their exclusive forms, and multipleOf. */
LP_MUST_USE lp_status lp_builder_number(lp_builder *b, const lp_json *schema, bool whole, int32_t *out);

/* ---- schemas (reading.c, alternatives.c, conjunction.c) ---------------------------------------------------------- */

/* "#", "#/$defs/NAME" and other paths of keys; NULL: there is nothing. */
const lp_json_value *lp_builder_target(const lp_builder *b, const char *path);
/* What its $ref leads to, joined with what stands beside it. */
lp_json lp_builder_resolve(lp_builder *b, const lp_json *schema, int depth);
bool lp_builder_requires(const lp_json *schema, const char *key);
/* The value of `const`, or one of `enum`; NULL: the schema lists no more. */
const lp_json_value *lp_builder_literal(const lp_json *schema, size_t index);
/* The alternatives of `oneOf` with what keeps each from fitting another too. Fails where nothing is found that does. */
LP_MUST_USE lp_status lp_builder_exclude(lp_builder *b, const lp_json *list, int depth, const lp_json_value **out);
/* Reads a keyword that counts, as far as `most`, which stands for all beyond it where `caps`. */
LP_MUST_USE lp_status lp_builder_count(lp_builder *b, const lp_json *schema, const char *key, bool caps, int64_t most,
                                       int64_t *out);

LP_MUST_USE lp_status lp_builder_too_large(lp_builder *b, const lp_json *at); /* fails, with the limits by name */
bool lp_builder_is_equal(lp_builder *of, const lp_json_value *a, const lp_json_value *b);
/* Notes why a schema accepts nothing, and sets *out to -1. */
LP_MUST_USE lp_status lp_builder_none(lp_builder *b, const lp_json *schema, const char *why, int32_t *out);
bool lp_builder_accepts(lp_builder *b, int32_t node, const char *text); /* a rule's texts have this one */
LP_MUST_USE lp_status lp_builder_check_keywords(lp_builder *b, const lp_json *schema);
/* Joins what stands in a schema beside each other: keywords, references, alternatives. *out is false, a list of values,
 * a list of alternatives, or neither; it lives as long as the builder. */
LP_MUST_USE lp_status lp_builder_conjoin(lp_builder *b, const lp_json *schema, int depth, const lp_json_value **out);
/* The schema of the values that another does not accept (negation.c). */
LP_MUST_USE lp_status lp_builder_negate(lp_builder *b, const lp_json *schema, const lp_json_value **out);
