/* Engines whose layers run partly on a worker: tokens, exits, and workers that go and come back. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/link/link_emulator.h"
#include "tests/runtime/engine/asker.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

/* A bundle whose cloud side a worker has. */
typedef struct {
  char *dir, *path;
  toy_worker worker;
  lp_bundle *bundle;
} served;

/* `budget`: the bytes of the worker's --context-budget as text; NULL: the default. */
static served serve(const toy_placement *placement, const char *budget) {
  served s = {.dir = toy_dir_create()};
  s.path = toy_bundle_write(s.dir, "split", placement);
  s.worker = toy_worker_start(s.path, budget, NULL);
  s.bundle = toy_bundle_load(s.path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  return s;
}

/* Requires that the worker ends without a failure; the engine is closed before. */
static void end_serving(served *s) {
  ck_assert_int_eq(toy_worker_end(&s->worker), 0);
  lp_bundle_free(s->bundle);
  toy_dir_remove(s->dir);
  free(s->path);
}

LP_LOOP_TEST(with_a_worker_as_alone, 0, SPLITS) {
  served s = serve(&asker_splits[_i], NULL);
  lp_engine *engine = asker_engine_with(s.bundle, &(lp_engine_options){.threads = 2, .cloud = s.worker.address});
  for (int round = 0; round < 2; round++)
    askers_run(s.bundle, engine);
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(load.running + load.waiting, 0);
  lp_engine_close(engine);
  end_serving(&s);
}

/* The worker reads the tokens itself where its layers are the first. */
LP_LOOP_TEST(a_worker_that_reads_the_tokens, 0, 2) {
  static const char *const sides[] = {"ccccdd", "cdcdcd"};
  served s = serve(&(toy_placement){.prefill = sides[_i], .input_there = true}, NULL);
  lp_engine *engine = asker_engine_with(s.bundle, &(lp_engine_options){.threads = 2, .cloud = s.worker.address});
  askers_run(s.bundle, engine);
  lp_engine_close(engine);
  end_serving(&s);
}

/* Where the worker has all of decode, an answer takes a round trip, and not one for each token. A request that wants
 * log probabilities draws here, and asks for the logits of each token. */
LP_LOOP_TEST(an_answer_takes_a_round_trip, 0, 2) {
  enum { RTT_MS = 40 };
  const lp_link_shape slow = {.rtt_ms = RTT_MS};
  served s = serve(&asker_splits[ON_DEVICE + 1], NULL);
  lp_link_emulator *link = NULL;
  ck_assert_int_eq(lp_link_emulator_start(s.worker.address, &slow, &link, NULL), LP_OK);
  lp_engine *engine =
      asker_engine_with(s.bundle, &(lp_engine_options){.threads = 1, .cloud = lp_link_emulator_address(link)});
  asker *one = lp_alloc(sizeof *one);
  asker_set_up(one, s.bundle, engine, 3);
  (void)asker_run(one); /* connects */
  asker_check(one);
  lp_decoding how = {.sampling = one->sampling, .repetition_penalty = 1, .top_logprobs = 0};
  asker_set_up(one, s.bundle, engine, 3);
  if (_i == 1) one->how = &how;
  double begin = lp_now_ms();
  (void)asker_run(one);
  double took = lp_now_ms() - begin;
  asker_check(one);
  ck_assert_int_eq(one->count, MADE);
  if (_i == 0)
    ck_assert_double_lt(took, MADE / 4 * RTT_MS); /* on a busy machine */
  else
    ck_assert_double_ge(took, (MADE - 1) * RTT_MS);
  free(one);
  lp_engine_close(engine);
  lp_link_emulator_stop(link);
  end_serving(&s);
}

/* A worker's budget counts the pages that sessions hold. Together the requests could need almost five times the
 * budget: the worker takes the memory of the sessions that were opened last, whose requests wait and run again. */
LP_LOOP_TEST(a_worker_without_room, 0, SPLITS - 1) {
  enum { PAGES = 5 };
  char budget[32];
  (void)snprintf(budget, sizeof budget, "%ld", PAGES * TOY_LAYERS * sysconf(_SC_PAGESIZE));
  served s = serve(&asker_splits[_i], budget);
  lp_engine *engine = asker_engine_with(s.bundle, &(lp_engine_options){.threads = 2, .cloud = s.worker.address});
  (void)askers_run_long(s.bundle, engine, 0, 0);
  ck_assert_int_gt(lp_engine_now(engine).preempted, 0);
  lp_engine_close(engine);
  end_serving(&s);
}

/* So does an engine's own budget, which counts the device's layers of a split: more requests run than could reserve
 * what they may need. Those that were admitted last give their memory back here and at the worker. */
LP_LOOP_TEST(a_device_without_room, 0, ON_DEVICE) {
  enum { PAGES = 5 };
  int64_t budget = 0;
  for (const char *side = asker_splits[_i].prefill; *side; side++)
    budget += *side == 'd' ? PAGES * sysconf(_SC_PAGESIZE) : 0;
  served s = serve(&asker_splits[_i], NULL);
  lp_engine *engine =
      asker_engine_with(s.bundle, &(lp_engine_options){.threads = 2, .cloud = s.worker.address, .kv_bytes = budget});
  (void)askers_run_long(s.bundle, engine, 0, budget);
  ck_assert_int_gt(lp_engine_now(engine).preempted, 0);
  lp_engine_close(engine);
  end_serving(&s);
}

/* With early exits, a request whose rows at the worker or here gave way waits as well, and has the same tokens. */
LP_LOOP_TEST(exits_without_room, 0, 2) {
  enum { PAGES = 5, LAYERS = 3 };
  char there[32];
  const int64_t budget = PAGES * LAYERS * sysconf(_SC_PAGESIZE);
  (void)snprintf(there, sizeof there, "%" PRId64, budget);
  served s = serve(&asker_splits[SPLITS - 1], _i == 0 ? there : NULL);
  lp_engine_options options = {.threads = 2, .cloud = s.worker.address, .theta = 0.15};
  if (_i == 1) options.kv_bytes = budget;
  lp_engine *engine = asker_engine_with(s.bundle, &options);
  (void)askers_run_long(s.bundle, engine, options.theta, options.kv_bytes);
  ck_assert_int_gt(lp_engine_now(engine).preempted, 0);
  lp_engine_close(engine);
  end_serving(&s);
}

/* A text that fits the worker's budget at no time is refused, and does not wait. */
LP_TEST(a_worker_that_is_too_small) {
  char budget[32];
  (void)snprintf(budget, sizeof budget, "%ld", (TOY_LAYERS + 1) * sysconf(_SC_PAGESIZE));
  served s = serve(&asker_splits[0], budget);
  lp_engine *engine = asker_engine_with(s.bundle, &(lp_engine_options){.threads = 1, .cloud = s.worker.address});
  asker *one = lp_alloc(sizeof *one);
  asker_set_up(one, s.bundle, engine, 3);
  (void)asker_run(one);
  ck_assert_int_eq(one->status, LP_FAILED);
  asker_set_up(one, s.bundle, engine, 1);
  (void)asker_run(one);
  asker_check(one);
  free(one);
  lp_engine_close(engine);
  end_serving(&s);
}

/* Tokens that exits give in passes are those of a session in threshold mode, and the rest comes from the worker. */
LP_LOOP_TEST(exits_as_alone, 0, 5) {
  static const double thetas[] = {1e-6, 0.1, 0.15, 0.2, 2};
  served s = serve(&(toy_placement){.prefill = "dddccc", .exits = {1, 2}}, NULL);
  lp_engine *engine =
      asker_engine_with(s.bundle, &(lp_engine_options){.threads = 2, .cloud = s.worker.address, .theta = thetas[_i]});
  for (int round = 0; round < 2; round++) {
    int64_t exits = askers_run_at(s.bundle, engine, thetas[_i]);
    if (_i == 0) ck_assert_int_eq(exits, THREADS * MADE);
    if (_i >= 1 && _i <= 3) ck_assert(exits > 0 && exits < THREADS * MADE);
    if (thetas[_i] > 1) ck_assert_int_eq(exits, 0);
  }
  lp_engine_close(engine);
  end_serving(&s);
}

/* Without the worker the last exit gives every token; once it is back, it gets the rows that it lacks. */
LP_TEST(exits_without_the_worker) {
  char address[64], *dir = toy_dir_create(),
                    *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "dddccc", .exits = {1, 2}});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  (void)snprintf(address, sizeof address, "%s", worker.address);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine = asker_engine_with(bundle, &(lp_engine_options){.threads = 1, .cloud = address, .theta = 2});
  asker *one = lp_alloc(sizeof *one);
  asker_set_up(one, bundle, engine, 5);
  (void)asker_run(one);
  ck_assert_int_eq(one->exits, 0);
  toy_worker_stop(&worker);
  (void)asker_run(one);
  ck_assert_int_eq(one->status, LP_OK);
  ck_assert_int_eq(one->exits, MADE);
  worker = toy_worker_start_at(path, NULL, NULL, address);
  (void)usleep(1200000); /* the engine waits a second before it dials again */
  one->theta = 2;
  (void)asker_run(one);
  asker_check(one);
  ck_assert_int_eq(one->exits, 0);
  lp_engine_close(engine);
  toy_worker_stop(&worker);
  free(one);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

