/* What the stand-in libnccl.so.2 of these tests answers, and what it was asked: its symbol lp_canned_nccl. */
#ifndef LP_TESTS_CANNED_NCCL_H
#define LP_TESTS_CANNED_NCCL_H

#include "runtime/collective/nccl_abi.h"

typedef struct {
  int version, id, init, async, async_error, gather; /* results, and the version and error to give */
  const char *last_error;
  int ids, joined, rank, count, destroyed, aborted; /* calls, and the last rank and count */
  const void *part;                                 /* of the last gather */
  void *all, *stream;
  size_t size;
  int type;
} canned_nccl;

#endif
