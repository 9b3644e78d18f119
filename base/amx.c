/* Asks for the tiles of AMX (amx.h): arch_prctl(2) of Linux, "Using XSTATE features in user space" in its manual. */
#include "base/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

bool lp_amx_request(void) {
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
bool lp_amx_request(void) {
  return false;
}
#endif
