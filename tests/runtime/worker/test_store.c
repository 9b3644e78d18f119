/* Contexts on disk: a worker that ends or drops a context restores it when its device returns, and refuses damaged
 * files. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "runtime/exec/pool.h"
#include "runtime/exits/context_file.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { POSITIONS = 24 };
static const lp_sampling greedy = {.top_p = 1};

static char *dir, *folder, *path;
static lp_bundle *bundle;
static void setup(void) {
  dir = toy_dir_create();
  folder = lp_path_join(dir, "contexts");
  path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddddcc", .exits = {1, 3}});
  bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  setenv("LP_TOY_CONTEXTS", folder, 1);
}
static void teardown(void) {
  unsetenv("LP_TOY_CONTEXTS");
  unsetenv("LP_TOY_CONTEXTS_SIZE");
  lp_bundle_free(bundle);
  free(path);
  free(folder);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

/* ---- through a worker -------------------------------------------------------------------------------------------- */

/* The number of files; `last` (may be NULL) receives the path of one of them, which the caller frees. */
static int files(char **last) {
  int count = 0;
  DIR *open = opendir(folder);
  for (struct dirent *entry = open ? readdir(open) : NULL; entry; entry = readdir(open)) {
    if (entry->d_name[0] == '.') continue;
    count++;
    if (last) *last = lp_path_join(folder, entry->d_name);
  }
  if (open) closedir(open);
  return count;
}

typedef enum { KEEP, DAMAGE, CRASH } fate;
typedef struct {
  toy_worker *worker;
  int left;
  fate fate;
} restart;

static void damage(void) {
  char *file = NULL, *data = NULL;
  size_t size = 0;
  ck_assert_int_eq(files(&file), 1);
  ck_assert_int_eq(lp_file_read(file, &data, &size, NULL), LP_OK);
  data[size / 2] = (char)(data[size / 2] ^ 1);
  ck_assert_int_eq(lp_file_write(file, data, size, NULL), LP_OK);
  free(data);
  free(file);
}

static void restart_after(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  restart *state = user;
  if (--state->left != 0) return;
  if (state->fate == CRASH)
    toy_worker_stop(state->worker);
  else
    ck_assert_int_eq(toy_worker_end(state->worker), 0);
  ck_assert_int_eq(files(NULL), state->fate == CRASH ? 0 : 1);
  if (state->fate == DAMAGE) damage();
  *state->worker = toy_worker_start_at(path, NULL, NULL, state->worker->address);
}

static lp_generation generate(const char *cloud, lp_mode mode, lp_token_sink *sink, void *user) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {.cloud = cloud,
                                 .mode = mode,
                                 .theta = 2,
                                 .sampling = greedy,
                                 .max_tokens = TOY_MADE,
                                 .ignore_eos = true,
                                 .cloud_timeout_ms = 20000,
                                 .threads = 1};
  lp_session *session = NULL;
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_session_open(bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, prompts, 1, TOY_PROMPT, sink, user, &made, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_session_close(session);
  lp_diag_free(diag);
  return made;
}

static void expect_same(const lp_generation *want, const lp_generation *got) {
  ck_assert_int_eq(want->generated, got->generated);
  for (int64_t i = 0; i < want->generated; i++)
    ck_assert_msg(want->tokens.data[i].token == got->tokens.data[i].token, "token %d differs", (int)i);
}

/* In threshold mode every row is sent once, even if another worker continues. */
static void outlive(lp_mode mode, fate how) {
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  restart state = {.worker = &worker, .left = 9, .fate = how};
  lp_generation want = generate(NULL, mode, NULL, NULL);
  lp_generation got = generate(worker.address, mode, restart_after, &state);
  expect_same(&want, &got);
  ck_assert_int_eq(got.fallbacks, 0);
  uint64_t all = 2 * TOY_WIDTH * (TOY_PROMPT + TOY_MADE - 1);
  /* One more may be lost with the connection. */
  if (mode == LP_MODE_THRESHOLD && how == KEEP) ck_assert_uint_le(got.hidden_bytes_up, all + 2 * TOY_WIDTH);
  if (mode == LP_MODE_THRESHOLD && how != KEEP)
    ck_assert_uint_gt(got.hidden_bytes_up, all + 2 * TOY_WIDTH * TOY_PROMPT);
  lp_generation_free(&want);
  lp_generation_free(&got);
  /* Its context has left; that of another generation may do so only now, when it is too late. */
  got = generate(worker.address, mode, NULL, NULL);
  lp_generation_free(&got);
  ck_assert_int_eq(toy_worker_end(&worker), 0);
  ck_assert_int_le(files(NULL), 1);
}

