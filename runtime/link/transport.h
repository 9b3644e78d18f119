/* runtime/link: how frames travel between a device and workers. The table lp_transport is all that the layers above
 * see; sockets, TLS and queues are private to the folder. */
#ifndef LP_LINK_TRANSPORT_H
#define LP_LINK_TRANSPORT_H

#include "runtime/runtime.h"

typedef struct lp_channel lp_channel;
typedef struct lp_security lp_security;

/* Where the worker is, and how to deal with it. All connections of a session borrow it. */
typedef struct {
  const char *address; /* of the worker (address.h), for messages too */
  const char *via;     /* dialled instead: an emulated link; NULL: the address */
  const char *bundle_hash;
  lp_patience patience; /* no zeros */
  const lp_security *security;
} lp_endpoint;

enum { LP_ONLY_PEER = 1, LP_STRANGER_FRAME = 4096, LP_BINDING_BYTES = 32 };

/* A received frame. `data` lives until release. */
typedef struct {
  uint32_t peer;
  const uint8_t *data; /* NULL: the peer is gone */
  size_t size;
  void *handle;
} lp_packet;

/* LP_RECV_STRAINED: a listener lacks descriptors and says so now and then; it goes on. A dialled channel never does. */
typedef enum { LP_RECV_FRAME, LP_RECV_GONE, LP_RECV_TIMEOUT, LP_RECV_GARBAGE, LP_RECV_STRAINED } lp_recv_outcome;

/* Carries frames: those of one peer arrive whole, in order and once. One thread at a time uses a channel. */
typedef struct {
  const char *name;
  /* Connects within the time, TLS included. The channel's only peer is LP_ONLY_PEER. Its receive asks the listener for
   * signs of life and gives up a listener that is silent. */
  lp_status (*dial)(const lp_endpoint *endpoint, double timeout_ms, lp_channel **out, lp_diag *diag);
  /* Listens on an address and returns its port (port 0 takes a free one). A listener has one thread of its own, which
   * answers signs of life, takes connections and sends what is queued while the caller is not in receive. */
  lp_status (*listen)(const char *address, const lp_security *security, lp_channel **out, int *port, lp_diag *diag);
  /* From now on a listener's peer may send frames of up to so many bytes; a longer one ends the connection before any
   * memory is given to it. Until then the limit is LP_STRANGER_FRAME, and a peer that is not permitted within ten
   * seconds is dropped. */
  void (*permit)(lp_channel *channel, uint32_t peer, uint64_t bytes);
  /* Ends the connection with a listener's peer, after what is queued for it was sent. */
  void (*drop)(lp_channel *channel, uint32_t peer);
  /* Where a listener's peer is: "10.0.0.7:51234". */
  void (*describe)(lp_channel *channel, uint32_t peer, char out[64]);
  /* A secret that only the two ends of this TLS connection can derive; false: there is no TLS, or no such peer. */
  bool (*bind)(lp_channel *channel, uint32_t peer, uint8_t out[LP_BINDING_BYTES]);
  /* Sends head and body as one frame. A dialled channel waits until the socket has taken it; a listener queues what the
   * socket does not take at once. When it returns false, `why` says what went wrong. */
  bool (*send)(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
               size_t body_size, const char **why);
  /* Waits for a frame or for the end of a peer; may time out early. The time may be INFINITY. */
  lp_recv_outcome (*receive)(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why);
  void (*release)(lp_packet *packet);
  void (*close)(lp_channel *channel); /* sends what is queued, within a moment; NULL is allowed */
  size_t overhead;                    /* bytes that the transport itself adds to a frame */
} lp_transport;

extern const lp_transport lp_transport_socket; /* TCP over IPv4 and IPv6, and Unix sockets */

#endif
