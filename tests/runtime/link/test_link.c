/* Bad links: slow, lossy, cut, silent; the worker killed and started again. The generated tokens do not change. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static const lp_patience quick = {
    .dial_ms = 300, .pause_ms = 5, .longest_pause_ms = 40, .beat_ms = 50, .silence_ms = 200, .repeat_ms = 100};
/* For links that work, if badly: on a busy machine a worker may get no core for longer than the times above, and a
 * device that then dials again and again makes no progress. */
static const lp_patience patient = {
    .dial_ms = 5000, .pause_ms = 5, .longest_pause_ms = 40, .beat_ms = 50, .silence_ms = 5000, .repeat_ms = 100};

static char *dir;
static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* A bundle without independent halves, since values cross both ways, and one that is split at its exits. */
static const toy_placement whole = {.prefill = "ddccdd"}, apart = {.prefill = "ddddcc", .exits = {1, 3}};

static lp_status generate(const lp_bundle *bundle, lp_generate_options options, int64_t batch, lp_token_sink *sink,
                          void *user, lp_generation *out, lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  options.sampling.top_p = 1;
  options.max_tokens = TOY_MADE;
  options.ignore_eos = true;
  options.threads = 1;
  options.patience = options.link ? patient : quick;
  if (options.cloud_timeout_ms <= 0) options.cloud_timeout_ms = options.link ? 100000 : 20000;
  lp_session *session = NULL;
  lp_status status = lp_session_open(bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, prompts, batch, TOY_PROMPT, sink, user, out, diag);
  lp_session_close(session);
  return status;
}

