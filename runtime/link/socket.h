/* Opens non-blocking sockets and waits for them: TCP over IPv4 and IPv6, and Unix sockets. Private to the folder. */
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/base.h"

/* One socket address of a host. */
typedef struct {
  struct sockaddr_storage at;
  socklen_t size;
} lp_sockaddr;

/* Looks up the socket addresses to connect to, or to listen on ("*" is every interface). Returns the number stored, at
 * most `most`; after 0, `why` gives the reason. Looking up a name blocks until the system's resolver answers. */
size_t lp_address_resolve(const char *address, bool listens, lp_sockaddr *out, size_t most, const char **why);
/* "10.0.0.7:51234", "[::1]:51234", or "a process of this machine" for a Unix socket. */
void lp_sockaddr_print(const lp_sockaddr *from, char out[64]);

/* Connects within the time. -1: it failed, and `why` gives the reason. */
int lp_socket_connect(const char *address, double timeout_ms, const char **why);

typedef struct {
  int fd, port;     /* port 0: a Unix socket */
  char *path;       /* path of a Unix socket; NULL: TCP */
  uint64_t file[2]; /* device and inode of that file, so that only the listener's own file is removed */
} lp_socket_listener;
/* Listens on an address. Replaces the file of a Unix socket if its process has ended. False: it failed, and `why` gives
 * the reason. */
bool lp_socket_listen(const char *address, lp_socket_listener *out, const char **why);
/* Closes the socket, and removes a Unix socket's file. */
void lp_socket_listener_close(lp_socket_listener *listener);
/* Accepts a waiting connection, and sets `from` to its address; -1: none, for the reason in errno. */
int lp_socket_accept(const lp_socket_listener *listener, lp_sockaddr *from);
/* Waits for events of poll(); INFINITY waits without limit. Returns the events that came; 0: the time is over or a
 * signal came. */
short lp_socket_wait(int fd, short events, double timeout_ms);
int lp_socket_milliseconds(double ms); /* the time as a time-out for poll() and epoll_wait(), rounded up */

/* Waits for events of an epoll set, as epoll_wait() does. If `brief` is given and the last wait was brief, it polls
 * before it sleeps, for a fraction of a millisecond at most, and yields the core to threads that want it, such as the
 * peer's: waking a thread takes 20 us or more, while an answer on the same machine may take 10. Notes in `brief`
 * whether this wait was. Polling pays only while other cores are free; NULL: it does not pay. */
int lp_socket_poll(int epoll, struct epoll_event *event, int most, double timeout_ms, bool *brief);
