/* Frames in a stream of bytes: uint64 little endian, then so many bytes. A frame of no bytes is a sign of life; it is
 * counted, never taken. Private to the folder. */
#ifndef LP_LINK_FRAME_H
#define LP_LINK_FRAME_H

#include "runtime/link/stream.h"

enum { LP_FRAME_LENGTH = 8, LP_FRAME_AHEAD = 16 << 10 };

/* Receives. Bytes are read into `ahead`, so that a small frame costs one read; the rest of a large frame is read into
 * place. */
typedef struct {
  uint64_t most;     /* bytes of a frame that is taken */
  uint8_t *frame;    /* being filled, or whole */
  size_t size, have; /* `have` counts the length's bytes while `frame` is NULL, then the frame's */
  unsigned beats;    /* signs of life that came */
  size_t begin, end; /* of the bytes in `ahead` */
  uint8_t length[LP_FRAME_LENGTH], ahead[LP_FRAME_AHEAD];
} lp_frame_reader;

typedef enum {
  LP_FRAME_MORE, /* more bytes must come */
  LP_FRAME_WHOLE,
  LP_FRAME_LONG, /* the next frame is longer than `most`; reading again after `most` was raised goes on with it */
  LP_FRAME_BROKEN
} lp_frame_progress;

/* Uses the bytes that are here, and those of `reads` reads of the socket (0: none). */
lp_frame_progress lp_frame_read(lp_frame_reader *reader, lp_stream *stream, unsigned reads);
/* Hands over the whole frame; release with free(). */
uint8_t *lp_frame_take(lp_frame_reader *reader, size_t *size);
void lp_frame_reader_free(lp_frame_reader *reader);

/* The parts of a frame that is sent. They borrow head and body. */
typedef struct {
  uint8_t length[LP_FRAME_LENGTH];
  struct iovec part[3];
  size_t size; /* of all parts */
} lp_frame_parts;
void lp_frame_split(lp_frame_parts *out, const void *head, size_t head_size, const void *body, size_t body_size);

#endif
