/* Turns are given in the order in which they were asked for, also to a thread that asks right after it gave its own. */
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/serve/place/turns.h"
#include "tests/suite.h"

enum { THREADS = 6 };

static lp_turns turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int order[THREADS], had;

typedef struct {
  pthread_t thread;
  int number;
  double wait_ms;
  bool given;
} asker;

static void *ask(void *user) {
  asker *a = user;
  a->given = lp_turns_take(&turns, lp_now_ms() + a->wait_ms);
  if (!a->given) return NULL;
  (void)pthread_mutex_lock(&lock);
  order[had++] = a->number;
  (void)pthread_mutex_unlock(&lock);
  lp_turns_give(&turns);
  return NULL;
}

/* Returns when `count` threads wait. */
static void await_waiting(int count) {
  for (int found = -1; found != count; (void)usleep(500)) {
    (void)pthread_mutex_lock(&turns.lock);
    found = turns.waiting;
    (void)pthread_mutex_unlock(&turns.lock);
  }
}

static void setup(void) {
  lp_turns_init(&turns, 1);
  had = 0;
}

static void teardown(void) {
  lp_turns_destroy(&turns);
}

LP_CASE(.setup = setup, .teardown = teardown);

LP_TEST(turns_come_in_order) {
  asker all[THREADS];
  ck_assert(lp_turns_take(&turns, lp_now_ms()));
  for (int i = 0; i < THREADS; i++) {
    all[i] = (asker){.number = i, .wait_ms = 1e6};
    ck_assert_int_eq(pthread_create(&all[i].thread, NULL, ask, &all[i]), 0);
    await_waiting(i + 1);
  }
  lp_turns_give(&turns);
  ck_assert(lp_turns_take(&turns, lp_now_ms() + 1e6)); /* after all of them */
  ck_assert_int_eq(had, THREADS);
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(all[i].thread, NULL), 0);
    ck_assert(all[i].given);
    ck_assert_int_eq(order[i], i);
  }
  lp_turns_give(&turns);
  ck_assert_int_eq(turns.free, 1);
}

/* One that waits for too long leaves, and those around it keep their order. */
LP_TEST(one_that_leaves) {
  asker all[THREADS];
  ck_assert(lp_turns_take(&turns, lp_now_ms()));
  ck_assert(!lp_turns_take(&turns, lp_now_ms()));
  for (int i = 0; i < THREADS; i++) {
    bool leaves = i == 0 || i == 3 || i == THREADS - 1;
    all[i] = (asker){.number = i, .wait_ms = leaves ? 50 : 1e6};
    ck_assert_int_eq(pthread_create(&all[i].thread, NULL, ask, &all[i]), 0);
    if (!leaves) continue;
    ck_assert_int_eq(pthread_join(all[i].thread, NULL), 0);
    ck_assert(!all[i].given);
  }
  await_waiting(THREADS - 3);
  lp_turns_give(&turns);
  for (int i = 0; i < THREADS; i++)
    if (i == 1 || i == 2 || i == 4) ck_assert_int_eq(pthread_join(all[i].thread, NULL), 0);
  ck_assert_int_eq(had, THREADS - 3);
  ck_assert_int_eq(turns.free, 1);
  ck_assert_ptr_null(turns.first);
  ck_assert_ptr_null(turns.last);
}
