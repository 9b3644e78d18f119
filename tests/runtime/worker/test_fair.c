/* Counts the passes of a worker that each request waits for. The passes are the worker's own; devices are requests made
 * by hand, and a transport that notes the receiver of each answer. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/worker/pass.h"
#include "runtime/worker/peer.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/session.h"
#include "runtime/worker/worker.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/runtime/worker/bare_worker.h"
#include "tests/suite.h"

enum { MOST_PEERS = 300, PROMPT = 8 * LP_PASS_TURN, ROWS_OF_A_PASS = 256 };

static char *dir;
static lp_bundle *bundle;
static bare_worker *bare;
static lp_worker *worker;
static uint32_t answered[MOST_PEERS]; /* the receivers, in order */
static size_t answers;

static bool note_answer(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                        size_t body_size, const char **why) {
  (void)channel, (void)head, (void)head_size, (void)body, (void)body_size, (void)why;
  ck_assert_uint_lt(answers, MOST_PEERS);
  answered[answers++] = peer;
  return true;
}

static const lp_transport notes = {.name = "notes", .send = note_answer};

static void setup(void) {
  dir = toy_dir_create();
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "dccccc"});
  bundle = toy_bundle_load(path, LP_LOAD_CLOUD);
  free(path);
  bundle->manifest.context_length = 2 * PROMPT; /* the toy's own is shorter than a pass */
  bare = bare_worker_create(bundle, NULL, &notes);
  worker = &bare->worker;
  answers = 0;
}

static void teardown(void) {
  bare_worker_free(bare);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void open_session(uint32_t peer) {
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  ck_assert_int_eq(worker_session_open(worker, peer, &open, NULL), LP_OK);
}

static const worker_session *session_of(uint32_t peer) {
  const worker_session *session = worker_session_find(worker, peer, 0);
  ck_assert_ptr_nonnull(session);
  return session;
}

/* A run at these symbols, and as its payload `count` rows. */
static lp_status send_rows(worker_session *session, int64_t sym[], int64_t count, lp_diag *diag) {
  const lp_manifest *manifest = &bundle->manifest;
  Lp__Wire__Step step = LP__WIRE__STEP__INIT;
  step.program = (uint32_t)lp_manifest_program(manifest, sym[LP_SYM_P] == 0 ? "prefill" : "decode");
  step.n_symbols = (size_t)manifest->symbol_count;
  step.symbols = sym;
  const lp_program *program = &manifest->programs[step.program];
  while (!worker_step_takes_payload(worker, &program->step[step.step]))
    step.step++;
  lp_inbound in = {.payload_size = (size_t)count * TOY_WIDTH * sizeof(float)};
  in.payload = lp_alloc(in.payload_size);
  lp_status status = worker_session_step(worker, session, &step, &in, diag);
  free((void *)(uintptr_t)in.payload);
  return status;
}

/* Rows of `count` further tokens of the session's text. */
static void ask_numbered(uint32_t peer, uint64_t number, int64_t count) {
  worker_session *session = worker_session_find(worker, peer, number);
  int64_t sym[LP_SYM_COUNT] = {[LP_SYM_B] = 1, [LP_SYM_S] = count, [LP_SYM_P] = session->position, [LP_SYM_R] = 1};
  sym[LP_SYM_C] = 2 * PROMPT;
  lp_diag *diag = lp_diag_create();
  lp_status status = send_rows(session, sym, count, diag);
  ck_assert_msg(status == LP_OK && session->queued.waits, "%s", toy_error(diag));
  lp_diag_free(diag);
}

static void ask(uint32_t peer, int64_t count) {
  ask_numbered(peer, 0, count);
}

static void expect_refused(uint32_t peer, const int64_t sizes[LP_SYM_COUNT], int64_t count, const char *why) {
  int64_t sym[LP_SYM_COUNT];
  memcpy(sym, sizes, sizeof sym);
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(send_rows(worker_session_find(worker, peer, 0), sym, count, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), why), "wanted '%s' in '%s'", why, toy_error(diag));
  lp_diag_free(diag);
}

