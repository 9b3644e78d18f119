/* Drops and closes sessions and contexts. To drop one is to free its memory while its device may continue; to close
 * one is to end it. */
#pragma once

#include "runtime/worker/state.h"

void worker_session_drop(worker_session *session);
void worker_session_drop_mail(worker_session *session); /* forgets the messages that have not come to their turn */
void worker_session_close(lp_worker *worker, worker_session *session);
/* Saves the context to disk and closes it; without a folder for contexts, or when that fails, drops its content. */
void worker_context_drop(lp_worker *worker, worker_context *context);
void worker_context_close(lp_worker *worker, worker_context *context);
/* Closes all contexts when the worker ends, after saving those that can be saved. */
void worker_context_close_all(lp_worker *worker);
