/* Requests of many threads give the tokens that sessions give alone. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/engine/engine.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { THREADS = 12, MOST_PROMPT = 90, MADE = 24, MOST_MADE = 90 };

typedef struct {
  const lp_bundle *bundle;
  lp_engine *engine;
  lp_sampling sampling;
  int32_t prompt[MOST_PROMPT], made[MOST_MADE + 1], choices;
  size_t length, answered;
  int64_t most; /* tokens */
  int64_t count;
  int64_t limit; /* tokens after which the sink wants no more; 0: none */
  bool abandons;
  double theta;           /* of the engine; 0: its bundle's exits are not used */
  int64_t exits;          /* tokens of these */
  const lp_decoding *how; /* NULL: only `sampling` */
  lp_status status;
  lp_engine_outcome outcome[4];
} asker;

static bool take(void *user, int32_t choice, const lp_drawn *drawn) {
  asker *a = user;
  if (choice == 0) a->made[a->count++] = drawn->token;
  a->exits += drawn->exit > 0;
  return a->limit == 0 || a->count < a->limit;
}

static bool is_abandoned(void *user) {
  return ((asker *)user)->abandons;
}

static void *ask(void *user) {
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
static void set_up(asker *a, const lp_bundle *bundle, lp_engine *engine, int index) {
  *a = (asker){.bundle = bundle, .engine = engine, .choices = 1, .most = MADE};
  a->sampling = (lp_sampling){.temperature = index % 2 ? 0.8 : 0, .top_p = 1, .seed = (uint64_t)index};
  a->length = (size_t)(index % 4 == 3 ? MOST_PROMPT : 1 + index * 5);
  for (size_t i = 0; i < a->length; i++)
    a->prompt[i] = (int32_t)((i * 7 + (size_t)index * 3) % (size_t)lp_bundle_vocab(bundle));
}

/* The tokens of a session without others. */
static void check(const asker *a) {
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

static lp_engine *open_with(const lp_bundle *bundle, const lp_engine_options *options) {
  lp_engine *engine = NULL;
  lp_diag *diag = lp_diag_create();
  ck_assert_msg(lp_engine_open(bundle, options, &engine, diag) == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  return engine;
}

static lp_engine *open_engine(const lp_bundle *bundle, int64_t kv_bytes) {
  return open_with(bundle, &(lp_engine_options){.threads = 2, .kv_bytes = kv_bytes});
}

/* Returns the tokens that exits gave, of an engine with this theta. */
static int64_t ask_together_at(const lp_bundle *bundle, lp_engine *engine, double theta) {
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) {
    set_up(&all[i], bundle, engine, i);
    all[i].theta = theta;
  }
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, ask, &all[i]), 0);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  int64_t exits = 0;
  for (int i = 0; i < THREADS; i++) {
    check(&all[i]);
    exits += all[i].exits;
  }
  free(all);
  return exits;
}

static void ask_together(const lp_bundle *bundle, lp_engine *engine) {
  ck_assert_int_eq(ask_together_at(bundle, engine, 0), 0);
}

static lp_bundle *make(const char *sides) {
  return toy_bundle_make(&(toy_placement){.prefill = sides}, LP_LOAD_DEVICE);
}

