/* Frames on one NNG byte stream, in TLS or not: uint64 little endian, then so many bytes. A frame of no bytes is a sign of life; it is
 * counted, never taken. What can be done at once is done on the socket under the stream by whoever wants it; what must wait goes through NNG.
 * Private to the TCP transport. */
#ifndef LP_TCP_STREAM_H
#define LP_TCP_STREAM_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/exec/executor.h"
#include "runtime/link/tls.h"

enum { LP_TCP_LENGTH = 8, LP_TCP_AHEAD = 16 << 10 };

/* What comes is read into `ahead`, so that a small frame costs one read; the rest of a large one is read into place. */
typedef struct {
  nng_stream *stream;
  int socket;  /* under the stream (tcp_look.h), closed with it; -1: not known */
  lp_tls *tls; /* NULL: plain */
  nng_aio *receive, *send;
  uint8_t length[LP_TCP_LENGTH];
  uint8_t *frame;          /* being filled, or complete */
  size_t frame_size, have; /* `have` of the length while `frame` is NULL, then of the frame */
  size_t ahead_begin, ahead_end;
  unsigned beats; /* signs of life that came */
  uint64_t most;  /* bytes of a frame that is taken; atomic */
  lp_buf sealed;  /* what a device sends in TLS */
  uint8_t ahead[LP_TCP_AHEAD];
} lp_tcp_stream;

/* LONG: the next frame is longer than may be taken. To absorb again when `most` was raised goes on with it. */
typedef enum { LP_TCP_MORE, LP_TCP_FRAME, LP_TCP_LONG, LP_TCP_BROKEN } lp_tcp_progress;

/* Takes stream, socket and TLS over, also when it fails. `on_received` is called, on a thread of NNG's, when `receive` completes. Frames of
 * `most` bytes are taken at most. */
bool lp_tcp_stream_init(lp_tcp_stream *tcp, nng_stream *stream, int socket, lp_tls *tls, void (*on_received)(void *),
                        void *user, uint64_t most);
void lp_tcp_stream_close(lp_tcp_stream *tcp);
/* Uses what is here already. On LP_TCP_FRAME the frame is the caller's to take. */
lp_tcp_progress lp_tcp_stream_absorb(lp_tcp_stream *tcp);
/* Asks for more bytes; `receive` completes when some are here. */
void lp_tcp_stream_ask(lp_tcp_stream *tcp);
/* After `receive` has completed. */
lp_tcp_progress lp_tcp_stream_received(lp_tcp_stream *tcp);
/* Reads from the socket, which is known, what is there; no receive is asked for. */
lp_tcp_progress lp_tcp_stream_read(lp_tcp_stream *tcp);
/* The complete frame; release with free(). */
uint8_t *lp_tcp_stream_take(lp_tcp_stream *tcp, size_t *size);
/* The parts of a frame as they are, before TLS. */
typedef struct {
  uint8_t length[LP_TCP_LENGTH];
  lp_span part[3];
} lp_tcp_frame;
void lp_tcp_frame_begin(lp_tcp_frame *frame, const void *head, size_t head_size, const void *body, size_t body_size);
/* Sends head and body as one frame, from where they lie, and waits; 0 or an NNG error. Nobody else sends. */
int lp_tcp_stream_send(lp_tcp_stream *tcp, const void *head, size_t head_size, const void *body, size_t body_size);
/* Sends what TLS has to say for itself. */
int lp_tcp_stream_flush(lp_tcp_stream *tcp);
/* Sends of the bytes what the socket takes at once: so many, which may be none. False: it is broken. */
bool lp_tcp_stream_send_some(lp_tcp_stream *tcp, const lp_span *part, size_t count, size_t *sent);
/* The last word before the stream is closed, if it can be said at once. */
void lp_tcp_stream_finish(lp_tcp_stream *tcp);

#endif
