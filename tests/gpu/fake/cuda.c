/* A stand-in for NVIDIA's driver, which runs kernels of fake/nvrtc.c on this processor. Like a GPU it keeps host and
 * device apart: only kernels and copies can read and write its memory, and enqueued work runs when the host waits for
 * the stream. The environment sets its behaviour:
 *   LP_FAKE_CUDA_GPUS    how many there are (1)
 *   LP_FAKE_CUDA_SM      compute capability: 53 (80)
 *   LP_FAKE_CUDA_MEMORY  bytes (1 GiB)
 *   LP_FAKE_CUDA_GRAPHS  0: graphs cannot be recorded
 *   LP_FAKE_CUDA_LOG     a file that gets a line of what was done at the process's end
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/gpu/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))
#ifdef LP_FAKE_OLD /* as of CUDA 10.2 */
#define NEWER __attribute__((visibility("hidden")))
#else
#define NEWER EXPORT
#endif
enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  NOT_READY = 600,
  NOT_SUPPORTED = 801
};
enum { MOST_BLOCKS = 4096, MOST_PARAMS = 64, PAGE = 4096, GRAIN = 256 };

/* ---- memory that the host cannot touch --------------------------------------------------------------------------- */

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static char *memory;
static size_t memory_bytes, memory_used;
static struct {
  size_t begin, pages; /* its pages, in bytes */
  size_t at, bytes;
} block[MOST_BLOCKS]; /* in order */
static int blocks;
static struct {
  long launches, copies, waits, graphs, overlaps;
} done;

static int64_t setting(const char *name, int64_t otherwise) {
  const char *text = getenv(name);
  return text ? atoll(text) : otherwise;
}

static size_t limit(void) {
  return (size_t)setting("LP_FAKE_CUDA_MEMORY", 1 << 30) / PAGE * PAGE;
}

