/* runtime/spans: sends spans of requests to a collector of OpenTelemetry, by OTLP/HTTP in JSON (opentelemetry-proto,
 * "OTLP/HTTP" and its JSON encoding). It knows neither requests nor bundles. A thread of its own sends what was added;
 * adding never waits for the network. */
#pragma once

#include "base/base.h"

enum { LP_SPAN_TRACE = 32, LP_SPAN_ID = 16 /* hexadecimal digits */, LP_TRACE_CONTEXT = 55 };

typedef struct lp_spans lp_spans;
typedef struct {
  const char *url;     /* of the collector: http://HOST:4318/v1/traces */
  const char *key;     /* its bearer token; NULL: none */
  const char *service; /* the name of this program: `service.name` */
} lp_spans_options;

typedef enum { LP_SPAN_INTERNAL = 1, LP_SPAN_SERVER = 2, LP_SPAN_CLIENT = 3 } lp_span_kind; /* numbers of OTLP */
typedef struct {
  const char *key;
  const char *text; /* NULL: the value is `list`, or else `number` */
  int64_t number;
  const char *const *list;
  size_t count; /* of the list */
} lp_span_attribute;
typedef struct {
  const char *trace, *id; /* lower-case hexadecimal digits */
  const char *parent;     /* NULL or "": none */
  const char *name;
  lp_span_kind kind;
  double begin_ms, end_ms; /* of lp_now_ms */
  const char *error;       /* NULL: it went well */
  const lp_span_attribute *attribute;
  size_t count;
} lp_span_record;

/* Fails if libcurl is not there. The texts of `options` are borrowed. */
LP_MUST_USE lp_status lp_spans_open(const lp_spans_options *options, lp_spans **out, lp_diag *diag);
void lp_spans_close(lp_spans *spans); /* sends what is left, for a few seconds; NULL is allowed */
/* Any thread may add spans; those beyond 4096 that wait are dropped. `spans` NULL: nothing. */
void lp_spans_add(lp_spans *spans, const lp_span_record *record);
/* Spans that were sent and taken, and those that were dropped: too many waited, or the collector did not take them. */
void lp_spans_count(lp_spans *spans, int64_t *sent, int64_t *dropped);
void lp_span_draw_id(char out[LP_SPAN_ID + 1]);

/* Reads trace and caller of a `traceparent` (W3C Trace Context, version 00), or draws a trace, without a caller: `text`
 * is NULL or not valid. */
void lp_traceparent_read(const char *text, char trace[LP_SPAN_TRACE + 1], char caller[LP_SPAN_ID + 1]);
/* Writes the `traceparent` of what a span asks for. */
void lp_traceparent_write(const char *trace, const char *span, char out[LP_TRACE_CONTEXT + 1]);
