/* Addresses, and how long a wait for sockets polls. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/link/address.h"
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
