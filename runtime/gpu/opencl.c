/* OpenCL through its loader, opened at run time: the calls and constants of OpenCL 1.2 that it uses. */
#include "base/library.h"
#include "runtime/gpu/api.h"

#include <pthread.h>

enum {
  CL_SUCCESS = 0,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_OUT_OF_HOST_MEMORY = -6,
  CL_INVALID_WORK_GROUP_SIZE = -54,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_NAME = 0x102B,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_DEVICE_HALF_FP_CONFIG = 0x1033,
  CL_PROGRAM_BUILD_LOG = 0x1183
};
static const uint64_t device_type_gpu = 4, device_type_all = 0xFFFFFFFF;
static const uint64_t fp_denorm = 1, fp_round_to_nearest = 4;
static const uint64_t mem_read_write = 1, mem_read_only = 4, mem_use_host_ptr = 8, mem_copy_host_ptr = 32;
static const uint64_t map_read_write = 3;

/* name, result, parameters */
#define FUNCTIONS(X)                                                                                                   \
  X(clGetPlatformIDs, int32_t, (uint32_t, void **, uint32_t *))                                                        \
  X(clGetDeviceIDs, int32_t, (void *, uint64_t, uint32_t, void **, uint32_t *))                                        \
  X(clGetDeviceInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                                            \
  X(clCreateContext, void *, (const intptr_t *, uint32_t, void *const *, void *, void *, int32_t *))                   \
  X(clReleaseContext, int32_t, (void *))                                                                               \
  X(clCreateCommandQueue, void *, (void *, void *, uint64_t, int32_t *))                                               \
  X(clReleaseCommandQueue, int32_t, (void *))                                                                          \
  X(clCreateProgramWithSource, void *, (void *, uint32_t, const char **, const size_t *, int32_t *))                   \
  X(clBuildProgram, int32_t, (void *, uint32_t, void *const *, const char *, void *, void *))                          \
  X(clGetProgramBuildInfo, int32_t, (void *, void *, uint32_t, size_t, void *, size_t *))                              \
  X(clReleaseProgram, int32_t, (void *))                                                                               \
  X(clCreateKernel, void *, (void *, const char *, int32_t *))                                                         \
  X(clReleaseKernel, int32_t, (void *))                                                                                \
  X(clSetKernelArg, int32_t, (void *, uint32_t, size_t, const void *))                                                 \
  X(clEnqueueNDRangeKernel, int32_t,                                                                                   \
    (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, void *, void *))              \
  X(clCreateBuffer, void *, (void *, uint64_t, size_t, void *, int32_t *))                                             \
  X(clReleaseMemObject, int32_t, (void *))                                                                             \
  X(clEnqueueMapBuffer, void *,                                                                                        \
    (void *, void *, uint32_t, uint64_t, size_t, size_t, uint32_t, void *, void *, int32_t *))                         \
  X(clEnqueueCopyBuffer, int32_t, (void *, void *, void *, size_t, size_t, size_t, uint32_t, void *, void *))          \
  X(clEnqueueUnmapMemObject, int32_t, (void *, void *, void *, uint32_t, void *, void *))                              \
  X(clFinish, int32_t, (void *))

struct lp_gpu_device {
#define MEMBER(name, result, parameters) result(*name) parameters;
  FUNCTIONS(MEMBER)
#undef MEMBER
  void *device, *context, *program;
  char name[128];
  int32_t arithmetic;  /* see find_arithmetic */
  pthread_mutex_t one; /* guards kernels, which hold their arguments */
};

struct lp_gpu_queue {
  lp_gpu_device *cl;
  void *native;
  int32_t error; /* the first error since `finish` */
  char text[96]; /* the message of the last `finish` */
};

static bool note(lp_gpu_queue *queue, int32_t status) {
  if (status != CL_SUCCESS && queue->error == CL_SUCCESS) queue->error = status;
  return status == CL_SUCCESS;
}

static const char *name_of(int32_t error, char text[96]) {
  switch (error) {
  case CL_SUCCESS:
    return "no error";
  case CL_MEM_OBJECT_ALLOCATION_FAILURE:
  case CL_OUT_OF_RESOURCES:
  case CL_OUT_OF_HOST_MEMORY:
    return "out of GPU memory";
  case CL_INVALID_WORK_GROUP_SIZE:
    return "a kernel's groups have more threads than the GPU allows";
  default:
    snprintf(text, 96, "OpenCL error %d", (int)error);
    return text;
  }
}

static const char *device_name(const lp_gpu_device *cl) {
  return cl->name;
}

static int32_t arithmetic_of(const lp_gpu_device *cl) {
  return cl->arithmetic;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool find_functions(lp_gpu_device *cl) {
#define ENTRY(fn, result, parameters) {#fn, &cl->fn},
  const lp_library_function functions[] = {FUNCTIONS(ENTRY)};
#undef ENTRY
  return lp_library_load("libOpenCL.so.1", functions, LP_COUNT(functions));
}

/* The first GPU of any platform, else the first device of any kind. */
static bool find_device(lp_gpu_device *cl) {
  enum { MOST = 16 };
  void *platform[MOST];
  uint32_t count = 0, found = 0;
  if (cl->clGetPlatformIDs(MOST, platform, &count) != CL_SUCCESS) return false;
  if (count > MOST) count = MOST;
  for (uint32_t i = 0; i < 2 * count; i++) {
    uint64_t type = i < count ? device_type_gpu : device_type_all;
    if (cl->clGetDeviceIDs(platform[i % count], type, 1, &cl->device, &found) == CL_SUCCESS && found > 0) return true;
  }
  return false;
}

static bool has_extension(const lp_gpu_device *cl, const char *name) {
  size_t size = 0, length = strlen(name);
  if (cl->clGetDeviceInfo(cl->device, CL_DEVICE_EXTENSIONS, 0, NULL, &size) != CL_SUCCESS) return false;
  char *list = lp_alloc(size + 1);
  bool has = false;
  if (cl->clGetDeviceInfo(cl->device, CL_DEVICE_EXTENSIONS, size, list, NULL) == CL_SUCCESS)
    for (const char *at = list; (at = strstr(at, name)) && !has; at += length)
      has = (at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
  free(list);
  return has;
}

/* 1: the device multiplies floats only; 2: a GPU that multiplies halves too; 3: halves that may be subnormal. Launch
 * lists name these numbers as CUDA's name architectures. Processors that have halves widen them. */
static int32_t find_arithmetic(const lp_gpu_device *cl) {
  uint64_t type = 0, halves = 0;
  (void)cl->clGetDeviceInfo(cl->device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  if (!(type & device_type_gpu) || !has_extension(cl, "cl_khr_fp16")) return 1;
  (void)cl->clGetDeviceInfo(cl->device, CL_DEVICE_HALF_FP_CONFIG, sizeof halves, &halves, NULL);
  if (!(halves & fp_round_to_nearest)) return 1;
  return halves & fp_denorm ? 3 : 2;
}

static lp_status report_build(lp_gpu_device *cl, const char *file, lp_diag *diag) {
  size_t size = 0; /* with the final NUL; an array that is shorter stays empty */
  (void)cl->clGetProgramBuildInfo(cl->program, cl->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  LP_OWNED(lp_free_at) char *log = lp_alloc(size + 1);
  log[0] = log[size] = '\0';
  (void)cl->clGetProgramBuildInfo(cl->program, cl->device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
  log[strcspn(log, "\n")] = '\0';
  lp_status status =
      lp_error(diag, LP_LOC_FILE(file), "the compiler of '%s' refuses the kernels: %.400s", cl->name, log);
  return status;
}

static lp_status report_absent(const char *file, const char *what, const char *install, lp_diag *diag) {
  lp_status status = lp_error(diag, LP_LOC_FILE(file), "code for OpenCL, and there is no %s", what);
  lp_note(diag, LP_LOC_NONE, "install %s, or compile this side with --backend-device=cpu or --backend-cloud=cpu",
          install);
  return status;
}

static lp_status open_device(lp_gpu_device *cl, const lp_gpu_text *text, lp_diag *diag) {
  if (!find_functions(cl))
    return report_absent(text->file, "libOpenCL.so.1",
                         "an OpenCL loader and the driver of the GPU (Debian: ocl-icd-libopencl1)", diag);
  if (!find_device(cl)) return report_absent(text->file, "OpenCL device", "the driver of the GPU", diag);
  int32_t status = CL_SUCCESS;
  char what[96];
  const char *source = text->source;
  (void)cl->clGetDeviceInfo(cl->device, CL_DEVICE_NAME, sizeof cl->name - 1, cl->name, NULL);
  cl->arithmetic = find_arithmetic(cl);
  cl->context = cl->clCreateContext(NULL, 1, &cl->device, NULL, NULL, &status);
  if (status == CL_SUCCESS) cl->program = cl->clCreateProgramWithSource(cl->context, 1, &source, &text->size, &status);
  if (status != CL_SUCCESS)
    return lp_error(diag, LP_LOC_FILE(text->file), "the OpenCL device '%s' cannot be used: %s", cl->name,
                    name_of(status, what));
  if (cl->clBuildProgram(cl->program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL) != CL_SUCCESS)
    return report_build(cl, text->file, diag);
  return LP_OK;
}

static void close_device(lp_gpu_device *cl) {
  if (!cl) return;
  if (cl->program) (void)cl->clReleaseProgram(cl->program);
  if (cl->context) (void)cl->clReleaseContext(cl->context);
  pthread_mutex_destroy(&cl->one);
  free(cl); /* the library stays open: drivers crash when they are unloaded */
}

static lp_status opencl_open(const lp_gpu_text *text, lp_gpu_device **out, lp_diag *diag) {
  lp_gpu_device *cl = lp_alloc(sizeof *cl);
  pthread_mutex_init(&cl->one, NULL);
  lp_status status = open_device(cl, text, diag);
  if (status != LP_OK) {
    close_device(cl);
    cl = NULL;
  }
  *out = cl;
  return status;
}

static void *create_kernel(lp_gpu_device *cl, const char *name) {
  int32_t status = CL_SUCCESS;
  return cl->clCreateKernel(cl->program, name, &status);
}

static void free_kernel(lp_gpu_device *cl, void *kernel) {
  if (kernel) (void)cl->clReleaseKernel(kernel);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static lp_gpu_queue *create_queue(lp_gpu_device *cl) {
  lp_gpu_queue *queue = lp_alloc(sizeof *queue);
  int32_t status = CL_SUCCESS;
  queue->cl = cl;
  queue->native = cl->clCreateCommandQueue(cl->context, cl->device, 0, &status);
  (void)note(queue, status);
  return queue;
}

static void free_queue(lp_gpu_queue *queue) {
  if (!queue) return;
  if (queue->native) (void)queue->cl->clReleaseCommandQueue(queue->native);
  free(queue);
}

static bool set_argument(lp_gpu_queue *queue, const lp_gpu_work *work, int32_t i) {
  const lp_gpu_value *value = &work->arg[i];
  const void *from = value->is_memory ? (const void *)&value->memory : &value->size;
  size_t size = value->is_memory ? sizeof value->memory : sizeof value->size;
  return note(queue, queue->cl->clSetKernelArg(work->kernel, (uint32_t)i, size, from));
}

static bool launch(lp_gpu_queue *queue, const lp_gpu_work *work) {
  const size_t local[2] = {(size_t)work->threads, 1};
  const size_t global[2] = {(size_t)work->groups[0] * local[0], (size_t)work->groups[1]};
  bool done = true;
  pthread_mutex_lock(&queue->cl->one);
  for (int32_t i = 0; i < work->count && done; i++)
    done = set_argument(queue, work, i);
  done = done && note(queue, queue->cl->clEnqueueNDRangeKernel(queue->native, work->kernel, 2, NULL, global, local, 0,
                                                               NULL, NULL));
  pthread_mutex_unlock(&queue->cl->one);
  return done;
}

static bool finish(lp_gpu_queue *queue) {
  if (queue->native) (void)note(queue, queue->cl->clFinish(queue->native));
  bool well = queue->error == CL_SUCCESS;
  snprintf(queue->text, sizeof queue->text, "%s", name_of(queue->error, (char[96]){0}));
  if (queue->native) queue->error = CL_SUCCESS;
  return well;
}

static const char *error_of(const lp_gpu_queue *queue) {
  return queue->text;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* If the driver cannot share mapped files, read-only memory is copied. */
static void *share(lp_gpu_queue *queue, void *host, size_t bytes, bool read_only) {
  lp_gpu_device *cl = queue->cl;
  int32_t status = CL_SUCCESS;
  void *memory = cl->clCreateBuffer(cl->context, (read_only ? mem_read_only : mem_read_write) | mem_use_host_ptr, bytes,
                                    host, &status);
  if (status != CL_SUCCESS && read_only)
    memory = cl->clCreateBuffer(cl->context, mem_read_only | mem_copy_host_ptr, bytes, host, &status);
  return note(queue, status) ? memory : NULL;
}

static void release(lp_gpu_device *cl, void *memory) {
  if (memory) (void)cl->clReleaseMemObject(memory);
}

static bool unmap(lp_gpu_queue *queue, void *memory, void *mapped) {
  return note(queue, queue->cl->clEnqueueUnmapMemObject(queue->native, memory, mapped, 0, NULL, NULL));
}

static void *map(lp_gpu_queue *queue, void *memory, size_t bytes) {
  int32_t status = CL_SUCCESS;
  void *mapped =
      queue->cl->clEnqueueMapBuffer(queue->native, memory, 1, map_read_write, 0, bytes, 0, NULL, NULL, &status);
  return note(queue, status) ? mapped : NULL;
}

static bool move(lp_gpu_queue *queue, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes) {
  return note(queue,
              queue->cl->clEnqueueCopyBuffer(queue->native, from, to, from_offset, to_offset, bytes, 0, NULL, NULL));
}

const lp_gpu_api lp_gpu_opencl = {
    .language = "opencl",
    .open = opencl_open,
    .close = close_device,
    .device_name = device_name,
    .architecture = arithmetic_of,
    .kernel = create_kernel,
    .kernel_free = free_kernel,
    .queue_create = create_queue,
    .queue_free = free_queue,
    .launch = launch,
    .finish = finish,
    .error = error_of,
    .release = release,
    .share = share,
    .unmap = unmap,
    .map = map,
    .move = move,
};
