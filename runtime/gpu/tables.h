/* Tables in memory of the GPU: sizes and addresses of each sequence, which kernels read. */
#pragma once

#include "runtime/gpu/memory.h"

/* Finds the sizes and buffers that need a place in the tables. */
void lp_gpu_find_tables(lp_gpu *gpu);
/* Copies the pass's tables to the GPU; false: no room. */
bool lp_gpu_bring_tables(const lp_gpu_pass *pass);
/* Returns the address on the GPU at which kernels read the size of sequence `first`; the sizes of later sequences
 * follow it. */
const int64_t *lp_gpu_size_at(const lp_gpu_pass *pass, int32_t moving, int64_t first);
/* An operand for sequence `first` and later ones; the scratch when `ref` is NULL. */
lp_gpu_value lp_gpu_spread_value(const lp_gpu_pass *pass, const lp_gpu_ref *ref, int64_t first);
