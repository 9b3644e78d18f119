/* Contexts: what the cloud holds of one generation. */
#ifndef LP_CONTEXT_H
#define LP_CONTEXT_H

#include "runtime/exec/executor.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

typedef struct {
  lp_sampling sampling;
  lp_codec codec;
  int64_t capacity; /* most positions */
} lp_context_options;

/* Where a message belongs in the life of a context: the epoch, and the position from which it differs from the epochs
 * before it. The epoch grows whenever drafts may have been dropped. */
typedef struct {
  uint64_t epoch;
  int64_t floor;
} lp_context_time;

typedef struct {
  const int32_t *draft; /* proposed tokens of the positions [end - count, end) */
  int64_t count, end;   /* the answer lies behind the first draft that fails, else behind position end - 1 */
} lp_question;

typedef struct {
  int64_t accepted; /* drafts that are the full model's */
  lp_sample sample; /* what comes behind them */
  double busy_ms;   /* the cloud computed for it */
} lp_answer;

/* One thread at a time. */
typedef struct {
  const lp_halves *halves;
  lp_executor *executor;
  lp_context_options options;
  lp_context_time time;
  int64_t consumed; /* positions in the KV cache */
  int64_t held;     /* rows of [consumed, held) are here without a gap */
  float *rows;      /* [room][width]: of the positions from `consumed` on */
  bool *present;    /* [room] */
  int64_t room;
  lp_sample *sampled; /* [capacity]: what comes behind each position; token -1: not computed. NULL: nothing yet */
  lp_buf scratch;
} lp_context;

lp_context *lp_context_create(const lp_halves *halves, const lp_context_options *options, lp_pool *pool);
void lp_context_free(lp_context *context); /* NULL is allowed */
/* Gives up the KV cache and the rows; all of them are wanted again. */
void lp_context_drop(lp_context *context);
size_t lp_context_bytes(const lp_context *context);
/* What it will take at most, for admission; false when too large. */
bool lp_context_bytes_wanted(const lp_context *context, size_t *bytes);
/* Rows of [first, first + count), encoded. A duplicate, a late and a reordered upload change nothing: what belongs to an
 * epoch that has passed is left out, what is here already is not written again. */
LP_MUST_USE lp_status lp_context_upload(lp_context *context, lp_context_time time, int64_t first, int64_t count,
                                        const uint8_t *data, size_t size, lp_diag *diag);
/* Of a new context: positions below `consumed` are in its KV cache, and rows [consumed, held)[width], f32, are here. */
void lp_context_put(lp_context *context, int64_t consumed, int64_t held, const void *rows);
/* Takes over a newer epoch: forgets the positions from its floor on. False: the message is from an older one. */
bool lp_context_enter(lp_context *context, lp_context_time time);
bool lp_context_is_ready(const lp_context *context, int64_t end);
/* Runs what was not consumed up to the question's end, each position once, and compares. With drafts, what was refused is
 * forgotten and the epoch grows by one. */
LP_MUST_USE lp_status lp_context_ask(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag);
/* The same by parts, for who runs passes of several contexts at once: check; while there is a next pass, of LP_PASS_ROWS rows at
 * most, run it, write its samples and say that it passed; judge. */
LP_MUST_USE lp_status lp_context_check(const lp_context *context, const lp_question *question, lp_diag *diag);
bool lp_context_next(const lp_context *context, const lp_question *question, lp_cloud_pass *out);
lp_sample *lp_context_samples(lp_context *context, const lp_cloud_pass *pass); /* [wanted] */
void lp_context_passed(lp_context *context, const lp_cloud_pass *pass);
LP_MUST_USE lp_status lp_context_judge(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag);

#endif
