/* Sizes of buffers and grids for given symbols. */
#pragma once

#include "runtime/gpu/code.h"

/* A polynomial at the symbols `sym`. */
int64_t lp_gpu_eval(const lp_gpu *gpu, const lp_poly *size, const int64_t *sym);
int64_t lp_gpu_slot_bytes(const lp_gpu *gpu, const lp_gpu_slot *slot, const int64_t *sym);
int64_t lp_gpu_scratch_bytes(const lp_gpu *gpu, const lp_gpu_layout *layout, const int64_t *sym);
/* Tells whether the condition of a launch holds for these sizes. */
bool lp_gpu_applies(const lp_gpu *gpu, const lp_gpu_launch *launch, const int64_t *sym);
/* Bytes of workspace before the scratch, which a library's products need; 0: it does no product of these sizes. */
int64_t lp_gpu_workspace_bytes(const lp_gpu *gpu, const int64_t *sym);
/* The end of a region that begins at `begin`, aligned; negative when it is too large. */
int64_t lp_gpu_end_of(int64_t begin, int64_t bytes);

/* Contexts are grouped into grains of past tokens. `out` is `sym` with the most past tokens of the grain of `past`:
 * sizes for it hold for all contexts of the grain. */
void lp_gpu_grain(const lp_gpu *gpu, const int64_t *sym, int64_t past, int64_t out[LP_MAX_NAMED_SYMBOLS]);
bool lp_gpu_grows(const lp_poly *size); /* tells whether the size grows with the context */
