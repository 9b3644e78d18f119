/* Counts cores, and leaves them to others (cores.h). */
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"

static int32_t count_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (int32_t)CPU_COUNT(&set);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? (int32_t)cores : 1;
}

int32_t lp_machine_threads(void) {
  int32_t cores = count_cores(), quota = lp_cgroup_threads("/proc/self/cgroup", "/sys/fs/cgroup");
  return quota < cores ? quota : cores;
}

int64_t lp_machine_memory(void) {
  int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  int64_t limit = lp_cgroup_memory("/sys/fs/cgroup/memory.max");
  return limit < bytes ? limit : bytes;
}

static _Thread_local int64_t waits;
static _Thread_local double last_end_ms;
/* Calls with less time between them belong to one wait. */
static const double same_wait_ms = 0.03;

void lp_give_way(void) {
  if (lp_now_ms() - last_end_ms > same_wait_ms) waits++;
  (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); /* the kernel adds its timer slack, by default 50 us */
  last_end_ms = lp_now_ms();
}

int64_t lp_gave_way(void) {
  return waits;
}