LP_LOOP_TEST(exact_outlives_the_worker, KEEP, CRASH + 1) {
  outlive(LP_MODE_EXACT, (fate)_i);
}

LP_LOOP_TEST(threshold_outlives_the_worker, KEEP, CRASH + 1) {
  outlive(LP_MODE_THRESHOLD, (fate)_i);
}

/* An idle context goes to disk, and comes back when its device asks. */
static void pause_once(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  if (--*(int *)user != 0) return;
  for (int i = 0; i < 100 && files(NULL) == 0; i++)
    usleep(20000);
  ck_assert_int_eq(files(NULL), 1);
}

LP_TEST(idle_contexts_are_kept) {
  struct stat info;
  toy_worker worker = toy_worker_start(path, NULL, "30");
  int left = 5;
  lp_generation want = generate(NULL, LP_MODE_THRESHOLD, NULL, NULL);
  lp_generation got = generate(worker.address, LP_MODE_THRESHOLD, pause_once, &left);
  expect_same(&want, &got);
  ck_assert_uint_eq(got.hidden_bytes_up, 2 * TOY_WIDTH * (TOY_PROMPT + TOY_MADE - 1));
  ck_assert_int_eq(stat(folder, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0700);
  lp_generation_free(&want);
  lp_generation_free(&got);
  toy_worker_stop(&worker);
}

static void end_and_look(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  restart *state = user;
  if (--state->left != 0) return;
  ck_assert_int_eq(toy_worker_end(state->worker), 0);
  ck_assert_int_eq(files(NULL), 0);
  *state->worker = toy_worker_start_at(path, NULL, NULL, state->worker->address);
}

LP_TEST(folder_is_bounded) {
  setenv("LP_TOY_CONTEXTS_SIZE", "500", 1); /* no context is so small */
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  restart state = {.worker = &worker, .left = 9};
  lp_generation want = generate(NULL, LP_MODE_EXACT, NULL, NULL);
  lp_generation got = generate(worker.address, LP_MODE_EXACT, end_and_look, &state);
  expect_same(&want, &got);
  lp_generation_free(&want);
  lp_generation_free(&got);
  toy_worker_stop(&worker);
}

/* The oldest files are removed for newer ones, and incomplete files are removed. */
LP_TEST(oldest_files_go) {
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  static const char *const names[] = {"a.context", "b.context", "c.context", "d.context.new", "e.txt"};
  char *file[LP_COUNT(names)];
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    file[i] = lp_path_join(folder, names[i]);
    ck_assert_int_eq(lp_file_write(file[i], names, 40, NULL), LP_OK);
    usleep(20000);
  }
  setenv("LP_TOY_CONTEXTS_SIZE", "100", 1);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  ck_assert(!lp_path_exists(file[0]));
  ck_assert(lp_path_exists(file[1]) && lp_path_exists(file[2]) && lp_path_exists(file[4]));
  ck_assert(!lp_path_exists(file[3]));
  toy_worker_stop(&worker);
  for (size_t i = 0; i < LP_COUNT(names); i++)
    free(file[i]);
}

