/* runtime/link: carries frames between a device and workers. The layers above use only the table lp_transport; sockets,
 * TLS and queues are private to the folder. */
#pragma once

#include "runtime/runtime.h"

typedef struct lp_channel lp_channel;
typedef struct lp_security lp_security;

/* The worker's address and the settings of its connections. All connections of a session borrow it. */
typedef struct {
  const char *name;    /* the worker's in messages; NULL: "the cloud" */
  const char *address; /* the worker's (address.h); also used in messages */
  const char *via;     /* the address of an emulated link to connect to instead; NULL: none */
  const char *place;   /* the place that the worker must serve, or, of a worker, that it serves; NULL: one of two */
  const char *bundle_hash;
  lp_patience patience; /* no zeros */
  const lp_security *security;
} lp_endpoint;

const char *lp_endpoint_name(const lp_endpoint *endpoint); /* in messages: `name`, or "the cloud" */

enum { LP_ONLY_PEER = 1, LP_STRANGER_FRAME = 4096, LP_BINDING_BYTES = 32 };

/* A received frame. `data` lives until release. */
typedef struct {
  uint32_t peer;
  const uint8_t *data; /* NULL: the peer is gone */
  size_t size;
  void *handle;
} lp_packet;

/* LP_RECV_STRAINED: a listener lacks descriptors for connections. It reports this from time to time and continues. A
 * device's channel never returns it. */
typedef enum { LP_RECV_FRAME, LP_RECV_GONE, LP_RECV_TIMEOUT, LP_RECV_GARBAGE, LP_RECV_STRAINED } lp_recv_outcome;

/* Carries frames. Those of one peer arrive complete, in order and once. One thread at a time may use a channel. */
typedef struct {
  const char *name;
  /* Connects within the time, TLS included. The channel's only peer is LP_ONLY_PEER. Its receive requests signs of life
   * from the listener and gives up a silent one. */
  lp_status (*dial)(const lp_endpoint *endpoint, double timeout_ms, lp_channel **out, lp_diag *diag);
  /* Listens on an address and returns its port (port 0 takes a free one). A listener has a thread of its own, which
   * answers requests for signs of life, accepts connections and sends queued bytes while the caller is not in
   * receive. */
  lp_status (*listen)(const char *address, const lp_security *security, lp_channel **out, int *port, lp_diag *diag);
  /* Connections that come to a listener from now on use the TLS of `security`, which outlives them. There was TLS
   * before, too. */
  void (*renew)(lp_channel *channel, const lp_security *security);
  /* Permits a listener's peer to send frames of up to `most` bytes; a longer frame ends the connection before memory is
   * allocated for it. Before this call the limit is LP_STRANGER_FRAME, and a peer that is not permitted within ten
   * seconds is disconnected. */
  void (*permit)(lp_channel *channel, uint32_t peer, uint64_t bytes);
  /* Ends the connection with a listener's peer after its queue has been sent. */
  void (*drop)(lp_channel *channel, uint32_t peer);
  /* The address of a listener's peer, as "10.0.0.7:51234". */
  void (*describe)(lp_channel *channel, uint32_t peer, char out[64]);
  /* A secret that only the two ends of this TLS connection can derive; false: there is no TLS, or no such peer. */
  bool (*bind)(lp_channel *channel, uint32_t peer, uint8_t out[LP_BINDING_BYTES]);
  /* The number of the client that a listener's peer belongs to (security.h); 0: unknown. `host` receives that of its
   * host (address.h). */
  uint64_t (*identify)(lp_channel *channel, uint32_t peer, uint64_t *host);
  /* Sends head and body as one frame. A device's channel waits until the socket has taken it; a listener queues the
   * bytes that the socket does not take at once. After false, `why` gives the reason. */
  bool (*send)(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
               size_t body_size, const char **why);
  /* Waits for a frame or for the end of a connection; may time out early. The time may be INFINITY. */
  lp_recv_outcome (*receive)(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why);
  void (*release)(lp_packet *packet);
  /* Makes the receive of a listener that waits, or else the next one, return early. Any thread may call it. */
  void (*wake)(lp_channel *channel);
  /* Of a device that waits for several channels at once (wires.h): the descriptor that is readable when receive has
   * something to do, and the time at which it has something to do in any case. */
  int (*watch)(lp_channel *channel, double *due_ms);
  /* The device no longer waits: until the next receive the worker may be silent. A received frame says so, too. */
  void (*rest)(lp_channel *channel);
  void (*close)(lp_channel *channel); /* sends queued bytes if that takes only a moment; NULL is allowed */
  size_t overhead;                    /* bytes that the transport adds to a frame */
} lp_transport;

extern const lp_transport lp_transport_socket; /* TCP over IPv4 and IPv6, and Unix sockets */
