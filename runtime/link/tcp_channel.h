/* What the files of the TCP transport share: transport_tcp.c opens, closes and sends, tcp_device.c receives from the worker, tcp_listener.c
 * from all devices. */
#ifndef LP_TCP_CHANNEL_H
#define LP_TCP_CHANNEL_H

#include <pthread.h>

#include "runtime/link/link.h"
#include "runtime/link/tcp_look.h"
#include "runtime/link/tcp_outbox.h"
#include "runtime/link/tcp_stream.h"
#include "runtime/runtime.h"

/* Of a listener's peer, under the mutex: who may touch what was received? */
typedef enum {
  LP_TCP_IDLE,  /* nobody receives: the listener's thread looks */
  LP_TCP_ASKED, /* NNG's threads, or the listener's while it reads */
  LP_TCP_READY, /* the listener's thread: a frame is complete */
  LP_TCP_HELD,  /* its next frame is too long, unless what it sent before brings it a permission */
  LP_TCP_GONE,
  LP_TCP_STATES
} lp_tcp_state;

typedef struct {
  lp_channel *channel;
  uint32_t id;
  lp_tcp_stream tcp;
  lp_tcp_state state;
  double idle_ms;       /* since when */
  lp_tcp_outbox outbox; /* of a listener's peer */
  /* Of a device's only peer: is a receive asked for, and complete (atomic, set under the mutex)? */
  bool asked, received;
  /* Is it waited for, since when nothing came, when it was asked for a sign of life. */
  bool awaited;
  double heard_ms, beaten_ms;
} lp_tcp_peer;

struct lp_channel {
  nng_stream_listener *listener; /* NULL: a device's channel */
  nng_stream_dialer *dialer;
  nng_aio *connect;         /* accepts or dials */
  lp_patience patience;     /* of a device */
  const lp_tls_config *tls; /* NULL: plain */
  lp_tcp_gaze gaze;         /* of the thread that receives */
  pthread_mutex_t mutex;
  pthread_cond_t news;
  /* Under the mutex: */
  LP_VEC(lp_tcp_peer *) peers;
  size_t next; /* where the search for a ready peer begins, so that each has its turn */
  uint32_t last_id;
  size_t in_state[LP_TCP_STATES]; /* peers of a listener; atomic, for looking without the mutex */
  nng_aio *care;                  /* of a listener: wakes up to see to idle peers */
  bool caring;
};

/* transport_tcp.c */
struct timespec lp_tcp_deadline(double ms); /* from now, by the clock that conditions wait for */
lp_packet lp_tcp_take_frame(lp_tcp_peer *peer);
void lp_tcp_peer_free(lp_tcp_peer *peer);

/* tcp_device.c */
void lp_tcp_on_answered(void *peer);
void lp_tcp_lose(lp_tcp_peer *peer); /* a stream that failed once is not used again: NNG's would wait for ever */
/* Of TLS, which is there. False: `why` it failed. */
bool lp_tcp_shake_hands(lp_tcp_peer *peer, double timeout_ms, const char **why);
lp_recv_outcome lp_tcp_receive_from_only(lp_tcp_peer *peer, double timeout_ms, lp_packet *out, const char **why);

/* tcp_listener.c */
void lp_tcp_on_received(void *peer);
void lp_tcp_on_care(void *channel);
void lp_tcp_ask(lp_tcp_peer *peer); /* with the mutex held: has NNG's threads receive from an idle one */
lp_recv_outcome lp_tcp_receive_from_any(lp_channel *channel, double timeout_ms, lp_packet *out);

#endif
