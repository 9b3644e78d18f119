/* CUDA through the driver's interface, opened at run time: the calls and constants of CUDA 10.2 and newer that it
 * uses. */
#include "base/cores.h"
#include "base/library.h"
#include "runtime/gpu/cublas.h"
#include "runtime/gpu/cuda_abi.h"
#include "runtime/gpu/nvrtc.h"

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NOT_READY = LP_CUDA_ERROR_NOT_READY,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  COMPUTE_CAPABILITY_MAJOR = 75,
  COMPUTE_CAPABILITY_MINOR = 76,
  PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  OVERLAPPING_SM = 90,
  OVERLAPPING_DRIVER = 12030, /* the first that records such launches */
  STREAM_NON_BLOCKING = 1,
  CAPTURE_OF_THIS_THREAD = 1
};

/* name, symbol, parameters; all return a status. Addresses on the GPU are 64-bit integers. */
#define FUNCTIONS(X)                                                                                                   \
  X(init, cuInit, (unsigned))                                                                                          \
  X(driver_version, cuDriverGetVersion, (int *))                                                                       \
  X(device_count, cuDeviceGetCount, (int *))                                                                           \
  X(device_get, cuDeviceGet, (int *, int))                                                                             \
  X(device_name, cuDeviceGetName, (char *, int, int))                                                                  \
  X(attribute, cuDeviceGetAttribute, (int *, int, int))                                                                \
  X(context_retain, cuDevicePrimaryCtxRetain, (void **, int))                                                          \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (int))                                                              \
  X(context_set, cuCtxSetCurrent, (void *))                                                                            \
  X(module_load, cuModuleLoadData, (void **, const void *))                                                            \
  X(module_unload, cuModuleUnload, (void *))                                                                           \
  X(function, cuModuleGetFunction, (void **, void *, const char *))                                                    \
  X(stream_create, cuStreamCreate, (void **, unsigned))                                                                \
  X(stream_destroy, cuStreamDestroy_v2, (void *))                                                                      \
  X(synchronize, cuStreamSynchronize, (void *))                                                                        \
  X(query, cuStreamQuery, (void *))                                                                                    \
  X(launch, cuLaunchKernel,                                                                                            \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))          \
  X(reserve, cuMemAlloc_v2, (uint64_t *, size_t))                                                                      \
  X(release, cuMemFree_v2, (uint64_t))                                                                                 \
  X(room, cuMemGetInfo_v2, (size_t *, size_t *))                                                                       \
  X(fill, cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                                                  \
  X(copy_in, cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                                           \
  X(copy_out, cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))                                                \
  X(copy_within, cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *))                                           \
  X(copy_rows, cuMemcpy2DAsync_v2, (const lp_cuda_copy_2d *, void *))                                                  \
  X(record, cuStreamBeginCapture_v2, (void *, int))                                                                    \
  X(recorded, cuStreamEndCapture, (void *, void **))                                                                   \
  X(graph_free, cuGraphDestroy, (void *))                                                                              \
  X(graph_launch, cuGraphLaunch, (void *, void *))                                                                     \
  X(graph_made_free, cuGraphExecDestroy, (void *))                                                                     \
  X(error_text, cuGetErrorString, (int, const char **))

/* A driver has the second since CUDA 11.4. The first stays in newer ones for older programs. */
#define GRAPH_FUNCTIONS(X)                                                                                             \
  X(graph_make_old, cuGraphInstantiate, (void **, void *, void **, char *, size_t))                                    \
  X(graph_make, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))

/* CUlaunchAttribute and CUlaunchConfig */
typedef struct {
  int id, unused;
  union {
    char bytes[64];
    int number;
  } value;
} launch_attribute;
typedef struct {
  unsigned groups[3], threads[3], shared_bytes;
  void *stream;
  launch_attribute *attribute;
  unsigned attributes;
} launch_config;
/* Since CUDA 11.8. */
#define OVERLAPPING_FUNCTIONS(X)                                                                                       \
  X(launch_overlapping, cuLaunchKernelEx, (const launch_config *, void *, void **, void **))

