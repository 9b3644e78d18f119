/* Opening, waiting for and looking at non-blocking sockets: TCP over IPv4 and IPv6, and Unix sockets. Private to the
 * folder. */
#ifndef LP_LINK_SOCKET_H
#define LP_LINK_SOCKET_H

#include <sys/socket.h>

#include "base/base.h"

/* A socket address that an address stands for. */
typedef struct {
  struct sockaddr_storage at;
  socklen_t size;
} lp_sockaddr;

/* Looks up the socket addresses to connect to, or to listen on ("*" is every interface). Returns how many it stored, at
 * most `most`; for 0, `why` says what went wrong. Looking up a name may block for as long as the system's resolver
 * takes. */
size_t lp_address_resolve(const char *address, bool listens, lp_sockaddr *out, size_t most, const char **why);
/* "10.0.0.7:51234", "[::1]:51234", or "a process of this machine" for a Unix socket. */
void lp_sockaddr_print(const lp_sockaddr *from, char out[64]);
/* Have both the same IP address? Unix sockets have. */
bool lp_sockaddr_same_host(const lp_sockaddr *a, const lp_sockaddr *b);

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
/* Takes a connection that waits, from `from`; -1: errno says why. */
int lp_socket_accept(const lp_socket_listener *listener, lp_sockaddr *from);
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
