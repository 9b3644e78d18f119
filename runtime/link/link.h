/* runtime/link: messages between device and worker. A transport carries frames; a wire is the protocol above it: the messages of
 * link.proto, each with a payload, and the handshake (docs/protocol.md). It knows no bundle but its hash, and no session. Nothing
 * outside of runtime/ and its tests includes it. */
#ifndef LP_LINK_H
#define LP_LINK_H

#include "base/side.h"
#include "runtime/runtime.h"

/* ---- patience (backoff.c) ---------------------------------------------------------------------------------------- */

/* Attempts with pauses that double, until the time is over. */
typedef struct {
  double pause_ms, longest_ms, until_ms;
} lp_backoff;
lp_backoff lp_backoff_begin(const lp_patience *patience, double timeout_ms);
/* Sleeps until the next attempt; false: the time is over. */
bool lp_backoff_wait(lp_backoff *backoff);

/* ---- transport (transport_tcp.c, address.c) --------------------------------------------------------------------------------- */

typedef struct lp_channel lp_channel;
typedef struct lp_security lp_security;
struct lp_nonces;

/* Where the worker is, and how to deal with it. Borrowed by all connections of a session. */
typedef struct {
  const char *address; /* HOST:PORT, for messages too */
  const char *via;     /* dialled instead: an emulated link; NULL: the address */
  const char *bundle_hash;
  lp_patience patience; /* no zeros */
  const struct lp_security *security;
} lp_endpoint;

enum { LP_ONLY_PEER = 1, LP_STRANGER_FRAME = 4096 };

/* A frame as received. `data` lives until release. */
typedef struct {
  uint32_t peer;
  const uint8_t *data; /* NULL: the peer is gone */
  size_t size;
  void *handle;
} lp_packet;

typedef enum { LP_RECV_FRAME, LP_RECV_GONE, LP_RECV_TIMEOUT, LP_RECV_GARBAGE, LP_RECV_FAILED } lp_recv_outcome;

/* How frames travel: those of one peer arrive whole, in order and once. A channel belongs to one thread; what the
 * transport does on threads of its own is its own affair. */
typedef struct {
  const char *name;
  /* Connects within the time; the only peer is LP_ONLY_PEER. Listeners answer signs of life by themselves, however busy
   * their thread is; a dialler's receive asks for them and gives up a peer that is silent. */
  lp_status (*dial)(const lp_endpoint *endpoint, double timeout_ms, lp_channel **out, lp_diag *diag);
  /* Listens on HOST:PORT (port 0: a free one) and returns the port taken. */
  lp_status (*listen)(const char *address, const lp_security *security, lp_channel **out, int *port, lp_diag *diag);
  /* Of a listener's peer: frames of up to so many bytes are taken; a longer one ends the connection before any memory is
   * given to it. LP_STRANGER_FRAME until this is called. */
  void (*permit)(lp_channel *channel, uint32_t peer, uint64_t bytes);
  /* Ends the connection with a listener's peer. */
  void (*drop)(lp_channel *channel, uint32_t peer);
  /* Where a listener's peer is: "10.0.0.7:51234". */
  void (*describe)(lp_channel *channel, uint32_t peer, char out[64]);
  /* Sends head and body as one frame; `why` says what went wrong when it returns false. */
  bool (*send)(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
               size_t body_size, const char **why);
  /* Waits for a frame or for the end of a peer; may time out early. */
  lp_recv_outcome (*receive)(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why);
  void (*release)(lp_packet *packet);
  void (*close)(lp_channel *channel); /* sends what is queued, within a moment; NULL is allowed */
  size_t overhead;                    /* bytes that the transport itself adds to a frame */
} lp_transport;

extern const lp_transport lp_transport_tcp;

/* Splits HOST:PORT ("[::1]:80" for IPv6); reports anything else. `host` is released with free(). */
LP_MUST_USE lp_status lp_address_split(const char *address, char **host, int *port, lp_diag *diag);
bool lp_address_is_loopback(const char *host);

/* ---- link (link.c) ----------------------------------------------------------------------------------------------- */

enum { LP_WIRE_PROTOCOL = 3 };

typedef struct lp_wire {
  const lp_transport *transport;
  lp_channel *channel;
  char *address;                       /* of the other side, for messages */
  uint64_t bytes_sent, bytes_received; /* payload and framing */
  lp_buf head;
  uint8_t *scratch; /* [scratch_size] */
  size_t scratch_size;
} lp_wire;

struct Lp__Wire__Message;

typedef struct {
  struct Lp__Wire__Message *message;
  const void *payload;
  size_t payload_size;
  lp_packet packet;
  const lp_transport *transport;
} lp_inbound;

/* Dials and shakes hands: protocol version and bundle hash must be equal on both sides. */
LP_MUST_USE lp_status lp_wire_dial(const lp_transport *transport, const lp_endpoint *endpoint, double timeout_ms,
                                   lp_wire **out, lp_diag *diag);
LP_MUST_USE lp_status lp_wire_listen(const lp_transport *transport, const char *address, const lp_security *security,
                                     lp_wire **out, int *port, lp_diag *diag);
/* A hello from `who`; the worker's carries its proof when there is a key. */
bool lp_wire_hello(lp_wire *link, uint32_t peer, lp_side who, const lp_endpoint *endpoint,
                   const struct lp_nonces *nonces, const char **why);
void lp_nonce_draw(uint8_t out[32]);
void lp_wire_close(lp_wire *link); /* NULL is allowed */
bool lp_wire_send(lp_wire *link, uint32_t peer, const struct Lp__Wire__Message *message, const void *payload,
                  size_t payload_size, const char **why);
/* LP_RECV_GARBAGE: a frame came that is no message; the peer's number is in `out->packet`. LP_RECV_TIMEOUT may come
 * early. */
lp_recv_outcome lp_wire_receive(lp_wire *link, double timeout_ms, lp_inbound *out, const char **why);
void lp_inbound_release(lp_inbound *inbound);

#endif
