/* runtime/exec: runs the steps of a program on one side. This room knows bundles and GPUs, but no link, no session
 * and no text: its callers move tensors between executors and say which step runs when. */
#pragma once

#include "base/abi.h"
#include "base/span.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/sampler.h"
#include "runtime/exec/state.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

/* One side of one session or context: its KV caches, its activations, and the program that they are laid out for.
 * Belongs to one thread at a time; executors may share a pool as long as they run one after the other. */
typedef struct lp_executor {
  const lp_bundle *bundle; /* borrowed, with the side's code loaded */
  lp_place side;
  lp_pool *pool; /* borrowed */
  lp_states states;
  lp_activations arena;
  size_t layout_bytes; /* size of the layout in force */
  int64_t sym[LP_MAX_SYMBOLS];
  int64_t *offset; /* [most buffers of any program] */
  int32_t program; /* the program that the arena is laid out for; -1: none */
  lp_frame frame;
  lp_gpu_memory *gpu_memory; /* NULL: a CPU runs the code */
  bool apart;                /* the GPU computes in its own memory; `arena` holds copies of the buffers that are read */
  struct lp_ranks *ranks;    /* that run the half together (ranks.h); NULL: it is not sharded */
  int32_t told;              /* the end of the steps that the other ranks have been told to run */
} lp_executor;

lp_executor *lp_executor_create(const lp_bundle *bundle, lp_place side, lp_pool *pool);
void lp_executor_free(lp_executor *executor);   /* NULL is allowed */
void lp_executor_forget(lp_executor *executor); /* drops the KV caches: the next run must begin at position 0 */
/* Prepares a run of the program at the symbol values sym[symbol_count], of which t is replaced by the pool's threads:
 * lays out the buffers, and makes room for activations and KV caches. */
LP_MUST_USE lp_status lp_executor_begin(lp_executor *executor, int32_t program, const int64_t *sym, lp_diag *diag);
/* Gives the bytes of `tensor` in `buffer` at the symbol values in force, to be read only. When a GPU has its own
 * memory they are a copy, which the next call may overwrite. */
LP_MUST_USE lp_status lp_executor_buffer(lp_executor *executor, int32_t buffer, const lp_tensor_desc *tensor,
                                         lp_span *out, lp_diag *diag);
/* Copies data[size] into the buffer of a step. Fails as lp_payload_check does. */
LP_MUST_USE lp_status lp_executor_fill(lp_executor *executor, int32_t buffer, const lp_step *step, const void *data,
                                       size_t size, lp_diag *diag);
/* Runs the segment of a `run` step. On a GPU it may only be enqueued; reading a buffer waits for it. */
LP_MUST_USE lp_status lp_executor_run(lp_executor *executor, const lp_step *step, lp_diag *diag);
/* Gathers the parts of the ranks, of a `gather` step. */
LP_MUST_USE lp_status lp_executor_gather(lp_executor *executor, const lp_step *step, lp_diag *diag);
/* Draws one token per sequence from the logits of an `output` step: out[b]. */
LP_MUST_USE lp_status lp_executor_sample(lp_executor *executor, const lp_step *step, const lp_sampling *sampling,
                                         lp_sample *out, lp_buf *scratch, lp_diag *diag);
/* Fails unless the payload of a step has `wanted` bytes and the token ids in it, if any, are in the vocabulary. */
LP_MUST_USE lp_status lp_payload_check(const lp_manifest *manifest, const lp_step *step, size_t wanted,
                                       const void *data, size_t size, lp_diag *diag);
