/* Uploads rows of hidden states on a connection and a thread of its own, so that the device never waits for the link.
 * The uploader keeps every row of the generation, encoded, and sends rows again that the cloud has lost; the capacity
 * of the context bounds its memory. */
#pragma once

#include "runtime/exec/trace.h"
#include "runtime/exits/context.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

struct Lp__Wire__Times;

typedef struct {
  const lp_endpoint *endpoint; /* borrowed */
  uint64_t context;            /* its number */
  lp_context_options options;
  size_t row_bytes;      /* of an encoded row */
  lp_context_time begin; /* in force before the first row is put */
  lp_trace *trace;       /* borrowed; NULL: none */
} lp_uploader_options;

/* The functions below belong to one thread, the device's. */
typedef struct lp_uploader lp_uploader;
lp_uploader *lp_uploader_start(const lp_uploader_options *options); /* NULL: the system refuses a thread */
/* Takes the encoded row of a position. It replaces all rows from `position` on. */
void lp_uploader_put(lp_uploader *uploader, lp_context_time time, int64_t position, const uint8_t *row);
/* Call before the first row is put: the cloud already holds the rows below `count`, which are sent only if it loses
 * them. */
void lp_uploader_skip(lp_uploader *uploader, int64_t count);
/* Call when the cloud reports that it lacks the rows from `from` on. After a second report for the same row the
 * uploader makes a new connection. */
void lp_uploader_send_again(lp_uploader *uploader, int64_t from);
/* False from a failed attempt to connect until one succeeds. */
bool lp_uploader_reaches(lp_uploader *uploader);
/* Waits until all rows are sent, at most `timeout_ms`; gives up on a cloud that cannot be reached or takes no data. */
void lp_uploader_flush(lp_uploader *uploader, double timeout_ms);
/* Ends the thread, frees the uploader, and adds its traffic in bytes; `row_bytes` are the rows among `bytes_up`. */
void lp_uploader_stop(lp_uploader *uploader, uint64_t *bytes_up, uint64_t *bytes_down, uint64_t *row_bytes);

/* Opens a connection and joins the context, which the worker creates when it does not know it. `have` receives how
 * many rows the cloud holds without a gap, from position 0 on. The slices of the trace go to `lane`. Sets *refused
 * after a failure when the worker has answered. */
LP_MUST_USE lp_status lp_context_dial(const lp_uploader_options *options, lp_context_time time, lp_trace_lane lane,
                                      double timeout_ms, lp_wire **out, int64_t *have, bool *refused, lp_diag *diag);
/* The worker's times in a message; unknown for NULL. */
lp_cloud_times lp_cloud_times_of(const struct Lp__Wire__Times *times);
