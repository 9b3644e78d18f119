/* OpenCL through its loader, opened at run time: the calls and numbers of the standard's 1.2 that are needed. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu.h"

enum {
  CL_SUCCESS = 0,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_OUT_OF_HOST_MEMORY = -6,
  CL_INVALID_WORK_GROUP_SIZE = -54,
  CL_DEVICE_NAME = 0x102B,
  CL_PROGRAM_BUILD_LOG = 0x1183
};
static const uint64_t device_type_gpu = 4, device_type_all = 0xFFFFFFFF;
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
  X(clEnqueueUnmapMemObject, int32_t, (void *, void *, void *, uint32_t, void *, void *))                              \
  X(clFinish, int32_t, (void *))

struct lp_opencl {
#define MEMBER(name, result, parameters) result(*name) parameters;
  FUNCTIONS(MEMBER)
#undef MEMBER
  void *library, *device, *context, *queue, *program;
  int32_t error; /* the first that was not success */
  char name[128], text[96];
};

static bool note(lp_opencl *cl, int32_t status) {
  if (status != CL_SUCCESS && cl->error == CL_SUCCESS) cl->error = status;
  return status == CL_SUCCESS;
}

const char *lp_opencl_error(const lp_opencl *cl) {
  switch (cl->error) {
  case CL_SUCCESS:
    return "no error";
  case CL_MEM_OBJECT_ALLOCATION_FAILURE:
  case CL_OUT_OF_RESOURCES:
  case CL_OUT_OF_HOST_MEMORY:
    return "out of GPU memory";
  case CL_INVALID_WORK_GROUP_SIZE:
    return "a kernel's groups have more threads than the GPU allows";
  default:
    return cl->text;
  }
}

