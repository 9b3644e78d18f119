/* Generation: the same tokens wherever the layers run, in one process and in two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/runtime.h"
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

LP_CASE(.setup = setup, .teardown = teardown);

/* Everywhere that layers can be, prefill first. */
static const toy_placement placements[] = {
    {.prefill = "dddddd"},
    {.prefill = "cccccc"},
    {.prefill = "cccccc", .input_there = true},
    {.prefill = "dccccc"},
    {.prefill = "dddccc"},
    {.prefill = "dddddc"},
    {.prefill = "cddddd"},
    {.prefill = "cccddd"},
    {.prefill = "dcdcdc"},
    {.prefill = "cdcdcd", .input_there = true},
    {.prefill = "dccdcd"},
    {.prefill = "cccccc", .decode = "dddddd"},
    {.prefill = "dddddd", .decode = "cccccc"},
    {.prefill = "dccccd", .decode = "dcdddd"},
    {.prefill = "dddccc", .decode = "cccddd"},
    {.prefill = "cdcdcd", .decode = "dcdcdc", .input_there = true},
};

static void expect_reference(const lp_bundle *bundle, const char *cloud, int64_t batch, lp_sampling sampling,
                             int32_t *tokens) {
  char *path = toy_bundle_write(dir, "reference", &placements[0]);
  lp_bundle *reference = toy_bundle_load(path, LP_LOAD_DEVICE);
  int32_t want[TOY_BATCH * TOY_MADE], got[TOY_BATCH * TOY_MADE];
  toy_generate(reference, NULL, batch, sampling, want, NULL);
  toy_generate(bundle, cloud, batch, sampling, got, NULL);
  ck_assert_mem_eq(want, got, (size_t)batch * TOY_MADE * sizeof(int32_t));
  if (tokens) memcpy(tokens, got, (size_t)batch * TOY_MADE * sizeof(int32_t));
  lp_bundle_free(reference);
  free(path);
}

LP_LOOP_TEST(one_process, 0, LP_COUNT(placements)) {
  char *path = toy_bundle_write(dir, "split", &placements[_i]);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  ck_assert_int_eq(lp_bundle_is_split(bundle), _i != 0);
  int32_t tokens[TOY_BATCH * TOY_MADE];
  expect_reference(bundle, NULL, TOY_BATCH, greedy, tokens);
  /* The tokens of the model must differ, so that errors show. */
  int distinct = 0;
  for (int i = 1; i < TOY_MADE; i++)
    distinct += tokens[i] != tokens[i - 1];
  ck_assert_int_gt(distinct, 5);
  ck_assert_int_ne(memcmp(tokens, tokens + TOY_MADE, TOY_MADE * sizeof(int32_t)), 0);
  lp_bundle_free(bundle);
  free(path);
}

/* Layers over three and four places, in any order, with caches that move straight from one to another. */
LP_LOOP_TEST(places_in_one_process, 0, 5) {
  static const toy_placement over[] = {
      {.prefill = "001122", .places = 3},
      {.prefill = "021020", .places = 3},
      {.prefill = "012321", .places = 4},
      {.prefill = "011233", .decode = "032101", .places = 4},
      {.prefill = "333333", .decode = "112211", .places = 4, .input_there = true},
  };
  char *path = toy_bundle_write(dir, "split", &over[_i]);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_ALL);
  ck_assert(lp_bundle_is_split(bundle));
  ck_assert_int_eq(lp_bundle_place_count(bundle), over[_i].places);
  ck_assert_str_eq(lp_bundle_place_name(bundle, 0), "phone");
  ck_assert_str_eq(lp_bundle_place_name(bundle, 2), "edge.2");
  expect_reference(bundle, NULL, TOY_BATCH, greedy, NULL);
  lp_bundle_free(bundle);
  free(path);
}

/* A place that is not loaded is named. */
LP_TEST(a_place_that_is_not_loaded_is_refused) {
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "001122", .places = 3}, LP_LOAD_DEVICE | 1 << 2);
  const lp_generate_options options = {.max_tokens = 1, .threads = 1};
  lp_session *session = NULL;
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "the edge.1 side is not loaded");
  lp_diag_free(diag);
  lp_bundle_free(bundle);
}

LP_LOOP_TEST(two_processes, 0, LP_COUNT(placements)) {
  char *path = toy_bundle_write(dir, "split", &placements[_i]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  expect_reference(bundle, worker.address, TOY_BATCH, greedy, NULL);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(sampling_is_the_same_on_both_sides) {
  char *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "dddccc"});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  expect_reference(bundle, worker.address, TOY_BATCH, warm, NULL);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* A batch gives the tokens that its sequences give one by one. */
LP_TEST(batch_equals_single) {
  char *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "ddccdd"});
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  int32_t all[TOY_BATCH * TOY_MADE], one[TOY_MADE];
  toy_generate(bundle, NULL, TOY_BATCH, greedy, all, NULL);
  toy_generate(bundle, NULL, 1, greedy, one, NULL);
  ck_assert_mem_eq(all, one, sizeof one);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- prompts in parts -------------------------------------------------------------------------------------------- */