LP_TEST(together_as_alone) {
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  ask_together(bundle, engine);
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(load.running + load.waiting, 0);
  ck_assert_int_eq(load.kv_bytes, 0);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* A budget for one long sequence: the others wait for it, and each gets its turn. */
LP_TEST(within_a_budget) {
  lp_bundle *bundle = make("dddddd");
  lp_diag *diag = lp_diag_create();
  asker *one = lp_alloc(sizeof *one);
  int64_t bytes = 1;
  lp_engine *engine = open_engine(bundle, bytes);
  set_up(one, bundle, engine, 3);
  (void)ask(one);
  ck_assert_int_eq(one->status, LP_FAILED); /* it can never run */
  lp_engine_close(engine);
  for (bytes = 256; one->status != LP_OK; bytes *= 2) {
    engine = open_engine(bundle, bytes);
    set_up(one, bundle, engine, 3);
    (void)ask(one);
    if (one->status == LP_OK) ask_together(bundle, engine);
    lp_engine_close(engine);
  }
  free(one);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
}

/* A choice that its caller ends, and a request that it abandons, leave nothing. */
LP_TEST(ended_early) {
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one);
  set_up(one, bundle, engine, 4);
  one->limit = 5;
  (void)ask(one);
  ck_assert_int_eq(one->status, LP_OK);
  ck_assert_int_eq(one->count, 5);
  ck_assert(!one->outcome[0].cut);
  set_up(one, bundle, engine, 4);
  one->abandons = true;
  (void)ask(one);
  ck_assert_int_eq(one->status, LP_OK);
  ck_assert_int_lt(one->outcome[0].tokens, MADE);
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(load.running + load.waiting, 0);
  free(one);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Choices draw numbers of their own; the first is that of a request with one choice. */
LP_TEST(several_choices) {
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one);
  set_up(one, bundle, engine, 5);
  one->choices = 4;
  (void)ask(one);
  check(one);
  for (int i = 0; i < 4; i++)
    ck_assert_int_gt(one->outcome[i].tokens, 0);
  free(one);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* ---- prompts that begin alike ------------------------------------------------------------------------------------ */

enum { ALIKE = 70, SHARED = 64 }; /* equal tokens; of these rows, in whole grains */

static void set_up_alike(asker *a, const lp_bundle *bundle, lp_engine *engine, int index) {
  set_up(a, bundle, engine, 3);
  a->sampling.seed = (uint64_t)index;
  for (size_t i = ALIKE; i < a->length; i++)
    a->prompt[i] = (a->prompt[i] + index) % lp_bundle_vocab(bundle);
}

/* All but the first one copy the rows that they share, whether it runs or has ended. */
LP_LOOP_TEST(prompts_begin_alike, 0, 2) {
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) {
    set_up_alike(&all[i], bundle, engine, i);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, ask, &all[i]), 0);
    if (_i == 0) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  }
  for (int i = 0; i < THREADS && _i == 1; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  int64_t reused = 0;
  for (int i = 0; i < THREADS; i++) {
    check(&all[i]);
    reused += all[i].outcome[0].reused;
  }
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(reused, (THREADS - 1) * SHARED);
  ck_assert_int_eq(load.reused, reused);
  ck_assert_int_gt(load.kept_bytes, 0);
  free(all);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Choices share their prompt, and a continued answer that of the first part. */
LP_TEST(choices_and_continued_answers_share) {
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  asker *whole = lp_alloc(sizeof *whole), *half = lp_alloc(sizeof *half);
  set_up(whole, bundle, engine, 3);
  whole->choices = 4;
  (void)ask(whole);
  check(whole);
  ck_assert_int_eq(lp_engine_now(engine).reused, 3 * SHARED);
  set_up(half, bundle, engine, 3);
  half->length = 80;
  (void)ask(half);
  int64_t had = half->count < 9 ? half->count : 9;
  *whole = *half;
  for (int64_t i = 0; i < had; i++)
    half->prompt[half->length++] = whole->made[i];
  half->answered = (size_t)had;
  (void)ask(half);
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
  lp_bundle *bundle = make("dddddd");
  asker *one = lp_alloc(sizeof *one);
  int64_t bytes = 256;
  for (bool fits = false; !fits; bytes *= 2) { /* the next power of two holds one request, and rows of a part of it */
    lp_engine *engine = open_engine(bundle, bytes);
    set_up(one, bundle, engine, 3);
    (void)ask(one);
    fits = one->status == LP_OK;
    for (int i = 0; i < 6 && fits; i++) {
      set_up_alike(one, bundle, engine, i);
      if (i % 2) one->prompt[0]++;
      (void)ask(one);
      check(one);
      lp_engine_load load = lp_engine_now(engine);
      ck_assert_int_le(load.kv_bytes + load.kept_bytes, bytes);
    }
    lp_engine_close(engine);
  }
  free(one);
  lp_bundle_free(bundle);
}

/* Requests that could need twice the budget together run at the same time, since they begin with little. Those that
 * were admitted last give their memory back, and their tokens do not change. */
LP_TEST(memory_is_given_back) {
  enum { PAGES = 5, BEGUN = 30 };
  lp_bundle *bundle = make("dddddd");
  int64_t budget = PAGES * TOY_LAYERS * sysconf(_SC_PAGESIZE);
  lp_engine *engine = open_engine(bundle, budget);
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  int32_t most = 0;
  bool running = true;
  for (int i = 0; i < THREADS; i++) {
    set_up(&all[i], bundle, engine, i);
    all[i].length = BEGUN;
    all[i].most = MOST_MADE;
    ck_assert_int_eq(pthread_create(&thread[i], NULL, ask, &all[i]), 0);
  }
  for (int looks = 0; running && looks < 100000; looks++) {
    lp_engine_load load = lp_engine_now(engine);
    ck_assert_int_le(load.kv_bytes + load.kept_bytes, budget);
    if (load.running > most) most = load.running;
    running = load.running + load.waiting > 0 || looks < 10;
    (void)usleep(100);
  }
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    check(&all[i]);
  }
  ck_assert_int_gt(lp_engine_now(engine).preempted, 0);
  ck_assert_int_gt(most, PAGES / 2); /* each may need two pages of a layer */
  free(all);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* A great bias decides; a great penalty leaves each token once; penalties of nothing change nothing. */
LP_TEST(adjusted_logits) {
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one), *plain = lp_alloc(sizeof *plain);
  const lp_sampling greedy = {.temperature = 0, .top_p = 1};
  const lp_logit_bias bias[] = {{5, 1000}, {7, 2000}, {7, -500}}, ban = {7, -INFINITY}, none = {7, 0};
  const lp_decoding biased = {greedy, .repetition_penalty = 1, .bias = bias, .bias_count = 3, .top_logprobs = -1},
                    once = {greedy, .repetition_penalty = 1, .presence_penalty = 1e6, .top_logprobs = -1},
                    often = {greedy, .repetition_penalty = 1, .frequency_penalty = 1e6, .top_logprobs = -1},
                    same = {greedy, .repetition_penalty = 1, .bias = &none, .bias_count = 1, .top_logprobs = -1},
                    seen = {greedy, .repetition_penalty = 1.5, .bias = &ban, .bias_count = 1, .top_logprobs = -1};
  set_up(plain, bundle, engine, 2);
  (void)ask(plain);
  check(plain);
  const lp_decoding *const ways[] = {&biased, &once, &often, &same, &seen};
  for (size_t w = 0; w < LP_COUNT(ways); w++) {
    set_up(one, bundle, engine, 2);
    one->how = ways[w];
    (void)ask(one);
    ck_assert_int_eq(one->status, LP_OK);
    ck_assert_int_eq(one->count, plain->count);
    for (int64_t i = 0; i < one->count; i++) {
      if (ways[w] == &biased) ck_assert_int_eq(one->made[i], 7);
      if (ways[w] == &same) ck_assert_int_eq(one->made[i], plain->made[i]);
      if (ways[w] == &seen) ck_assert_int_ne(one->made[i], 7);
      for (int64_t k = 0; k < i && (ways[w] == &once || ways[w] == &often); k++)
        ck_assert_int_ne(one->made[i], one->made[k]);
    }
  }
  free(one);
  free(plain);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

LP_TEST(wrong_requests) {
  lp_bundle *bundle = make("dddddd"), *split = toy_bundle_make(&(toy_placement){.prefill = "ddccdd"}, LP_LOAD_DEVICE);
  lp_engine *engine = open_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one);
  const char *why = NULL;
  set_up(one, bundle, engine, 1);
  one->prompt[0] = lp_bundle_vocab(bundle);
  (void)ask(one);
  ck_assert_int_eq(one->status, LP_FAILED);
  one->length = 0;
  (void)ask(one);
  ck_assert_int_eq(one->status, LP_FAILED);
  ck_assert(!lp_engine_fits(split, &why));
  ck_assert_str_eq(why, "some layers run on a worker");
  free(one);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
  lp_bundle_free(split);
}

