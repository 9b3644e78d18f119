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
  void *top;         /* the kernel of lp_gpu_find_top, or NULL */
  char *all_weights; /* of an interface whose memory is apart */
  const char *weight_data;
  size_t weight_bytes;
  int32_t states;
  LP_VEC(const lp_poly *) moving; /* sizes that grow with the context */
  pthread_mutex_t one;            /* of `weights` */
};

/* The launches of a segment as they were when last run, and what they were made from (gpu_record.c). */
typedef struct {
  int32_t segment;
  lp_buf key;
  bool failed;     /* it cannot be recorded */
  void *recording; /* NULL: not yet */
} lp_gpu_recording;

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
  LP_VEC(lp_gpu_recording) recordings;
  int64_t *moving; /* the sizes of gpu->moving, there */
  char *top;       /* what lp_gpu_find_top finds */
  size_t top_bytes;
};

/* ---- gpu.c ---- */

int64_t lp_gpu_eval(const lp_gpu *gpu, const lp_poly *size, const int64_t *sym);
int64_t lp_gpu_slot_bytes(const lp_gpu *gpu, const lp_gpu_slot *slot, const int64_t *sym);
int64_t lp_gpu_scratch_bytes(const lp_gpu *gpu, const lp_gpu_layout *layout, const int64_t *sym);
/* Where the region behind `begin` ends; negative when that is too far. */
int64_t lp_gpu_end_of(int64_t begin, int64_t bytes);

/* A run of a segment. */
typedef struct {
  lp_gpu *gpu;
  lp_gpu_memory *memory;
  const lp_gpu_layout *layout;
  const lp_frame *frame;
  const int64_t *grid_sym; /* what numbers of groups are made from */
  bool by_address;         /* sizes that grow with the context are read from memory->moving */
} lp_gpu_pass;
bool lp_gpu_launch_all(const lp_gpu_pass *pass, const lp_gpu_segment *segment);

/* ---- gpu_record.c ---- */

/* `sym` with as many past tokens as its grain goes to: sizes made from `out` hold for all contexts of the grain. */
void lp_gpu_grain(const lp_gpu *gpu, const int64_t *sym, int64_t out[LP_MAX_NAMED_SYMBOLS]);
/* Finds out what grows with the context, and which segments repeat. */
void lp_gpu_find_moving(lp_gpu *gpu);
/* As lp_gpu_launch_all, from a recording where the segment was run with the same sizes and memory before. */
bool lp_gpu_launch_recorded(const lp_gpu_pass *pass, int32_t segment);
void lp_gpu_drop_recordings(lp_gpu *gpu, lp_gpu_memory *memory);

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
