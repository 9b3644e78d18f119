/* Generation with early exits: exact mode gives the full model's tokens, and the invariants of P2 hold. */
#include <stdlib.h>
#include <string.h>

#include "base/side.h"
#include "runtime/exits/cloud_end.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static const lp_sampling greedy = {.top_p = 1};
static const lp_sampling warm = {.temperature = 0.9, .top_k = 20, .top_p = 0.95, .seed = 7};

static char *dir;
static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

/* Two exits, one exit close to the head that agrees often, and one that hardly does. */
static const toy_placement placements[] = {
    {.prefill = "ddddcc", .exits = {1, 3}}, {.prefill = "dddddc", .exits = {4}}, {.prefill = "ddcccc", .exits = {1}}};

typedef struct {
  const char *cloud;
  lp_mode mode;
  double theta;
  lp_codec codec;
  lp_sampling sampling;
  int64_t prompt, most;
  lp_token_sink *sink;
  void *user;
} request;

static lp_generation generate(const lp_bundle *bundle, const request *asked) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {.cloud = asked->cloud,
                                 .mode = asked->mode,
                                 .theta = asked->theta,
                                 .codec = asked->codec,
                                 .sampling = asked->sampling,
                                 .max_tokens = asked->most > 0 ? asked->most : TOY_MADE,
                                 .ignore_eos = true,
                                 .cloud_timeout_ms = 20000,
                                 .threads = 1};
  lp_session *session = NULL;
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_session_open(bundle, &options, &session, diag);
  if (status == LP_OK)
    status = lp_session_generate(session, prompts + asked->prompt * TOY_PROMPT, 1, TOY_PROMPT, asked->sink, asked->user,
                                 &made, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_session_close(session);
  lp_diag_free(diag);
  return made;
}

static void expect_same_tokens(const lp_generation *want, const lp_generation *got) {
  ck_assert_int_eq(want->generated, got->generated);
  for (int64_t i = 0; i < want->generated; i++)
    ck_assert_msg(want->tokens.data[i].token == got->tokens.data[i].token, "token %d differs", (int)i);
}

