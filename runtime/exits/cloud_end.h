/* The device's end of its context: it uploads rows of hidden states to the cloud and asks questions about them. The
 * cloud is this process, or a worker, to which it keeps one connection for rows (uploader.h) and one for questions.
 * Where the cloud is a chain of places, rows go to the first, and a question to each: the last one answers it. */
#pragma once

#include "runtime/exec/pool.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

/* Names a context, which may outlive a process of the device. Each process that continues it is the next incarnation:
 * the messages of earlier incarnations belong to older epochs and answer none of its questions. */
typedef struct {
  uint64_t context;
  uint32_t incarnation;
  int64_t floor; /* the rows of positions below it are final: earlier incarnations sent them and they will not change */
} lp_context_claim;
uint64_t lp_context_draw(void); /* a random number for a new context */

typedef struct {
  const lp_halves *halves; /* borrowed */
  /* [links of the halves] the workers, borrowed; NULL: the cloud is this process */
  const lp_endpoint *const *endpoints;
  lp_pool *pool;              /* runs the cloud's half in this process; borrowed */
  lp_context_options context; /* `codec` is not LP_CODEC_AUTO */
  lp_context_claim claim;
  bool drafts;     /* questions carry drafts (exact mode), so that each answer begins a new epoch */
  double reach_ms; /* with drafts: how long a worker that is not there yet is dialled; 0: once */
  lp_trace *trace; /* borrowed; NULL: none */
} lp_cloud_end_options;

/* Belongs to one thread. */
typedef struct lp_cloud_end lp_cloud_end;
/* Opens the context of one generation. Fails when a worker refuses, and with drafts also when one cannot be reached;
 * without them a question finds out whether it is there by then. */
LP_MUST_USE lp_status lp_cloud_end_open(const lp_cloud_end_options *options, lp_cloud_end **out, lp_diag *diag);
/* Copies rows[count][width] of the positions [first, first + count), and returns at once. They replace all rows that
 * were uploaded for positions from `first` on. */
LP_MUST_USE lp_status lp_cloud_end_upload(lp_cloud_end *end, int64_t first, int64_t count, const float *rows,
                                          lp_diag *diag);
/* Asks a question and waits for the answer, at most `timeout_ms`. When the connection breaks, it dials again until
 * the time is over (`persists`), or fails at once; a later question then finds the connection restored, since the
 * uploader keeps dialling. */
LP_MUST_USE lp_status lp_cloud_end_ask(lp_cloud_end *end, const lp_question *question, double timeout_ms, bool persists,
                                       lp_answer *out, lp_diag *diag);
/* Sends the rows that remain, ends the context in the cloud, and adds the traffic to `totals`. With NULL totals it
 * sends no more rows. `end` may be NULL. */
void lp_cloud_end_close(lp_cloud_end *end, lp_generation *totals);
