/* Files, sockets, threads and processes: each function fails when its call is due, as the kernel would let it fail, and
 * is the C library's own otherwise. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/runtime/inject/due.h"

#define CALLER __builtin_return_address(0)

/* Declares `real`, the C library's function of that name and type. */
#define REAL(name, ...)                                                                                                \
  __VA_ARGS__;                                                                                                         \
  static void *found;                                                                                                  \
  if (!found) found = lp_inject_real(name);                                                                            \
  memcpy(&real, &found, sizeof real)

/* A function that returns `result` with this errno when it fails. */
#define FAILS(type, name, parameters, arguments, result, problem)                                                      \
  type name parameters;                                                                                                \
  type name parameters {                                                                                               \
    REAL(#name, type(*real) parameters);                                                                               \
    if (!lp_inject_due(#name, CALLER)) return real arguments;                                                          \
    errno = problem;                                                                                                   \
    return result;                                                                                                     \
  }

/* Those that open a file have a mode only when they create it. */
#define MODE(flags)                                                                                                    \
  mode_t mode = 0;                                                                                                     \
  if ((flags) & O_CREAT) {                                                                                             \
    va_list more;                                                                                                      \
    va_start(more, flags);                                                                                             \
    mode = va_arg(more, mode_t);                                                                                       \
    va_end(more);                                                                                                      \
  }
#define OPENS(name)                                                                                                    \
  int name(const char *path, int flags, ...);                                                                          \
  int name(const char *path, int flags, ...) {                                                                         \
    REAL(#name, int (*real)(const char *, int, ...));                                                                  \
    MODE(flags)                                                                                                        \
    if (!lp_inject_due(#name, CALLER)) return real(path, flags, mode);                                                 \
    errno = EMFILE;                                                                                                    \
    return -1;                                                                                                         \
  }
#define OPENS_AT(name)                                                                                                 \
  int name(int folder, const char *path, int flags, ...);                                                              \
  int name(int folder, const char *path, int flags, ...) {                                                             \
    REAL(#name, int (*real)(int, const char *, int, ...));                                                             \
    MODE(flags)                                                                                                        \
    if (!lp_inject_due(#name, CALLER)) return real(folder, path, flags, mode);                                         \
    errno = EMFILE;                                                                                                    \
    return -1;                                                                                                         \
  }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

FAILS(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
FAILS(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
FAILS(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, EMFILE)
FAILS(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), -1, EIO)
FAILS(ssize_t, __read_chk, (int fd, void *to, size_t size, size_t room), (fd, to, size, room), -1, EIO)
FAILS(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), -1, EIO)
FAILS(ssize_t, pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at), -1, EIO)
FAILS(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), -1, ENOSPC)
FAILS(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), -1, ENOSPC)
FAILS(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at), -1, ENOSPC)
FAILS(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence), -1, EIO)
FAILS(int, fsync, (int fd), (fd), -1, EIO)
FAILS(int, ftruncate, (int fd, off_t size), (fd, size), -1, ENOSPC)
FAILS(int, fstat, (int fd, struct stat *out), (fd, out), -1, EIO)
FAILS(int, stat, (const char *path, struct stat *out), (path, out), -1, EIO)
FAILS(int, lstat, (const char *path, struct stat *out), (path, out), -1, EIO)
FAILS(int, access, (const char *path, int how), (path, how), -1, EACCES)
FAILS(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
FAILS(int, rename, (const char *from, const char *to), (from, to), -1, ENOSPC)
FAILS(int, unlink, (const char *path), (path), -1, EACCES)
FAILS(int, flock, (int fd, int how), (fd, how), -1, ENOLCK)
FAILS(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
FAILS(struct dirent *, readdir, (DIR * folder), (folder), NULL, EIO)
FAILS(ssize_t, readlink, (const char *path, char *out, size_t size), (path, out, size), -1, EIO)
FAILS(char *, realpath, (const char *path, char *out), (path, out), NULL, EIO)
FAILS(void *, mmap, (void *at, size_t size, int may, int how, int fd, off_t from), (at, size, may, how, fd, from),
      MAP_FAILED, ENOMEM)
FAILS(void *, mmap64, (void *at, size_t size, int may, int how, int fd, off64_t from), (at, size, may, how, fd, from),
      MAP_FAILED, ENOMEM)
FAILS(int, madvise, (void *at, size_t size, int what), (at, size, what), -1, EAGAIN)
FAILS(ssize_t, getrandom, (void *to, size_t size, unsigned flags), (to, size, flags), -1, ENOSYS)

FAILS(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
FAILS(int, socketpair, (int domain, int type, int protocol, int fd[2]), (domain, type, protocol, fd), -1, EMFILE)
FAILS(int, bind, (int fd, __CONST_SOCKADDR_ARG to, socklen_t size), (fd, to, size), -1, EADDRINUSE)
FAILS(int, listen, (int fd, int backlog), (fd, backlog), -1, EADDRINUSE)
FAILS(int, accept, (int fd, __SOCKADDR_ARG from, socklen_t *size), (fd, from, size), -1, EMFILE)
FAILS(int, accept4, (int fd, __SOCKADDR_ARG from, socklen_t *size, int flags), (fd, from, size, flags), -1, EMFILE)
FAILS(int, connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t size), (fd, to, size), -1, ECONNREFUSED)
FAILS(ssize_t, send, (int fd, const void *from, size_t size, int flags), (fd, from, size, flags), -1, ECONNRESET)
FAILS(ssize_t, sendto, (int fd, const void *from, size_t size, int flags, __CONST_SOCKADDR_ARG to, socklen_t room),
      (fd, from, size, flags, to, room), -1, ECONNRESET)
FAILS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1, ECONNRESET)
FAILS(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags), -1, ECONNRESET)
FAILS(ssize_t, __recv_chk, (int fd, void *to, size_t size, size_t room, int flags), (fd, to, size, room, flags), -1,
      ECONNRESET)
FAILS(ssize_t, recvfrom, (int fd, void *to, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *room),
      (fd, to, size, flags, from, room), -1, ECONNRESET)
FAILS(int, getsockname, (int fd, __SOCKADDR_ARG out, socklen_t *size), (fd, out, size), -1, ENOBUFS)
FAILS(int, getpeername, (int fd, __SOCKADDR_ARG out, socklen_t *size), (fd, out, size), -1, ENOTCONN)
FAILS(int, getsockopt, (int fd, int level, int name, void *out, socklen_t *size), (fd, level, name, out, size), -1,
      ENOBUFS)
FAILS(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size), (fd, level, name, value, size),
      -1, ENOBUFS)
FAILS(int, shutdown, (int fd, int how), (fd, how), -1, ENOTCONN)
FAILS(int, epoll_create1, (int flags), (flags), -1, EMFILE)
FAILS(int, epoll_ctl, (int set, int what, int fd, struct epoll_event *event), (set, what, fd, event), -1, ENOSPC)
FAILS(int, epoll_wait, (int set, struct epoll_event *events, int room, int ms), (set, events, room, ms), -1, EINTR)
FAILS(int, poll, (struct pollfd * set, nfds_t count, int ms), (set, count, ms), -1, EINTR)
FAILS(int, __poll_chk, (struct pollfd * set, nfds_t count, int ms, size_t room), (set, count, ms, room), -1, EINTR)
FAILS(int, eventfd, (unsigned first, int flags), (first, flags), -1, EMFILE)
FAILS(int, pipe, (int fd[2]), (fd), -1, EMFILE)
FAILS(int, pipe2, (int fd[2], int flags), (fd, flags), -1, EMFILE)

FAILS(pid_t, fork, (void), (), -1, EAGAIN)
FAILS(int, pthread_create, (pthread_t * out, const pthread_attr_t *how, void *(*run)(void *), void *with),
      (out, how, run, with), EAGAIN, EAGAIN)
FAILS(int, getaddrinfo, (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out),
      (node, service, hints, out), EAI_MEMORY, ENOMEM)

/* A descriptor is closed even when that fails. */
int close(int fd) {
  REAL("close", int (*real)(int));
  bool due = lp_inject_due("close", CALLER);
  int result = real(fd);
  if (!due) return result;
  errno = EIO;
  return -1;
}

int fclose(FILE *file) {
  REAL("fclose", int (*real)(FILE *));
  bool due = lp_inject_due("fclose", CALLER);
  int result = real(file);
  if (!due) return result;
  errno = ENOSPC;
  return EOF;
}

/* Streams remember that they failed. */
enum { ERROR_SEEN = 0x20 }; /* glibc's _IO_ERR_SEEN */

int fflush(FILE *file) {
  REAL("fflush", int (*real)(FILE *));
  if (!lp_inject_due("fflush", CALLER)) return real(file);
  if (file) file->_flags |= ERROR_SEEN;
  errno = ENOSPC;
  return EOF;
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *file) {
  REAL("fwrite", size_t (*real)(const void *, size_t, size_t, FILE *));
  if (!lp_inject_due("fwrite", CALLER)) return real(from, size, count, file);
  file->_flags |= ERROR_SEEN;
  errno = ENOSPC;
  return 0;
}

/* The loader says why. */
void *dlopen(const char *path, int flags) {
  REAL("dlopen", void *(*real)(const char *, int));
  return real(lp_inject_due("dlopen", CALLER) ? "/nowhere/injected.so" : path, flags);
}