struct lp_gpu_device {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
  FUNCTIONS(MEMBER)
  GRAPH_FUNCTIONS(MEMBER)
  OVERLAPPING_FUNCTIONS(MEMBER)
#undef MEMBER
  int device, sm; /* sm: the architecture that the kernels are compiled for */
  bool overlaps;  /* a kernel can begin before the one before it has ended */
  void *context, *module;
  char text[128]; /* its name */
  lp_cublas *cublas;
  const lp_collective *ranks; /* of which this is one's GPU; NULL: of none */
};

struct lp_gpu_queue {
  lp_gpu_device *cuda;
  void *stream;
  int error;   /* the first error since `finish` */
  int product; /* the first error of cuBLASLt since `finish` */
  bool recording;
  bool lost;      /* since `finish`: a gather was not enqueued, or will not end */
  char text[160]; /* the message of the last `finish` */
};

static bool note(lp_gpu_queue *queue, int status) {
  if (status != CUDA_SUCCESS && queue->error == CUDA_SUCCESS) queue->error = status;
  return status == CUDA_SUCCESS;
}

static const char *describe(const lp_gpu_device *cuda, int status) {
  const char *text = NULL;
  if (status == CUDA_SUCCESS) return "no error";
  if (status == CUDA_ERROR_OUT_OF_MEMORY) return "out of GPU memory";
  if (status == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) return "a kernel's groups have more threads than the GPU allows";
  return cuda->error_text(status, &text) == CUDA_SUCCESS && text ? text : "an error without a name";
}

static const char *device_name(const lp_gpu_device *cuda) {
  return cuda->text;
}

static int32_t architecture(const lp_gpu_device *cuda) {
  return cuda->sm;
}

/* The current context belongs to the thread; all code in the process shares our context. */
static bool enter(lp_gpu_queue *queue) {
  return note(queue, queue->cuda->context_set(queue->cuda->context));
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static lp_status report_absent(const char *file, const char *what, const char *remedy, lp_diag *diag) {
  lp_status status = lp_error(diag, LP_LOC_FILE(file), "code for CUDA, and there is no %s", what);
  lp_note(diag, LP_LOC_NONE, "%s, or compile this side with --backend-device=cpu or --backend-cloud=cpu", remedy);
  return status;
}

static bool load_driver(lp_gpu_device *cuda) {
#define ENTRY(name, symbol, parameters) {#symbol, &cuda->name},
  const lp_library_function functions[] = {FUNCTIONS(ENTRY)}, graphs[] = {GRAPH_FUNCTIONS(ENTRY)},
                            overlapping[] = {OVERLAPPING_FUNCTIONS(ENTRY)};
#undef ENTRY
  if (!lp_library_load("libcuda.so.1", functions, LP_COUNT(functions))) return false;
  (void)lp_library_load("libcuda.so.1", graphs, LP_COUNT(graphs));
  (void)lp_library_load("libcuda.so.1", overlapping, LP_COUNT(overlapping));
  return cuda->graph_make || cuda->graph_make_old;
}

/* A process that sees one GPU takes that one: the schedulers of clusters show each process its own. */
static lp_status choose_device(lp_gpu_device *cuda, int count, int32_t number, const char *file, lp_diag *diag) {
  if (count == 1) number = 0;
  if (number < count && cuda->device_get(&cuda->device, number) == CUDA_SUCCESS) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(file), "code for GPU number %" PRId32 " of this machine, which shows %d", number,
                  count);
}

static lp_status find_device(lp_gpu_device *cuda, const char *file, int32_t number, lp_diag *diag) {
  int count = 0;
  if (!load_driver(cuda))
    return report_absent(file, "NVIDIA driver (libcuda.so.1 of CUDA 10.2 or newer)", "install the driver", diag);
  int status = cuda->init(0);
  if (status == CUDA_SUCCESS) status = cuda->device_count(&count);
  if (status == CUDA_ERROR_NO_DEVICE || (status == CUDA_SUCCESS && count == 0))
    return report_absent(file, "NVIDIA GPU", "see what `nvidia-smi` lists and whether CUDA_VISIBLE_DEVICES hides it",
                         diag);
  if (status == CUDA_SUCCESS) LP_TRY(choose_device(cuda, count, number, file, diag));
  if (status == CUDA_SUCCESS) status = cuda->device_name(cuda->text, (int)sizeof cuda->text, cuda->device);
  if (status == CUDA_SUCCESS) status = cuda->context_retain(&cuda->context, cuda->device);
  if (status == CUDA_SUCCESS) status = cuda->context_set(cuda->context);
  if (status == CUDA_SUCCESS) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(file), "the GPU %s cannot be used: %s", cuda->text, describe(cuda, status));
}

