/* Sockets whose descriptors the caller holds: TCP over IPv4 and IPv6, and Unix sockets. All are non-blocking. Private
 * to the folder. */
#ifndef LP_LINK_SOCKET_H
#define LP_LINK_SOCKET_H

#include "base/base.h"

/* Connects within the time. -1: `why` says what went wrong. */
int lp_socket_connect(const char *address, double timeout_ms, const char **why);

typedef struct {
  int fd, port;     /* port 0: a Unix socket */
  char *path;       /* of a Unix socket; NULL: TCP */
  uint64_t file[2]; /* its device and inode, to remove only what this listener made */
} lp_socket_listener;
/* Takes the place of a Unix socket whose owner has gone. False: `why` says what went wrong. */
bool lp_socket_listen(const char *address, lp_socket_listener *out, const char **why);
/* Removes the Unix socket's file too. */
void lp_socket_listener_close(lp_socket_listener *listener);
int lp_socket_accept(const lp_socket_listener *listener); /* -1: errno says why */
/* Waits for the events of poll(); INFINITY waits for ever. Returns those that came, 0 when the time is over or a signal
 * came. */
short lp_socket_wait(int fd, short events, double timeout_ms);
int lp_socket_milliseconds(double ms); /* a time-out for poll() and epoll_wait(), rounded up */

/* Looking for bytes before sleeping: to be woken takes 20 us and more, an answer on the same machine may take 10. It
 * pays while waits are brief and other cores can work meanwhile. */
typedef struct {
  bool pays;  /* there are other cores */
  bool brief; /* the last wait was */
} lp_spin;
/* Looks until `arrived` is true, for a fraction of a millisecond at most. False: nothing arrived, or looking does not
 * pay. */
bool lp_spin_until(const lp_spin *spin, double timeout_ms, bool (*arrived)(void *user), void *user);
void lp_spin_note(lp_spin *spin, double waited_ms);

#endif
