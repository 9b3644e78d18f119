/* The tiles of AMX, which the operating system may deny. */
#include "base/amx.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

LP_CASE(.timeout = 30);

/* Tells whether /proc/cpuinfo, where Linux lists only what it supports too, has the flag. */
static bool is_listed(const char *flag) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[8192];
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file))
    found = strstr(line, flag) != NULL;
  if (file) (void)fclose(file);
  return found;
}

/* Linux before 5.16 lists the tiles and gives them without being asked. */
LP_TEST(tiles_are_given_where_the_processor_has_them) {
  if (!is_listed("amx_tile")) ck_assert(!lp_amx_request());
  bool first = lp_amx_request();
  ck_assert_int_eq(lp_amx_request(), first);
#if defined(__x86_64__) && defined(__linux__)
  unsigned long long allowed = 0;
  enum { GET_PERMISSION = 0x1022, TILE_DATA = 18 };
  bool known = syscall(SYS_arch_prctl, GET_PERMISSION, &allowed) == 0;
  ck_assert_int_eq(first, known && (allowed >> TILE_DATA & 1) != 0);
#else
  ck_assert(!first);
#endif
}

#if defined(__x86_64__) && defined(__linux__)
/* Makes the system call fail in this process. */
static bool deny(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

LP_TEST(denied_tiles_are_absent) {
  pid_t child = fork();
  if (child == 0) _exit(!deny() ? 2 : lp_amx_request() ? 1 : 0);
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  ck_assert_int_ne(WEXITSTATUS(status), 1);
}
#endif
