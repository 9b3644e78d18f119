/* The cloud's steps of passes: a connection to a worker, on which each sequence has a session. Belongs to the engine's
 * thread. Private to engine/. */
#pragma once

#include "runtime/engine/state.h"

/* Tells whether passes can run this split bundle; if not, `why` receives the reason, as static text. */
bool engine_remote_fits(const lp_bundle *bundle, const char **why);
/* Does not connect yet. Borrows all. */
LP_MUST_USE lp_status engine_remote_open(const lp_bundle *bundle, const lp_engine_options *options, engine_remote **out,
                                         lp_diag *diag);
void engine_remote_close(engine_remote *remote); /* NULL is allowed */

/* Before a pass: connects if there is no connection, and opens the sessions of the chosen jobs that ask. A failure of
 * these functions is the loss of the worker, with all of its sessions. */
LP_MUST_USE lp_status engine_remote_begin(lp_engine *engine, lp_diag *diag);
/* Sends payload[size], the job's data of a step, or with step -1 nothing but the begin of the run. */
LP_MUST_USE lp_status engine_remote_send(lp_engine *engine, size_t sequence, int32_t program, int32_t step,
                                         const void *payload, size_t size, lp_diag *diag);
/* Waits for the job's result of a step of the cloud: bytes, which are copied into `to`, or, of an output, the token, or
 * what the job wants instead of it: all outputs, of which it keeps the logits. A job whose run failed there fails; that
 * is no failure of the function. */
LP_MUST_USE lp_status engine_remote_take(lp_engine *engine, size_t sequence, int32_t program, int32_t step, lp_span to,
                                         lp_diag *diag);
LP_MUST_USE lp_status engine_remote_draw(lp_engine *engine, size_t sequence, int32_t program, int32_t step,
                                         lp_diag *diag);
LP_MUST_USE lp_status engine_remote_take_output(lp_engine *engine, size_t sequence, int32_t program, int32_t step,
                                                lp_diag *diag);
/* The worker was lost in this pass. */
bool engine_remote_is_lost(const engine_remote *remote);
/* The job's session ends with the next call of engine_remote_tidy, which closes such sessions, or the connection if it
 * was lost. */
void engine_remote_forget(engine_remote *remote, engine_job *job);
void engine_remote_forget_session(engine_remote *remote, uint64_t session);
/* With the next call of engine_remote_tidy another session copies the first `rows` rows of the job's; its number. */
uint64_t engine_remote_keep(engine_remote *remote, const engine_job *job, int64_t rows);
bool engine_remote_has_forgotten(const engine_remote *remote); /* sessions wait for engine_remote_tidy */
void engine_remote_tidy(engine_remote *remote);
/* Closes the connection, so that the next pass makes another one. */
void engine_remote_drop(engine_remote *remote);