static void open_memory(int may) {
  for (int i = 0; i < blocks; i++)
    mprotect(memory + block[i].begin, block[i].pages, may ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* A block ends near the end of its last page, and a page after it belongs to none, so that accesses past its end fault.
 * It holds what no kernel should read: floats of any width are NaN. */
static int reserve(uint64_t *out, size_t bytes) {
  const size_t whole = (bytes + GRAIN - 1) / GRAIN * GRAIN, pages = (bytes + PAGE - 1) / PAGE * PAGE;
  size_t begin = 0;
  int at = 0;
  if (!memory) {
    memory_bytes = 2 * limit() + (size_t)MOST_BLOCKS * PAGE;
    memory = mmap(NULL, memory_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  for (; at < blocks && block[at].begin - begin < pages + PAGE; at++)
    begin = block[at].begin + block[at].pages + PAGE;
  if (pages > limit() - memory_used || pages + PAGE > memory_bytes - begin || blocks == MOST_BLOCKS)
    return OUT_OF_MEMORY;
  memmove(&block[at + 1], &block[at], (size_t)(blocks++ - at) * sizeof *block);
  block[at].begin = begin;
  block[at].pages = pages;
  block[at].at = begin + pages - whole;
  block[at].bytes = whole;
  memory_used += pages;
  mprotect(memory + begin, pages, PROT_READ | PROT_WRITE);
  memset(memory + begin, 0xff, pages);
  mprotect(memory + begin, pages, PROT_NONE);
  *out = (uint64_t)(uintptr_t)(memory + block[at].at);
  return SUCCESS;
}

static int release(uint64_t address) {
  for (int i = 0; i < blocks; i++) {
    if ((uint64_t)(uintptr_t)(memory + block[i].at) != address) continue;
    mprotect(memory + block[i].begin, block[i].pages, PROT_NONE);
    memory_used -= block[i].pages;
    memmove(&block[i], &block[i + 1], (size_t)(--blocks - i) * sizeof *block);
    return SUCCESS;
  }
  return INVALID_VALUE;
}

/* Tells whether all these bytes lie in one block. */
static int is_ours(const void *at, size_t bytes) {
  int found = 0;
  pthread_mutex_lock(&one);
  for (int i = 0; i < blocks && !found; i++) {
    const char *begin = memory + block[i].at;
    size_t left = (const char *)at >= begin ? block[i].bytes : 0, offset = (size_t)((const char *)at - begin);
    found = offset < left && bytes <= left - offset;
  }
  pthread_mutex_unlock(&one);
  return found;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

typedef void launch_fn(unsigned x, unsigned y, unsigned z, int threads, void *const *args);
typedef size_t size_fn(size_t i);
typedef struct {
  launch_fn *launch;
  size_fn *size;
} kernel;

typedef struct operation {
  struct operation *next;
  const struct graph *graph; /* NULL: a kernel */
  void (*run)(const void *); /* of another library, on `arg[0]`; NULL: a kernel */
  int (*attempt)(void *);    /* as `run`, but 0: it has to wait */
  const kernel *kernel;      /* NULL: a copy, or a fill when `from` is NULL */
  unsigned x, y, z;
  int threads;
  void *to;
  const void *from; /* in `data` when it was the host's */
  size_t bytes;
  unsigned char value;
  void *arg[MOST_PARAMS]; /* in `data` */
  char data[];
} operation;

/* The recording of a stream. */
typedef struct graph {
  operation *first, **last;
} graph;

typedef struct stream {
  operation *first, **last;
  graph *recorded; /* NULL: it is not recorded */
} stream;

static operation *enqueue(stream *s, size_t bytes) {
  operation *o = calloc(1, sizeof *o + bytes);
  if (s->recorded) {
    *s->recorded->last = o;
    s->recorded->last = &o->next;
    return o;
  }
  *s->last = o;
  s->last = &o->next;
  return o;
}

/* 0: it has to wait. */
static int perform(const operation *o) {
  if (o->attempt) return o->attempt(o->arg[0]);
  if (o->graph) {
    for (const operation *each = o->graph->first; each != NULL; each = each->next)
      (void)perform(each);
    done.graphs++;
    return 1;
  }
  if (o->run)
    o->run(o->arg[0]);
  else if (o->kernel)
    o->kernel->launch(o->x, o->y, o->z, o->threads, o->arg);
  else if (!o->from)
    memset(o->to, o->value, o->bytes);
  else
    memcpy(o->to, o->from, o->bytes);
  *(o->kernel != NULL || o->run != NULL ? &done.launches : &done.copies) += 1;
  return 1;
}

/* Performs what need not wait; 0: something is left. */
static int drain(stream *s) {
  open_memory(1);
  while (s->first && perform(s->first)) {
    operation *o = s->first;
    s->first = o->next;
    free(o);
  }
  if (!s->first) s->last = &s->first;
  open_memory(0);
  return !s->first;
}

/* ---- the driver's functions -------------------------------------------------------------------------------------- */

enum { MOST_GPUS = 64 };
static char contexts[MOST_GPUS];
static _Thread_local const char *context; /* &contexts[device] */
#define IN_CONTEXT                                                                                                     \
  if (!context) return INVALID_CONTEXT

static void write_log(void) {
  const char *path = getenv("LP_FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "launches %ld copies %ld waits %ld graphs %ld overlaps %ld bytes %zu\n", done.launches, done.copies,
          done.waits, done.graphs, done.overlaps, memory_used);
  fclose(file);
}

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags) {
  static int once;
  (void)flags;
  if (!once) atexit(write_log);
  once = 1;
  return setting("LP_FAKE_CUDA_GPUS", 1) > 0 ? SUCCESS : NO_DEVICE;
}

EXPORT int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version) {
  *version = 12040;
  return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count) {
  *count = (int)setting("LP_FAKE_CUDA_GPUS", 1);
  return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int index);
int cuDeviceGet(int *device, int index) {
  *device = index;
  return SUCCESS;
}

EXPORT int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  snprintf(name, (size_t)size, "Fake GPU");
  return SUCCESS;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int sm = (int)setting("LP_FAKE_CUDA_SM", 80);
  (void)device;
  *value = attribute == 75 ? sm / 10 : attribute == 76 ? sm % 10 : 0;
  return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRetain(void **out, int device);
int cuDevicePrimaryCtxRetain(void **out, int device) {
  *out = &contexts[device];
  return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return SUCCESS;
}

EXPORT int cuCtxSetCurrent(const char *current);
int cuCtxSetCurrent(const char *current) {
  context = current;
  return SUCCESS;
}

EXPORT int cuGetErrorString(int error, const char **text);
int cuGetErrorString(int error, const char **text) {
  *text = error == OUT_OF_MEMORY     ? "out of memory"
          : error == INVALID_CONTEXT ? "invalid device context"
          : error == INVALID_IMAGE   ? "device kernel image is invalid"
                                     : "another error";
  return SUCCESS;
}

/* ---- modules ---- */

EXPORT int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadData(void **module, const void *image) {
  char path[] = "/tmp/lp_module_XXXXXX";
  const unsigned char *elf = image;
  IN_CONTEXT;
  if (memcmp(elf, "\177ELF", 4) != 0) return INVALID_IMAGE;
  uint64_t sections;
  uint16_t size, count;
  memcpy(&sections, elf + 40, 8), memcpy(&size, elf + 58, 2), memcpy(&count, elf + 60, 2);
  size_t bytes = sections + (size_t)size * count; /* the section headers come last */
  int file = mkstemp(path);
  if (file < 0) return INVALID_IMAGE;
  int whole = write(file, image, bytes) == (ssize_t)bytes;
  close(file);
  *module = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  return *module != NULL ? SUCCESS : INVALID_IMAGE;
}

EXPORT int cuModuleUnload(void *module);
int cuModuleUnload(void *module) {
  dlclose(module); /* its kernels stay known, and are never called again */
  return SUCCESS;
}

EXPORT int cuModuleGetFunction(kernel **out, void *module, const char *name);
int cuModuleGetFunction(kernel **out, void *module, const char *name) {
  static kernel kernels[4096];
  static int count;
  char symbol[256];
  void *launch, *size;
  snprintf(symbol, sizeof symbol, "lp_fake_launch_%s", name);
  launch = dlsym(module, symbol);
  snprintf(symbol, sizeof symbol, "lp_fake_size_%s", name);
  size = dlsym(module, symbol);
  if (!launch || !size) return NOT_FOUND;
  pthread_mutex_lock(&one);
  *out = &kernels[count++ % 4096];
  memcpy(&(*out)->launch, &launch, sizeof launch);
  memcpy(&(*out)->size, &size, sizeof size);
  pthread_mutex_unlock(&one);
  return SUCCESS;
}

/* ---- streams ---- */

EXPORT int cuStreamCreate(stream **out, unsigned flags);
int cuStreamCreate(stream **out, unsigned flags) {
  (void)flags;
  IN_CONTEXT;
  *out = calloc(1, sizeof **out);
  (*out)->last = &(*out)->first;
  return SUCCESS;
}

EXPORT int cuStreamSynchronize(stream *s);
int cuStreamSynchronize(stream *s) {
  IN_CONTEXT;
  if (s->recorded) return NOT_SUPPORTED;
  pthread_mutex_lock(&one);
  while (!drain(s)) { /* other threads run what it waits for */
    pthread_mutex_unlock(&one);
    sched_yield();
    pthread_mutex_lock(&one);
  }
  done.waits++;
  pthread_mutex_unlock(&one);
  return SUCCESS;
}

EXPORT int cuStreamQuery(stream *s);
int cuStreamQuery(stream *s) {
  IN_CONTEXT;
  if (s->recorded) return NOT_SUPPORTED;
  pthread_mutex_lock(&one);
  int all = drain(s);
  pthread_mutex_unlock(&one);
  return all ? SUCCESS : NOT_READY;
}

EXPORT int cuStreamDestroy_v2(stream *s);
int cuStreamDestroy_v2(stream *s) {
  int status = cuStreamSynchronize(s);
  free(s);
  return status;
}

EXPORT int cuLaunchKernel(kernel *k, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                          unsigned threads_z, unsigned shared, stream *s, void **params, void **extra);
int cuLaunchKernel(kernel *k, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned shared, stream *s, void **params, void **extra) {
  size_t bytes = 0, count = 0;
  IN_CONTEXT;
  if (x == 0 || y == 0 || y > 65535 || z == 0 || z > 65535 || threads == 0 || threads > 1024 || threads_y != 1 ||
      threads_z != 1 || shared != 0 || extra)
    return INVALID_VALUE;
  for (; k->size(count) > 0; count++)
    bytes += (k->size(count) + 15) / 16 * 16;
  pthread_mutex_lock(&one);
  operation *o = enqueue(s, bytes + 16);
  char *at = (char *)(((uintptr_t)o->data + 15) / 16 * 16);
  o->kernel = k;
  o->x = x;
  o->y = y;
  o->z = z;
  o->threads = (int)threads;
  for (size_t i = 0; i < count; i++) {
    o->arg[i] = memcpy(at, params[i], k->size(i));
    at += (k->size(i) + 15) / 16 * 16;
  }
  pthread_mutex_unlock(&one);
  return SUCCESS;
}

/* CUlaunchConfig, with one CUlaunchAttribute. Kernels run one after the other here, so only the request is checked. */
typedef struct {
  int id, unused, value[16];
} attribute;
typedef struct {
  unsigned groups[3], threads[3], shared;
  stream *stream;
  const attribute *attributes;
  unsigned count;
} config;

EXPORT int cuLaunchKernelEx(const config *c, kernel *k, void **params, void **extra);
int cuLaunchKernelEx(const config *c, kernel *k, void **params, void **extra) {
  enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
  if (c->count != 1 || c->attributes->id != PROGRAMMATIC_STREAM_SERIALIZATION || c->attributes->value[0] != 1 ||
      setting("LP_FAKE_CUDA_SM", 80) < 90)
    return INVALID_VALUE;
  done.overlaps++;
  return cuLaunchKernel(k, c->groups[0], c->groups[1], c->groups[2], c->threads[0], c->threads[1], c->threads[2],
                        c->shared, c->stream, params, extra);
}

/* ---- work that other libraries enqueue (fake/cublas.c, fake/nccl.c) ---- */

/* The number of the calling thread's GPU; -1: it has none. */
EXPORT int lp_fake_device(void);
int lp_fake_device(void) {
  return context ? (int)(context - contexts) : -1;
}

static void *enqueue_other(stream *s, const void *data, size_t bytes, operation **out) {
  operation *o = *out = enqueue(s, bytes + 16);
  return o->arg[0] = memcpy((char *)(((uintptr_t)o->data + 15) / 16 * 16), data, bytes);
}

/* `attempt` runs until it returns another number than 0, in the order of the stream, and may change the data. */
EXPORT void lp_fake_enqueue_attempts(stream *s, int (*attempt)(void *data), const void *data, size_t bytes);
void lp_fake_enqueue_attempts(stream *s, int (*attempt)(void *data), const void *data, size_t bytes) {
  operation *o;
  pthread_mutex_lock(&one);
  (void)enqueue_other(s, data, bytes, &o);
  o->attempt = attempt;
  pthread_mutex_unlock(&one);
}

EXPORT void lp_fake_enqueue(stream *s, void (*run)(const void *data), const void *data, size_t bytes);
void lp_fake_enqueue(stream *s, void (*run)(const void *data), const void *data, size_t bytes) {
  operation *o;
  pthread_mutex_lock(&one);
  (void)enqueue_other(s, data, bytes, &o);
  o->run = run;
  pthread_mutex_unlock(&one);
}

EXPORT int lp_fake_is_ours(const void *at, size_t bytes);
int lp_fake_is_ours(const void *at, size_t bytes) {
  return is_ours(at, bytes);
}

EXPORT int lp_fake_is_recorded(const stream *s);
int lp_fake_is_recorded(const stream *s) {
  return s->recorded != NULL;
}

/* ---- graphs: a launch runs the recorded work ---- */

EXPORT int cuStreamBeginCapture_v2(stream *s, int mode);
int cuStreamBeginCapture_v2(stream *s, int mode) {
  (void)mode;
  IN_CONTEXT;
  if (setting("LP_FAKE_CUDA_GRAPHS", 1) == 0) return NOT_SUPPORTED;
  s->recorded = calloc(1, sizeof *s->recorded);
  s->recorded->last = &s->recorded->first;
  return SUCCESS;
}

EXPORT int cuStreamEndCapture(stream *s, graph **out);
int cuStreamEndCapture(stream *s, graph **out) {
  *out = s->recorded;
  s->recorded = NULL;
  return SUCCESS;
}

EXPORT int cuGraphInstantiate(graph **out, graph *from, void **problem, char *log, size_t size);
int cuGraphInstantiate(graph **out, graph *from, void **problem, char *log, size_t size) {
  (void)problem, (void)log, (void)size;
  *out = calloc(1, sizeof **out);
  (*out)->first = from->first;
  from->first = NULL;
  return SUCCESS;
}

NEWER int cuGraphInstantiateWithFlags(graph **out, graph *from, unsigned long long flags);
int cuGraphInstantiateWithFlags(graph **out, graph *from, unsigned long long flags) {
  (void)flags;
  return cuGraphInstantiate(out, from, NULL, NULL, 0);
}

EXPORT int cuGraphDestroy(graph *g);
int cuGraphDestroy(graph *g) {
  while (g->first) {
    operation *o = g->first;
    g->first = o->next;
    free(o);
  }
  free(g);
  return SUCCESS;
}

EXPORT int cuGraphExecDestroy(graph *g);
int cuGraphExecDestroy(graph *g) {
  return cuGraphDestroy(g);
}

EXPORT int cuGraphLaunch(graph *g, stream *s);
int cuGraphLaunch(graph *g, stream *s) {
  IN_CONTEXT;
  pthread_mutex_lock(&one);
  enqueue(s, 0)->graph = g;
  pthread_mutex_unlock(&one);
  return SUCCESS;
}

/* ---- memory ---- */

EXPORT int cuMemAlloc_v2(uint64_t *out, size_t bytes);
int cuMemAlloc_v2(uint64_t *out, size_t bytes) {
  IN_CONTEXT;
  if (bytes == 0) return INVALID_VALUE;
  pthread_mutex_lock(&one);
  int status = reserve(out, bytes);
  pthread_mutex_unlock(&one);
  return status;
}

EXPORT int cuMemFree_v2(uint64_t address);
int cuMemFree_v2(uint64_t address) {
  IN_CONTEXT;
  pthread_mutex_lock(&one);
  int status = release(address);
  pthread_mutex_unlock(&one);
  return status;
}

EXPORT int cuMemGetInfo_v2(size_t *left, size_t *all);
int cuMemGetInfo_v2(size_t *left, size_t *all) {
  IN_CONTEXT;
  *all = limit();
  *left = *all - memory_used;
  return SUCCESS;
}

static int enqueue_copy(stream *s, void *to, const void *from, int from_host, size_t bytes) {
  pthread_mutex_lock(&one);
  operation *o = enqueue(s, from_host ? bytes : 0);
  o->to = to;
  o->from = from_host ? memcpy(o->data, from, bytes) : from;
  o->bytes = bytes;
  pthread_mutex_unlock(&one);
  return SUCCESS;
}

EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, stream *s);
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, stream *s) {
  IN_CONTEXT;
  if (!is_ours((void *)(uintptr_t)to, bytes)) return INVALID_VALUE;
  pthread_mutex_lock(&one);
  operation *o = enqueue(s, 0);
  o->to = (void *)(uintptr_t)to;
  o->value = value;
  o->bytes = bytes;
  pthread_mutex_unlock(&one);
  return SUCCESS;
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, stream *s);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, stream *s) {
  IN_CONTEXT;
  if (!is_ours((void *)(uintptr_t)to, bytes) || is_ours(from, 1)) return INVALID_VALUE;
  return enqueue_copy(s, (void *)(uintptr_t)to, from, 1, bytes);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, stream *s);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, stream *s) {
  IN_CONTEXT;
  if (!is_ours((void *)(uintptr_t)from, bytes) || is_ours(to, 1)) return INVALID_VALUE;
  return enqueue_copy(s, to, (void *)(uintptr_t)from, 0, bytes);
}

