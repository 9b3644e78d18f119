/* Notes the figures of a worker (lp_worker_figures in runtime/runtime.h), of which another thread may print. Without
 * options->figures, notes cost nothing and are lost. */
#pragma once

#include "runtime/worker/state.h"

typedef enum {
  WORKER_REFUSED_HANDSHAKE, /* no hello with this protocol and bundle came, or no message at all */
  WORKER_REFUSED_KEY,       /* the peer holds another key, or shows no certificate that is trusted */
  WORKER_REFUSED_PLACE,     /* another worker of a bundle with more than two places, or not one */
  WORKER_REFUSED_FULL,      /* --max-sessions */
  WORKER_REFUSED_SESSIONS,  /* of a connection or a client */
  WORKER_REFUSED_ROWS,
  WORKER_REFUSED_MEMORY,
  WORKER_REFUSED_BUDGET, /* --context-budget, of all */
  WORKER_REFUSED_COUNT
} worker_refusal;
void worker_note_refusal(const lp_worker *worker, worker_refusal reason);
void worker_note_failure(const lp_worker *worker); /* a device was told that what it asked for fails */

/* A run that a session asked for, or a question of a context. */
typedef enum { WORKER_OF_SESSION, WORKER_OF_CONTEXT, WORKER_OF_COUNT } worker_of;
void worker_note_opened(const lp_worker *worker, worker_of of);
/* The KV caches of a session or a context were dropped: it was idle, or others needed the room. */
void worker_note_dropped(const lp_worker *worker, worker_of of, bool idle);
/* A pass takes up what was asked for at `asked_ms`. */
void worker_note_queued(const lp_worker *worker, worker_of of, double asked_ms);
/* A pass has run `rows` rows, in `ms`. */
void worker_note_pass(const lp_worker *worker, int64_t rows, double ms);
/* An answer goes out now. `first`: it is the first one to a prompt that came at `from_ms`; else the one before went out
 * then. NaN: unknown. */
void worker_note_answer(const lp_worker *worker, worker_of of, bool first, double from_ms);

/* What the worker has at present. */
typedef struct {
  size_t open[WORKER_OF_COUNT], connections;
  size_t waiting;      /* runs and questions that wait for a pass, or for rows */
  size_t held, budget; /* bytes of KV caches and of rows of contexts; SIZE_MAX: no limit */
  uint64_t received, sent;
  bool full;
} worker_figures_now;
/* The worker takes messages. */
void worker_note_now(const lp_worker *worker, const worker_figures_now *now);
void worker_note_end(const lp_worker *worker);
