/* Keeps a worker that this process started: starts it again, at its address, when it has ended, and replaces one that
 * gives no sign of life. */
#ifndef LP_SERVE_SUPERVISE_H
#define LP_SERVE_SUPERVISE_H

#include <stdatomic.h>

#include "runtime/runtime.h"
#include "runtime/serve/place/watcher.h"

typedef struct {
  lp_worker_process *worker; /* the supervisor's only, until lp_supervisor_end; its address never changes */
  lp_worker_request request;
  lp_watcher watcher;
  atomic_bool down;          /* the worker has ended or gives no sign of life, and no other one listens yet */
  double asked_ms, heard_ms; /* of the watching thread: when it last asked for a sign of life, and got one */
} lp_supervisor;

/* Watches the worker, which listens already. It borrows everything. Without a thread the worker is only not watched. */
void lp_supervisor_start(lp_supervisor *supervisor, lp_worker_process *worker, const lp_worker_request *request);
/* Tells whether the worker listens, as far as is known. Any thread may ask. */
bool lp_supervisor_is_up(const lp_supervisor *supervisor);
/* Ends the watch, not the worker. A supervisor of zeros is allowed. */
void lp_supervisor_end(lp_supervisor *supervisor);

#endif
