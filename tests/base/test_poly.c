#include "base/poly.h"
#include "tests/base/expect.h"
#include "tests/suite.h"

static lp_arena *arena;
static lp_symbols symbols;

static void setup(void) {
  arena = lp_arena_create();
  lp_symbols_init(&symbols, arena);
  lp_symbols_intern(&symbols, "b");
  lp_symbols_intern(&symbols, "s");
  lp_symbols_intern(&symbols, "p");
}

static void teardown(void) {
  lp_symbols_free(&symbols);
  lp_arena_free(arena);
}

LP_CASE(.setup = setup, .teardown = teardown);

static const lp_poly *poly(const char *text) {
  const lp_poly *out = NULL;
  ck_assert_msg(lp_poly_parse(arena, &symbols, text, &out, NULL, LP_LOC_NONE) == LP_OK, "'%s' is refused", text);
  return out;
}

static void prints(const lp_poly *a, const char *wanted) {
  ck_assert_ptr_nonnull(a);
  lp_buf text = {0};
  lp_poly_print(a, &symbols, &text);
  ck_assert_str_eq(lp_buf_text(&text), wanted);
  lp_buf_free(&text);
}

LP_TEST(text_in_canonical_order) {
  prints(poly("0"), "0");
  prints(poly("p + 2*b*s"), "2*b*s + p");
  prints(poly(" s*b*2+p-p + 3 "), "2*b*s + 3");
  prints(poly("-b"), "-b");
}

LP_TEST(powers_and_parentheses) {
  prints(poly("s*s*b"), "b*s^2");
  prints(poly("(s + p)*(s - p)"), "s^2 - p^2");
  prints(poly("(s + p)^2"), "s^2 + 2*s*p + p^2");
  prints(poly("-2^2"), "-4");
  prints(poly("-b^2"), "-b^2");
  prints(poly("-b^3 - (b^2)^0"), "-b^3 - 1");
  prints(poly("5^1"), "5");
  prints(poly("past_sequence_length + sequence.length1"), "past_sequence_length + sequence.length1");
}

LP_TEST(numbers_to_the_limit) {
  prints(poly("-9223372036854775808"), "-9223372036854775808");
  prints(poly("9223372036854775807*b"), "9223372036854775807*b");
  prints(poly("-9223372036854775808*b - 1"), "-9223372036854775808*b - 1");
}

LP_TEST(bad_text_is_refused) {
  static const char *const bad[] = {"",
                                    "+",
                                    "b +",
                                    "b b",
                                    "2b",
                                    "b**s",
                                    "(b",
                                    "b)",
                                    "b^",
                                    "b^s",
                                    "b^7",
                                    "b/2",
                                    "@",
                                    "b^-1",
                                    "()",
                                    "9223372036854775808",
                                    ".b",
                                    "3*9e9",
                                    "b*s*p*b*s*p*b",
                                    "9223372036854775807 + 1",
                                    "((((((((((((((((((((((((((((((((((((((((b"};
  for (size_t i = 0; i < LP_COUNT(bad); i++) {
    lp_diag *diag = lp_diag_create();
    const lp_poly *out = NULL;
    ck_assert_msg(lp_poly_parse(arena, &symbols, bad[i], &out, diag, LP_LOC_FILE("f")) == LP_FAILED, "'%s' is read",
                  bad[i]);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    lp_diag_free(diag);
  }
}

/* A small generator, so that a failure can be repeated. */
static uint32_t random_below(uint32_t *state, uint32_t bound) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % bound;
}

static const lp_poly *random_poly(uint32_t *state, int terms, uint32_t degree) {
  const lp_poly *sum = lp_poly_const(arena, 0);
  for (int i = 0; i < terms; i++) {
    const lp_poly *term = lp_poly_const(arena, (int64_t)random_below(state, 19) - 9);
    for (uint32_t d = random_below(state, degree + 1); d > 0; d--)
      term = lp_poly_mul(arena, term, lp_poly_symbol(arena, (lp_symbol)(1 + random_below(state, 3))));
    sum = lp_poly_add(arena, sum, term);
  }
  return sum;
}

