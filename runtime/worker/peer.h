/* Handshakes on the worker's side. The worker tells a peer that fails its handshake why, notes it once, and disconnects
 * it. */
#pragma once

#include "runtime/worker/figures.h"
#include "runtime/worker/state.h"

/* Handles the messages of handshakes. True: the message is of another kind, and its peer has passed its handshake. */
bool worker_peer_admits(lp_worker *worker, const lp_inbound *in);
/* Refuses the peer, which has failed its handshake or sent something that is no message. */
void worker_peer_reject(lp_worker *worker, uint32_t peer, worker_refusal reason, const char *why);
/* The peer's entry, which is made if there is none. Valid until another is made. */
worker_peer *worker_peer_of(lp_worker *worker, uint32_t id);
void worker_peer_forget(lp_worker *worker, uint32_t peer); /* it has disconnected */
/* The client behind the connection; 0: unknown. */
uint64_t worker_peer_who(const lp_worker *worker, uint32_t peer);
/* Whose quotas its sessions count for, besides those of the connection: its client's, or else its host's. */
uint64_t worker_peer_owner(const lp_worker *worker, uint32_t peer);
/* Tells whether one client has both connections. */
bool worker_peer_same(const lp_worker *worker, uint32_t a, uint32_t b);
/* The entry that keeps the account of the connection's client: the first of the client's entries, valid as above. */
worker_peer *worker_peer_account(lp_worker *worker, uint32_t peer);