static bool got_answer(uint32_t peer, size_t from) {
  for (size_t i = from; i < answers; i++)
    if (answered[i] == peer) return true;
  return false;
}

static lp_status open_numbered(uint32_t peer, uint64_t number, lp_diag *diag) {
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  open.session = number;
  return worker_session_open(worker, peer, &open, diag);
}

/* A connection that opens session after session leaves room for the others. */
LP_TEST(sessions_of_a_connection_are_limited) {
  enum { MOST = 64 };
  for (uint64_t number = 0; number < MOST; number++)
    ck_assert_int_eq(open_numbered(1, number, NULL), LP_OK);
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(open_numbered(1, MOST, diag), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(toy_error(diag), "the connection has 64 open sessions"));
  ck_assert_int_eq(open_numbered(1, MOST - 1, NULL), LP_OK); /* opened anew */
  ck_assert_int_eq(open_numbered(2, 0, NULL), LP_OK);
  lp_diag_free(diag);
}

/* Quotas of a connection refuse its further runs, and no other connection's. */
LP_TEST(rows_of_a_connection_are_limited) {
  const int64_t sym[LP_SYM_COUNT] = {1, 5, 0, 1, 2 * PROMPT};
  bare->options.connection.rows = 12;
  ck_assert_int_eq(open_numbered(1, 1, NULL), LP_OK);
  open_session(1);
  open_session(2);
  ask_numbered(1, 1, 8);
  expect_refused(1, sym, 5, "5 rows asked for and 8 waiting; the connection may have 12");
  ask(2, 12);
  worker_pass_run(worker);
  ask(1, 5); /* the others are done */
}

LP_TEST(memory_of_a_connection_is_limited) {
  const int64_t sym[LP_SYM_COUNT] = {1, 5, 0, 1, 2 * PROMPT};
  open_session(2);
  ask(2, 5);
  worker_pass_run(worker);
  size_t cache = session_of(2)->executor->states.region_bytes, payload = 5 * TOY_WIDTH * sizeof(float);
  ck_assert_uint_gt(cache, 0);
  ck_assert_int_eq(open_numbered(1, 1, NULL), LP_OK);
  open_session(1);
  bare->options.connection.bytes = (int64_t)(2 * cache + payload);
  ask_numbered(1, 1, 5);
  worker_pass_run(worker);
  ask(1, 5); /* the first one's payload is gone, its caches stay */
  worker_pass_run(worker);
  bare->options.connection.bytes--;
  expect_refused(1, sym, 5, "the connection's sessions would take more than");
  ask(2, 5);
}

/* Quotas of a client bind all its connections together, and nobody else's. */
LP_TEST(a_client_is_limited_over_its_connections) {
  const int64_t sym[LP_SYM_COUNT] = {1, 5, 0, 1, 2 * PROMPT};
  bare->options.client = (lp_worker_quota){.sessions = 2, .rows = 12};
  worker_peer_of(worker, 1)->who = worker_peer_of(worker, 2)->who = 7;
  worker_peer_of(worker, 4)->who = 8;
  lp_diag *diag = lp_diag_create();
  open_session(1);
  open_session(2);
  ck_assert_int_eq(open_numbered(2, 1, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "the client has 2 open sessions"), "%s", toy_error(diag));
  open_session(3);
  open_session(4);
  ask(1, 8);
  expect_refused(2, sym, 5, "5 rows asked for and 8 waiting; the client may have 12");
  ask(3, 12);
  ask(4, 12);
  ask(2, 4);
  worker_pass_run(worker);
  bare->options.client = (lp_worker_quota){.bytes = 1};
  expect_refused(2, sym, 5, "the client's sessions would take more than 1 bytes");
  ask(3, 5);
  lp_diag_free(diag);
}

