/* A stand-in for NVIDIA's NCCL on the GPUs of fake/cuda.c: ranks are threads or processes, and exchange their parts
 * through a file that all map. A gather waits in its stream until every rank has enqueued it. The environment sets its
 * behaviour:
 *   LP_FAKE_NCCL_INIT  RANK:RESULT  what ncclCommInitRank returns on that rank: "1:2" is a system error on rank 1
 *   LP_FAKE_NCCL_FAIL  RANK:COUNT   after so many gathers ncclAllGather fails on that rank
 *   LP_FAKE_NCCL_DIE   RANK:COUNT   after so many, the process of that rank ends
 *   LP_FAKE_NCCL_LOG                a file that gets a line for each communicator that is destroyed or aborted
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/collective/nccl_abi.h"

#define EXPORT __attribute__((visibility("default")))
enum { MOST_RANKS = 64, MOST_BYTES = 1 << 24 }; /* of a part */

/* What the ranks share. A gather has a number, from 1. */
typedef struct {
  atomic_long card[MOST_RANKS]; /* 1 + process and number of the GPU; 0: not there yet */
  atomic_long offered[MOST_RANKS],
      taken[MOST_RANKS]; /* the newest gather whose part a rank has put here, or of which it has all */
  char part[MOST_RANKS][MOST_BYTES];
} common;

typedef struct {
  common *shared;
  int rank, count;
  long gathers;
  atomic_int aborted;
} communicator;

/* What fake/cuda.c exports. */
static struct {
  int (*device)(void);
  void (*enqueue)(void *stream, int (*attempt)(void *), const void *data, size_t bytes);
  int (*is_ours)(const void *at, size_t bytes);
  int (*is_recorded)(const void *stream);
} driver;

static int find_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *found[4];
  if (!library) return 0;
  found[0] = dlsym(library, "lp_fake_device");
  found[1] = dlsym(library, "lp_fake_enqueue_attempts");
  found[2] = dlsym(library, "lp_fake_is_ours");
  found[3] = dlsym(library, "lp_fake_is_recorded");
  memcpy(&driver, found, sizeof driver);
  return found[0] && found[1] && found[2] && found[3];
}

/* The number after the rank in a variable "1:20"; -1: it is not of that rank. */
static long setting(const char *name, int rank) {
  int of = -1;
  long number = -1;
  const char *text = getenv(name);
  return text && sscanf(text, "%d:%ld", &of, &number) == 2 && of == rank ? number : -1;
}

EXPORT int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
  *version = 22105;
  return LP_NCCL_SUCCESS;
}

EXPORT const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result) {
  return result == LP_NCCL_SYSTEM_ERROR    ? "unhandled system error"
         : result == LP_NCCL_INVALID_USAGE ? "invalid usage"
                                           : "another error";
}

static _Thread_local const char *problem = "";
EXPORT const char *ncclGetLastError(const communicator *c);
const char *ncclGetLastError(const communicator *c) {
  (void)c;
  return problem;
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

EXPORT int ncclGetUniqueId(lp_nccl_id *id);
int ncclGetUniqueId(lp_nccl_id *id) {
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "/tmp/lp_nccl_XXXXXX");
  int file = mkstemp(id->internal);
  if (file < 0 || ftruncate(file, sizeof(common)) != 0) return LP_NCCL_SYSTEM_ERROR;
  close(file);
  return LP_NCCL_SUCCESS;
}

static common *map(const char *path) {
  int file = open(path, O_RDWR);
  void *shared = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(common), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return shared == MAP_FAILED ? NULL : shared;
}

static int is_twice(const common *shared, int count) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < i; k++)
      if (atomic_load(&shared->card[i]) == atomic_load(&shared->card[k])) return 1;
  return 0;
}

