/* Requests of an engine in tests: see asker.h. */
#include "tests/runtime/engine/asker.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

const toy_placement asker_splits[SPLITS] = {{.prefill = "dddccc"},
                                            {.prefill = "ddccdd"},
                                            {.prefill = "ccccdd"},
                                            {.prefill = "dcdcdc"},
                                            {.prefill = "cccccc"},
                                            {.prefill = "cccccc", .input_there = true},
                                            {.prefill = "dddccc", .exits = {1, 2}}};

static bool take(void *user, int32_t choice, const lp_drawn *drawn) {
  asker *a = user;
  if (choice == 0) a->made[a->count++] = drawn->token;
  a->exits += drawn->exit > 0;
  return a->limit == 0 || a->count < a->limit;
}

static bool is_abandoned(void *user) {
  return ((asker *)user)->abandons;
}

void *asker_run(void *user) {
  asker *a = user;
  lp_diag *diag = lp_diag_create();
  double queue_ms = 0;
  a->count = a->exits = 0;
  const lp_engine_request request = {.prompt = a->prompt,
                                     .length = a->length,
                                     .answered = a->answered,
                                     .max_tokens = a->most,
                                     .choices = a->choices,
                                     .client = (uint64_t)a->length % 3,
                                     .tenant = a->tenant,
                                     .decoding = {.sampling = a->sampling, .repetition_penalty = 1, .top_logprobs = -1},
                                     .sink = take,
                                     .is_abandoned = is_abandoned,
                                     .user = a};
  lp_engine_request adjusted = request;
  if (a->how) adjusted.decoding = *a->how;
  a->status = lp_engine_generate(a->engine, &adjusted, a->outcome, &queue_ms, diag);
  lp_diag_free(diag);
  return NULL;
}

/* Prompts of many lengths: some take several passes. */
void asker_set_up(asker *a, const lp_bundle *bundle, lp_engine *engine, int index) {
  *a = (asker){.bundle = bundle, .engine = engine, .choices = 1, .most = MADE};
  a->sampling = (lp_sampling){.temperature = index % 2 ? 0.8 : 0, .top_p = 1, .seed = (uint64_t)index};
  a->length = (size_t)(index % 4 == 3 ? MOST_PROMPT : 1 + index * 5);
  for (size_t i = 0; i < a->length; i++)
    a->prompt[i] = (int32_t)((i * 7 + (size_t)index * 3) % (size_t)lp_bundle_vocab(bundle));
}

/* The tokens of a session without others. */
void asker_check(const asker *a) {
  lp_diag *diag = lp_diag_create();
  lp_generate_options options = {.sampling = a->sampling, .max_tokens = a->most, .threads = 1, .theta = a->theta};
  lp_session *session = NULL;
  lp_generation made = {0};
  if (a->theta > 0) options.mode = LP_MODE_THRESHOLD, options.codec = LP_CODEC_F32;
  ck_assert_int_eq(lp_session_open(a->bundle, &options, &session, diag), LP_OK);
  ck_assert_int_eq(lp_session_generate(session, a->prompt, 1, (int64_t)a->length, NULL, NULL, &made, diag), LP_OK);
  ck_assert_int_eq(a->status, LP_OK);
  ck_assert_int_eq(a->count, (int64_t)made.tokens.count);
  for (int64_t i = 0; i < a->count; i++)
    ck_assert_int_eq(a->made[i], made.tokens.data[i].token);
  lp_generation_free(&made);
  lp_session_close(session);
  lp_diag_free(diag);
}

lp_engine *asker_engine_with(const lp_bundle *bundle, const lp_engine_options *options) {
  lp_engine *engine = NULL;
  lp_diag *diag = lp_diag_create();
  ck_assert_msg(lp_engine_open(bundle, options, &engine, diag) == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  return engine;
}

lp_engine *asker_engine(const lp_bundle *bundle, int64_t kv_bytes) {
  return asker_engine_with(bundle, &(lp_engine_options){.threads = 2, .kv_bytes = kv_bytes});
}

/* Returns the tokens that exits gave, of an engine with this theta. */
int64_t askers_run_at(const lp_bundle *bundle, lp_engine *engine, double theta) {
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) {
    asker_set_up(&all[i], bundle, engine, i);
    all[i].theta = theta;
  }
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, asker_run, &all[i]), 0);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  int64_t exits = 0;
  for (int i = 0; i < THREADS; i++) {
    asker_check(&all[i]);
    exits += all[i].exits;
  }
  free(all);
  return exits;
}

void askers_run(const lp_bundle *bundle, lp_engine *engine) {
  ck_assert_int_eq(askers_run_at(bundle, engine, 0), 0);
}

int32_t askers_run_long(const lp_bundle *bundle, lp_engine *engine, double theta, int64_t budget) {
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  int32_t most = 0;
  for (int i = 0; i < THREADS; i++) {
    asker_set_up(&all[i], bundle, engine, i);
    all[i].theta = theta;
    all[i].length = LONG_BEGUN;
    all[i].most = MOST_MADE;
    all[i].choices = LP_COUNT(all[i].outcome); /* which begin together */
    ck_assert_int_eq(pthread_create(&thread[i], NULL, asker_run, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    while (pthread_tryjoin_np(thread[i], NULL) != 0) {
      lp_engine_load load = lp_engine_now(engine);
      if (budget > 0) ck_assert_int_le(load.kv_bytes + load.kept_bytes, budget);
      if (load.running > most) most = load.running;
      (void)usleep(100);
    }
    asker_check(&all[i]);
  }
  free(all);
  return most;
}

lp_bundle *asker_bundle(const char *sides) {
  return toy_bundle_make(&(toy_placement){.prefill = sides}, LP_LOAD_DEVICE);
}

void asker_set_up_alike(asker *a, const lp_bundle *bundle, lp_engine *engine, int index) {
  asker_set_up(a, bundle, engine, 3);
  a->sampling.seed = (uint64_t)index;
  for (size_t i = ALIKE; i < a->length; i++)
    a->prompt[i] = (a->prompt[i] + index) % lp_bundle_vocab(bundle);
}
