/* Sockets looked at by whoever waits. NNG's own way is its poller's thread, which hands to a second, which wakes the one that waits: three
 * threads to be woken, each some 20 us on a virtual machine, where bytes take 5 us over loopback. */
#include "runtime/link/tcp_look.h"
#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A wait is brief below this, and nobody looks for longer. */
static const double brief_ms = 0.3;
enum { LOOKS = 8 /* before the core is offered to others */ };

/* ---- the descriptor ---------------------------------------------------------------------------------------------------- */

static bool is_address(const struct sockaddr_storage *have, const nng_sockaddr *want) {
  if (have->ss_family == AF_INET && want->s_family == NNG_AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)have;
    return in->sin_port == want->s_in.sa_port && in->sin_addr.s_addr == want->s_in.sa_addr;
  }
  if (have->ss_family == AF_INET6 && want->s_family == NNG_AF_INET6) {
    const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)have;
    return in->sin6_port == want->s_in6.sa_port && memcmp(&in->sin6_addr, want->s_in6.sa_addr, 16) == 0;
  }
  return false;
}

/* Both ends make a connection unique. */
static bool is_socket_of(int fd, const nng_sockaddr *local, const nng_sockaddr *remote) {
  struct sockaddr_storage here = {0}, there = {0};
  socklen_t here_size = sizeof(here), there_size = sizeof(there);
  return getsockname(fd, (struct sockaddr *)&here, &here_size) == 0 && is_address(&here, local) &&
         getpeername(fd, (struct sockaddr *)&there, &there_size) == 0 && is_address(&there, remote);
}

/* The number may have passed to another file between the look and the copy: the copy is what counts. */
static int copy_of(int fd, const nng_sockaddr *local, const nng_sockaddr *remote) {
  if (!is_socket_of(fd, local, remote)) return -1;
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0 || is_socket_of(copy, local, remote)) return copy;
  close(copy);
  return -1;
}

int lp_tcp_socket_of(nng_stream *stream) {
  nng_sockaddr local, remote;
  if (nng_stream_get_addr(stream, NNG_OPT_LOCADDR, &local) != 0 ||
      nng_stream_get_addr(stream, NNG_OPT_REMADDR, &remote) != 0)
    return -1;
  DIR *open = opendir("/proc/self/fd");
  int found = -1;
  for (struct dirent *entry; found < 0 && open != NULL && (entry = readdir(open)) != NULL;)
    if (entry->d_name[0] != '.') found = copy_of(atoi(entry->d_name), &local, &remote);
  if (open != NULL) closedir(open);
  return found;
}

bool lp_tcp_is_readable(int socket, double timeout_ms) {
  struct pollfd want = {.fd = socket, .events = POLLIN};
  return poll(&want, 1, timeout_ms <= 0 ? 0 : timeout_ms < INT32_MAX ? (int)(timeout_ms + 1) : INT32_MAX) > 0;
}

/* ---- looking ------------------------------------------------------------------------------------------------------------- */

bool lp_tcp_gaze_at(const lp_tcp_gaze *gaze, double timeout_ms, bool (*arrived)(void *user), void *user) {
  if (!gaze->pays || !gaze->brief || timeout_ms <= 0) return false;
  double until = lp_now_ms() + (timeout_ms < brief_ms ? timeout_ms : brief_ms);
  do {
    for (int i = 0; i < LOOKS; i++)
      if (arrived(user)) return true;
    sched_yield();
  } while (lp_now_ms() < until);
  return false;
}

void lp_tcp_gaze_note(lp_tcp_gaze *gaze, double waited_ms) {
  gaze->brief = waited_ms < brief_ms;
}