/* Expects the same tokens as in one process, under `options`. */
static lp_generation expect_same(const lp_bundle *bundle, lp_generate_options options, int64_t batch,
                                 lp_token_sink *sink, void *user) {
  lp_generation want = {0}, got = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(generate(bundle, (lp_generate_options){0}, batch, NULL, NULL, &want, NULL), LP_OK);
  lp_status status = generate(bundle, options, batch, sink, user, &got, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  ck_assert_uint_eq(want.tokens.count, got.tokens.count);
  for (size_t i = 0; i < want.tokens.count; i++)
    ck_assert_int_eq(want.tokens.data[i].token, got.tokens.data[i].token);
  lp_generation_free(&want);
  return got;
}

typedef struct {
  char *path;
  lp_bundle *bundle;
  toy_worker worker;
} place;

static place set_up(const toy_placement *placement) {
  place made = {.path = toy_bundle_write(dir, "toy", placement)};
  made.bundle = toy_bundle_load(made.path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  made.worker = toy_worker_start(made.path, NULL, NULL);
  return made;
}

static void tear_down(place *made) {
  toy_worker_stop(&made->worker);
  lp_bundle_free(made->bundle);
  free(made->path);
}

/* ---- emulated links ---------------------------------------------------------------------------------------------- */

LP_TEST(a_slow_link) {
  place here = set_up(&whole);
  lp_link_shape shape = {.rtt_ms = 10};
  lp_generate_options options = {.cloud = here.worker.address, .mode = LP_MODE_FULL, .link = &shape};
  lp_generation made = expect_same(here.bundle, options, 1, NULL, NULL);
  ck_assert_double_ge(made.total_ms, TOY_MADE * 10);
  ck_assert_double_le(made.comm_ms, made.total_ms);
  ck_assert_double_ge(made.comm_ms, (double)TOY_MADE * 9.5);
  ck_assert_double_eq_tol(made.device_ms + made.cloud_ms + made.comm_ms, made.total_ms, 1e-6);
  lp_generation_free(&made);
  tear_down(&here);
}

/* Rows of 64 bytes and their headers at 80 kbit/s: 27 rows take 170 ms at least. */
LP_TEST(a_narrow_link) {
  place here = set_up(&apart);
  lp_link_shape shape = {.rtt_ms = 1, .up_bps = 80e3};
  lp_generate_options options = {
      .cloud = here.worker.address, .mode = LP_MODE_THRESHOLD, .theta = 2, .codec = LP_CODEC_F32, .link = &shape};
  lp_generation made = expect_same(here.bundle, options, 1, NULL, NULL);
  ck_assert_double_ge(made.total_ms, (double)((TOY_PROMPT + TOY_MADE - 1) * TOY_WIDTH * 4 * 8) / 80);
  ck_assert_int_eq(made.fallbacks, 0);
  lp_generation_free(&made);
  tear_down(&here);
}

LP_LOOP_TEST(a_lossy_link_with_cuts, 0, 4) {
  const toy_placement *placements[] = {&whole, &apart};
  place here = set_up(placements[_i % 2]);
  lp_link_shape shape = {.rtt_ms = 4, .loss = 0.2, .cut_ms = _i < 2 ? 20 : 0, .cut_every_ms = 60, .seed = (uint64_t)_i};
  lp_generate_options options = {.cloud = here.worker.address, .mode = LP_MODE_EXACT, .link = &shape};
  lp_generation made = expect_same(here.bundle, options, 1, NULL, NULL);
  lp_generation_free(&made);
  tear_down(&here);
}

/* ---- a worker that dies, or falls silent ------------------------------------------------------------------------- */

typedef struct {
  place *here;
  int left;
  bool silent; /* stopped, not killed: connections stay, but no answer comes */
} fate;

static void strike(void *user, int64_t index, const lp_generated *token) {
  (void)token;
  fate *state = user;
  if (index != 0 || --state->left != 0) return;
  toy_worker old = state->here->worker;
  if (state->silent) {
    kill(old.pid, SIGSTOP);
    if (fork() == 0) {
      usleep(600000);
      kill(old.pid, SIGCONT);
      _exit(0);
    }
    return;
  }
  toy_worker_stop(&old);
  state->here->worker = toy_worker_start_at(state->here->path, NULL, NULL, old.address);
}

LP_LOOP_TEST(a_worker_started_again, 0, 4) {
  const toy_placement *placements[] = {&whole, &apart};
  place here = set_up(placements[_i % 2]);
  char address[32];
  snprintf(address, sizeof address, "%s", here.worker.address);
  fate state = {.here = &here, .left = 1 + _i * 4};
  lp_generate_options options = {.cloud = address, .mode = _i % 2 == 0 ? LP_MODE_FULL : LP_MODE_EXACT};
  lp_generation made = expect_same(here.bundle, options, _i == 2 ? TOY_BATCH : 1, strike, &state);
  lp_generation_free(&made);
  tear_down(&here);
}

LP_LOOP_TEST(a_silent_worker, 0, 2) {
  const toy_placement *placements[] = {&whole, &apart};
  place here = set_up(placements[_i % 2]);
  fate state = {.here = &here, .left = 3, .silent = true};
  lp_generate_options options = {.cloud = here.worker.address, .mode = _i % 2 == 0 ? LP_MODE_FULL : LP_MODE_EXACT};
  lp_generation made = expect_same(here.bundle, options, 1, strike, &state);
  ck_assert_double_ge(made.total_ms, 400);
  lp_generation_free(&made);
  tear_down(&here);
}

/* If exits can give a token, the device does not wait for a lost cloud; it asks again once the cloud is back. */
LP_TEST(threshold_goes_on_at_once) {
  place here = set_up(&apart);
  fate state = {.here = &here, .left = 5, .silent = true};
  lp_generate_options options = {.cloud = here.worker.address, .mode = LP_MODE_THRESHOLD, .theta = 2};
  lp_generation made = {0};
  double begin = lp_now_ms();
  ck_assert_int_eq(generate(here.bundle, options, 1, strike, &state, &made, NULL), LP_OK);
  ck_assert_int_eq(made.generated, TOY_MADE);
  ck_assert_int_ge(made.fallbacks, 1);
  ck_assert_double_le(lp_now_ms() - begin, 8000); /* an answer is waited for 10 s */
  lp_generation_free(&made);
  tear_down(&here);
}

LP_TEST(nobody_comes_back) {
  place here = set_up(&whole);
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  kill(here.worker.pid, SIGSTOP);
  lp_generate_options options = {.cloud = here.worker.address, .mode = LP_MODE_FULL, .cloud_timeout_ms = 500};
  double begin = lp_now_ms();
  ck_assert_int_eq(generate(here.bundle, options, 1, NULL, NULL, &made, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), "cannot reach the cloud") != NULL, "%s", toy_error(diag));
  ck_assert_double_le(lp_now_ms() - begin, 20000); /* without the limit two minutes */
  lp_diag_free(diag);
  lp_generation_free(&made);
  tear_down(&here);
}
