/* The parts of a pass: all sequences together, and each of them. */
#ifndef LP_RUNTIME_GPU_PART_H
#define LP_RUNTIME_GPU_PART_H

#include "runtime/gpu/code.h"

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

#endif