static lp_bundle *load(const toy_placement *placement, const char *name, char **path) {
  *path = toy_bundle_write(dir, name, placement);
  return toy_bundle_load(*path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
}

static void expect_exact(const lp_bundle *bundle, const char *cloud, int64_t prompt, lp_sampling sampling) {
  request full = {.mode = LP_MODE_FULL, .prompt = prompt, .sampling = sampling, .most = 80};
  request exact = full;
  exact.mode = LP_MODE_EXACT;
  exact.cloud = cloud;
  lp_generation want = generate(bundle, &full), got = generate(bundle, &exact);
  expect_same_tokens(&want, &got);
  ck_assert_int_ge(got.drafted, got.accepted);
  int64_t on_device = 0;
  for (int64_t i = 0; i < got.generated; i++)
    on_device += got.tokens.data[i].side == LP_SIDE_DEVICE;
  ck_assert_int_eq(on_device, got.accepted);
  ck_assert_int_eq(got.generated - on_device, (int64_t)got.cloud_requests);
  lp_generation_free(&want);
  lp_generation_free(&got);
}

LP_LOOP_TEST(exact_in_one_process, 0, LP_COUNT(placements)) {
  char *path;
  lp_bundle *bundle = load(&placements[_i], "toy", &path);
  for (int64_t prompt = 0; prompt < TOY_BATCH; prompt++) {
    expect_exact(bundle, NULL, prompt, greedy);
    expect_exact(bundle, NULL, prompt, warm);
  }
  lp_bundle_free(bundle);
  free(path);
}

LP_LOOP_TEST(exact_with_a_worker, 0, LP_COUNT(placements)) {
  char *path;
  lp_bundle *bundle = load(&placements[_i], "toy", &path);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  for (int64_t prompt = 0; prompt < TOY_BATCH; prompt++)
    expect_exact(bundle, worker.address, prompt, prompt % 2 == 0 ? greedy : warm);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* Above 1 every token is the cloud's; with f32 rows it is the full model's. */
static void expect_all_from_cloud(const lp_bundle *bundle, const char *cloud) {
  request full = {.mode = LP_MODE_FULL, .sampling = greedy};
  request all = {.cloud = cloud, .mode = LP_MODE_THRESHOLD, .theta = 2, .codec = LP_CODEC_F32, .sampling = greedy};
  lp_generation want = generate(bundle, &full), got = generate(bundle, &all);
  expect_same_tokens(&want, &got);
  ck_assert_uint_eq(got.cloud_requests, TOY_MADE);
  lp_generation_free(&want);
  lp_generation_free(&got);
}

LP_TEST(threshold_invariants) {
  static const double thetas[] = {0, 0.02, 0.05, 0.1, 0.2, 0.5, 2};
  char *path;
  lp_bundle *bundle = load(&placements[0], "toy", &path);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  expect_all_from_cloud(bundle, NULL);
  expect_all_from_cloud(bundle, worker.address);
  uint64_t before = 0;
  for (size_t i = 0; i < LP_COUNT(thetas); i++) {
    request asked = {.cloud = worker.address, .mode = LP_MODE_THRESHOLD, .theta = thetas[i], .sampling = greedy};
    lp_generation made = generate(bundle, &asked);
    /* The greater theta, the more questions; the rows are the same. */
    ck_assert_uint_ge(made.cloud_requests, before);
    ck_assert_uint_eq(made.hidden_bytes_up, 2 * TOY_WIDTH * (TOY_PROMPT + TOY_MADE - 1));
    ck_assert_int_eq(made.fallbacks, 0);
    if (thetas[i] <= 0) ck_assert_uint_eq(made.cloud_requests, 0);
    before = made.cloud_requests;
    lp_generation_free(&made);
  }
  ck_assert_uint_eq(before, TOY_MADE);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(codecs_shrink_the_rows) {
  static const struct {
    lp_codec codec;
    uint64_t row;
  } codecs[] = {{LP_CODEC_F32, 4 * TOY_WIDTH},
                {LP_CODEC_F16, 2 * TOY_WIDTH},
                {LP_CODEC_INT8, TOY_WIDTH + 4},
                {LP_CODEC_INT4, TOY_WIDTH / 2 + 4}};
  char *path;
  lp_bundle *bundle = load(&placements[0], "toy", &path);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  for (size_t i = 0; i < LP_COUNT(codecs); i++) {
    request asked = {.cloud = worker.address,
                     .mode = LP_MODE_THRESHOLD,
                     .theta = 0.05,
                     .codec = codecs[i].codec,
                     .sampling = greedy};
    lp_generation made = generate(bundle, &asked);
    ck_assert_uint_eq(made.hidden_bytes_up, codecs[i].row * (TOY_PROMPT + TOY_MADE - 1));
    lp_generation_free(&made);
  }
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(standalone_sends_nothing) {
  char *path = toy_bundle_write(dir, "toy", &placements[0]);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  request asked = {.cloud = "127.0.0.1:1", .mode = LP_MODE_STANDALONE, .sampling = greedy};
  lp_generation made = generate(bundle, &asked);
  ck_assert_int_eq(made.generated, TOY_MADE);
  ck_assert_uint_eq(made.bytes_up + made.bytes_down + made.cloud_requests, 0);
  for (int64_t i = 0; i < made.generated; i++)
    ck_assert_int_eq(made.tokens.data[i].exit_layer, 3);
  lp_generation_free(&made);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- a cloud that goes away -------------------------------------------------------------------------------------- */

typedef struct {
  toy_worker *worker;
  const char *bundle, *budget;
  int left;
  bool again;
} crash;

static void crash_after(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  crash *state = user;
  if (--state->left != 0) return;
  toy_worker_stop(state->worker);
  if (state->again) *state->worker = toy_worker_start_at(state->bundle, state->budget, NULL, state->worker->address);
}

/* A worker that is killed and started again has lost its contexts: the device sends the rows again, and the tokens do
 * not change. */
LP_LOOP_TEST(exact_survives_a_restart, 0, 6) {
  char *path;
  lp_bundle *bundle = load(&placements[_i % 3], "toy", &path);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  request full = {.mode = LP_MODE_FULL, .sampling = greedy, .most = 60};
  crash state = {.worker = &worker, .bundle = path, .left = 1 + 7 * _i, .again = true};
  request exact = {.cloud = worker.address,
                   .mode = LP_MODE_EXACT,
                   .sampling = greedy,
                   .most = 60,
                   .sink = crash_after,
                   .user = &state};
  lp_generation want = generate(bundle, &full), got = generate(bundle, &exact);
  expect_same_tokens(&want, &got);
  lp_generation_free(&want);
  lp_generation_free(&got);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* When two contexts do not fit the budget together, one is dropped, and rebuilt when its device asks. */
LP_TEST(exact_survives_eviction) {
  char *path, budget[32];
  lp_bundle *bundle = load(&placements[0], "toy", &path);
  snprintf(budget, sizeof budget, "%d", 3 * TOY_LAYERS * (TOY_PROMPT + 40) * TOY_WIDTH * 4 / 2);
  toy_worker worker = toy_worker_start(path, budget, NULL);
  request full = {.mode = LP_MODE_FULL, .sampling = greedy, .most = 40};
  lp_generation want = generate(bundle, &full), got[2];
  memset(got, 0, sizeof got);
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_halves halves;
  const char *why = "";
  ck_assert(lp_halves_find(bundle, &halves, &why));
  lp_session *session = NULL;
  lp_generate_options options = {.cloud = worker.address,
                                 .mode = LP_MODE_EXACT,
                                 .sampling = greedy,
                                 .max_tokens = 40,
                                 .ignore_eos = true,
                                 .threads = 1};
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  lp_cloud_end *idle = NULL;
  const lp_endpoint *endpoint = &session->place[LP_SIDE_CLOUD].endpoint;
  lp_cloud_end_options open = {.halves = &halves,
                               .endpoints = &endpoint,
                               .context = {.sampling = greedy, .codec = LP_CODEC_F32, .capacity = TOY_PROMPT + 40},
                               .claim = {.context = lp_context_draw()},
                               .drafts = true};
  ck_assert_int_eq(lp_cloud_end_open(&open, &idle, NULL), LP_OK);
  float *rows = lp_alloc((size_t)(TOY_PROMPT + 40) * halves.width[0] * sizeof(float));
  ck_assert_int_eq(lp_cloud_end_upload(idle, 0, TOY_PROMPT, rows, NULL), LP_OK);
  lp_answer first, again;
  lp_question question = {.end = TOY_PROMPT};
  ck_assert_int_eq(lp_cloud_end_ask(idle, &question, 10000, true, &first, NULL), LP_OK);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(lp_session_generate(session, prompts, 1, TOY_PROMPT, NULL, NULL, &got[i], NULL), LP_OK);
  ck_assert_int_eq(lp_cloud_end_ask(idle, &question, 10000, true, &again, NULL), LP_OK);
  ck_assert_int_eq(first.sample.token, again.sample.token);
  for (int i = 0; i < 2; i++) {
    expect_same_tokens(&want, &got[i]);
    lp_generation_free(&got[i]);
  }
  lp_cloud_end_close(idle, NULL);
  lp_session_close(session);
  lp_generation_free(&want);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(rows);
  free(path);
}

/* Without a cloud the device's exits give the tokens. The first five answers come within the time-out on a busy
 * machine, too. */
LP_TEST(threshold_goes_on_alone) {
  char *path;
  lp_bundle *bundle = load(&placements[0], "toy", &path);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  crash state = {.worker = &worker, .left = 5};
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {.cloud = worker.address,
                                 .mode = LP_MODE_THRESHOLD,
                                 .theta = 2,
                                 .sampling = greedy,
                                 .max_tokens = TOY_MADE,
                                 .ignore_eos = true,
                                 .cloud_timeout_ms = 2000,
                                 .threads = 1};
  lp_session *session = NULL;
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_OK);
  ck_assert_int_eq(lp_session_generate(session, prompts, 1, TOY_PROMPT, crash_after, &state, &made, diag), LP_OK);
  ck_assert_int_eq(made.generated, TOY_MADE);
  ck_assert_int_eq(made.fallbacks, TOY_MADE - 5);
  ck_assert_uint_eq(lp_diag_error_count(diag), 0);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  lp_session_close(session);
  lp_diag_free(diag);
  lp_generation_free(&made);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

LP_LOOP_TEST(modes_want_exits, 0, 4) {
  static const struct {
    toy_placement placement;
    const char *why;
  } cases[] = {{{.prefill = "ddddcc"}, "no early exits"},
               {{.prefill = "dddddd", .exits = {2}}, "the device computes the whole model"},
               {{.prefill = "ddcddc", .exits = {1}}, "sends more than tokens back"},
               {{.prefill = "ddddcc", .decode = "dddccc", .exits = {2}}, "a KV cache moves"}};
  char *path;
  lp_bundle *bundle = load(&cases[_i].placement, "toy", &path);
  const char *why = "";
  ck_assert(!lp_bundle_allows(bundle, LP_MODE_THRESHOLD, &why));
  ck_assert_msg(strstr(why, cases[_i].why), "wanted '%s' in '%s'", cases[_i].why, why);
  ck_assert(lp_bundle_allows(bundle, LP_MODE_EXACT, &why));
  request exact = {.mode = LP_MODE_EXACT, .sampling = greedy}, full = {.mode = LP_MODE_FULL, .sampling = greedy};
  lp_generation want = generate(bundle, &full), got = generate(bundle, &exact);
  expect_same_tokens(&want, &got);
  lp_generation_free(&want);
  lp_generation_free(&got);
  lp_bundle_free(bundle);
  free(path);
}
