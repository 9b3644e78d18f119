/* Requests of many threads give the tokens that sessions give alone. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/runtime/engine/asker.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

LP_TEST(together_as_alone) {
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  askers_run(bundle, engine);
  lp_engine_load load = lp_engine_now(engine);
  ck_assert_int_eq(load.running + load.waiting, 0);
  ck_assert_int_eq(load.kv_bytes, 0);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* A budget for one long sequence: the others wait for it, and each gets its turn. */
LP_TEST(within_a_budget) {
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_diag *diag = lp_diag_create();
  asker *one = lp_alloc(sizeof *one);
  int64_t bytes = 1;
  lp_engine *engine = asker_engine(bundle, bytes);
  asker_set_up(one, bundle, engine, 3);
  (void)asker_run(one);
  ck_assert_int_eq(one->status, LP_FAILED); /* it can never run */
  lp_engine_close(engine);
  for (bytes = 256; one->status != LP_OK; bytes *= 2) {
    engine = asker_engine(bundle, bytes);
    asker_set_up(one, bundle, engine, 3);
    (void)asker_run(one);
    if (one->status == LP_OK) askers_run(bundle, engine);
    lp_engine_close(engine);
  }
  free(one);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
}

/* A choice that its caller ends, and a request that it abandons, leave nothing. */
LP_TEST(ended_early) {
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one);
  asker_set_up(one, bundle, engine, 4);
  one->limit = 5;
  (void)asker_run(one);
  ck_assert_int_eq(one->status, LP_OK);
  ck_assert_int_eq(one->count, 5);
  ck_assert(!one->outcome[0].cut);
  asker_set_up(one, bundle, engine, 4);
  one->abandons = true;
  (void)asker_run(one);
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
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one);
  asker_set_up(one, bundle, engine, 5);
  one->choices = 4;
  (void)asker_run(one);
  asker_check(one);
  for (int i = 0; i < 4; i++)
    ck_assert_int_gt(one->outcome[i].tokens, 0);
  free(one);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Requests that could need twice the budget together run at the same time, since they begin with little. Those that
 * were admitted last give their memory back, and their tokens do not change. */
LP_TEST(memory_is_given_back) {
  enum { PAGES = 5 };
  lp_bundle *bundle = asker_bundle("dddddd");
  int64_t budget = PAGES * TOY_LAYERS * sysconf(_SC_PAGESIZE);
  lp_engine *engine = asker_engine(bundle, budget);
  int32_t most = askers_run_long(bundle, engine, 0, budget);
  ck_assert_int_gt(lp_engine_now(engine).preempted, 0);
  ck_assert_int_gt(most, PAGES / 2); /* each may need two pages of a layer */
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

LP_TEST(wrong_requests) {
  lp_bundle *bundle = asker_bundle("dddddd"),
            *split = toy_bundle_make(&(toy_placement){.prefill = "ddccdd"}, LP_LOAD_DEVICE);
  lp_engine *engine = asker_engine(bundle, 0);
  asker *one = lp_alloc(sizeof *one);
  const char *why = NULL;
  asker_set_up(one, bundle, engine, 1);
  one->prompt[0] = lp_bundle_vocab(bundle);
  (void)asker_run(one);
  ck_assert_int_eq(one->status, LP_FAILED);
  one->length = 0;
  (void)asker_run(one);
  ck_assert_int_eq(one->status, LP_FAILED);
  ck_assert(!lp_engine_fits(split, &why));
  ck_assert_str_eq(why, "some layers run on a worker");
  free(one);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
  lp_bundle_free(split);
}

/* The second half of an answer, by a request that has the first half. */
LP_TEST(an_answer_goes_on) {
  lp_bundle *bundle = asker_bundle("dddddd");
  lp_engine *engine = asker_engine(bundle, 0);
  asker *whole = lp_alloc(sizeof *whole), *half = lp_alloc(sizeof *half);
  asker_set_up(whole, bundle, engine, 5);
  (void)asker_run(whole);
  for (int64_t had = 1; had < whole->count; had++) {
    asker_set_up(half, bundle, engine, 5);
    for (int64_t i = 0; i < had; i++)
      half->prompt[half->length++] = whole->made[i];
    half->answered = (size_t)had;
    (void)asker_run(half);
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
