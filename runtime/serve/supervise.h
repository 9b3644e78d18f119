/* Keeps a worker that this process started: starts it again, at its address, when it has ended. */
#ifndef LP_SERVE_SUPERVISE_H
#define LP_SERVE_SUPERVISE_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/runtime.h"

typedef struct {
  lp_worker_process *worker; /* the supervisor's only, until lp_supervisor_end; its address never changes */
  lp_worker_request request;
  pthread_t thread;
  pthread_mutex_t lock; /* guards `ends` */
  pthread_cond_t changed;
  bool runs, ends;
  atomic_bool down; /* the worker has ended, and no other one listens yet */
} lp_supervisor;

/* Watches the worker, which listens already. It borrows everything. Without a thread the worker is only not watched. */
void lp_supervisor_start(lp_supervisor *supervisor, lp_worker_process *worker, const lp_worker_request *request);
/* Tells whether the worker listens, as far as is known. Any thread may ask. */
bool lp_supervisor_is_up(const lp_supervisor *supervisor);
/* Ends the watch, not the worker. A supervisor of zeros is allowed. */
void lp_supervisor_end(lp_supervisor *supervisor);

#endif
