/* Memory of one side: the KV caches of a sequence (or a batch of sequences), and the activations of a pass. */
#pragma once

#include "runtime/bundle/manifest.h"
#include "runtime/gpu/gpu.h"

/* ---- KV caches --------------------------------------------------------------------------------------------------- */

/* The states of the manifest on one side, in one region that begins as zeros. The region is memory of the host, which
 * a GPU may share, or memory of a GPU that has its own (gpu/gpu.h). Belongs to one thread at a time. */
typedef struct {
  const lp_manifest *manifest; /* borrowed */
  lp_place side;
  lp_gpu *gpu; /* the GPU that computes on them, borrowed; NULL: a CPU does */
  lp_gpu_memory *gpu_memory;
  bool apart;  /* the region is in the GPU's own memory */
  uint32_t id; /* of the executor, for the other ranks of a sharded half (ranks.h); 0: none */
  /* The region is paged: each state begins at a page, and the system gives memory to the pages that hold rows only. Not
   * with a GPU. Set it after lp_states_init. */
  bool paged;
  char *region;
  size_t region_bytes;
  int64_t rows;            /* of a paged region: those that may have memory; see lp_states_held */
  size_t rows_bytes;       /* of memory that they take */
  int64_t batch, capacity; /* the batch and capacity that the region has room for */
  void **pointer;          /* [states]; NULL for those of the other side */
  size_t *bytes;           /* [states] */
} lp_states;

void lp_states_init(lp_states *states, const lp_manifest *manifest, lp_place side); /* allocates no region */
void lp_states_drop(lp_states *states); /* frees the region; lp_states_reserve makes a new one */
void lp_states_free(lp_states *states);
/* Computes the bytes of a region for batch sym[b] and capacity sym[c]; false: they overflow. */
bool lp_states_bytes(const lp_states *states, const int64_t *sym, size_t *bytes);
/* Rounds the capacity sym[c] up, for paged states, so that rows of two runs (of heads, layers) share no page. */
int64_t lp_states_whole_pages(const lp_states *states, const int64_t *sym);
/* A sequence gets memory for this many tokens beyond its text, in an engine and at a worker. */
enum { LP_ROWS_AHEAD = 32 };
/* Computes the bytes of memory that the first `rows` rows of a region for batch sym[b] and capacity sym[c] take: of
 * paged states the pages that hold them, of others the whole region. False: they overflow. */
bool lp_states_bytes_of_rows(const lp_states *states, const int64_t *sym, int64_t rows, size_t *bytes);
/* The bytes of memory that the states hold: of paged ones the pages of the rows that lp_states_reserve was asked for
 * since the region was made or trimmed, of others the whole region. */
size_t lp_states_held(const lp_states *states);
/* Gives the memory of the rows from `rows` on back to the system; they are zeros afterwards. Only for paged states. */
void lp_states_trim(lp_states *states, const int64_t *sym, int64_t rows);
/* Makes room for batch sym[b] and capacity sym[c], of which a pass will write rows up to sym[p] + sym[s]. Keeps the
 * rows of positions [0, sym[p]) when the batch is unchanged. A state without an append axis keeps its whole content,
 * unless sym[p] is 0 or its size changes. */
LP_MUST_USE lp_status lp_states_reserve(lp_states *states, const int64_t *sym, lp_diag *diag);

/* Rows of positions [0, sym[p] + sym[s]) of one state, packed as [outer][rows][inner], where `outer` and `inner` are
 * the axes before and after the append axis; a state without that axis is one row. Bytes: false when they overflow.
 * Pack reads the state, unpack writes it; both wait for a GPU. */
bool lp_states_rows_bytes(const lp_states *states, int32_t state, const int64_t *sym, size_t *bytes);
LP_MUST_USE lp_status lp_states_pack(const lp_states *states, int32_t state, const int64_t *sym, void *out,
                                     lp_diag *diag);
LP_MUST_USE lp_status lp_states_unpack(const lp_states *states, int32_t state, const int64_t *sym, const void *in,
                                       lp_diag *diag);
/* Copies those rows from one side to the other. Both have room for the same batch and capacity. */
LP_MUST_USE lp_status lp_states_copy(const lp_states *from, const lp_states *to, int32_t state, const int64_t *sym,
                                     lp_diag *diag);
/* Tells whether all states of the side have a row for each token, so that the first of them can be shared. */
bool lp_states_have_rows(const lp_manifest *manifest, lp_place side);
/* Copies the rows of positions [0, rows) of all states, of one sequence, to those of another one of the same side. Both
 * have room for them; their capacities may differ. */
LP_MUST_USE lp_status lp_states_copy_rows(const lp_states *from, lp_states *to, int64_t rows, lp_diag *diag);

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* Memory for the activations of one pass. The content does not outlive the pass. Zero it first. */
typedef struct {
  char *data;
  size_t bytes; /* mapped */
} lp_activations;
/* Makes room for `bytes`. Growing loses the content and may move the memory. False: the system has no memory. */
bool lp_activations_reserve(lp_activations *activations, size_t bytes);
void lp_activations_free(lp_activations *activations);