static lp_status load_kernels(lp_gpu_device *cuda, const lp_gpu_text *text, lp_diag *diag) {
  int major = 0, minor = 0, version = 0;
  (void)cuda->attribute(&major, COMPUTE_CAPABILITY_MAJOR, cuda->device);
  (void)cuda->attribute(&minor, COMPUTE_CAPABILITY_MINOR, cuda->device);
  (void)cuda->driver_version(&version);
  const lp_cuda_target target = {.name = cuda->text, .sm = major * 10 + minor, .driver = version / 1000};
  LP_OWNED(lp_buf_free) lp_buf code = {0};
  lp_status status = lp_cuda_compile(text, &target, &code, &cuda->sm, diag);
  cuda->overlaps = cuda->launch_overlapping && cuda->sm >= OVERLAPPING_SM && version >= OVERLAPPING_DRIVER;
  if (status == LP_OK) {
    lp_buf_append(&code, "", 1); /* PTX is text */
    int loaded = cuda->module_load(&cuda->module, code.data);
    if (loaded != CUDA_SUCCESS) {
      status = lp_error(diag, LP_LOC_FILE(text->file), "the driver of '%s' does not load the kernels: %s", cuda->text,
                        describe(cuda, loaded));
      lp_note(diag, LP_LOC_NONE, "the driver knows CUDA %d.%d; install an NVRTC that is not newer", version / 1000,
              version % 1000 / 10);
    }
  }
  return status;
}

static void close_device(lp_gpu_device *cuda) {
  if (!cuda) return;
  if (cuda->context) {
    (void)cuda->context_set(cuda->context);
    lp_cublas_close(cuda->cublas);
    if (cuda->module) (void)cuda->module_unload(cuda->module);
    (void)cuda->context_release(cuda->device);
  }
  free(cuda);
}

static lp_status cuda_open(const lp_gpu_text *text, lp_gpu_device **out, lp_diag *diag) {
  lp_gpu_device *cuda = lp_alloc(sizeof *cuda);
  lp_status status = find_device(cuda, text->file, text->number, diag);
  if (status == LP_OK) status = load_kernels(cuda, text, diag);
  if (status != LP_OK) {
    close_device(cuda);
    cuda = NULL;
  }
  *out = cuda;
  return status;
}

static void *find_kernel(lp_gpu_device *cuda, const char *name) {
  void *kernel = NULL;
  return cuda->function(&kernel, cuda->module, name) == CUDA_SUCCESS ? kernel : NULL;
}

