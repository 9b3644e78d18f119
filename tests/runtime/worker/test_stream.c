/* A place that has all of decode draws ahead of its device: the same tokens as run by run, no more than the window, and
 * nothing for a device that asks for what does not go. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/exec/batch.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/worker/held.h"
#include "runtime/worker/pass.h"
#include "runtime/worker/session.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/runtime/worker/bare_worker.h"
#include "tests/suite.h"

enum { BATCH = 3, PROMPT = 4, DRAWS = 20, MOST = 64, CAPACITY = PROMPT + MOST, PEER = 1 };

/* What the worker has sent. */
static struct {
  int64_t draw[MOST];
  int32_t token[MOST][BATCH];
  size_t count;
  size_t failures;
  bool lost, room;
} sent;

static bool note(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                 size_t body_size, const char **why) {
  (void)channel, (void)peer, (void)body, (void)body_size, (void)why;
  Lp__Wire__Message *message = lp__wire__message__unpack(NULL, head_size - 4, (const uint8_t *)head + 4);
  ck_assert_ptr_nonnull(message);
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE) {
    sent.failures++;
    sent.lost = message->failure->lost;
    sent.room = message->failure->room;
  } else {
    ck_assert_int_eq(message->kind_case, LP__WIRE__MESSAGE__KIND_TOKENS);
    ck_assert_uint_lt(sent.count, MOST);
    ck_assert_uint_le(message->tokens->n_token, BATCH);
    sent.draw[sent.count] = message->tokens->draw;
    memcpy(sent.token[sent.count++], message->tokens->token, message->tokens->n_token * sizeof(int32_t));
  }
  lp__wire__message__free_unpacked(message, NULL);
  return true;
}

static const lp_transport notes = {.name = "notes", .send = note};

static lp_bundle *bundle;
static bare_worker *bare;

