/* Counts the cores that the control groups of the process allow, and leaves cores to others (cores.h). */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"

/* ---- control groups ---------------------------------------------------------------------------------------------- */

static bool read_numbers(const char *dir, const char *name, double *first, double *second) {
  char path[4096 + 32];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  int wanted = second ? 2 : 1, got = second ? fscanf(file, "%lf %lf", first, second) : fscanf(file, "%lf", first);
  fclose(file);
  return got == wanted;
}

/* Cores' worth of time that the group of this folder may use; INFINITY: any. Version 2 writes "QUOTA PERIOD" or
 * "max PERIOD", version 1 has two files and a quota of -1. */
static double share_of(const char *dir) {
  double quota = 0, period = 0;
  bool has = read_numbers(dir, "cpu.max", &quota, &period) || (read_numbers(dir, "cpu.cfs_quota_us", &quota, NULL) &&
                                                               read_numbers(dir, "cpu.cfs_period_us", &period, NULL));
  return has && quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* The least share of the group and of those that contain it. In a container the root is the container's own group,
 * and the folders of the path may be absent. */
static double least_share(const char *root, const char *path) {
  char dir[4096];
  int length = snprintf(dir, sizeof dir, "%s%s", root, path);
  if (length < 0 || (size_t)length >= sizeof dir) return INFINITY;
  double least = share_of(dir);
  while (strlen(dir) > strlen(root)) {
    *strrchr(dir, '/') = '\0';
    least = fmin(least, share_of(dir));
  }
  return least;
}

static bool has_word(const char *list, const char *word) {
  for (size_t size = strlen(word); *list != '\0'; list += strcspn(list, ","), list += *list == ',')
    if (strcspn(list, ",") == size && strncmp(list, word, size) == 0) return true;
  return false;
}

/* `line` is "ID:CONTROLLERS:PATH"; version 2 names no controllers, and has one tree for all of them. */
static double share_by(char *line, const char *root) {
  char tree[4096];
  char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!path || path[1] != '/') return INFINITY;
  *path++ = '\0';
  path[strcspn(path, "\n")] = '\0';
  controllers++;
  if (*controllers == '\0') return least_share(root, path);
  if (!has_word(controllers, "cpu")) return INFINITY;
  snprintf(tree, sizeof tree, "%s/%s", root, controllers);
  double joined = least_share(tree, path);
  snprintf(tree, sizeof tree, "%s/cpu", root);
  return fmin(joined, least_share(tree, path));
}

int32_t lp_cgroup_threads(const char *membership, const char *root) {
  LP_OWNED(lp_free_at) char *line = NULL;
  size_t room = 0;
  double least = INFINITY;
  FILE *file = fopen(membership, "re");
  while (file && getline(&line, &room, file) > 0)
    least = fmin(least, share_by(line, root));
  if (file) fclose(file);
  return least < INT32_MAX ? (int32_t)ceil(least) : INT32_MAX;
}

int64_t lp_cgroup_memory(const char *limit) {
  char *text = NULL;
  size_t size = 0;
  if (lp_file_read(limit, &text, &size, NULL) != LP_OK) return INT64_MAX;
  long long bytes = strtoll(text, NULL, 10); /* "max" reads as 0 */
  free(text);
  return bytes > 0 ? (int64_t)bytes : INT64_MAX;
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

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

void lp_threads_run(int32_t threads, void *(*work)(void *user), void *user) {
  LP_OWNED(lp_free_at) pthread_t *thread = lp_alloc(sizeof *thread * (size_t)(threads > 0 ? threads : 1));
  int32_t started = 0;
  while (started + 1 < threads && pthread_create(&thread[started], NULL, work, user) == 0)
    started++;
  (void)work(user);
  while (started > 0)
    (void)pthread_join(thread[--started], NULL);
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
