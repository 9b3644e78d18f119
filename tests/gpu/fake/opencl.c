/* A stand-in for the OpenCL loader: the real one (LP_OPENCL), whose device says that it is a GPU that multiplies
 * halves. PoCL's processors do not, so that kernels get functions that compute with floats and round to halves
 * (LP_OPENCL_HOST in backend/gpu/kernels/opencl_rounded.kernel). The environment sets its behaviour:
 *   LP_FAKE_OPENCL_HALVES  CL_DEVICE_HALF_FP_CONFIG: 7, or 6 for a device without subnormal halves, on which results
 *                          that would be are zero; absent: it multiplies no halves */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CL_INVALID_VALUE = -30,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_DEVICE_HALF_FP_CONFIG = 0x1033
};
static const uint64_t type_gpu = 4, type_all = 0xFFFFFFFF;

/* name, result, parameters, arguments: what is only passed on. */
#define FUNCTIONS(X)                                                                                                   \
  X(clGetPlatformIDs, int32_t, (uint32_t a, void **b, uint32_t *c), (a, b, c))                                         \
  X(clCreateContext, void *, (const intptr_t *a, uint32_t b, void *const *c, void *d, void *e, int32_t *f),            \
    (a, b, c, d, e, f))                                                                                                \
  X(clReleaseContext, int32_t, (void *a), (a))                                                                         \
  X(clCreateCommandQueue, void *, (void *a, void *b, uint64_t c, int32_t *d), (a, b, c, d))                            \
  X(clReleaseCommandQueue, int32_t, (void *a), (a))                                                                    \
  X(clBuildProgram, int32_t, (void *a, uint32_t b, void *const *c, const char *d, void *e, void *f),                   \
    (a, b, c, d, e, f))                                                                                                \
  X(clGetProgramBuildInfo, int32_t, (void *a, void *b, uint32_t c, size_t d, void *e, size_t *f), (a, b, c, d, e, f))  \
  X(clReleaseProgram, int32_t, (void *a), (a))                                                                         \
  X(clCreateKernel, void *, (void *a, const char *b, int32_t *c), (a, b, c))                                           \
  X(clReleaseKernel, int32_t, (void *a), (a))                                                                          \
  X(clSetKernelArg, int32_t, (void *a, uint32_t b, size_t c, const void *d), (a, b, c, d))                             \
  X(clEnqueueNDRangeKernel, int32_t,                                                                                   \
    (void *a, void *b, uint32_t c, const size_t *d, const size_t *e, const size_t *f, uint32_t g, void *h, void *i),   \
    (a, b, c, d, e, f, g, h, i))                                                                                       \
  X(clCreateBuffer, void *, (void *a, uint64_t b, size_t c, void *d, int32_t *e), (a, b, c, d, e))                     \
  X(clReleaseMemObject, int32_t, (void *a), (a))                                                                       \
  X(clEnqueueMapBuffer, void *,                                                                                        \
    (void *a, void *b, uint32_t c, uint64_t d, size_t e, size_t f, uint32_t g, void *h, void *i, int32_t *j),          \
    (a, b, c, d, e, f, g, h, i, j))                                                                                    \
  X(clEnqueueCopyBuffer, int32_t,                                                                                      \
    (void *a, void *b, void *c, size_t d, size_t e, size_t f, uint32_t g, void *h, void *i),                           \
    (a, b, c, d, e, f, g, h, i))                                                                                       \
  X(clEnqueueUnmapMemObject, int32_t, (void *a, void *b, void *c, uint32_t d, void *e, void *f), (a, b, c, d, e, f))   \
  X(clFinish, int32_t, (void *a), (a))

static void *real(const char *name) {
  static void *library;
  if (!library) library = dlopen(LP_OPENCL, RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, name) : NULL;
  if (!found) {
    fprintf(stderr, "fake OpenCL: %s has no %s\n", LP_OPENCL, name);
    abort();
  }
  return found;
}

