/* A programming interface of GPUs as one table of functions: what gpu.c and memory.c need of OpenCL and CUDA. Libraries are
 * opened when they are first needed, so that nothing is linked with them.
 */
#ifndef LP_RUNTIME_GPU_API_H
#define LP_RUNTIME_GPU_API_H

#include "base/base.h"

enum { LP_GPU_MOST_ARGS = 64 }; /* of a kernel */

typedef struct lp_gpu_device lp_gpu_device; /* a GPU and the kernels compiled for it; from any thread */
typedef struct lp_gpu_queue lp_gpu_queue;   /* does one thing after the other; one thread at a time */

typedef struct {
  const char *file, *source; /* path for messages */
  size_t size;
} lp_gpu_text;

/* An argument: memory, or a size. What lies on the GPU is read there when the kernel runs, or is replayed: one number for each
 * group of the third axis. */
typedef struct {
  bool is_memory;
  void *memory; /* NULL is allowed */
  const void
      *by; /* numbers on the GPU: the memory is `scale` bytes further for each; NULL: it is where `memory` says */
  int64_t scale;
  const void *at; /* numbers on the GPU; NULL: the size is `size` */
  int64_t size;
} lp_gpu_value;

typedef struct {
  void *kernel;
  int64_t groups[3]; /* all at least 1; the third is 1 unless the interface `spreads` */
  int32_t threads, count;
  const lp_gpu_value *arg; /* [count] */
} lp_gpu_work;

/* y[rows][n] = epilogue(scale * x[rows][k] . w[n][k] + bias) + add, done by a library. x and w are of `type`, bias[n], add and y are f32;
 * sums are f32. Rows lie one behind the other. */
typedef enum { LP_GPU_F32, LP_GPU_F16, LP_GPU_BF16 } lp_gpu_type;
typedef enum { LP_GPU_PLAIN, LP_GPU_RELU, LP_GPU_GELU_TANH } lp_gpu_epilogue;
typedef struct {
  int64_t n, k;
  lp_gpu_type type;
  lp_gpu_epilogue epilogue; /* not with `add` */
  float scale;
} lp_gpu_product_kind;

typedef struct {
  const lp_gpu_product_kind *kind;
  int64_t rows; /* at least 1 */
  const void *x, *w;
  const void *bias, *add; /* NULL is allowed */
  void *y, *workspace;    /* as many bytes as the library asks for */
} lp_gpu_product;

typedef struct {
  const char *name; /* "cuBLASLt 12.9.1" */
  size_t workspace; /* bytes */
} lp_gpu_library;

typedef struct {
  const char *language; /* of launches.json */
  /* Memory is of the GPU's own: `reserve` and `copy` are there; else it is the host's: `share`, `map`, `unmap`, `move` are. */
  bool apart;
  /* Kernels can be given numbers on the GPU, and a third axis. Memory is apart then. */
  bool spreads;

  /* Finds a GPU and compiles the kernels. What is missing is reported, with what to do about it. */
  lp_status (*open)(const lp_gpu_text *text, lp_gpu_device **out, lp_diag *diag);
  void (*close)(lp_gpu_device *device);                     /* NULL is allowed */
  const char *(*device_name)(const lp_gpu_device *device);  /* "NVIDIA H200" */
  int32_t (*architecture)(const lp_gpu_device *device);     /* that kernels are compiled for: 90; NULL: it has none */
  void *(*kernel)(lp_gpu_device *device, const char *name); /* NULL: there is none */
  void (*kernel_free)(lp_gpu_device *device, void *kernel);
  lp_gpu_queue *(*queue_create)(lp_gpu_device *device); /* never NULL: errors surface at finish */
  void (*queue_free)(lp_gpu_queue *queue);              /* NULL is allowed */

  bool (*launch)(lp_gpu_queue *queue, const lp_gpu_work *work);
  /* Waits for all that was enqueued; false when anything went wrong since the last finish, then `error` says it. */
  bool (*finish)(lp_gpu_queue *queue);
  const char *(*error)(const lp_gpu_queue *queue);
  void (*release)(lp_gpu_device *device, void *memory); /* from share or reserve; NULL is allowed */

  /* A library of products, opened when it is first asked for: *out is NULL where there is none, which is no error. NULL: the
   * interface has no such thing. `takes`: does it do this product? Then `multiply` enqueues it, between `record` and `recorded`, too. */
  lp_status (*library)(lp_gpu_device *device, const lp_gpu_library **out, lp_diag *diag);
  bool (*takes)(lp_gpu_queue *queue, const lp_gpu_product *product);
  bool (*multiply)(lp_gpu_queue *queue, const lp_gpu_product *product);

  /* Launches between `record` and `recorded` are not done but kept, to be done all at once by `replay`. NULL: there is no such
   * thing. `recorded` returns NULL when it did not work. */
  bool (*record)(lp_gpu_queue *queue);
  void *(*recorded)(lp_gpu_queue *queue);
  bool (*replay)(lp_gpu_queue *queue, void *recording);
  void (*recording_free)(lp_gpu_queue *queue, void *recording); /* waits; NULL is allowed */

  /* Memory of the host as the GPU sees it; NULL when there is no room. The host gives memory up, or takes it back when all that
   * was enqueued is done. */
  void *(*share)(lp_gpu_queue *queue, void *host, size_t bytes, bool read_only);
  bool (*unmap)(lp_gpu_queue *queue, void *memory, void *mapped);
  void *(*map)(lp_gpu_queue *queue, void *memory, size_t bytes);
  /* From one such memory to another while both are the GPU's; enqueues. */
  bool (*move)(lp_gpu_queue *queue, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes);

  /* Memory of the GPU, of zeros; NULL when there is no room. Addresses within it are the address plus an offset. */
  void *(*reserve)(lp_gpu_queue *queue, size_t bytes);
  void (*room)(lp_gpu_queue *queue, size_t *free_bytes, size_t *all_bytes);
  /* Enqueues; either side may be the host's memory, which may be used again at once if it is the source, and read after finish
   * if it is the target. */
  bool (*copy)(lp_gpu_queue *queue, void *to, bool to_host, const void *from, bool from_host, size_t bytes);
} lp_gpu_api;

extern const lp_gpu_api lp_gpu_opencl, lp_gpu_cuda;
const lp_gpu_api *lp_gpu_api_find(const char *language); /* NULL: there is none */

#endif
