/* Connections that wait: the one that has waited for longest makes way, those that are answered stay, and each has a
 * deadline. Pairs of sockets show which ones were shut down. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/serve/http/connections.h"
#include "tests/suite.h"

enum { MANY = LP_MOST_CONNECTIONS };

static lp_connections all;
static lp_connection *made[MANY];
static int client[MANY];

static void setup(void) {
  lp_connections_init(&all);
}

static void teardown(void) {
  lp_connections_destroy(&all);
}

LP_CASE(.setup = setup, .teardown = teardown);

static void add(int i) {
  int ends[2];
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  client[i] = ends[0];
  made[i] = lp_connections_add(&all, ends[1], (uint64_t)i);
  made[i]->since_ms = i; /* the first has waited for longest */
}

static bool is_shut(int i) {
  char byte;
  return recv(client[i], &byte, 1, MSG_DONTWAIT) == 0;
}

LP_TEST(the_longest_waiting_makes_way) {
  for (int i = 0; i < LP_MOST_WAITING; i++)
    add(i);
  lp_connections_answer(&all, made[0], true);
  ck_assert_double_gt(made[0]->since_ms, LP_MOST_WAITING);
  for (int i = 0; i < LP_MOST_WAITING; i++)
    ck_assert(!is_shut(i));
  add(LP_MOST_WAITING); /* as many wait as may */
  ck_assert(!is_shut(0) && !is_shut(1));
  add(LP_MOST_WAITING + 1);
  ck_assert(!is_shut(0) && is_shut(1) && !is_shut(2));
  add(LP_MOST_WAITING + 2);
  ck_assert(is_shut(2) && !is_shut(3));
  lp_connections_remove(&all, made[3]);
  add(3);
  ck_assert(!is_shut(4));
}

/* Also where most are answered. */
LP_TEST(room_for_one_more) {
  for (int i = 0; i < LP_MOST_CONNECTIONS - 1; i++) {
    add(i);
    if (i > 10) lp_connections_answer(&all, made[i], true);
  }
  ck_assert(!is_shut(0));
  add(LP_MOST_CONNECTIONS - 1);
  ck_assert(is_shut(0) && !is_shut(1) && !is_shut(11));
}

LP_TEST(deadlines) {
  double now = lp_now_ms();
  for (int i = 0; i < 4; i++)
    add(i);
  lp_connections_answer(&all, made[1], true);
  lp_connections_answer(&all, made[2], true);
  lp_connections_answer(&all, made[2], false);
  lp_connections_answer(&all, made[3], true);
  for (int i = 0; i < 3; i++)
    made[i]->since_ms = now;
  made[3]->since_ms = now - 1e6;
  lp_connections_end_late(&all, now + 29999);
  ck_assert(!is_shut(0));
  lp_connections_end_late(&all, now + 30000);
  ck_assert(is_shut(0) && !is_shut(1) && !is_shut(2) && !is_shut(3));
  lp_connections_end_late(&all, now + 119999);
  ck_assert(!is_shut(2));
  lp_connections_end_late(&all, now + 120000);
  ck_assert(is_shut(2) && !is_shut(1) && !is_shut(3)); /* those that are answered have time */
}

/* One host leaves room for others. */
LP_TEST(connections_of_one_host) {
  int ends[2];
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  for (int i = 0; i < LP_MOST_CONNECTIONS; i++) {
    made[i] = lp_connections_add(&all, dup(ends[0]), i < 225 ? 7 : 1000 + (uint64_t)i);
    lp_connections_answer(&all, made[i], true);
    ck_assert_msg(made[i]->beyond == (i == 224), "%d", i);
  }
  lp_connection *more = lp_connections_add(&all, dup(ends[0]), 9);
  ck_assert(more->beyond);
  lp_connections_remove(&all, more);
}