/* ---- with a worker ----------------------------------------------------------------------------------------------- */

/* The cloud draws, the device draws, the cloud reads the tokens, the sides alternate. */
static const toy_placement splits[] = {{.prefill = "dddccc"},
                                       {.prefill = "ddccdd"},
                                       {.prefill = "ccccdd"},
                                       {.prefill = "dcdcdc"},
                                       {.prefill = "dddccc", .exits = {1, 2}}};

LP_LOOP_TEST(with_a_worker_as_alone, 0, LP_COUNT(splits)) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &splits[_i]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine = open_with(bundle, &(lp_engine_options){.threads = 2, .cloud = worker.address});
  for (int round = 0; round < 2; round++)
    ask_together(bundle, engine);
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(load.running + load.waiting, 0);
  lp_engine_close(engine);
  ck_assert_int_eq(toy_worker_end(&worker), 0);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

/* Tokens that exits give in passes are those of a session in threshold mode, and the rest comes from the worker. */
LP_LOOP_TEST(exits_as_alone, 0, 5) {
  static const double thetas[] = {1e-6, 0.1, 0.15, 0.2, 2};
  char *dir = toy_dir_create(),
       *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "dddccc", .exits = {1, 2}});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine =
      open_with(bundle, &(lp_engine_options){.threads = 2, .cloud = worker.address, .theta = thetas[_i]});
  for (int round = 0; round < 2; round++) {
    int64_t exits = ask_together_at(bundle, engine, thetas[_i]);
    if (_i == 0) ck_assert_int_eq(exits, THREADS * MADE);
    if (_i >= 1 && _i <= 3) ck_assert(exits > 0 && exits < THREADS * MADE);
    if (thetas[_i] > 1) ck_assert_int_eq(exits, 0);
  }
  lp_engine_close(engine);
  ck_assert_int_eq(toy_worker_end(&worker), 0);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

