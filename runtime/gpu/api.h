/* One table of functions for the parts of OpenCL and CUDA that this folder uses. Libraries are opened when they are
 * first needed, so that llmpart is linked with none. */
#pragma once

#include "base/base.h"
#include "runtime/collective/collective.h"

enum { LP_GPU_MOST_ARGS = 64 }; /* of a kernel */

typedef struct lp_gpu_device lp_gpu_device; /* a GPU and the kernels compiled for it; any thread may use it */
typedef struct lp_gpu_queue lp_gpu_queue;   /* runs its work in order; one thread at a time may use it */

typedef struct {
  const char *file, *source; /* path for messages */
  size_t size;
  int32_t number; /* of the GPU that runs them, among those that this process sees */
} lp_gpu_text;

/* An argument of a kernel: memory, or a size. The kernel reads the numbers at `by` and `at`, one for each group of the
 * third axis, whenever it runs or is replayed. */
typedef struct {
  bool is_memory;
  void *memory;   /* NULL is allowed */
  const void *by; /* on the GPU: numbers that are multiplied by `scale` and added to `memory`; NULL: none */
  int64_t scale;
  const void *at; /* on the GPU: the sizes; NULL: the size is `size` */
  int64_t size;
} lp_gpu_value;

typedef struct {
  void *kernel;
  int64_t groups[3]; /* all at least 1; the third is 1 unless the interface `spreads` */
  int32_t threads, count;
  bool overlaps;           /* the kernel itself waits for the end of the one before */
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
  void *y, *workspace;    /* [lp_gpu_library.workspace] bytes */
} lp_gpu_product;

typedef struct {
  const char *name; /* "cuBLASLt 12.9.1" */
  size_t workspace; /* bytes */
} lp_gpu_library;

/* `count` runs of bytes, which begin every `to_apart` bytes of the target and every `from_apart` of the source. */
typedef enum { LP_GPU_TO_HOST, LP_GPU_FROM_HOST, LP_GPU_WITHIN } lp_gpu_direction;
typedef struct {
  lp_gpu_direction direction;
  char *to;
  const char *from;
  size_t to_apart, from_apart, run, count;
} lp_gpu_rows;

typedef struct {
  const char *language; /* the language that launches.json names */
  /* The GPU computes in its own memory, and the interface has `reserve` and `copy`. Otherwise it computes in the host's
   * memory, and the interface has `share`, `map`, `unmap` and `move`. */
  bool apart;
  /* Kernels can read arguments on the GPU, and grids have a third axis. Implies `apart`. */
  bool spreads;

  /* Finds a GPU and compiles the kernels. If a driver or library is missing, reports which one, and how to install
   * it. */
  lp_status (*open)(const lp_gpu_text *text, lp_gpu_device **out, lp_diag *diag);
  void (*close)(lp_gpu_device *device);                    /* NULL is allowed */
  const char *(*device_name)(const lp_gpu_device *device); /* "NVIDIA H200" */
  /* The architecture that kernels are compiled for, as 90; OpenCL's number for the arithmetic (opencl.c). */
  int32_t (*architecture)(const lp_gpu_device *device);
  void *(*kernel)(lp_gpu_device *device, const char *name); /* NULL: there is none */
  void (*kernel_free)(lp_gpu_device *device, void *kernel);
  lp_gpu_queue *(*queue_create)(lp_gpu_device *device); /* never NULL; `finish` reports its errors */
  void (*queue_free)(lp_gpu_queue *queue);              /* NULL is allowed */

  bool (*launch)(lp_gpu_queue *queue, const lp_gpu_work *work);
  /* Waits for all enqueued work. False: something failed since the last `finish`, and `error` gives the message. */
  bool (*finish)(lp_gpu_queue *queue);
  const char *(*error)(const lp_gpu_queue *queue);
  void (*release)(lp_gpu_device *device, void *memory); /* from share or reserve; NULL is allowed */

  /* Opens a library of products on the first call. *out is NULL when none is installed, which is no error. The three
   * members are NULL when the interface has no libraries. `takes` tells whether the library can do a product, and
   * `multiply` enqueues or records such a product. */
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

  /* A GPU as one of those of several ranks; NULL: the interface has none. `enter` makes it the calling thread's. From
   * `join` on, `gather` enqueues gathers by `ranks`, borrowed, and `finish` fails when a rank has ended. `copy_rows`
   * enqueues a copy within its memory. */
  bool (*enter)(lp_gpu_device *device);
  void (*join)(lp_gpu_device *device, const lp_collective *ranks);
  bool (*gather)(lp_gpu_queue *queue, const void *part, size_t size, void *all);
  bool (*copy_rows)(lp_gpu_queue *queue, const lp_gpu_rows *rows);
} lp_gpu_api;

extern const lp_gpu_api lp_gpu_opencl, lp_gpu_cuda;
const lp_gpu_api *lp_gpu_api_find(const char *language); /* NULL: there is none */
