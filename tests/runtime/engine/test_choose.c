/* The sequences of passes, without running them: prompts end in their order, and have more room if many wait. */
#include <pthread.h>
#include <stdlib.h>

#include "runtime/engine/job.h"
#include "tests/runtime/engine/asker.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { MOST_JOBS = 64, ANSWER = 20 };

static lp_bundle *bundle;
static lp_engine *engine; /* its thread waits for the lock, which the test holds */
static engine_call calls[MOST_JOBS];
static lp_engine_request requests[MOST_JOBS];
static engine_job jobs[MOST_JOBS];
static int count;

static void setup(void) {
  bundle = asker_bundle("dddddd");
  engine = asker_engine_with(bundle, &(lp_engine_options){.threads = 2, .prompt_stretch = 3});
  count = 0;
  (void)pthread_mutex_lock(&engine->lock);
}

static void teardown(void) {
  for (int i = 0; i < count; i++) {
    if (jobs[i].stage != ENGINE_ENDED) engine_job_end(engine, &jobs[i]);
    lp_vec_free(&jobs[i].text);
    (void)pthread_cond_destroy(&calls[i].changed);
  }
  (void)pthread_mutex_unlock(&engine->lock);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* A prompt of a client, of `length` tokens, that begins unlike the others. */
static void add_of(uint64_t client, int64_t length) {
  engine_job *job = &jobs[count];
  requests[count] = (lp_engine_request){.length = (size_t)length, .max_tokens = ANSWER, .choices = 1, .client = client};
  calls[count] = (engine_call){.request = &requests[count], .job = job, .most = length + ANSWER};
  calls[count].capacity = calls[count].most;
  calls[count].decode = calls[count].prefill;
  (void)pthread_cond_init(&calls[count].changed, NULL);
  *job = (engine_job){.call = &calls[count], .ticket = ++engine->ticket};
  for (int64_t i = 0; i < length; i++)
    lp_vec_push(&job->text, (int32_t)(i == 0 ? count : i) % lp_bundle_vocab(bundle));
  engine_client_enter(engine, client, 1);
  lp_vec_push(&engine->jobs, job);
  count++;
}

static void add(int64_t length) {
  add_of(1, length);
}

/* Chooses a pass, and notes that it ran; returns the rows of prompts. */
static int64_t pass(void) {
  int64_t rows = 0;
  ck_assert(engine_choose(engine));
  for (size_t i = 0; i < engine->chosen.count; i++) {
    engine_job *job = engine->chosen.data[i];
    if ((int64_t)job->text.count - job->done > 1) rows += job->rows;
    job->done += job->rows;
    if (job->turn == 0) job->ticket = ++engine->ticket;
    if (job->done == (int64_t)job->text.count) lp_vec_push(&job->text, 1);
  }
  return rows;
}

static bool waits(const engine_job *job) {
  return job->text.count == job->call->request->length;
}

/* A pass has room for a part of a prompt. The others begin after it, so that not all of them end with the last. */
LP_TEST(prompts_end_in_order) {
  enum { DECODERS = 4, PROMPTS = 6, LENGTH = 50 };
  for (int i = 0; i < DECODERS; i++)
    add(1);
  (void)pass();
  for (int i = 0; i < PROMPTS; i++)
    add(LENGTH);
  for (bool any = true; any;) {
    int begun = 0;
    (void)pass();
    any = false;
    for (int i = DECODERS; i < count; i++) {
      if (i > DECODERS) ck_assert(waits(&jobs[i]) || !waits(&jobs[i - 1]));
      begun += waits(&jobs[i]) && jobs[i].done > 0;
      any = any || waits(&jobs[i]);
    }
    ck_assert_int_le(begun, 1);
  }
}

/* A row at least for each prompt that waits. */
LP_TEST(many_prompts_have_more_rows) {
  enum { PROMPTS = 60, LENGTH = 9 };
  add(1);
  (void)pass();
  for (int i = 0; i < PROMPTS; i++)
    add(LENGTH);
  for (int64_t waiting = PROMPTS; waiting > 0;) {
    int64_t left = 0, rows;
    waiting = 0;
    for (int i = 0; i < count; i++) {
      int64_t more = (int64_t)jobs[i].text.count - jobs[i].done;
      if (more > 1) waiting++, left += more;
    }
    rows = pass();
    ck_assert_int_ge(rows, waiting < left ? waiting : left);
  }
}

/* Passes take 10 ms and 1 for each row, so that one over 20 rows takes at most three times as long as over one. */
LP_TEST(prompts_stretch_a_pass_as_much_as_they_may) {
  add(1);
  (void)pass();
  for (int64_t rows = 1; rows <= LP_PASS_MOST_ROWS; rows++)
    lp_pace_note(&engine->pace, rows, 10 + (double)rows);
  add(LP_PASS_TURN);
  ck_assert_int_eq(pass(), 19);
}

/* A long prompt gives way after a whole part, so that short ones do not wait for all of it. */
LP_TEST(a_long_prompt_gives_way) {
  add(1);
  (void)pass();
  add(3 * LP_PASS_TURN);
  add(5);
  while (waits(&jobs[2]))
    (void)pass();
  ck_assert(waits(&jobs[1]));
  ck_assert_int_ge(jobs[1].done, LP_PASS_TURN);
  ck_assert_int_lt(jobs[1].done, 2 * LP_PASS_TURN);
}

/* A prompt has all rows of a pass if no other one waits; two have half of them each. */
LP_TEST(prompts_share_a_pass) {
  add(3 * LP_PASS_TURN);
  ck_assert_int_eq(pass(), LP_PASS_ROWS);
  add(3 * LP_PASS_TURN);
  ck_assert_int_eq(pass(), 2 * LP_PASS_TURN);
  ck_assert_int_eq(jobs[0].done, 3 * LP_PASS_TURN);
  ck_assert_int_eq(jobs[1].done, LP_PASS_TURN);
}

/* With long turns it runs to its end before the next one begins. */
LP_TEST(long_turns_keep_the_order) {
  engine->prompt_turn = 3 * LP_PASS_TURN;
  add(1);
  (void)pass();
  add(3 * LP_PASS_TURN);
  add(5);
  while (waits(&jobs[1])) {
    ck_assert_int_eq(jobs[2].done, 0);
    (void)pass();
  }
}

/* A job that waits for another one's rows runs by itself once prompts share no rows any more. */
LP_TEST(nobody_waits_for_rows_that_are_not_shared) {
  enum { LENGTH = 3 * LP_PASS_TURN };
  ck_assert(engine->shares);
  add(LENGTH);
  add(LENGTH);
  jobs[1].text.data[0] = jobs[0].text.data[0];
  (void)pass();
  ck_assert_int_eq(jobs[1].stage, ENGINE_FOLLOWING);
  engine->shares = false;
  for (int i = 0; i < 4; i++)
    (void)pass();
  ck_assert_int_eq(jobs[1].stage, ENGINE_RUNNING);
  ck_assert_int_gt(jobs[1].done, 0);
}

/* Passes take 2.5 ms and 1 for each row, so that one over four rows takes not quite twice as long as over one, and over
 * five more. A client's sequences take turns then; without other clients, and beside one with as many, all run. */
LP_TEST(the_sequences_of_one_client_double_a_pass_at_most) {
  enum { MANY = 8, ROUNDS = 8 };
  for (int64_t rows = 1; rows <= (int64_t)2 * MANY; rows++)
    lp_pace_note(&engine->pace, rows, 2.5 + (double)rows);
  for (int i = 0; i < MANY; i++)
    add(1);
  (void)pass();
  ck_assert_uint_eq(engine->chosen.count, MANY);
  add_of(2, 1);
  for (int i = 0; i < ROUNDS; i++) {
    (void)pass();
    ck_assert_uint_eq(engine->chosen.count, 4);
    ck_assert_int_eq(jobs[MANY].done, i + 1);
  }
  for (int i = 0; i < MANY; i++)
    ck_assert_int_eq(jobs[i].done, 1 + 3 * ROUNDS / MANY);
  for (int i = 1; i < MANY; i++)
    add_of(2, 1);
  (void)pass();
  ck_assert_uint_eq(engine->chosen.count, 2 * MANY);
}
