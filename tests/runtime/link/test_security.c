/* Keys and certificates: the worker refuses the right peers and logs it, other connections continue, and nothing
 * readable is on the wire. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static char *dir, *path, *key, *other_key, *log_file;
static char *certificate[2], *certificate_key[2]; /* the worker's, and another's */
static lp_bundle *bundle;

static char *file_with(const char *name, const char *text, size_t size) {
  char *made = lp_path_join(dir, name);
  ck_assert_int_eq(lp_file_write(made, text, size, NULL), LP_OK);
  ck_assert_int_eq(chmod(made, 0600), 0);
  return made;
}

/* The private keys of the tests are in the repository; a copy is readable only by its owner. */
static char *copy_of(const char *name) {
  char *from = lp_path_join(LP_TEST_DIR "/tls", name), *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_read(from, &text, &size, NULL), LP_OK);
  char *made = file_with(name, text, size);
  free(from);
  free(text);
  return made;
}

static void setup(void) {
  dir = toy_dir_create();
  path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddddcc", .exits = {1, 3}});
  bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  key = file_with("key", "0123456789abcdef0123\n", 21);
  other_key = file_with("other_key", "0123456789abcdef0124", 20);
  log_file = lp_path_join(dir, "log");
  certificate[0] = copy_of("worker.crt");
  certificate[1] = copy_of("other.crt");
  certificate_key[0] = copy_of("worker.key");
  certificate_key[1] = copy_of("other.key");
}

