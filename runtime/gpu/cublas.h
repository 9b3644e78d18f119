/* Products by NVIDIA's cuBLASLt, if it is installed: libcublasLt of the CUDA toolkit, or of PyPI's nvidia-cublas. With
 * LLMPART_CUBLAS=off in the environment the code's own kernels do all products. Any thread may call these functions
 * while the GPU's context is current.
 */
#pragma once

#include "runtime/gpu/api.h"

typedef struct lp_cublas lp_cublas;

/* For a driver of CUDA `driver` (12) and kernels for architecture `sm`. *out is NULL when none works. */
LP_MUST_USE lp_status lp_cublas_open(int driver, int sm, lp_cublas **out, lp_diag *diag);
void lp_cublas_close(lp_cublas *cublas);                          /* NULL is allowed */
const lp_gpu_library *lp_cublas_library(const lp_cublas *cublas); /* of NULL: NULL */
/* Asks cuBLASLt's heuristic once for each shape, number of rows and alignment. */
bool lp_cublas_takes(lp_cublas *cublas, const lp_gpu_product *product);
/* Enqueues a product that it takes; a cublasStatus_t. */
LP_MUST_USE int lp_cublas_multiply(lp_cublas *cublas, const lp_gpu_product *product, void *stream);
void lp_cublas_describe(const lp_cublas *cublas, int status, size_t size, char *text);
