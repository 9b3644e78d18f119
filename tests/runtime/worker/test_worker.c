/* The worker and the link: failures are reported, and a device's failure does not affect other devices. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static char *dir;
static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

static const toy_placement split = {.prefill = "ddccdd"};

static lp_session *open_session(const lp_bundle *bundle, const char *cloud, lp_diag *diag) {
  lp_generate_options options = {
      .cloud = cloud, .sampling = {.top_p = 1}, .max_tokens = TOY_MADE, .threads = 1, .cloud_timeout_ms = 700};
  lp_session *session = NULL;
  return lp_session_open(bundle, &options, &session, diag) == LP_OK ? session : NULL;
}

static lp_status generate(lp_session *session, lp_token_sink *sink, void *user, lp_generation *out, lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  return lp_session_generate(session, prompts, 1, TOY_PROMPT, sink, user, out, diag);
}

static void expect_generates(lp_session *session) {
  lp_generation out = {0};
  ck_assert_int_eq(generate(session, NULL, NULL, &out, NULL), LP_OK);
  ck_assert_int_eq(out.generated, TOY_MADE);
  lp_generation_free(&out);
}

static void expect_fails(lp_session *session, lp_token_sink *sink, void *user, const char *text) {
  lp_generation out = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(generate(session, sink, user, &out, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  lp_diag_free(diag);
  lp_generation_free(&out);
}

static void expect_no_session(const lp_bundle *bundle, const char *cloud, const char *text) {
  lp_diag *diag = lp_diag_create();
  ck_assert_ptr_null(open_session(bundle, cloud, diag));
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  lp_diag_free(diag);
}

/* ---- losing the worker ------------------------------------------------------------------------------------------- */

typedef struct {
  toy_worker *worker;
  int left;
} killer;

static void kill_after(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  killer *state = user;
  if (--state->left == 0) toy_worker_stop(state->worker);
}

LP_TEST(death_in_mid_generation) {
  char *path = toy_bundle_write(dir, "toy", &split);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_session *session = open_session(bundle, worker.address, NULL);
  killer state = {.worker = &worker, .left = 5};
  char want[96];
  snprintf(want, sizeof want, "the cloud at %s was lost at position %d", worker.address, TOY_PROMPT + 5);
  double before = lp_now_ms();
  expect_fails(session, kill_after, &state, want);
  expect_fails(session, NULL, NULL, "cannot reach the cloud");
  ck_assert_double_lt(lp_now_ms() - before, 20000); /* a silent worker is waited for two minutes */
  lp_session_close(session);
  lp_bundle_free(bundle);
  free(path);
}

/* A program may hand the cloud a value and take it back without a segment in between: the worker answers at once. */
LP_TEST(answers_without_a_segment) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "dedddc"});
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_session *near = open_session(bundle, NULL, NULL), *far = open_session(bundle, worker.address, NULL);
  lp_generation wanted = {0}, found = {0};
  ck_assert_int_eq(generate(near, NULL, NULL, &wanted, NULL), LP_OK);
  ck_assert_int_eq(generate(far, NULL, NULL, &found, NULL), LP_OK);
  ck_assert_int_eq(found.generated, TOY_MADE);
  for (int i = 0; i < TOY_MADE; i++)
    ck_assert_int_eq(found.tokens.data[i].token, wanted.tokens.data[i].token);
  lp_generation_free(&wanted);
  lp_generation_free(&found);
  lp_session_close(near);
  lp_session_close(far);
  lp_bundle_free(bundle);
  toy_worker_stop(&worker);
  free(path);
}

