/* Frames over TCP between two channels of one process: who receives them may change while they come, their content and order may not. */
#include <check.h>
#include <nng/transport/tcp/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/link/link_security.h"
#include "runtime/link/tcp_look.h"
#include "tests/suite.h"

static const lp_transport *const tcp = &lp_transport_tcp;
static const lp_security none;

typedef struct {
  lp_channel *worker, *device;
} both;

static both connect_both(void) {
  both made = {0};
  int port = 0;
  ck_assert_int_eq(tcp->listen("127.0.0.1:0", &none, &made.worker, &port, NULL), LP_OK);
  char address[32];
  snprintf(address, sizeof(address), "127.0.0.1:%d", port);
  lp_endpoint endpoint = {.address = address,
                          .security = &none,
                          .patience = {.dial_ms = 2000, .beat_ms = 50, .silence_ms = 1500, .repeat_ms = 100}};
  ck_assert_int_eq(tcp->dial(&endpoint, 2000, &made.device, NULL), LP_OK);
  return made;
}

static void close_both(both *made) {
  tcp->close(made->device);
  tcp->close(made->worker);
}

static void send_text(lp_channel *channel, uint32_t peer, const char *text) {
  const char *why = "";
  ck_assert_msg(tcp->send(channel, peer, text, 2, text + 2, strlen(text + 2), &why), "%s", why);
}

/* Waits for the next frame, or for another outcome, for two seconds. */
static lp_recv_outcome receive(lp_channel *channel, double step_ms, lp_packet *out) {
  const char *why = "";
  double until = lp_now_ms() + 2000;
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
START_TEST(turns_quick_and_slow) {
  both made = connect_both();
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
END_TEST

static void *answer_late(void *user) {
  lp_channel *worker = user;
  uint32_t peer = expect_text(worker, 100, "question");
  sleep(2);
  send_text(worker, peer, "answer");
  return NULL;
}

/* The worker took a frame and does not come back for longer than the device's silence allows: it gives signs of life all the same. */
START_TEST(signs_of_life_while_the_worker_computes) {
  both made = connect_both();
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
END_TEST

/* A device that has gone, and one that the worker sends away, are told of, whether anybody was receiving from them or not. */
START_TEST(who_has_gone_is_told_of) {
  both made = connect_both();
  send_text(made.device, LP_ONLY_PEER, "hello");
  uint32_t peer = expect_text(made.worker, 100, "hello");
  if (_i % 2 == 1) { /* somebody asks */
    lp_packet packet;
    const char *why = "";
    ck_assert_int_eq(tcp->receive(made.worker, 20, &packet, &why), LP_RECV_TIMEOUT);
  }
  if (_i < 2) {
    tcp->close(made.device);
    made.device = NULL;
  } else {
    tcp->drop(made.worker, peer);
  }
  lp_packet packet;
  ck_assert_int_eq(receive(made.worker, 50, &packet), LP_RECV_GONE);
  ck_assert_uint_eq(packet.peer, peer);
  if (_i >= 2) ck_assert_int_eq(receive(made.device, 50, &packet), LP_RECV_GONE);
  close_both(&made);
}
END_TEST

/* More than a socket holds, both ways, while small frames wait behind it. */
START_TEST(large_frames) {
  both made = connect_both();
  enum { SIZE = 24 << 20 };
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
  free(data);
  close_both(&made);
}
END_TEST

/* ---- looking at a stream's socket ------------------------------------------------------------------------------------------ */

static nng_stream *finish(nng_aio *aio) {
  nng_aio_wait(aio);
  ck_assert_int_eq(nng_aio_result(aio), 0);
  return nng_aio_get_output(aio, 0);
}

START_TEST(the_socket_under_a_stream) {
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
END_TEST

static bool count_looks(void *user) {
  return ++*(int *)user == 5;
}

/* Who waited long last time does not look; nobody looks for long. */
START_TEST(when_looking_pays) {
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
END_TEST

int main(void) {
  Suite *suite = suite_create("transport");
  TCase *core = tcase_create("core");
  tcase_set_timeout(core, 60);
  tcase_add_test(core, turns_quick_and_slow);
  tcase_add_test(core, signs_of_life_while_the_worker_computes);
  tcase_add_loop_test(core, who_has_gone_is_told_of, 0, 4);
  tcase_add_test(core, large_frames);
  tcase_add_loop_test(core, the_socket_under_a_stream, 0, 2);
  tcase_add_test(core, when_looking_pays);
  suite_add_tcase(suite, core);
  return run_suite(suite);
}
