/* One connection: frames over a non-blocking socket, plain or in TLS 1.3. A frame is a uint64, little endian, and so
 * many bytes; an empty frame is a sign of life. No call waits, unless it is told to. The thread that wants the bytes
 * computes TLS; two threads may not use a connection at once. Private to the folder. */
#ifndef LP_LINK_CONN_H
#define LP_LINK_CONN_H

#include "runtime/link/transport.h"

struct ssl_st;
struct ssl_ctx_st;
struct bio_method_st;

enum { LP_FRAME_LENGTH = 8, LP_READ_AHEAD = 16 << 10 };

typedef struct {
  int fd;                      /* -1: closed */
  struct ssl_st *tls;          /* NULL: plain */
  struct bio_method_st *quiet; /* of `tls`: writes without SIGPIPE */
  bool broken;
  char why[160]; /* the reason, once it is broken */

  /* Receiving. Bytes are read into `ahead`, so that a small frame costs one read; the rest of a large frame is read
   * into place. */
  uint64_t most;     /* bytes of a frame that is taken */
  uint8_t *frame;    /* being filled, or whole */
  size_t size, have; /* `have` counts the length's bytes while `frame` is NULL, then the frame's */
  bool asked;        /* a sign of life came; the reader of this clears it */
  size_t begin, end; /* of the bytes in `ahead` */
  uint8_t length[LP_FRAME_LENGTH], ahead[LP_READ_AHEAD];

  /* Sending: the bytes that the socket has not taken yet. */
  lp_buf queue;
  size_t sent;     /* of `queue` */
  double moved_ms; /* when the socket last took something, or the queue began */
} lp_conn;

typedef enum {
  LP_CONN_MORE, /* more bytes must come */
  LP_CONN_FRAME,
  LP_CONN_LONG, /* the next frame is longer than `most`; reading again after `most` was raised goes on with it */
  LP_CONN_BROKEN
} lp_conn_progress;

/* Takes the socket over, also when it fails for lack of memory. `tls` NULL: plain. The connection stays where it is
 * until it is closed. */
bool lp_conn_open(lp_conn *conn, int fd, struct ssl_ctx_st *tls, bool worker);
/* Tells the other side that no more follows, if that can be done at once. `why` is the reason if there is none yet. A
 * whole frame can still be taken. Closing twice is allowed. */
void lp_conn_close(lp_conn *conn, const char *why);
/* Releases a closed connection's frame. */
void lp_conn_release(lp_conn *conn);
/* The handshake of TLS, which lp_conn_read goes on with, is complete, or there is none. */
bool lp_conn_is_ready(const lp_conn *conn);
/* Uses the bytes that are here, and those of one read of the socket if `socket` is set. */
lp_conn_progress lp_conn_read(lp_conn *conn, bool socket);
/* Hands over the whole frame; release with free(). */
uint8_t *lp_conn_take(lp_conn *conn, size_t *size);
/* Sends head and body as one frame, waiting for up to `wait_ms` each time that the socket takes nothing. A copy of what
 * the socket does not take is queued. False: the connection is broken, or more than 4 GiB would be queued. */
bool lp_conn_send(lp_conn *conn, const void *head, size_t head_size, const void *body, size_t body_size,
                  double wait_ms);
/* Sends of the queue what the socket takes now. False: the connection is broken. */
bool lp_conn_flush(lp_conn *conn);
/* Something waits until the socket takes more. */
bool lp_conn_wants_room(const lp_conn *conn);
/* A secret that only the two ends of the connection can derive (RFC 8446, 7.5); false: there is no TLS. */
bool lp_conn_bind(const lp_conn *conn, uint8_t out[LP_BINDING_BYTES]);

#endif