EXPORT int ncclCommInitRank(communicator **out, int count, lp_nccl_id id, int rank);
int ncclCommInitRank(communicator **out, int count, lp_nccl_id id, int rank) {
  int device = find_driver() ? driver.device() : -1;
  long result = setting("LP_FAKE_NCCL_INIT", rank);
  common *shared = map(id.internal);
  if (!shared || device < 0 || count > MOST_RANKS) return LP_NCCL_SYSTEM_ERROR;
  atomic_store(&shared->card[rank], 1 + getpid() * 64L + device);
  for (int i = 0; i < count; i++)
    while (atomic_load(&shared->card[i]) == 0)
      sched_yield();
  if (rank == 0) unlink(id.internal);
  if (is_twice(shared, count)) {
    problem = "Duplicate GPU detected";
    return LP_NCCL_INVALID_USAGE;
  }
  if (result > 0) return (int)result;
  *out = calloc(1, sizeof **out);
  (*out)->shared = shared;
  (*out)->rank = rank;
  (*out)->count = count;
  return LP_NCCL_SUCCESS;
}

static int end(communicator *c, const char *how) {
  const char *path = getenv("LP_FAKE_NCCL_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (file) {
    fprintf(file, "rank %d %s after %ld gathers\n", c->rank, how, c->gathers);
    fclose(file);
  }
  return LP_NCCL_SUCCESS; /* the memory stays: work in streams may still name it */
}

EXPORT int ncclCommDestroy(communicator *c);
int ncclCommDestroy(communicator *c) {
  return end(c, "destroyed");
}

EXPORT int ncclCommAbort(communicator *c);
int ncclCommAbort(communicator *c) {
  atomic_store(&c->aborted, 1);
  return end(c, "aborted");
}

EXPORT int ncclCommGetAsyncError(const communicator *c, int *error);
int ncclCommGetAsyncError(const communicator *c, int *error) {
  (void)c;
  *error = LP_NCCL_SUCCESS;
  return LP_NCCL_SUCCESS;
}

/* ---- gathers ----------------------------------------------------------------------------------------------------- */

typedef struct {
  communicator *c;
  const void *part;
  char *all;
  size_t size;
  long number;
} gather;

static int all_have(const communicator *c, const atomic_long *reached, long number) {
  for (int i = 0; i < c->count; i++)
    if (atomic_load(&reached[i]) < number) return 0;
  return 1;
}

static int attempt(void *data) {
  const gather *g = data;
  communicator *c = g->c;
  common *shared = c->shared;
  if (atomic_load(&c->aborted)) return 1;
  if (atomic_load(&shared->offered[c->rank]) < g->number) {
    if (!all_have(c, shared->taken, g->number - 1)) return 0; /* another still reads the part before */
    memcpy(shared->part[c->rank], g->part, g->size);
    atomic_store(&shared->offered[c->rank], g->number);
  }
  if (!all_have(c, shared->offered, g->number)) return 0;
  for (int i = 0; i < c->count; i++)
    memcpy(g->all + (size_t)i * g->size, shared->part[i], g->size);
  atomic_store(&shared->taken[c->rank], g->number);
  return 1;
}

EXPORT int ncclAllGather(const void *part, void *all, size_t size, int type, communicator *c, void *stream);
int ncclAllGather(const void *part, void *all, size_t size, int type, communicator *c, void *stream) {
  long fail = setting("LP_FAKE_NCCL_FAIL", c->rank), die = setting("LP_FAKE_NCCL_DIE", c->rank);
  const gather g = {c, part, all, size, ++c->gathers};
  if (die >= 0 && c->gathers > die) _exit(9);
  if (fail >= 0 && c->gathers > fail) return LP_NCCL_SYSTEM_ERROR;
  if (type != LP_NCCL_INT8 || size == 0 || size > MOST_BYTES || !driver.is_ours(part, size) ||
      !driver.is_ours(all, size * (size_t)c->count) || driver.is_recorded(stream))
    return LP_NCCL_INVALID_USAGE;
  driver.enqueue(stream, attempt, &g, sizeof g);
  return LP_NCCL_SUCCESS;
}
