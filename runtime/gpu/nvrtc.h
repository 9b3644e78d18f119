/* Compiles CUDA C++ to code for one GPU, by NVRTC (base/nvrtc/nvrtc.h), and keeps the code in a folder of the user
 * (cache.c). */
#pragma once

#include "runtime/gpu/api.h"

typedef struct {
  const char *name; /* "NVIDIA H200" */
  int sm;           /* its compute capability, as 90 */
  int driver;       /* the newest version of CUDA that it runs, as 12 */
} lp_cuda_target;

/* Code as cuModuleLoadData takes it, and the architecture it is compiled for: the GPU's, or the newest that NVRTC
 * knows. */
LP_MUST_USE lp_status lp_cuda_compile(const lp_gpu_text *text, const lp_cuda_target *target, lp_buf *out, int *sm,
                                      lp_diag *diag);

/* ---- kept code (cache.c) ----------------------------------------------------------------------------------------- */

/* The folder is $XDG_CACHE_HOME/llmpart/cuda, else ~/.cache/llmpart/cuda; the name of a file is a hash of the
 * compiler's version, its options and the source. Files carry a checksum and appear atomically. The oldest are removed
 * when all together exceed 256 MiB. These functions report nothing: code that is not kept is compiled again. */
typedef struct {
  char hex[65];
} lp_cache_key;
bool lp_cache_read(const lp_cache_key *key, lp_buf *out);
void lp_cache_write(const lp_cache_key *key, const lp_buf *code);
