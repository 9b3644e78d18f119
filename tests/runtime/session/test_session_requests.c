/* Requests at their limits: numbers that are refused, tokens that end a generation, and inputs that are idle or do not
 * agree with each other. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/session/session.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static lp_diag *diag;
static lp_arena *arena;
static lp_bundle *bundle;
static int32_t prompts[TOY_BATCH * TOY_PROMPT];

static void setup(void) {
  diag = lp_diag_create();
  arena = lp_arena_create();
  bundle = toy_bundle_make(&(toy_placement){.prefill = "ddccdd"}, LP_LOAD_ALL);
  toy_prompts(prompts);
}
static void teardown(void) {
  lp_bundle_free(bundle);
  lp_arena_free(arena);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- generation -------------------------------------------------------------------------------------------------- */

static lp_status generate(int64_t batch, int64_t most, lp_generation *out) {
  const lp_generate_options options = {.sampling = {.top_p = 1}, .max_tokens = most, .threads = 1};
  lp_session *session = NULL;
  *out = (lp_generation){0};
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_OK);
  lp_status status = lp_session_generate(session, prompts, batch, TOY_PROMPT, NULL, NULL, out, diag);
  lp_session_close(session);
  return status;
}

LP_TEST(numbers_that_are_refused) {
  lp_generation made;
  ck_assert_int_eq(generate(1, -1, &made), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "-1 tokens to generate");
  lp_diag_clear(diag);
  ck_assert_int_eq(generate(INT64_C(1) << 31, 1, &made), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "a batch of 2147483648 sequences");
}

/* A token of the model's list ends a sequence, and is its last one; the other sequences go on. */
LP_TEST(stops) {
  lp_generation all, one;
  ck_assert_int_eq(generate(2, TOY_MADE, &all), LP_OK);
  int32_t stop = all.tokens.data[3].token;
  int64_t ends[2] = {TOY_MADE, TOY_MADE};
  for (int sequence = 0; sequence < 2; sequence++)
    for (int64_t i = TOY_MADE - 1; i >= 0; i--)
      if (all.tokens.data[TOY_MADE * sequence + i].token == stop) ends[sequence] = i + 1;
  ck_assert_int_le(ends[0], 4);
  bundle->manifest.stops = &stop;
  bundle->manifest.stop_count = 1;
  ck_assert_int_eq(generate(2, TOY_MADE, &one), LP_OK);
  ck_assert_int_eq(one.generated, ends[0] > ends[1] ? ends[0] : ends[1]);
  for (int sequence = 0; sequence < 2; sequence++)
    for (int64_t i = 0; i < one.generated; i++)
      ck_assert_int_eq(one.tokens.data[one.generated * sequence + i].token,
                       i < ends[sequence] ? all.tokens.data[TOY_MADE * sequence + i].token : -1);
  lp_generation_free(&one);
  ck_assert_int_eq(generate(1, TOY_MADE, &one), LP_OK);
  ck_assert_int_eq(one.generated, ends[0]);
  lp_generation_free(&one);
  lp_generation_free(&all);
  bundle->manifest.stop_count = 0;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static int64_t ids[10] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35};

/* Runs over the ids and, with `count` 2, a second input "more" of the given length. */
static lp_status run_data(const char *program, size_t count, int64_t length, lp_data *out) {
  const lp_data inputs[] = {
      {.name = "input_ids", .dtype = "i64", .rank = 2, .shape = {2, 5}, .data = ids, .size = sizeof ids},
      {.name = "more", .dtype = "i64", .rank = 1, .shape = {length}, .data = ids, .size = (size_t)length * 8}};
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, &(lp_generate_options){.threads = 1}, &session, diag), LP_OK);
  lp_status status = lp_session_run(session, program, inputs, count, out, diag);
  lp_session_close(session);
  return status;
}

/* A second input of one axis, which no step reads. */
static void add_input(lp_port ports[2], const lp_poly *length) {
  ports[0] = bundle->manifest.inputs[0];
  ports[1] = (lp_port){.tensor = {.name = "more", .dtype = LP_DT_I64, .rank = 1, .shape = {length}}};
  bundle->manifest.inputs = ports;
  bundle->manifest.input_count = 2;
}

LP_LOOP_TEST(a_second_input, 0, 6) {
  const lp_poly *s = lp_poly_symbol(arena, LP_SYM_S + 1), *two = lp_poly_const(arena, 2);
  const struct {
    const lp_poly *length;
    size_t given;
    int64_t is;
    const char *refusal;
  } rows[] = {
      {s, 2, 5, NULL},
      {s, 2, 6, "axis 0 of input 'more' is 6, wanted 5"},
      {lp_poly_mul(arena, two, s), 2, 10, NULL},
      {lp_poly_add(arena, two, s), 2, 8, "axis 0 of input 'more' is 8, wanted 7"},
      {s, 1, 0, "input 'more' is not given"},
      {two, 1, 0, NULL}, /* of a constant size, and no step reads it */
  };
  lp_port ports[2];
  lp_data output = {0};
  add_input(ports, rows[_i].length);
  ck_assert_int_eq(run_data(NULL, rows[_i].given, rows[_i].is, &output), rows[_i].refusal ? LP_FAILED : LP_OK);
  if (rows[_i].refusal) ck_assert_ptr_nonnull(strstr(toy_error(diag), rows[_i].refusal));
  free(output.data);
}

/* Without a name the only program runs, whatever it is called. */
LP_TEST(the_only_program) {
  lp_data output = {0};
  ck_assert(lp_bundle_has_caches(bundle));
  bundle->manifest.programs[0].name = "encode";
  ck_assert_int_eq(run_data(NULL, 1, 0, &output), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(toy_error(diag), "no program 'prefill'"));
  bundle->manifest.program_count = 1;
  ck_assert_int_eq(run_data(NULL, 1, 0, &output), LP_OK);
  free(output.data);
}

LP_TEST(a_worker_that_is_not_there) {
  const lp_place_address worker = {.address = "unix:/nowhere/1"};
  ck_assert_int_eq(lp_worker_greet(bundle, &worker, &(lp_link_security){0}, 1000, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "cannot reach the cloud at unix:/nowhere/1: No such file or directory");
}
