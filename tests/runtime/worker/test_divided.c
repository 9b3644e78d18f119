/* A question over more positions than a pass takes is interrupted between two of its passes: the worker ends, saves it
 * to disk and the next worker continues it, or the device asks again. Each position passes once, and the answer equals
 * that of an undisturbed worker to the bit. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/worker/context.h"
#include "runtime/worker/pass.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/runtime/worker/bare_worker.h"
#include "tests/suite.h"

/* Three passes answer; further rows are here after the question's end. */
enum { END = 2 * LP_PASS_TURN + 44, ROWS = END + 40, DRAFTS = 3, PASSES = 3, NUMBER = 7, CONTEXT = 99 };

static char *dir, *kept;
static lp_bundle *bundle;
static lp_transport notes;

/* The worker's last message. */
static struct {
  int64_t have;
  size_t answers;
  uint64_t number;
  lp_answer answer;
} said;

static bool note(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                 size_t body_size, const char **why) {
  (void)channel, (void)peer, (void)body, (void)body_size, (void)why;
  Lp__Wire__Message *message = lp__wire__message__unpack(NULL, head_size - 4, (const uint8_t *)head + 4);
  ck_assert_ptr_nonnull(message);
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_JOINED) {
    said.have = message->joined->have;
  } else {
    ck_assert_int_eq(message->kind_case, LP__WIRE__MESSAGE__KIND_ANSWER);
    const Lp__Wire__Answer *answer = message->answer;
    said.answers++;
    said.number = answer->number;
    said.answer =
        (lp_answer){.accepted = answer->accepted, .sample = {.token = answer->token, .confidence = answer->confidence}};
  }
  lp__wire__message__free_unpacked(message, NULL);
  return true;
}

static void setup(void) {
  dir = toy_dir_create();
  kept = lp_path_join(dir, "kept");
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddddcc", .exits = {1, 3}});
  bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  bundle->manifest.context_length = 2 * ROWS; /* the toy's own is shorter than a pass */
  notes = (lp_transport){.name = "notes", .send = note};
  free(path);
}

static void teardown(void) {
  lp_bundle_free(bundle);
  free(kept);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void join(bare_worker *bare, int64_t want) {
  Lp__Wire__Join body = LP__WIRE__JOIN__INIT;
  body.context = CONTEXT;
  body.codec = LP_CODEC_F32;
  body.capacity = 2 * ROWS;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_JOIN;
  message.join = &body;
  ck_assert(worker_context_handle(&bare->worker, &(lp_inbound){.message = &message}));
  ck_assert_int_eq(said.have, want);
}

static void send_rows(bare_worker *bare) {
  float *row = lp_alloc(sizeof *row * ROWS * TOY_WIDTH);
  for (int i = 0; i < ROWS * TOY_WIDTH; i++)
    row[i] = (float)(i * 37 % 101) / 50 - 1;
  Lp__Wire__Rows body = LP__WIRE__ROWS__INIT;
  body.context = CONTEXT;
  body.count = ROWS;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_ROWS;
  message.rows = &body;
  lp_inbound in = {.message = &message, .payload = row, .payload_size = sizeof *row * ROWS * TOY_WIDTH};
  ck_assert(worker_context_handle(&bare->worker, &in));
  free(row);
}

static void ask(bare_worker *bare) {
  int32_t drafts[DRAFTS] = {4, 8, 15};
  Lp__Wire__Ask body = LP__WIRE__ASK__INIT;
  body.context = CONTEXT;
  body.number = NUMBER;
  body.end = END;
  body.n_draft = DRAFTS;
  body.draft = drafts;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_ASK;
  message.ask = &body;
  ck_assert(worker_context_handle(&bare->worker, &(lp_inbound){.message = &message}));
}

static bare_worker *begin(const char *context_dir) {
  memset(&said, 0, sizeof said);
  bare_worker *bare = bare_worker_create(bundle, context_dir, &notes);
  join(bare, 0);
  send_rows(bare);
  ask(bare);
  return bare;
}

static void run_passes(bare_worker *bare, int count) {
  for (int i = 0; i < count; i++) {
    ck_assert_uint_eq(said.answers, 0);
    worker_pass_run(&bare->worker);
  }
}

static lp_answer answer_of(bare_worker *bare, int passes) {
  run_passes(bare, passes);
  ck_assert_uint_eq(said.answers, 1);
  ck_assert_uint_eq(said.number, NUMBER);
  ck_assert(!worker_pass_is_due(&bare->worker));
  return said.answer;
}

static lp_answer undisturbed(void) {
  bare_worker *bare = begin(NULL);
  lp_answer answer = answer_of(bare, PASSES);
  bare_worker_free(bare);
  return answer;
}

static void expect_equal(lp_answer want, lp_answer got) {
  ck_assert_int_eq(got.accepted, want.accepted);
  ck_assert_int_eq(got.sample.token, want.sample.token);
  ck_assert_mem_eq(&got.sample.confidence, &want.sample.confidence, sizeof want.sample.confidence);
}

static int64_t consumed(const bare_worker *bare) {
  return bare->worker.contexts.data[0]->context->consumed;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

LP_LOOP_TEST(kept_between_its_passes, 0, PASSES) {
  lp_answer want = undisturbed();
  bare_worker *bare = begin(kept);
  run_passes(bare, _i);
  ck_assert_int_eq(consumed(bare), _i * LP_PASS_TURN);
  bare_worker_free(bare);
  memset(&said, 0, sizeof said);
  bare = bare_worker_create(bundle, kept, &notes);
  join(bare, ROWS); /* nothing has to be sent again */
  ck_assert_int_eq(consumed(bare), _i * LP_PASS_TURN);
  ask(bare);
  expect_equal(want, answer_of(bare, PASSES - _i));
  bare_worker_free(bare);
}

/* A device that gets no answer asks again, and finished passes do not run again. */
LP_LOOP_TEST(asked_again_between_its_passes, 0, PASSES) {
  lp_answer want = undisturbed();
  bare_worker *bare = begin(NULL);
  run_passes(bare, _i);
  ask(bare);
  send_rows(bare);
  expect_equal(want, answer_of(bare, PASSES - _i));
  ask(bare); /* a repeated question gets the same answer */
  ck_assert_uint_eq(said.answers, 2);
  expect_equal(want, said.answer);
  bare_worker_free(bare);
}
