/* Compiles kernels with NVIDIA's run-time compiler. */
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/library.h"
#include "runtime/gpu/nvrtc.h"

enum { NVRTC_SUCCESS = 0, NEWEST_CUDA = 13, EVERY_GPU_CUDA = 12 /* knows sm_53 to sm_90 */ };

static const char on_a_processor[] = "compile this side with --backend-device=cpu or --backend-cloud=cpu";

/* name, parameters; all return a status */
#define FUNCTIONS(X)                                                                                                   \
  X(nvrtcVersion, (int *, int *))                                                                                      \
  X(nvrtcGetNumSupportedArchs, (int *))                                                                                \
  X(nvrtcGetSupportedArchs, (int *))                                                                                   \
  X(nvrtcCreateProgram, (void **, const char *, const char *, int, const char *const *, const char *const *))          \
  X(nvrtcCompileProgram, (void *, int, const char *const *))                                                           \
  X(nvrtcGetProgramLogSize, (void *, size_t *))                                                                        \
  X(nvrtcGetProgramLog, (void *, char *))                                                                              \
  X(nvrtcGetCUBINSize, (void *, size_t *))                                                                             \
  X(nvrtcGetCUBIN, (void *, char *))                                                                                   \
  X(nvrtcGetPTXSize, (void *, size_t *))                                                                               \
  X(nvrtcGetPTX, (void *, char *))                                                                                     \
  X(nvrtcDestroyProgram, (void **))

typedef struct {
#define MEMBER(name, parameters) int(*name) parameters;
  FUNCTIONS(MEMBER)
#undef MEMBER
} nvrtc;

/* ---- the library ------------------------------------------------------------------------------------------------------ */

/* The newest whose code the driver takes. CUDA 11 kept the name of 11.2 to its end. */
static bool open_library(nvrtc *n, int driver) {
#define ENTRY(fn, parameters) {#fn, &n->fn},
  const lp_library_function functions[] = {FUNCTIONS(ENTRY)};
#undef ENTRY
  for (int major = driver; major >= 12; major--) {
    char name[32];
    snprintf(name, sizeof name, "libnvrtc.so.%d", major);
    if (lp_library_load(name, functions, LP_COUNT(functions))) return true;
  }
  static const char *const others[] = {"libnvrtc.so.11.2", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"};
  for (size_t i = 0; i < LP_COUNT(others); i++)
    if (lp_library_load(others[i], functions, LP_COUNT(functions))) return true;
  return false;
}

static lp_status report_absent(const lp_gpu_text *text, int cuda, const char *or_else, lp_diag *diag) {
  lp_status status = lp_error(diag, LP_LOC_FILE(text->file),
                              "code for CUDA, and there is no NVRTC (libnvrtc.so.%d) to compile it", cuda);
  lp_note(diag, LP_LOC_NONE,
          "install it (Debian: libnvrtc%d or the CUDA toolkit; PyPI: nvidia-cuda-nvrtc-cu%d, with its folder in "
          "LD_LIBRARY_PATH), or %s",
          cuda, cuda, or_else);
  return status;
}

/* ---- the architecture ------------------------------------------------------------------------------------------------- */

/* Code for the GPU itself where the compiler knows it; PTX of the newest architecture it knows where the GPU is newer still,
 * which the driver compiles. */
typedef struct {
  bool ptx;
  int sm;
} architecture;

static lp_status report_old(const lp_gpu_text *text, const lp_cuda_target *target, int oldest, const int version[2],
                            lp_diag *diag) {
  lp_status status =
      lp_error(diag, LP_LOC_FILE(text->file), "NVRTC %d.%d has no sm_%d, which '%s' is; its oldest is sm_%d",
               version[0], version[1], target->sm, target->name, oldest);
  lp_note(diag, LP_LOC_NONE, "install the NVRTC of an older CUDA (12 knows sm_50 and newer), or %s", on_a_processor);
  return status;
}

static lp_status choose(const nvrtc *n, const lp_gpu_text *text, const lp_cuda_target *target, const int version[2],
                        architecture *out, lp_diag *diag) {
  enum { MOST = 128 };
  int count = 0, known[MOST], oldest = 0, newest = 0;
  if (n->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0 || count > MOST ||
      n->nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS)
    return lp_error(diag, LP_LOC_FILE(text->file), "NVRTC %d.%d does not say which GPUs it knows", version[0],
                    version[1]);
  *out = (architecture){.sm = target->sm};
  oldest = newest = known[0];
  for (int i = 0; i < count; i++) {
    if (known[i] == target->sm) return LP_OK;
    if (known[i] < oldest) oldest = known[i];
    if (known[i] > newest && known[i] < target->sm) newest = known[i];
  }
  if (target->sm < oldest) return report_old(text, target, oldest, version, diag);
  *out = (architecture){.ptx = true, .sm = newest};
  return LP_OK;
}

/* ---- compiling -------------------------------------------------------------------------------------------------------- */

enum { OPTIONS = 2 };

typedef struct {
  char target[48];
  const char *list[OPTIONS];
} compile_options;

static void options_for(const architecture *arch, compile_options *out) {
  snprintf(out->target, sizeof out->target, "--gpu-architecture=%s_%d", arch->ptx ? "compute" : "sm", arch->sm);
  out->list[0] = out->target;
  out->list[1] = "--std=c++17";
}

static void key_of(const char *const *options, const int version[2], const lp_gpu_text *text, lp_cache_key *out) {
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, version, 2 * sizeof *version);
  for (int i = 0; i < OPTIONS; i++)
    lp_sha256_update(&sha, options[i], strlen(options[i]) + 1);
  lp_sha256_update(&sha, text->source, text->size);
  lp_sha256_hex(&sha, out->hex);
}

