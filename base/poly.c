/* Arithmetic of polynomials. Every operation collects terms in any order and hands them to `canonical`, which sorts and
 * merges them. The order is graded lexicographic, the highest monomial first, so that division can go by leading
 * terms. */
#include "base/poly.h"
#include "base/base.h"

#include <assert.h>

typedef LP_VEC(lp_term) terms;

static int degree_of(const lp_term *t) {
  int degree = 0;
  while (degree < LP_POLY_DEGREE && t->symbol[degree])
    degree++;
  return degree;
}

/* Compares the monomials of two terms; negative when that of `a` comes first. */
static int compare_monomials(const void *a_term, const void *b_term) {
  const lp_term *a = a_term, *b = b_term;
  int by_degree = degree_of(b) - degree_of(a);
  if (by_degree) return by_degree;
  for (int i = 0; i < LP_POLY_DEGREE; i++)
    if (a->symbol[i] != b->symbol[i]) return a->symbol[i] < b->symbol[i] ? -1 : 1;
  return 0;
}

static lp_poly *poly_create(lp_arena *arena, const lp_term *term, size_t count) {
  lp_poly *out = lp_arena_alloc(arena, sizeof(lp_poly) + count * sizeof(lp_term));
  out->count = (int32_t)count;
  if (count) memcpy(out->term, term, count * sizeof(lp_term));
  return out;
}

/* The polynomial of these terms, which are released; NULL when a sum overflows, terms are too many or `valid` is false.
 * The limit keeps a product of sums of many symbols from growing without bound. */
static const lp_poly *canonical(lp_arena *arena, terms *list, bool valid) {
  size_t kept = 0;
  if (list->count) qsort(list->data, list->count, sizeof(lp_term), compare_monomials);
  for (size_t i = 0; valid && i < list->count;) {
    lp_term sum = list->data[i++];
    while (i < list->count && compare_monomials(&sum, &list->data[i]) == 0)
      valid = lp_i64_add(sum.coef, list->data[i++].coef, &sum.coef) && valid;
    if (sum.coef) list->data[kept++] = sum;
  }
  const lp_poly *out = valid && kept <= LP_POLY_TERMS ? poly_create(arena, list->data, kept) : NULL;
  lp_vec_free(list);
  return out;
}

static bool multiply_terms(const lp_term *a, const lp_term *b, lp_term *out) {
  *out = (lp_term){0};
  if (degree_of(a) + degree_of(b) > LP_POLY_DEGREE) return false;
  const lp_symbol *x = a->symbol, *y = b->symbol, *x_end = x + degree_of(a), *y_end = y + degree_of(b);
  for (int i = 0; x < x_end || y < y_end; i++)
    out->symbol[i] = y == y_end || (x < x_end && *x <= *y) ? *x++ : *y++;
  return lp_i64_mul(a->coef, b->coef, &out->coef);
}

const lp_poly *lp_poly_const(lp_arena *arena, int64_t value) {
  return poly_create(arena, &(lp_term){.coef = value}, value != 0);
}

const lp_poly *lp_poly_symbol(lp_arena *arena, lp_symbol symbol) {
  return symbol ? poly_create(arena, &(lp_term){.coef = 1, .symbol = {symbol}}, 1) : NULL;
}

const lp_poly *lp_poly_add(lp_arena *arena, const lp_poly *a, const lp_poly *b) {
  if (!a || !b) return NULL;
  terms list = {0};
  for (int32_t i = 0; i < a->count; i++)
    lp_vec_push(&list, a->term[i]);
  for (int32_t i = 0; i < b->count; i++)
    lp_vec_push(&list, b->term[i]);
  return canonical(arena, &list, true);
}

const lp_poly *lp_poly_sub(lp_arena *arena, const lp_poly *a, const lp_poly *b) {
  return lp_poly_add(arena, a, lp_poly_scale(arena, b, -1));
}

const lp_poly *lp_poly_mul(lp_arena *arena, const lp_poly *a, const lp_poly *b) {
  if (!a || !b) return NULL;
  terms list = {0};
  bool valid = true;
  int64_t factor;
  if (lp_poly_is_const(b, &factor)) return lp_poly_scale(arena, a, factor);
  if (lp_poly_is_const(a, &factor)) return lp_poly_scale(arena, b, factor);
  for (int32_t i = 0; i < a->count; i++) {
    for (int32_t j = 0; j < b->count; j++) {
      lp_term product;
      valid = multiply_terms(&a->term[i], &b->term[j], &product) && valid;
      lp_vec_push(&list, product);
    }
  }
  return canonical(arena, &list, valid);
}

const lp_poly *lp_poly_scale(lp_arena *arena, const lp_poly *a, int64_t factor) {
  if (!a) return NULL;
  lp_poly *out = poly_create(arena, a->term, factor ? (size_t)a->count : 0);
  for (int32_t i = 0; i < out->count; i++)
    if (!lp_i64_mul(out->term[i].coef, factor, &out->term[i].coef)) return NULL;
  return out;
}

