/* One connection: frames over a non-blocking socket, plain or in TLS 1.3. A frame is its length, a little-endian
 * uint64, without TLS a CRC32C of length and bytes, and that many bytes; an empty frame is a sign of life. A wrong
 * CRC32C breaks the connection. Only lp_conn_send waits, and only if it is given a time.
 * TLS is computed on the calling thread; two threads may not use a connection at once. Private to the folder. */
#pragma once

#include "runtime/link/transport.h"

struct ssl_st;
struct ssl_ctx_st;
struct bio_method_st;

enum {
  LP_FRAME_LENGTH = 8,
  LP_FRAME_SUM = 4,
  LP_FRAME_HEAD = LP_FRAME_LENGTH + LP_FRAME_SUM,
  LP_READ_AHEAD = 16 << 10
};

typedef struct {
  int fd;                      /* -1: closed */
  struct ssl_st *tls;          /* NULL: plain */
  struct bio_method_st *quiet; /* of `tls`: writes without SIGPIPE */
  bool broken;
  char why[160]; /* the reason why the connection is broken */

  /* Receiving. Bytes are read into `ahead`, so that a small frame costs one read; the rest of a large frame is read
   * directly into the frame. */
  uint64_t most;     /* the longest frame that is accepted */
  uint8_t *frame;    /* being filled, or whole */
  size_t size, have; /* `have`: bytes of the head that have come while `frame` is NULL, then bytes of the frame */
  size_t room;       /* bytes that `frame` has memory for */
  bool asked;        /* a sign of life came; the code that reads the flag clears it */
  size_t begin, end; /* of the bytes in `ahead` */
  bool checked;      /* the frame is whole, and its sum right */
  uint8_t head[LP_FRAME_HEAD], ahead[LP_READ_AHEAD];

  /* Sending: the queue of bytes that the socket has not taken yet. */
  lp_buf queue;
  size_t sent;     /* of `queue` */
  double moved_ms; /* when the socket last took bytes, or the queue began */
} lp_conn;

typedef enum {
  LP_CONN_MORE, /* more bytes must come */
  LP_CONN_FRAME,
  LP_CONN_LONG, /* the next frame is longer than `most`; the caller may raise `most` and read again */
  LP_CONN_BROKEN
} lp_conn_progress;

/* Initialises a connection, which owns the socket even if this fails for lack of memory. `tls` NULL: plain. The struct
 * may not move until the connection is closed. */
bool lp_conn_open(lp_conn *conn, int fd, struct ssl_ctx_st *tls, bool worker);
/* Closes the connection, and tells the other side so if the socket takes that at once. `why` is noted as the reason if
 * none was noted. A complete frame can still be taken. Closing twice is allowed. */
void lp_conn_close(lp_conn *conn, const char *why);
/* Releases a closed connection's frame. */
void lp_conn_release(lp_conn *conn);
/* Tells whether the TLS handshake is complete, or the connection is plain. lp_conn_read carries the handshake on. */
bool lp_conn_is_ready(const lp_conn *conn);
/* Processes the bytes that were read, and with `socket` set those of one more read. */
lp_conn_progress lp_conn_read(lp_conn *conn, bool socket);
/* Hands over the complete frame; release with free(). */
uint8_t *lp_conn_take(lp_conn *conn, size_t *size);
/* Sends head and body as one frame. Waits up to `wait_ms` whenever the socket takes nothing, then queues a copy of the
 * remaining bytes. False: the connection is broken, or more than 4 GiB would be queued. */
bool lp_conn_send(lp_conn *conn, const void *head, size_t head_size, const void *body, size_t body_size,
                  double wait_ms);
/* Sends as much of the queue as the socket takes now. False: the connection is broken. */
bool lp_conn_flush(lp_conn *conn);
/* Tells whether bytes wait until the socket has room. */
bool lp_conn_wants_room(const lp_conn *conn);
/* A secret that only the two ends of the connection can derive (RFC 8446, 7.5); false: there is no TLS. */
bool lp_conn_bind(const lp_conn *conn, uint8_t out[LP_BINDING_BYTES]);
/* The number of the client at the other end (security.h); 0: unknown. */
uint64_t lp_conn_identify(const lp_conn *conn);
