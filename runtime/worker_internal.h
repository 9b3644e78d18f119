/* What worker.c and worker_session.c share: contexts of devices on the cloud side. */
#ifndef LP_WORKER_INTERNAL_H
#define LP_WORKER_INTERNAL_H

#include "runtime/link.pb-c.h"
#include "runtime/runtime_internal.h"

/* A session of a device. It runs its part of a program as payloads come in: between two messages it waits at the step
 * `next`, which takes something from the device. */
typedef struct {
  uint32_t peer;
  uint64_t id;
  lp_sampling sampling;
  lp_executor *executor;
  int32_t program;
  int32_t next; /* the step it waits at; -1: no run under way */
  bool want_outputs;
  bool dropped;     /* its KV cache was given up; only p = 0 begins anew */
  int64_t position; /* tokens in the KV cache */
  double used_ms;   /* when it was last asked */
} worker_session;

typedef struct {
  const lp_bundle *bundle;
  const lp_worker_options *options;
  lp_pool *pool;
  lp_wire *link;
  LP_VEC(worker_session *) sessions;
  LP_VEC(uint32_t) greeted; /* peers whose hello was right */
  lp_buf scratch, rows;
  lp_sample *sample; /* [sample_count] */
  size_t sample_count;
} lp_worker;

worker_session *worker_session_find(const lp_worker *worker, uint32_t peer, uint64_t id);
worker_session *worker_session_open(lp_worker *worker, uint32_t peer, const Lp__Wire__Open *open);
void worker_session_close(lp_worker *worker, worker_session *session);
/* Gives up the KV caches of sessions unused for longer than the idle time. */
void worker_drop_idle(lp_worker *worker);
/* Takes a Step message and runs on until the next payload is needed. Replies are sent on the way. */
LP_MUST_USE lp_status worker_session_step(lp_worker *worker, worker_session *session, const lp_inbound *in,
                                          lp_diag *diag);

#endif
