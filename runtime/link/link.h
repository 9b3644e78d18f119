/* runtime/link: messages between device and worker. A transport carries frames; a wire is the protocol above it: the
 * messages of link.proto, each with a payload, and the handshake (docs/protocol.md). It knows a bundle only by its
 * hash, and knows no session. Only runtime/ and its tests include this header. */
#pragma once

#include "base/side.h"
#include "runtime/link/address.h"
#include "runtime/link/security.h"
#include "runtime/link/transport.h"

/* ---- link (link.c) ----------------------------------------------------------------------------------------------- */

enum { LP_WIRE_PROTOCOL = 5 };

typedef struct lp_wire {
  const lp_transport *transport;
  lp_channel *channel;
  char *address;                       /* address of the other side, for messages */
  uint64_t bytes_sent, bytes_received; /* payload and framing */
  lp_buf head;                         /* buffer for the message that is being sent */
} lp_wire;

struct Lp__Wire__Message;
/* The value of a message of one kind: LP_WIRE_MESSAGE(ROWS, .rows = &rows). */
#define LP_WIRE_MESSAGE(kind, ...)                                                                                     \
  {                                                                                                                    \
    PROTOBUF_C_MESSAGE_INIT(&lp__wire__message__descriptor), LP__WIRE__MESSAGE__KIND_##kind, {                         \
      __VA_ARGS__                                                                                                      \
    }                                                                                                                  \
  }

typedef struct {
  struct Lp__Wire__Message *message;
  const void *payload;
  size_t payload_size;
  lp_packet packet;
  const lp_transport *transport;
} lp_inbound;

/* Connects and performs the handshake: protocol version and bundle hash must be equal on both sides. */
LP_MUST_USE lp_status lp_wire_dial(const lp_transport *transport, const lp_endpoint *endpoint, double timeout_ms,
                                   lp_wire **out, lp_diag *diag);
/* The same; sets *refused after a failure when the worker has answered, so that another attempt would fail as well. */
LP_MUST_USE lp_status lp_wire_try_dial(const lp_transport *transport, const lp_endpoint *endpoint, double timeout_ms,
                                       lp_wire **out, bool *refused, lp_diag *diag);
LP_MUST_USE lp_status lp_wire_listen(const lp_transport *transport, const char *address, const lp_security *security,
                                     lp_wire **out, int *port, lp_diag *diag);
/* The listener's connections to come use the TLS of `security` (transport.h). */
void lp_wire_renew(lp_wire *wire, const lp_security *security);
/* Sends the hello of side `who`. If TLS uses certificates, the worker's hello carries its proofs of its keys. */
bool lp_wire_hello(lp_wire *wire, uint32_t peer, lp_side who, const lp_endpoint *endpoint, const char **why);
/* The key of `endpoint` of which `proof` is side `who`'s proof on the connection with this peer, or holds it among
 * others; NULL: there is none. */
const lp_key *lp_wire_proved(const lp_wire *wire, uint32_t peer, lp_side who, const lp_endpoint *endpoint,
                             const uint8_t *proof, size_t size);
void lp_wire_close(lp_wire *wire); /* NULL is allowed */
bool lp_wire_send(lp_wire *wire, uint32_t peer, const struct Lp__Wire__Message *message, const void *payload,
                  size_t payload_size, const char **why);
/* Receives a message. LP_RECV_GARBAGE: a frame came that is no message; `out->packet` has the number of the peer.
 * LP_RECV_TIMEOUT may come early. */
lp_recv_outcome lp_wire_receive(lp_wire *wire, double timeout_ms, lp_inbound *out, const char **why);
void lp_inbound_release(lp_inbound *inbound);

/* ---- pauses between attempts to reach a worker (link.c) ---------------------------------------------------------- */

/* Attempts to connect, with pauses that double, until the time is over. */
typedef struct {
  double pause_ms, longest_ms, until_ms;
} lp_backoff;
lp_backoff lp_backoff_begin(const lp_patience *patience, double timeout_ms);
/* Sleeps until the next attempt; false: the time is over. */
bool lp_backoff_wait(lp_backoff *backoff);

/* An attempt to reach what may not be there yet. Sets *refused after a failure that another attempt would repeat. */
typedef lp_status lp_attempt(void *user, bool *refused, lp_diag *diag);
/* Attempts until one succeeds or is refused, or `timeout_ms` are over: then it reports what the last attempt did. */
LP_MUST_USE lp_status lp_reach(const lp_patience *patience, double timeout_ms, lp_attempt *attempt, void *user,
                               lp_diag *diag);
