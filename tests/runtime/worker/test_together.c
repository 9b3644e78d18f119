/* Sessions that a worker serves at the same time: each gets the tokens of an undisturbed run, whichever other devices
 * connect, leave or are killed. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { DEVICES = 24, GENERATIONS = 6 };

static char *dir;
static int32_t wanted[TOY_BATCH * TOY_MADE];

static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* One device: generations after one of the prompts, a new session for each. */
typedef struct {
  const lp_bundle *bundle;
  const char *cloud;
  lp_mode mode;
  int number;
  bool insists; /* a refusal is not the end: it tries again */
  int wrong, refused;
  char text[200];
  pthread_t thread;
} device;

static lp_status generate(const device *d, lp_generation *out, lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {.cloud = d->cloud,
                                 .mode = d->mode,
                                 .sampling = {.top_p = 1},
                                 .max_tokens = TOY_MADE - d->number % 5, /* some end sooner */
                                 .ignore_eos = true,
                                 .threads = 1};
  lp_session *session = NULL;
  lp_status status = lp_session_open(d->bundle, &options, &session, diag);
  if (status == LP_OK)
    status = lp_session_generate(session, prompts + d->number % TOY_BATCH * TOY_PROMPT, 1, TOY_PROMPT, NULL, NULL, out,
                                 diag);
  lp_session_close(session);
  return status;
}

static bool is_right(const device *d, const lp_generation *out) {
  if (out->generated != TOY_MADE - d->number % 5) return false;
  for (int64_t i = 0; i < out->generated; i++)
    if (out->tokens.data[i].token != wanted[d->number % TOY_BATCH * TOY_MADE + i]) return false;
  return true;
}

static void *run_device(void *user) {
  device *d = user;
  for (int i = 0; i < GENERATIONS; i++) {
    lp_generation out = {0};
    lp_diag *diag = lp_diag_create();
    bool done = generate(d, &out, diag) == LP_OK;
    if (done && !is_right(d, &out)) d->wrong++;
    if (!done) {
      d->refused++;
      snprintf(d->text, sizeof d->text, "%s", toy_error(diag));
      if (d->insists) i -= usleep(1000) == 0;
    }
    lp_generation_free(&out);
    lp_diag_free(diag);
  }
  return NULL;
}

static void begin_devices(device *all, int count, const device *like) {
  for (int i = 0; i < count; i++) {
    all[i] = *like;
    all[i].number = i;
    ck_assert_int_eq(pthread_create(&all[i].thread, NULL, run_device, &all[i]), 0);
  }
}

static int end_devices(device *all, int count) {
  int refused = 0;
  for (int i = 0; i < count; i++) {
    pthread_join(all[i].thread, NULL);
    ck_assert_msg(all[i].wrong == 0, "device %d: %d generations have other tokens", i, all[i].wrong);
    ck_assert_msg(all[i].refused == 0 || all[i].insists, "device %d: %s", i, all[i].text);
    refused += all[i].refused;
  }
  return refused;
}

static const toy_placement placements[] = {
    {.prefill = "dccccc"},                      /* one turn: passes */
    {.prefill = "cccccc", .input_there = true}, /* the cloud takes the tokens */
    {.prefill = "ddccdc"},                      /* several turns: a pass serves one session */
    {.prefill = "dddccc", .exits = {2}},        /* contexts and drafts */
};

/* A device in a process of its own, which is killed. */
static pid_t start_victim(const device *like) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  device victim = *like;
  victim.number = 3;
  for (;;)
    run_device(&victim);
}

LP_LOOP_TEST(they_come_and_go_and_die, 0, LP_COUNT(placements)) {
  char *path = toy_bundle_write(dir, "toy", &placements[_i]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_generate(bundle, NULL, TOY_BATCH, (lp_sampling){.top_p = 1}, wanted, NULL);
  device all[DEVICES], like = {.bundle = bundle, .cloud = worker.address};
  like.mode = placements[_i].exits[0] > 0 ? LP_MODE_EXACT : LP_MODE_FULL;
  pid_t victim[3];
  for (int i = 0; i < 3; i++)
    victim[i] = start_victim(&like);
  begin_devices(all, DEVICES, &like);
  for (int i = 0; i < 3; i++) {
    usleep(40000);
    kill(victim[i], SIGKILL);
    waitpid(victim[i], NULL, 0);
  }
  (void)end_devices(all, DEVICES);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

enum { CACHE_BYTES = TOY_LAYERS * (TOY_PROMPT + TOY_MADE) * TOY_WIDTH * 4 };

/* There is room for the caches of a third of the sessions: the others are evicted or refused, and no session gets a
 * wrong token. */
LP_LOOP_TEST(caches_give_way, 0, 2) {
  char *path = toy_bundle_write(dir, "toy", &placements[_i]);
  char budget[32];
  snprintf(budget, sizeof budget, "%d", CACHE_BYTES * 2);
  toy_worker worker = toy_worker_start(path, budget, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_generate(bundle, NULL, TOY_BATCH, (lp_sampling){.top_p = 1}, wanted, NULL);
  device all[6], like = {.bundle = bundle, .cloud = worker.address, .insists = true};
  begin_devices(all, 6, &like);
  (void)end_devices(all, 6);
  for (int i = 0; i < 6; i++)
    if (all[i].refused > 0)
      ck_assert_msg(strstr(all[i].text, "over the budget") || strstr(all[i].text, "bytes is in use"), "%s",
                    all[i].text);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

static volatile int stop_serving;
static int served_port;

static void on_listening(void *user, const char *host, int port) {
  (void)user, (void)host;
  __atomic_store_n(&served_port, port, __ATOMIC_RELEASE);
}

static void *serve_two(void *user) {
  lp_worker_options options = {.listen = "127.0.0.1:0", .threads = 1, .most_sessions = 2, .on_listening = on_listening};
  return lp_worker_serve(user, &options, &stop_serving, NULL) == LP_OK ? user : NULL;
}

/* Two sessions are open. The third is refused with that reason, and admitted after one has ended. */
LP_LOOP_TEST(a_full_cloud_says_so, 0, 1) {
  char *path = toy_bundle_write(dir, "toy", &placements[_i]);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_generate(bundle, NULL, TOY_BATCH, (lp_sampling){.top_p = 1}, wanted, NULL);
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, serve_two, bundle), 0);
  while (__atomic_load_n(&served_port, __ATOMIC_ACQUIRE) == 0)
    usleep(1000);
  char address[32];
  snprintf(address, sizeof address, "127.0.0.1:%d", served_port);
  lp_generate_options options = {.cloud = address, .sampling = {.top_p = 1}, .max_tokens = 4, .threads = 1};
  lp_session *open[2];
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(lp_session_open(bundle, &options, &open[i], NULL), LP_OK);
  device third = {.bundle = bundle, .cloud = address};
  lp_generation out = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(generate(&third, &out, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "the cloud is full: 2 sessions are open"), "%s", toy_error(diag));
  lp_generation_free(&out);
  lp_session_close(open[0]);
  usleep(50000);
  out = (lp_generation){0};
  ck_assert_int_eq(generate(&third, &out, NULL), LP_OK);
  ck_assert(is_right(&third, &out));
  lp_generation_free(&out);
  lp_session_close(open[1]);
  lp_flag_set(&stop_serving);
  pthread_join(thread, NULL);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
  free(path);
}