/* Without the worker the last exit gives every token; once it is back, it gets the rows that it lacks. */
LP_TEST(exits_without_the_worker) {
  char address[64], *dir = toy_dir_create(),
                    *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "dddccc", .exits = {1, 2}});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  (void)snprintf(address, sizeof address, "%s", worker.address);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine = open_with(bundle, &(lp_engine_options){.threads = 1, .cloud = address, .theta = 2});
  asker *one = lp_alloc(sizeof *one);
  set_up(one, bundle, engine, 5);
  (void)ask(one);
  ck_assert_int_eq(one->exits, 0);
  toy_worker_stop(&worker);
  (void)ask(one);
  ck_assert_int_eq(one->status, LP_OK);
  ck_assert_int_eq(one->exits, MADE);
  worker = toy_worker_start_at(path, NULL, NULL, address);
  (void)usleep(1200000); /* the engine waits a second before it dials again */
  one->theta = 2;
  (void)ask(one);
  check(one);
  ck_assert_int_eq(one->exits, 0);
  lp_engine_close(engine);
  toy_worker_stop(&worker);
  free(one);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

enum { CHOICES = 3 };
typedef struct {
  lp_drawn drawn[CHOICES][MADE];
  int64_t count[CHOICES];
} heard;

static bool hear(void *user, int32_t choice, const lp_drawn *drawn) {
  heard *to = user;
  to->drawn[choice][to->count[choice]++] = *drawn;
  return true;
}