const char *lp_opencl_device(const lp_opencl *cl) {
  return cl->name;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* ISO C has no conversion from object to function pointers; POSIX promises that they are alike. */
static bool find_functions(lp_opencl *cl) {
  cl->library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (cl->library == NULL) return false;
  bool all = true;
  void *symbol;
#define FIND(fn, result, parameters)                                                                                   \
  symbol = dlsym(cl->library, #fn);                                                                                    \
  memcpy(&cl->fn, &symbol, sizeof symbol);                                                                             \
  all = all && symbol != NULL;
  FUNCTIONS(FIND)
#undef FIND
  return all;
}

/* The first GPU of any platform, else the first device of any kind. */
static bool find_device(lp_opencl *cl) {
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

static lp_status report_build(lp_opencl *cl, const char *file, lp_diag *diag) {
  char log[2048] = "";
  (void)cl->clGetProgramBuildInfo(cl->program, cl->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
  log[strcspn(log, "\n")] = '\0';
  return lp_error(diag, LP_LOC_FILE(file), "the compiler of '%s' refuses the kernels: %.400s", cl->name, log);
}

static lp_status open_device(lp_opencl *cl, const char *file, const char *source, size_t size, lp_diag *diag) {
  if (!find_functions(cl)) {
    lp_status status = lp_error(diag, LP_LOC_FILE(file), "code for OpenCL, and there is no libOpenCL.so.1");
    lp_note(diag, LP_LOC_NONE,
            "install an OpenCL loader and the driver of the GPU (Debian: ocl-icd-libopencl1), or compile "
            "this side with --backend-device=cpu");
    return status;
  }
  if (!find_device(cl)) {
    lp_status status = lp_error(diag, LP_LOC_FILE(file), "code for OpenCL, and there is no OpenCL device");
    lp_note(diag, LP_LOC_NONE, "install the driver of the GPU, or compile this side with --backend-device=cpu");
    return status;
  }
  int32_t status = CL_SUCCESS;
  (void)cl->clGetDeviceInfo(cl->device, CL_DEVICE_NAME, sizeof cl->name - 1, cl->name, NULL);
  cl->context = cl->clCreateContext(NULL, 1, &cl->device, NULL, NULL, &status);
  if (note(cl, status)) cl->queue = cl->clCreateCommandQueue(cl->context, cl->device, 0, &status);
  if (note(cl, status)) cl->program = cl->clCreateProgramWithSource(cl->context, 1, &source, &size, &status);
  if (!note(cl, status))
    return lp_error(diag, LP_LOC_FILE(file), "the OpenCL device '%s' cannot be used: %s", cl->name,
                    lp_opencl_error(cl));
  if (cl->clBuildProgram(cl->program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL) != CL_SUCCESS)
    return report_build(cl, file, diag);
  return LP_OK;
}

lp_status lp_opencl_open(const char *file, const char *source, size_t size, lp_opencl **out, lp_diag *diag) {
  lp_opencl *cl = lp_alloc(sizeof *cl);
  lp_status status = open_device(cl, file, source, size, diag);
  if (status != LP_OK) {
    lp_opencl_close(cl);
    cl = NULL;
  }
  *out = cl;
  return status;
}

void lp_opencl_close(lp_opencl *cl) {
  if (cl == NULL) return;
  if (cl->program != NULL) (void)cl->clReleaseProgram(cl->program);
  if (cl->queue != NULL) (void)cl->clReleaseCommandQueue(cl->queue);
  if (cl->context != NULL) (void)cl->clReleaseContext(cl->context);
  free(cl); /* the library stays: drivers do not bear to be unloaded */
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

void *lp_opencl_kernel(lp_opencl *cl, const char *name) {
  int32_t status = CL_SUCCESS;
  return cl->clCreateKernel(cl->program, name, &status);
}

void lp_opencl_kernel_free(lp_opencl *cl, void *kernel) {
  if (kernel != NULL) (void)cl->clReleaseKernel(kernel);
}

/* A driver that cannot share mapped files copies what is only read. */
void *lp_opencl_share(lp_opencl *cl, void *host, size_t bytes, bool read_only) {
  int32_t status = CL_SUCCESS;
  void *memory = cl->clCreateBuffer(cl->context, (read_only ? mem_read_only : mem_read_write) | mem_use_host_ptr, bytes,
                                    host, &status);
  if (status != CL_SUCCESS && read_only)
    memory = cl->clCreateBuffer(cl->context, mem_read_only | mem_copy_host_ptr, bytes, host, &status);
  return note(cl, status) ? memory : NULL;
}

void lp_opencl_release(lp_opencl *cl, void *memory) {
  if (memory != NULL) (void)cl->clReleaseMemObject(memory);
}

bool lp_opencl_unmap(lp_opencl *cl, void *memory, void *mapped) {
  return note(cl, cl->clEnqueueUnmapMemObject(cl->queue, memory, mapped, 0, NULL, NULL));
}

void *lp_opencl_map(lp_opencl *cl, void *memory, size_t bytes) {
  int32_t status = CL_SUCCESS;
  void *mapped = cl->clEnqueueMapBuffer(cl->queue, memory, 1, map_read_write, 0, bytes, 0, NULL, NULL, &status);
  return note(cl, status) ? mapped : NULL;
}

bool lp_opencl_set(lp_opencl *cl, void *kernel, int32_t arg, size_t size, const void *value) {
  return note(cl, cl->clSetKernelArg(kernel, (uint32_t)arg, size, value));
}

bool lp_opencl_enqueue(lp_opencl *cl, void *kernel, int64_t x, int64_t y, int32_t threads) {
  if (x <= 0 || y <= 0) return true;
  const size_t local[2] = {(size_t)threads, 1}, global[2] = {(size_t)x * (size_t)threads, (size_t)y};
  return note(cl, cl->clEnqueueNDRangeKernel(cl->queue, kernel, 2, NULL, global, local, 0, NULL, NULL));
}

bool lp_opencl_finish(lp_opencl *cl) {
  (void)note(cl, cl->clFinish(cl->queue));
  if (cl->error != CL_SUCCESS) snprintf(cl->text, sizeof cl->text, "OpenCL error %d", (int)cl->error);
  return cl->error == CL_SUCCESS;
}
