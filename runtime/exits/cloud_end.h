/* The device's end of its context: uploads of rows, and questions. */
#ifndef LP_CLOUD_END_H
#define LP_CLOUD_END_H

#include "runtime/exec/trace.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

typedef struct lp_cloud_end lp_cloud_end;

/* A context that outlives a process of the device. Each process that goes on with it is the next incarnation: what earlier ones sent, or
 * send, is of older epochs and answers no question of its. Rows below `floor` are certain: those that earlier ones sent, and will not
 * change. */
typedef struct {
  uint64_t context;
  uint32_t incarnation;
  int64_t floor;
} lp_context_claim;
uint64_t lp_context_draw(void); /* a new context's number */

/* The context of one generation, in this process or at session->options.cloud. */
LP_MUST_USE lp_status lp_cloud_end_open(lp_session *session, const lp_halves *halves, int64_t capacity,
                                        const lp_context_claim *claim, lp_cloud_end **out, lp_diag *diag);
/* Hands over the rows of [first, first + count); returns at once. */
LP_MUST_USE lp_status lp_cloud_end_upload(lp_cloud_end *end, int64_t first, int64_t count, const float *rows,
                                          lp_diag *diag);
/* Asks and waits, for `timeout_ms` at most. When the link breaks: dials again (`persists`), or fails at once; a later question
 * finds it mended, since the rows' connection keeps dialing. */
LP_MUST_USE lp_status lp_cloud_end_ask(lp_cloud_end *end, const lp_question *question, double timeout_ms, bool persists,
                                       lp_answer *out, lp_diag *diag);
/* Sends what is left, adds the traffic to `totals` (NULL: does not wait), and ends the context. */
void lp_cloud_end_close(lp_cloud_end *end, lp_generation *totals);

/* The thread that sends rows, on a connection of its own. It keeps every row of the generation, encoded, so that the cloud
 * can be given again what it lost, and so that the device never waits: memory is bounded by the context's capacity. */
typedef struct lp_uploader lp_uploader;

typedef struct {
  const lp_endpoint *endpoint; /* borrowed */
  uint64_t context;
  lp_context_options options;
  size_t row_bytes;
  lp_context_time begin; /* before the first row is put */
  lp_trace *trace;       /* borrowed; NULL: none */
} lp_uploader_options;

lp_uploader *lp_uploader_start(const lp_uploader_options *options); /* NULL: no thread */
/* Appends an encoded row; what was there from `position` on is replaced. */
void lp_uploader_put(lp_uploader *uploader, lp_context_time time, int64_t position, const uint8_t *row);
/* Before the first row is put: rows below `count` lie in the cloud already and need not be sent, unless it comes to lack them. */
void lp_uploader_skip(lp_uploader *uploader, int64_t count);
/* The cloud lacks the rows from `from` on. When it says so again and again, rows do not reach it: the connection is made anew. */
void lp_uploader_send_again(lp_uploader *uploader, int64_t from);
/* May the cloud be reached? False after an attempt to connect failed, until one succeeds. */
bool lp_uploader_reaches(lp_uploader *uploader);
/* Waits until all is sent, for `timeout_ms` at most, and not for a cloud that cannot be reached or takes nothing. */
void lp_uploader_flush(lp_uploader *uploader, double timeout_ms);
void lp_uploader_stop(lp_uploader *uploader, uint64_t *bytes_up, uint64_t *bytes_down, uint64_t *row_bytes);

/* Opens a connection and joins the context, which the worker makes when it does not know it. `have` is how many rows the
 * cloud holds without a gap. */
LP_MUST_USE lp_status lp_context_dial(const lp_uploader_options *options, lp_context_time time, lp_trace_lane lane,
                                      double timeout_ms, lp_wire **out, int64_t *have, lp_diag *diag);

#endif
