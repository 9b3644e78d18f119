/* Frames between two channels of one process, over TCP and Unix sockets, plain and in TLS: which thread receives them
 * may change while they come, their content and order may not. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/side.h"
#include "runtime/link/conn.h"
#include "runtime/link/link.h"
#include "runtime/link/security.h"
#include "runtime/link/socket.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static const lp_transport *const transport = &lp_transport_socket;
typedef struct {
  lp_channel *worker, *device;
  lp_security security[LP_SIDE_COUNT];
} both;

static char *dir;
static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}
LP_CASE(.setup = setup, .teardown = teardown);

/* The private keys of the tests are in the repository; only the owner may read a copy. */
static char *copy_of(const char *name) {
  char *from = lp_path_join(LP_TEST_DIR "/tls", name), *to = lp_path_join(dir, name), *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_read(from, &text, &size, NULL), LP_OK);
  ck_assert_int_eq(lp_file_write(to, text, size, NULL), LP_OK);
  ck_assert_int_eq(chmod(to, 0600), 0);
  free(from);
  free(text);
  return to;
}

typedef enum { PLAIN, CERTIFICATE, KEY, WAYS } way;

/* A worker that shows a certificate and a device that trusts it, or the same key on both sides. */
static void secure(both *made, way how, const char *name) {
  lp_link_security files[LP_SIDE_COUNT] = {0};
  char *certificate = copy_of("worker.crt"), *private_key = copy_of("worker.key");
  if (how == CERTIFICATE) {
    files[LP_SIDE_CLOUD] = (lp_link_security){.cert_file = certificate, .cert_key_file = private_key};
    files[LP_SIDE_DEVICE] = (lp_link_security){.ca_file = certificate, .server_name = name};
  }
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    if (how == KEY) files[i].key_file = private_key;
    ck_assert_int_eq(lp_security_open(&files[i], (lp_side)i, true, &made->security[i], NULL), LP_OK);
  }
  free(certificate);
  free(private_key);
}

static void listen_on(both *made, const char *where, char address[128]) {
  int port = 0;
  lp_diag *diag = lp_diag_create();
  lp_status status = transport->listen(where, &made->security[LP_SIDE_CLOUD], &made->worker, &port, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  snprintf(address, 128, "%s", where);
  if (port > 0) snprintf(strrchr(address, ':'), 16, ":%d", port);
}

static void listen_at(both *made, char address[128]) {
  listen_on(made, "127.0.0.1:0", address);
}

static lp_endpoint endpoint_of(const both *made, const char *address) {
  return (lp_endpoint){.address = address,
                       .security = &made->security[LP_SIDE_DEVICE],
                       .patience = {.dial_ms = 2000, .beat_ms = 50, .silence_ms = 1500, .repeat_ms = 100}};
}

static both connect_on(const char *where, way how) {
  both made = {0};
  char address[128];
  secure(&made, how, NULL);
  listen_on(&made, where, address);
  lp_endpoint endpoint = endpoint_of(&made, address);
  lp_diag *diag = lp_diag_create();
  lp_status status = transport->dial(&endpoint, 2000, &made.device, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  return made;
}

static both connect_both(way how) {
  return connect_on("127.0.0.1:0", how);
}

static void close_both(both *made) {
  transport->close(made->device);
  transport->close(made->worker);
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    lp_security_close(&made->security[i]);
}

static void send_text(lp_channel *channel, uint32_t peer, const char *text) {
  const char *why = "";
  ck_assert_msg(transport->send(channel, peer, text, 2, text + 2, strlen(text + 2), &why), "%s", why);
}

/* Waits for the next frame, or for another outcome, for 40 seconds. */
static lp_recv_outcome receive(lp_channel *channel, double step_ms, lp_packet *out) {
  const char *why = "";
  double until = lp_now_ms() + 40000;
  lp_recv_outcome outcome = LP_RECV_TIMEOUT;
  while (outcome == LP_RECV_TIMEOUT && lp_now_ms() < until)
    outcome = transport->receive(channel, step_ms, out, &why);
  return outcome;
}

static uint32_t expect_text(lp_channel *channel, double step_ms, const char *text) {
  lp_packet packet;
  ck_assert_int_eq(receive(channel, step_ms, &packet), LP_RECV_FRAME);
  ck_assert_uint_eq(packet.size, strlen(text));
  ck_assert_mem_eq(packet.data, text, packet.size);
  uint32_t peer = packet.peer;
  transport->release(&packet);
  return peer;
}

/* Quick turns, which are looked for, and slow ones, which are slept for; the worker looks without waiting in between,
 * as it does when a pass is due. */
LP_LOOP_TEST(turns_quick_and_slow, 0, WAYS) {
  both made = connect_both((way)_i);
  for (int i = 0; i < 200; i++) {
    char text[32];
    snprintf(text, sizeof text, "turn %d", i);
    send_text(made.device, LP_ONLY_PEER, text);
    if (i % 50 == 49) usleep(3000);
    uint32_t peer = expect_text(made.worker, i % 3 == 0 ? 0 : 100, text);
    send_text(made.worker, peer, text);
    if (i % 50 == 24) usleep(3000);
    (void)expect_text(made.device, 100, text);
  }
  close_both(&made);
}

static void *answer_late(void *user) {
  lp_channel *worker = user;
  uint32_t peer = expect_text(worker, 100, "question");
  sleep(2);
  send_text(worker, peer, "answer");
  return NULL;
}

/* The worker took a frame and does not come back for longer than the device's silence allows: it gives signs of life
 * all the same. */
LP_LOOP_TEST(signs_of_life_while_the_worker_computes, 0, WAYS) {
  both made = connect_both((way)_i);
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, answer_late, made.worker), 0);
  send_text(made.device, LP_ONLY_PEER, "question");
  double begin = lp_now_ms();
  const char *why = "";
  lp_packet packet;
  ck_assert_msg(transport->receive(made.device, 10000, &packet, &why) == LP_RECV_FRAME, "%s", why);
  ck_assert_double_ge(lp_now_ms() - begin, 1900);
  transport->release(&packet);
  pthread_join(thread, NULL);
  close_both(&made);
}

