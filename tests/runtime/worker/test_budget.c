/* Sessions that generate keep their caches when memory is short; idle ones give theirs up, the longest idle first. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
#include "runtime/bundle/bundle.h"
#include "runtime/worker/budget.h"
#include "runtime/worker/held.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { SESSIONS = 3, BYTES = 100, BUDGET = 350 };

static lp_worker_options options = {.context_budget = BUDGET};
static lp_worker worker;
static worker_session sessions[SESSIONS];
static lp_executor executors[SESSIONS];
static lp_manifest manifest; /* without states */
static worker_session *listed[SESSIONS];

/* A session holds BYTES and was last used `ago_ms` ago; a negative time keeps it active for as long as a test takes. */
static void hold(size_t i, double ago_ms) {
  executors[i] = (lp_executor){.states = {.manifest = &manifest, .region_bytes = BYTES}};
  sessions[i] = (worker_session){.id = i, .executor = &executors[i], .used_ms = lp_now_ms() - ago_ms, .next = -1};
  listed[i] = &sessions[i];
}

static void setup(void) {
  worker = (lp_worker){.options = &options};
  worker.sessions.data = listed;
  worker.sessions.count = SESSIONS;
}

LP_CASE(.setup = setup);

LP_TEST(sessions_that_generate_stay) {
  lp_diag *diag = lp_diag_create();
  for (size_t i = 0; i < SESSIONS; i++)
    hold(i, -1e6);
  ck_assert_int_eq(worker_make_room(&worker, BUDGET - SESSIONS * BYTES, NULL, diag), LP_OK);
  ck_assert_int_eq(worker_make_room(&worker, BUDGET - SESSIONS * BYTES + 1, NULL, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "the context budget of 350 bytes is in use"), "%s", toy_error(diag));
  for (size_t i = 0; i < SESSIONS; i++)
    ck_assert(!sessions[i].dropped);
  lp_diag_free(diag);
}

LP_TEST(the_longest_idle_goes) {
  hold(0, 2e6);
  hold(1, 3e6);
  hold(2, 1e6);
  ck_assert_int_eq(worker_make_room(&worker, BYTES, NULL, NULL), LP_OK);
  ck_assert(!sessions[0].dropped && sessions[1].dropped && !sessions[2].dropped);
}

LP_TEST(rows_that_are_only_kept_go) {
  for (size_t i = 0; i < SESSIONS; i++)
    hold(i, -1e6);
  sessions[1].keeps = true;
  ck_assert_int_eq(worker_make_room(&worker, BYTES, NULL, NULL), LP_OK);
  ck_assert(!sessions[0].dropped && sessions[1].dropped && !sessions[2].dropped);
}

LP_TEST(what_waits_for_a_pass_stays) {
  for (size_t i = 0; i < SESSIONS; i++)
    hold(i, 1e6 * (double)(SESSIONS - i));
  sessions[0].queued.waits = true;
  ck_assert_int_eq(worker_make_room(&worker, BYTES, NULL, NULL), LP_OK);
  ck_assert(!sessions[0].dropped && sessions[1].dropped && !sessions[2].dropped);
}

/* A worker without --context-budget does not fill the machine. */
LP_TEST(half_of_the_memory_is_the_default) {
  const lp_worker_options usual = {.context_budget = 0};
  size_t half = (size_t)lp_machine_memory() / 2;
  lp_diag *diag = lp_diag_create();
  worker.options = &usual;
  worker.sessions.count = 0;
  ck_assert_uint_gt(half, 1 << 20);
  ck_assert_int_eq(worker_make_room(&worker, half, NULL, NULL), LP_OK);
  ck_assert_int_eq(worker_make_room(&worker, half + 1, NULL, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "exceeds the context budget of"), "%s", toy_error(diag));
  lp_diag_free(diag);
}

/* Contexts give up theirs like sessions. */
LP_TEST(the_longest_idle_context_goes) {
  static const double ago_ms[] = {2e6, 3e6, 1e6};
  lp_halves halves = {.links = 1, .width = {1}};
  lp_context contexts[LP_COUNT(ago_ms)];
  worker_context all[LP_COUNT(ago_ms)];
  worker.sessions.count = 0;
  for (size_t i = 0; i < LP_COUNT(ago_ms); i++) {
    executors[i] = (lp_executor){.states = {.manifest = &manifest, .region_bytes = BYTES}};
    contexts[i] = (lp_context){.halves = &halves, .executor = &executors[i]};
    all[i] = (worker_context){.id = i, .context = &contexts[i], .used_ms = lp_now_ms() - ago_ms[i]};
    lp_vec_push(&worker.contexts, &all[i]);
  }
  all[1].question.waits = true;
  ck_assert_int_eq(worker_make_room(&worker, BYTES, NULL, NULL), LP_OK);
  ck_assert(all[0].lost && !all[1].lost && !all[2].lost);
  all[1].question.waits = false;
  ck_assert_int_eq(worker_make_room(&worker, 2 * BYTES, NULL, NULL), LP_OK);
  ck_assert(all[1].lost && !all[2].lost);
  lp_vec_free(&worker.contexts);
}

