/* The memory of one executor on the GPU, or of a batch of sequences; and the parts of a pass over it. */
#pragma once

#include "runtime/gpu/code.h"

/* The recorded launches of a segment, and the key of the sizes and memory that they are for (record.c). */
typedef struct {
  int32_t segment;
  lp_buf key;
  bool places;     /* the launches hold addresses of the sequences' own memory */
  bool failed;     /* it cannot be recorded */
  void *recording; /* NULL: not yet */
} lp_gpu_recording;

/* A range of host memory shared with the GPU. */
typedef struct {
  char *host;
  size_t bytes;
  void *memory, *mapped; /* NULL `mapped`: the range is the GPU's at the moment, not the host's */
} lp_gpu_shared;

struct lp_gpu_memory {
  lp_gpu_queue *queue;
  bool busy; /* enqueued work may still be running */
  /* [part][slot] by their addresses; made again for each layout */
  LP_VEC(lp_gpu_shared) slots;
  lp_gpu_shared *state; /* [states] */
  char *arena;          /* on the GPU, if it has its own memory */
  size_t arena_bytes;
  LP_VEC(lp_gpu_recording) recordings;
  int64_t *tables; /* on the GPU: sizes and addresses of each sequence (tables.c) */
  size_t table_bytes;
  char *top; /* on the GPU: results of lp_gpu_find_top */
  size_t top_bytes;
};

/* A run of a segment. */
typedef struct {
  lp_gpu *gpu;
  lp_gpu_memory *memory;
  const lp_gpu_layout *layout;
  const lp_frame *frame;     /* of all sequences, or of the only one */
  const lp_gpu_owner *owner; /* of each sequence's caches */
  /* valid for all contexts of a grain: kernels read growing sizes from memory, and grids have their largest size */
  bool recorded;
  bool places; /* a launch was given addresses of a sequence's own memory */
} lp_gpu_pass;

/* Number 0 is the part of all sequences, or of the only one; sequence i has number i + 1. */
typedef struct {
  const lp_frame *frame;
  int32_t number;
  const lp_gpu_owner *owner; /* NULL: of all sequences, which have no caches */
} lp_gpu_part;

lp_gpu_part lp_gpu_part_of(const lp_gpu_pass *pass, int64_t number);
int64_t lp_gpu_sequences(const lp_gpu_pass *pass);                       /* at least 1 */
int64_t lp_gpu_longest_past(const lp_gpu_pass *pass);                    /* of all sequences */
int64_t lp_gpu_rows_before(const lp_gpu_part *part, lp_gpu_holds holds); /* rows of the sequences before the part's */

LP_MUST_USE lp_status lp_gpu_bring_weights(lp_gpu *gpu, lp_diag *diag);
/* Before a segment, shared memory is given to the GPU; after it, the host takes it back. */
bool lp_gpu_give(const lp_gpu_pass *pass, size_t arena_bytes);
bool lp_gpu_take_back(const lp_gpu_pass *pass);
/* The memory that a kernel receives for an operand, and for scratch. */
void *lp_gpu_memory_of(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_ref *ref);
void *lp_gpu_scratch_of(const lp_gpu_pass *pass, const lp_gpu_part *part);
/* The GPU cannot address the middle of shared memory. So the rows that a call for one sequence uses are copied to the
 * sequence's own memory before the call, and back after it. */
bool lp_gpu_take_rows(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call);
bool lp_gpu_give_rows(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call);
/* Reports the queue's error. */
LP_MUST_USE lp_status lp_gpu_report(lp_gpu *gpu, const lp_gpu_memory *memory, lp_diag *diag);
