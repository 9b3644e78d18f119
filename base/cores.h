/* The cores and the memory that this process may use, and leaving a core to others. */
#pragma once

#include <stdint.h>

/* At least 1; respects the affinity of the process and the quota of its control groups. */
int32_t lp_machine_threads(void);
/* Cores' worth of time, rounded up, that the control groups listed in the file `membership` (/proc/self/cgroup) allow;
 * INT32_MAX: they set no quota. `root` is where control groups are mounted: version 2, or a folder for each controller
 * of version 1. */
int32_t lp_cgroup_threads(const char *membership, const char *root);

/* Calls work(user) in up to `threads` threads at a time, one of them the caller's, and returns when all calls have.
 * There are fewer calls, but at least one, when the system refuses threads, so the calls share the work out. */
void lp_threads_run(int32_t threads, void *(*work)(void *user), void *user);

/* Bytes of physical memory, or the limit of the control group when that is less. */
int64_t lp_machine_memory(void);
/* The limit in the file `limit` (memory.max of version 2); INT64_MAX: there is none. */
int64_t lp_cgroup_memory(const char *limit);

/* Leaves the core to others for about 70 us, while the caller waits for another thread; call it after polling for a
 * while. It replaces sched_yield, with which a thread loses several ms on a busy machine: Linux 6.18 and later take the
 * rest of the caller's time slice even if nobody else wants the core at that moment. */
void lp_give_way(void);
/* The number of waits in which the calling thread has called lp_give_way, once or more often. */
int64_t lp_gave_way(void);
