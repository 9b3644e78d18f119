/* A device is killed at any token, and another process continues its session file: the tokens are those of an
 * undisturbed run, and only missing rows are sent again. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static char *dir, *file;
static void setup(void) {
  dir = toy_dir_create();
  file = lp_path_join(dir, "kept.session");
}
static void teardown(void) {
  free(file);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

static const lp_sampling greedy = {.top_p = 1};
static const lp_sampling warm = {.temperature = 0.9, .top_k = 20, .top_p = 0.95, .seed = 7};

static const toy_placement apart = {.prefill = "ddddcc", .exits = {1, 3}}, whole = {.prefill = "ddccdd"};

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_bundle *bundle;
  lp_generate_options options;
  int64_t batch;
} run;

static run run_of(const lp_bundle *bundle, lp_mode mode, lp_sampling sampling, int64_t batch) {
  lp_generate_options options = {.mode = mode,
                                 .theta = 2,
                                 .sampling = sampling,
                                 .max_tokens = TOY_MADE,
                                 .ignore_eos = true,
                                 .cloud_timeout_ms = 20000,
                                 .threads = 1};
  return (run){.bundle = bundle, .options = options, .batch = batch};
}

static lp_status generate(const run *asked, lp_token_sink *sink, void *user, lp_generation *out, lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_session *session = NULL;
  LP_TRY(lp_session_open(asked->bundle, &asked->options, &session, diag));
  lp_status status = lp_session_generate(session, prompts, asked->batch, TOY_PROMPT, sink, user, out, diag);
  lp_session_close(session);
  return status;
}

/* Resumes as the command does: with the settings of the session file. */
static lp_status go_on(run asked, lp_token_sink *sink, void *user, lp_generation *out, lp_diag *diag) {
  lp_saved_session saved;
  LP_TRY(lp_saved_session_read(file, &saved, diag));
  asked.options.session_file = file;
  asked.options.resume = &saved;
  lp_status status = generate(&asked, sink, user, out, diag);
  lp_saved_session_free(&saved);
  return status;
}

/* Slower than files are written, so that each token is kept; and the last one slower than rows are sent on a busy
 * machine, so that the cloud has them. */
static void die_after(void *user, int64_t index, const lp_generated *token) {
  (void)token;
  if (index != 0) return;
  bool last = --*(int *)user == 0;
  usleep(last ? 250000 : 21000);
  if (last) raise(SIGKILL);
}

/* Generates in a process of its own, which ends after `tokens` tokens, those of earlier processes included. */
static void run_and_die(const run *asked, bool first, int left) {
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    lp_generation made = {0};
    run mine = *asked;
    mine.options.session_file = file;
    (void)!(first ? generate(&mine, die_after, &left, &made, NULL) : go_on(mine, die_after, &left, &made, NULL));
    _exit(0);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "it ended by itself: %d", status);
}

static void expect_same(const lp_generation *want, const lp_generation *got) {
  ck_assert_int_eq(want->generated, got->generated);
  ck_assert_uint_eq(want->tokens.count, got->tokens.count);
  for (size_t i = 0; i < want->tokens.count; i++)
    ck_assert_msg(want->tokens.data[i].token == got->tokens.data[i].token, "token %zu differs", i);
}

