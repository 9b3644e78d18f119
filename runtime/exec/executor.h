/* Runs the steps of a program on one side of one session. */
#ifndef LP_EXECUTOR_H
#define LP_EXECUTOR_H

#include "runtime/bundle/manifest.h"
#include "runtime/exec/activations.h"
#include "runtime/exec/state.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

typedef struct {
  void *data;
  size_t size;
} lp_span;

/* One side of one session: its KV caches, its activations, and where it is in a program. */
typedef struct lp_executor {
  const lp_bundle *bundle;
  lp_side side;
  lp_pool *pool; /* borrowed */
  lp_states states;
  lp_activations arena;
  size_t layout_bytes; /* asked for by the layout now in force */
  int64_t sym[LP_MAX_SYMBOLS];
  int64_t *offset; /* [most buffers of any program] */
  int32_t program; /* whose layout is in `offset`; -1: none */
  lp_frame frame;
  lp_gpu_memory *gpu_memory; /* NULL: the code is a processor's */
  bool apart;                /* the GPU works in memory of its own; `arena` holds copies of what is read from it */
} lp_executor;

lp_executor *lp_executor_create(const lp_bundle *bundle, lp_side side, lp_pool *pool);
void lp_executor_free(lp_executor *executor);   /* NULL is allowed */
void lp_executor_forget(lp_executor *executor); /* drops the KV caches: the next run begins anew */
/* Prepares a run of the program at these symbol values ([symbol_count]; t is replaced): layout, arena, KV caches. */
LP_MUST_USE lp_status lp_executor_begin(lp_executor *executor, int32_t program, const int64_t *sym, lp_diag *diag);
/* The bytes of `tensor` in `buffer` at the symbol values in force, to be read; lp_executor_fill writes. Of a GPU whose memory is
 * apart they are a copy, good until the next call. */
LP_MUST_USE lp_status lp_executor_buffer(lp_executor *executor, int32_t buffer, const lp_tensor_desc *tensor,
                                         lp_span *out, lp_diag *diag);
LP_MUST_USE lp_status lp_executor_run(lp_executor *executor, const lp_step *step, lp_diag *diag);
/* Copies `size` bytes in; they must be what the tensor takes, and token ids must be in the vocabulary. */
LP_MUST_USE lp_status lp_executor_fill(lp_executor *executor, int32_t buffer, const lp_step *step, const void *data,
                                       size_t size, lp_diag *diag);
/* Is the payload of a step as long as wanted, and are its token ids, if it holds any, in the vocabulary? */
LP_MUST_USE lp_status lp_payload_check(const lp_manifest *manifest, const lp_step *step, size_t wanted,
                                       const void *data, size_t size, lp_diag *diag);
/* Samples one token per sequence from the logits of an `output` step. */
LP_MUST_USE lp_status lp_executor_sample(lp_executor *executor, const lp_step *step, const lp_sampling *sampling,
                                         lp_sample *out, lp_buf *scratch, lp_diag *diag);

#endif