/* A run that no device of ours requests. After a run from position 0 that failed, the old cache is not continued. */
LP_TEST(runs_that_do_not_fit) {
  open_session(1);
  ask(1, 3);
  worker_pass_run(worker);
  ck_assert_int_eq(session_of(1)->position, 3);
  const int64_t c = 2 * PROMPT, none[] = {1, 1, 3, 0, c}, backwards[] = {1, 1, 3, 2, c}, over[] = {1, c, 3, 1, 2 * c};
  const int64_t narrow[] = {1, 1, 3, 1, 3}, anew[] = {1, 2, 0, 1, c}, on[] = {1, 1, 3, 1, c};
  _Static_assert(LP_SYM_B == 0 && LP_SYM_S == 1 && LP_SYM_P == 2 && LP_SYM_R == 3 && LP_SYM_C == 4, "as above");
  const int64_t below[] = {1, -1, 3, 1, c}, above[] = {1, 1, 3, 1, (int64_t)1 << 40};
  const struct {
    const int64_t *first;
    const char *why;
  } cases[] = {{below, "= -1 is out of range"},   {above, "= 1099511627776 is out of range"},
               {none, "do not go together"},      {backwards, "do not go together"},
               {over, "exceed the context"},      {narrow, "do not go together"},
               {anew, "takes 128 bytes, got 64"}, {on, "the context ends at 0"}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    int64_t sym[LP_SYM_COUNT] = {0};
    memcpy(sym, cases[i].first, sizeof none);
    expect_refused(1, sym, 1, cases[i].why);
  }
}

/* A peer that leaves without a message was refused by TLS; others just leave. */
LP_TEST(certificates_that_are_missing_are_told) {
  lp_diag *diag = worker->diag = lp_diag_create();
  (void)worker_peer_of(worker, 1);
  worker_forget(worker, 2);
  ck_assert_uint_eq(lp_diag_count(diag), 0);
  worker->security.certified = true;
  worker_forget(worker, 2);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "it showed no certificate"));
  worker_forget(worker, 1);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  worker->diag = NULL;
  lp_diag_free(diag);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* After a long prompt, three short ones have their answers with its first part, in the order in which they came; then
 * the long one continues. */
LP_TEST(short_ones_pass_with_a_part_of_a_long_one) {
  for (uint32_t peer = 1; peer <= 4; peer++)
    open_session(peer);
  ask(1, PROMPT);
  ask(4, 3);
  ask(2, 5);
  ask(3, 1);
  worker_pass_run(worker);
  ck_assert_uint_eq(answers, 3);
  ck_assert(answered[0] == 4 && answered[1] == 2 && answered[2] == 3);
  for (int pass = 2; pass <= PROMPT / LP_PASS_TURN; pass++) {
    ck_assert(!got_answer(1, 0));
    worker_pass_run(worker);
  }
  ck_assert(got_answer(1, 0));
  ck_assert(!worker_pass_is_due(worker));
}

/* Two long prompts fill a pass; a later one is in the next, in front of their second parts. */
LP_TEST(a_full_pass_makes_way) {
  for (uint32_t peer = 1; peer <= 3; peer++)
    open_session(peer);
  ask(1, PROMPT);
  ask(2, PROMPT);
  ask(3, 4);
  worker_pass_run(worker);
  ck_assert_uint_eq(answers, 0);
  ck_assert_int_eq(session_of(1)->queued.done, LP_PASS_TURN);
  ck_assert_int_eq(session_of(2)->queued.done, LP_PASS_TURN);
  worker_pass_run(worker);
  ck_assert(answers == 1 && answered[0] == 3);
  ck_assert_int_eq(session_of(1)->queued.done, 2 * LP_PASS_TURN);
  ck_assert_int_eq(session_of(2)->queued.done, 2 * LP_PASS_TURN - 4); /* the room that the others leave */
  worker_pass_run(worker);
  ck_assert_int_eq(session_of(2)->queued.done, 3 * LP_PASS_TURN - 4);
}

/* Eight long prompts, and four devices that ask for a token again as soon as they have one: a request for a token waits
 * only for the requests before it, and no prompt is more than a part ahead of another. */
