/* What gpu.c and memory.c share. */
#ifndef LP_RUNTIME_GPU_INTERNAL_H
#define LP_RUNTIME_GPU_INTERNAL_H

#include "base/map.h"
#include "base/poly.h"
#include "runtime/gpu/api.h"
#include "runtime/gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>

struct lp_gpu {
  lp_arena *arena;
  char *file;
  lp_gpu_table table;
  const lp_gpu_api *api;
  lp_gpu_device *device;
  const lp_gpu_library *library; /* NULL: products are done by kernels */
  atomic_bool library_used;
  lp_map *kernels;   /* name -> kernel */
  lp_map *weights;   /* "offset" -> memory, shared when first used */
  void *top;         /* the kernel of lp_gpu_find_top, or NULL */
  char *all_weights; /* of an interface whose memory is apart */
  const char *weight_data;
  size_t weight_bytes;
  int32_t states;
  LP_VEC(const lp_poly *) moving; /* sizes that kernels read from memory (tables.c) */
  LP_VEC(int64_t) own;            /* buffers of a sequence's own that calls for each sequence work on */
  pthread_mutex_t one;            /* of `weights` */
};

/* The launches of a segment as they were when last run, and what they were made from (record.c). */
typedef struct {
  int32_t segment;
  lp_buf key;
  bool places;     /* it holds addresses of the sequences' own memory */
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
  bool busy; /* something may be enqueued that nobody waited for */
  LP_VEC(lp_gpu_shared)
  slots;                /* by where they begin, those of a pass's parts behind each other: made anew with each layout */
  lp_gpu_shared *state; /* [states] */
  char *arena;          /* of memory apart */
  size_t arena_bytes;
  LP_VEC(lp_gpu_recording) recordings;
  int64_t *tables; /* sizes and addresses for each sequence, there (tables.c) */
  size_t table_bytes;
  char *top; /* what lp_gpu_find_top finds */
  size_t top_bytes;
};

/* ---- gpu.c ---- */

int64_t lp_gpu_eval(const lp_gpu *gpu, const lp_poly *size, const int64_t *sym);
int64_t lp_gpu_slot_bytes(const lp_gpu *gpu, const lp_gpu_slot *slot, const int64_t *sym);
int64_t lp_gpu_scratch_bytes(const lp_gpu *gpu, const lp_gpu_layout *layout, const int64_t *sym);
/* Is a launch for these sizes? */
bool lp_gpu_applies(const lp_gpu *gpu, const lp_gpu_launch *launch, const int64_t *sym);
/* Bytes in front of the scratch that a library's products work with; 0: there are none with these sizes. */
int64_t lp_gpu_workspace_bytes(const lp_gpu *gpu, const int64_t *sym);
/* Where the region behind `begin` ends; negative when that is too far. */
int64_t lp_gpu_end_of(int64_t begin, int64_t bytes);

/* ---- pass.c ---- */

/* A run of a segment. */
typedef struct {
  lp_gpu *gpu;
  lp_gpu_memory *memory;
  const lp_gpu_layout *layout;
  const lp_frame *frame;     /* of all sequences, or of the only one */
  const lp_gpu_owner *owner; /* of each sequence's caches */
  bool recorded; /* for all contexts of a grain: sizes that grow are read from memory, groups are those of its end */
  bool places;   /* something was launched with addresses of a sequence's own memory */
} lp_gpu_pass;
bool lp_gpu_launch_all(lp_gpu_pass *pass, const lp_gpu_segment *segment);
int64_t lp_gpu_sequences(const lp_gpu_pass *pass); /* at least 1 */

/* ---- record.c ---- */

/* `sym` with as many past tokens as the grain of `past` goes to: sizes made from `out` hold for all contexts of the grain. */
void lp_gpu_grain(const lp_gpu *gpu, const int64_t *sym, int64_t past, int64_t out[LP_MAX_NAMED_SYMBOLS]);
int64_t lp_gpu_longest_past(const lp_gpu_pass *pass); /* of all sequences */
/* Does it grow with the context? */
bool lp_gpu_grows(const lp_poly *size);
/* Finds out which segments repeat. */
void lp_gpu_find_repeats(lp_gpu *gpu);
/* As lp_gpu_launch_all, from a recording where the segment was run with the same sizes and memory before. */
bool lp_gpu_launch_recorded(lp_gpu_pass *pass, int32_t segment);
void lp_gpu_drop_recordings(lp_gpu *gpu, lp_gpu_memory *memory);

/* ---- tables.c ---- */

/* Finds out what goes into tables. */
void lp_gpu_find_tables(lp_gpu *gpu);
/* Puts the pass's tables there; false: no room. */
bool lp_gpu_bring_tables(const lp_gpu_pass *pass);
/* Where numbers for sequence `first` and those behind it lie: a size's, or those that say where memory lies. */
const int64_t *lp_gpu_size_at(const lp_gpu_pass *pass, int32_t moving, int64_t first);
/* An operand, or the scratch where `ref` is NULL, as it is for sequence `first` and those behind it. */
lp_gpu_value lp_gpu_spread_value(const lp_gpu_pass *pass, const lp_gpu_ref *ref, int64_t first);

/* ---- memory.c ---- */

LP_MUST_USE lp_status lp_gpu_bring_weights(lp_gpu *gpu, lp_diag *diag);
/* Number 0 of a pass is the frame of all sequences, or of the only one; sequence i has i + 1. */
typedef struct {
  const lp_frame *frame;
  int32_t number;
  const lp_gpu_owner *owner; /* NULL: of all sequences, which have no caches */
} lp_gpu_part;
lp_gpu_part lp_gpu_part_of(const lp_gpu_pass *pass, int64_t number);
int64_t lp_gpu_rows_before(const lp_gpu_part *part, lp_gpu_holds holds); /* of the sequences before that of the part */
/* Before and behind a segment: shared memory is given to the GPU and taken back. */
bool lp_gpu_give(const lp_gpu_pass *pass, size_t arena_bytes);
bool lp_gpu_take_back(const lp_gpu_pass *pass);
/* What a kernel is given for an operand. */
void *lp_gpu_memory_of(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_ref *ref);
void *lp_gpu_scratch_of(const lp_gpu_pass *pass, const lp_gpu_part *part);
/* Shared memory has no addresses between its beginnings: what a call for one sequence works on of the rows of all is copied to the
 * sequence's own memory before it, and back behind it. */
bool lp_gpu_take_rows(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call);
bool lp_gpu_give_rows(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call);
/* Reports what the queue met. */
lp_status lp_gpu_report(lp_gpu *gpu, const lp_gpu_memory *memory, lp_diag *diag);

#endif
