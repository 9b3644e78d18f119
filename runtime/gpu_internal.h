/* What gpu.c and gpu_memory.c share. */
#ifndef LP_RUNTIME_GPU_INTERNAL_H
#define LP_RUNTIME_GPU_INTERNAL_H

#include "runtime/gpu.h"
#include "runtime/gpu_api.h"

#include <pthread.h>

struct lp_gpu {
  lp_arena *arena;
  char *file;
  lp_gpu_table table;
  const lp_gpu_api *api;
  lp_gpu_device *device;
  lp_map *kernels;   /* name -> kernel */
  lp_map *weights;   /* "offset" -> memory, shared when first used */
  char *all_weights; /* of an interface whose memory is apart */
  const char *weight_data;
  size_t weight_bytes;
  int32_t states;
  pthread_mutex_t one; /* of `weights` */
};

/* A range of the host's memory that the GPU knows, and whose it is at the moment. */
typedef struct {
  char *host;
  size_t bytes;
  void *memory, *mapped; /* mapped: the host's; NULL: the GPU's */
} lp_gpu_shared;

struct lp_gpu_memory {
  lp_gpu_queue *queue;
  LP_VEC(lp_gpu_shared) slots; /* by where they begin: made anew with each layout */
  lp_gpu_shared *state;        /* [states] */
  char *arena;                 /* of memory apart */
  size_t arena_bytes;
};

/* ---- gpu.c ---- */

int64_t lp_gpu_eval(const lp_gpu *gpu, const lp_poly *size, const int64_t *sym);
int64_t lp_gpu_slot_bytes(const lp_gpu *gpu, const lp_gpu_slot *slot, const int64_t *sym);
int64_t lp_gpu_scratch_bytes(const lp_gpu *gpu, const lp_gpu_layout *layout, const int64_t *sym);
/* Where the region behind `begin` ends; negative when that is too far. */
int64_t lp_gpu_end_of(int64_t begin, int64_t bytes);

/* ---- gpu_memory.c ---- */

LP_MUST_USE lp_status lp_gpu_bring_weights(lp_gpu *gpu, lp_diag *diag);
/* Before and behind a segment: shared memory is given to the GPU and taken back. */
bool lp_gpu_give(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_layout *layout, const lp_frame *frame,
                 size_t arena_bytes, const size_t *state_bytes);
bool lp_gpu_take_back(lp_gpu *gpu, lp_gpu_memory *memory);
/* What a kernel is given for an operand. */
void *lp_gpu_memory_of(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_layout *layout, const lp_frame *frame,
                       const lp_gpu_ref *ref);
void *lp_gpu_scratch_of(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_layout *layout, const lp_frame *frame);
/* Reports what the queue met. */
lp_status lp_gpu_report(lp_gpu *gpu, const lp_gpu_memory *memory, lp_diag *diag);

#endif