static void hear_answer(lp_engine *engine, const lp_decoding *how, heard *out) {
  const int32_t prompt[] = {3, 1, 4, 1, 5};
  lp_engine_outcome outcome[CHOICES];
  lp_diag *diag = lp_diag_create();
  double queue_ms = 0;
  const lp_engine_request request = {.prompt = prompt,
                                     .length = LP_COUNT(prompt),
                                     .max_tokens = MADE,
                                     .choices = CHOICES,
                                     .decoding = *how,
                                     .sink = hear,
                                     .user = out};
  *out = (heard){0};
  ck_assert_msg(lp_engine_generate(engine, &request, outcome, &queue_ms, diag) == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
}

/* What lp_sampling does not say, and further choices, are drawn here from the worker's logits: the tokens and their
 * probabilities are those of an engine that runs all layers. */
LP_LOOP_TEST(draws_from_logits_of_a_worker, 0, LP_COUNT(splits)) {
  const lp_sampling warm = {.temperature = 0.9, .top_p = 1, .seed = 11}, greedy = {.top_p = 1};
  const lp_logit_bias bias[] = {{5, 3}, {7, -INFINITY}};
  const lp_decoding ways[] = {
      {warm, .repetition_penalty = 1, .top_logprobs = -1},
      {greedy, .repetition_penalty = 1, .top_logprobs = 3},
      {warm, .min_p = 0.2, .repetition_penalty = 1.3, .presence_penalty = 0.4, .frequency_penalty = 0.3,
       .top_logprobs = 0},
      {warm, .repetition_penalty = 1, .bias = bias, .bias_count = LP_COUNT(bias), .top_logprobs = -1}};
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &splits[_i]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD), *whole = make("dddddd");
  lp_engine *engine = open_with(bundle, &(lp_engine_options){.threads = 2, .cloud = worker.address});
  lp_engine *alone = open_engine(whole, 0);
  heard *found = lp_alloc(sizeof *found), *wanted = lp_alloc(sizeof *wanted);
  bool differ = false;
  for (size_t w = 0; w < LP_COUNT(ways); w++) {
    hear_answer(engine, &ways[w], found);
    hear_answer(alone, &ways[w], wanted);
    ck_assert_mem_eq(found->count, wanted->count, sizeof found->count);
    for (int c = 0; c < CHOICES; c++)
      for (int64_t i = 0; i < wanted->count[c]; i++) {
        const lp_drawn *a = &found->drawn[c][i], *b = &wanted->drawn[c][i];
        ck_assert_int_eq(a->token, b->token);
        ck_assert(isnan(b->logprob) ? isnan(a->logprob) : a->logprob == b->logprob);
        ck_assert_int_eq(a->top_count, b->top_count);
        for (int k = 0; k < b->top_count; k++)
          ck_assert(a->top[k].token == b->top[k].token && a->top[k].logprob == b->top[k].logprob);
        differ |= a->token != found->drawn[0][i].token;
      }
  }
  ck_assert(differ); /* choices draw with numbers of their own */
  free(found);
  free(wanted);
  lp_engine_close(alone);
  lp_engine_close(engine);
  ck_assert_int_eq(toy_worker_end(&worker), 0);
  lp_bundle_free(whole);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

/* An answer that was begun elsewhere goes on as it would have: penalties count what was made. */
LP_TEST(penalties_count_what_was_made) {
  const lp_decoding how = {{.temperature = 0.7, .top_p = 1, .seed = 4},
                           .repetition_penalty = 1.2,
                           .presence_penalty = 0.5,
                           .frequency_penalty = 0.5,
                           .top_logprobs = -1};
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  heard *whole = lp_alloc(sizeof *whole), *rest = lp_alloc(sizeof *rest);
  lp_diag *diag = lp_diag_create();
  hear_answer(engine, &how, whole);
  for (int32_t c = 0; c < CHOICES; c++) {
    int32_t text[5 + MADE / 2] = {3, 1, 4, 1, 5};
    lp_engine_outcome outcome;
    double queue_ms = 0;
    for (int i = 0; i < MADE / 2; i++)
      text[5 + i] = whole->drawn[c][i].token;
    const lp_engine_request request = {.prompt = text,
                                       .length = LP_COUNT(text),
                                       .answered = MADE / 2,
                                       .max_tokens = MADE - MADE / 2,
                                       .choices = 1,
                                       .first_choice = c,
                                       .decoding = how,
                                       .sink = hear,
                                       .user = rest};
    *rest = (heard){0};
    ck_assert_int_eq(lp_engine_generate(engine, &request, &outcome, &queue_ms, diag), LP_OK);
    ck_assert_int_eq(rest->count[c], whole->count[c] - MADE / 2);
    for (int64_t i = 0; i < rest->count[c]; i++)
      ck_assert_int_eq(rest->drawn[c][i].token, whole->drawn[c][MADE / 2 + i].token);
  }
  lp_diag_free(diag);
  free(whole);
  free(rest);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Asks one after the other (`together` false), or at once; returns the rows that were copied. */
static int64_t ask_alike(const lp_bundle *bundle, lp_engine *engine, bool together) {
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  int64_t reused = 0;
  for (int i = 0; i < THREADS; i++) {
    set_up_alike(&all[i], bundle, engine, i);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, ask, &all[i]), 0);
    if (!together) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  }
  for (int i = 0; i < THREADS && together; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  for (int i = 0; i < THREADS; i++) {
    check(&all[i]);
    reused += all[i].outcome[0].reused;
  }
  free(all);
  return reused;
}

/* Both sides copy the rows that prompts share, whether those run or have ended, and also after a pause. */
LP_LOOP_TEST(prompts_begin_alike_with_a_worker, 0, 2 * LP_COUNT(splits)) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &splits[_i / 2]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine = open_with(bundle, &(lp_engine_options){.threads = 2, .cloud = worker.address});
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
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &splits[0]), address[32];
  toy_worker worker = toy_worker_start(path, NULL, "100");
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  (void)snprintf(address, sizeof address, "%s", worker.address);
  lp_engine *engine = open_with(bundle, &(lp_engine_options){.threads = 1, .cloud = address});
  asker *one = lp_alloc(sizeof *one);
  for (int i = 0; i < 2; i++) {
    set_up_alike(one, bundle, engine, i);
    (void)ask(one);
    check(one);
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

/* Requests at a worker that is not there, or is killed, fail as lost; when it is back, the engine connects again. */
LP_TEST(a_worker_is_lost_and_back) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &splits[0]), address[32];
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  (void)snprintf(address, sizeof address, "%s", worker.address);
  lp_engine *engine = open_with(bundle, &(lp_engine_options){.threads = 1, .cloud = address});
  asker *one = lp_alloc(sizeof *one);
  set_up(one, bundle, engine, 3);
  (void)ask(one);
  check(one);
  toy_worker_stop(&worker);
  for (int i = 0; i < 2; i++) {
    set_up(one, bundle, engine, 3);
    (void)ask(one);
    ck_assert_int_eq(one->status, LP_FAILED);
    ck_assert(one->outcome[0].lost);
  }
  worker = toy_worker_start_at(path, NULL, NULL, address);
  ask_together(bundle, engine);
  lp_engine_close(engine);
  toy_worker_stop(&worker);
  free(one);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
  free(path);
}

