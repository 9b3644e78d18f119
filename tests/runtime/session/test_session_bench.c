/* Measuring a session: the parts of a pass, the rows of a benchmark, and what cannot be measured. Times are those of
 * the machine; the tests compare only what must hold between them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/pool.h"
#include "runtime/session/session.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static lp_diag *diag;
static lp_bundle *bundle;
static lp_session *session;

static void setup(void) {
  diag = lp_diag_create();
  bundle = toy_bundle_make(&(toy_placement){.prefill = "ddccdd"}, LP_LOAD_ALL);
  ck_assert_int_eq(
      lp_session_open(bundle, &(lp_generate_options){.threads = 2, .sampling = {.top_p = 1}}, &session, diag), LP_OK);
}
static void teardown(void) {
  lp_session_close(session);
  lp_bundle_free(bundle);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- parts of a pass --------------------------------------------------------------------------------------------- */

/* The names of the parts; they and the rest make up the pass. */
static void expect_parts(int64_t past, int64_t count, int64_t repetitions, const char *wanted) {
  lp_profile profile = {0};
  lp_buf names = {0};
  double sum = 0;
  lp_status status = lp_session_profile(session, 1, past, count, repetitions, &profile, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  for (size_t i = 0; i < profile.parts.count; i++) {
    lp_buf_printf(&names, "%s%s", i > 0 ? " " : "", profile.parts.data[i].name);
    ck_assert(profile.parts.data[i].ms >= 0);
    sum += profile.parts.data[i].ms;
  }
  ck_assert_str_eq(lp_buf_text(&names), wanted);
  ck_assert(profile.total_ms > 0 && profile.other_ms >= 0);
  ck_assert_double_le(fabs(profile.total_ms - profile.other_ms - sum), 1e-6 * profile.total_ms);
  ck_assert_ptr_null(session->watch);
  lp_buf_free(&names);
  lp_vec_free(&profile.parts);
}

#define SEGMENTS "lp_segment_embed lp_segment_0 lp_segment_1 lp_segment_2 lp_segment_3 lp_segment_head"

/* The context has 128 positions; single tokens stay in it wherever they begin. */
LP_LOOP_TEST(parts_of_passes, 0, 8) {
  static const struct {
    int64_t past, count, repetitions;
  } passes[] = {{0, 1, 1}, {0, 128, 4}, {1, 1, 9}, {60, 1, 5}, {127, 1, 5}, {500, 1, 3}, {5, 3, 2}, {126, 2, 3}};
  expect_parts(passes[_i].past, passes[_i].count, passes[_i].repetitions, SEGMENTS);
}

static lp_step *find_run(const char *program, const char *segment) {
  lp_program *in = &bundle->manifest.programs[lp_manifest_program(&bundle->manifest, program)];
  for (int32_t i = 0; i < in->step_count; i++)
    if (in->step[i].kind == LP_STEP_RUN && lp_streq(in->step[i].segment, segment)) return &in->step[i];
  ck_abort_msg("no segment %s", segment);
}

/* A segment of code that was compiled for profiling: two operators. */
static lp_segment_fn *segment_of_two;
static int marks_of_two;
static void run_two(const lp_frame *frame, int64_t thread) {
  for (int i = 0; i < marks_of_two && thread == 0 && frame->clock; i++)
    frame->clock->mark(frame->clock);
  segment_of_two(frame, thread);
}

static void make_two(const char *program) {
  static const char *names[] = {"op.gather", "op.add"};
  lp_step *step = find_run(program, "lp_segment_0");
  segment_of_two = step->run;
  step->run = run_two;
  step->part_count = 2;
  step->part = names;
  marks_of_two = 2;
}

LP_TEST(operators_that_the_code_marks) {
  make_two("prefill");
  expect_parts(0, 7, 3, "lp_segment_embed op.gather op.add lp_segment_1 lp_segment_2 lp_segment_3 lp_segment_head");
}

LP_LOOP_TEST(marks_that_the_manifest_does_not_name, 0, 3) {
  static const int marks[] = {1, 3, 0};
  char wanted[80];
  make_two("decode");
  marks_of_two = marks[_i];
  lp_profile profile;
  ck_assert_int_eq(lp_session_profile(session, 1, 4, 1, 3, &profile, diag), LP_FAILED);
  (void)snprintf(wanted, sizeof wanted, "'lp_segment_0' marks %d parts; the manifest names 2", marks[_i]);
  ck_assert_str_eq(toy_error(diag), wanted);
  ck_assert_uint_eq(profile.parts.count, 0);
  ck_assert_ptr_null(session->watch);
  for (lp_place i = 0; i < 2; i++)
    ck_assert_ptr_null(session->executor[i]->frame.clock);
}

LP_LOOP_TEST(passes_that_do_not_fit, 0, 3) {
  static const struct {
    int64_t past, count;
    const char *refusal;
  } rows[] = {{0, 129, "129 tokens exceed the model's context of 128"},
              {127, 2, "129 tokens exceed the model's context of 128"},
              {128, 1, NULL}}; /* a single token lies before the end */
  lp_profile profile;
  ck_assert_int_eq(lp_session_profile(session, 1, rows[_i].past, rows[_i].count, 3, &profile, diag),
                   rows[_i].refusal ? LP_FAILED : LP_OK);
  ck_assert_str_eq(toy_error(diag), rows[_i].refusal ? rows[_i].refusal : "");
  lp_vec_free(&profile.parts);
}

LP_TEST(passes_over_several_sequences) {
  lp_profile profile;
  ck_assert_int_eq(lp_session_profile(session, 3, 5, 1, 2, &profile, diag), LP_OK);
  ck_assert_int_eq(session->executor[0]->frame.sym[LP_SYM_B], 3);
  lp_vec_free(&profile.parts);
  ck_assert_int_eq(lp_session_profile(session, INT64_C(1) << 28, 0, 1, 1, &profile, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "268435456 sequences of 2 tokens are too many");
}

LP_TEST(parts_of_another_process) {
  lp_wire wire = {0};
  lp_profile profile;
  session->wire[2] = &wire;
  ck_assert_int_eq(lp_session_profile(session, 1, 0, 1, 1, &profile, diag), LP_FAILED);
  session->wire[2] = NULL;
  ck_assert_str_eq(toy_error(diag), "parts are timed in one process only");
}

/* ---- rows of a benchmark ----------------------------------------------------------------------------------------- */

LP_LOOP_TEST(rows_of_a_benchmark, 0, 6) {
  static const struct {
    lp_bench_options asked;
    int rows;
    const char *name[2];
    int64_t tokens[2];
  } rows[] = {
      {{.prompt = 4, .generate = 3, .repetitions = 2}, 2, {"pp4", "tg3"}, {4, 3}},
      {{.prompt = 4, .repetitions = 1}, 1, {"pp4", NULL}, {4, 0}},
      {{.generate = 1, .repetitions = 1}, 1, {"tg1", NULL}, {1, 0}},
      {{.prompt = 2, .generate = 3, .batch = 3, .depth = 5, .repetitions = 2},
       2,
       {"pp2 x 3 @ d5", "tg3 x 3 @ d5"},
       {6, 9}},
      {{.prompt = 1, .generate = 1, .batch = 1, .depth = 127, .repetitions = 1},
       2,
       {"pp1 @ d127", "tg1 @ d127"},
       {1, 1}},
      {{.prompt = 0, .generate = 0, .repetitions = 1}, 0, {NULL, NULL}, {0, 0}},
  };
  int64_t weights = 0, batch = rows[_i].asked.batch > 0 ? rows[_i].asked.batch : 1;
  lp_bench_result found;
  for (lp_place i = 0; i < 2; i++)
    weights += bundle->manifest.side[i].weights->bytes;
  ck_assert_int_eq(lp_session_bench(session, &rows[_i].asked, &found, diag), LP_OK);
  ck_assert_int_eq(found.rows, rows[_i].rows);
  ck_assert_int_eq(found.threads, 2);
  ck_assert_int_eq(found.weight_bytes, weights);
  ck_assert_int_gt(found.peak_bytes, 1 << 20);
  for (int i = 0; i < found.rows; i++) {
    const lp_bench_row *row = &found.row[i];
    bool generates = row->name[0] == 't';
    ck_assert_str_eq(row->name, rows[_i].name[i]);
    ck_assert_int_eq(row->tokens, rows[_i].tokens[i]);
    ck_assert(row->tokens_per_s > 0 && row->deviation >= 0);
    if (rows[_i].asked.repetitions == 1) ck_assert_double_eq(row->deviation, 0);
    double read = generates ? row->tokens_per_s / (double)batch * (double)weights / 1e9 : 0;
    ck_assert(fabs(row->gbytes_per_s - read) <= 1e-9 * read);
  }
}

/* Weights of a side that the bundle lacks do not count. */
LP_TEST(weights_that_are_read) {
  const lp_bench_options asked = {.repetitions = 1};
  lp_bench_result found;
  int64_t device = bundle->manifest.side[0].weights->bytes;
  bundle->manifest.side[1].present = false;
  ck_assert_int_eq(lp_session_bench(session, &asked, &found, diag), LP_OK);
  ck_assert_int_eq(found.weight_bytes, device);
  bundle->manifest.side[1].present = true;
  bundle->manifest.side[1].weights = NULL;
  ck_assert_int_eq(lp_session_bench(session, &asked, &found, diag), LP_OK);
  ck_assert_int_eq(found.weight_bytes, device);
}

static void expect_refusal(const lp_bench_options *asked, const char *refusal) {
  lp_bench_result found;
  lp_diag_clear(diag);
  ck_assert_int_eq(lp_session_bench(session, asked, &found, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), refusal);
  ck_assert_int_eq(found.rows, 0);
}

LP_TEST(benchmarks_that_do_not_fit) {
  expect_refusal(&(lp_bench_options){.prompt = 129, .repetitions = 1}, "129 tokens exceed the model's context of 128");
  expect_refusal(&(lp_bench_options){.prompt = 1, .generate = 2, .depth = 127, .repetitions = 1},
                 "129 tokens exceed the model's context of 128");
  expect_refusal(&(lp_bench_options){.prompt = 7, .batch = 1 << 26, .repetitions = 1},
                 "67108864 sequences of 8 tokens are too many");
  expect_refusal(&(lp_bench_options){.prompt = 7, .batch = INT64_MAX, .repetitions = 1},
                 "9223372036854775807 sequences of 8 tokens are too many");
}

/* Each of these makes it a bundle that generates no text. */
LP_LOOP_TEST(bundles_that_do_not_generate, 0, 6) {
  lp_manifest *manifest = &bundle->manifest;
  if (_i == 0) manifest->programs[lp_manifest_program(manifest, "prefill")].name = "encode";
  if (_i == 1) manifest->programs[lp_manifest_program(manifest, "decode")].name = "encode";
  if (_i == 2) manifest->input_count = 0;
  if (_i == 3) manifest->inputs[0].role = LP_ROLE_DATA;
  if (_i == 4) session->logits = -1;
  if (_i == 5) manifest->vocab = 0;
  static const char refusal[] = "the bundle does not generate text, so there is nothing to measure";
  expect_refusal(&(lp_bench_options){.prompt = 1, .repetitions = 1}, refusal);
  lp_profile profile;
  lp_diag_clear(diag);
  ck_assert_int_eq(lp_session_profile(session, 1, 0, 1, 1, &profile, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), refusal);
}
