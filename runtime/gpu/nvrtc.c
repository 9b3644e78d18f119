/* Compiles kernels for the GPU of this machine, and keeps the code. */
#include "runtime/gpu/nvrtc.h"

#include "base/digest.h"
#include "base/nvrtc/nvrtc.h"

static const char on_a_processor[] = "compile this side with --backend-device=cpu or --backend-cloud=cpu";

/* ---- the architecture -------------------------------------------------------------------------------------------- */

/* The target: the GPU's architecture if NVRTC knows it. For a newer GPU it is PTX of the newest architecture that NVRTC
 * knows, and from an NVRTC that does not tell which it knows PTX of the GPU's own; the driver compiles PTX further. */
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

static lp_status choose(const lp_nvrtc *n, const lp_gpu_text *text, const lp_cuda_target *target, const int version[2],
                        architecture *out, lp_diag *diag) {
  enum { MOST = 128 };
  int known[MOST], count = lp_nvrtc_architectures(n, known, MOST);
  *out = (architecture){.ptx = count == 0, .sm = target->sm};
  if (count == 0) return LP_OK;
  int oldest = known[0], newest = known[0];
  for (int i = 0; i < count; i++) {
    if (known[i] == target->sm) return LP_OK;
    if (known[i] < oldest) oldest = known[i];
    if (known[i] > newest && known[i] < target->sm) newest = known[i];
  }
  if (target->sm < oldest) return report_old(text, target, oldest, version, diag);
  *out = (architecture){.ptx = true, .sm = newest};
  return LP_OK;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

enum { OPTIONS = 2 };

static void key_of(const char *const *options, const int version[2], const lp_gpu_text *text, lp_cache_key *out) {
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, version, 2 * sizeof *version);
  for (int i = 0; i < OPTIONS; i++)
    lp_sha256_update(&sha, options[i], strlen(options[i]) + 1);
  lp_sha256_update(&sha, text->source, text->size);
  lp_sha256_hex(&sha, out->hex);
}

static lp_status compile(const lp_nvrtc *n, const lp_gpu_text *text, const lp_cuda_target *target, lp_buf *out, int *sm,
                         lp_diag *diag) {
  int version[2];
  architecture arch;
  lp_nvrtc_version(n, version);
  LP_TRY(choose(n, text, target, version, &arch, diag));
  *sm = arch.sm;
  char option[48];
  snprintf(option, sizeof option, "--gpu-architecture=%s_%d", arch.ptx ? "compute" : "sm", arch.sm);
  const char *const options[OPTIONS] = {option, "--std=c++14"};
  lp_cache_key key;
  key_of(options, version, text, &key);
  if (lp_cache_read(&key, out)) return LP_OK;
  const lp_nvrtc_source source = {text->file, text->source, text->size};
  LP_TRY(lp_nvrtc_compile(n, &source, options, OPTIONS, arch.ptx, out, diag));
  lp_cache_write(&key, out);
  return LP_OK;
}

lp_status lp_cuda_compile(const lp_gpu_text *text, const lp_cuda_target *target, lp_buf *out, int *sm, lp_diag *diag) {
  lp_nvrtc *n;
  if (!lp_nvrtc_open(target->driver, &n))
    return lp_nvrtc_report_absent(text->file, target->driver, on_a_processor, diag);
  lp_status status = compile(n, text, target, out, sm, diag);
  lp_nvrtc_close(n);
  return status;
}