/* Within the GPU's memory. */
EXPORT int cuMemcpy2DAsync_v2(const lp_cuda_copy_2d *copy, stream *s);
int cuMemcpy2DAsync_v2(const lp_cuda_copy_2d *copy, stream *s) {
  IN_CONTEXT;
  if (copy->from_kind != LP_CUDA_MEMORY_DEVICE || copy->to_kind != LP_CUDA_MEMORY_DEVICE || copy->from_x != 0 ||
      copy->from_y != 0 || copy->to_x != 0 || copy->to_y != 0 || copy->width > copy->from_pitch ||
      copy->width > copy->to_pitch || copy->width == 0 || copy->height == 0)
    return INVALID_VALUE;
  const size_t last = copy->height - 1;
  char *to = (char *)(uintptr_t)copy->to;
  const char *from = (const char *)(uintptr_t)copy->from;
  if (!is_ours(to, last * copy->to_pitch + copy->width) || !is_ours(from, last * copy->from_pitch + copy->width))
    return INVALID_VALUE;
  for (size_t i = 0; i < copy->height; i++)
    (void)enqueue_copy(s, to + i * copy->to_pitch, from + i * copy->from_pitch, 0, copy->width);
  return SUCCESS;
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, stream *s);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, stream *s) {
  IN_CONTEXT;
  if (!is_ours((void *)(uintptr_t)to, bytes) || !is_ours((void *)(uintptr_t)from, bytes)) return INVALID_VALUE;
  return enqueue_copy(s, (void *)(uintptr_t)to, (void *)(uintptr_t)from, 0, bytes);
}
