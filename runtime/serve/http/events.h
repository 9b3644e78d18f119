/* Events of a stream, which go to the connection through a pipe. */
#ifndef LP_RUNTIME_SERVE_EVENTS_H
#define LP_RUNTIME_SERVE_EVENTS_H

#include <stdbool.h>

/* Writes an event with this JSON, which it frees, to a non-blocking pipe. Waits while the pipe is full: up to a minute,
 * and up to 3 s once `*stop` is set, which another thread or a signal handler does. False: the client has left, or has
 * read nothing for so long. SIGPIPE must be ignored. */
bool lp_events_write(int pipe, const volatile int *stop, char *json);

#endif