LP_TEST(random_identities) {
  uint32_t state = 7;
  for (int round = 0; round < 2000; round++) {
    const lp_poly *a = random_poly(&state, 4, 2), *b = random_poly(&state, 3, 2), *c = random_poly(&state, 3, 2);
    const lp_poly *ab = lp_poly_mul(arena, a, b);
    ck_assert(lp_poly_equal(ab, lp_poly_mul(arena, b, a)));
    ck_assert(lp_poly_equal(lp_poly_add(arena, a, b), lp_poly_add(arena, b, a)));
    ck_assert(lp_poly_equal(lp_poly_mul(arena, lp_poly_add(arena, a, b), c),
                            lp_poly_add(arena, lp_poly_mul(arena, a, c), lp_poly_mul(arena, b, c))));
    ck_assert(lp_poly_equal(lp_poly_sub(arena, lp_poly_add(arena, a, b), b), a));
    if (b->count) ck_assert(lp_poly_equal(lp_poly_div(arena, ab, b), a));
    int64_t at[3] = {(int64_t)random_below(&state, 9), (int64_t)random_below(&state, 9), 5};
    ck_assert_int_eq(lp_poly_eval(ab, at, 3), lp_poly_eval(a, at, 3) * lp_poly_eval(b, at, 3));
    double real[3] = {(double)at[0], (double)at[1], (double)at[2]};
    ck_assert_double_eq(lp_poly_eval_f64(ab, real, 3), (double)lp_poly_eval(ab, at, 3));
    lp_buf text = {0};
    lp_poly_print(ab, &symbols, &text);
    ck_assert(lp_poly_equal(poly(lp_buf_text(&text)), ab));
    lp_buf_free(&text);
    lp_arena_reset(arena);
    lp_symbols_free(&symbols); /* the names went with the arena */
    lp_symbols_init(&symbols, arena);
    lp_symbols_intern(&symbols, "b");
    lp_symbols_intern(&symbols, "s");
    lp_symbols_intern(&symbols, "p");
  }
}

LP_TEST(division) {
  prints(lp_poly_div(arena, poly("b*s*576"), poly("64*b")), "9*s");
  prints(lp_poly_div(arena, poly("s^2 - p^2"), poly("s + p")), "s - p");
  prints(lp_poly_div(arena, poly("0"), poly("s")), "0");
  ck_assert_ptr_null(lp_poly_div(arena, poly("s + 1"), poly("s")));
  ck_assert_ptr_null(lp_poly_div(arena, poly("3*s"), poly("2")));
  ck_assert_ptr_null(lp_poly_div(arena, poly("s"), poly("0")));
  ck_assert_ptr_null(lp_poly_div(arena, poly("s"), poly("s^2")));
  ck_assert_ptr_null(lp_poly_div(arena, poly("-9223372036854775808"), poly("-1")));
}

LP_TEST(substitution) {
  prints(lp_poly_subst(arena, poly("s^2*b + s + 1"), 2, poly("p + 1")), "b*p^2 + 2*b*p + b + p + 2");
  prints(lp_poly_subst(arena, poly("s - p"), 2, poly("p")), "0");
  prints(lp_poly_subst(arena, poly("b"), 2, poly("0")), "b");
  ck_assert_ptr_null(lp_poly_subst(arena, poly("s^4"), 2, poly("s^2")));
}

LP_TEST(overflow_is_null_and_stays_null) {
  const lp_poly *big = lp_poly_const(arena, INT64_MAX);
  ck_assert_ptr_null(lp_poly_add(arena, big, lp_poly_const(arena, 1)));
  ck_assert_ptr_null(lp_poly_mul(arena, big, lp_poly_const(arena, 2)));
  ck_assert_ptr_null(lp_poly_scale(arena, lp_poly_const(arena, INT64_MIN), -1));
  ck_assert_ptr_null(lp_poly_mul(arena, poly("b^3"), poly("s^4")));
  ck_assert_ptr_null(lp_poly_add(arena, NULL, big));
  ck_assert_ptr_null(lp_poly_mul(arena, big, NULL));
  ck_assert_ptr_null(lp_poly_div(arena, NULL, big));
  ck_assert_ptr_null(lp_poly_subst(arena, NULL, 1, big));
  ck_assert(!lp_poly_equal(NULL, NULL) && !lp_poly_equal(big, NULL));
  ck_assert(!lp_poly_ge(arena, NULL, big) && !lp_poly_is_const(NULL, NULL) && !lp_poly_has(NULL, 1));
}

LP_TEST(questions) {
  int64_t value = 0;
  ck_assert(lp_poly_is_const(poly("7"), &value) && value == 7);
  ck_assert(lp_poly_is_const(poly("b - b"), &value) && value == 0);
  ck_assert(!lp_poly_is_const(poly("b"), NULL));
  ck_assert(lp_poly_has(poly("b*s"), 2) && !lp_poly_has(poly("b*s"), 3));
  ck_assert(lp_poly_ge(arena, poly("2*b + s"), poly("b")) && !lp_poly_ge(arena, poly("b"), poly("s")));
  int64_t at[3] = {INT64_MAX, INT64_MAX, 2};
  ck_assert_int_eq(lp_poly_eval(poly("b*s"), at, 3), INT64_MAX);
  ck_assert_int_eq(lp_poly_eval(poly("-b*s"), at, 3), INT64_MIN);
  ck_assert_int_eq(lp_poly_eval(poly("b + s"), at, 3), INT64_MAX);
}

LP_TEST(symbols_have_names) {
  ck_assert_uint_eq(lp_symbols_find(&symbols, "s"), 2);
  ck_assert_uint_eq(lp_symbols_find(&symbols, "unknown"), 0);
  ck_assert_uint_eq(lp_symbols_intern(&symbols, "s"), 2);
  ck_assert_str_eq(lp_symbols_name(&symbols, 3), "p");
  ck_assert_ptr_null(lp_poly_symbol(arena, 0));
}
