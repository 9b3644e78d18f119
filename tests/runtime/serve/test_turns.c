/* Turns are given to the client that has asked for the fewest tokens, and among its requests in the order in which they
 * came; some stay free for others; and where too many wait, those of the client with the most are refused. */
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/serve/place/turns.h"
#include "tests/suite.h"

enum { MANY = 16 };

static lp_turns turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int order[MANY], had;

typedef struct {
  pthread_t thread;
  int number;
  double wait_ms;
  bool keeps; /* the turns */
  lp_turns_request request;
  lp_turns_result result;
} asker;

static void *ask(void *user) {
  asker *a = user;
  a->result = lp_turns_take(&turns, &a->request, lp_now_ms() + a->wait_ms);
  if (a->result != LP_TURNS_TAKEN) return NULL;
  (void)pthread_mutex_lock(&lock);
  order[had++] = a->number;
  (void)pthread_mutex_unlock(&lock);
  if (!a->keeps) lp_turns_give(&turns, &a->request);
  return NULL;
}

static void await_waiting(int count) {
  for (int found = -1; found != count; (void)usleep(500)) {
    (void)pthread_mutex_lock(&turns.lock);
    found = turns.waiting;
    (void)pthread_mutex_unlock(&turns.lock);
  }
}

static void setup(void) {
  lp_turns_init(&turns, 1, MANY);
  had = 0;
}

static void teardown(void) {
  lp_turns_destroy(&turns);
}

LP_CASE(.setup = setup, .teardown = teardown);

static void init(int count, int queue) {
  teardown();
  lp_turns_init(&turns, count, queue);
}

static void begin(asker *a, int number, lp_turns_request request) {
  *a = (asker){.number = number, .wait_ms = 1e6, .request = request};
  ck_assert_int_eq(pthread_create(&a->thread, NULL, ask, a), 0);
}

static lp_turns_result end(asker *a) {
  ck_assert_int_eq(pthread_join(a->thread, NULL), 0);
  return a->result;
}

static lp_turns_result take(const lp_turns_request *request) {
  return lp_turns_take(&turns, request, lp_now_ms());
}

/* Also to a thread that asks right after it gave its own. */
LP_TEST(turns_come_in_order) {
  const lp_turns_request own = {1, 1, 1};
  asker all[6];
  ck_assert_int_eq(take(&own), LP_TURNS_TAKEN);
  for (int i = 0; i < 6; i++) {
    begin(&all[i], i, own);
    await_waiting(i + 1);
  }
  lp_turns_give(&turns, &own);
  ck_assert_int_eq(lp_turns_take(&turns, &own, lp_now_ms() + 1e6), LP_TURNS_TAKEN); /* after all of them */
  ck_assert_int_eq(had, 6);
  for (int i = 0; i < 6; i++) {
    ck_assert_int_eq(end(&all[i]), LP_TURNS_TAKEN);
    ck_assert_int_eq(order[i], i);
  }
  lp_turns_give(&turns, &own);
  ck_assert_int_eq(turns.free, 1);
  ck_assert_uint_eq(turns.clients.count, 0);
}

/* One that waits for too long leaves, and those around it keep their order. */
LP_TEST(one_that_leaves) {
  const lp_turns_request own = {1, 1, 1};
  asker all[6];
  ck_assert_int_eq(take(&own), LP_TURNS_TAKEN);
  ck_assert_int_eq(take(&own), LP_TURNS_LATE);
  for (int i = 0; i < 6; i++) {
    bool leaves = i == 0 || i == 3 || i == 5;
    all[i] = (asker){.number = i, .wait_ms = leaves ? 50 : 1e6, .request = own};
    ck_assert_int_eq(pthread_create(&all[i].thread, NULL, ask, &all[i]), 0);
    if (leaves) ck_assert_int_eq(end(&all[i]), LP_TURNS_LATE);
  }
  await_waiting(3);
  lp_turns_give(&turns, &own);
  for (int i = 0; i < 6; i++)
    if (i == 1 || i == 2 || i == 4) ck_assert_int_eq(end(&all[i]), LP_TURNS_TAKEN);
  ck_assert_int_eq(had, 3);
  ck_assert_int_eq(turns.free, 1);
  ck_assert_uint_eq(turns.turns.count, 0);
}

/* A client that has asked for many tokens waits for those that ask for few. */
LP_TEST(the_one_served_least_is_next) {
  const lp_turns_request many = {1, 1000, 1}, few = {2, 10, 1};
  asker all[5];
  ck_assert_int_eq(take(&many), LP_TURNS_TAKEN);
  for (int i = 0; i < 5; i++) {
    begin(&all[i], i, i < 3 ? many : few);
    await_waiting(i + 1);
  }
  lp_turns_give(&turns, &many);
  const int wanted[] = {0, 3, 4, 1, 2}; /* the second client enters with the 1000 of the first, which then has 2000 */
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq(end(&all[i]), LP_TURNS_TAKEN);
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq(order[i], wanted[i]);
}

/* However much one client asks for, another one finds a turn. */
LP_TEST(some_turns_stay_free) {
  const lp_turns_request greedy = {1, 100, 1}, other = {2, 100, 1};
  init(16, 8);
  for (int i = 0; i < 14; i++)
    ck_assert_int_eq(take(&greedy), LP_TURNS_TAKEN);
  ck_assert_int_eq(take(&greedy), LP_TURNS_LATE);
  ck_assert_int_eq(take(&other), LP_TURNS_TAKEN);
  ck_assert_int_eq(take(&other), LP_TURNS_TAKEN);
  ck_assert_int_eq(take(&other), LP_TURNS_LATE);
  lp_turns_give(&turns, &greedy); /* it has 13, and one is free */
  ck_assert_int_eq(take(&greedy), LP_TURNS_LATE);
  ck_assert_int_eq(take(&other), LP_TURNS_TAKEN);
}

/* Each answer of a request has a turn; of more than the place has, all. */
LP_TEST(answers_count) {
  const lp_turns_request three = {1, 10, 3}, all = {2, 10, 99}, one = {3, 10, 1};
  asker waits;
  init(4, 8);
  ck_assert_int_eq(take(&three), LP_TURNS_TAKEN);
  ck_assert_int_eq(turns.free, 1);
  begin(&waits, 0, all);
  await_waiting(4);
  ck_assert_int_eq(take(&one), LP_TURNS_LATE); /* it would pass the one that came before it */
  lp_turns_give(&turns, &three);
  ck_assert_int_eq(end(&waits), LP_TURNS_TAKEN);
  ck_assert_int_eq(turns.free, 4);
}

/* Where too many wait, the newest of the client that has the most is refused, also for one that comes. */
LP_TEST(the_greediest_is_refused) {
  const lp_turns_request greedy = {1, 10, 1}, other = {2, 10, 1};
  asker all[5];
  init(1, 3);
  ck_assert_int_eq(take(&greedy), LP_TURNS_TAKEN);
  for (int i = 0; i < 3; i++) {
    begin(&all[i], i, greedy);
    await_waiting(i + 1);
  }
  ck_assert_int_eq(take(&greedy), LP_TURNS_FULL);
  begin(&all[3], 3, other);
  ck_assert_int_eq(end(&all[2]), LP_TURNS_FULL);
  begin(&all[4], 4, other); /* both would have two */
  ck_assert_int_eq(end(&all[4]), LP_TURNS_FULL);
  lp_turns_give(&turns, &greedy);
  for (int i = 0; i < 4; i++)
    if (i != 2) ck_assert_int_eq(end(&all[i]), LP_TURNS_TAKEN);
  ck_assert_int_eq(turns.waiting, 0);
}