static void teardown(void) {
  char *const texts[] = {
      path, key, other_key, log_file, certificate[0], certificate[1], certificate_key[0], certificate_key[1]};
  for (size_t i = 0; i < LP_COUNT(texts); i++)
    free(texts[i]);
  lp_bundle_free(bundle);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* Starts a worker with or without a key and TLS. Its log goes to `log_file`. */
static toy_worker start_worker(bool with_key, bool with_tls, const char *listen) {
  if (with_key) setenv("LP_TOY_KEY", key, 1);
  if (with_tls) setenv("LP_TOY_CERT", certificate[0], 1);
  if (with_tls) setenv("LP_TOY_CERT_KEY", certificate_key[0], 1);
  int terminal = dup(STDERR_FILENO), log = open(log_file, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ck_assert(terminal >= 0 && log >= 0);
  dup2(log, STDERR_FILENO);
  toy_worker worker = toy_worker_start_at(path, NULL, NULL, listen);
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  close(log);
  unsetenv("LP_TOY_KEY");
  unsetenv("LP_TOY_CERT");
  unsetenv("LP_TOY_CERT_KEY");
  return worker;
}

static size_t refusals_logged(void) {
  char *text = NULL;
  size_t size = 0, count = 0;
  ck_assert_int_eq(lp_file_read(log_file, &text, &size, NULL), LP_OK);
  for (const char *at = text; (at = strstr(at, "refused ")) != NULL; at++)
    count++;
  free(text);
  return count;
}

/* The device may know that it is refused before the worker has said so. */
static bool refusal_is_logged(void) {
  for (double until = lp_now_ms() + 50000; lp_now_ms() < until; usleep(10000))
    if (refusals_logged() > 0) return true;
  return false;
}

static lp_status generate(const char *cloud, lp_mode mode, lp_link_security security, lp_generation *out,
                          lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {.cloud = cloud,
                                 .mode = mode,
                                 .sampling = {.top_p = 1},
                                 .max_tokens = TOY_MADE,
                                 .ignore_eos = true,
                                 .threads = 1,
                                 .patience = {.dial_ms = 2000},
                                 .cloud_timeout_ms = 3000,
                                 .security = security};
  lp_session *session = NULL;
  lp_status status = lp_session_open(bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, prompts, 1, TOY_PROMPT, NULL, NULL, out, diag);
  lp_session_close(session);
  return status;
}

enum { CUT_EVERY_MS = 1000, CUT_MS = 150 };

/* After the first token: waits until the link, which came up soon after `*user`, is cut for the first time. */
static void await_cut(void *user, int64_t index, const lp_generated *token) {
  double left = *(const double *)user + (double)(CUT_EVERY_MS + 40) - lp_now_ms();
  (void)index, (void)token;
  if (left > 0) usleep((useconds_t)(left * 1000));
}

/* Answers that take longer than the device waits between two signs of life, and a link that is down for longer than it
 * waits for any: its connections end, and it makes new ones. Between two cuts a busy machine has time for that. */
LP_LOOP_TEST(a_slow_link, 0, 4) {
  static const lp_link_shape shapes[] = {{.rtt_ms = 150},
                                         {.rtt_ms = 5, .cut_ms = CUT_MS, .cut_every_ms = CUT_EVERY_MS}};
  toy_worker worker = start_worker(true, true, "127.0.0.1:0");
  lp_generation made[2];
  memset(made, 0, sizeof made);
  for (int i = 0; i < 2; i++) {
    int32_t prompts[TOY_BATCH * TOY_PROMPT];
    toy_prompts(prompts);
    lp_generate_options options = {.cloud = i == 0 ? NULL : worker.address,
                                   .link = i == 0 ? NULL : &shapes[_i % 2],
                                   .mode = _i < 2 ? LP_MODE_EXACT : LP_MODE_FULL,
                                   .sampling = {.top_p = 1},
                                   .max_tokens = 5,
                                   .ignore_eos = true,
                                   .threads = 1,
                                   .patience = {.beat_ms = 20, .silence_ms = _i % 2 == 0 ? 5000 : 100},
                                   .cloud_timeout_ms = 100000,
                                   .security = {.key_file = key, .ca_file = certificate[0]}};
    lp_session *session = NULL;
    lp_diag *diag = lp_diag_create();
    lp_token_sink *sink = i == 1 && _i % 2 == 1 ? await_cut : NULL;
    double begun_ms = lp_now_ms();
    lp_status status = lp_session_open(bundle, &options, &session, diag);
    if (status == LP_OK) status = lp_session_generate(session, prompts, 1, TOY_PROMPT, sink, &begun_ms, &made[i], diag);
    ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
    lp_diag_free(diag);
    lp_session_close(session);
  }
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq(made[0].tokens.data[i].token, made[1].tokens.data[i].token);
  lp_generation_free(&made[0]);
  lp_generation_free(&made[1]);
  toy_worker_stop(&worker);
}

/* The prompt's rows are longer than a stranger's limit, and come right after the proof of the key. */
LP_LOOP_TEST(a_long_prompt, 0, 4) {
  enum { LONG = 90 };
  int32_t prompt[LONG];
  for (int i = 0; i < LONG; i++)
    prompt[i] = (i * 17 + 3) % TOY_VOCAB;
  toy_worker worker = start_worker(true, _i % 2 == 1, "127.0.0.1:0");
  lp_generation made[2];
  memset(made, 0, sizeof made);
  for (int i = 0; i < 2; i++) {
    lp_generate_options options = {.cloud = i == 0 ? NULL : worker.address,
                                   .sampling = {.top_p = 1},
                                   .max_tokens = 4,
                                   .ignore_eos = true,
                                   .threads = 1,
                                   .cloud_timeout_ms = 3000,
                                   .security = {.key_file = key, .ca_file = _i % 2 == 1 ? certificate[0] : NULL}};
    lp_session *session = NULL;
    ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
    ck_assert_int_eq(lp_session_generate(session, prompt, 1, LONG, NULL, NULL, &made[i], NULL), LP_OK);
    lp_session_close(session);
  }
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(made[0].tokens.data[i].token, made[1].tokens.data[i].token);
  lp_generation_free(&made[0]);
  lp_generation_free(&made[1]);
  toy_worker_stop(&worker);
}

static void expect_tokens(const char *cloud, lp_mode mode, lp_link_security security) {
  lp_generation want = {0}, got = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(generate(NULL, LP_MODE_FULL, (lp_link_security){0}, &want, NULL), LP_OK);
  lp_status status = generate(cloud, mode, security, &got, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  for (int64_t i = 0; i < want.generated; i++)
    ck_assert_int_eq(want.tokens.data[i].token, got.tokens.data[i].token);
  lp_generation_free(&want);
  lp_generation_free(&got);
  lp_diag_free(diag);
}

static void expect_refused(const char *cloud, lp_link_security security, const char *text) {
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_ne(generate(cloud, LP_MODE_FULL, security, &made, diag), LP_OK);
  ck_assert_int_eq(made.generated, 0);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text) != NULL, "wanted '%s' in '%s'", text, toy_error(diag));
  lp_generation_free(&made);
  lp_diag_free(diag);
}

/* ---- admission --------------------------------------------------------------------------------------------------- */

LP_LOOP_TEST(key_and_tls, 0, 3) {
  bool with_key = _i != 1, with_tls = _i != 2;
  toy_worker worker = start_worker(with_key, with_tls, "127.0.0.1:0");
  lp_link_security right = {.key_file = with_key ? key : NULL, .ca_file = with_tls ? certificate[0] : NULL};
  expect_tokens(worker.address, LP_MODE_FULL, right);
  expect_tokens(worker.address, LP_MODE_EXACT, right);
  ck_assert_uint_eq(refusals_logged(), 0);
  toy_worker_stop(&worker);
}

LP_TEST(who_is_refused) {
  toy_worker worker = start_worker(true, true, "127.0.0.1:0");
  lp_link_security right = {.key_file = key, .ca_file = certificate[0], .server_name = "worker.test"}, wrong = right;
  expect_tokens(worker.address, LP_MODE_EXACT, right);
  wrong.key_file = other_key;
  expect_refused(worker.address, wrong, "holds another key");
  wrong.key_file = NULL;
  expect_refused(worker.address, wrong, "wants a key: --key-file");
  wrong = right;
  wrong.ca_file = certificate[1];
  expect_refused(worker.address, wrong, "cannot reach the cloud");
  wrong = right;
  wrong.server_name = "elsewhere.test";
  expect_refused(worker.address, wrong, "cannot reach the cloud");
  wrong = right;
  wrong.ca_file = NULL;
  expect_refused(worker.address, wrong, "cannot reach the cloud");
  expect_tokens(worker.address, LP_MODE_EXACT, right);
  toy_worker_stop(&worker);
  worker = start_worker(true, false, "127.0.0.1:0");
  expect_refused(worker.address, (lp_link_security){.key_file = other_key}, "holds another key");
  expect_refused(worker.address, (lp_link_security){.ca_file = certificate[0]}, "cannot reach the cloud");
  expect_refused(worker.address, (lp_link_security){0}, "cannot reach the cloud");
  expect_tokens(worker.address, LP_MODE_EXACT, (lp_link_security){.key_file = key});
  toy_worker_stop(&worker);
  worker = start_worker(false, false, "127.0.0.1:0");
  expect_refused(worker.address, (lp_link_security){.key_file = key}, "cannot reach the cloud");
  expect_refused(worker.address, (lp_link_security){.ca_file = certificate[0]}, "cannot reach the cloud");
  expect_tokens(worker.address, LP_MODE_EXACT, (lp_link_security){0});
  toy_worker_stop(&worker);
}

/* The device's certificate in the key's place: the worker admits the devices of `other.crt`. */
LP_LOOP_TEST(client_certificates, 0, 2) {
  setenv("LP_TOY_CLIENT_CA", certificate[1], 1);
  toy_worker worker = start_worker(_i == 1, true, "127.0.0.1:0");
  unsetenv("LP_TOY_CLIENT_CA");
  lp_link_security right = {.key_file = _i == 1 ? key : NULL,
                            .ca_file = certificate[0],
                            .cert_file = certificate[1],
                            .cert_key_file = certificate_key[1]},
                   wrong = right;
  expect_tokens(worker.address, LP_MODE_FULL, right);
  expect_tokens(worker.address, LP_MODE_EXACT, right);
  ck_assert_uint_eq(refusals_logged(), 0);
  wrong.cert_file = wrong.cert_key_file = NULL;
  expect_refused(worker.address, wrong, "cannot reach the cloud");
  ck_assert(refusal_is_logged());
  wrong.cert_file = certificate[0];
  wrong.cert_key_file = certificate_key[0];
  expect_refused(worker.address, wrong, "cannot reach the cloud");
  wrong = right;
  wrong.key_file = _i == 1 ? other_key : key;
  expect_refused(worker.address, wrong, "holds another key");
  expect_tokens(worker.address, LP_MODE_EXACT, right);
  toy_worker_stop(&worker);
}

/* Sends, and waits until the worker hangs up. */
static void expect_hangup(const char *address, const uint8_t *bytes, size_t size) {
  int fd = toy_connect(address);
  uint8_t answer[4096];
  ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  for (ssize_t got = 1; got > 0; got = recv(fd, answer, sizeof answer, 0))
    ck_assert_int_eq(poll(&wait, 1, 5000), 1);
  close(fd);
}

/* The size of a stranger's message is checked before memory is allocated. Garbage, and messages before a hello, end the
 * connection and are noted once. Other connections are not affected. Four bytes after a length are the CRC32C. */
LP_TEST(strangers) {
  static const uint8_t long_frame[] = {0, 0, 0, 128, 0, 0, 0, 0, 1, 1, 1, 1},
                       longer[] = {1, 16, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1},
                       garbage[] = {6, 0, 0, 0, 0, 0, 0, 0, 133, 105, 134, 94, 2, 0, 0, 0, 255, 255},
                       early[] = {6, 0, 0, 0, 0, 0, 0, 0, 56, 223, 152, 72, 2, 0, 0, 0, 18, 0,
                                  6, 0, 0, 0, 0, 0, 0, 0, 56, 223, 152, 72, 2, 0, 0, 0, 18, 0,
                                  6, 0, 0, 0, 0, 0, 0, 0, 56, 223, 152, 72, 2, 0, 0, 0, 18, 0};
  toy_worker worker = start_worker(false, false, "127.0.0.1:0");
  expect_hangup(worker.address, long_frame, sizeof long_frame); /* 2 GiB are announced */
  expect_hangup(worker.address, longer, sizeof longer);         /* a byte more than a stranger may send */
  ck_assert_uint_eq(refusals_logged(), 0);                      /* nothing was taken that could be refused */
  expect_hangup(worker.address, garbage, sizeof garbage);
  ck_assert_uint_eq(refusals_logged(), 1);
  expect_hangup(worker.address, early, sizeof early);
  ck_assert_uint_eq(refusals_logged(), 2);
  expect_tokens(worker.address, LP_MODE_EXACT, (lp_link_security){0});
  toy_worker_stop(&worker);
}

/* A device that does not read its messages does not delay other devices. */
LP_TEST(deaf_device) {
  toy_worker worker = start_worker(false, false, "127.0.0.1:0");
  int fd = toy_connect(worker.address);
  uint8_t beats[4096] = {0};
  for (int i = 0; i < 2000 && send(fd, beats, sizeof beats, MSG_NOSIGNAL | MSG_DONTWAIT) > 0; i++)
    ;
  double begin = lp_now_ms();
  expect_tokens(worker.address, LP_MODE_EXACT, (lp_link_security){0});
  ck_assert_double_le(lp_now_ms() - begin, 20000);
  close(fd);
  toy_worker_stop(&worker);
}

/* ---- off loopback ------------------------------------------------------------------------------------------------ */

static void expect_not_served(lp_link_security security, const char *text) {
  static const volatile int stop = 1;
  lp_worker_options options = {.listen = "0.0.0.0:0", .threads = 1, .security = security};
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_worker_serve(bundle, &options, &stop, diag);
  if (!text) {
    ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  } else {
    ck_assert_int_eq(status, LP_FAILED);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    ck_assert_msg(strstr(toy_error(diag), text) != NULL, "wanted '%s' in '%s'", text, toy_error(diag));
  }
  lp_diag_free(diag);
}

static lp_status read_key_as(const char *file, mode_t mode) {
  lp_diag *diag = lp_diag_create();
  lp_security security = {0};
  lp_link_security from = {.key_file = file};
  ck_assert_int_eq(chmod(file, mode), 0);
  lp_status status = lp_security_open(&from, LP_SIDE_CLOUD, true, &security, diag);
  lp_security_close(&security);
  lp_diag_free(diag);
  return status;
}

#define ONE "0123456789abcdef0123456789ABCDEF"
#define TWO "fedcba9876543210fedcba9876543210"

/* Lines end as in Unix or in Windows, the last perhaps not at all; a file with another content is one key. */
LP_TEST(files_with_a_key_in_each_line) {
  static const struct {
    const char *text;
    size_t keys;
  } rows[] = {{ONE, 1},
              {ONE "\n", 1},
              {ONE "\n" TWO "\n", 2},
              {ONE "\n" TWO, 2},
              {ONE "\r\n" TWO "\r\n", 2},
              {ONE "\r\n" TWO "\n" TWO, 3},
              {ONE "\r" TWO, 1},
              {ONE "\n\n" TWO, 1},
              {ONE "\nshort\n" TWO, 1},
              {ONE "\n" TWO " ", 1},
              {ONE "\n" TWO "\x7f", 1}};
  char *file = lp_path_join(dir, "keys");
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    ck_assert_int_eq(lp_file_write(file, rows[i].text, strlen(rows[i].text), NULL), LP_OK);
    ck_assert_int_eq(chmod(file, 0600), 0);
    lp_diag *diag = lp_diag_create();
    lp_security security = {0};
    const lp_link_security from = {.key_file = file};
    ck_assert_int_eq(lp_security_open(&from, LP_SIDE_CLOUD, true, &security, diag), LP_OK);
    ck_assert_msg(security.key_count == rows[i].keys, "row %zu: %zu keys", i, security.key_count);
    lp_security_close(&security);
    security = (lp_security){0};
    const bool one = rows[i].keys == 1;
    ck_assert_int_eq(lp_security_open(&from, LP_SIDE_DEVICE, true, &security, diag), one ? LP_OK : LP_FAILED);
    if (!one) ck_assert_ptr_nonnull(strstr(toy_error(diag), "keys, a line each; a device holds one"));
    lp_security_close(&security);
    lp_diag_free(diag);
  }
  free(file);
}

