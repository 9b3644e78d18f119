/* The store: noted decisions survive a kill -9, and files of other programs are refused. With LP_TEST_POOL, an empty
 * PostgreSQL database that psql reaches, the tests use it (postgres.sh). */
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/router/store.h"
#include "tests/suite.h"

static char folder[] = "/tmp/llmpart-store-XXXXXX";
static char path[64];
static const char *database, *pool;
static lp_diag *diag;

static void setup(void) {
  memset(folder + strlen(folder) - 6, 'X', 6);
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/pool.db", folder);
  database = getenv("LP_TEST_POOL");
  pool = database ? database : path;
  if (database)
    ck_assert_int_eq(system("psql -q \"$LP_TEST_POOL\" -c 'DROP SCHEMA IF EXISTS llmpart CASCADE' 2>/dev/null"), 0);
  diag = lp_diag_create();
}

static void teardown(void) {
  static const char *const ends[] = {"", "-wal", "-shm"};
  for (size_t i = 0; i < LP_COUNT(ends); i++) {
    char name[80];
    (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
    (void)unlink(name);
  }
  (void)rmdir(folder);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

static lp_store *open_store(void) {
  lp_store *store = NULL;
  ck_assert_int_eq(lp_store_open(pool, &store, diag), LP_OK);
  return store;
}

static int64_t note(lp_store *store, const char *keywords, lp_route route) {
  lp_router_request request = {.keywords = keywords, .offered = 3, .rule = LP_ROUTE_EDGE};
  lp_decision decision = {.route = route, .source = LP_DECIDED_MODEL, .propensity = 0.9, .probability = {0.25, 0.75}};
  int64_t id = 0;
  ck_assert_int_eq(lp_store_decision(store, &request, &decision, &id, diag), LP_OK);
  return id;
}

static void count_rewards(void *user, const lp_stored *stored) {
  double *sum = user;
  sum[0] += stored->reward;
  sum[1] += 1;
}

LP_TEST(what_is_noted_comes_back) {
  lp_store *store = open_store();
  int64_t first = note(store, "code", LP_ROUTE_CLOUD), second = note(store, "chat", LP_ROUTE_EDGE);
  ck_assert_int_eq(lp_store_outcome(store, second, -2.5, false, diag), LP_OK);
  lp_store_close(store);
  store = open_store();
  lp_arena *arena = lp_arena_create();
  lp_stored stored;
  ck_assert_int_eq(lp_store_get(store, first, arena, &stored, diag), LP_OK);
  ck_assert_str_eq(stored.request.keywords, "code");
  ck_assert_int_eq(stored.decision.route, LP_ROUTE_CLOUD);
  ck_assert_double_eq(stored.decision.probability[1], 0.75);
  ck_assert_double_eq(stored.decision.propensity, 0.9);
  ck_assert(!stored.has_outcome);
  ck_assert_int_eq(lp_store_get(store, second, arena, &stored, diag), LP_OK);
  ck_assert(stored.has_outcome && !stored.good);
  ck_assert_double_eq(stored.reward, -2.5);
  lp_arena_free(arena);
  lp_store_close(store);
}

LP_TEST(outcomes_are_visited_in_their_order) {
  lp_store *store = open_store();
  int64_t id[3];
  for (int i = 0; i < 3; i++)
    id[i] = note(store, "code", LP_ROUTE_EDGE);
  ck_assert_int_eq(lp_store_outcome(store, id[2], 1, true, diag), LP_OK);
  ck_assert_int_eq(lp_store_outcome(store, id[0], 10, true, diag), LP_OK);
  double all[2] = {0}, newest[2] = {0};
  ck_assert_int_eq(lp_store_each(store, 0, count_rewards, all, diag), LP_OK);
  ck_assert_int_eq(lp_store_each(store, 1, count_rewards, newest, diag), LP_OK);
  ck_assert_double_eq(all[0], 11);
  ck_assert_double_eq(all[1], 2);
  ck_assert_double_eq(newest[0], 10);
  lp_store_close(store);
}

LP_TEST(an_outcome_comes_once) {
  lp_store *store = open_store();
  int64_t id = note(store, "code", LP_ROUTE_EDGE);
  ck_assert_int_eq(lp_store_outcome(store, id, 1, true, diag), LP_OK);
  ck_assert_int_eq(lp_store_outcome(store, id, 2, true, diag), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "has an outcome already"));
  ck_assert_int_eq(lp_store_outcome(store, id + 1, 2, true, diag), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 1)->text, "no decision"));
  lp_store_close(store);
}

/* Each object hears of the others' outcomes, once and in their order, and not of its own. */
LP_TEST(outcomes_of_others_are_followed) {
  lp_store *one = open_store(), *two = open_store();
  int64_t id[4];
  for (int i = 0; i < 4; i++)
    id[i] = note(one, "code", LP_ROUTE_EDGE);
  ck_assert_int_eq(lp_store_outcome(one, id[0], 1, true, diag), LP_OK);
  double known[2] = {0}, first[2] = {0}, second[2] = {0}, third[2] = {0};
  ck_assert_int_eq(lp_store_each(two, 0, count_rewards, known, diag), LP_OK);
  ck_assert_double_eq(known[0], 1);
  ck_assert_int_eq(lp_store_follow(two, count_rewards, first, diag), LP_OK);
  ck_assert_double_eq(first[1], 0);
  ck_assert_int_eq(lp_store_outcome(two, id[1], 10, true, diag), LP_OK);
  ck_assert_int_eq(lp_store_outcome(one, id[2], 100, true, diag), LP_OK);
  ck_assert_int_eq(lp_store_outcome(two, id[3], 1000, true, diag), LP_OK);
  ck_assert_int_eq(lp_store_follow(two, count_rewards, second, diag), LP_OK);
  ck_assert_double_eq(second[0], 100);
  ck_assert_double_eq(second[1], 1);
  ck_assert_int_eq(lp_store_follow(two, count_rewards, third, diag), LP_OK);
  ck_assert_double_eq(third[1], 0);
  ck_assert_int_eq(lp_store_follow(one, count_rewards, third, diag), LP_OK);
  ck_assert_double_eq(third[0], 1111); /* it had read nothing before */
  lp_store_close(one);
  lp_store_close(two);
}

