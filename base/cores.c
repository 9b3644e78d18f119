/* Counts the cores that this process may use. */
#include <sched.h>
#include <unistd.h>

#include "base/cores.h"

int32_t lp_machine_threads(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (int32_t)CPU_COUNT(&set);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? (int32_t)cores : 1;
}
