/* CUDA C++ to code for one GPU, by NVIDIA's run-time compiler (NVRTC), which is opened when it is needed; what it made is kept in
 * a folder of the user's.
 */
#ifndef LP_RUNTIME_GPU_NVRTC_H
#define LP_RUNTIME_GPU_NVRTC_H

#include "runtime/gpu/api.h"

typedef struct {
  const char *name; /* "NVIDIA H200" */
  int sm;           /* 90: its compute capability */
  int driver;       /* 12: the newest CUDA whose code it takes */
} lp_cuda_target;

/* Code as cuModuleLoadData takes it, and the architecture it is compiled for: the GPU's, or the newest that the compiler knows. What is
 * missing or refused is reported. */
LP_MUST_USE lp_status lp_nvrtc_compile(const lp_gpu_text *text, const lp_cuda_target *target, lp_buf *out, int *sm,
                                       lp_diag *diag);

/* The kernels as PTX for GPUs of capability `sm` and newer, which needs no GPU. */
LP_MUST_USE lp_status lp_nvrtc_ptx(const lp_gpu_text *text, int sm, lp_buf *out, lp_diag *diag);

/* ---- kept code (cache.c) ---- */

/* The folder is $XDG_CACHE_HOME/llmpart/cuda, else ~/.cache/llmpart/cuda; a file is named after what it was made of. Files are
 * written under another name and renamed, and carry a checksum. The oldest go when all together are over 256 MiB.
 * Reports nothing: code that is not kept is made again.
 */
typedef struct {
  char hex[65];
} lp_cache_key;
bool lp_cache_read(const lp_cache_key *key, lp_buf *out);
void lp_cache_write(const lp_cache_key *key, const lp_buf *code);

#endif
