/* Runs of several sequences are divided among passes: another device is served in between, and the results equal those
 * of one pass to the bit. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/exec/batch.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/worker/pass.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/session.h"
#include "runtime/worker/share.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/runtime/worker/bare_worker.h"
#include "tests/suite.h"

enum { MOST_BATCH = 300, CAPACITY = 4 * LP_PASS_TURN, MOST_RESULTS = 4 };

/* The results that a worker has sent to peer 1, as bytes: tokens and confidences, or a payload. */
static struct {
  lp_buf result[MOST_RESULTS];
  size_t count, others;
} sent;

static char *dir;
static lp_bundle *bundle;

static bool note(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                 size_t body_size, const char **why) {
  (void)channel, (void)why;
  if (peer != 1) {
    sent.others++;
    return true;
  }
  ck_assert_uint_lt(sent.count, MOST_RESULTS);
  lp_buf *to = &sent.result[sent.count++];
  Lp__Wire__Message *message = lp__wire__message__unpack(NULL, head_size - 4, (const uint8_t *)head + 4);
  ck_assert_ptr_nonnull(message);
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_TOKENS) {
    lp_buf_append(to, (const char *)message->tokens->token, message->tokens->n_token * sizeof(int32_t));
    lp_buf_append(to, (const char *)message->tokens->confidence, message->tokens->n_confidence * sizeof(double));
  } else {
    ck_assert_int_eq(message->kind_case, LP__WIRE__MESSAGE__KIND_RESULT);
    lp_buf_append(to, body, body_size);
  }
  lp__wire__message__free_unpacked(message, NULL);
  return true;
}

static const lp_transport notes = {.name = "notes", .send = note};

static void load(const char *prefill) {
  char *path = toy_bundle_write(dir, prefill, &(toy_placement){.prefill = prefill});
  bundle = toy_bundle_load(path, LP_LOAD_CLOUD);
  free(path);
  bundle->manifest.context_length = CAPACITY; /* the toy's own is shorter than a pass */
}

static void setup(void) {
  dir = toy_dir_create();
  bundle = NULL;
  memset(&sent, 0, sizeof sent);
}

static void forget_results(void) {
  for (size_t i = 0; i < MOST_RESULTS; i++)
    lp_buf_free(&sent.result[i]);
  memset(&sent, 0, sizeof sent);
}

