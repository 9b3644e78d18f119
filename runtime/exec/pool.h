/* A pool of threads that run a segment together. */
#ifndef LP_POOL_H
#define LP_POOL_H

#include <stdbool.h>

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
/* Runs segment(frame, thread) on every thread and returns when all have returned. Where the machine is so busy that the
 * threads wait for each other longer than they compute, the caller runs some segments by itself. Sets `barrier` and
 * `threads` of the frame and of its sequences. */
void lp_pool_run(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame);

/* Decides when the caller runs segments by itself. On a busy machine the threads of a segment wait at each barrier
 * until the kernel has given a core to the last of them, which may take a hundred times the computation. After a
 * segment that took longer than the caller would have taken by itself, the caller runs segments by itself for `share`
 * times the time that it lost, except those that would by themselves take more than twice that; `share` doubles with
 * each late attempt and halves with each other one. So one late segment costs little, and a machine that stays busy
 * costs little more than one thread would. Starts as zeros. */
typedef struct {
  double alone_until_ms; /* by the clock of lp_now_ms */
  double share;
  double row_ms; /* what the caller by itself would have taken for a row of the last segment that was judged */
} lp_lateness;
/* Tells whether the caller runs the segment that begins at `now_ms`, over `rows` rows, by itself. */
bool lp_lateness_excludes(const lp_lateness *lateness, double now_ms, int64_t rows);
/* Judges a segment of all threads over `rows` rows that took `ms` and ended at `now_ms`; the caller by itself would
 * have taken `alone_ms`. */
void lp_lateness_judge(lp_lateness *lateness, double now_ms, int64_t rows, double ms, double alone_ms);

#endif
