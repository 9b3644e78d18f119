/* KV caches. */
#ifndef LP_STATE_H
#define LP_STATE_H

#include "runtime/bundle/manifest.h"
#include "runtime/gpu/gpu.h"

/* The states of one side of one session, in one region of zeros at first: the host's memory, which a GPU may share, or that of a
 * GPU whose memory is apart (gpu.h). */
typedef struct {
  const lp_manifest *manifest;
  lp_side side;
  lp_gpu *gpu; /* that works on them; NULL: a processor does */
  lp_gpu_memory *gpu_memory;
  bool apart; /* they lie in the GPU's memory */
  char *region;
  size_t region_bytes;
  int64_t batch, capacity;
  void **pointer; /* [states]; NULL for those of the other side */
  size_t *bytes;  /* [states] */
} lp_states;

void lp_states_init(lp_states *states, const lp_manifest *manifest, lp_side side);
void lp_states_drop(lp_states *states); /* forgets the content and gives the memory back; reserve begins anew */
void lp_states_free(lp_states *states);
/* Bytes that `sym` asks for; false when too large. */
bool lp_states_bytes(const lp_states *states, const int64_t *sym, size_t *bytes);
/* Makes room for batch sym[b] and capacity sym[c]; rows [0, sym[p]) are kept when the batch is unchanged. */
LP_MUST_USE lp_status lp_states_reserve(lp_states *states, const int64_t *sym, lp_diag *diag);
/* The rows [0, sym[p] + sym[s]) of a state, packed as [outer][rows][inner]. */
bool lp_states_rows_bytes(const lp_states *states, int32_t state, const int64_t *sym, size_t *bytes);
LP_MUST_USE lp_status lp_states_pack(const lp_states *states, int32_t state, const int64_t *sym, void *out,
                                     lp_diag *diag);
LP_MUST_USE lp_status lp_states_unpack(const lp_states *states, int32_t state, const int64_t *sym, const void *in,
                                       lp_diag *diag);
/* From one side to the other. Both hold the same batch and capacity. */
LP_MUST_USE lp_status lp_states_copy(const lp_states *from, const lp_states *to, int32_t state, const int64_t *sym,
                                     lp_diag *diag);

#endif
