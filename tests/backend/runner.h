/* A minimal runner of emitted code: one segment, its buffers, a few threads. Shared by the conformance suite, which
 * opens the shared object, and by the driver that is linked with an object for another processor and run under an
 * emulator. */
#ifndef LP_TEST_RUNNER_H
#define LP_TEST_RUNNER_H

#include "base/abi.h"

#include <stddef.h>

enum { RUNNER_MOST_THREADS = 16 };

/* A buffer that is filled before or read after the run. */
typedef struct {
  int64_t buffer;
  size_t bytes;
  void *data;
} runner_port;

typedef struct {
  const int64_t *sym; /* LP_SYM_T is set by runner_execute */
  int64_t sym_count, threads, buffers;
  const char *weights;
  void *const *state;
  const runner_port *in, *out;
  size_t in_count, out_count;
} runner_job;

/* 0, or -1 when memory outside of the arena was written or an offset lies outside of it. Every byte of the arena starts
 * as 0xff (a NaN), so that a read of memory that was not written shows. */
int runner_execute(lp_layout_fn *layout, lp_segment_fn *segment, const runner_job *job);

#endif
