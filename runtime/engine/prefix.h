/* Rows of KV caches that prompts have left, for later prompts that begin with the same tokens, such as those of one
 * system prompt. Only rows of prompts are kept: rows of answers come from passes over one row, which may round
 * differently. A tenant's requests share rows with one another only: the number of shared tokens would tell a
 * stranger which words a prompt has. With a worker, a session there has its part of the rows. Belongs to the
 * engine's thread. Private to engine/. */
#pragma once

#include "runtime/engine/state.h"

/* Tells whether the KV caches of the device, and with `remote` those of the cloud, have a row for each token, so that
 * the first of them can be copied. */
bool engine_prefix_fits(const lp_bundle *bundle, bool remote);
/* For each job of which no pass has run: finds the longest beginning of its prompt among the rows that are kept and
 * those of other jobs, and begins after it. A job waits if another one is computing more rows of its prompt than are
 * there. With the lock held, before a pass is chosen. */
void engine_prefix_find(lp_engine *engine);
/* The first rows of a prompt that engine_prefix_find would find, or that jobs are about to compute. With the lock held.
 */
int64_t engine_prefix_rows_of(const lp_engine *engine, uint64_t tenant, const int32_t *prompt, size_t length);
/* Copies the rows that engine_prefix_find found. The job's own KV caches are reserved. */
LP_MUST_USE lp_status engine_prefix_copy(engine_job *job, lp_diag *diag);
/* Takes over the KV caches of a job that ends or waits again, or frees them. With the lock held. */
void engine_prefix_keep(lp_engine *engine, engine_job *job);
/* Frees kept rows, those that were used last at the end, until `bytes` more are within the budget or none are left.
 * With the lock held. */
void engine_prefix_make_room(lp_engine *engine, size_t bytes);
bool engine_prefix_drop_oldest(lp_engine *engine); /* false: there are none */
void engine_prefix_free(lp_engine *engine);
