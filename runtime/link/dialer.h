/* The device's end of a connection. It has one peer and no thread of its own: the caller polls the socket, reads and
 * writes it, and computes TLS. Private to the folder. */
#ifndef LP_LINK_DIALER_H
#define LP_LINK_DIALER_H

#include "runtime/link/transport.h"

typedef struct lp_dialer lp_dialer;

/* As the members of lp_transport that have the same names. */
LP_MUST_USE lp_status lp_dialer_create(const lp_endpoint *endpoint, double timeout_ms, lp_dialer **out, lp_diag *diag);
bool lp_dialer_send(lp_dialer *dialer, const void *head, size_t head_size, const void *body, size_t body_size,
                    const char **why);
lp_recv_outcome lp_dialer_receive(lp_dialer *dialer, double timeout_ms, lp_packet *out, const char **why);
bool lp_dialer_bind(lp_dialer *dialer, uint8_t out[LP_BINDING_BYTES]);
void lp_dialer_free(lp_dialer *dialer);

#endif
