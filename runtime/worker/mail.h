/* Messages for sessions with a route, which come from the device and from other places, each over a connection of its
 * own, and so in any order. Each waits here for its turn: a run begins after the one before it has ended here, and a
 * step takes its payload after the steps before it. Messages of runs that are over, and those that come twice, are
 * ignored. */
#pragma once

#include "runtime/link/link.pb-c.h"
#include "runtime/worker/state.h"

/* Takes a Peer message: the connection is another worker's. */
void worker_mail_take_peer(lp_worker *worker, uint32_t peer, const Lp__Wire__Peer *message);
/* Takes over a Forward, or a device's Step for the session, and handles what is due. An unknown route is ignored. */
void worker_mail_take_forward(lp_worker *worker, lp_inbound *in);
void worker_mail_take_step(lp_worker *worker, worker_session *session, lp_inbound *in);
/* Handles what is due after a pass. */
void worker_mail_deliver(lp_worker *worker);
