/* The budget of KV caches: which sequences have memory. A sequence is admitted with the memory of the text that it has,
 * and gets more as it grows, so that it need not reserve what it may need at most. If the budget is used up, the
 * sequence that was admitted last gives its memory back, waits, and computes its text again: preemption by
 * recomputation (Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", 2023,
 * section 4.5). The one that was admitted first always goes on. KV caches stay contiguous for the code: the processor's
 * page table maps what holds rows (exec/state.h).
 *
 * On a GPU a sequence reserves the most that it may need, since its rows are rounded by the passes that compute them.
 * One that gives its memory back here does so at its worker, too. A worker has a budget of its own, which counts what
 * its sessions hold, and which other servers share: it takes the memory of the sessions that were opened last. Such a
 * sequence waits, too, and computes its text again, the tokens of the answer one by one. As many are admitted then as
 * the worker had room for, and one more from time to time.
 *
 * Private to engine/. */
#pragma once

#include "runtime/engine/state.h"

/* Sets the capacity and the most bytes of the call's KV caches. Fails if the budget is smaller. Needs no lock. */
LP_MUST_USE lp_status engine_memory_size(const lp_engine *engine, engine_call *call, lp_diag *diag);
/* Before a pass is chosen: gives memory to the sequences that grow, and admits those for which there is some. With the
 * lock held. */
void engine_memory_share(lp_engine *engine);
/* Lets a job that failed for want of room at the worker wait, and begin again. False: that is not why it failed. With
 * the lock held. */
bool engine_memory_await_room(lp_engine *engine, engine_job *job);
/* When a job that waits for room at the worker may be admitted, by lp_now_ms; INFINITY: none waits for that. With the
 * lock held. */
double engine_memory_next_ms(const lp_engine *engine);
/* The job waits until it is admitted again, and then computes its text from the beginning. Its executor is no longer
 * its own. With the lock held. */
void engine_memory_begin_again(lp_engine *engine, engine_job *job);
/* Takes the job's share back. With the lock held. */
void engine_memory_release(lp_engine *engine, engine_job *job);
