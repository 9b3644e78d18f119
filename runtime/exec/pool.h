/* A pool of threads that run a segment together. */
#ifndef LP_POOL_H
#define LP_POOL_H

#include "base/abi.h"

/* The calling thread is thread 0; the pool starts the other `threads` - 1, which spin briefly after a segment and then
 * sleep. One thread at a time may use a pool. */
typedef struct lp_pool lp_pool;
/* 0 threads: one for each core of the process. The pool has fewer threads than requested when the system refuses
 * some. */
lp_pool *lp_pool_create(int32_t threads);
void lp_pool_free(lp_pool *pool); /* NULL is allowed */
int32_t lp_pool_threads(const lp_pool *pool);
/* Runs segment(frame, thread) on every thread and returns when all have returned. Where the machine is so busy that the
 * threads wait for each other longer than they compute, the caller runs some segments by itself. Sets `barrier` and
 * `threads` of the frame and of its sequences. */
void lp_pool_run(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame);

#endif
