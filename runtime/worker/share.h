/* Shares of passes. All connections of a client count as one peer, and peers take turns by exec/fair.h. While several
 * peers are active, a pass takes so few rows that it lasts about 1.4 times as long as a pass with one row of each that
 * waits: the next token of another peer waits for one pass. */
#pragma once

#include "runtime/worker/state.h"

/* A request of the peer enters the queue. */
void worker_share_enter(lp_worker *worker, uint32_t peer);
/* Tells how many rows the peer was served. To be called for each request that is in the queue before a pass, after
 * worker_share_begin for the pass. */
void worker_share_begin(lp_worker *worker);
int64_t worker_share_served(lp_worker *worker, uint32_t peer);
/* A pass has run `rows` rows for the peer. */
void worker_share_charge(lp_worker *worker, uint32_t peer, int64_t rows);
/* The most rows of the next pass, which has one row at least for each of worker->waiting peers. */
int64_t worker_share_most(const lp_worker *worker, double now_ms);