static lp_bundle *load(const toy_placement *placement, char **path) {
  *path = toy_bundle_write(dir, "toy", placement);
  lp_bundle *bundle = toy_bundle_load(*path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  ck_assert_int_eq(lp_bundle_await_check(bundle, NULL), LP_OK); /* no thread but this one when it forks */
  return bundle;
}

/* The first position of the events with this name, and the most tokens of one of them. */
typedef struct {
  int64_t first; /* INT64_MAX: there is none */
  int64_t widest;
} events;

static events find_events(lp_trace *trace, const char *wanted) {
  char *path = lp_path_join(dir, "trace.json");
  ck_assert_int_eq(lp_trace_write(trace, NULL, path, NULL), LP_OK);
  json_t *root = json_load_file(path, 0, NULL), *event;
  ck_assert_ptr_nonnull(root);
  events found = {.first = INT64_MAX};
  size_t i;
  json_array_foreach(json_object_get(root, "traceEvents"), i, event) {
    const char *name = json_string_value(json_object_get(event, "name"));
    if (!name || strcmp(name, wanted) != 0) continue;
    const json_t *args = json_object_get(event, "args");
    json_int_t position = json_integer_value(json_object_get(args, "position"));
    json_int_t tokens = json_integer_value(json_object_get(args, "tokens"));
    if (position < found.first) found.first = position;
    if (tokens > found.widest) found.widest = tokens;
  }
  json_decref(root);
  free(path);
  return found;
}

/* The text runs again in the passes of the first time, so that it rounds as it did: the prompt in one, and each token
 * by itself. */
static void expect_same_passes(lp_trace *trace) {
  ck_assert_int_eq(find_events(trace, "prefill").widest, TOY_PROMPT);
  events passes = find_events(trace, "pass");
  ck_assert_int_eq(passes.first, TOY_PROMPT);
  ck_assert_int_eq(passes.widest, 1);
}

/* ---- killed and resumed ------------------------------------------------------------------------------------------ */

typedef struct {
  const toy_placement *placement;
  lp_mode mode;
  int64_t batch;
  bool restarts; /* the worker, too */
} life;
static const life lives[] = {{&apart, LP_MODE_EXACT, 1, false},      {&apart, LP_MODE_EXACT, 1, true},
                             {&apart, LP_MODE_THRESHOLD, 1, false},  {&apart, LP_MODE_THRESHOLD, 1, true},
                             {&apart, LP_MODE_STANDALONE, 1, false}, {&whole, LP_MODE_FULL, 1, false},
                             {&whole, LP_MODE_FULL, 4, true}};

/* Kills two processes; the third completes the generation. */
static void live(const life *how, lp_sampling sampling) {
  char *path;
  lp_bundle *bundle = load(how->placement, &path);
  run asked = run_of(bundle, how->mode, sampling, how->batch);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_generation want = {0}, got = {0}, again = {0};
  asked.options.cloud = worker.address;
  run_and_die(&asked, true, 6);
  if (how->restarts) toy_worker_stop(&worker);
  if (how->restarts) worker = toy_worker_start_at(path, NULL, NULL, worker.address);
  run_and_die(&asked, false, 13);
  asked.options.trace = lp_trace_create();
  ck_assert_int_eq(go_on(asked, NULL, NULL, &got, NULL), LP_OK);
  int64_t first = find_events(asked.options.trace, "rows").first;
  expect_same_passes(asked.options.trace);
  lp_trace_free(asked.options.trace);
  asked.options.trace = NULL;
  run undisturbed = asked;
  undisturbed.options.cloud = NULL;
  ck_assert_int_eq(generate(&undisturbed, NULL, NULL, &want, NULL), LP_OK);
  expect_same(&want, &got);
  ck_assert_int_ge(got.resumed, 10);
  /* The cloud had all rows but the last certain one, and only later rows are sent: some of them more than once where a
   * question overtakes them. */
  if (how->mode == LP_MODE_EXACT || how->mode == LP_MODE_THRESHOLD)
    ck_assert_int_eq(first, TOY_PROMPT + got.resumed - 1);
  toy_worker_stop(&worker);
  /* A complete generation needs no cloud. */
  ck_assert_int_eq(go_on(asked, NULL, NULL, &again, NULL), how->mode == LP_MODE_FULL ? LP_FAILED : LP_OK);
  if (how->mode != LP_MODE_FULL) expect_same(&want, &again);
  lp_generation_free(&want);
  lp_generation_free(&got);
  lp_generation_free(&again);
  lp_bundle_free(bundle);
  free(path);
}

LP_LOOP_TEST(greedy_lives, 0, LP_COUNT(lives)) {
  live(&lives[_i], greedy);
}

LP_LOOP_TEST(warm_lives, 0, LP_COUNT(lives)) {
  live(&lives[_i], warm);
}

/* ---- a worker that is lost --------------------------------------------------------------------------------------- */

typedef struct {
  const char *path;
  toy_worker *worker;
  int left;
} restarter;

static void restart_after(void *user, int64_t index, const lp_generated *token) {
  (void)token;
  restarter *state = user;
  if (index != 0 || --state->left != 0) return;
  toy_worker_stop(state->worker);
  *state->worker = toy_worker_start_at(state->path, NULL, NULL, state->worker->address);
}

LP_LOOP_TEST(the_worker_restarts, 0, 2) {
  char *path;
  lp_bundle *bundle = load(&whole, &path);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  run asked = run_of(bundle, LP_MODE_FULL, warm, _i == 0 ? 1 : TOY_BATCH);
  restarter state = {path, &worker, 9};
  lp_generation want = {0}, got = {0};
  ck_assert_int_eq(generate(&asked, NULL, NULL, &want, NULL), LP_OK);
  asked.options.cloud = worker.address;
  asked.options.trace = lp_trace_create();
  ck_assert_int_eq(generate(&asked, restart_after, &state, &got, NULL), LP_OK);
  expect_same(&want, &got);
  expect_same_passes(asked.options.trace);
  lp_trace_free(asked.options.trace);
  lp_generation_free(&want);
  lp_generation_free(&got);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- files that cannot be resumed -------------------------------------------------------------------------------- */

static void expect_no_resumption(const run *asked, const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_generation made = {0};
  ck_assert_int_eq(go_on(*asked, NULL, NULL, &made, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  ck_assert_str_eq(lp_diag_get(diag, 0)->loc.file, file);
  lp_generation_free(&made);
  lp_diag_free(diag);
}

static void keep_one(run *asked) {
  lp_generation made = {0};
  asked->options.session_file = file;
  ck_assert_int_eq(generate(asked, NULL, NULL, &made, NULL), LP_OK);
  ck_assert_int_eq(made.generated, TOY_MADE);
  lp_generation_free(&made);
}

LP_TEST(other_options) {
  char *path;
  lp_bundle *bundle = load(&apart, &path);
  run asked = run_of(bundle, LP_MODE_STANDALONE, warm, 1), other;
  asked.options.sampling.seed = UINT64_C(1) << 53; /* a double holds no odd number from here on */
  keep_one(&asked);
  other = asked;
  other.options.max_tokens = 21;
  expect_no_resumption(&other, "begun with -n of 20, not of 21");
  other = asked;
  other.options.sampling.temperature = 0;
  expect_no_resumption(&other, "--temperature of 0.9, not of 0");
  other = asked;
  other.options.sampling.seed++;
  expect_no_resumption(&other, "--seed of 9007199254740992, not of 9007199254740993");
  other = asked;
  other.options.mode = LP_MODE_THRESHOLD;
  expect_no_resumption(&other, "--mode=standalone, not threshold");
  other = asked;
  other.options.codec = LP_CODEC_INT4;
  expect_no_resumption(&other, "--codec=auto, not int4");
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(other_prompt_or_bundle) {
  char *path, *second;
  lp_bundle *bundle = load(&apart, &path);
  run asked = run_of(bundle, LP_MODE_STANDALONE, greedy, 1), other = asked;
  keep_one(&asked);
  other.batch = 2;
  expect_no_resumption(&other, "another prompt");
  second = toy_bundle_write(dir, "other", &(toy_placement){.prefill = "ddddcc", .exits = {1, 3}, .seed = 2});
  other = asked;
  lp_bundle *stranger = toy_bundle_load(second, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  other.bundle = stranger;
  expect_no_resumption(&other, "a session of another bundle");
  lp_bundle_free(stranger);
  lp_bundle_free(bundle);
  free(second);
  free(path);
}

static void write_file(const char *data, size_t size) {
  ck_assert_int_eq(lp_file_write(file, data, size, NULL), LP_OK);
}

/* Any changed or missing byte is found. */
LP_TEST(damaged) {
  char *path, *data = NULL;
  size_t size = 0;
  lp_bundle *bundle = load(&apart, &path);
  run asked = run_of(bundle, LP_MODE_STANDALONE, greedy, 1);
  keep_one(&asked);
  ck_assert_int_eq(lp_file_read(file, &data, &size, NULL), LP_OK);
  for (size_t i = 0; i < size; i++) {
    data[i] = (char)(data[i] ^ 4);
    write_file(data, size);
    data[i] = (char)(data[i] ^ 4);
    expect_no_resumption(&asked, i < 12 ? "is no session file" : i < 16 ? "version" : "damaged");
  }
  for (size_t i = 0; i < size; i++) {
    write_file(data, i);
    expect_no_resumption(&asked, i < 40 ? "is no session file" : "damaged");
  }
  free(data);
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(private_and_writable) {
  char *path;
  struct stat info;
  lp_bundle *bundle = load(&apart, &path);
  run asked = run_of(bundle, LP_MODE_STANDALONE, greedy, 1);
  keep_one(&asked);
  ck_assert_int_eq(stat(file, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0600);
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  asked.options.session_file = "/nowhere/kept.session";
  ck_assert_int_eq(generate(&asked, NULL, NULL, &made, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "cannot write: No such file or directory");
  ck_assert_int_eq(made.generated, 0);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
  free(path);
}