/* systemd 254 and later give a credential the mode 0440. */
LP_TEST(credentials_of_a_service) {
  ck_assert_int_eq(read_key_as(key, 0400), LP_OK);
  ck_assert_int_ne(read_key_as(key, 0440), LP_OK);
  setenv("CREDENTIALS_DIRECTORY", dir, 1);
  ck_assert_int_eq(read_key_as(key, 0440) == LP_OK, geteuid() == 0); /* of root only */
  ck_assert_int_ne(read_key_as(key, 0444), LP_OK);
  ck_assert_int_ne(read_key_as(key, 0460), LP_OK);
  setenv("CREDENTIALS_DIRECTORY", "/run/credentials/another", 1);
  ck_assert_int_ne(read_key_as(key, 0440), LP_OK);
  unsetenv("CREDENTIALS_DIRECTORY");
}

LP_TEST(off_loopback) {
  lp_link_security all = {.key_file = key, .cert_file = certificate[0], .cert_key_file = certificate_key[0]},
                   some = all;
  expect_not_served(all, NULL);
  expect_not_served((lp_link_security){.key_file = key}, NULL);
  expect_not_served((lp_link_security){0}, "off loopback a key or certificates are required");
  some.key_file = NULL;
  expect_not_served(some, "off loopback a key or certificates are required");
  some = all;
  some.cert_file = NULL;
  expect_not_served(some, "belong together");
  some = all;
  some.cert_key_file = NULL;
  expect_not_served(some, "belong together");
  some.cert_key_file = key;
  expect_not_served(some, "no certificate and private key for TLS");
  some = all;
  some.key_file = NULL;
  some.client_ca_file = certificate[1];
  expect_not_served(some, NULL);
  some.cert_file = some.cert_key_file = NULL;
  expect_not_served(some, "off loopback a key or certificates are required");
  some = all;
  some.client_ca_file = key;
  expect_not_served(some, "no certificate for TLS");
  some = all;
  some.key_file = path;
  expect_not_served(some, "other users may read");
  some.key_file = file_with("short", "0123456789\n", 11);
  expect_not_served(some, "a key of 10 bytes");
  free((char *)(uintptr_t)some.key_file);
  some.key_file = "/nowhere/key";
  expect_not_served(some, "No such file");
  expect_refused("192.0.2.1:7700", (lp_link_security){0}, "off loopback a key or certificates are required");
  expect_refused("192.0.2.1:7700", (lp_link_security){.ca_file = certificate[0]}, "off loopback a key or certificates");
  expect_refused("127.0.0.1:1", (lp_link_security){.cert_file = certificate[0]}, "belong together");
  expect_refused("127.0.0.1:1", (lp_link_security){.cert_file = certificate[0], .cert_key_file = certificate_key[0]},
                 "--cert needs the worker's certificate: --ca");
}

