/* A thread that watches something until it is told to end, such as a worker that this process started. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/runtime.h"

typedef struct {
  pthread_t thread;
  pthread_mutex_t lock; /* guards `ends` and `woken` */
  pthread_cond_t changed;
  bool runs, ends, woken;
} lp_watcher;

/* Starts `watch(user)`, which returns when lp_watcher_wait gives false. If the system starts no thread, nothing
 * watches. */
void lp_watcher_start(lp_watcher *watcher, void *(*watch)(void *user), void *user);
/* On the watching thread: waits for the time, or until another thread wakes it; false: the watch ends. */
bool lp_watcher_wait(lp_watcher *watcher, double ms);
void lp_watcher_wake(lp_watcher *watcher);
/* Ends the watch and awaits its thread. A watcher of zeros is allowed. */
void lp_watcher_end(lp_watcher *watcher);

/* ---- a worker of this process ------------------------------------------------------------------------------------ */

/* Keeps the worker: starts it again, at its address, when it has ended, and replaces one that gives no sign of life. */
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
