/* A worker that has all of decode draws ahead of its device: one round trip for an answer, the tokens of an undisturbed
 * run, and none of them lost or doubled when either side ends or the link is cut. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/session/session.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { MADE = 100 };
static const lp_sampling greedy = {.top_p = 1};
static const lp_sampling warm = {.temperature = 0.9, .top_k = 20, .top_p = 0.95, .seed = 7};

static char *dir, *path;
static lp_bundle *bundle;
static toy_worker worker;

static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  if (worker.pid > 0) toy_worker_stop(&worker);
  worker = (toy_worker){0};
  lp_bundle_free(bundle);
  free(path);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

static void begin(const toy_placement *placement) {
  path = toy_bundle_write(dir, "toy", placement);
  bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  worker = toy_worker_start(path, NULL, NULL);
}

static lp_generate_options options_of(lp_sampling sampling) {
  return (lp_generate_options){.cloud = worker.address,
                               .sampling = sampling,
                               .max_tokens = MADE,
                               .ignore_eos = true,
                               .threads = 1,
                               .cloud_timeout_ms = 20000};
}

static lp_generation generate(lp_session *session, int64_t batch, lp_token_sink *sink, void *user) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_session_generate(session, prompts, batch, TOY_PROMPT, sink, user, &made, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  return made;
}

static lp_generation generate_once(const lp_generate_options *options, int64_t batch, lp_token_sink *sink, void *user) {
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, options, &session, NULL), LP_OK);
  lp_generation made = generate(session, batch, sink, user);
  lp_session_close(session);
  return made;
}

/* In this process each token has a walk of its own. */
static lp_generation generate_here(lp_generate_options options, int64_t batch) {
  options.cloud = NULL;
  options.link = NULL;
  return generate_once(&options, batch, NULL, NULL);
}

static void expect_same(const lp_generation *want, const lp_generation *got) {
  ck_assert_int_eq(want->generated, got->generated);
  for (size_t i = 0; i < want->tokens.count; i++)
    ck_assert_msg(want->tokens.data[i].token == got->tokens.data[i].token, "token %zu differs", i);
}

/* ---- the same tokens --------------------------------------------------------------------------------------------- */

static const toy_placement placements[] = {{.prefill = "cccccc", .input_there = true},
                                           {.prefill = "cccccc"},
                                           {.prefill = "ddcccc", .decode = "cccccc"},
                                           {.prefill = "dddddd", .decode = "cccccc"}};
enum { PLACEMENTS = LP_COUNT(placements) };

/* For each: greedy and drawn, one sequence and several, a small window. */
LP_LOOP_TEST(tokens_are_those_of_single_walks, 0, PLACEMENTS * 8) {
  const int how = _i / PLACEMENTS;
  begin(&placements[_i % PLACEMENTS]);
  lp_generate_options options = options_of(how % 2 ? warm : greedy);
  const int64_t batch = how / 2 % 2 ? TOY_BATCH : 1;
  options.ahead = how / 4 ? 3 : 0;
  lp_generation want = generate_here(options, batch), got = generate_once(&options, batch, NULL, NULL);
  expect_same(&want, &got);
  /* A prompt on the device gives the first token there. */
  ck_assert_uint_eq(got.cloud_requests, 1);
  ck_assert_int_eq(got.tokens.data[batch].side, LP_SIDE_CLOUD);
  lp_generation_free(&want);
  lp_generation_free(&got);
}