/* ---- the wire ---------------------------------------------------------------------------------------------------- */

/* A process that relays connections to the worker and keeps what passes in a file. */
static pid_t start_tap(const toy_worker *worker, const char *record, char address[32]) {
  struct sockaddr_in here = {.sin_family = AF_INET};
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_ge(listener, 0);
  ck_assert_int_eq(bind(listener, (struct sockaddr *)&here, size), 0);
  ck_assert_int_eq(listen(listener, 8), 0);
  ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&here, &size), 0);
  snprintf(address, 32, "127.0.0.1:%d", ntohs(here.sin_port));
  pid_t tap = fork();
  if (tap > 0) {
    close(listener);
    return tap;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int out = open(record, O_CREAT | O_WRONLY | O_TRUNC, 0600), end[16], count = 0;
  for (;;) {
    struct pollfd wait[17] = {{.fd = listener, .events = POLLIN}};
    for (int i = 0; i < count; i++)
      wait[1 + i] = (struct pollfd){.fd = end[i], .events = POLLIN};
    (void)poll(wait, (nfds_t)count + 1, -1);
    for (int i = 0; i < count; i++) {
      uint8_t chunk[8192];
      if (wait[1 + i].revents == 0 || end[i] < 0) continue;
      ssize_t got = recv(end[i], chunk, sizeof chunk, 0);
      if (got > 0 && (write(out, chunk, (size_t)got) != got || end[i ^ 1] < 0 ||
                      send(end[i ^ 1], chunk, (size_t)got, MSG_NOSIGNAL) < 0))
        got = -1;
      if (got > 0) continue;
      if (end[i ^ 1] >= 0) shutdown(end[i ^ 1], SHUT_WR);
      close(end[i]);
      end[i] = -1;
    }
    if (wait[0].revents == 0 || count + 2 > 16) continue;
    end[count] = accept(listener, NULL, NULL);
    end[count + 1] = toy_connect(worker->address);
    count += 2;
  }
}