static lp_status report_refused(const nvrtc *n, void *program, const lp_gpu_text *text, const char *option,
                                lp_diag *diag) {
  size_t size = 0;
  char *log = NULL;
  if (n->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 0) {
    log = lp_alloc(size + 1);
    if (n->nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) log[0] = '\0';
    log[strcspn(log, "\n")] = '\0';
  }
  lp_status status = lp_error(diag, LP_LOC_FILE(text->file), "NVRTC refuses the kernels (%s): %.400s", option,
                              log != NULL && log[0] != '\0' ? log : "it does not say why");
  free(log);
  return status;
}

static bool take_code(const nvrtc *n, void *program, bool ptx, lp_buf *out) {
  size_t size = 0;
  if ((ptx ? n->nvrtcGetPTXSize : n->nvrtcGetCUBINSize)(program, &size) != NVRTC_SUCCESS || size == 0) return false;
  char *code = lp_alloc(size);
  bool taken = (ptx ? n->nvrtcGetPTX : n->nvrtcGetCUBIN)(program, code) == NVRTC_SUCCESS;
  if (taken) lp_buf_append(out, code, size);
  free(code);
  return taken;
}

static lp_status compile(const nvrtc *n, const lp_gpu_text *text, const char *const *options, bool ptx, lp_buf *out,
                         lp_diag *diag) {
  void *program = NULL;
  char *source = lp_alloc(text->size + 1); /* ends in NUL */
  memcpy(source, text->source, text->size);
  lp_status status = LP_OK;
  if (n->nvrtcCreateProgram(&program, source, "kernels.cu", 0, NULL, NULL) != NVRTC_SUCCESS)
    status = lp_error(diag, LP_LOC_FILE(text->file), "NVRTC does not take the kernels");
  else if (n->nvrtcCompileProgram(program, OPTIONS, options) != NVRTC_SUCCESS || !take_code(n, program, ptx, out))
    status = report_refused(n, program, text, options[0], diag);
  if (program != NULL) (void)n->nvrtcDestroyProgram(&program);
  free(source);
  return status;
}

lp_status lp_nvrtc_compile(const lp_gpu_text *text, const lp_cuda_target *target, lp_buf *out, int *sm, lp_diag *diag) {
  nvrtc n;
  int version[2] = {0, 0};
  architecture arch;
  if (!open_library(&n, target->driver)) return report_absent(text, target->driver, on_a_processor, diag);
  (void)n.nvrtcVersion(&version[0], &version[1]);
  LP_TRY(choose(&n, text, target, version, &arch, diag));
  *sm = arch.sm;
  compile_options options;
  options_for(&arch, &options);
  lp_cache_key key;
  key_of(options.list, version, text, &key);
  if (lp_cache_read(&key, out)) return LP_OK;
  LP_TRY(compile(&n, text, options.list, arch.ptx, out, diag));
  lp_cache_write(&key, out);
  return LP_OK;
}

lp_status lp_nvrtc_ptx(const lp_gpu_text *text, int sm, lp_buf *out, lp_diag *diag) {
  nvrtc n;
  compile_options options;
  if (!open_library(&n, NEWEST_CUDA))
    return report_absent(text, EVERY_GPU_CUDA, "take the source by --emit=cuda to where it is", diag);
  options_for(&(architecture){.ptx = true, .sm = sm}, &options);
  LP_TRY(compile(&n, text, options.list, true, out, diag));
  if (out->size > 0 && out->data[out->size - 1] == '\0') out->size--; /* NVRTC counts the end of the text */
  return LP_OK;
}
