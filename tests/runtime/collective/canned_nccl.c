/* A stand-in for libnccl.so.2 that does what the test says (canned_nccl.h) and computes nothing. */
#include "tests/runtime/collective/canned_nccl.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern canned_nccl lp_canned_nccl;
canned_nccl lp_canned_nccl;

#define DECLARE(name, returns, symbol, parameters) EXPORT returns symbol parameters;
LP_NCCL_FUNCTIONS(DECLARE)
LP_NCCL_NEWER_FUNCTIONS(DECLARE)

int ncclGetVersion(int *version) {
  *version = lp_canned_nccl.version;
  return LP_NCCL_SUCCESS;
}

int ncclGetUniqueId(lp_nccl_id *id) {
  lp_canned_nccl.ids++;
  memset(id, 7, sizeof *id);
  return lp_canned_nccl.id;
}

int ncclCommInitRank(void **communicator, int count, lp_nccl_id id, int rank) {
  lp_canned_nccl.joined += id.internal[0] == 7;
  lp_canned_nccl.count = count;
  lp_canned_nccl.rank = rank;
  *communicator = &lp_canned_nccl;
  return lp_canned_nccl.init;
}

int ncclCommDestroy(void *communicator) {
  lp_canned_nccl.destroyed += communicator == &lp_canned_nccl;
  return LP_NCCL_SUCCESS;
}

int ncclCommAbort(void *communicator) {
  lp_canned_nccl.aborted += communicator == &lp_canned_nccl;
  return LP_NCCL_SUCCESS;
}

int ncclCommGetAsyncError(void *communicator, int *error) {
  *error = communicator == &lp_canned_nccl ? lp_canned_nccl.async_error : LP_NCCL_INVALID_ARGUMENT;
  return lp_canned_nccl.async;
}

const char *ncclGetErrorString(int result) {
  return result == LP_NCCL_SYSTEM_ERROR ? "unhandled system error" : "another error";
}

int ncclAllGather(const void *part, void *all, size_t size, int type, void *communicator, void *stream) {
  lp_canned_nccl.part = part;
  lp_canned_nccl.all = all;
  lp_canned_nccl.size = size;
  lp_canned_nccl.type = type;
  lp_canned_nccl.stream = stream;
  return communicator == &lp_canned_nccl ? lp_canned_nccl.gather : LP_NCCL_INVALID_ARGUMENT;
}

const char *ncclGetLastError(void *communicator) {
  (void)communicator;
  return lp_canned_nccl.last_error;
}
