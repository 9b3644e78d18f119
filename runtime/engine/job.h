/* The clients of an engine, and the passes over their sequences. Private to engine/. */
#pragma once

#include "runtime/engine/state.h"

/* With the lock held. */
void engine_client_enter(lp_engine *engine, uint64_t id, int32_t jobs);
/* Ends jobs that nobody wants, admits others, and chooses those of the next pass. With the lock held. False: there is
 * nothing to run. */
bool engine_choose(lp_engine *engine);
/* Runs the pass over the chosen jobs and draws their tokens. Without the lock. */
void engine_pass_run(lp_engine *engine);
/* Marks the job as ended and releases its KV cache. With the lock held, on the engine's thread. */
void engine_job_end(lp_engine *engine, engine_job *job);
