/* Names of symbols, and polynomials as text. */
#include "base/base.h"
#include "base/poly.h"

/* ---- symbols ---- */

void lp_symbols_init(lp_symbols *symbols, lp_arena *arena) {
  *symbols = (lp_symbols){.arena = arena};
}

void lp_symbols_free(lp_symbols *symbols) {
  lp_vec_free(&symbols->names);
}

lp_symbol lp_symbols_find(const lp_symbols *symbols, const char *name) {
  for (size_t i = 0; i < symbols->names.count; i++)
    if (strcmp(symbols->names.data[i], name) == 0) return (lp_symbol)(i + 1);
  return 0;
}

lp_symbol lp_symbols_intern(lp_symbols *symbols, const char *name) {
  lp_symbol found = lp_symbols_find(symbols, name);
  if (found || symbols->names.count == LP_MAX_NAMED_SYMBOLS) return found;
  lp_vec_push(&symbols->names, lp_arena_strdup(symbols->arena, name));
  return (lp_symbol)symbols->names.count;
}

const char *lp_symbols_name(const lp_symbols *symbols, lp_symbol symbol) {
  return symbols->names.data[symbol - 1];
}

/* ---- printing ---- */

static void print_monomial(const lp_term *t, const lp_symbols *symbols, lp_buf *out) {
  for (int i = 0; i < LP_POLY_DEGREE && t->symbol[i];) {
    int power = 1;
    while (i + power < LP_POLY_DEGREE && t->symbol[i + power] == t->symbol[i])
      power++;
    if (i > 0) lp_buf_puts(out, "*");
    lp_buf_puts(out, lp_symbols_name(symbols, t->symbol[i]));
    if (power > 1) lp_buf_printf(out, "^%d", power);
    i += power;
  }
}

void lp_poly_print(const lp_poly *a, const lp_symbols *symbols, lp_buf *out) {
  if (a->count == 0) lp_buf_puts(out, "0");
  for (int32_t i = 0; i < a->count; i++) {
    const lp_term *t = &a->term[i];
    bool negative = t->coef < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)t->coef : (uint64_t)t->coef;
    if (i > 0)
      lp_buf_puts(out, negative ? " - " : " + ");
    else if (negative)
      lp_buf_puts(out, "-");
    if (magnitude != 1 || !t->symbol[0]) lp_buf_printf(out, "%" PRIu64, magnitude);
    if (magnitude != 1 && t->symbol[0]) lp_buf_puts(out, "*");
    print_monomial(t, symbols, out);
  }
}

/* ---- parsing ----
 *   sum    = ['-'] product { ('+' | '-') product }
 *   product = power { '*' power }
 *   power  = (number | name | '(' sum ')') ['^' number]
 */

enum { DEEPEST = 32 };

typedef struct {
  lp_arena *arena;
  lp_symbols *symbols;
  const char *text, *at;
  int depth;
  lp_diag *diag;
  lp_loc loc;
} parser;

static lp_status complain(const parser *p, const char *what) {
  return lp_error(p->diag, p->loc, "'%s' is not a size: %s at offset %td", p->text, what, p->at - p->text);
}

static bool take(parser *p, char wanted) {
  p->at += strspn(p->at, " ");
  if (*p->at != wanted) return false;
  p->at++;
  p->at += strspn(p->at, " ");
  return true;
}

/* The negative of a number, so that the least int64 can be read. */
static lp_status parse_negated_number(parser *p, int64_t *value) {
  *value = 0;
  for (; *p->at >= '0' && *p->at <= '9'; p->at++)
    if (!lp_i64_mul(*value, 10, value) || !lp_i64_add(*value, '0' - *p->at, value))
      return complain(p, "number too large");
  return LP_OK;
}

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static lp_status parse_name(parser *p, const lp_poly **out) {
  const char *start = p->at;
  while (is_name_char(*p->at))
    p->at++;
  lp_buf name = {0};
  lp_buf_append(&name, start, (size_t)(p->at - start));
  lp_symbol symbol = lp_symbols_intern(p->symbols, lp_buf_text(&name));
  lp_buf_free(&name);
  *out = lp_poly_symbol(p->arena, symbol);
  return symbol ? LP_OK : complain(p, "too many symbols");
}

static lp_status parse_sum(parser *p, const lp_poly **out);

/* `sign` is 1 or -1 and multiplies the result. */
static lp_status parse_atom(parser *p, int sign, const lp_poly **out) {
  if (*p->at >= '0' && *p->at <= '9') {
    int64_t value = 0;
    LP_TRY(parse_negated_number(p, &value));
    *out = lp_poly_const(p->arena, value);
    if (sign > 0) *out = lp_poly_scale(p->arena, *out, -1);
    return *out ? LP_OK : complain(p, "number too large");
  }
  if (take(p, '(')) {
    if (++p->depth > DEEPEST) return complain(p, "too many parentheses");
    LP_TRY(parse_sum(p, out));
    p->depth--;
    if (!take(p, ')')) return complain(p, "expected ')'");
  } else if (is_name_char(*p->at) && *p->at != '.') {
    LP_TRY(parse_name(p, out));
  } else {
    return complain(p, "expected a number, a name or '('");
  }
  *out = lp_poly_scale(p->arena, *out, sign);
  return *out ? LP_OK : complain(p, "number too large");
}

static lp_status parse_power(parser *p, int sign, const lp_poly **out) {
  LP_TRY(parse_atom(p, sign, out));
  if (!take(p, '^')) return LP_OK;
  if (*p->at < '0' || *p->at > '9') return complain(p, "expected a power");
  int64_t power = 0;
  LP_TRY(parse_negated_number(p, &power));
  if (power < -LP_POLY_DEGREE) return complain(p, "degree too high");
  /* The sign stands before the power, but is in the base: an even power loses it. */
  const lp_poly *base = *out, *product = lp_poly_const(p->arena, power % 2 == 0 ? sign : 1);
  for (; power < 0; power++)
    product = lp_poly_mul(p->arena, product, base);
  *out = product;
  return product ? LP_OK : complain(p, "degree too high or number too large");
}

static lp_status parse_product(parser *p, int sign, const lp_poly **out) {
  LP_TRY(parse_power(p, sign, out));
  while (take(p, '*')) {
    const lp_poly *factor = NULL;
    LP_TRY(parse_power(p, 1, &factor));
    *out = lp_poly_mul(p->arena, *out, factor);
    if (!*out) return complain(p, "degree too high or number too large");
  }
  return LP_OK;
}

static lp_status parse_sum(parser *p, const lp_poly **out) {
  const lp_poly *sum = lp_poly_const(p->arena, 0);
  int sign = take(p, '-') ? -1 : 1;
  do {
    const lp_poly *product = NULL;
    LP_TRY(parse_product(p, sign, &product));
    sum = lp_poly_add(p->arena, sum, product);
    if (!sum) return complain(p, "number too large");
    sign = take(p, '+') ? 1 : take(p, '-') ? -1 : 0;
  } while (sign);
  *out = sum;
  return LP_OK;
}

lp_status lp_poly_parse(lp_arena *arena, lp_symbols *symbols, const char *text, const lp_poly **out, lp_diag *diag,
                        lp_loc loc) {
  parser p = {.arena = arena, .symbols = symbols, .text = text, .at = text, .diag = diag, .loc = loc};
  p.at += strspn(p.at, " ");
  LP_TRY(parse_sum(&p, out));
  p.at += strspn(p.at, " ");
  return *p.at ? complain(&p, "unexpected text") : LP_OK;
}
