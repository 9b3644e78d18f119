/* The inputs of an encoder: what a source becomes in each type of element, and the sources that are refused. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/session/source.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { TEXT = LP_SYM_COUNT, SYMBOLS }; /* the symbol of the encoder's length follows those of the contract */

static lp_arena *arena;
static lp_diag *diag;
static lp_bundle bundle;
static lp_port ports[3];
static lp_session session;
static lp_source source;
static lp_source_inputs made;

static void add_input(const char *name, lp_role role, lp_element dtype, const lp_poly *length) {
  ports[bundle.manifest.input_count++] = (lp_port){
      .tensor = {.name = name,
                 .dtype = dtype,
                 .rank = 2,
                 .shape = {lp_poly_symbol(arena, LP_SYM_B + 1), length ? length : lp_poly_symbol(arena, TEXT + 1)}},
      .role = role};
}

static void setup(void) {
  arena = lp_arena_create();
  diag = lp_diag_create();
  bundle.manifest = (lp_manifest){.file = "m.json", .inputs = ports, .symbol_count = SYMBOLS, .vocab = 10, .pad = 7};
  session = (lp_session){.bundle = &bundle, .options = {.source = &source}};
  add_input("ids", LP_ROLE_TOKENS, LP_DT_I64, lp_poly_symbol(arena, LP_SYM_S + 1));
}

static void teardown(void) {
  lp_diag_free(diag);
  lp_arena_free(arena);
}

LP_CASE(.setup = setup, .teardown = teardown);

static void give_text(const int32_t *tokens, const int64_t *lengths) {
  source = (lp_source){.tokens = tokens, .lengths = lengths};
}

/* Reads the source for two sequences; with `refusal` it must fail so. */
static void read_source(const char *refusal) {
  lp_status status = lp_source_read(&session, 2, &made, diag);
  ck_assert_int_eq(status, refusal ? LP_FAILED : LP_OK);
  if (refusal) ck_assert_str_eq(toy_error(diag), refusal);
}

/* The numbers of an input as text. */
static void expect_numbers(int index, size_t element, bool real, const char *wanted) {
  lp_buf found = {0};
  const lp_span *span = &made.input[index];
  for (size_t at = 0; at < span->size; at += element) {
    const char *from = (const char *)span->data + at;
    int64_t wide = 0;
    float number = 0;
    memcpy(real ? (void *)&number : (void *)&wide, from, element);
    lp_buf_printf(&found, at > 0 ? " %g" : "%g", real ? (double)number : (double)wide);
  }
  ck_assert_str_eq(lp_buf_text(&found), wanted);
  lp_buf_free(&found);
}

LP_LOOP_TEST(tokens_are_padded_and_masked, 0, 5) {
  static const struct {
    lp_element dtype;
    size_t bytes;
  } types[] = {{LP_DT_I64, 8}, {LP_DT_I32, 4}, {LP_DT_F32, 4}, {LP_DT_BOOL, 1}, {LP_DT_I8, 1}};
  bool real = types[_i].dtype == LP_DT_F32;
  give_text((const int32_t[]){0, 9, 4}, (const int64_t[]){1, 2});
  add_input("text", LP_ROLE_SOURCE_TOKENS, types[_i].dtype, NULL);
  add_input("mask", LP_ROLE_SOURCE_MASK, types[_i].dtype, NULL);
  read_source(NULL);
  ck_assert_int_eq(made.count, 3);
  ck_assert_ptr_null(made.input[0].data); /* the decoder's tokens are not the source's */
  ck_assert_uint_eq(made.input[1].size, 4 * types[_i].bytes);
  expect_numbers(1, types[_i].bytes, real, "0 7 9 4");
  expect_numbers(2, types[_i].bytes, real, "1 0 1 1");
  for (int i = 0; i < SYMBOLS; i++)
    ck_assert_int_eq(made.sym[i], i == TEXT ? 2 : 0);
  lp_source_inputs_free(&made);
}

LP_TEST(features_are_copied) {
  static const float features[] = {0.5f, -1, 2, 3, 4, 5};
  source = (lp_source){.features = features, .feature_count = 6};
  add_input("frames", LP_ROLE_SOURCE_FEATURES, LP_DT_F32, lp_poly_const(arena, 3));
  read_source(NULL);
  ck_assert_uint_eq(made.input[1].size, sizeof features);
  expect_numbers(1, 4, true, "0.5 -1 2 3 4 5");
  ck_assert_int_eq(made.sym[TEXT], 0);
  lp_source_inputs_free(&made);
}

LP_TEST(features_of_another_size_are_refused) {
  static const float features[5];
  source = (lp_source){.features = features, .feature_count = 5};
  add_input("frames", LP_ROLE_SOURCE_FEATURES, LP_DT_F32, lp_poly_const(arena, 3));
  read_source("input 'frames' takes 24 bytes for this batch, found 20");
  lp_source_inputs_free(&made);
}

