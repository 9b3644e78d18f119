/* Addresses, how long a wait for sockets polls, and bytes that come damaged. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/link/address.h"
#include "runtime/link/conn.h"
#include "runtime/link/socket.h"
#include "tests/suite.h"

LP_TEST(what_an_address_is) {
  char *host = NULL;
  int port = 0;
  ck_assert_int_eq(lp_address_split("unix:/run/a:b", &host, &port, NULL), LP_OK);
  ck_assert_str_eq(host, "unix:/run/a:b");
  ck_assert_int_eq(port, 0);
  ck_assert(lp_address_is_loopback(host));
  free(host);
  ck_assert_int_ne(lp_address_split("unix:", &host, &port, NULL), LP_OK);
  char text[200] = "unix:/";
  memset(text + 6, 'x', 150);
  ck_assert_int_ne(lp_address_split(text, &host, &port, NULL), LP_OK);
  ck_assert_int_ne(lp_address_split("/run/socket:1", &host, &port, NULL), LP_OK);
}

/* A wait polls after one that was brief, and for a moment at most; a longer wait ends the polling. */
LP_TEST(when_polling_pays) {
  struct epoll_event event = {.events = EPOLLIN};
  int epoll = epoll_create1(EPOLL_CLOEXEC), ready = eventfd(1, EFD_CLOEXEC);
  bool brief = true;
  ck_assert_int_ge(epoll, 0);
  double begin = lp_suite_cpu_ms();
  ck_assert_int_eq(lp_socket_poll(epoll, &event, 1, 200, &brief), 0);
  ck_assert(!brief);
  ck_assert_int_eq(lp_socket_poll(epoll, &event, 1, 200, NULL), 0);
  ck_assert_double_le(lp_suite_cpu_ms() - begin, 90);
  ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, ready, &event), 0);
  ck_assert_int_eq(lp_socket_poll(epoll, &event, 1, 0, &brief), 1);
  ck_assert(!brief); /* nothing was waited for */
  for (int i = 0; i < 1000 && !brief; i++)
    ck_assert_int_eq(lp_socket_poll(epoll, &event, 1, 200, &brief), 1);
  ck_assert(brief);
  ck_assert_int_eq(lp_socket_poll(epoll, &event, 1, 200, &brief), 1);
  close(epoll);
  close(ready);
}

/* The bytes of a frame and those of a sign of life, as they go over the socket. */
static size_t sent_bytes(uint8_t *out, size_t most) {
  int ends[2];
  lp_conn conn;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  ck_assert(lp_conn_open(&conn, ends[0], NULL, true));
  ck_assert(lp_conn_send(&conn, "head ", 5, "and body", 8, 0));
  ck_assert(lp_conn_send(&conn, NULL, 0, NULL, 0, 0));
  ssize_t got = recv(ends[1], out, most, 0);
  ck_assert_int_eq(got, 2 * LP_FRAME_HEAD + 13);
  lp_conn_close(&conn, "end");
  close(ends[1]);
  return (size_t)got;
}

/* Gives the bytes to a connection, and returns how it ends; `frames` counts the frames that it takes. */
static bool takes_bytes(const uint8_t *bytes, size_t size, int *frames) {
  int ends[2];
  lp_conn conn;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  ck_assert(lp_conn_open(&conn, ends[0], NULL, true));
  conn.most = 1 << 20;
  ck_assert_int_eq(send(ends[1], bytes, size, 0), (ssize_t)size);
  close(ends[1]);
  lp_conn_progress progress;
  for (*frames = 0; (progress = lp_conn_read(&conn, true)) == LP_CONN_FRAME; ++*frames) {
    size_t got = 0;
    uint8_t *frame = lp_conn_take(&conn, &got);
    ck_assert_uint_eq(got, 13);
    ck_assert_mem_eq(frame, "head and body", 13);
    free(frame);
  }
  bool whole = progress == LP_CONN_BROKEN && strstr(conn.why, "closed") && conn.asked;
  lp_conn_close(&conn, "end");
  lp_conn_release(&conn);
  return whole;
}

/* Whatever bit flips on the way, nothing is taken for a frame that was not sent. */
LP_TEST(damaged_bytes) {
  uint8_t bytes[64];
  const size_t size = sent_bytes(bytes, sizeof bytes);
  int frames = 0;
  ck_assert(takes_bytes(bytes, size, &frames));
  ck_assert_int_eq(frames, 1);
  for (size_t bit = 0; bit < 8 * size; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    ck_assert_msg(!takes_bytes(bytes, size, &frames), "bit %zu", bit);
    ck_assert_int_eq(frames, bit / 8 < LP_FRAME_HEAD + 13 ? 0 : 1);
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
}

/* A peer that announces 3 GiB gets memory only for the bytes that it sends. */
LP_TEST(memory_follows_bytes) {
  static const uint8_t length[LP_FRAME_HEAD] = {0, 0, 0, 192};
  uint8_t *piece = lp_alloc(1 << 20);
  memset(piece, 7, 1 << 20);
  int ends[2];
  lp_conn conn;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  ck_assert(lp_conn_open(&conn, ends[0], NULL, true));
  conn.most = UINT64_C(1) << 32;
  ck_assert_int_eq(send(ends[1], length, sizeof length, 0), sizeof length);
  ck_assert_int_eq(lp_conn_read(&conn, true), LP_CONN_MORE);
  ck_assert_uint_eq(conn.size, 3u << 30);
  ck_assert_uint_le(conn.room, 1 << 20);
  for (size_t sent = 0; sent < 5u << 20;) {
    ssize_t some = send(ends[1], piece, 1 << 20, 0);
    if (some > 0) sent += (size_t)some;
    ck_assert_int_eq(lp_conn_read(&conn, true), LP_CONN_MORE);
    ck_assert_uint_gt(conn.room, conn.have);
    ck_assert_uint_le(conn.room, 2 * conn.have + (1 << 20));
  }
  for (size_t i = 0; i < conn.have; i++)
    ck_assert_uint_eq(conn.frame[i], 7);
  lp_conn_close(&conn, "end");
  lp_conn_release(&conn);
  close(ends[1]);
  free(piece);
}
