/* Compares runtime/collective/nccl_abi.h and runtime/gpu/cuda_abi.h with NVIDIA's headers; compiled where they are
 * installed (nccl.sh). */
#include "runtime/collective/nccl_abi.h"
#include "runtime/gpu/cuda_abi.h"

#include <cuda.h>
#include <nccl.h>

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #theirs)
SAME(LP_NCCL_SUCCESS, ncclSuccess);
SAME(LP_NCCL_UNHANDLED_CUDA_ERROR, ncclUnhandledCudaError);
SAME(LP_NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(LP_NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(LP_NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(LP_NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(LP_NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(LP_NCCL_IN_PROGRESS, ncclInProgress);
SAME(LP_NCCL_INT8, ncclInt8);
SAME(sizeof(lp_nccl_id), sizeof(ncclUniqueId));
SAME(_Alignof(lp_nccl_id), _Alignof(ncclUniqueId));
SAME(sizeof(int), sizeof(ncclResult_t));
SAME(sizeof(int), sizeof(ncclDataType_t));
SAME(LP_CUDA_ERROR_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(LP_CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(sizeof(lp_cuda_copy_2d), sizeof(CUDA_MEMCPY2D));
#define SAME_PLACE(ours, theirs) SAME(offsetof(lp_cuda_copy_2d, ours), offsetof(CUDA_MEMCPY2D, theirs))
SAME_PLACE(from_x, srcXInBytes);
SAME_PLACE(from_y, srcY);
SAME_PLACE(from_kind, srcMemoryType);
SAME_PLACE(from, srcDevice);
SAME_PLACE(from_pitch, srcPitch);
SAME_PLACE(to_x, dstXInBytes);
SAME_PLACE(to_y, dstY);
SAME_PLACE(to_kind, dstMemoryType);
SAME_PLACE(to, dstDevice);
SAME_PLACE(to_pitch, dstPitch);
SAME_PLACE(width, WidthInBytes);
SAME_PLACE(height, Height);

/* The parameters of the functions, as far as integers and pointers go. */
static void compile_calls(void) {
  ncclComm_t communicator = NULL;
  ncclUniqueId id = {0};
  ncclResult_t result = ncclGetUniqueId(&id);
  int version = 0;
  result = ncclGetVersion(&version);
  result = ncclCommInitRank(&communicator, 2, id, 0);
  result = ncclAllGather(NULL, NULL, (size_t)1, ncclInt8, communicator, NULL);
  result = ncclCommGetAsyncError(communicator, &result);
  result = ncclCommAbort(communicator);
  result = ncclCommDestroy(communicator);
  (void)ncclGetErrorString(result);
}
void (*lp_compiled)(void) = compile_calls;
