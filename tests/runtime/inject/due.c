/* The count of calls. It begins with main: what the loader and the constructors of libraries do is not counted.
 * Children of the process run undisturbed, because LP_INJECT leaves the environment. */
#define _GNU_SOURCE
#include "tests/runtime/inject/due.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long left; /* calls until the one that fails; 0 or less: none */
static char report[512];
static int (*real_main)(int, char **, char **);

void *lp_inject_real(const char *name) {
  void *real = dlsym(RTLD_NEXT, name);
  if (!real) _exit(99);
  return real;
}

/* System calls, because the functions of the C library would count. */
static void write_report(const char *name, const void *caller) {
  char line[512];
  Dl_info at = {0};
  dladdr(caller, &at);
  int size = snprintf(line, sizeof line, "%s %s+0x%lx\n", name, at.dli_fname ? at.dli_fname : "?",
                      (unsigned long)((uintptr_t)caller - (uintptr_t)at.dli_fbase));
  long fd = syscall(SYS_openat, AT_FDCWD, report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  syscall(SYS_write, fd, line, (size_t)size);
  syscall(SYS_close, fd);
}

bool lp_inject_due(const char *name, const void *caller) {
  if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1) return false;
  if (report[0]) write_report(name, caller);
  return true;
}

static int counted_main(int argc, char **argv, char **env) {
  const char *number = getenv("LP_INJECT"), *to = getenv("LP_INJECT_REPORT");
  if (to) snprintf(report, sizeof report, "%s", to);
  long first = number ? atol(number) : 0;
  unsetenv("LP_INJECT");
  atomic_store(&left, first);
  return real_main(argc, argv, env);
}

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loaded)(void), void *stack);

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loaded)(void), void *stack) {
  void *found = lp_inject_real("__libc_start_main");
  __typeof__(&__libc_start_main) start;
  memcpy(&start, &found, sizeof start);
  real_main = program;
  return start(counted_main, argc, argv, init, fini, loaded, stack);
}