/* One of three places has all of decode, and the prompt's layers are at two or at itself. */
LP_LOOP_TEST(one_of_three_places_draws_ahead, 0, 2) {
  static const toy_placement three[] = {{.prefill = "222222", .places = 3},
                                        {.prefill = "001122", .decode = "222222", .places = 3}};
  path = toy_bundle_write(dir, "toy", &three[_i]);
  bundle = toy_bundle_load(path, LP_LOAD_ALL);
  toy_places places;
  toy_places_open(path, bundle, &places);
  toy_places_start(&places);
  lp_generate_options options = options_of(warm);
  lp_generation want = generate_here(options, 1);
  options.cloud = NULL;
  options.clouds = places.address;
  options.cloud_count = (size_t)places.count - 1;
  lp_generation got = generate_once(&options, 1, NULL, NULL);
  expect_same(&want, &got);
  ck_assert_uint_eq(got.cloud_requests, _i == 0 ? 1 : 2);
  lp_generation_free(&want);
  lp_generation_free(&got);
  toy_places_close(&places);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* A hundred tokens take one round trip, and not a hundred. */
LP_TEST(an_answer_takes_a_round_trip) {
  static const lp_link_shape slow = {.rtt_ms = 50};
  begin(&placements[0]);
  lp_generate_options options = options_of(greedy);
  options.link = &slow;
  lp_generation made = generate_once(&options, 1, NULL, NULL);
  ck_assert_double_ge(made.ttft_ms, 50);
  ck_assert_double_lt(made.total_ms, 50 * MADE / 4.0); /* on a busy machine */
  lp_generation_free(&made);
}

/* With a window of one token each waits for a round trip. */
LP_TEST(a_window_of_one_waits_for_each) {
  static const lp_link_shape slow = {.rtt_ms = 4};
  begin(&placements[0]);
  lp_generate_options options = options_of(greedy);
  options.link = &slow;
  options.ahead = 1;
  lp_generation made = generate_once(&options, 1, NULL, NULL);
  ck_assert_double_ge(made.total_ms, 4 * MADE);
  ck_assert_uint_eq(made.cloud_requests, 1);
  lp_generation_free(&made);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* The worker draws nothing after the tokens that end a text, so that the session goes on over its connection. */
LP_LOOP_TEST(ends_with_the_text, 0, 2) {
  begin(&placements[_i]);
  lp_generate_options options = options_of(warm);
  lp_generation all = generate_here(options, 1);
  int32_t stop = all.tokens.data[MADE / 2].token;
  size_t length = 1;
  while (all.tokens.data[length - 1].token != stop)
    length++;
  bundle->manifest.stops = &stop;
  bundle->manifest.stop_count = 1;
  options.ignore_eos = false;
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  for (int i = 0; i < 2; i++) {
    lp_generation made = generate(session, 1, NULL, NULL);
    ck_assert_int_eq(made.generated, (int64_t)length);
    ck_assert_uint_eq(made.cloud_requests, 1);
    ck_assert(lp_session_is_connected(session));
    lp_generation_free(&made);
  }
  lp_session_close(session);
  bundle->manifest.stop_count = 0;
  lp_generation_free(&all);
}

static void stop_after(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  int *left = user;
  if (--left[0] == 0) lp_flag_set(&left[1]);
}

/* What is drawn beyond a stop is given up, and the session generates again. */
LP_TEST(cancelled_in_mid_stream) {
  begin(&placements[0]);
  int state[2] = {10, 0};
  lp_generate_options options = options_of(greedy);
  options.stop = &state[1];
  options.ahead = 40;
  lp_generation want = generate_here(options_of(greedy), 1);
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  for (int i = 0; i < 3; i++) {
    state[0] = 10, state[1] = 0;
    lp_generation made = generate(session, 1, stop_after, state);
    ck_assert_int_eq(made.generated, 10);
    for (int k = 0; k < 10; k++)
      ck_assert_int_eq(made.tokens.data[k].token, want.tokens.data[k].token);
    lp_generation_free(&made);
  }
  state[0] = INT32_MAX, state[1] = 0;
  lp_generation whole = generate(session, 1, stop_after, state);
  expect_same(&want, &whole);
  lp_generation_free(&whole);
  lp_generation_free(&want);
  lp_session_close(session);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

typedef struct {
  int seen, kill_at;
} witness;

static void kill_and_start(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  witness *of = user;
  if (++of->seen % of->kill_at != 0 || of->seen == MADE) return;
  char address[32];
  memcpy(address, worker.address, sizeof address);
  toy_worker_stop(&worker);
  worker = toy_worker_start_at(path, NULL, NULL, address);
}

/* The worker is killed after every few tokens; each comes once, and the text runs again with what the device has. */
LP_LOOP_TEST(killed_in_mid_stream, 0, PLACEMENTS * 2) {
  begin(&placements[_i % PLACEMENTS]);
  lp_generate_options options = options_of(_i / PLACEMENTS ? warm : greedy);
  options.ahead = 5;
  options.patience = (lp_patience){.pause_ms = 1, .longest_pause_ms = 10};
  lp_generation want = generate_here(options, 1);
  witness of = {.kill_at = 17};
  lp_generation made = generate_once(&options, 1, kill_and_start, &of);
  expect_same(&want, &made);
  ck_assert_int_eq(of.seen, MADE);
  ck_assert_uint_ge(made.cloud_requests, 1 + MADE / 17);
  lp_generation_free(&want);
  lp_generation_free(&made);
}

static void dawdle(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  if (++*(int *)user % 25 == 0) usleep(60000);
}

/* The worker drops what is idle while it waits for the device: the text runs again. */
LP_TEST(dropped_in_mid_stream) {
  path = toy_bundle_write(dir, "toy", &placements[0]);
  bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  worker = toy_worker_start(path, NULL, "20");
  lp_generate_options options = options_of(warm);
  options.ahead = 4;
  int seen = 0;
  lp_generation want = generate_here(options, 1), made = generate_once(&options, 1, dawdle, &seen);
  expect_same(&want, &made);
  ck_assert_int_eq(seen, MADE);
  ck_assert_uint_gt(made.cloud_requests, 1);
  lp_generation_free(&want);
  lp_generation_free(&made);
}

/* A link that is cut every few milliseconds. */
LP_TEST(cut_in_mid_stream) {
  static const lp_link_shape cuts = {.rtt_ms = 4, .cut_ms = 5, .cut_every_ms = 60};
  begin(&placements[0]);
  lp_generate_options options = options_of(warm);
  options.link = &cuts;
  options.ahead = 4;
  options.patience = (lp_patience){.pause_ms = 1, .longest_pause_ms = 10, .beat_ms = 20, .silence_ms = 100};
  lp_generation want = generate_here(options, 1), made = generate_once(&options, 1, NULL, NULL);
  expect_same(&want, &made);
  lp_generation_free(&want);
  lp_generation_free(&made);
}
