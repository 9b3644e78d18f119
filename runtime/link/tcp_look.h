/* Looking for bytes before sleeping until they come: to be woken takes longer than an answer on the same machine does. Private to the TCP
 * transport. */
#ifndef LP_TCP_LOOK_H
#define LP_TCP_LOOK_H

#include <nng/nng.h>
#include <stdbool.h>

/* A second descriptor of the socket under a stream, to look at and for what can be done at once; -1: it is not found. The caller closes it. */
int lp_tcp_socket_of(nng_stream *stream);
bool lp_tcp_is_readable(int socket, double timeout_ms); /* a stream that has ended is, too */

/* When to look: where it pays, as long as waits are brief. */
typedef struct {
  bool pays;  /* other cores can work meanwhile */
  bool brief; /* the last wait was */
} lp_tcp_gaze;
/* Looks until `arrived` says so, for a fraction of a millisecond at most; false: it did not, looking does not pay, or there is
 * no time. */
bool lp_tcp_gaze_at(const lp_tcp_gaze *gaze, double timeout_ms, bool (*arrived)(void *user), void *user);
void lp_tcp_gaze_note(lp_tcp_gaze *gaze, double waited_ms);

#endif
