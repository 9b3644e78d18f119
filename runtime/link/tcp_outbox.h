/* Frames on their way out of a stream, so that whoever sends never waits for a peer that is slow, or gone. Private to the TCP
 * transport. Any thread may call. */
#ifndef LP_TCP_OUTBOX_H
#define LP_TCP_OUTBOX_H

#include <nng/nng.h>
#include <pthread.h>

#include "base/base.h"
#include "runtime/link/tcp_stream.h"

typedef struct {
  uint8_t *data;
  size_t size;
} lp_tcp_piece;

typedef struct {
  lp_tcp_stream *tcp; /* borrowed */
  nng_aio *aio;
  pthread_mutex_t mutex;
  /* Under the mutex: */
  LP_VEC(lp_tcp_piece) queue;
  size_t sent, bytes; /* of the first piece; of all pieces */
  lp_buf sealed;      /* the frame at hand, in TLS */
  bool busy, broken, finishing;
} lp_tcp_outbox;

bool lp_tcp_outbox_init(lp_tcp_outbox *outbox, lp_tcp_stream *tcp);
/* After the stream was closed. One that was not initialised (zero) is allowed. */
void lp_tcp_outbox_free(lp_tcp_outbox *outbox);
/* Sends head and body as one frame, at once or from a copy. False: the peer is gone, or takes so little that too much waits for it. */
bool lp_tcp_outbox_put(lp_tcp_outbox *outbox, const void *head, size_t head_size, const void *body, size_t body_size);
/* Sends what TLS has to say for itself. */
void lp_tcp_outbox_flush(lp_tcp_outbox *outbox);
/* A frame of no bytes, unless something is on its way: that is a sign of life too. */
void lp_tcp_outbox_beat(lp_tcp_outbox *outbox);
/* Closes the stream as soon as all is sent. */
void lp_tcp_outbox_finish(lp_tcp_outbox *outbox);
/* Has the stream receive; false: it is closed, or about to be, and the receive would never complete. */
bool lp_tcp_outbox_ask(lp_tcp_outbox *outbox);

#endif