/* The second half of an answer, by a request that has the first half. */
LP_TEST(an_answer_goes_on) {
  lp_bundle *bundle = make("dddddd");
  lp_engine *engine = open_engine(bundle, 0);
  asker *whole = lp_alloc(sizeof *whole), *half = lp_alloc(sizeof *half);
  set_up(whole, bundle, engine, 5);
  (void)ask(whole);
  for (int64_t had = 1; had < whole->count; had++) {
    set_up(half, bundle, engine, 5);
    for (int64_t i = 0; i < had; i++)
      half->prompt[half->length++] = whole->made[i];
    half->answered = (size_t)had;
    (void)ask(half);
    ck_assert_int_eq(half->status, LP_OK);
    ck_assert_int_ge(half->count, whole->count - had);
    for (int64_t i = had; i < whole->count; i++)
      ck_assert_int_eq(half->made[i - had], whole->made[i]);
  }
  free(whole);
  free(half);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Requests that are under way when the worker is killed end: complete, or lost. */
LP_TEST(a_worker_is_killed_under_load) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &splits[1]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_engine *engine = open_with(bundle, &(lp_engine_options){.threads = 1, .cloud = worker.address});
  asker *all = lp_alloc(THREADS * sizeof *all);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) {
    set_up(&all[i], bundle, engine, i);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, ask, &all[i]), 0);
    if (i == THREADS / 2) toy_worker_stop(&worker);
  }
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    if (all[i].status == LP_OK)
      check(&all[i]);
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