LP_TEST(nobody_there) {
  char *path = toy_bundle_write(dir, "toy", &split);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  toy_worker_stop(&worker);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  char want[96];
  snprintf(want, sizeof want, "cannot reach the cloud at %s: ", worker.address);
  expect_no_session(bundle, worker.address, want);
  expect_no_session(bundle, "nowhere", "'nowhere' is no address: wanted HOST:PORT");
  expect_no_session(bundle, "127.0.0.1:99999", "is no address: wanted HOST:PORT");
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(other_bundle) {
  char *path = toy_bundle_write(dir, "toy", &split);
  char *other = toy_bundle_write(dir, "other", &(toy_placement){.prefill = "ddccdd", .seed = 2});
  toy_worker worker = toy_worker_start(other, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  expect_no_session(bundle, worker.address, "serves another bundle");
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
  free(other);
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

static lp_session *begin(const lp_bundle *bundle, const char *cloud) {
  lp_session *session = open_session(bundle, cloud, NULL);
  ck_assert_ptr_nonnull(session);
  return session;
}

/* Waits until no session counts as active (worker/budget.h). */
static void wait_idle(void) {
  usleep(1100000);
}

/* Generates from within another session's token sink, so that the two alternate. */
static void interrupt(void *user, int64_t index, const lp_generated *token) {
  (void)index;
  if (token->ms >= 0 && *(lp_session **)user) {
    lp_session *other = *(lp_session **)user;
    *(lp_session **)user = NULL;
    wait_idle();
    expect_generates(other);
  }
}

enum { CACHE_BYTES = TOY_LAYERS * (TOY_PROMPT + TOY_MADE) * TOY_WIDTH * 4 };

LP_TEST(budget_evicts_the_idle) {
  char *path = toy_bundle_write(dir, "toy", &split);
  char budget[32];
  snprintf(budget, sizeof budget, "%d", CACHE_BYTES * 3 / 2);
  toy_worker worker = toy_worker_start(path, budget, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_session *first = begin(bundle, worker.address), *second = begin(bundle, worker.address);
  lp_session *other = second;
  expect_fails(first, interrupt, &other, "was dropped: idle, or over the budget");
  wait_idle();
  expect_generates(first); /* from the start again */
  lp_session_close(first);
  lp_session_close(second);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(budget_holds_two) {
  char *path = toy_bundle_write(dir, "toy", &split);
  char budget[32];
  snprintf(budget, sizeof budget, "%d", CACHE_BYTES * 5 / 2);
  toy_worker worker = toy_worker_start(path, budget, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_session *first = begin(bundle, worker.address), *second = begin(bundle, worker.address);
  lp_session *other = second;
  lp_generation out = {0};
  ck_assert_int_eq(generate(first, interrupt, &other, &out, NULL), LP_OK);
  lp_generation_free(&out);
  lp_session_close(first);
  lp_session_close(second);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(budget_too_small) {
  char *path = toy_bundle_write(dir, "toy", &split);
  toy_worker worker = toy_worker_start(path, "1000", NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_session *session = begin(bundle, worker.address);
  expect_fails(session, NULL, NULL, "exceeds the context budget of 1000");
  lp_session_close(session);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

static void pause_once(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  if (--*(int *)user == 0) usleep(500000);
}

LP_TEST(idle_is_dropped) {
  char *path = toy_bundle_write(dir, "toy", &split);
  toy_worker worker = toy_worker_start(path, NULL, "150");
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_session *session = begin(bundle, worker.address);
  expect_generates(session);
  int left = 3;
  expect_fails(session, pause_once, &left, "was dropped: idle");
  lp_session_close(session);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- listening --------------------------------------------------------------------------------------------------- */

static void expect_not_served(const lp_bundle *bundle, const char *listen, const char *text) {
  static const volatile int stop = 1;
  lp_worker_options options = {.listen = listen, .threads = 1};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_worker_serve(bundle, &options, &stop, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  lp_diag_free(diag);
}

LP_TEST(where_it_may_listen) {
  char *path = toy_bundle_write(dir, "toy", &split);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_CLOUD);
  char want[80];
  snprintf(want, sizeof want, "cannot listen on %s: Address already in use", worker.address);
  expect_not_served(bundle, worker.address, want);
  expect_not_served(
      bundle, "0.0.0.0:0",
      "off loopback a key or certificates are required: --key-file, or --cert, --cert-key and --client-ca");
  expect_not_served(bundle, "example.org:80", "off loopback a key or certificates are required");
  expect_not_served(bundle, "127.0.0.1", "'127.0.0.1' is no address");
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  expect_not_served(bundle, "127.0.0.1:0", "no cloud side to serve");
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(loopback_addresses) {
  ck_assert(lp_address_is_loopback("127.0.0.1"));
  ck_assert(lp_address_is_loopback("127.8.9.1"));
  ck_assert(lp_address_is_loopback("localhost"));
  ck_assert(lp_address_is_loopback("[::1]"));
  ck_assert(!lp_address_is_loopback("128.0.0.1"));
  ck_assert(!lp_address_is_loopback("127.0.0.1.example.org"));
  ck_assert(lp_address_is_loopback("127.255.255.255"));
  ck_assert(!lp_address_is_loopback("127.256.0.1"));
  ck_assert(!lp_address_is_loopback("127.0.256.1"));
  ck_assert(!lp_address_is_loopback("127.0.0.256"));
  ck_assert(!lp_address_is_loopback("[::]"));
  ck_assert(!lp_address_is_loopback(""));
}

static volatile int stop_serving;
static int served_port;
static void on_listening(void *user, const char *host, int port) {
  (void)user, (void)host;
  __atomic_store_n(&served_port, port, __ATOMIC_RELEASE);
}

static void *serve_here(void *user) {
  lp_worker_options options = {.listen = "127.0.0.1:0", .threads = 1, .on_listening = on_listening};
  return lp_worker_serve(user, &options, &stop_serving, NULL) == LP_OK ? user : NULL;
}

LP_TEST(stops_when_told) {
  char *path = toy_bundle_write(dir, "toy", &split);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_CLOUD | LP_LOAD_DEVICE);
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, serve_here, bundle), 0);
  while (__atomic_load_n(&served_port, __ATOMIC_ACQUIRE) == 0)
    usleep(1000);
  char address[32];
  snprintf(address, sizeof address, "127.0.0.1:%d", served_port);
  lp_session *session = begin(bundle, address);
  expect_generates(session);
  lp_flag_set(&stop_serving);
  void *result = NULL;
  pthread_join(thread, &result);
  ck_assert_ptr_nonnull(result);
  expect_fails(session, NULL, NULL, "was lost at position");
  lp_session_close(session);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- hostile bytes ----------------------------------------------------------------------------------------------- */

static void send_raw(const char *address, const uint8_t *bytes, size_t size) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
  usleep(20000);
  close(fd);
}

LP_TEST(garbage_does_not_hurt) {
  char *path = toy_bundle_write(dir, "toy", &split);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_session *session = begin(bundle, worker.address);
  send_raw(worker.address, (const uint8_t *)"GET / HTTP/1.1\r\n\r\n", 18);
  send_raw(worker.address, (const uint8_t[]){0, 0, 0, 0, 0, 0, 0, 0, 9}, 9);         /* no length */
  send_raw(worker.address, (const uint8_t[]){255, 255, 255, 255, 0, 0, 0, 0, 9}, 9); /* a long frame, cut */
  send_raw(worker.address, (const uint8_t[]){2, 0, 0, 0, 0, 0, 0, 0, 9, 9}, 10);     /* shorter than its header */
  send_raw(worker.address, (const uint8_t[]){6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 2}, 14);
  send_raw(worker.address, (const uint8_t[]){6, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0x12, 0}, 14); /* open, no hello */
  uint32_t state = 1;
  for (int i = 0; i < 20; i++) {
    uint8_t noise[64] = {56};
    for (size_t j = 8; j < sizeof noise; j++)
      noise[j] = (uint8_t)((state = state * 1103515245u + 12345u) >> 16);
    noise[8] = (uint8_t)(noise[8] & 31);
    noise[9] = noise[10] = noise[11] = 0;
    send_raw(worker.address, noise, sizeof noise);
  }
  expect_generates(session);
  lp_session_close(session);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}
