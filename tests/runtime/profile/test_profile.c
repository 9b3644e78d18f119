/* A worker that profiles: it measures the bundle that each device names, and refuses what is none of its own. */
#include "base/clock.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

enum { BUNDLES = 2 };

/* A worker in a thread of this process. */
typedef struct {
  char *path[BUNDLES];
  char address[32];
  volatile int stop;
  sem_t listens;
  pthread_t thread;
  lp_status status;
} profiling;

static void note_address(void *user, const char *host, int port) {
  profiling *p = user;
  (void)snprintf(p->address, sizeof p->address, "%s:%d", host, port);
  sem_post(&p->listens);
}

static void *serve(void *user) {
  profiling *p = user;
  const lp_worker_options options = {.listen = "127.0.0.1:0", .threads = 1, .on_listening = note_address, .user = p};
  lp_diag *diag = lp_diag_create();
  p->status = lp_profile_serve((const char *const *)p->path, BUNDLES, &(lp_bundle_options){.load = 0}, &options,
                               &p->stop, diag);
  lp_diag_free(diag);
  return NULL;
}

static void begin(profiling *p, const char *dir) {
  static const char *const names[BUNDLES] = {"one", "two"};
  for (int i = 0; i < BUNDLES; i++)
    p->path[i] = toy_bundle_write(dir, names[i], &(toy_placement){.prefill = "dddddd", .seed = (uint32_t)i + 1});
  sem_init(&p->listens, 0, 0);
  ck_assert_int_eq(pthread_create(&p->thread, NULL, serve, p), 0);
  sem_wait(&p->listens);
}

static void end(profiling *p) {
  lp_flag_set(&p->stop);
  pthread_join(p->thread, NULL);
  ck_assert_int_eq(p->status, LP_OK);
  sem_destroy(&p->listens);
  for (int i = 0; i < BUNDLES; i++)
    free(p->path[i]);
}

static lp_remote_profiler *open_for(const profiling *p, const char *bundle, lp_diag *diag) {
  const lp_remote_profiler_options options = {.address = p->address, .bundle = bundle};
  lp_remote_profiler *profiler = NULL;
  lp_status status = lp_remote_profiler_open(&options, &profiler, diag);
  ck_assert_int_eq(status == LP_OK, profiler != NULL);
  return profiler;
}

/* Two devices take turns, so that the worker changes its bundle. */
LP_TEST(profile_of_two_bundles) {
  profiling p = {.stop = 0};
  char *dir = toy_dir_create();
  begin(&p, dir);
  lp_diag *diag = lp_diag_create();
  lp_remote_profiler *profiler[BUNDLES];
  for (int i = 0; i < BUNDLES; i++)
    profiler[i] = open_for(&p, p.path[i], diag);
  for (int turn = 0; turn < 2 * BUNDLES; turn++) {
    lp_profile profile;
    ck_assert_int_eq(lp_remote_profiler_measure(profiler[turn % BUNDLES], turn, 1 + turn % 2, 3, &profile, diag),
                     LP_OK);
    ck_assert_uint_eq(profile.parts.count, TOY_STAGES);
    double sum = profile.other_ms;
    for (size_t i = 0; i < profile.parts.count; i++)
      sum += profile.parts.data[i].ms;
    ck_assert_double_eq_tol(sum, profile.total_ms, 1e-6 + 1e-3 * profile.total_ms);
    lp_vec_free(&profile.parts);
  }
  for (int i = 0; i < BUNDLES; i++)
    lp_remote_profiler_close(profiler[i]);
  lp_diag_free(diag);
  end(&p);
  toy_dir_remove(dir);
}

LP_TEST(profile_refuses) {
  static const struct {
    int64_t past, count, repetitions;
    const char *why;
  } wrong[] = {{-1, 1, 3, "a measurement of 1 tokens after -1"},
               {0, 0, 3, "a measurement of 0 tokens"},
               {0, 1, 100000, "100000 times"},
               {TOY_CONTEXT - 1, 2, 3, "exceed the model's context"}};
  profiling p = {.stop = 0};
  char *dir = toy_dir_create();
  begin(&p, dir);
  lp_diag *diag = lp_diag_create();
  char *other = toy_bundle_write(dir, "other", &(toy_placement){.prefill = "dddddd", .seed = 3});
  ck_assert_ptr_null(open_for(&p, other, diag));
  ck_assert_ptr_nonnull(strstr(toy_error(diag), "bundle"));
  lp_diag_free(diag);
  diag = lp_diag_create();
  lp_remote_profiler *profiler = open_for(&p, p.path[1], diag);
  ck_assert_ptr_nonnull(profiler);
  for (size_t i = 0; i < LP_COUNT(wrong); i++) {
    lp_diag *own = lp_diag_create();
    lp_profile profile;
    ck_assert_int_ne(
        lp_remote_profiler_measure(profiler, wrong[i].past, wrong[i].count, wrong[i].repetitions, &profile, own),
        LP_OK);
    ck_assert_msg(strstr(toy_error(own), wrong[i].why) != NULL, "%s", toy_error(own));
    lp_diag_free(own);
  }
  lp_profile profile; /* the connection still serves */
  ck_assert_int_eq(lp_remote_profiler_measure(profiler, 0, 4, 2, &profile, diag), LP_OK);
  lp_vec_free(&profile.parts);
  lp_remote_profiler_close(profiler);
  lp_diag_free(diag);
  free(other);
  end(&p);
  toy_dir_remove(dir);
}

/* A worker that serves sessions does not measure. */
LP_TEST(profile_of_a_plain_worker) {
  char *dir = toy_dir_create();
  char *bundle = toy_bundle_write(dir, "cut", &(toy_placement){.prefill = "ddccdd"});
  toy_worker worker = toy_worker_start(bundle, NULL, NULL);
  lp_diag *diag = lp_diag_create();
  const lp_remote_profiler_options options = {.address = worker.address, .bundle = bundle};
  lp_remote_profiler *profiler = NULL;
  lp_profile profile;
  ck_assert_int_eq(lp_remote_profiler_open(&options, &profiler, diag), LP_OK);
  ck_assert_int_ne(lp_remote_profiler_measure(profiler, 0, 4, 2, &profile, diag), LP_OK);
  ck_assert_ptr_nonnull(strstr(toy_error(diag), "not a message for the cloud"));
  lp_remote_profiler_close(profiler);
  lp_diag_free(diag);
  toy_worker_stop(&worker);
  free(bundle);
  toy_dir_remove(dir);
}