/* The channel reports a device that has disconnected and one that the worker disconnects, whether or not the worker was
 * receiving from them. */
LP_LOOP_TEST(who_has_gone_is_told_of, 0, 4 * WAYS) {
  both made = connect_both((way)(_i / 4));
  bool asks = _i % 2 == 1, leaves = _i % 4 < 2;
  send_text(made.device, LP_ONLY_PEER, "hello");
  uint32_t peer = expect_text(made.worker, 100, "hello");
  if (asks) {
    lp_packet packet;
    const char *why = "";
    ck_assert_int_eq(transport->receive(made.worker, 20, &packet, &why), LP_RECV_TIMEOUT);
  }
  if (leaves) {
    transport->close(made.device);
    made.device = NULL;
  } else {
    transport->drop(made.worker, peer);
  }
  lp_packet packet;
  ck_assert_int_eq(receive(made.worker, 50, &packet), LP_RECV_GONE);
  ck_assert_uint_eq(packet.peer, peer);
  if (!leaves) ck_assert_int_eq(receive(made.device, 50, &packet), LP_RECV_GONE);
  close_both(&made);
}

enum { SIZE = 24 << 20 };

static void *receive_large(void *user) {
  lp_channel *worker = user;
  lp_packet packet;
  ck_assert_int_eq(receive(worker, 100, &packet), LP_RECV_FRAME);
  ck_assert_uint_eq(packet.size, SIZE);
  return packet.handle; /* the frame, as release has it */
}

/* More than a socket holds, both ways, while small frames wait after it. */
LP_LOOP_TEST(large_frames, 0, WAYS) {
  both made = connect_both((way)_i);
  uint8_t *data = lp_alloc(SIZE);
  for (size_t i = 0; i < SIZE; i++)
    data[i] = (uint8_t)(i * 2654435761u >> 24);
  send_text(made.device, LP_ONLY_PEER, "hello");
  uint32_t peer = expect_text(made.worker, 100, "hello");
  const char *why = "";
  ck_assert(transport->send(made.worker, peer, data, 3, data + 3, SIZE - 3, &why));
  send_text(made.worker, peer, "behind it");
  usleep(20000);
  lp_packet packet;
  ck_assert_int_eq(receive(made.device, 100, &packet), LP_RECV_FRAME);
  ck_assert_uint_eq(packet.size, SIZE);
  ck_assert_mem_eq(packet.data, data, SIZE);
  transport->release(&packet);
  (void)expect_text(made.device, 100, "behind it");
  transport->permit(made.worker, peer, SIZE);
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, receive_large, made.worker), 0);
  ck_assert_msg(transport->send(made.device, LP_ONLY_PEER, data, 5, data + 5, SIZE - 5, &why), "%s", why);
  void *got = NULL;
  pthread_join(thread, &got);
  ck_assert_mem_eq(got, data, SIZE);
  free(got);
  free(data);
  close_both(&made);
}

