/* Spans of a worker's sessions, for a collector of OpenTelemetry. */
#ifndef LP_TOOLS_WORKER_SPANS_H
#define LP_TOOLS_WORKER_SPANS_H

#include "runtime/runtime.h"

typedef struct lp_spans lp_spans;
/* `url` NULL: *out is NULL, and nothing is sent. */
LP_MUST_USE lp_status worker_spans_open(const char *url, lp_spans **out, lp_diag *diag);
void worker_spans_close(lp_spans *spans);
void worker_spans_add(lp_spans *spans, const lp_worker_session *session);

#endif
