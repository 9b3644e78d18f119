/* Opening, waiting for and looking at sockets (socket.h). */
#include "runtime/link/socket.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/link/address.h"

enum { MOST_ADDRESSES = 8, BACKLOG = 128 };
static const double brief_ms = 0.3; /* a shorter wait counts as brief; a thread polls for no longer than this */

int lp_socket_milliseconds(double ms) {
  return ms <= 0 ? 0 : ms < INT32_MAX ? (int)ceil(ms) : isinf(ms) ? -1 : INT32_MAX;
}

short lp_socket_wait(int fd, short events, double timeout_ms) {
  struct pollfd look = {.fd = fd, .events = events};
  return poll(&look, 1, lp_socket_milliseconds(timeout_ms)) > 0 ? look.revents : 0;
}

int lp_socket_poll(int epoll, struct epoll_event *event, int most, double timeout_ms, bool *brief) {
  double begin = lp_now_ms(), polls_ms = brief && *brief ? fmin(timeout_ms, brief_ms) : 0;
  int count = 0;
  while (count == 0 && lp_now_ms() - begin < polls_ms) {
    count = epoll_wait(epoll, event, most, 0);
    if (count == 0) (void)sched_yield();
  }
  if (count == 0) count = epoll_wait(epoll, event, most, lp_socket_milliseconds(timeout_ms));
  if (brief && timeout_ms > 0) *brief = lp_now_ms() - begin < brief_ms;
  return count;
}

static int open_socket(const lp_sockaddr *at) {
  int fd = socket(at->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
  if (fd >= 0 && at->at.ss_family != AF_UNIX) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

static int finish_connecting(int fd, double timeout_ms) {
  int error = 0;
  socklen_t size = sizeof error;
  for (double until = lp_now_ms() + timeout_ms, left = timeout_ms; left > 0; left = until - lp_now_ms()) {
    if (lp_socket_wait(fd, POLLOUT, left) == 0) continue;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
  }
  return ETIMEDOUT;
}

static int connect_to(const lp_sockaddr *to, double timeout_ms, int *out) {
  *out = open_socket(to);
  if (*out < 0) return errno;
  int error = connect(*out, (const struct sockaddr *)&to->at, to->size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) error = finish_connecting(*out, timeout_ms);
  if (error == 0) return 0;
  close(*out);
  *out = -1;
  return error;
}

/* A name may have several addresses; each gets an equal share of the time that is left. */
int lp_socket_connect(const char *address, double timeout_ms, const char **why) {
  lp_sockaddr to[MOST_ADDRESSES];
  double until = lp_now_ms() + timeout_ms;
  size_t count = lp_address_resolve(address, false, to, MOST_ADDRESSES, why);
  for (size_t i = 0; i < count; i++) {
    int fd = -1, error = connect_to(&to[i], (until - lp_now_ms()) / (double)(count - i), &fd);
    if (error == 0) return fd;
    *why = strerror(error);
  }
  return -1;
}

/* ---- listening --------------------------------------------------------------------------------------------------- */

static bool file_of(const char *path, uint64_t file[2]) {
  struct stat info;
  if (lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  file[0] = info.st_dev;
  file[1] = info.st_ino;
  return true;
}

/* A socket file that refuses connections belongs to a process that has ended. */
static void remove_stale(const lp_sockaddr *at, const char *path) {
  uint64_t file[2];
  int fd = -1;
  if (file_of(path, file) && connect_to(at, 0, &fd) == ECONNREFUSED) (void)unlink(path);
  if (fd >= 0) close(fd);
}

/* Reads the port that the system chose; an errno value, or 0. */
static int find_port(lp_socket_listener *listener) {
  struct sockaddr_in6 taken = {0}; /* sockaddr_in has its port at the same offset */
  socklen_t size = sizeof taken;
  if (getsockname(listener->fd, (struct sockaddr *)&taken, &size) != 0) return errno;
  listener->port = ntohs(taken.sin6_port);
  return 0;
}

static int listen_at(const lp_sockaddr *at, const char *path, lp_socket_listener *out) {
  int on = 1;
  out->fd = open_socket(at);
  if (out->fd < 0) return errno;
  if (path) {
    remove_stale(at, path);
    (void)fchmod(out->fd, S_IRUSR | S_IWUSR); /* mode of the file that bind makes: other users may not connect */
  } else {
    (void)setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  int error = bind(out->fd, (const struct sockaddr *)&at->at, at->size) == 0 ? 0 : errno;
  if (error == 0 && path && file_of(path, out->file)) out->path = lp_strdup(path);
  if (error == 0 && listen(out->fd, BACKLOG) != 0) error = errno;
  if (error == 0 && !path) error = find_port(out);
  if (error != 0) lp_socket_listener_close(out);
  return error;
}

bool lp_socket_listen(const char *address, lp_socket_listener *out, const char **why) {
  lp_sockaddr at[MOST_ADDRESSES];
  *out = (lp_socket_listener){.fd = -1};
  size_t count = lp_address_resolve(address, true, at, MOST_ADDRESSES, why);
  for (size_t i = 0; i < count && out->fd < 0; i++)
    *why = strerror(listen_at(&at[i], lp_address_unix_path(address), out));
  return out->fd >= 0;
}

void lp_socket_listener_close(lp_socket_listener *listener) {
  uint64_t file[2];
  if (listener->path && file_of(listener->path, file) && memcmp(file, listener->file, sizeof file) == 0)
    (void)unlink(listener->path);
  if (listener->fd >= 0) close(listener->fd);
  free(listener->path);
  *listener = (lp_socket_listener){.fd = -1};
}

int lp_socket_accept(const lp_socket_listener *listener, lp_sockaddr *from) {
  from->size = sizeof from->at;
  int fd = accept4(listener->fd, (struct sockaddr *)&from->at, &from->size, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
  if (fd >= 0 && !listener->path) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}
