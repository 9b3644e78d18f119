/* bench_router [FOLDER [MODEL]]: measures the time of a decision by each policy, with 32 examples in the prompt (MODEL,
 * a bundle, adds the embedded decider), and the durable decisions per second that a store in FOLDER (.) takes from 1, 8
 * and 32 threads.
 *
 *   ninja -C build/release bench_router && build/release/tests/runtime/router/bench/bench_router /var/tmp
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/router/store.h"

static double now_s(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lp_router_request request_of(int i, char text[32]) {
  (void)snprintf(text, 32, "kind %d, answer %d", i % 16, i % 3);
  return (lp_router_request){.keywords = text, .offered = 3, .rule = LP_ROUTE_CLOUD};
}

static void time_decisions(const lp_policy_spec *spec, const char *title) {
  lp_policy *policy = NULL;
  lp_diag *diag = lp_diag_create();
  char text[32];
  lp_decision decision;
  if (lp_policy_open(spec, &policy, diag) != LP_OK) {
    (void)printf("%-24s %s\n", title, lp_diag_get(diag, 0)->text);
    lp_diag_free(diag);
    return;
  }
  lp_diag_free(diag);
  for (int i = 0; i < 96; i++) {
    lp_router_request request = request_of(i, text);
    policy->learn(policy, &request, i % 2 == 0 ? LP_ROUTE_EDGE : LP_ROUTE_CLOUD, (i * 37) % 50, true);
  }
  int count = 0;
  double begin = now_s(), spent;
  do {
    lp_router_request request = request_of(count, text);
    policy->decide(policy, &request, &decision);
    count++;
    spent = now_s() - begin;
  } while (spent < 1);
  (void)printf("%-24s %10.2f us a decision\n", title, spent / count * 1e6);
  policy->close(policy);
}

enum { LINES = 2000 };
static lp_store *store;

static void *write_lines(void *user) {
  lp_diag *diag = lp_diag_create();
  char text[32];
  int64_t id;
  for (int i = 0; i < *(int *)user; i++) {
    lp_router_request request = request_of(i, text);
    lp_decision decision = {.propensity = 1};
    if (lp_store_decision(store, &request, &decision, &id, diag) != LP_OK) exit(1);
  }
  lp_diag_free(diag);
  return NULL;
}

static void time_store(const char *folder, int threads) {
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/bench-router-XXXXXX.db", folder);
  int file = mkstemps(path, 3);
  lp_diag *diag = lp_diag_create();
  if (file < 0 || lp_store_open(path, &store, diag) != LP_OK) {
    (void)fprintf(stderr, "%s cannot be written\n", path);
    exit(1);
  }
  (void)close(file);
  pthread_t thread[64];
  int each = LINES / threads;
  double begin = now_s();
  for (int i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, write_lines, &each) != 0) exit(1);
  for (int i = 0; i < threads; i++)
    (void)pthread_join(thread[i], NULL);
  (void)printf("store, %2d threads         %10.0f durable decisions/s\n", threads, each * threads / (now_s() - begin));
  lp_store_close(store);
  lp_diag_free(diag);
  static const char *const ends[] = {"", "-wal", "-shm"};
  for (size_t i = 0; i < LP_COUNT(ends); i++) {
    char name[4200];
    (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
    (void)unlink(name);
  }
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : ".";
  time_decisions(&(lp_policy_spec){.policy = "rule"}, "rule");
  time_decisions(&(lp_policy_spec){.policy = "quickest"}, "quickest");
  time_decisions(&(lp_policy_spec){.policy = "router", .model = "lookup"}, "router, lookup");
  time_decisions(&(lp_policy_spec){.policy = "q-table"}, "q-table");
  time_decisions(&(lp_policy_spec){.policy = "dqn"}, "dqn");
  if (argc > 2)
    time_decisions(&(lp_policy_spec){.policy = "router", .model = "embedded", .embedded = argv[2]}, "router, embedded");
  time_store(folder, 1);
  time_store(folder, 8);
  time_store(folder, 32);
  return 0;
}
