/* What waits to be sent on a stream, so that a sender never waits for a peer that is slow. Private to the folder. */
#ifndef LP_LINK_OUTBOX_H
#define LP_LINK_OUTBOX_H

#include "runtime/link/frame.h"

typedef struct {
  LP_VEC(struct iovec) queue; /* each allocated */
  size_t sent, bytes;         /* of the first; of all */
  double moved_ms;            /* when the stream last took something, or the queue began */
} lp_outbox;

/* Sends the frame, or the part of it that the stream takes at once and a copy of the rest later. False: the stream is
 * broken, or more than 4 GiB would wait. */
bool lp_outbox_put(lp_outbox *outbox, lp_stream *stream, const lp_frame_parts *frame);
/* Sends what the stream takes now. False: it is broken. */
bool lp_outbox_flush(lp_outbox *outbox, lp_stream *stream);
void lp_outbox_free(lp_outbox *outbox);

#endif