typedef struct {
  int asked, most; /* the generation ends when it is asked more often; 0: never */
} patience;

static bool runs_out(void *user) {
  patience *of = user;
  return ++of->asked > of->most && of->most > 0;
}

/* Generates from the test's prompts in parts of `part` tokens. */
static size_t generate_in_parts(const lp_bundle *bundle, const char *cloud, int64_t part, patience *of, int32_t *out) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {.cloud = cloud,
                                 .sampling = greedy,
                                 .max_tokens = TOY_MADE,
                                 .ignore_eos = true,
                                 .is_abandoned = runs_out,
                                 .abandon_user = of,
                                 .prompt_part = part,
                                 .threads = 1};
  lp_session *session = NULL;
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  ck_assert_int_eq(lp_session_generate(session, prompts, TOY_BATCH, TOY_PROMPT, NULL, NULL, &made, NULL), LP_OK);
  size_t count = made.tokens.count;
  for (size_t i = 0; i < count; i++)
    out[i] = made.tokens.data[i].token;
  if (count > 0) ck_assert_uint_eq(made.first_logits.size, cloud ? 0 : TOY_VOCAB * sizeof(float));
  lp_generation_free(&made);
  lp_session_close(session);
  return count;
}

/* Parts of every size give the tokens of the whole, wherever the layers run. */
LP_LOOP_TEST(prompt_in_parts, 0, LP_COUNT(placements)) {
  char *path = toy_bundle_write(dir, "split", &placements[_i]);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  int32_t whole[TOY_BATCH * TOY_MADE], found[TOY_BATCH * TOY_MADE];
  toy_generate(bundle, NULL, TOY_BATCH, greedy, whole, NULL);
  for (int64_t part = 1; part <= TOY_PROMPT; part++) {
    ck_assert_uint_eq(generate_in_parts(bundle, NULL, part, &(patience){0}, found), LP_COUNT(found));
    ck_assert_mem_eq(found, whole, sizeof whole);
  }
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(prompt_in_parts_with_a_worker) {
  char *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "dddccc"});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  int32_t whole[TOY_BATCH * TOY_MADE], found[TOY_BATCH * TOY_MADE];
  toy_generate(bundle, worker.address, TOY_BATCH, greedy, whole, NULL);
  ck_assert_uint_eq(generate_in_parts(bundle, worker.address, 2, &(patience){0}, found), LP_COUNT(found));
  ck_assert_mem_eq(found, whole, sizeof whole);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* A prompt that is abandoned runs no further part: 7 tokens in parts of 2 ask four times before the first token. */
LP_TEST(abandoned_prompt_ends_after_its_part) {
  char *path = toy_bundle_write(dir, "device", &(toy_placement){.prefill = "dddddd"});
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  int32_t found[TOY_BATCH * TOY_MADE];
  for (int most = 1; most <= 3; most++) {
    patience of = {.most = most};
    ck_assert_uint_eq(generate_in_parts(bundle, NULL, 2, &of, found), 0);
    ck_assert_int_le(of.asked, most + 2);
  }
  lp_bundle_free(bundle);
  free(path);
}

/* Tokens across the link cost the bytes of link.proto's messages, and no more. */
LP_TEST(bytes_are_counted) {
  char *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "dddccc"});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  int32_t tokens[TOY_MADE];
  lp_generation totals = {0};
  toy_generate(bundle, worker.address, 1, greedy, tokens, &totals);
  uint64_t payload = (uint64_t)(TOY_PROMPT + TOY_MADE - 1) * TOY_WIDTH * sizeof(float);
  ck_assert_uint_gt(totals.bytes_up, payload);
  ck_assert_uint_lt(totals.bytes_up, payload + (TOY_MADE + 2) * 80 + 80);
  ck_assert_uint_gt(totals.bytes_down, 0);
  ck_assert_uint_lt(totals.bytes_down, TOY_MADE * 80 + 160);
  ck_assert_uint_eq(totals.cloud_requests, TOY_MADE);
  ck_assert_int_eq(totals.generated, TOY_MADE);
  ck_assert_int_eq(totals.tokens.data[3].side, LP_SIDE_CLOUD);
  ck_assert(totals.ttft_ms > 0 && totals.tpot_ms > 0 && totals.total_ms >= totals.ttft_ms);
  lp_generation_free(&totals);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* A cache that begins too small is grown, on both sides, and changes nothing. */
