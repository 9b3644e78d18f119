/* Bytes of one connection, plain or in TLS 1.3, on a non-blocking socket. No call waits. The thread that wants the
 * bytes does the cryptography; a stream is not safe for two threads at once. Private to the folder. */
#ifndef LP_LINK_STREAM_H
#define LP_LINK_STREAM_H

#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/link/security.h"

struct ssl_st;
struct bio_method_st;

typedef struct {
  int fd;                        /* -1: closed */
  struct ssl_st *tls;            /* NULL: plain */
  struct bio_method_st *methods; /* of `tls` */
  unsigned reads;                /* of the socket that lp_stream_read may still make */
  bool broken;
  char why[160]; /* the reason, once it is broken */
} lp_stream;

/* Takes the socket over, also when it fails. `context` (security.h) NULL: plain. The stream stays where it is until it
 * is closed. A device's TLS begins the handshake; reading and writing go on with it. */
bool lp_stream_open(lp_stream *stream, int fd, struct ssl_ctx_st *context, bool worker);
/* Tells the other side that no more follows, if that can be done at once. A closed stream is allowed. */
void lp_stream_close(lp_stream *stream);
/* Returns the number of bytes read, 0 when there are none yet, -1 when the stream has broken. Reads the socket `reads`
 * times at most; TLS may have more bytes from an earlier read. */
ssize_t lp_stream_read(lp_stream *stream, void *to, size_t size);
/* Writes of the parts' bytes after the first `skip` what the socket takes at once, and returns how many that were, or
 * -1. What was not written must be written next. */
ssize_t lp_stream_write(lp_stream *stream, const struct iovec *part, size_t count, size_t skip);
/* Does the handshake of TLS until more must come. True: it is complete, or there is none. */
bool lp_stream_shake(lp_stream *stream);
bool lp_stream_wants_room(const lp_stream *stream); /* the handshake waits until the socket takes more */
/* A secret that only the two ends of the connection can derive (RFC 8446, 7.5); false: there is no TLS. */
bool lp_stream_bind(lp_stream *stream, uint8_t out[LP_BINDING_BYTES]);

#endif
