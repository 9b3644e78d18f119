/* The W3C trace context, which joins the requests and log lines of servers. */
#ifndef LP_SERVE_TRACE_H
#define LP_SERVE_TRACE_H

#include "runtime/serve/request.h"

/* Reads the trace id of a header `traceparent` (version 00, W3C Trace Context), or draws one: `header` is NULL or not
 * valid. */
void lp_trace_read(const char *header, char out[LP_TRACE_ID + 1]);
/* Writes a header for a request within the trace, with a span of its own. */
void lp_trace_write_header(const char trace[LP_TRACE_ID + 1], lp_buf *out);

#endif