/* ---- handshakes of TLS ------------------------------------------------------------------------------------------- */

/* A peer that begins a handshake and stops, or sends anything else, delays no other. */
LP_LOOP_TEST(others_shake_hands_meanwhile, 0, 2) {
  static const uint8_t begun[] = {22, 3, 1, 1, 0, 1}, garbage[] = "GET / HTTP/1.1\r\n\r\n";
  both made = {0};
  char address[128];
  secure(&made, (way)(1 + _i), NULL);
  listen_at(&made, address);
  int slow = toy_connect(address), wrong = toy_connect(address);
  ck_assert_int_eq(send(slow, begun, sizeof begun, 0), sizeof begun);
  ck_assert_int_eq(send(wrong, garbage, sizeof garbage, 0), sizeof garbage);
  lp_endpoint endpoint = endpoint_of(&made, address);
  ck_assert_int_eq(transport->dial(&endpoint, 2000, &made.device, NULL), LP_OK);
  send_text(made.device, LP_ONLY_PEER, "hello");
  for (int frames = 0, gone = 0; frames + gone < 2;) { /* in either order */
    lp_packet packet;
    lp_recv_outcome outcome = receive(made.worker, 50, &packet);
    ck_assert_int_eq(outcome, frames == 0 && outcome != LP_RECV_GONE ? LP_RECV_FRAME : LP_RECV_GONE);
    frames += outcome == LP_RECV_FRAME;
    gone += outcome == LP_RECV_GONE;
    if (outcome == LP_RECV_FRAME) transport->release(&packet);
    ck_assert(frames <= 1 && gone <= 1);
  }
  uint8_t last[64];
  ssize_t got = recv(wrong, last, sizeof last, 0), end = got > 0 ? recv(wrong, last, sizeof last, 0) : 0;
  ck_assert_msg(got <= 0 || end <= 0, "a stranger's connection is open"); /* an alert may come first */
  close(slow);
  close(wrong);
  close_both(&made);
}

/* A device gives up a silent worker, and one with an unknown certificate, and its message tells them apart. */
LP_LOOP_TEST(a_device_gives_up, 0, 2) {
  both made = {0};
  char address[128];
  secure(&made, CERTIFICATE, _i == 0 ? NULL : "elsewhere.test");
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int silent = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_ge(silent, 0);
  if (_i == 0) {
    ck_assert_int_eq(bind(silent, (struct sockaddr *)&at, size), 0);
    ck_assert_int_eq(listen(silent, 1), 0);
    ck_assert_int_eq(getsockname(silent, (struct sockaddr *)&at, &size), 0);
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
  } else {
    listen_at(&made, address);
  }
  lp_endpoint endpoint = endpoint_of(&made, address);
  lp_diag *diag = lp_diag_create();
  double begin = lp_now_ms();
  ck_assert_int_ne(transport->dial(&endpoint, 300, &made.device, diag), LP_OK);
  ck_assert_double_le(lp_now_ms() - begin, 5000); /* a listener waits 10 s for a handshake */
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const char *why = _i == 0 ? "no answer to TLS in time" : "hostname mismatch";
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->text, why) != NULL, "%s", lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
  close(silent);
  close_both(&made);
}