#define EXPORT __attribute__((visibility("default")))
#define PASS_ON(name, result, parameters, arguments)                                                                   \
  EXPORT result name parameters;                                                                                       \
  result name parameters {                                                                                             \
    static result(*own) parameters;                                                                                    \
    if (!own) *(void **)&own = real(#name);                                                                            \
    return own arguments;                                                                                              \
  }
FUNCTIONS(PASS_ON)

EXPORT int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t count, void **device, uint32_t *found);
EXPORT int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *out, size_t *needed);
EXPORT void *clCreateProgramWithSource(void *context, uint32_t count, const char **source, const size_t *size,
                                       int32_t *status);

int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t count, void **device, uint32_t *found) {
  int32_t (*own)(void *, uint64_t, uint32_t, void **, uint32_t *);
  *(void **)&own = real("clGetDeviceIDs");
  return own(platform, type == type_gpu ? type_all : type, count, device, found);
}

static uint64_t halves(void) {
  const char *text = getenv("LP_FAKE_OPENCL_HALVES");
  return text ? (uint64_t)atoi(text) : 0;
}

static int32_t give(const void *from, size_t bytes, size_t size, void *out, size_t *needed) {
  if (needed) *needed = bytes;
  if (out && size < bytes) return CL_INVALID_VALUE;
  if (out) memcpy(out, from, bytes);
  return 0;
}

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *out, size_t *needed) {
  static const char extensions[] = "cl_khr_byte_addressable_store cl_khr_fp16";
  const uint64_t config = halves();
  int32_t (*own)(void *, uint32_t, size_t, void *, size_t *);
  *(void **)&own = real("clGetDeviceInfo");
  if (what == CL_DEVICE_TYPE) return give(&type_gpu, sizeof type_gpu, size, out, needed);
  if (what == CL_DEVICE_EXTENSIONS && config) return give(extensions, sizeof extensions, size, out, needed);
  if (what == CL_DEVICE_HALF_FP_CONFIG) return give(&config, sizeof config, size, out, needed);
  return own(device, what, size, out, needed);
}

/* Halves as floats, rounded after each operation, before the text of the kernels. Calls keep kernels small. */
static const char emulation[] =
    "#define LP_OPENCL_HOST 1\n"
    "static float float_of(unsigned pair, int i) {\n"
    "  const unsigned short bits = (unsigned short)(pair >> i * 16);\n"
    "  const float x = vload_half(0, (const half *)&bits);\n"
    "  return LP_NORMAL && fabs(x) < 0x1p-14f ? 0 : x;\n"
    "}\n"
    "static unsigned rounded(float x, int i) {\n"
    "  unsigned short bits;\n"
    "  vstore_half_rte(x, 0, (half *)&bits);\n"
    "  return (LP_NORMAL && (bits & 0x7c00) == 0 ? 0u : (unsigned)bits) << i * 16;\n"
    "}\n"
    "__attribute__((noinline)) static unsigned add_half(unsigned a, unsigned b, unsigned sum) {\n"
    "  unsigned out = 0;\n"
    "  for (int i = 0; i < 2; i++)\n"
    "    out |= rounded(float_of(a, i) * float_of(b, i) + float_of(sum, i), i);\n"
    "  return out;\n"
    "}\n"
    "static unsigned subtract_half(unsigned a, unsigned b) {\n"
    "  return rounded(float_of(a, 0) - float_of(b, 0), 0) | rounded(float_of(a, 1) - float_of(b, 1), 1);\n"
    "}\n";

void *clCreateProgramWithSource(void *context, uint32_t count, const char **source, const size_t *size,
                                int32_t *status) {
  void *(*own)(void *, uint32_t, const char **, const size_t *, int32_t *);
  *(void **)&own = real("clCreateProgramWithSource");
  if (count != 1) {
    *status = CL_INVALID_VALUE;
    return NULL;
  }
  const char *normal = halves() & 1 ? "#define LP_NORMAL 0\n" : "#define LP_NORMAL 1\n";
  const char *texts[] = {normal, emulation, source[0]};
  const size_t sizes[] = {strlen(normal), strlen(emulation), size ? size[0] : strlen(source[0])};
  return own(context, 3, texts, sizes, status);
}