/* Kernels are released with the module. */
static void free_kernel(lp_gpu_device *cuda, void *kernel) {
  (void)cuda, (void)kernel;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static lp_gpu_queue *create_queue(lp_gpu_device *cuda) {
  lp_gpu_queue *queue = lp_alloc(sizeof *queue);
  queue->cuda = cuda;
  if (enter(queue)) (void)note(queue, cuda->stream_create(&queue->stream, STREAM_NON_BLOCKING));
  return queue;
}

static void free_queue(lp_gpu_queue *queue) {
  if (!queue) return;
  if (enter(queue) && queue->stream) (void)queue->cuda->stream_destroy(queue->stream);
  free(queue);
}

/* Launches a kernel that may begin before the one before it on the stream has ended, as a programmatic dependent
 * launch. */
static int overlap(const lp_gpu_queue *queue, const lp_gpu_work *work, void **argument) {
  launch_attribute attribute = {.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value.number = 1};
  const launch_config config = {
      .groups = {(unsigned)work->groups[0], (unsigned)work->groups[1], (unsigned)work->groups[2]},
      .threads = {(unsigned)work->threads, 1, 1},
      .stream = queue->stream,
      .attribute = &attribute,
      .attributes = 1};
  return queue->cuda->launch_overlapping(&config, work->kernel, argument, NULL);
}

/* Groups on the second and third axis are at most 65535. */
static bool launch(lp_gpu_queue *queue, const lp_gpu_work *work) {
  void *argument[LP_GPU_MOST_ARGS];
  if (work->groups[0] > INT32_MAX || work->groups[1] > UINT16_MAX || work->groups[2] > UINT16_MAX)
    return note(queue, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  for (int32_t i = 0; i < work->count; i++) {
    const lp_gpu_value *value = &work->arg[i];
    /* a size has the layout of the kernels' Size, an address and a number; memory that of their Place, of which kernels
     * that take a plain pointer read only the beginning */
    argument[i] = value->is_memory ? (void *)(uintptr_t)&value->memory : (void *)(uintptr_t)&value->at;
  }
  if (work->overlaps && queue->cuda->overlaps) return enter(queue) && note(queue, overlap(queue, work, argument));
  return enter(queue) &&
         note(queue, queue->cuda->launch(work->kernel, (unsigned)work->groups[0], (unsigned)work->groups[1],
                                         (unsigned)work->groups[2], (unsigned)work->threads, 1, 1, 0, queue->stream,
                                         argument, NULL));
}

_Static_assert(offsetof(lp_gpu_value, size) == offsetof(lp_gpu_value, at) + 8, "as the kernels' Size");
_Static_assert(offsetof(lp_gpu_value, by) == offsetof(lp_gpu_value, memory) + 8, "as the kernels' Place");
_Static_assert(offsetof(lp_gpu_value, scale) == offsetof(lp_gpu_value, by) + 8, "as the kernels' Place");

/* ---- products ---------------------------------------------------------------------------------------------------- */

static lp_status library(lp_gpu_device *cuda, const lp_gpu_library **out, lp_diag *diag) {
  int version = 0;
  (void)cuda->driver_version(&version);
  (void)cuda->context_set(cuda->context);
  if (!cuda->cublas) LP_TRY(lp_cublas_open(version / 1000, cuda->sm, &cuda->cublas, diag));
  *out = lp_cublas_library(cuda->cublas);
  return LP_OK;
}

static bool takes(lp_gpu_queue *queue, const lp_gpu_product *product) {
  return enter(queue) && lp_cublas_takes(queue->cuda->cublas, product);
}

static bool multiply(lp_gpu_queue *queue, const lp_gpu_product *product) {
  if (!enter(queue)) return false;
  int status = lp_cublas_multiply(queue->cuda->cublas, product, queue->stream);
  if (status != 0 && queue->product == 0 && !queue->recording) queue->product = status; /* a recording is retried */
  return status == 0;
}

/* ---- recordings -------------------------------------------------------------------------------------------------- */

static bool record(lp_gpu_queue *queue) {
  queue->recording = enter(queue) && queue->cuda->record(queue->stream, CAPTURE_OF_THIS_THREAD) == CUDA_SUCCESS;
  return queue->recording;
}

static int make_graph(const lp_gpu_device *cuda, void *graph, void **out) {
  return cuda->graph_make ? cuda->graph_make(out, graph, 0) : cuda->graph_make_old(out, graph, NULL, NULL, 0);
}

static void *recorded(lp_gpu_queue *queue) {
  lp_gpu_device *cuda = queue->cuda;
  void *graph = NULL, *made = NULL;
  queue->recording = false;
  int status = cuda->recorded(queue->stream, &graph);
  if (status == CUDA_SUCCESS) status = make_graph(cuda, graph, &made);
  if (graph) (void)cuda->graph_free(graph);
  return status == CUDA_SUCCESS ? made : NULL; /* the caller launches one by one instead */
}

static bool replay(lp_gpu_queue *queue, void *recording) {
  return enter(queue) && note(queue, queue->cuda->graph_launch(recording, queue->stream));
}

/* Waits for all enqueued work. A gather does not end when another rank has, so this rank gives up then. */
static int await(lp_gpu_queue *queue) {
  const lp_collective *ranks = queue->cuda->ranks;
  while (ranks && !queue->lost && queue->cuda->query(queue->stream) == CUDA_ERROR_NOT_READY) {
    queue->lost = ranks->has_ended(ranks->self);
    if (queue->lost)
      ranks->give_up(ranks->self);
    else
      lp_give_way();
  }
  return queue->cuda->synchronize(queue->stream);
}

static void free_recording(lp_gpu_queue *queue, void *recording) {
  if (!recording || !enter(queue)) return;
  (void)note(queue, await(queue));
  (void)queue->cuda->graph_made_free(recording);
}

static bool finish(lp_gpu_queue *queue) {
  if (queue->stream && enter(queue)) (void)note(queue, await(queue));
  bool well = queue->error == CUDA_SUCCESS && queue->product == 0 && !queue->lost;
  snprintf(queue->text, sizeof queue->text, "%s", describe(queue->cuda, queue->error));
  if (queue->product != 0) lp_cublas_describe(queue->cuda->cublas, queue->product, sizeof queue->text, queue->text);
  if (queue->stream) queue->error = CUDA_SUCCESS;
  queue->product = 0;
  queue->lost = false;
  return well;
}

static const char *error_of(const lp_gpu_queue *queue) {
  return queue->text;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *to_pointer(uint64_t address) {
  return (void *)(uintptr_t)address;
}

static uint64_t to_address(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}

static void *reserve(lp_gpu_queue *queue, size_t bytes) {
  uint64_t address = 0;
  if (!enter(queue) || !note(queue, queue->cuda->reserve(&address, bytes))) return NULL;
  if (note(queue, queue->cuda->fill(address, 0, bytes, queue->stream))) return to_pointer(address);
  (void)queue->cuda->release(address);
  return NULL;
}

static void release(lp_gpu_device *cuda, void *memory) {
  if (memory && cuda->context_set(cuda->context) == CUDA_SUCCESS) (void)cuda->release(to_address(memory));
}

static void room(lp_gpu_queue *queue, size_t *free_bytes, size_t *all_bytes) {
  if (enter(queue)) (void)note(queue, queue->cuda->room(free_bytes, all_bytes));
}

static bool copy(lp_gpu_queue *queue, void *to, bool to_host, const void *from, bool from_host, size_t bytes) {
  lp_gpu_device *cuda = queue->cuda;
  if (!enter(queue)) return false;
  if (from_host) return note(queue, cuda->copy_in(to_address(to), from, bytes, queue->stream));
  if (to_host) return note(queue, cuda->copy_out(to, to_address(from), bytes, queue->stream));
  return note(queue, cuda->copy_within(to_address(to), to_address(from), bytes, queue->stream));
}

/* ---- several GPUs ------------------------------------------------------------------------------------------------ */

static bool enter_device(lp_gpu_device *cuda) {
  return cuda->context_set(cuda->context) == CUDA_SUCCESS;
}

static void join(lp_gpu_device *cuda, const lp_collective *ranks) {
  cuda->ranks = ranks;
}

static bool gather(lp_gpu_queue *queue, const void *part, size_t size, void *all) {
  const lp_collective *ranks = queue->cuda->ranks;
  if (enter(queue) && ranks->gather_on_gpu(ranks->self, part, size, all, queue->stream)) return true;
  ranks->give_up(ranks->self); /* earlier gathers may never end */
  queue->lost = true;
  return false;
}

static bool copy_rows(lp_gpu_queue *queue, const lp_gpu_rows *rows) {
  const lp_cuda_copy_2d copy = {.from_kind = LP_CUDA_MEMORY_DEVICE,
                                .from = to_address(rows->from),
                                .from_pitch = rows->from_apart,
                                .to_kind = LP_CUDA_MEMORY_DEVICE,
                                .to = to_address(rows->to),
                                .to_pitch = rows->to_apart,
                                .width = rows->run,
                                .height = rows->count};
  return enter(queue) && note(queue, queue->cuda->copy_rows(&copy, queue->stream));
}

const lp_gpu_api lp_gpu_cuda = {
    .language = "cuda",
    .apart = true,
    .spreads = true,
    .open = cuda_open,
    .close = close_device,
    .device_name = device_name,
    .architecture = architecture,
    .kernel = find_kernel,
    .kernel_free = free_kernel,
    .queue_create = create_queue,
    .queue_free = free_queue,
    .launch = launch,
    .finish = finish,
    .library = library,
    .takes = takes,
    .multiply = multiply,
    .error = error_of,
    .record = record,
    .recorded = recorded,
    .replay = replay,
    .recording_free = free_recording,
    .release = release,
    .reserve = reserve,
    .room = room,
    .copy = copy,
    .enter = enter_device,
    .join = join,
    .gather = gather,
    .copy_rows = copy_rows,
};