static void setup(void) {
  bundle = toy_bundle_make(&(toy_placement){.prefill = "cccccc", .input_there = true}, LP_LOAD_CLOUD);
}
static void teardown(void) {
  if (bare) bare_worker_free(bare);
  bare = NULL;
  lp_bundle_free(bundle);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- a device ---------------------------------------------------------------------------------------------------- */

static void hand(Lp__Wire__Message__KindCase kind, void *body, const void *payload, size_t size) {
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = kind;
  message.hello = body; /* all kinds share the place */
  lp_inbound in = {.message = &message, .packet = {.peer = PEER}, .payload = payload, .payload_size = size};
  worker_handle(&bare->worker, &in);
}

static void open_session(bool yields) {
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  open.session = 1;
  open.temperature = 0.9;
  open.top_k = 20;
  open.top_p = 0.95;
  open.seed = 7;
  open.yields = yields;
  hand(LP__WIRE__MESSAGE__KIND_OPEN, &open, NULL, 0);
}

/* `batched` false: as code that runs one session at a time. */
static void start(bool batched, bool yields) {
  memset(&sent, 0, sizeof sent);
  if (bare) bare_worker_free(bare);
  bare = bare_worker_create(bundle, NULL, &notes);
  if (!batched) {
    lp_batch_free(bare->worker.batch);
    bare->worker.batch = NULL;
  }
  lp_vec_push(&bare->worker.peers, ((worker_peer){.id = PEER, .hello = true, .greeted = true}));
  open_session(yields);
}

/* `given`: the tokens of the run; NULL: those of the prompt. */
static void ask(int64_t batch, int64_t count, int64_t past, const int64_t *given, Lp__Wire__Stream *stream) {
  int64_t ids[BATCH * PROMPT];
  for (int64_t i = 0; i < batch * count; i++)
    ids[i] = (i * 7 + 3) % TOY_VOCAB;
  int64_t sym[LP_SYM_COUNT] = {
      [LP_SYM_B] = batch, [LP_SYM_S] = count, [LP_SYM_P] = past, [LP_SYM_R] = 1, [LP_SYM_C] = CAPACITY};
  Lp__Wire__Step step = LP__WIRE__STEP__INIT;
  step.session = 1;
  step.program = (uint32_t)lp_manifest_program(&bundle->manifest, past == 0 ? "prefill" : "decode");
  step.n_symbols = (size_t)bundle->manifest.symbol_count;
  step.symbols = sym;
  step.stream = stream;
  hand(LP__WIRE__MESSAGE__KIND_STEP, &step, given ? given : ids, (size_t)(batch * count) * sizeof *ids);
}

static Lp__Wire__Stream stream_of(int64_t most, int64_t window) {
  Lp__Wire__Stream stream = LP__WIRE__STREAM__INIT;
  stream.program = (uint32_t)lp_manifest_program(&bundle->manifest, "decode");
  stream.most = most;
  stream.window = window;
  return stream;
}

static void take(int64_t draws) {
  Lp__Wire__Taken taken = LP__WIRE__TAKEN__INIT;
  taken.session = 1;
  taken.draws = draws;
  hand(LP__WIRE__MESSAGE__KIND_TAKEN, &taken, NULL, 0);
}

/* As the worker's loop, until nothing is left to do. */
static void work(void) {
  for (bool more = true; more;) {
    more = worker_draw_on(&bare->worker);
    while (worker_pass_is_due(&bare->worker)) {
      worker_pass_run(&bare->worker);
      more = true;
    }
  }
}

/* What the worker draws when the device asks for each token. */
static void draw_singly(int64_t batch, int32_t want[DRAWS][BATCH]) {
  start(true, false);
  ask(batch, PROMPT, 0, NULL, NULL);
  for (int64_t i = 0; i < DRAWS; i++) {
    work();
    ck_assert_uint_eq(sent.count, (size_t)i + 1);
    ck_assert_int_eq(sent.draw[i], 0);
    memcpy(want[i], sent.token[i], sizeof want[i]);
    int64_t ids[BATCH];
    for (int64_t k = 0; k < batch; k++)
      ids[k] = sent.token[i][k];
    ask(batch, 1, PROMPT + i, ids, NULL);
  }
}

static void expect_draws(int32_t want[DRAWS][BATCH], size_t count) {
  ck_assert_uint_eq(sent.count, count);
  for (size_t i = 0; i < count; i++) {
    ck_assert_int_eq(sent.draw[i], (int64_t)i + 1);
    ck_assert_mem_eq(sent.token[i], want[i], sizeof want[i]);
  }
  ck_assert_uint_eq(sent.failures, 0);
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

LP_LOOP_TEST(draws_are_those_of_single_runs, 0, 4) {
  const int64_t batch = _i % 2 == 0 ? 1 : BATCH;
  int32_t want[DRAWS][BATCH];
  memset(want, 0, sizeof want);
  draw_singly(batch, want);
  start(_i < 2, false);
  Lp__Wire__Stream stream = stream_of(DRAWS, DRAWS);
  ask(batch, PROMPT, 0, NULL, &stream);
  work();
  expect_draws(want, DRAWS);
  const worker_session *session = worker_session_find(&bare->worker, PEER, 1);
  ck_assert(!session->stream.goes_on);
  ck_assert_int_eq(session->position, PROMPT + DRAWS - 1);
}

LP_LOOP_TEST(draws_wait_for_the_device, 0, 2) {
  int32_t want[DRAWS][BATCH];
  memset(want, 0, sizeof want);
  draw_singly(1, want);
  start(_i == 0, false);
  Lp__Wire__Stream stream = stream_of(DRAWS, 4);
  ask(1, PROMPT, 0, NULL, &stream);
  work();
  expect_draws(want, 4);
  static const struct {
    int64_t taken;
    size_t drawn;
  } rows[] = {{2, 6}, {2, 6}, {1, 6}, {7, 6} /* was not drawn */, {-1, 6}, {6, 10}, {10, 14}, {14, 18}, {18, DRAWS}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    take(rows[i].taken);
    work();
    expect_draws(want, rows[i].drawn);
  }
  take(DRAWS); /* comes when all is over */
  work();
  expect_draws(want, DRAWS);
}

/* A text runs again with what its device has, whatever the place would draw. */
LP_TEST(given_tokens_are_taken) {
  int32_t want[DRAWS][BATCH], given[3] = {5, 6, 7};
  memset(want, 0, sizeof want);
  start(true, false);
  ask(1, PROMPT, 0, NULL, NULL);
  for (int64_t i = 0; i < 6; i++) {
    work();
    memcpy(want[i], sent.token[i], sizeof want[i]);
    int64_t id = i < 3 ? given[i] : sent.token[i][0];
    ask(1, 1, PROMPT + i, &id, NULL);
  }
  start(true, false);
  Lp__Wire__Stream stream = stream_of(6, 6);
  stream.given = given;
  stream.n_given = LP_COUNT(given);
  ask(1, PROMPT, 0, NULL, &stream);
  work();
  expect_draws(want, 6);
}

/* The stream ends with the last of its sequences; the others are drawn further until then. */
LP_LOOP_TEST(ends_with_all_sequences, 0, 2) {
  int32_t want[DRAWS][BATCH];
  memset(want, 0, sizeof want);
  draw_singly(BATCH, want);
  start(true, false);
  Lp__Wire__Stream stream = stream_of(DRAWS, DRAWS);
  int32_t end[] = {want[2][0], want[5][1], want[9][2]};
  stream.end = end;
  stream.n_end = _i == 0 ? LP_COUNT(end) : 2;
  size_t last = 0;
  for (int k = 0; k < BATCH; k++) {
    size_t first = DRAWS - 1;
    for (size_t i = DRAWS; i-- > 0;)
      for (size_t e = 0; e < stream.n_end; e++)
        if (want[i][k] == end[e]) first = i;
    if (first > last) last = first;
  }
  ask(BATCH, PROMPT, 0, NULL, &stream);
  work();
  expect_draws(want, last + 1);
  ck_assert(!worker_session_find(&bare->worker, PEER, 1)->stream.goes_on);
}

/* ---- what ends it before its time -------------------------------------------------------------------------------- */

LP_TEST(a_closed_session_draws_no_more) {
  start(true, false);
  Lp__Wire__Stream stream = stream_of(DRAWS, 4);
  ask(1, PROMPT, 0, NULL, &stream);
  work();
  Lp__Wire__Close body = LP__WIRE__CLOSE__INIT;
  body.session = 1;
  hand(LP__WIRE__MESSAGE__KIND_CLOSE, &body, NULL, 0);
  take(4);
  work();
  ck_assert_uint_eq(sent.count, 4);
  ck_assert_uint_eq(sent.failures, 0);
}

/* A device may go on by itself, with other sizes too, also while a run of the stream waits for its pass. */
LP_LOOP_TEST(another_step_ends_it, 0, 2) {
  start(true, false);
  Lp__Wire__Stream stream = stream_of(DRAWS, 4);
  ask(1, PROMPT, 0, NULL, &stream);
  work();
  take(_i);
  ck_assert_int_eq(worker_draw_on(&bare->worker), _i);
  ask(BATCH, PROMPT, 0, NULL, NULL);
  work();
  ck_assert_uint_eq(sent.count, 5);
  ck_assert_int_eq(sent.draw[4], 0);
  take(4);
  work();
  ck_assert_uint_eq(sent.count, 5);
  ck_assert_uint_eq(sent.failures, 0);
}

/* The device learns what it has lost, and how to go on. */
LP_LOOP_TEST(a_dropped_session_says_so, 0, 4) {
  const bool yields = _i % 2 == 1, queued = _i >= 2;
  start(true, yields);
  Lp__Wire__Stream stream = stream_of(DRAWS, 4);
  ask(1, PROMPT, 0, NULL, &stream);
  work();
  take(queued ? 4 : 0);
  ck_assert_int_eq(worker_draw_on(&bare->worker), queued);
  worker_session *session = worker_session_find(&bare->worker, PEER, 1);
  worker_session_drop(session);
  ck_assert_uint_eq(sent.failures, 0);
  take(4);
  work();
  ck_assert_uint_eq(sent.failures, queued ? 0 : 1); /* who takes a run out of the queue says so */
  ck_assert_int_eq(sent.lost, !queued && !yields);
  ck_assert_int_eq(sent.room, !queued && yields);
  ck_assert_uint_eq(sent.count, 4);
  work();
  ck_assert_uint_eq(sent.failures, queued ? 0 : 1);
}

/* ---- what does not go -------------------------------------------------------------------------------------------- */

enum { REFUSALS = 12 };

LP_LOOP_TEST(streams_that_are_refused, 0, REFUSALS) {
  int32_t tokens[300] = {0};
  start(true, false);
  Lp__Wire__Stream streams[REFUSALS];
  for (int i = 0; i < REFUSALS; i++)
    streams[i] = stream_of(DRAWS, 4);
  streams[0].program = 99;
  streams[1].program = UINT32_MAX;
  streams[2].most = 0;
  streams[3].most = -1;
  streams[4].most = INT64_MIN;
  streams[5].most = INT64_MAX;
  streams[6].most = CAPACITY - PROMPT + 2; /* one row more than the capacity */
  streams[7].window = 0;
  streams[8].window = -5;
  streams[9].n_end = 257;
  streams[10].n_given = 3; /* not as many for each sequence */
  streams[11].n_given = 2 * DRAWS;
  streams[_i].end = streams[_i].given = tokens;
  ask(2, PROMPT, 0, NULL, &streams[_i]);
  work();
  ck_assert_uint_eq(sent.failures, 1);
  ck_assert_uint_eq(sent.count, 0);
  memset(&sent, 0, sizeof sent);
  ask(2, PROMPT, 0, NULL, NULL); /* the session is as good as before */
  work();
  ck_assert_uint_eq(sent.count, 1);
}

LP_TEST(the_most_draws_fill_the_capacity) {
  start(true, false);
  Lp__Wire__Stream stream = stream_of(CAPACITY - PROMPT + 1, INT64_MAX);
  stream.most = MOST; /* what `sent` takes */
  ask(1, PROMPT, 0, NULL, &stream);
  work();
  ck_assert_uint_eq(sent.count, MOST);
  ck_assert_uint_eq(sent.failures, 0);
}

/* A token that the model does not have ends the stream when its run takes it. */
LP_TEST(given_tokens_are_checked) {
  int32_t given[] = {4, TOY_VOCAB, 4};
  start(true, false);
  Lp__Wire__Stream stream = stream_of(DRAWS, DRAWS);
  stream.given = given;
  stream.n_given = LP_COUNT(given);
  ask(1, PROMPT, 0, NULL, &stream);
  work();
  ck_assert_uint_eq(sent.count, 2);
  ck_assert_uint_eq(sent.failures, 1);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* A place draws on where it has all of the program. */
LP_TEST(programs_that_stream) {
  static const struct {
    toy_placement placement;
    lp_place prefill, decode;
  } rows[] = {
      {{.prefill = "dddddd"}, 0, 0},
      {{.prefill = "cccccc"}, 1, 1},
      {{.prefill = "cccccc", .input_there = true}, 1, 1},
      {{.prefill = "dccccc"}, 0, 0},
      {{.prefill = "cccccd"}, 0, 0},
      {{.prefill = "ccdccc"}, 0, 0},
      {{.prefill = "dddccc", .decode = "cccccc"}, 0, 1},
      {{.prefill = "222222", .places = 3}, 2, 2},
      {{.prefill = "111222", .places = 3}, 0, 0},
      {{.prefill = "111222", .decode = "111111", .places = 3, .input_there = true}, 0, 1},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_bundle *made = toy_bundle_make(&rows[i].placement, LP_LOAD_DEVICE);
    const lp_manifest *manifest = &made->manifest;
    ck_assert_int_eq(lp_manifest_streams(manifest, lp_manifest_program(manifest, "prefill")), rows[i].prefill);
    ck_assert_int_eq(lp_manifest_streams(manifest, lp_manifest_program(manifest, "decode")), rows[i].decode);
    lp_bundle_free(made);
  }
}
