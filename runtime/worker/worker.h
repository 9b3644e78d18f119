/* runtime/worker: serves a place of a bundle besides the device, such as the cloud side. One thread takes the messages
 * of all devices and runs passes for those that wait; the pool computes. A thread for each place that this one sends to
 * brings its messages there. This room stands above exits/, exec/, link/ and bundle/, beside session/: neither
 * calls the other. It is entered through lp_worker_serve (runtime.h); the functions below are for its tests. */
#pragma once

#include "runtime/worker/state.h"

/* Handles one message. The caller releases `in` afterwards; a message that waits for its turn was taken out of it. */
void worker_handle(lp_worker *worker, lp_inbound *in);
/* Begins the next run of each stream that can go on; a run that waits for no pass is over then. True: some began. */
bool worker_draw_on(lp_worker *worker);
/* The peer has disconnected: closes its sessions. Its contexts stay. */
void worker_forget(lp_worker *worker, uint32_t peer);
