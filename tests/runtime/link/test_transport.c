/* Frames over TCP, plain and in TLS, between two channels of one process: who receives them may change while they come, their content and order
 * may not. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <nng/transport/tcp/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/side.h"
#include "runtime/link/link.h"
#include "runtime/link/link_security.h"
#include "runtime/link/tcp_look.h"
#include "runtime/link/tls.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static const lp_transport *const tcp = &lp_transport_tcp;
typedef struct {
  lp_channel *worker, *device;
  lp_security security[LP_SIDE_COUNT];
} both;

static char *text_of(const char *name) {
  char *path = lp_path_join(LP_TEST_DIR "/tls", name), *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_read(path, &text, &size, NULL), LP_OK);
  free(path);
  return text;
}

static void use_tls(both *made) {
  char *certificate = text_of("worker.crt"), *key = text_of("worker.key");
  lp_tls_config *worker = lp_tls_config_create(true), *device = lp_tls_config_create(false);
  ck_assert_int_eq(lp_tls_config_own(worker, certificate, key), 0);
  ck_assert_int_eq(lp_tls_config_trust(device, certificate), 0);
  made->security[LP_SIDE_CLOUD].tls = worker;
  made->security[LP_SIDE_DEVICE].tls = device;
  free(certificate);
  free(key);
}

static void listen_at(both *made, char address[32]) {
  int port = 0;
  ck_assert_int_eq(tcp->listen("127.0.0.1:0", &made->security[LP_SIDE_CLOUD], &made->worker, &port, NULL), LP_OK);
  snprintf(address, 32, "127.0.0.1:%d", port);
}

static lp_endpoint endpoint_of(const both *made, const char *address) {
  return (lp_endpoint){.address = address,
                       .security = &made->security[LP_SIDE_DEVICE],
                       .patience = {.dial_ms = 2000, .beat_ms = 50, .silence_ms = 1500, .repeat_ms = 100}};
}

static both connect_both(bool with_tls) {
  both made = {0};
  char address[32];
  if (with_tls) use_tls(&made);
  listen_at(&made, address);
  lp_endpoint endpoint = endpoint_of(&made, address);
  ck_assert_int_eq(tcp->dial(&endpoint, 2000, &made.device, NULL), LP_OK);
  return made;
}

static void close_both(both *made) {
  tcp->close(made->device);
  tcp->close(made->worker);
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    lp_security_close(&made->security[i]);
}

static void send_text(lp_channel *channel, uint32_t peer, const char *text) {
  const char *why = "";
  ck_assert_msg(tcp->send(channel, peer, text, 2, text + 2, strlen(text + 2), &why), "%s", why);
}

/* Waits for the next frame, or for another outcome, for ten seconds. */
static lp_recv_outcome receive(lp_channel *channel, double step_ms, lp_packet *out) {
  const char *why = "";
  double until = lp_now_ms() + 10000;
  lp_recv_outcome outcome = LP_RECV_TIMEOUT;
  while (outcome == LP_RECV_TIMEOUT && lp_now_ms() < until)
    outcome = tcp->receive(channel, step_ms, out, &why);
  return outcome;
}

static uint32_t expect_text(lp_channel *channel, double step_ms, const char *text) {
  lp_packet packet;
  ck_assert_int_eq(receive(channel, step_ms, &packet), LP_RECV_FRAME);
  ck_assert_uint_eq(packet.size, strlen(text));
  ck_assert_mem_eq(packet.data, text, packet.size);
  uint32_t peer = packet.peer;
  tcp->release(&packet);
  return peer;
}

/* Quick turns, which are looked for, and slow ones, which are slept for; the worker looks without waiting in between, as it does when a pass is due. */
LP_LOOP_TEST(turns_quick_and_slow, 0, 2) {
  both made = connect_both(_i == 1);
  for (int i = 0; i < 200; i++) {
    char text[32];
    snprintf(text, sizeof(text), "turn %d", i);
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

/* The worker took a frame and does not come back for longer than the device's silence allows: it gives signs of life all the same. */
LP_LOOP_TEST(signs_of_life_while_the_worker_computes, 0, 2) {
  both made = connect_both(_i == 1);
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, answer_late, made.worker), 0);
  send_text(made.device, LP_ONLY_PEER, "question");
  double begin = lp_now_ms();
  const char *why = "";
  lp_packet packet;
  ck_assert_msg(tcp->receive(made.device, 10000, &packet, &why) == LP_RECV_FRAME, "%s", why);
  ck_assert_double_ge(lp_now_ms() - begin, 1900);
  tcp->release(&packet);
  pthread_join(thread, NULL);
  close_both(&made);
}

