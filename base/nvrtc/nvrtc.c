/* Opens NVRTC and calls it. */
#include "base/nvrtc/nvrtc.h"

#include "base/library.h"

enum { NVRTC_SUCCESS = 0 };

/* name, parameters; all return a status */
#define FUNCTIONS(X)                                                                                                   \
  X(nvrtcVersion, (int *, int *))                                                                                      \
  X(nvrtcCreateProgram, (void **, const char *, const char *, int, const char *const *, const char *const *))          \
  X(nvrtcCompileProgram, (void *, int, const char *const *))                                                           \
  X(nvrtcGetProgramLogSize, (void *, size_t *))                                                                        \
  X(nvrtcGetProgramLog, (void *, char *))                                                                              \
  X(nvrtcGetPTXSize, (void *, size_t *))                                                                               \
  X(nvrtcGetPTX, (void *, char *))                                                                                     \
  X(nvrtcDestroyProgram, (void **))

/* since CUDA 11.2; NULL in older libraries */
#define NEWER_FUNCTIONS(X)                                                                                             \
  X(nvrtcGetNumSupportedArchs, (int *))                                                                                \
  X(nvrtcGetSupportedArchs, (int *))                                                                                   \
  X(nvrtcGetCUBINSize, (void *, size_t *))                                                                             \
  X(nvrtcGetCUBIN, (void *, char *))

struct lp_nvrtc {
#define MEMBER(name, parameters) int(*name) parameters;
  FUNCTIONS(MEMBER)
  NEWER_FUNCTIONS(MEMBER)
#undef MEMBER
};

static bool load(lp_nvrtc *n, const char *name) {
#define ENTRY(fn, parameters) {#fn, &n->fn},
  const lp_library_function functions[] = {FUNCTIONS(ENTRY)}, newer[] = {NEWER_FUNCTIONS(ENTRY)};
#undef ENTRY
  if (!lp_library_load(name, functions, LP_COUNT(functions))) return false;
  (void)lp_library_load(name, newer, LP_COUNT(newer));
  return true;
}

/* All CUDA 11 releases from 11.2 on use the library name of 11.2. The last CUDA of a Jetson Nano is 10.2. */
static bool find_library(lp_nvrtc *n, int newest) {
  static const struct {
    int major;
    const char *name;
  } others[] = {{11, "libnvrtc.so.11.2"}, {11, "libnvrtc.so.11.1"}, {11, "libnvrtc.so.11.0"},
                {10, "libnvrtc.so.10.2"}, {0, "libnvrtc.so"},       {0, "/usr/local/cuda/lib64/libnvrtc.so"}};
  for (int major = newest; major >= 12; major--) {
    char name[32];
    snprintf(name, sizeof name, "libnvrtc.so.%d", major);
    if (load(n, name)) return true;
  }
  for (size_t i = 0; i < LP_COUNT(others); i++)
    if (others[i].major <= newest && load(n, others[i].name)) return true;
  return false;
}

lp_status lp_nvrtc_report_absent(const char *file, int major, const char *advice, lp_diag *diag) {
  const char *minor = major >= 12 ? "" : ".2"; /* the last of CUDA 10, and the name of CUDA 11's */
  lp_status status = lp_error(diag, LP_LOC_FILE(file),
                              "code for CUDA, and there is no NVRTC (libnvrtc.so.%d%s) to compile it", major, minor);
  if (major < 11)
    lp_note(diag, LP_LOC_NONE, "install the toolkit of CUDA %d%s, or %s", major, minor, advice);
  else
    lp_note(diag, LP_LOC_NONE,
            "install it (Debian: libnvrtc%d or the CUDA toolkit; PyPI: nvidia-cuda-nvrtc-cu%d, with its folder in "
            "LD_LIBRARY_PATH), or %s",
            major, major, advice);
  return status;
}

bool lp_nvrtc_open(int major, lp_nvrtc **out) {
  lp_nvrtc *n = lp_alloc(sizeof *n);
  bool found = find_library(n, major);
  if (!found) free(n);
  *out = found ? n : NULL;
  return found;
}

void lp_nvrtc_close(lp_nvrtc *n) {
  free(n);
}

void lp_nvrtc_version(const lp_nvrtc *n, int version[2]) {
  version[0] = version[1] = 0;
  (void)n->nvrtcVersion(&version[0], &version[1]);
}

int lp_nvrtc_architectures(const lp_nvrtc *n, int *known, int most) {
  int count = 0;
  if (!n->nvrtcGetNumSupportedArchs || !n->nvrtcGetSupportedArchs) return 0;
  if (n->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0 || count > most ||
      n->nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS)
    return 0;
  return count;
}

static lp_status report_refused(const lp_nvrtc *n, void *program, const lp_nvrtc_source *source, const char *option,
                                lp_diag *diag) {
  size_t size = 0;
  LP_OWNED(lp_free_at) char *log = NULL;
  if (n->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 0) {
    log = lp_alloc(size + 1);
    if (n->nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) log[0] = '\0';
    log[strcspn(log, "\n")] = '\0';
  }
  return lp_error(diag, LP_LOC_FILE(source->file), "NVRTC refuses the kernels (%s): %.400s", option,
                  log && log[0] ? log : "it does not say why");
}

static bool take_code(const lp_nvrtc *n, void *program, bool ptx, lp_buf *out) {
  size_t size = 0;
  if (!ptx && (!n->nvrtcGetCUBINSize || !n->nvrtcGetCUBIN)) return false;
  if ((ptx ? n->nvrtcGetPTXSize : n->nvrtcGetCUBINSize)(program, &size) != NVRTC_SUCCESS || size == 0) return false;
  LP_OWNED(lp_free_at) char *code = lp_alloc(size);
  bool taken = (ptx ? n->nvrtcGetPTX : n->nvrtcGetCUBIN)(program, code) == NVRTC_SUCCESS;
  if (taken) lp_buf_append(out, code, size);
  return taken;
}

lp_status lp_nvrtc_compile(const lp_nvrtc *n, const lp_nvrtc_source *source, const char *const *options,
                           int option_count, bool ptx, lp_buf *out, lp_diag *diag) {
  void *program = NULL;
  char *text = lp_alloc(source->size + 1); /* ends in NUL */
  memcpy(text, source->text, source->size);
  lp_status status = LP_OK;
  if (n->nvrtcCreateProgram(&program, text, "kernels.cu", 0, NULL, NULL) != NVRTC_SUCCESS)
    status = lp_error(diag, LP_LOC_FILE(source->file), "NVRTC does not take the kernels");
  else if (n->nvrtcCompileProgram(program, option_count, options) != NVRTC_SUCCESS || !take_code(n, program, ptx, out))
    status = report_refused(n, program, source, options[0], diag);
  if (program) (void)n->nvrtcDestroyProgram(&program);
  free(text);
  return status;
}
