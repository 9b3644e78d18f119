/* Runs several sequences in one pass over the weights. */
#ifndef LP_BATCH_H
#define LP_BATCH_H

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/logits.h"
#include "runtime/exec/state.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

/* Rows of one sequence in one pass at most: a long prompt is run in as many passes as that takes, between which others have theirs. */
enum { LP_PASS_ROWS = 128 };

/* A sequence of a pass: its caches, which the pass reserves, and its symbols (t is the pool's). */
typedef struct {
  lp_states *states; /* borrowed until the pass has ended */
  int64_t sym[LP_MAX_SYMBOLS];
} lp_batch_member;

/* One side of a program run on several sequences at once, each at a position of its own: weights are read once for all. What a
 * sequence gets is, to the bit, what it would get alone. Belongs to one thread. */
typedef struct lp_batch lp_batch;
lp_batch *lp_batch_create(const lp_bundle *bundle, lp_side side, lp_pool *pool); /* NULL: the code runs one at a time */
void lp_batch_free(lp_batch *batch);                                             /* NULL is allowed */
LP_MUST_USE lp_status lp_batch_begin(lp_batch *batch, int32_t program, const lp_batch_member *member, size_t count,
                                     lp_diag *diag);
/* What a sequence has in `buffer` for an input, send or output step, in the host's memory. It counts when lp_batch_bring has brought it
 * to where the code runs, and can be read when lp_batch_fetch has fetched it from there: all sequences' at once. */
LP_MUST_USE lp_status lp_batch_buffer(const lp_batch *batch, size_t sequence, int32_t buffer, const lp_step *step,
                                      lp_span *out, lp_diag *diag);
LP_MUST_USE lp_status lp_batch_bring(lp_batch *batch, int32_t buffer, const lp_step *step, lp_diag *diag);
/* whom[count]: whose; NULL: everybody's. */
LP_MUST_USE lp_status lp_batch_fetch(lp_batch *batch, int32_t buffer, const lp_step *step, const bool *whom,
                                     lp_diag *diag);
/* Logits of an output step can be drawn from without being fetched, once the `wanted` greatest of each row were found. */
bool lp_batch_finds_top(const lp_batch *batch, const lp_step *step);
LP_MUST_USE lp_status lp_batch_find_top(lp_batch *batch, const lp_step *step, int32_t wanted, lp_diag *diag);
/* The logits that a sequence has for the step: what was fetched, or `found` of them. */
LP_MUST_USE lp_status lp_batch_logits(const lp_batch *batch, size_t sequence, const lp_step *step, bool found,
                                      lp_logits *out, lp_diag *diag);
LP_MUST_USE lp_status lp_batch_run(lp_batch *batch, const lp_step *step, lp_diag *diag);
lp_gpu_memory *lp_batch_gpu_memory(lp_batch *batch); /* NULL: a processor's code */
/* Behind a pass: waits for all of it, so that its sequences may be run alone or end. */
LP_MUST_USE lp_status lp_batch_end(lp_batch *batch, lp_diag *diag);
/* The first program that is the same code on this side, step by step. */
int32_t lp_program_code(const lp_bundle *bundle, lp_side side, int32_t program);

#endif