static void expect_not_served(const char *where, const char *text) {
  static const volatile int stop = 1;
  lp_worker_options options = {.listen = "127.0.0.1:0", .threads = 1, .context_dir = where};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_worker_serve(bundle, &options, &stop, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  ck_assert_str_eq(lp_diag_get(diag, 0)->loc.file, where);
  lp_diag_free(diag);
}

LP_TEST(folders_that_are_none) {
  char *file = lp_path_join(path, "manifest.json");
  expect_not_served(file, "is no folder");
  expect_not_served("/nowhere/contexts", "cannot make the folder: No such file");
  free(file);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_pool *pool;
  lp_halves halves;
  lp_context *context;
  char *file;
} kept;

static void upload(lp_context *context, int64_t first, int64_t count) {
  float rows[POSITIONS][TOY_WIDTH];
  for (int i = 0; i < POSITIONS; i++)
    for (int k = 0; k < TOY_WIDTH; k++)
      rows[i][k] = (float)((i * 31 + k * 7) % 19) / 10.0F - 0.9F;
  lp_context_time time = context->time;
  ck_assert_int_eq(lp_context_upload(context, time, first, count, (const uint8_t *)rows[first],
                                     (size_t)count * sizeof rows[0], NULL),
                   LP_OK);
}

static int32_t behind(lp_context *context, int64_t end) {
  lp_answer answer;
  lp_question question = {.end = end};
  ck_assert_int_eq(lp_context_ask(context, &question, &answer, NULL), LP_OK);
  return answer.sample.token;
}

/* Rows of 16 positions, of which 9 were consumed. */
static void begin(kept *made) {
  const char *why = "";
  made->pool = lp_pool_create(1);
  made->file = lp_path_join(dir, "one.context");
  ck_assert(lp_halves_find(bundle, &made->halves, &why));
  lp_context_options options = {.sampling = greedy, .codec = LP_CODEC_F32, .capacity = POSITIONS};
  made->context = lp_context_create(&made->halves, 0, &options, made->pool);
  made->context->time = (lp_context_time){.epoch = 3, .floor = 5};
  upload(made->context, 0, 16);
  (void)behind(made->context, 9);
}

static void end(kept *made) {
  lp_context_free(made->context);
  lp_pool_free(made->pool);
  free(made->file);
}

LP_LOOP_TEST(round_trip, 0, 2) {
  kept made;
  begin(&made);
  lp_context_record record = {.id = 77, .answered = 5, .asked = -1, .answer = {.accepted = 2, .sample = {.token = 9}}};
  lp_context_record back;
  lp_context *again = NULL;
  if (_i == 1) record.asked = 7; /* a question was being computed: its positions come again */
  ck_assert_int_eq(lp_context_save(made.context, &record, made.file, NULL), LP_OK);
  ck_assert_int_eq(lp_context_restore(&made.halves, 0, made.pool, made.file, POSITIONS, &back, &again, NULL), LP_OK);
  ck_assert_uint_eq(back.id, 77);
  ck_assert_uint_eq(back.answered, 5);
  ck_assert_int_eq(back.answer.accepted, 2);
  ck_assert_int_eq(back.answer.sample.token, 9);
  ck_assert_uint_eq(again->time.epoch, 3);
  ck_assert_int_eq(again->time.floor, 9); /* the end of the last question */
  ck_assert_int_eq(again->consumed, _i == 1 ? 7 : 9);
  ck_assert_int_eq(again->held, _i == 1 ? 7 : 16);
  if (_i == 1) upload(again, 7, 9);
  upload(made.context, 16, POSITIONS - 16);
  upload(again, 16, POSITIONS - 16);
  for (int64_t i = 10; i <= POSITIONS; i++)
    ck_assert_int_eq(behind(made.context, i), behind(again, i));
  lp_context_free(again);
  end(&made);
}

static void expect_no_context(const kept *made, const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_context_record record;
  lp_context *none = NULL;
  ck_assert_int_eq(lp_context_restore(&made->halves, 0, made->pool, made->file, POSITIONS, &record, &none, diag),
                   LP_FAILED);
  ck_assert_ptr_null(none);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  lp_diag_free(diag);
}

LP_TEST(damaged_files) {
  char *data = NULL;
  size_t size = 0;
  kept made;
  begin(&made);
  lp_context_record record = {.id = 77, .asked = -1};
  ck_assert_int_eq(lp_context_save(made.context, &record, made.file, NULL), LP_OK);
  ck_assert_int_eq(lp_file_read(made.file, &data, &size, NULL), LP_OK);
  for (size_t i = 0; i < size; i += i < 300 ? 1 : 97) {
    data[i] = (char)(data[i] ^ 16);
    ck_assert_int_eq(lp_file_write(made.file, data, size, NULL), LP_OK);
    expect_no_context(&made, i < 12 ? "is no context file" : i < 16 ? "version" : "damaged");
    data[i] = (char)(data[i] ^ 16);
    ck_assert_int_eq(lp_file_write(made.file, data, i, NULL), LP_OK);
    expect_no_context(&made, i < 40 ? "is no context file" : "damaged");
  }
  free(data);
  end(&made);
}

/* Whole files that do not fit: of another bundle, or of more positions than the model has. */
LP_TEST(foreign_files) {
  kept made;
  begin(&made);
  lp_context_record record = {.id = 77, .asked = -1};
  ck_assert_int_eq(lp_context_save(made.context, &record, made.file, NULL), LP_OK);
  lp_context *none = NULL;
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_context_restore(&made.halves, 0, made.pool, made.file, POSITIONS - 1, &record, &none, diag),
                   LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "does not hold a context"), "%s", toy_error(diag));
  lp_diag_free(diag);
  char *other = toy_bundle_write(dir, "other", &(toy_placement){.prefill = "ddddcc", .exits = {1, 3}, .seed = 2});
  lp_bundle *stranger = toy_bundle_load(other, LP_LOAD_CLOUD);
  kept its = made;
  const char *why = "";
  ck_assert(lp_halves_find(stranger, &its.halves, &why));
  expect_no_context(&its, "a context of another bundle");
  lp_bundle_free(stranger);
  free(other);
  end(&made);
}
