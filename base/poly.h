/* Integer polynomials over named symbols. */
#pragma once

#include "base/base.h"

/* An integer polynomial over named symbols: the sizes and costs of a model in batch b, new tokens s, past tokens p.
 * Immutable; lives in the arena it was made in. Kept in canonical form (terms sorted by monomial, no zero coefficient),
 * so that equality is structural. Symbols are small positive numbers; a table maps them to names. */
typedef uint16_t lp_symbol; /* 1..; 0 is none */

enum { LP_POLY_DEGREE = 6, LP_POLY_TERMS = 256 };

typedef struct {
  int64_t coef;
  lp_symbol symbol[LP_POLY_DEGREE]; /* ascending, repeated for powers, padded with 0 at the end */
} lp_term;

typedef struct lp_poly {
  int32_t count;
  lp_term term[];
} lp_poly;

/* Names of symbols, in order of first use. `name[0]` is unused. Owned by its user; names live in `arena`. */
typedef struct {
  lp_arena *arena;
  LP_VEC(const char *) names; /* names.data[symbol - 1] */
} lp_symbols;

void lp_symbols_init(lp_symbols *symbols, lp_arena *arena);
void lp_symbols_free(lp_symbols *symbols);
enum { LP_MAX_NAMED_SYMBOLS = 4096 };
lp_symbol lp_symbols_intern(lp_symbols *symbols, const char *name);     /* 0 when LP_MAX_NAMED_SYMBOLS are there */
lp_symbol lp_symbols_find(const lp_symbols *symbols, const char *name); /* 0 when absent */
const char *lp_symbols_name(const lp_symbols *symbols, lp_symbol symbol);

const lp_poly *lp_poly_const(lp_arena *arena, int64_t value);
const lp_poly *lp_poly_symbol(lp_arena *arena, lp_symbol symbol);
/* NULL when a coefficient overflows, the degree exceeds LP_POLY_DEGREE or the terms LP_POLY_TERMS; NULL operands give
 * NULL. */
const lp_poly *lp_poly_add(lp_arena *arena, const lp_poly *a, const lp_poly *b);
const lp_poly *lp_poly_sub(lp_arena *arena, const lp_poly *a, const lp_poly *b);
const lp_poly *lp_poly_mul(lp_arena *arena, const lp_poly *a, const lp_poly *b);
const lp_poly *lp_poly_scale(lp_arena *arena, const lp_poly *a, int64_t factor);
/* a / b when it divides exactly as polynomials, else NULL. */
const lp_poly *lp_poly_div(lp_arena *arena, const lp_poly *a, const lp_poly *b);
/* `a` with `symbol` replaced by `by`. */
const lp_poly *lp_poly_subst(lp_arena *arena, const lp_poly *a, lp_symbol symbol, const lp_poly *by);
bool lp_poly_equal(const lp_poly *a, const lp_poly *b);  /* NULL is unknown: it equals nothing */
bool lp_poly_is_const(const lp_poly *a, int64_t *value); /* `value` may be NULL */
bool lp_poly_has(const lp_poly *a, lp_symbol symbol);
lp_symbol lp_poly_lone_symbol(const lp_poly *a); /* the symbol that `a` is; 0: it is none */
/* Tells whether a >= b for all symbols >= 0, by a sufficient test: every coefficient of a - b is >= 0. */
bool lp_poly_ge(lp_arena *arena, const lp_poly *a, const lp_poly *b);
/* values[symbol - 1]; symbols past `count` are an assertion. Saturates at INT64_MAX / INT64_MIN. */
int64_t lp_poly_eval(const lp_poly *a, const int64_t *values, size_t count);
double lp_poly_eval_f64(const lp_poly *a, const double *values, size_t count);
/* "2*b*s^2 + p": terms from the highest degree, `0` when empty. Parse reads what print writes, in any order, with or
 * without spaces, and sums in parentheses; it interns the names it meets. */
void lp_poly_print(const lp_poly *a, const lp_symbols *symbols, lp_buf *out);
LP_MUST_USE lp_status lp_poly_parse(lp_arena *arena, lp_symbols *symbols, const char *text, const lp_poly **out,
                                    lp_diag *diag, lp_loc loc);
