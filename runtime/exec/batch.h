/* Batched passes: one side of a program runs on several sequences at once, each at its own position, and reads the
 * weights once for all of them. */
#pragma once

#include "base/span.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/sampler.h"
#include "runtime/exec/state.h"
#include "runtime/gpu/gpu.h"
#include "runtime/pass_rules.h"
#include "runtime/runtime.h"

/* One sequence of a pass, or several that have the same symbols. */
typedef struct {
  lp_states *states; /* its KV caches, which the pass reserves; borrowed until the pass has ended */
  int64_t sym[LP_MAX_SYMBOLS];
  /* The states hold `of` sequences, and the member is those of [first, first + sym[b]); `of` 0: it is all of them. Only
   * for states with lp_batch_takes_part. */
  int64_t first, of;
} lp_batch_member;

/* The memory of passes. The results of a sequence are bit-identical to those of a pass without the others. Belongs to
 * one thread. A pass calls begin, then for each step bring, run, fetch or find_top, and at last end. */
typedef struct lp_batch lp_batch;
/* NULL: the code of the side runs one sequence at a time. */
lp_batch *lp_batch_create(const lp_bundle *bundle, lp_place side, lp_pool *pool);
void lp_batch_free(lp_batch *batch); /* NULL is allowed */
/* Tells whether a member may be some of the sequences of its states: a CPU runs the code, and every state of the side
 * begins with the axis of sequences. */
bool lp_batch_takes_part(const lp_batch *batch);
/* Prepares a pass of the program over member[count]. Sequences are numbered in that order. */
LP_MUST_USE lp_status lp_batch_begin(lp_batch *batch, int32_t program, const lp_batch_member *member, size_t count,
                                     lp_diag *diag);
/* Gives the bytes that a sequence has in `buffer` for an input, send or output step. They are in the host's memory:
 * data written there reaches the code with lp_batch_bring, and data of the code is there after lp_batch_fetch. */
LP_MUST_USE lp_status lp_batch_buffer(const lp_batch *batch, size_t sequence, int32_t buffer, const lp_step *step,
                                      lp_span *out, lp_diag *diag);
/* Copies the buffer of all sequences to a GPU that has its own memory; does nothing for other code. */
LP_MUST_USE lp_status lp_batch_bring(lp_batch *batch, int32_t buffer, const lp_step *step, lp_diag *diag);
/* Copies the buffer back for the sequences with selected[count] set; NULL selects all. Does nothing for other code. */
LP_MUST_USE lp_status lp_batch_fetch(lp_batch *batch, int32_t buffer, const lp_step *step, const bool *selected,
                                     lp_diag *diag);
/* Tells whether the GPU can find the greatest logits of the output step, so that the logits need not be fetched. */
bool lp_batch_finds_top(const lp_batch *batch, const lp_step *step);
/* Finds the `wanted` greatest logits of each row. */
LP_MUST_USE lp_status lp_batch_find_top(lp_batch *batch, const lp_step *step, int32_t wanted, lp_diag *diag);
/* Gives the logits of a sequence: those that lp_batch_find_top found, or (`found` false) those that were fetched. */
LP_MUST_USE lp_status lp_batch_logits(const lp_batch *batch, size_t sequence, const lp_step *step, bool found,
                                      lp_logits *out, lp_diag *diag);
/* Runs the segment of a `run` step for all sequences. */
LP_MUST_USE lp_status lp_batch_run(lp_batch *batch, const lp_step *step, lp_diag *diag);
/* Gathers the parts of the ranks, of a `gather` step, for all sequences. */
LP_MUST_USE lp_status lp_batch_gather(lp_batch *batch, const lp_step *step, lp_diag *diag);
/* Waits until the pass is complete. Only then may its sequences run elsewhere or be freed. */
LP_MUST_USE lp_status lp_batch_end(lp_batch *batch, lp_diag *diag);
lp_gpu_memory *lp_batch_gpu_memory(lp_batch *batch); /* NULL: a CPU runs the code */
/* Finds the first program with the same code on this side, step by step. Sequences of such programs share a pass. */
int32_t lp_program_code(const lp_bundle *bundle, lp_place side, int32_t program);