LP_TEST(capacity_grows) {
  char *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "ddccdd"});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  int32_t want[TOY_MADE], prompts[TOY_BATCH * TOY_PROMPT];
  toy_generate(bundle, worker.address, 1, greedy, want, NULL);
  toy_prompts(prompts);
  lp_generate_options options = {
      .cloud = worker.address, .sampling = greedy, .max_tokens = TOY_MADE, .threads = 2, .capacity = 3};
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  uint64_t up[2], down[2];
  for (int round = 0; round < 2; round++) { /* a session may generate again */
    lp_generation made = {0};
    ck_assert_int_eq(lp_session_generate(session, prompts, 1, TOY_PROMPT, NULL, NULL, &made, NULL), LP_OK);
    for (int i = 0; i < TOY_MADE; i++)
      ck_assert_int_eq(made.tokens.data[i].token, want[i]);
    up[round] = made.bytes_up;
    down[round] = made.bytes_down;
    lp_generation_free(&made);
  }
  ck_assert(up[1] > 0 && up[1] <= up[0] && down[1] > 0 && down[1] <= down[0]); /* each counts its own */
  lp_session_close(session);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

static int32_t find_input(const lp_program *program) {
  int32_t index = 0;
  while (program->step[index].kind != LP_STEP_INPUT)
    index++;
  return index;
}

/* The bytes of address space that this process has. */
static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fscanf(file, "%lu", &pages), 1);
  fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* A run for which there is no memory, tried again when there is: its buffers are laid out for its own sizes, not for
 * those of the run before. The limit leaves room for small blocks, which a sanitizer maps even when some are free. */
LP_TEST(a_run_that_failed_leaves_no_layout) {
  char *path = toy_bundle_write(dir, "whole", &placements[0]);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_pool *pool = lp_pool_create(1);
  lp_executor *executor = lp_executor_create(bundle, LP_SIDE_DEVICE, pool);
  int32_t prefill = lp_manifest_program(&bundle->manifest, "prefill");
  const lp_program *program = &bundle->manifest.programs[prefill];
  const lp_step *input = &program->step[find_input(program)];
  int64_t small[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_S] = 1, [LP_SYM_R] = 1, [LP_SYM_C] = 1};
  int64_t large[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_S] = 100, [LP_SYM_R] = 1, [LP_SYM_C] = 1 << 20};
  static const int64_t tokens[100];
  struct rlimit usual, none;
  size_t wanted = 0;
  ck_assert(lp_states_bytes(&executor->states, large, &wanted) && wanted > 32 << 20);
  ck_assert_int_eq(lp_executor_begin(executor, prefill, small, NULL), LP_OK);
  ck_assert_int_eq(getrlimit(RLIMIT_AS, &usual), 0);
  none = (struct rlimit){.rlim_cur = address_space() + (16 << 20), .rlim_max = usual.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
  lp_status status = lp_executor_begin(executor, prefill, large, NULL);
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &usual), 0);
  ck_assert_int_eq(status, LP_FAILED);
  ck_assert_int_eq(lp_executor_begin(executor, prefill, large, NULL), LP_OK);
  ck_assert_int_eq(lp_executor_fill(executor, input->buffer, input, tokens, sizeof tokens, NULL), LP_OK);
  lp_executor_free(executor);
  lp_pool_free(pool);
  lp_bundle_free(bundle);
  free(path);
}

/* Invalid requests are refused with their reason, and the session can continue. */
LP_LOOP_TEST(bad_requests, 0, 5) {
  static const struct {
    int32_t token;
    int64_t batch, length, made;
    const char *error;
  } cases[] = {{1, 1, 7, TOY_CONTEXT, "exceed the model's context of 128"},
               {1, 1, 0, 4, "the prompt is empty"},
               {1, 0, 7, 4, "a batch of 0 sequences"},
               {TOY_VOCAB, 1, 7, 4, "token 61 lies outside of the vocabulary of 61"},
               {-1, 1, 7, 4, "token -1 lies outside"}};
  char *path = toy_bundle_write(dir, "whole", &placements[0]);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  prompts[3] = cases[_i].token;
  lp_generate_options options = {.sampling = greedy, .max_tokens = cases[_i].made, .threads = 1};
  lp_session *session = NULL;
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_OK);
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_generate(session, prompts, cases[_i].batch, cases[_i].length, NULL, NULL, &made, diag),
                   LP_FAILED);
  ck_assert_ptr_nonnull(strstr(toy_error(diag), cases[_i].error));
  lp_generation_free(&made);
  lp_session_close(session);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
  free(path);
}

/* A worker is awaited as long as it runs. */
LP_TEST(a_worker_that_ends) {
  lp_diag *diag = lp_diag_create();
  lp_worker_process worker;
  ck_assert_int_eq(lp_worker_spawn("/bin/false", &(lp_worker_request){.bundle = "bundle", .threads = 1}, &worker, diag),
                   LP_OK);
  ck_assert_int_eq(lp_worker_await(&worker, diag), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(toy_error(diag), "the worker ended before it listened"));
  lp_worker_stop(&worker);
  lp_diag_free(diag);
}
