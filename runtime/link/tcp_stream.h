/* Frames on one NNG byte stream: uint64 little endian, then so many bytes. A frame of no bytes is a sign of life; it is
 * counted, never taken. Private to the TCP transport. */
#ifndef LP_TCP_STREAM_H
#define LP_TCP_STREAM_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames of up to LP_TCP_JOINED bytes are sent from one place: TLS makes a record of each that it is given, of 16 KiB at most. */
enum { LP_TCP_LENGTH = 8, LP_TCP_AHEAD = 16 << 10, LP_TCP_JOINED = 16 << 10 };

/* What comes is read into `ahead`, so that a small frame costs one read; the rest of a large one is read into place. */
typedef struct {
  nng_stream *stream;
  int socket; /* to look at (tcp_look.h), closed with the stream; -1: none */
  nng_aio *receive, *read, *send;
  uint8_t length[LP_TCP_LENGTH];
  uint8_t *frame;          /* being filled, or complete */
  size_t frame_size, have; /* `have` of the length while `frame` is NULL, then of the frame */
  size_t ahead_begin, ahead_end;
  unsigned beats;  /* signs of life that came */
  uint64_t most;   /* bytes of a frame that is taken; atomic */
  uint8_t *joined; /* [LP_TCP_JOINED], once something was sent */
  uint8_t ahead[LP_TCP_AHEAD];
} lp_tcp_stream;

/* LONG: the next frame is longer than may be taken. To absorb again when `most` was raised goes on with it. */
typedef enum { LP_TCP_MORE, LP_TCP_FRAME, LP_TCP_LONG, LP_TCP_BROKEN } lp_tcp_progress;

/* Takes stream and socket over, also when it fails. `on_received` is called, on a thread of NNG's, when `receive` completes. Frames of
 * `most` bytes are taken at most. */
bool lp_tcp_stream_init(lp_tcp_stream *tcp, nng_stream *stream, int socket, void (*on_received)(void *), void *user,
                        uint64_t most);
void lp_tcp_stream_close(lp_tcp_stream *tcp);
/* Uses what is here already. On LP_TCP_FRAME the frame is the caller's to take. */
lp_tcp_progress lp_tcp_stream_absorb(lp_tcp_stream *tcp);
/* Asks for more bytes; `receive` completes when some are here. */
void lp_tcp_stream_ask(lp_tcp_stream *tcp);
/* After `receive` has completed. */
lp_tcp_progress lp_tcp_stream_received(lp_tcp_stream *tcp);
/* Reads at once. The socket is readable, and no receive is asked for. */
lp_tcp_progress lp_tcp_stream_read(lp_tcp_stream *tcp);
/* The complete frame; release with free(). */
uint8_t *lp_tcp_stream_take(lp_tcp_stream *tcp, size_t *size);
/* Sends head and body as one frame, a long one from where they lie; 0 or an NNG error. */
int lp_tcp_stream_send(lp_tcp_stream *tcp, const void *head, size_t head_size, const void *body, size_t body_size);
/* Sends of the frame what can be sent at once: so many bytes, which may be none. */
int lp_tcp_stream_send_some(lp_tcp_stream *tcp, const void *head, size_t head_size, const void *body, size_t body_size,
                            size_t *sent);
void lp_tcp_put_length(uint8_t length[LP_TCP_LENGTH], size_t bytes);

#endif
