/* A pool of threads that run a segment together. */
#pragma once

#include "base/abi.h"

/* The calling thread is thread 0; the pool starts the other `threads` - 1, which spin briefly after a segment and then
 * sleep. One thread at a time may use a pool. */
typedef struct lp_pool lp_pool;
/* 0 threads: one for each core of the process. The pool has fewer threads than requested when the system refuses
 * some. */
lp_pool *lp_pool_create(int32_t threads);
void lp_pool_free(lp_pool *pool); /* NULL is allowed */
/* Calls `act` once for each i in [0, count), on the threads of the pool, and returns when all calls have returned.
 * Several calls may run at the same time. */
void lp_pool_each(lp_pool *pool, void (*act)(void *user, int64_t i), void *user, int64_t count);
int32_t lp_pool_threads(const lp_pool *pool);
/* From now on all threads run every segment, where they come within 100 ms: for tests of the code that they run. */
void lp_pool_share_all(lp_pool *pool);
/* Runs segment(frame, thread) on those threads that have a core, 0 to `frame`->threads - 1, and returns when all have
 * returned. The caller runs it alone where that is faster (sharing.h). The segment reads at most `bytes` of weights, 0:
 * unknown, which only guides a first guess. Sets `barrier` and `threads` of the frame and of its sequences. */
void lp_pool_run(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame, int64_t bytes);
