/* runtime/worker: the cloud side of a bundle. One thread takes the messages of all devices and runs passes for those
 * that wait; the pool computes. This room stands above exits/, exec/, link/ and bundle/, beside session/: neither
 * calls the other. It is entered through lp_worker_serve (runtime.h); the functions below are for its tests. */
#ifndef LP_WORKER_H
#define LP_WORKER_H

#include "runtime/worker/state.h"

/* Handles one message. */
void worker_handle(lp_worker *worker, const lp_inbound *in);
/* The peer has disconnected: closes its sessions. Its contexts stay. */
void worker_forget(lp_worker *worker, uint32_t peer);

#endif