static void teardown(void) {
  forget_results();
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* A worker with two sessions. */
static bare_worker *begin(void) {
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  bare_worker *bare = bare_worker_create(bundle, NULL, &notes);
  open.temperature = 1;
  open.top_p = 1;
  open.seed = 5;
  for (uint32_t peer = 1; peer <= 2; peer++)
    ck_assert_int_eq(worker_session_open(&bare->worker, peer, &open, NULL), LP_OK);
  return bare;
}

/* Rows that differ in every sequence and position. */
static void ask(bare_worker *bare, uint32_t peer, int64_t batch, int64_t count, bool outputs) {
  const lp_manifest *manifest = &bundle->manifest;
  worker_session *session = worker_session_find(&bare->worker, peer, 0);
  int64_t past = session->position;
  int64_t sym[LP_SYM_COUNT] = {
      [LP_SYM_B] = batch, [LP_SYM_S] = count, [LP_SYM_P] = past, [LP_SYM_R] = 1, [LP_SYM_C] = CAPACITY};
  Lp__Wire__Step step = LP__WIRE__STEP__INIT;
  step.program = (uint32_t)lp_manifest_program(manifest, past == 0 ? "prefill" : "decode");
  step.n_symbols = (size_t)manifest->symbol_count;
  step.symbols = sym;
  step.want_outputs = outputs;
  while (!worker_step_takes_payload(&bare->worker, &manifest->programs[step.program].step[step.step]))
    step.step++;
  size_t floats = (size_t)(batch * count) * TOY_WIDTH;
  float *row = lp_alloc(floats * sizeof *row);
  for (size_t i = 0; i < floats; i++)
    row[i] = (float)((i + (size_t)past) * 37 % 1009) / 500 - 1;
  lp_inbound in = {.payload = row, .payload_size = floats * sizeof *row};
  lp_diag *diag = lp_diag_create();
  lp_status status = worker_session_step(&bare->worker, session, &step, &in, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  free(row);
}

typedef struct {
  const char *placement;
  int64_t batch, prompt;
  bool outputs;
} kind;

static const kind kinds[] = {{"dccccc", MOST_BATCH, 1, false}, {"dccccc", 50, 7, false},
                             {"dccccc", 3, 300, false},        {"dccccc", MOST_BATCH, 2, true},
                             {"dccccd", 40, 9, false},         {"dccccd", 2, 2 * LP_PASS_TURN, false},
                             {"dccccd", 1, 300, false}};

/* Without batched passes the worker runs each step on its own, whole. */
static void run_whole(const kind *k, lp_buf want[MOST_RESULTS]) {
  bare_worker *bare = begin();
  lp_batch_free(bare->worker.batch);
  bare->worker.batch = NULL;
  ask(bare, 1, k->batch, k->prompt, k->outputs);
  ask(bare, 1, k->batch, 1, k->outputs);
  memcpy(want, sent.result, sizeof sent.result);
  ck_assert_uint_ge(sent.count, 2);
  memset(&sent, 0, sizeof sent);
  bare_worker_free(bare);
}

/* Runs passes until the first session's run has ended. The other device asks again and again, and has its answer after
 * each pass. */
static void run_divided(bare_worker *bare, int64_t rows) {
  for (int64_t passes = 0; worker_session_find(&bare->worker, 1, 0)->queued.waits; passes++) {
    size_t before = sent.others;
    ask(bare, 2, 1, 1, false);
    ck_assert_int_le(worker_pass_run(&bare->worker), LP_PASS_TURN + 1);
    ck_assert_uint_eq(sent.others, before + 1);
    ck_assert_int_le(passes, 2 * rows / LP_PASS_TURN + 2);
  }
}

LP_LOOP_TEST(divided_runs_equal_whole_ones, 0, (int)LP_COUNT(kinds)) {
  const kind *k = &kinds[_i];
  lp_buf want[MOST_RESULTS];
  load(k->placement);
  run_whole(k, want);
  bare_worker *bare = begin();
  ask(bare, 1, k->batch, k->prompt, k->outputs);
  run_divided(bare, k->batch * k->prompt);
  ask(bare, 1, k->batch, 1, k->outputs);
  run_divided(bare, k->batch);
  bare_worker_free(bare);
  for (size_t i = 0; i < MOST_RESULTS; i++) {
    ck_assert_uint_eq(sent.result[i].size, want[i].size);
    if (want[i].size > 0) ck_assert_mem_eq(sent.result[i].data, want[i].data, want[i].size);
    lp_buf_free(&want[i]);
  }
}

/* ---- the time of passes ------------------------------------------------------------------------------------------ */

/* Notes `count` passes of each of these sizes, which take 6 ms and 2 for each row, and from 7 rows on 30 more. */
static void note_steps(lp_pace *pace, int64_t most, int count) {
  for (int i = 0; i < count; i++)
    for (int64_t rows = 1; rows <= most; rows++)
      lp_pace_note(pace, rows, 6 + 2 * (double)rows + (rows > 6 ? 30 : 0));
}

/* One row takes 8 ms, so that a pass beside it may take 12.8: three rows do. Beside four rows it may take 22.4: seven
 * take 50, and so it has six. */
LP_TEST(rows_that_lengthen_a_pass) {
  lp_pace pace = {0};
  ck_assert_int_eq(lp_pace_rows(&pace, 1), 8);
  ck_assert_int_eq(lp_pace_rows(&pace, 5), 12);
  lp_pace_note(&pace, 1, 8);
  ck_assert_int_eq(lp_pace_rows(&pace, 1), 2); /* sizes that are not known come one after the other */
  lp_pace_note(&pace, 2, 10);
  ck_assert_int_eq(lp_pace_rows(&pace, 1), 3);
  note_steps(&pace, 12, 2);
  ck_assert_int_eq(lp_pace_rows(&pace, 1), 2);
  ck_assert_int_eq(lp_pace_rows(&pace, 4), 6);
  ck_assert_int_eq(lp_pace_rows(&pace, 7), 14); /* 50 ms, and 60 for 12 rows; no pass had 14 */
  ck_assert_int_eq(lp_pace_rows(&pace, 1024), 1024);
  ck_assert_int_eq(lp_pace_rows(&pace, 1100), 1100);
}

/* With passes that may last twice as long, four rows, which take 14 ms, have a pass of six beside them, in 18 ms; from
 * four times as long on, those of 12 rows, in 60 ms, are within the limit too. */
LP_TEST(a_pass_may_be_stretched_more) {
  lp_pace pace = {.stretch = 1};
  note_steps(&pace, 12, 2);
  ck_assert_int_eq(lp_pace_rows(&pace, 4), 4);
  pace.stretch = 2;
  ck_assert_int_eq(lp_pace_rows(&pace, 4), 6);
  pace.stretch = 5;
  ck_assert_int_eq(lp_pace_rows(&pace, 4), 14); /* all that is known, and the next size */
}

/* Passes that were interrupted count as single ones; another model, which takes four times as long, is learned. */
LP_TEST(times_of_passes_are_medians) {
  lp_pace pace = {0};
  note_steps(&pace, 8, 30);
  for (int i = 0; i < 3; i++)
    lp_pace_note(&pace, 4, 1000);
  ck_assert_int_eq(lp_pace_rows(&pace, 4), 6);
  for (int i = 0; i < 60; i++)
    lp_pace_note(&pace, 4, 56);
  ck_assert_int_eq(lp_pace_rows(&pace, 4), 10); /* at most 78.4 ms: all that is known, and the next size */
}

/* While every pass has rows of prompts, the time without them is not measured, and shrinks until it is. A size that was
 * too slow is tried again. */
LP_TEST(times_fade) {
  lp_pace pace = {0};
  note_steps(&pace, 8, 30);
  int passes = 0;
  for (; lp_pace_rows(&pace, 4) == 6 && passes < 1000; passes++)
    lp_pace_note(&pace, 6, 18);
  ck_assert_int_eq(lp_pace_rows(&pace, 4), 5);
  for (passes = 0; lp_pace_rows(&pace, 4) < 7 && passes < 1000; passes++) {
    lp_pace_note(&pace, 4, 14);
    lp_pace_note(&pace, 6, 18);
  }
  ck_assert_int_lt(passes, 1000);
}

/* Only long passes are known: one row takes at least its share of them. */
LP_TEST(times_of_long_passes) {
  lp_pace pace = {0};
  lp_pace_note(&pace, 12, 24);
  ck_assert_int_eq(lp_pace_rows(&pace, 1), 2);
  lp_pace_note(&pace, 2, 20); /* longer than 3.2 ms */
  ck_assert_int_eq(lp_pace_rows(&pace, 2), 14);
  ck_assert_int_eq(lp_pace_rows(&pace, 1), 1);
}

/* A pass of 256 rows is always allowed; larger ones while they take 20 ms at most, one size after the other. */
LP_TEST(passes_grow_while_they_are_short) {
  lp_pace pace = {0};
  ck_assert_int_eq(lp_pace_most(&pace), 256);
  lp_pace_note(&pace, 8, 1);
  ck_assert_int_eq(lp_pace_most(&pace), 256);
  lp_pace_note(&pace, 256, 20);
  ck_assert_int_eq(lp_pace_most(&pace), 320);
  lp_pace_note(&pace, 320, 21);
  ck_assert_int_eq(lp_pace_most(&pace), 256);
  pace = (lp_pace){0};
  lp_pace_note(&pace, 256, 21);
  ck_assert_int_eq(lp_pace_most(&pace), 256);
  pace = (lp_pace){0};
  for (int64_t rows = 256; rows <= LP_PASS_MOST_ROWS; rows += 64)
    lp_pace_note(&pace, rows, (double)rows / 32);
  ck_assert_int_eq(lp_pace_most(&pace), 640);
}

/* One row costs next to all: a pass takes as many as without other devices. */
LP_TEST(rows_that_cost_nothing) {
  lp_pace pace = {0};
  for (int64_t rows = 1; rows < 256; rows = lp_pace_rows(&pace, 1))
    lp_pace_note(&pace, rows, 5);
  ck_assert_int_eq(lp_pace_rows(&pace, 1), 256);
}
