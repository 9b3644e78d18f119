/* Draws that a pass does not wait for: a grammar from a stranger may take long to say which tokens may come next. One
 * thread of low priority goes on with them beside the passes, in slices of one to three milliseconds, next for the
 * client that has had the least of its time. A job whose draw is late is in no pass; it comes back with its token.
 * Private to engine/. */
#pragma once

#include "runtime/engine/state.h"

/* Starts the thread, and ends it. Without the lock. */
LP_MUST_USE lp_status engine_late_start(lp_engine *engine, lp_diag *diag);
void engine_late_stop(lp_engine *engine);
/* With the lock held: a job of the last pass waits for the thread. */
void engine_late_put(lp_engine *engine, engine_job *job);
/* With the lock held, which it may release meanwhile: the thread leaves the job alone from now on. */
void engine_late_withdraw(lp_engine *engine, engine_job *job);
