/* Constants, types and functions of NCCL 2.4 and newer, so that a build needs nothing of CUDA:
 * https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html. The test gpu-nccl compares them with NVIDIA's
 * header if that is installed. */
#pragma once

#include <stddef.h>

enum {
  /* ncclResult_t */
  LP_NCCL_SUCCESS = 0,
  LP_NCCL_UNHANDLED_CUDA_ERROR = 1,
  LP_NCCL_SYSTEM_ERROR = 2,
  LP_NCCL_INTERNAL_ERROR = 3,
  LP_NCCL_INVALID_ARGUMENT = 4,
  LP_NCCL_INVALID_USAGE = 5,
  LP_NCCL_REMOTE_ERROR = 6, /* since 2.12 */
  LP_NCCL_IN_PROGRESS = 7,  /* since 2.14; a communicator that blocks never gives it */
  /* ncclDataType_t */
  LP_NCCL_INT8 = 0
};

/* ncclUniqueId */
typedef struct {
  char internal[128];
} lp_nccl_id;

/* name, type of the result, symbol, parameters. Communicators and streams are pointers. */
#define LP_NCCL_FUNCTIONS(X)                                                                                           \
  X(version, int, ncclGetVersion, (int *))                                                                             \
  X(id, int, ncclGetUniqueId, (lp_nccl_id *))                                                                          \
  X(init, int, ncclCommInitRank, (void **, int, lp_nccl_id, int))                                                      \
  X(destroy, int, ncclCommDestroy, (void *))                                                                           \
  X(abort, int, ncclCommAbort, (void *))                                                                               \
  X(async_error, int, ncclCommGetAsyncError, (void *, int *))                                                          \
  X(error_text, const char *, ncclGetErrorString, (int))                                                               \
  X(gather, int, ncclAllGather, (const void *, void *, size_t, int, void *, void *))

/* Since 2.13. */
#define LP_NCCL_NEWER_FUNCTIONS(X) X(last_error, const char *, ncclGetLastError, (void *))
