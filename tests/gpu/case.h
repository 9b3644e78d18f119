/* A case of the conformance suite in a file: GPU code, operands and what they should give, to be run on a machine that
 * has a GPU and none of the compiler. The file is a row of sections: a line "NAME INDEX BYTES", then the bytes.
 *   kernels, launches, weights   as in a bundle (weights: the data section)
 *   sym                          int64 of each symbol; INDEX: buffers
 *   in                           what buffer INDEX holds at first
 *   state                        what cache INDEX holds at first
 *   out                          what buffer INDEX should hold
 *   near                         of the out before it: doubles absolute, relative; INDEX: 0 bytes, 1 f32, 2 f16, 3 bf16
 */
#ifndef LP_TEST_GPU_CASE_H
#define LP_TEST_GPU_CASE_H

#include "base/base.h"

enum { GPU_CASE_BYTES, GPU_CASE_F32, GPU_CASE_F16, GPU_CASE_BF16 };

void gpu_case_put(lp_buf *file, const char *name, int64_t index, const void *data, size_t bytes);

#endif