/* Only a length that is a symbol of its own is taken from the text. */
LP_LOOP_TEST(lengths_that_a_text_does_not_set, 0, 4) {
  const lp_poly *text = lp_poly_symbol(arena, TEXT + 1);
  const lp_poly *lengths[] = {lp_poly_const(arena, 3), lp_poly_scale(arena, text, 2), lp_poly_mul(arena, text, text),
                              lp_poly_add(arena, text, lp_poly_const(arena, 1))};
  static const char *const wanted[] = {"48", "0", "0", "16"};
  char refusal[80];
  give_text((const int32_t[]){1, 2, 3}, (const int64_t[]){1, 2});
  add_input("text", LP_ROLE_SOURCE_TOKENS, LP_DT_I64, lengths[_i]);
  (void)snprintf(refusal, sizeof refusal, "input 'text' takes %s bytes for this batch, found 32", wanted[_i]);
  read_source(refusal);
  ck_assert_int_eq(made.sym[TEXT], 0);
  lp_source_inputs_free(&made);
}

/* The symbols of the contract are the request's: a text sets none of them. */
LP_TEST(a_text_sets_no_symbol_of_the_contract) {
  give_text((const int32_t[]){1, 2}, (const int64_t[]){1, 1});
  add_input("text", LP_ROLE_SOURCE_TOKENS, LP_DT_I64, lp_poly_symbol(arena, LP_SYM_COUNT));
  read_source("input 'text' takes 0 bytes for this batch, found 16");
  lp_source_inputs_free(&made);
}

LP_LOOP_TEST(texts_that_are_refused, 0, 6) {
  static const struct {
    int64_t lengths[2];
    int32_t tokens[4];
    int64_t context;
    const char *refusal;
  } rows[] = {
      {{0, 1}, {1}, 0, "sequence 0 of the encoder's text is empty"},
      {{1, -1}, {1}, 0, "sequence 1 of the encoder's text is empty"},
      {{3, 1}, {1, 1, 1, 1}, 2, "a text of 3 tokens exceeds the 2 that the encoder takes"},
      {{2, 2}, {0, 9, 1, 10}, 2, "token 10 lies outside of the vocabulary of 10"},
      {{1, 2}, {0, -1, 1}, 0, "token -1 lies outside of the vocabulary of 10"},
      {{3, 1}, {0, 9, 1, 9}, 3, NULL},
  };
  give_text(rows[_i].tokens, rows[_i].lengths);
  bundle.manifest.source_context = rows[_i].context;
  add_input("text", LP_ROLE_SOURCE_TOKENS, LP_DT_I64, NULL);
  read_source(rows[_i].refusal);
  lp_source_inputs_free(&made);
}

LP_LOOP_TEST(sources_and_models_that_do_not_fit, 0, 6) {
  static const int32_t tokens[] = {1, 2};
  static const int64_t lengths[] = {1, 1};
  static const float features[6];
  static const struct {
    lp_role role;
    lp_element dtype;
    bool none, text, features;
    const char *refusal;
  } rows[] = {
      {LP_ROLE_DATA, LP_DT_I64, true, false, false, NULL},
      {LP_ROLE_DATA, LP_DT_I64, false, true, false, "the model has no encoder that could read a source"},
      {LP_ROLE_SOURCE_TOKENS, LP_DT_I64, true, false, false, "the model has an encoder, which needs a text to read"},
      {LP_ROLE_SOURCE_TOKENS, LP_DT_I64, false, false, true, "the model has an encoder, which needs a text to read"},
      {LP_ROLE_SOURCE_FEATURES, LP_DT_F32, false, true, false,
       "the model has an encoder, which needs features to read"},
      {LP_ROLE_SOURCE_FEATURES, LP_DT_F16, false, false, true, "input 'x' is f16, which cannot be made"},
  };
  source = (lp_source){.tokens = rows[_i].text ? tokens : NULL,
                       .lengths = lengths,
                       .features = rows[_i].features ? features : NULL,
                       .feature_count = LP_COUNT(features)};
  if (rows[_i].none) session.options.source = NULL;
  add_input("x", rows[_i].role, rows[_i].dtype, NULL);
  read_source(rows[_i].refusal);
  lp_source_inputs_free(&made);
}

LP_TEST(halves_are_no_numbers_of_tokens) {
  give_text((const int32_t[]){1, 2}, (const int64_t[]){1, 1});
  add_input("text", LP_ROLE_SOURCE_TOKENS, LP_DT_F16, NULL);
  read_source("input 'text' is f16, which cannot be made");
  lp_source_inputs_free(&made);
}
