/* What a request says about its draws: biases, penalties, choices and probabilities. */
#include <math.h>
#include <stdlib.h>

#include "tests/runtime/engine/asker.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

/* A great bias decides; a great penalty leaves each token once; penalties of nothing change nothing. */
LP_TEST(adjusted_logits) {
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one), *plain = lp_alloc(sizeof *plain);
  const lp_sampling greedy = {.temperature = 0, .top_p = 1};
  const lp_logit_bias bias[] = {{5, 1000}, {7, 2000}, {7, -500}}, ban = {7, -INFINITY}, none = {7, 0};
  const lp_decoding biased = {greedy, .repetition_penalty = 1, .bias = bias, .bias_count = 3, .top_logprobs = -1},
                    once = {greedy, .repetition_penalty = 1, .presence_penalty = 1e6, .top_logprobs = -1},
                    often = {greedy, .repetition_penalty = 1, .frequency_penalty = 1e6, .top_logprobs = -1},
                    same = {greedy, .repetition_penalty = 1, .bias = &none, .bias_count = 1, .top_logprobs = -1},
                    seen = {greedy, .repetition_penalty = 1.5, .bias = &ban, .bias_count = 1, .top_logprobs = -1};
  asker_set_up(plain, bundle, engine, 2);
  (void)asker_run(plain);
  asker_check(plain);
  const lp_decoding *const ways[] = {&biased, &once, &often, &same, &seen};
  for (size_t w = 0; w < LP_COUNT(ways); w++) {
    asker_set_up(one, bundle, engine, 2);
    one->how = ways[w];
    (void)asker_run(one);
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
LP_LOOP_TEST(draws_from_logits_of_a_worker, 0, SPLITS) {
  const lp_sampling warm = {.temperature = 0.9, .top_p = 1, .seed = 11}, greedy = {.top_p = 1};
  const lp_logit_bias bias[] = {{5, 3}, {7, -INFINITY}};
  const lp_decoding ways[] = {
      {warm, .repetition_penalty = 1, .top_logprobs = -1},
      {greedy, .repetition_penalty = 1, .top_logprobs = 3},
      {warm, .min_p = 0.2, .repetition_penalty = 1.3, .presence_penalty = 0.4, .frequency_penalty = 0.3,
       .top_logprobs = 0},
      {warm, .repetition_penalty = 1, .bias = bias, .bias_count = LP_COUNT(bias), .top_logprobs = -1}};
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "split", &asker_splits[_i]);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD), *whole = asker_bundle("dddddd");
  lp_engine *engine = asker_engine_with(bundle, &(lp_engine_options){.threads = 2, .cloud = worker.address});
  lp_engine *alone = asker_engine(whole, 0);
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
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
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