/* Requests at a worker that is not there, or is killed, fail as lost; when it is back, the engine connects again. */
LP_TEST(a_worker_is_lost_and_back) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &asker_splits[0]), address[32];
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  (void)snprintf(address, sizeof address, "%s", worker.address);
  lp_engine *engine = asker_engine_with(bundle, &(lp_engine_options){.threads = 1, .cloud = address});
  asker *one = lp_alloc(sizeof *one);
  asker_set_up(one, bundle, engine, 3);
  (void)asker_run(one);
  asker_check(one);
  toy_worker_stop(&worker);
  for (int i = 0; i < 2; i++) {
    asker_set_up(one, bundle, engine, 3);
    (void)asker_run(one);
    ck_assert_int_eq(one->status, LP_FAILED);
    ck_assert(one->outcome[0].lost);
  }
  worker = toy_worker_start_at(path, NULL, NULL, address);
  askers_run(bundle, engine);
  lp_engine_close(engine);
  toy_worker_stop(&worker);
  free(one);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

/* Requests that are under way when the worker is killed end: complete, or lost. */
LP_TEST(a_worker_is_killed_under_load) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &asker_splits[1]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine = asker_engine_with(bundle, &(lp_engine_options){.threads = 1, .cloud = worker.address});
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) {
    asker_set_up(&all[i], bundle, engine, i);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, asker_run, &all[i]), 0);
    if (i == THREADS / 2) toy_worker_stop(&worker);
  }
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    if (all[i].status == LP_OK)
      asker_check(&all[i]);
    else
      ck_assert(all[i].outcome[0].lost);
  }
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(load.running + load.waiting, 0);
  free(all);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}