static bool contains(const char *text, size_t size, const void *what, size_t length) {
  return memmem(text, size, what, length) != NULL;
}

/* In plain TCP the bundle's hash and a row of hidden states can be read. With a key or certificates neither can. */
LP_LOOP_TEST(what_the_wire_shows, 0, 3) {
  bool with_key = _i != 0, with_certificate = _i == 1;
  toy_worker worker = start_worker(with_key, with_certificate, "127.0.0.1:0");
  char address[32], *record = lp_path_join(dir, "record"), *text = NULL;
  size_t size = 0;
  pid_t tap = start_tap(&worker, record, address);
  expect_tokens(
      address, LP_MODE_EXACT,
      (lp_link_security){.key_file = with_key ? key : NULL, .ca_file = with_certificate ? certificate[0] : NULL});
  kill(tap, SIGKILL);
  waitpid(tap, NULL, 0);
  ck_assert_int_eq(lp_file_read(record, &text, &size, NULL), LP_OK);
  ck_assert_uint_ge(size, (TOY_PROMPT + TOY_MADE - 1) * TOY_WIDTH * 4);
  size_t exponents = 0; /* bytes that begin a float of 1/8 to 2 */
  for (size_t i = 0; i < size; i++)
    exponents += ((uint8_t)text[i] & 0x7e) == 0x3e;
  ck_assert_int_eq(contains(text, size, bundle->manifest.hash, LP_SHA256_HEX), !with_key);
  ck_assert_int_eq(exponents > size / 24, !with_key); /* most of each fourth byte in plain rows; by chance a 64th */
  ck_assert(!contains(text, size, "0123456789abcdef", 16)); /* the key is never sent */
  free(text);
  free(record);
  toy_worker_stop(&worker);
}
