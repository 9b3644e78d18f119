/* A programming interface of GPUs as one table of functions: the part of OpenCL and CUDA that this folder uses.
 * Libraries are opened when they are first needed, so that nothing is linked with them.
 */
#ifndef LP_RUNTIME_GPU_API_H
#define LP_RUNTIME_GPU_API_H

#include "base/base.h"

enum { LP_GPU_MOST_ARGS = 64 }; /* of a kernel */

typedef struct lp_gpu_device lp_gpu_device; /* a GPU and the kernels compiled for it; from any thread */
typedef struct lp_gpu_queue lp_gpu_queue;   /* runs its work in order; one thread at a time may use it */

typedef struct {
  const char *file, *source; /* path for messages */
  size_t size;
} lp_gpu_text;

/* An argument of a kernel: memory, or a size. The kernel reads numbers on the GPU each time it runs or is replayed:
 * one number for each group of the third axis. */
typedef struct {
  bool is_memory;
  void *memory;   /* NULL is allowed */
  const void *by; /* a number on the GPU, times `scale`: added to the address `memory`; NULL: adds nothing */
  int64_t scale;
  const void *at; /* the size, as a number on the GPU; NULL: it is `size` */
  int64_t size;
} lp_gpu_value;

typedef struct {
  void *kernel;
  int64_t groups[3]; /* all at least 1; the third is 1 unless the interface `spreads` */
  int32_t threads, count;
  const lp_gpu_value *arg; /* [count] */
} lp_gpu_work;

/* A product by a library: y[rows][n] = epilogue(scale * x[rows][k] . w[n][k] + bias) + add. x and w are of `type`;
 * bias[n], add, y and sums are f32. Rows are contiguous. */
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
  void *y, *workspace;    /* as many bytes as the library needs */
} lp_gpu_product;

typedef struct {
  const char *name; /* "cuBLASLt 12.9.1" */
  size_t workspace; /* bytes */
} lp_gpu_library;

typedef struct {
  const char *language; /* of launches.json */
  /* Memory is the GPU's own: the interface has `reserve` and `copy`. Else it is the host's: the interface has
   * `share`, `map`, `unmap` and `move`. */
  bool apart;
  /* Kernels can read arguments on the GPU, and grids have a third axis. Implies `apart`. */
  bool spreads;

  /* Finds a GPU and compiles the kernels. Reports what is missing, and how to get it. */
  lp_status (*open)(const lp_gpu_text *text, lp_gpu_device **out, lp_diag *diag);
  void (*close)(lp_gpu_device *device);                    /* NULL is allowed */
  const char *(*device_name)(const lp_gpu_device *device); /* "NVIDIA H200" */
  int32_t (*architecture)(
      const lp_gpu_device *device); /* that kernels are compiled for: 90; NULL: the interface has none */
  void *(*kernel)(lp_gpu_device *device, const char *name); /* NULL: there is none */
  void (*kernel_free)(lp_gpu_device *device, void *kernel);
  lp_gpu_queue *(*queue_create)(lp_gpu_device *device); /* never NULL: errors surface at finish */
  void (*queue_free)(lp_gpu_queue *queue);              /* NULL is allowed */

  bool (*launch)(lp_gpu_queue *queue, const lp_gpu_work *work);
  /* Waits for all enqueued work; false when anything failed since the last finish: `error` says what. */
  bool (*finish)(lp_gpu_queue *queue);
  const char *(*error)(const lp_gpu_queue *queue);
  void (*release)(lp_gpu_device *device, void *memory); /* from share or reserve; NULL is allowed */

  /* A library of products, opened on the first call: *out is NULL when there is none, which is no error. NULL: the
   * interface has no libraries. `takes`: can it do this product? If so `multiply` enqueues or records it. */
  lp_status (*library)(lp_gpu_device *device, const lp_gpu_library **out, lp_diag *diag);
  bool (*takes)(lp_gpu_queue *queue, const lp_gpu_product *product);
  bool (*multiply)(lp_gpu_queue *queue, const lp_gpu_product *product);

  /* Launches between `record` and `recorded` are not enqueued but recorded; `replay` enqueues all of them. NULL: the
   * interface cannot record. `recorded` returns NULL when recording failed. */
  bool (*record)(lp_gpu_queue *queue);
  void *(*recorded)(lp_gpu_queue *queue);
  bool (*replay)(lp_gpu_queue *queue, void *recording);
  void (*recording_free)(lp_gpu_queue *queue, void *recording); /* waits; NULL is allowed */

  /* Host memory as the GPU sees it; NULL when there is no room. `unmap` gives the memory to the GPU, `map` takes it
   * back after all enqueued work. */
  void *(*share)(lp_gpu_queue *queue, void *host, size_t bytes, bool read_only);
  bool (*unmap)(lp_gpu_queue *queue, void *memory, void *mapped);
  void *(*map)(lp_gpu_queue *queue, void *memory, size_t bytes);
  /* Enqueues a copy between two such memories while the GPU has both. */
  bool (*move)(lp_gpu_queue *queue, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes);

  /* The GPU's own memory, filled with zeros; NULL when there is no room. An offset may be added to its address. */
  void *(*reserve)(lp_gpu_queue *queue, size_t bytes);
  void (*room)(lp_gpu_queue *queue, size_t *free_bytes, size_t *all_bytes);
  /* Enqueues a copy. Host memory that is the source may be reused at once; host memory that is the target may be
   * read after `finish`. */
  bool (*copy)(lp_gpu_queue *queue, void *to, bool to_host, const void *from, bool from_host, size_t bytes);
} lp_gpu_api;

extern const lp_gpu_api lp_gpu_opencl, lp_gpu_cuda;
const lp_gpu_api *lp_gpu_api_find(const char *language); /* NULL: there is none */

#endif
