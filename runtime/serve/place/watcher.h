/* A thread that watches something until it is told to end. */
#ifndef LP_SERVE_WATCHER_H
#define LP_SERVE_WATCHER_H

#include <pthread.h>
#include <stdbool.h>

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

#endif