/* A device that has gone, and one that the worker sends away, are told of, whether anybody was receiving from them or not. */
LP_LOOP_TEST(who_has_gone_is_told_of, 0, 8) {
  both made = connect_both(_i >= 4);
  bool asks = _i % 2 == 1, leaves = _i % 4 < 2;
  send_text(made.device, LP_ONLY_PEER, "hello");
  uint32_t peer = expect_text(made.worker, 100, "hello");
  if (asks) {
    lp_packet packet;
    const char *why = "";
    ck_assert_int_eq(tcp->receive(made.worker, 20, &packet, &why), LP_RECV_TIMEOUT);
  }
  if (leaves) {
    tcp->close(made.device);
    made.device = NULL;
  } else {
    tcp->drop(made.worker, peer);
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
  return packet.handle; /* the frame, as tcp_release has it */
}

/* More than a socket holds, both ways, while small frames wait behind it. */
LP_LOOP_TEST(large_frames, 0, 2) {
  both made = connect_both(_i == 1);
  uint8_t *data = lp_alloc(SIZE);
  for (size_t i = 0; i < SIZE; i++)
    data[i] = (uint8_t)(i * 2654435761u >> 24);
  send_text(made.device, LP_ONLY_PEER, "hello");
  uint32_t peer = expect_text(made.worker, 100, "hello");
  const char *why = "";
  ck_assert(tcp->send(made.worker, peer, data, 3, data + 3, SIZE - 3, &why));
  send_text(made.worker, peer, "behind it");
  usleep(20000);
  lp_packet packet;
  ck_assert_int_eq(receive(made.device, 100, &packet), LP_RECV_FRAME);
  ck_assert_uint_eq(packet.size, SIZE);
  ck_assert_mem_eq(packet.data, data, SIZE);
  tcp->release(&packet);
  (void)expect_text(made.device, 100, "behind it");
  tcp->permit(made.worker, peer, SIZE);
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, receive_large, made.worker), 0);
  ck_assert_msg(tcp->send(made.device, LP_ONLY_PEER, data, 5, data + 5, SIZE - 5, &why), "%s", why);
  void *got = NULL;
  pthread_join(thread, &got);
  ck_assert_mem_eq(got, data, SIZE);
  free(got);
  free(data);
  close_both(&made);
}

/* ---- handshakes of TLS ----------------------------------------------------------------------------------------------------- */

/* Who begins a handshake and does not go on with it, or sends anything else, holds nobody up. */
LP_TEST(others_shake_hands_meanwhile) {
  static const uint8_t begun[] = {22, 3, 1, 1, 0, 1}, garbage[] = "GET / HTTP/1.1\r\n\r\n";
  both made = {0};
  char address[32];
  use_tls(&made);
  listen_at(&made, address);
  int slow = toy_connect(address), wrong = toy_connect(address);
  ck_assert_int_eq(send(slow, begun, sizeof(begun), 0), sizeof(begun));
  ck_assert_int_eq(send(wrong, garbage, sizeof(garbage), 0), sizeof(garbage));
  lp_endpoint endpoint = endpoint_of(&made, address);
  ck_assert_int_eq(tcp->dial(&endpoint, 2000, &made.device, NULL), LP_OK);
  send_text(made.device, LP_ONLY_PEER, "hello");
  for (int frames = 0, gone = 0; frames + gone < 2;) { /* in either order */
    lp_packet packet;
    lp_recv_outcome outcome = receive(made.worker, 50, &packet);
    ck_assert_int_eq(outcome, frames == 0 && outcome != LP_RECV_GONE ? LP_RECV_FRAME : LP_RECV_GONE);
    frames += outcome == LP_RECV_FRAME;
    gone += outcome == LP_RECV_GONE;
    if (outcome == LP_RECV_FRAME) tcp->release(&packet);
    ck_assert(frames <= 1 && gone <= 1);
  }
  uint8_t last[64];
  ssize_t got = recv(wrong, last, sizeof(last), 0), end = got > 0 ? recv(wrong, last, sizeof(last), 0) : 0;
  ck_assert_msg(got <= 0 || end <= 0, "a stranger's connection is open"); /* an alert may come first */
  close(slow);
  close(wrong);
  close_both(&made);
}

