/* The worker's end of all its connections. The caller's thread serves the sockets while it is in receive; a thread of
 * the listener's own, the attendant, does so while the caller computes, and sleeps otherwise. Private to the folder. */
#ifndef LP_LINK_LISTENER_H
#define LP_LINK_LISTENER_H

#include "runtime/link/transport.h"

typedef struct lp_listener lp_listener;

/* As the members of lp_transport that have the same names. */
LP_MUST_USE lp_status lp_listener_create(const char *address, const lp_security *security, lp_listener **out, int *port,
                                         lp_diag *diag);
void lp_listener_free(lp_listener *listener);
void lp_listener_permit(lp_listener *listener, uint32_t peer, uint64_t bytes);
void lp_listener_drop(lp_listener *listener, uint32_t peer);
void lp_listener_describe(lp_listener *listener, uint32_t peer, char out[64]);
bool lp_listener_bind(lp_listener *listener, uint32_t peer, uint8_t out[LP_BINDING_BYTES]);
bool lp_listener_send(lp_listener *listener, uint32_t peer, const void *head, size_t head_size, const void *body,
                      size_t body_size, const char **why);
lp_recv_outcome lp_listener_receive(lp_listener *listener, double timeout_ms, lp_packet *out, const char **why);

#endif