static bool divide_terms(const lp_term *a, const lp_term *b, lp_term *out) {
  if (b->coef == -1 ? a->coef == INT64_MIN : a->coef % b->coef != 0) return false;
  *out = (lp_term){.coef = a->coef / b->coef};
  int left = 0, kept = 0, divisor_degree = degree_of(b), degree = degree_of(a);
  for (int i = 0; i < degree; i++)
    if (left < divisor_degree && a->symbol[i] == b->symbol[left])
      left++;
    else
      out->symbol[kept++] = a->symbol[i];
  return left == divisor_degree;
}

const lp_poly *lp_poly_div(lp_arena *arena, const lp_poly *a, const lp_poly *b) {
  if (!a || !b || b->count == 0) return NULL;
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  terms quotient = {0};
  const lp_poly *rest = a;
  while (rest && rest->count) {
    lp_term step;
    if (!divide_terms(&rest->term[0], &b->term[0], &step)) break;
    lp_vec_push(&quotient, step);
    rest = lp_poly_sub(scratch, rest, lp_poly_mul(scratch, poly_create(scratch, &step, 1), b));
  }
  bool exact = rest && rest->count == 0;
  return canonical(arena, &quotient, exact);
}

/* `term` = `rest` x symbol^power; returns the power. */
static int split_power(const lp_term *term, lp_symbol symbol, lp_term *rest) {
  int power = 0, kept = 0;
  *rest = (lp_term){.coef = term->coef};
  for (int i = 0; i < degree_of(term); i++)
    if (term->symbol[i] == symbol)
      power++;
    else
      rest->symbol[kept++] = term->symbol[i];
  return power;
}

const lp_poly *lp_poly_subst(lp_arena *arena, const lp_poly *a, lp_symbol symbol, const lp_poly *by) {
  if (!a || !by) return NULL;
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  terms list = {0};
  bool valid = true;
  for (int32_t i = 0; i < a->count && valid; i++) {
    lp_term rest;
    int power = split_power(&a->term[i], symbol, &rest);
    const lp_poly *product = poly_create(scratch, &rest, 1);
    while (power-- > 0)
      product = lp_poly_mul(scratch, product, by);
    valid = product != NULL;
    for (int32_t j = 0; valid && j < product->count; j++)
      lp_vec_push(&list, product->term[j]);
  }
  return canonical(arena, &list, valid);
}

bool lp_poly_equal(const lp_poly *a, const lp_poly *b) {
  if (!a || !b || a->count != b->count) return false;
  for (int32_t i = 0; i < a->count; i++)
    if (a->term[i].coef != b->term[i].coef || compare_monomials(&a->term[i], &b->term[i]) != 0) return false;
  return true;
}

bool lp_poly_is_const(const lp_poly *a, int64_t *value) {
  if (!a || a->count > 1 || (a->count == 1 && a->term[0].symbol[0])) return false;
  if (value) *value = a->count ? a->term[0].coef : 0;
  return true;
}

lp_symbol lp_poly_lone_symbol(const lp_poly *a) {
  bool lone = a->count == 1 && a->term[0].coef == 1 && a->term[0].symbol[0] && !a->term[0].symbol[1];
  return lone ? a->term[0].symbol[0] : 0;
}

bool lp_poly_has(const lp_poly *a, lp_symbol symbol) {
  lp_term rest;
  for (int32_t i = 0; a && i < a->count; i++)
    if (split_power(&a->term[i], symbol, &rest) > 0) return true;
  return false;
}

bool lp_poly_ge(lp_arena *arena, const lp_poly *a, const lp_poly *b) {
  const lp_poly *difference = lp_poly_sub(arena, a, b);
  if (!difference) return false;
  for (int32_t i = 0; i < difference->count; i++)
    if (difference->term[i].coef < 0) return false;
  return true;
}

static int64_t multiply_saturated(int64_t a, int64_t b) {
  int64_t out = 0;
  if (lp_i64_mul(a, b, &out)) return out;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

int64_t lp_poly_eval(const lp_poly *a, const int64_t *values, size_t count) {
  int64_t sum = 0;
  LP_FOR_EACH(const lp_term, t, a->term, a->count) {
    int64_t product = t->coef;
    for (int j = 0; j < degree_of(t); j++) {
      assert(t->symbol[j] <= count);
      product = multiply_saturated(product, values[t->symbol[j] - 1]);
    }
    if (!lp_i64_add(sum, product, &sum)) sum = product < 0 ? INT64_MIN : INT64_MAX;
  }
  (void)count;
  return sum;
}

double lp_poly_eval_f64(const lp_poly *a, const double *values, size_t count) {
  double sum = 0;
  LP_FOR_EACH(const lp_term, t, a->term, a->count) {
    double product = (double)t->coef;
    for (int j = 0; j < degree_of(t); j++) {
      assert(t->symbol[j] <= count);
      product *= values[t->symbol[j] - 1];
    }
    sum += product;
  }
  (void)count;
  return sum;
}