LP_TEST(a_key_that_does_not_fit) {
  char *certificate = copy_of("worker.crt"), *private_key = copy_of("other.key");
  lp_link_security files = {.cert_file = certificate, .cert_key_file = private_key};
  lp_security security;
  ck_assert_int_ne(lp_security_open(&files, LP_SIDE_CLOUD, true, &security, NULL), LP_OK);
  lp_security_close(&security);
  free(certificate);
  free(private_key);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

LP_LOOP_TEST(every_family, 0, 4 * WAYS) {
  char *path = lp_path_join(dir, "socket"), unix_address[128], text[64];
  snprintf(unix_address, sizeof unix_address, "unix:%s", path);
  const char *const where[] = {"127.0.0.1:0", "[::1]:0", "localhost:0", unix_address};
  struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int six = socket(AF_INET6, SOCK_STREAM, 0), family = _i / WAYS;
  bool left_out = family == 1 && (six < 0 || bind(six, (struct sockaddr *)&at, sizeof at) != 0); /* no IPv6 here */
  close(six);
  if (!left_out) {
    both made = connect_on(where[family], (way)(_i % WAYS));
    send_text(made.device, LP_ONLY_PEER, "question");
    uint32_t peer = expect_text(made.worker, 100, "question");
    transport->describe(made.worker, peer, text);
    const char *const wanted[] = {"127.0.0.1:", "[::1]:", ":", "a process of this machine"};
    ck_assert_msg(strstr(text, wanted[family]) != NULL, "%s", text);
    send_text(made.worker, peer, "answer");
    (void)expect_text(made.device, 100, "answer");
    close_both(&made);
  }
  free(path);
}

/* The file of a Unix socket is removed with its listener; a file of an ended process does not block a new listener, and
 * other files are not removed. */
LP_TEST(files_of_unix_sockets) {
  char *path = lp_path_join(dir, "socket"), address[128], ignored[128];
  int port = 0;
  struct stat info;
  snprintf(address, sizeof address, "unix:%s", path);
  both first = {0}, second = {0};
  listen_on(&first, address, ignored);
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0600);
  lp_diag *diag = lp_diag_create();
  ck_assert_int_ne(transport->listen(address, &second.security[LP_SIDE_CLOUD], &second.worker, &port, diag), LP_OK);
  ck_assert_msg(strstr(toy_error(diag), "in use") != NULL, "%s", toy_error(diag));
  close_both(&first);
  ck_assert_int_ne(stat(path, &info), 0);

  struct sockaddr_un at = {.sun_family = AF_UNIX};
  memcpy(at.sun_path, path, strlen(path));
  int left = socket(AF_UNIX, SOCK_STREAM, 0);
  ck_assert_int_ge(left, 0);
  ck_assert_int_eq(bind(left, (struct sockaddr *)&at, sizeof at), 0);
  close(left); /* as by a process that was killed */
  listen_on(&second, address, ignored);
  close_both(&second);
  ck_assert_int_ne(stat(path, &info), 0);

  ck_assert_int_eq(lp_file_write(path, "text", 4, NULL), LP_OK);
  both third = {0};
  ck_assert_int_ne(transport->listen(address, &third.security[LP_SIDE_CLOUD], &third.worker, &port, diag), LP_OK);
  ck_assert_int_eq(stat(path, &info), 0);
  lp_diag_free(diag);
  free(path);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static void *end_idleness(void *user) {
  sleep(2);
  send_text(user, LP_ONLY_PEER, "at last");
  return NULL;
}

/* The most wakes and CPU time in two seconds. A thread that polls every 20 ms wakes up 100 times; a busy machine and
 * ThreadSanitizer's own thread cause some wakes too. */
#ifdef __SANITIZE_THREAD__
enum { MOST_WAKES = 200, MOST_CPU_US = 200000 };
#else
enum { MOST_WAKES = 60, MOST_CPU_US = 200000 };
#endif

/* While nothing comes neither thread of a listener wakes up. */
LP_LOOP_TEST(an_idle_listener_sleeps, 0, WAYS) {
  both made = connect_both((way)_i);
  struct rusage before, after;
  pthread_t thread;
  send_text(made.device, LP_ONLY_PEER, "hello");
  transport->permit(made.worker, expect_text(made.worker, 100, "hello"), 1000);
  ck_assert_int_eq(pthread_create(&thread, NULL, end_idleness, made.device), 0);
  ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
  (void)expect_text(made.worker, INFINITY, "at last");
  ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
  pthread_join(thread, NULL);
  ck_assert_int_le(after.ru_nvcsw - before.ru_nvcsw, MOST_WAKES);
  ck_assert_int_le((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec -
                       before.ru_utime.tv_usec,
                   MOST_CPU_US);
  close_both(&made);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static char *secret(const char *name, const char *text) {
  char *path = lp_path_join(dir, name);
  ck_assert_int_eq(lp_file_write(path, text, strlen(text), NULL), LP_OK);
  ck_assert_int_eq(chmod(path, 0600), 0);
  return path;
}

/* The number that a worker gives to the client with these files; 0 also if it cannot connect. */
static uint64_t number_of(lp_channel *worker, const char *address, const lp_link_security *files) {
  lp_security security;
  lp_channel *device = NULL;
  uint64_t number = 0;
  ck_assert_int_eq(lp_security_open(files, LP_SIDE_DEVICE, true, &security, NULL), LP_OK);
  lp_endpoint endpoint = {.address = address, .security = &security, .patience = {1000, 1, 1, 100, 10000, 100}};
  if (transport->dial(&endpoint, 20000, &device, NULL) == LP_OK) {
    send_text(device, LP_ONLY_PEER, "hello");
    uint64_t host;
    lp_packet packet;
    while (receive(worker, 20000, &packet) == LP_RECV_GONE) /* earlier ones */
      ;
    ck_assert_ptr_nonnull(packet.data);
    number = transport->identify(worker, packet.peer, &host);
    transport->release(&packet);
    ck_assert(host != 0 && transport->identify(worker, 1000, &host) == 0 && host == 0); /* no such peer */
    transport->close(device);
  }
  lp_security_close(&security);
  return number;
}

#define FIRST "first-0123456789abcdef"
#define SECOND "second-0123456789abcdef"

/* A worker with several keys knows its clients by them, each on any number of connections. */
LP_TEST(keys_tell_clients_apart) {
  both made = {0};
  char address[128], *keys = secret("keys", FIRST "\r\n" SECOND "\n"),
                     *third = secret("third", "third-0123456789abcdef");
  char *key[] = {secret("first", FIRST), secret("second", SECOND "\n")};
  lp_link_security files = {.key_file = keys};
  ck_assert_int_eq(lp_security_open(&files, LP_SIDE_CLOUD, true, &made.security[LP_SIDE_CLOUD], NULL), LP_OK);
  listen_on(&made, "127.0.0.1:0", address);
  uint64_t number[2];
  for (int i = 0; i < 2; i++) {
    number[i] = number_of(made.worker, address, &(lp_link_security){.key_file = key[i]});
    ck_assert_uint_ne(number[i], 0);
    ck_assert_uint_eq(number[i], number_of(made.worker, address, &(lp_link_security){.key_file = key[i]}));
  }
  ck_assert_uint_ne(number[0], number[1]);
  ck_assert_uint_eq(number_of(made.worker, address, &(lp_link_security){.key_file = third}), 0); /* refused */
  transport->close(made.worker);
  lp_security_close(&made.security[LP_SIDE_CLOUD]);
  lp_security device;
  ck_assert_int_eq(lp_security_open(&files, LP_SIDE_DEVICE, true, &device, NULL), LP_FAILED); /* it holds one key */
  lp_security_close(&device);
  free(keys);
  free(third);
  free(key[0]);
  free(key[1]);
}

/* Bytes of any value are one key, line feeds among them. */
LP_TEST(a_key_of_any_bytes_is_one) {
  char *files[] = {secret("bytes", "0123456789\nabcdef 0123456789abcdef"), secret("short", FIRST "\n0123456789"),
                   secret("space", FIRST "\n0123456789 abcdef")};
  for (size_t i = 0; i < LP_COUNT(files); i++) {
    lp_security security;
    lp_link_security from = {.key_file = files[i]};
    ck_assert_int_eq(lp_security_open(&from, LP_SIDE_DEVICE, true, &security, NULL), LP_OK);
    ck_assert_uint_eq(security.key_count, 1);
    lp_security_close(&security);
    free(files[i]);
  }
}

/* All devices hold a worker's only key, and those without a certificate are told apart by nothing. */
LP_LOOP_TEST(others_have_no_number, 0, WAYS) {
  both made = connect_both((way)_i);
  send_text(made.device, LP_ONLY_PEER, "hello");
  ck_assert_uint_eq(transport->identify(made.worker, expect_text(made.worker, 20000, "hello"), &(uint64_t){0}), 0);
  close_both(&made);
}

/* A peer that is not permitted in time is disconnected, whether it is silent, begins a handshake, or sends only signs
 * of life. */
LP_TEST(strangers_meet_a_deadline) {
  static const uint8_t begun[] = {22, 3, 1, 1, 0, 1}, beat[8] = {0};
  both made[CERTIFICATE + 1] = {{0}};
  int silent[CERTIFICATE + 1], talks[CERTIFICATE + 1];
  double begin = lp_now_ms();
  for (int i = PLAIN; i <= CERTIFICATE; i++) {
    char address[128];
    secure(&made[i], (way)i, NULL);
    listen_at(&made[i], address);
    silent[i] = toy_connect(address);
    talks[i] = toy_connect(address);
    ck_assert_int_gt(send(talks[i], i == PLAIN ? beat : begun, 6, MSG_NOSIGNAL), 0);
  }
  for (int i = PLAIN; i <= CERTIFICATE; i++) {
    for (int gone = 0; gone < 2;) {
      lp_packet packet;
      const char *why = "";
      ck_assert_double_le(lp_now_ms() - begin, 40000);
      gone += transport->receive(made[i].worker, 15000, &packet, &why) == LP_RECV_GONE;
    }
    ck_assert_double_ge(lp_now_ms() - begin, 9000);
    close(silent[i]);
    close(talks[i]);
    close_both(&made[i]);
  }
}