LP_TEST(nobody_starves) {
  enum { LONG = 8, QUICK = 4, BOUND = LONG * LP_PASS_TURN / ROWS_OF_A_PASS + 2 };
  int waited[QUICK] = {0}, longest = 0, passes = 0, tokens = 0;
  for (uint32_t peer = 1; peer <= LONG + QUICK; peer++) {
    open_session(peer);
    ask(peer, peer <= LONG ? PROMPT : 1);
  }
  for (bool prompts = true; prompts; passes++) {
    size_t before = answers = 0;
    worker_pass_run(worker);
    int64_t least = PROMPT, most = 0;
    prompts = false;
    for (uint32_t peer = 1; peer <= LONG; peer++) {
      const worker_queued_run *run = &session_of(peer)->queued;
      int64_t done = run->waits ? run->done : PROMPT;
      if (done < least) least = done;
      if (done > most) most = done;
      prompts = prompts || run->waits;
    }
    ck_assert_int_le(most - least, LP_PASS_TURN);
    for (uint32_t i = 0; i < QUICK; i++) {
      if (++waited[i] > longest) longest = waited[i];
      if (!got_answer(LONG + 1 + i, before)) continue;
      tokens++;
      waited[i] = 0;
      ask(LONG + 1 + i, 1);
    }
    ck_assert_int_lt(passes, 200);
  }
  ck_assert_int_le(longest, BOUND);
  ck_assert_int_ge(tokens, QUICK * passes / BOUND);
  ck_assert_int_le(passes, LONG * PROMPT / LP_PASS_TURN); /* and the prompts get on: a part in each at least */
}

/* One connection with eight sessions that each have a long prompt: another one waits for its own pass only. */
LP_TEST(sessions_of_one_connection_share_its_turn) {
  enum { SESSIONS = 8, TOKENS = 10 };
  for (uint64_t number = 0; number < SESSIONS; number++) {
    ck_assert_int_eq(open_numbered(1, number, NULL), LP_OK);
    ask_numbered(1, number, PROMPT);
  }
  open_session(2);
  for (int token = 0; token < TOKENS; token++) {
    size_t before = answers;
    ask(2, 1);
    worker_pass_run(worker);
    if (token == 0) worker_pass_run(worker); /* the first sessions came before it */
    ck_assert_msg(got_answer(2, before), "token %d waits", token);
  }
}

/* The same when the prompts come over eight connections of one client, also once the first of them is closed. */
LP_TEST(connections_of_one_client_share_its_turn) {
  enum { CONNECTIONS = 8, TOKENS = 10, OTHER = CONNECTIONS + 1 };
  for (uint32_t peer = 1; peer <= CONNECTIONS; peer++) {
    worker_peer_of(worker, peer)->who = 7;
    open_session(peer);
    ask(peer, PROMPT);
  }
  open_session(OTHER);
  for (int token = 0; token < TOKENS; token++) {
    size_t before = answers;
    ask(OTHER, 1);
    worker_pass_run(worker);
    if (token == 0) worker_pass_run(worker); /* the first ones came before it */
    ck_assert_msg(got_answer(OTHER, before), "token %d waits", token);
    if (token == TOKENS / 2) worker_forget(worker, 1);
  }
  int64_t served = worker_peer_account(worker, 2)->served;
  worker_forget(worker, 2);
  ck_assert_int_eq(worker_peer_account(worker, 3)->served, served); /* the account stays with the client */
}

/* Twice as many questions as a pass takes: each is answered in the first pass or the second, in the order of
 * arrival. */
LP_TEST(more_than_a_pass_takes) {
  enum { SEQUENCES = LP_PASS_MOST_SEQUENCES };
  for (uint32_t peer = 1; peer <= SEQUENCES + 10; peer++) {
    open_session(peer);
    ask(peer, 1);
  }
  worker_pass_run(worker);
  ck_assert_uint_eq(answers, SEQUENCES);
  worker_pass_run(worker);
  ck_assert_uint_eq(answers, SEQUENCES + 10);
  for (uint32_t i = 0; i < answers; i++)
    ck_assert_uint_eq(answered[i], i + 1);
}
