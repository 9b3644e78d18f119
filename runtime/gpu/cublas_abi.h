/* Constants and types of cuBLASLt 11 to 13 (https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api), so that a
 * build needs nothing of CUDA. tests/gpu/cublas.sh compares them with cublasLt.h if that is installed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  /* cudaDataType_t, cublasComputeType_t, cublasOperation_t */
  LP_CUDA_R_32F = 0,
  LP_CUDA_R_16F = 2,
  LP_CUDA_R_16BF = 14,
  LP_CUBLAS_COMPUTE_32F = 68, /* no operand is rounded */
  LP_CUBLAS_OP_T = 1,
  /* cublasLtMatmulDescAttributes_t: int32_t, uint32_t, const void * */
  LP_CUBLASLT_MATMUL_DESC_TRANSA = 3,
  LP_CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  LP_CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  /* cublasLtEpilogue_t: bits; the bias is added before the activation. GELU is the one with tanh. */
  LP_CUBLASLT_EPILOGUE_DEFAULT = 1,
  LP_CUBLASLT_EPILOGUE_RELU = 2,
  LP_CUBLASLT_EPILOGUE_BIAS = 4,
  LP_CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  LP_CUBLASLT_EPILOGUE_GELU = 32,
  LP_CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  /* cublasLtMatmulPreferenceAttributes_t: uint64_t; uint32_t for alignments */
  LP_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
  /* cublasStatus_t */
  LP_CUBLAS_STATUS_SUCCESS = 0,
  LP_CUBLAS_STATUS_NOT_INITIALIZED = 1,
  LP_CUBLAS_STATUS_INVALID_VALUE = 7,
  LP_CUBLAS_STATUS_EXECUTION_FAILED = 13,
  LP_CUBLAS_STATUS_NOT_SUPPORTED = 15
};

/* cublasLtMatmulAlgo_t */
typedef struct {
  uint64_t data[8];
} lp_cublas_algo;

/* cublasLtMatmulHeuristicResult_t */
typedef struct {
  lp_cublas_algo algo;
  size_t workspace;
  int state; /* the other members are valid only if it is success */
  float waves;
  int reserved[4];
} lp_cublas_choice;

/* name, type of the result, symbol, parameters */
#define LP_CUBLAS_FUNCTIONS(X)                                                                                         \
  X(create, int, cublasLtCreate, (void **))                                                                            \
  X(destroy, int, cublasLtDestroy, (void *))                                                                           \
  X(version, size_t, cublasLtGetVersion, (void))                                                                       \
  X(status_name, const char *, cublasLtGetStatusName, (int))                                                           \
  X(layout_create, int, cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                       \
  X(layout_destroy, int, cublasLtMatrixLayoutDestroy, (void *))                                                        \
  X(desc_create, int, cublasLtMatmulDescCreate, (void **, int, int))                                                   \
  X(desc_destroy, int, cublasLtMatmulDescDestroy, (void *))                                                            \
  X(desc_set, int, cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))                                \
  X(preference_create, int, cublasLtMatmulPreferenceCreate, (void **))                                                 \
  X(preference_destroy, int, cublasLtMatmulPreferenceDestroy, (void *))                                                \
  X(preference_set, int, cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))                    \
  X(choose, int, cublasLtMatmulAlgoGetHeuristic,                                                                       \
    (void *, void *, void *, void *, void *, void *, void *, int, lp_cublas_choice *, int *))                          \
  X(multiply, int, cublasLtMatmul,                                                                                     \
    (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *,     \
     void *, void *, const lp_cublas_algo *, void *, size_t, void *))
