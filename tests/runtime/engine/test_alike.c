/* Prompts that begin alike share the rows of their beginning, on each side. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/runtime/engine/asker.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

/* All but the first one copy the rows that they share, whether it runs or has ended. */
LP_LOOP_TEST(prompts_begin_alike, 0, 2) {
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) {
    asker_set_up_alike(&all[i], bundle, engine, i);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, asker_run, &all[i]), 0);
    if (_i == 0) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  }
  for (int i = 0; i < THREADS && _i == 1; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  int64_t reused = 0;
  for (int i = 0; i < THREADS; i++) {
    asker_check(&all[i]);
    reused += all[i].outcome[0].reused;
  }
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(reused, (THREADS - 1) * SHARED);
  ck_assert_int_eq(load.reused, reused);
  ck_assert_int_gt(load.kept_bytes, 0);
  asker *next = &all[0];
  asker_set_up_alike(next, bundle, engine, THREADS + 1);
  ck_assert_int_eq(lp_engine_rows_of(engine, 0, next->prompt, next->length), SHARED);
  ck_assert_int_eq(lp_engine_rows_of(engine, 0, next->prompt, SHARED + 15), SHARED / 2); /* some are computed anyway */
  next->prompt[0]++;
  ck_assert_int_eq(lp_engine_rows_of(engine, 0, next->prompt, next->length), 0);
  free(all);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Whether they run at the same time or one after the other, tenants have the rows of their own prompts only. */
LP_LOOP_TEST(tenants_share_no_rows, 0, 2) {
  enum { TENANTS = 3 };
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  asker *all = lp_alloc(2 * TENANTS * sizeof *all);
  pthread_t thread[2 * TENANTS];
  int64_t reused = 0;
  for (int i = 0; i < 2 * TENANTS; i++) {
    asker_set_up_alike(&all[i], bundle, engine, i);
    all[i].tenant = (uint64_t)(i % TENANTS);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, asker_run, &all[i]), 0);
    if (_i == 0) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  }
  for (int i = 0; i < 2 * TENANTS; i++) {
    if (_i == 1) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    asker_check(&all[i]);
    reused += all[i].outcome[0].reused;
  }
  ck_assert_int_eq(reused, TENANTS * SHARED); /* the second request of each */
  for (uint64_t tenant = 0; tenant <= TENANTS; tenant++)
    ck_assert_int_eq(lp_engine_rows_of(engine, tenant, all[0].prompt, all[0].length), tenant < TENANTS ? SHARED : 0);
  free(all);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Choices share their prompt, and a continued answer that of the first part. */
LP_TEST(choices_and_continued_answers_share) {
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  asker *whole = lp_alloc(sizeof *whole), *half = lp_alloc(sizeof *half);
  asker_set_up(whole, bundle, engine, 3);
  whole->choices = 4;
  (void)asker_run(whole);
  asker_check(whole);
  ck_assert_int_eq(lp_engine_now(engine).reused, 3 * SHARED);
  asker_set_up(half, bundle, engine, 3);
  half->length = 80;
  (void)asker_run(half);
  int64_t had = half->count < 9 ? half->count : 9;
  *whole = *half;
  for (int64_t i = 0; i < had; i++)
    half->prompt[half->length++] = whole->made[i];
  half->answered = (size_t)had;
  (void)asker_run(half);
  ck_assert_int_eq(half->outcome[0].reused, SHARED);
  for (int64_t i = had; i < whole->count; i++)
    ck_assert_int_eq(half->made[i - had], whole->made[i]);
  free(whole);
  free(half);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Rows that are kept leave when a request needs their room. */
LP_TEST(kept_rows_are_within_the_budget) {
  lp_bundle *bundle = asker_bundle("dddddd");
  asker *one = lp_alloc(sizeof *one);
  int64_t bytes = 256;
  for (bool fits = false; !fits; bytes *= 2) { /* the next power of two holds one request, and rows of a part of it */
    lp_engine *engine = asker_engine(bundle, bytes);
    asker_set_up(one, bundle, engine, 3);
    (void)asker_run(one);
    fits = one->status == LP_OK;
    for (int i = 0; i < 6 && fits; i++) {
      asker_set_up_alike(one, bundle, engine, i);
      if (i % 2) one->prompt[0]++;
      (void)asker_run(one);
      asker_check(one);
      lp_engine_load load = lp_engine_now(engine);
      ck_assert_int_le(load.kv_bytes + load.kept_bytes, bytes);
    }
    lp_engine_close(engine);
  }
  free(one);
  lp_bundle_free(bundle);
}

/* ---- with a worker ---- */

/* Asks one after the other (`together` false), or at once; returns the rows that were copied. */
static int64_t ask_alike(const lp_bundle *bundle, lp_engine *engine, bool together) {
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  int64_t reused = 0;
  for (int i = 0; i < THREADS; i++) {
    asker_set_up_alike(&all[i], bundle, engine, i);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, asker_run, &all[i]), 0);
    if (!together) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  }
  for (int i = 0; i < THREADS && together; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  for (int i = 0; i < THREADS; i++) {
    asker_check(&all[i]);
    reused += all[i].outcome[0].reused;
  }
  free(all);
  return reused;
}

/* Both sides copy the rows that prompts share, whether those run or have ended, and also after a pause. */
LP_LOOP_TEST(prompts_begin_alike_with_a_worker, 0, 2 * SPLITS) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &asker_splits[_i / 2]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine = asker_engine_with(bundle, &(lp_engine_options){.threads = 2, .cloud = worker.address});
  ck_assert_int_eq(ask_alike(bundle, engine, _i % 2), (THREADS - 1) * SHARED);
  if (_i == 0) (void)usleep(1200000); /* after a second the connection is examined */
  ck_assert_int_eq(ask_alike(bundle, engine, _i % 2), THREADS * SHARED);
  ck_assert_int_eq(lp_engine_now(engine).reused, (2 * THREADS - 1) * SHARED);
  lp_engine_close(engine);
  ck_assert_int_eq(toy_worker_end(&worker), 0);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

/* A worker that has dropped the rows, or was started again: prompts are computed whole. */
LP_LOOP_TEST(a_worker_lacks_shared_rows, 0, 2) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &asker_splits[0]), address[32];
  toy_worker worker = toy_worker_start(path, NULL, "100");
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  (void)snprintf(address, sizeof address, "%s", worker.address);
  lp_engine *engine = asker_engine_with(bundle, &(lp_engine_options){.threads = 1, .cloud = address});
  asker *one = lp_alloc(sizeof *one);
  for (int i = 0; i < 2; i++) {
    asker_set_up_alike(one, bundle, engine, i);
    (void)asker_run(one);
    asker_check(one);
    ck_assert_int_eq(one->outcome[0].reused, 0);
    if (_i == 1) {
      toy_worker_stop(&worker);
      worker = toy_worker_start_at(path, NULL, NULL, address);
    }
    (void)usleep(_i == 1 ? 1200000 : 300000);
  }
  ck_assert_int_eq(lp_engine_now(engine).reused, 0);
  lp_engine_close(engine);
  toy_worker_stop(&worker);
  free(one);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}