/* A device gives up a worker that says nothing, and one whose certificate it does not know, and says which. */
LP_LOOP_TEST(a_device_gives_up, 0, 2) {
  both made = {0};
  char address[32];
  use_tls(&made);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(at);
  int silent = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_ge(silent, 0);
  if (_i == 0) {
    ck_assert_int_eq(bind(silent, (struct sockaddr *)&at, size), 0);
    ck_assert_int_eq(listen(silent, 1), 0);
    ck_assert_int_eq(getsockname(silent, (struct sockaddr *)&at, &size), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(at.sin_port));
  } else {
    listen_at(&made, address);
    lp_tls_config_name(made.security[LP_SIDE_DEVICE].tls, "elsewhere.test");
  }
  lp_endpoint endpoint = endpoint_of(&made, address);
  lp_diag *diag = lp_diag_create();
  double begin = lp_now_ms();
  ck_assert_int_ne(tcp->dial(&endpoint, 300, &made.device, diag), LP_OK);
  ck_assert_double_le(lp_now_ms() - begin, 1500);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const char *why = _i == 0 ? "no answer to TLS in time" : "does not match with the expected CN";
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->text, why) != NULL, "%s", lp_diag_get(diag, 0)->text);
  ck_assert_uint_eq(lp_diag_count(diag),
                    _i == 0 ? 2 : 1); /* what the worker may want is not said of a worker that is not wanted */
  lp_diag_free(diag);
  close(silent);
  close_both(&made);
}

LP_TEST(a_key_that_does_not_fit) {
  char *certificate = text_of("worker.crt"), *key = text_of("other.key");
  lp_tls_config *worker = lp_tls_config_create(true);
  ck_assert_int_ne(lp_tls_config_own(worker, certificate, key), 0);
  lp_tls_config_free(worker);
  free(certificate);
  free(key);
}

/* ---- looking at a stream's socket ------------------------------------------------------------------------------------------ */

static nng_stream *finish(nng_aio *aio) {
  nng_aio_wait(aio);
  ck_assert_int_eq(nng_aio_result(aio), 0);
  return nng_aio_get_output(aio, 0);
}

LP_LOOP_TEST(the_socket_under_a_stream, 0, 2) {
  nng_stream_listener *listener;
  nng_stream_dialer *dialer;
  nng_aio *accept, *dial;
  int port = 0;
  ck_assert_int_eq(nng_stream_listener_alloc(&listener, _i == 0 ? "tcp://127.0.0.1:0" : "tcp://[::1]:0"), 0);
  if (nng_stream_listener_listen(listener) != 0) {
    nng_stream_listener_free(listener);
    return; /* a machine without IPv6 */
  }
  ck_assert_int_eq(nng_stream_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), 0);
  char url[64];
  snprintf(url, sizeof(url), _i == 0 ? "tcp://127.0.0.1:%d" : "tcp://[::1]:%d", port);
  ck_assert_int_eq(nng_stream_dialer_alloc(&dialer, url), 0);
  ck_assert_int_eq(nng_aio_alloc(&accept, NULL, NULL), 0);
  ck_assert_int_eq(nng_aio_alloc(&dial, NULL, NULL), 0);
  nng_stream_listener_accept(listener, accept);
  nng_stream_dialer_dial(dialer, dial);
  nng_stream *there = finish(accept), *here = finish(dial);
  int socket = lp_tcp_socket_of(here), other = lp_tcp_socket_of(there);
  ck_assert_int_ge(socket, 0);
  ck_assert_int_ge(other, 0);
  ck_assert(!lp_tcp_is_readable(socket, 0));
  nng_iov iov = {&port, sizeof(port)};
  nng_aio_set_iov(accept, 1, &iov);
  nng_stream_send(there, accept);
  (void)finish(accept);
  ck_assert(lp_tcp_is_readable(socket, 1000));
  ck_assert(!lp_tcp_is_readable(other, 0));
  close(socket);
  close(other);
  nng_stream_free(here);
  nng_stream_free(there);
  nng_aio_free(accept);
  nng_aio_free(dial);
  nng_stream_dialer_free(dialer);
  nng_stream_listener_free(listener);
}

static bool count_looks(void *user) {
  return ++*(int *)user == 5;
}

/* Who waited long last time does not look; nobody looks for long. */
LP_TEST(when_looking_pays) {
  lp_tcp_gaze gaze = {.pays = true};
  int looks = 0;
  ck_assert(!lp_tcp_gaze_at(&gaze, 100, count_looks, &looks) && looks == 0);
  lp_tcp_gaze_note(&gaze, 0.05);
  ck_assert(lp_tcp_gaze_at(&gaze, 100, count_looks, &looks) && looks == 5);
  double begin = lp_now_ms();
  ck_assert(!lp_tcp_gaze_at(&gaze, 100, count_looks, &looks) && looks > 5);
  ck_assert_double_le(lp_now_ms() - begin, 90);
  lp_tcp_gaze_note(&gaze, 5);
  looks = 0;
  ck_assert(!lp_tcp_gaze_at(&gaze, 100, count_looks, &looks) && looks == 0);
  gaze = (lp_tcp_gaze){.brief = true}; /* a single core */
  ck_assert(!lp_tcp_gaze_at(&gaze, 100, count_looks, &looks) && looks == 0);
}
