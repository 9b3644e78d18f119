/* Sessions that generate keep their caches when memory is short; idle ones give theirs up, the longest idle first. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
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