/* ---- sessions that yield ----------------------------------------------------------------------------------------- */

/* A session that yields, was opened as the `number`th, generates, and holds the pages of `rows` rows. */
static void hold_rows(const lp_bundle *bundle, size_t i, uint64_t number, int64_t rows) {
  const int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_S] = rows, [LP_SYM_C] = TOY_CONTEXT};
  hold(i, -1e6);
  lp_states_init(&executors[i].states, &bundle->manifest, LP_SIDE_DEVICE);
  executors[i].states.paged = sessions[i].yields = true;
  sessions[i].number = number;
  ck_assert_int_eq(lp_states_reserve(&executors[i].states, sym, NULL), LP_OK);
}

/* An older session takes the memory of the youngest, and of one that a pass runs only later. The youngest loses its own
 * when it needs more. */
LP_TEST(the_youngest_gives_way) {
  const int64_t full[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_P] = 64, [LP_SYM_S] = 1, [LP_SYM_C] = TOY_CONTEXT};
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "dddddd"}, LP_LOAD_DEVICE);
  lp_diag *diag = lp_diag_create();
  bool later = false;
  static const uint64_t numbers[SESSIONS] = {7, 9, 8};
  for (size_t i = 0; i < SESSIONS; i++)
    hold_rows(bundle, i, numbers[i], 64);
  const lp_worker_options tight = {.context_budget = SESSIONS * (int64_t)lp_states_held(&executors[0].states)};
  worker.options = &tight;
  sessions[1].chosen = sessions[2].chosen = true;
  ck_assert_int_eq(worker_make_session_room(&worker, &sessions[0], full, &later, diag), LP_FAILED);
  ck_assert(later && !sessions[0].dropped && !sessions[1].dropped && !sessions[2].dropped);
  sessions[1].chosen = sessions[2].chosen = false;
  ck_assert_int_eq(worker_make_session_room(&worker, &sessions[0], full, NULL, diag), LP_OK);
  ck_assert(!sessions[0].dropped && sessions[1].dropped && !sessions[2].dropped);
  ck_assert_int_eq(lp_states_reserve(&executors[0].states, full, diag), LP_OK);
  ck_assert_uint_eq(worker_bytes_held(&worker, NULL), (size_t)tight.context_budget);
  ck_assert_int_eq(worker_make_session_room(&worker, &sessions[2], full, NULL, diag), LP_FAILED);
  ck_assert(!sessions[0].dropped && sessions[2].dropped);
  ck_assert_msg(strstr(toy_error(diag), "bytes is in use"), "%s", toy_error(diag));
  for (size_t i = 0; i < SESSIONS; i++)
    lp_states_free(&executors[i].states);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
}

/* The same within the quota of a connection; those of others stay. */
LP_TEST(the_youngest_of_a_connection_gives_way) {
  const int64_t full[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_P] = 64, [LP_SYM_S] = 1, [LP_SYM_C] = TOY_CONTEXT};
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "dddddd"}, LP_LOAD_DEVICE);
  for (size_t i = 0; i < SESSIONS; i++)
    hold_rows(bundle, i, i + 1, 64);
  sessions[2].peer = 5;
  const lp_worker_options tight = {.connection.bytes = 2 * (int64_t)lp_states_held(&executors[0].states)},
                          tiny = {.connection.bytes = 100};
  worker.options = &tight;
  ck_assert_int_eq(worker_admit_run(&worker, &sessions[0], full, 0, NULL), LP_OK);
  ck_assert(!sessions[0].dropped && sessions[1].dropped && !sessions[2].dropped);
  worker.options = &tiny; /* a text that never fits takes nothing */
  ck_assert_int_eq(worker_admit_run(&worker, &sessions[0], full, 0, NULL), LP_FAILED);
  ck_assert(!sessions[0].dropped && !sessions[2].dropped);
  for (size_t i = 0; i < SESSIONS; i++)
    lp_states_free(&executors[i].states);
  lp_bundle_free(bundle);
}

/* What a run in the queue is going to take counts before it has it. */
LP_TEST(runs_that_wait_count) {
  const int64_t part[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_S] = 64, [LP_SYM_C] = TOY_CONTEXT};
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "dddddd"}, LP_LOAD_DEVICE);
  size_t one = 0;
  for (size_t i = 0; i < SESSIONS; i++) {
    hold(i, -1e6);
    lp_states_init(&executors[i].states, &bundle->manifest, LP_SIDE_DEVICE);
    sessions[i].number = i + 1;
    executors[i].states.paged = sessions[i].yields = true;
  }
  ck_assert(lp_states_bytes_of_rows(&executors[0].states, part, TOY_CONTEXT, &one));
  const lp_worker_options tight = {.connection.bytes = (int64_t)one};
  worker.options = &tight;
  ck_assert_int_eq(worker_admit_run(&worker, &sessions[1], part, 0, NULL), LP_OK);
  sessions[0].queued.gathers = true;
  memcpy(sessions[0].queued.sym, part, sizeof part);
  ck_assert_int_eq(worker_admit_run(&worker, &sessions[1], part, 0, NULL), LP_FAILED);
  ck_assert(sessions[1].dropped && !sessions[0].dropped);
  for (size_t i = 0; i < SESSIONS; i++)
    lp_states_free(&executors[i].states);
  lp_bundle_free(bundle);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* A context that was last used `ago_ms` ago. The worker frees it. */
