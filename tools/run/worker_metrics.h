/* The figures of a worker over HTTP, for Prometheus and for probes; and the spans of its sessions, for a collector of
 * OpenTelemetry. */
#pragma once

#include "runtime/runtime.h"

typedef struct worker_metrics worker_metrics;
/* Listens at `address` (HOST:PORT) and sets *figures, which the worker is to fill. `address` NULL: both are NULL. */
LP_MUST_USE lp_status worker_metrics_open(const char *address, worker_metrics **out, lp_worker_figures **figures,
                                          lp_diag *diag);
void worker_metrics_close(worker_metrics *metrics); /* NULL is allowed */

/* ---- spans ------------------------------------------------------------------------------------------------------- */

typedef struct lp_spans lp_spans;
/* `url` NULL: *out is NULL, and nothing is sent. */
LP_MUST_USE lp_status worker_spans_open(const char *url, lp_spans **out, lp_diag *diag);
void worker_spans_close(lp_spans *spans);
void worker_spans_add(lp_spans *spans, const lp_worker_session *session);
