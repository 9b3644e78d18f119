/* Contexts: the cloud's memory of one generation with early exits. A context holds the rows that the device sent
 * until a question needs them, and the KV caches of the rows that it has run. Where the cloud is a chain of places
 * (halves.h), each place has a context of its own. One that is not the last makes rows for the next one, and keeps them
 * until the generation ends, since the next place may lose its own. */
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

typedef struct {
  lp_sampling sampling;
  lp_codec codec;   /* of the rows; not LP_CODEC_AUTO */
  int64_t capacity; /* the most positions */
} lp_context_options;

/* The time of a message in the life of a context. The epoch grows whenever drafts may have been dropped. The rows of an
 * epoch equal those of earlier epochs below its floor, and replace them from there on. */
typedef struct {
  uint64_t epoch;
  int64_t floor;
} lp_context_time;

/* Asks for the token after the first draft that the full model does not confirm, or after position end - 1 when it
 * confirms all of them. */
typedef struct {
  const int32_t *draft; /* [count] proposed tokens of the positions [end - count, end) */
  int64_t count, end;
} lp_question;

typedef struct {
  int64_t accepted; /* number of drafts, from the first on, that are the full model's tokens */
  lp_sample sample; /* the token that follows them */
  double busy_ms;   /* time that the cloud computed */
} lp_answer;

/* Belongs to one thread at a time. */
typedef struct {
  const lp_halves *halves; /* borrowed */
  int32_t link;            /* of the chain */
  lp_executor *executor;
  lp_context_options options;
  lp_context_time time; /* of the newest message */
  int64_t consumed;     /* positions in the KV cache */
  int64_t held;         /* the rows of [consumed, held) are here without a gap */
  float *rows;          /* [room][width]: of the positions from `consumed` on */
  bool *present;        /* [room] */
  int64_t room;
  lp_sample *sampled; /* [capacity]: the sample after each position; token -1: not computed. NULL: none computed yet */
  lp_buf scratch;
  /* Of a link that is not the last: */
  float *made; /* [made_room][width]: of the pass that runs */
  int64_t made_room;
  int64_t kept_from; /* the rows of [kept_from, consumed) are kept */
  lp_buf kept;       /* encoded */
} lp_context;

lp_context *lp_context_create(const lp_halves *halves, int32_t link, const lp_context_options *options, lp_pool *pool);
void lp_context_free(lp_context *context); /* NULL is allowed */
/* Frees the KV cache, the rows and the samples. The device must send all rows again. */
void lp_context_drop(lp_context *context);
size_t lp_context_bytes(const lp_context *context); /* the bytes that it holds now */
/* Computes the most bytes that it may hold later, for admission; false: they overflow. */
bool lp_context_bytes_wanted(const lp_context *context, size_t *bytes);
/* Takes the encoded rows data[size] of the positions [first, first + count). Uploads may be repeated, late or out of
 * order: rows of an older epoch are ignored, and rows that are here already are not written again. Fails on a wrong
 * size or range. */
LP_MUST_USE lp_status lp_context_upload(lp_context *context, lp_context_time time, int64_t first, int64_t count,
                                        const uint8_t *data, size_t size, lp_diag *diag);
/* Fills a new context: its KV cache holds the positions below `consumed`, and rows[held - consumed][width] (f32)
 * follow. */
void lp_context_put(lp_context *context, int64_t consumed, int64_t held, const void *rows);
/* Enters the epoch of a message. A newer epoch makes the context forget the positions from its floor on. False: the
 * message belongs to an older epoch. */
bool lp_context_enter(lp_context *context, lp_context_time time);
/* Tells whether the rows of all positions below `end` are here. */
bool lp_context_is_ready(const lp_context *context, int64_t end);
/* Gives the encoded rows that this link made of the positions from `from` on, and sets *count to their number. They
 * live until the next pass. NULL with a count of 0: there are none yet; with -1: they are no longer kept. */
const uint8_t *lp_context_kept(const lp_context *context, int64_t from, int64_t *count);
/* Answers a question: runs the rows up to its end that were not run yet, and compares. With drafts it forgets the
 * positions after those that it accepted, and the epoch grows by one. A link that is not the last only runs the rows:
 * it learns of the answer by the epoch and floor of the next message. */
LP_MUST_USE lp_status lp_context_ask(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag);

/* The parts of lp_context_ask, for a caller that runs passes of several contexts at once. The rows of all positions
 * below the question's end must be here. As long as lp_context_next gives a pass (of at most `most` rows), run it,
 * write its samples and call lp_context_passed; then call lp_context_judge. */
bool lp_context_next(lp_context *context, const lp_question *question, int64_t most, lp_cloud_pass *out);
lp_sample *lp_context_samples(lp_context *context, const lp_cloud_pass *pass); /* [wanted] */
void lp_context_passed(lp_context *context, const lp_cloud_pass *pass);
LP_MUST_USE lp_status lp_context_judge(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag);