static void add_context(uint32_t peer, double ago_ms) {
  worker_context *made = lp_alloc(sizeof *made);
  *made = (worker_context){.id = worker.contexts.count, .peer = peer, .used_ms = lp_now_ms() - ago_ms};
  made->context = lp_alloc(sizeof *made->context);
  lp_vec_push(&worker.contexts, made);
}

/* Contexts outlive their connections, so a device that connects again and again could take all places. */
LP_TEST(contexts_without_a_connection_make_way) {
  const lp_worker_options few = {.most_sessions = 3};
  worker.options = &few;
  worker.sessions.count = 0;
  add_context(1, 3e6); /* its connection is there */
  add_context(0, 1e6);
  ck_assert_int_eq(worker_admit(&worker, NULL), LP_OK); /* there is a place */
  ck_assert_uint_eq(worker.contexts.count, 2);
  add_context(0, 2e6);
  worker.contexts.data[2]->question.waits = true;
  ck_assert_int_eq(worker_admit(&worker, NULL), LP_OK);
  ck_assert_uint_eq(worker.contexts.count, 2);
  for (size_t i = 0; i < 2; i++)
    ck_assert_uint_ne(worker.contexts.data[i]->id, 1); /* the only one that nobody uses */
  add_context(0, -1e6);
  ck_assert_int_eq(worker_admit(&worker, NULL), LP_FAILED);
  ck_assert_uint_eq(worker.contexts.count, 3);
}

/* A session with the KV caches of nothing. The worker frees it. */
static void add_session(bool keeps, double ago_ms) {
  worker_session *made = lp_alloc(sizeof *made);
  *made = (worker_session){
      .id = worker.sessions.count, .keeps = keeps, .used_ms = lp_now_ms() - ago_ms, .route = 0, .next = -1};
  lp_vec_push(&worker.sessions, made);
}

/* A server keeps rows of prompts in sessions, which are not to shut out devices. */
LP_TEST(sessions_that_only_keep_rows_make_way) {
  const lp_worker_options few = {.most_sessions = 3};
  worker = (lp_worker){.options = &few};
  add_session(false, 3e6);
  add_session(true, 1e6);
  add_session(true, 2e6);
  ck_assert(!worker_is_full(&worker));
  ck_assert_int_eq(worker_admit(&worker, NULL), LP_OK);
  ck_assert_uint_eq(worker.sessions.count, 2);
  for (size_t i = 0; i < 2; i++)
    ck_assert_uint_ne(worker.sessions.data[i]->id, 2);
  add_session(true, 0); /* a prompt is about to begin with its rows */
  ck_assert(worker_has_place(&worker));
  ck_assert_uint_eq(worker.sessions.count, 2);
  add_session(false, 0);
  ck_assert(worker_is_full(&worker));
  ck_assert_int_eq(worker_admit(&worker, NULL), LP_FAILED);
  ck_assert_uint_eq(worker.sessions.count, 3);
  while (worker.sessions.count > 0)
    worker_session_close(&worker, worker.sessions.data[0]);
  lp_vec_free(&worker.sessions);
}

/* Without keys all connections of a host have the quotas of one client. */
LP_TEST(quotas_of_a_host) {
  const lp_worker_options few = {.client = {.sessions = 3}};
  worker_peer peers[] = {
      {.id = 1, .host = 5}, {.id = 2, .host = 5}, {.id = 3, .host = 6}, {.id = 4, .host = 5, .who = 9}};
  lp_diag *diag = lp_diag_create();
  worker.options = &few;
  worker.peers.data = peers;
  worker.peers.count = LP_COUNT(peers);
  for (size_t i = 0; i < SESSIONS; i++) {
    hold(i, 0);
    sessions[i].peer = i == 2 ? 2 : 1;
  }
  ck_assert_int_eq(worker_admit_peer(&worker, 2, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "the client has 3 open sessions"), "%s", toy_error(diag));
  ck_assert_int_eq(worker_admit_peer(&worker, 3, diag), LP_OK);
  ck_assert_int_eq(worker_admit_peer(&worker, 4, diag), LP_OK); /* a known client */
  worker.sessions.count--;
  ck_assert_int_eq(worker_admit_peer(&worker, 2, diag), LP_OK);
  worker.peers.data = NULL;
  worker.peers.count = 0;
  lp_diag_free(diag);
}