enum { WRITERS = 8 };

typedef struct {
  lp_store *store;
  int told; /* a pipe, or -1 */
  int count;
  int64_t id[64];
} writer;

static void *write_lines(void *user) {
  writer *w = user;
  lp_diag *own = lp_diag_create();
  lp_router_request request = {.keywords = "code", .offered = 3};
  lp_decision decision = {.route = LP_ROUTE_CLOUD, .propensity = 1};
  for (int i = 0; i < w->count; i++) {
    int64_t *id = &w->id[i % 64];
    if (lp_store_decision(w->store, &request, &decision, id, own) != LP_OK ||
        lp_store_outcome(w->store, *id, 1, true, own) != LP_OK ||
        (w->told >= 0 && write(w->told, id, sizeof *id) != sizeof *id))
      _exit(1);
  }
  lp_diag_free(own);
  return NULL;
}

static void write_from_many_threads(lp_store *store, int told, int count, writer writers[WRITERS]) {
  pthread_t thread[WRITERS];
  for (int i = 0; i < WRITERS; i++) {
    writers[i] = (writer){.store = store, .told = told, .count = count};
    ck_assert_int_eq(pthread_create(&thread[i], NULL, write_lines, &writers[i]), 0);
  }
  for (int i = 0; i < WRITERS; i++)
    (void)pthread_join(thread[i], NULL);
}

static int compare_ids(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

LP_TEST(threads_share_commits_and_get_their_own_lines) {
  writer writers[WRITERS];
  lp_store *store = open_store();
  write_from_many_threads(store, -1, 20, writers);
  int64_t all[WRITERS * 20];
  for (size_t i = 0; i < LP_COUNT(all); i++)
    all[i] = writers[i / 20].id[i % 20];
  qsort(all, LP_COUNT(all), sizeof *all, compare_ids);
  for (size_t i = 0; i < LP_COUNT(all); i++)
    ck_assert_int_eq(all[i], (int64_t)i + 1);
  double seen[2] = {0};
  ck_assert_int_eq(lp_store_each(store, 0, count_rewards, seen, diag), LP_OK);
  ck_assert_double_eq(seen[1], WRITERS * 20);
  lp_store_close(store);
}

/* A child notes decisions from many threads and reports each one that was noted. After SIGKILL none of those is
 * lost. */
LP_TEST(nothing_is_lost_by_a_kill) {
  int told[2];
  ck_assert_int_eq(pipe(told), 0);
  pid_t child = fork();
  if (child == 0) {
    writer writers[WRITERS];
    write_from_many_threads(open_store(), told[1], 1000000, writers);
    _exit(0);
  }
  int64_t id[4096];
  int count = 0;
  for (; count < 200; count++)
    ck_assert_int_eq(read(told[0], &id[count], sizeof *id), sizeof *id);
  (void)kill(child, SIGKILL);
  (void)waitpid(child, NULL, 0);
  (void)close(told[1]);
  while (count < 4096 && read(told[0], &id[count], sizeof *id) == sizeof *id)
    count++;
  lp_store *store = open_store();
  for (int i = 0; i < count; i++) {
    lp_arena *arena = lp_arena_create();
    lp_stored stored;
    ck_assert_int_eq(lp_store_get(store, id[i], arena, &stored, diag), LP_OK);
    ck_assert(stored.has_outcome);
    lp_arena_free(arena);
  }
  lp_store_close(store);
  (void)close(told[0]);
}

/* One row of a transaction that the pool refuses does not take the others with it. */
LP_TEST(a_text_that_is_not_utf_8_fails_alone) {
  lp_store *store = open_store();
  lp_router_request request = {.keywords = "\xff\xfe", .offered = 3};
  lp_decision decision = {.route = LP_ROUTE_EDGE, .propensity = 1};
  int64_t id = 0;
  lp_status status = lp_store_decision(store, &request, &decision, &id, diag);
  ck_assert_int_eq(status, database ? LP_FAILED : LP_OK);
  ck_assert_int_gt(note(store, "code", LP_ROUTE_CLOUD), 0);
  lp_store_close(store);
}

LP_TEST(a_database_that_is_away_is_named_without_its_password) {
  lp_store *store = NULL;
  ck_assert_int_eq(lp_store_open("postgresql://me:hunter2@127.0.0.1:1/pool?password=hunter2", &store, diag), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(diag, 0)->loc.file, "postgresql://me@127.0.0.1:1/pool");
  ck_assert_ptr_null(strstr(lp_diag_get(diag, 0)->text, "hunter2"));
}

LP_TEST(a_foreign_database_is_refused) {
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_exec(db, "CREATE TABLE t (x)", NULL, NULL, NULL), SQLITE_OK);
  (void)sqlite3_close(db);
  lp_store *store = NULL;
  ck_assert_int_eq(lp_store_open(path, &store, diag), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "another program"));
}

LP_TEST(a_file_of_something_else_is_refused) {
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  for (int i = 0; i < 500; i++)
    (void)fputs("not a database\n", file);
  (void)fclose(file);
  lp_store *store = NULL;
  ck_assert_int_eq(lp_store_open(path, &store, diag), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(diag, 0)->loc.file, path);
}
