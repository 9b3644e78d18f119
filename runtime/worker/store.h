/* Contexts on disk. The worker saves a context that it drops, and all contexts when it ends, so that devices need not
 * send their rows again. Without options->context_dir the functions do nothing. */
#pragma once

#include "runtime/exits/context_file.h"
#include "runtime/worker/state.h"

/* Makes the folder, and removes the oldest files while it exceeds its size. */
LP_MUST_USE lp_status worker_store_open(const lp_worker *worker, lp_diag *diag);
/* False: the context was not saved, and a warning says why unless it was empty or too large. */
bool worker_store_save(lp_worker *worker, const worker_context *context);
/* Creates the context that was saved under this number, with at most `most` positions; the caller frees it. False:
 * there is none. A damaged file is removed with a warning. */
bool worker_store_restore(lp_worker *worker, uint64_t id, int64_t most, lp_context_record *record, lp_context **out);
void worker_store_forget(const lp_worker *worker, uint64_t id); /* removes the file */
