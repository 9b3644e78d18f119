/* The code of a side that runs on a GPU: kernels in source, which are compiled when they are loaded, and launches.json,
 * the launch list (docs/gpu.md). They take the place of a shared object's layout and segment functions. Arena, weights
 * and KV caches lie in host memory that the GPU shares, or in the GPU's own memory, depending on its interface
 * (lp_gpu_api.apart). */
#pragma once

#include "base/abi.h"
#include "base/poly.h"
#include "runtime/gpu/api.h"

/* ---- launches.json (launches.c) ---------------------------------------------------------------------------------- */

typedef struct {
  const lp_poly *size;
  int64_t per;
} lp_gpu_axis; /* ceil(size / per) groups */

typedef enum { LP_GPU_ARG_REF, LP_GPU_ARG_NULL, LP_GPU_ARG_SIZE, LP_GPU_ARG_SCRATCH } lp_gpu_arg_kind;
typedef struct {
  lp_gpu_arg_kind kind;
  int32_t ref;
  const lp_poly *size;
  int32_t moving; /* the row of the tables (tables.c) with a size that kernels read from memory; -1: no such size */
} lp_gpu_arg;

/* When a launch happens: always, only if a library does the call's products, or only if kernels do. The library does
 * all products of a call or none. */
typedef enum { LP_GPU_BY_ANY, LP_GPU_BY_LIBRARY, LP_GPU_BY_KERNEL } lp_gpu_by;
/* Positions of the arguments of a product; the last may be absent. */
enum {
  LP_GPU_X,
  LP_GPU_W,
  LP_GPU_BIAS,
  LP_GPU_ADD,
  LP_GPU_Y,
  LP_GPU_ROWS,
  LP_GPU_BEGIN,
  LP_GPU_W_BEGIN,
  LP_GPU_PRODUCT_ARGS
};

typedef struct {
  const lp_gpu_product_kind *product; /* NULL: a kernel; a product has no kernel, threads or axes */
  lp_gpu_by by;
  const char *kernel;
  int32_t threads;
  lp_gpu_axis axis[2];
  const lp_poly *few; /* NULL: always; else only where least <= few <= most */
  int64_t least, most;
  int32_t least_sm, most_sm; /* the GPU's architectures that it is for; both 0: any */
  bool spare;                /* the kernel may be launched with more groups than the sizes need */
  bool spread;               /* one launch serves all sequences, on an interface that spreads */
  int32_t arg_count;
  lp_gpu_arg *arg;
} lp_gpu_launch;

typedef struct {
  int32_t count;
  lp_gpu_launch *launch;
  int32_t refs; /* number of operands that a call must have */
} lp_gpu_launcher;

typedef enum { LP_GPU_BUFFER, LP_GPU_STATE, LP_GPU_WEIGHT } lp_gpu_place;
/* In a batched pass a buffer belongs to one sequence, or holds the rows of all sequences (base/abi.h). */
typedef enum { LP_GPU_OWN, LP_GPU_NEW_ROWS, LP_GPU_LAST_ROWS } lp_gpu_holds;
typedef struct {
  lp_gpu_place place;
  lp_gpu_holds holds;
  int64_t index, bytes; /* of a weight: offset and bytes; of a buffer of rows: bytes of one row */
} lp_gpu_ref;

typedef struct {
  const lp_gpu_launcher *launcher;
  bool joint; /* runs once over the rows of all sequences, else once for each sequence */
  int32_t ref_count;
  lp_gpu_ref *ref;
} lp_gpu_call;

typedef struct {
  const char *name;
  int32_t count;
  lp_gpu_call *call;
  bool repeats; /* its launches are the same for all contexts of a grain (record.c) */
} lp_gpu_segment;

typedef struct {
  int32_t count;
  const lp_poly **size; /* [count]; a slot has the greatest of these sizes */
} lp_gpu_slot;

typedef struct {
  const lp_poly *bytes, *few;
  int64_t most; /* needed while few <= most */
  bool library; /* needed only if a library does products */
} lp_gpu_scratch;

typedef struct {
  const char *name;
  int32_t buffers, slots, scratch_count;
  int32_t *slot; /* [buffers] */
  lp_gpu_slot *sizes;
  lp_gpu_scratch *scratch;
} lp_gpu_layout;

typedef struct {
  const char *language; /* of the kernels, as lp_gpu_api_find takes it */
  lp_symbols symbols;
  bool sequences;   /* the table has the entries that batched passes need; older tables lack them */
  bool overlapping; /* the kernels wait for the one before by themselves; those of older tables do not */
  bool profiled;    /* each call is a part of a pass that can be timed (docs/gpu.md) */
  int32_t launcher_count, layout_count, segment_count;
  lp_gpu_launcher *launcher;
  lp_gpu_layout *layout;
  lp_gpu_segment *segment;
} lp_gpu_table;

/* Safe on any bytes. `file` names them in messages. The arena holds everything except the symbols: release those with
 * lp_gpu_table_clear. */
LP_MUST_USE lp_status lp_gpu_table_parse(const char *file, const char *text, size_t size, lp_arena *arena,
                                         lp_gpu_table *out, lp_diag *diag);
void lp_gpu_table_clear(lp_gpu_table *table);

/* ---- code on a GPU (gpu.c) --------------------------------------------------------------------------------------- */

typedef struct {
  const char *kernels_file, *kernels; /* path for messages, text */
  size_t kernels_size;
  const char *table_file, *table;
  size_t table_size;
  const char *weights; /* the data section; outlives the code */
  size_t weight_bytes;
  int32_t states; /* of the bundle */
  int32_t number; /* of the GPU, among those that this process sees */
} lp_gpu_source;

/* One side's code. Any number of threads may run it, each with its own lp_gpu_memory. */
typedef struct lp_gpu lp_gpu;
/* Finds a GPU, compiles the kernels for it, and copies the weights there if it has its own memory. The caller may free
 * the text of the source afterwards. */
LP_MUST_USE lp_status lp_gpu_create(const lp_gpu_source *source, lp_gpu **out, lp_diag *diag);
void lp_gpu_free(lp_gpu *gpu); /* NULL is allowed */
/* Tells whether the GPU computes in its own memory, which the host cannot read. */
bool lp_gpu_is_apart(const lp_gpu *gpu);
/* The index of the layout or segment with that name; -1 if there is none, or if the segment's calls do not fit the
 * layout. */
int32_t lp_gpu_find_layout(const lp_gpu *gpu, const char *name);
int32_t lp_gpu_find_segment(const lp_gpu *gpu, const char *name, int32_t layout);
/* Computes the offset[lp_gpu_buffers] of a layout, as lp_layout_fn does, and returns its bytes; negative: it is too
 * large. */
int64_t lp_gpu_lay_out(const lp_gpu *gpu, int32_t layout, const int64_t *sym, int64_t *offset);
int32_t lp_gpu_buffers(const lp_gpu *gpu, int32_t layout); /* number of buffers, including the one for scratch */
/* The library that has done products, as "cuBLASLt 12.9.1"; NULL: only the code's kernels have done products. */
const char *lp_gpu_library_used(lp_gpu *gpu);
bool lp_gpu_runs_sequences(const lp_gpu *gpu); /* tells whether one pass can run several sequences */
bool lp_gpu_is_profiled(const lp_gpu *gpu);    /* tells whether a timed run marks each part of a segment */

/* The memory that one executor, or one batch of sequences, has on the GPU. One thread at a time may use it. */
typedef struct lp_gpu_memory lp_gpu_memory;
lp_gpu_memory *lp_gpu_memory_create(const lp_gpu *gpu);
void lp_gpu_memory_free(lp_gpu *gpu, lp_gpu_memory *memory); /* NULL is allowed */
/* Releases the shared host memory, or the activations. Call it before any of that memory is freed or moves. */
void lp_gpu_memory_reset(lp_gpu *gpu, lp_gpu_memory *memory);
/* The owner of a sequence's caches: they are shared with the GPU through `memory` until that is reset. */
typedef struct {
  lp_gpu_memory *memory;
  const size_t *state_bytes; /* [states] */
} lp_gpu_owner;
/* Runs a segment, after which the host can read arena and caches. A GPU with its own memory only enqueues it: the
 * functions below wait for the results, read them, and may report errors of this call. The caches in `frame` are then
 * from lp_gpu_reserve, and only the distances between the arenas of `frame` and of its sequences matter.
 * owner[sequences, at least 1]. */
LP_MUST_USE lp_status lp_gpu_run(lp_gpu *gpu, lp_gpu_memory *memory, int32_t layout, int32_t segment,
                                 const lp_frame *frame, size_t arena_bytes, const lp_gpu_owner *owner, lp_diag *diag);
/* Waits for all enqueued work, so that another lp_gpu_memory may use the same caches. */
LP_MUST_USE lp_status lp_gpu_wait(lp_gpu *gpu, lp_gpu_memory *memory, lp_diag *diag);

/* ---- the GPU's own memory (memory.c) ----------------------------------------------------------------------------- */

/* Activations: as many bytes as a layout needs. Growing loses their content. */
LP_MUST_USE lp_status lp_gpu_make_arena(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, lp_diag *diag);
LP_MUST_USE lp_status lp_gpu_write(lp_gpu *gpu, lp_gpu_memory *memory, size_t offset, const void *data, size_t bytes,
                                   lp_diag *diag);
LP_MUST_USE lp_status lp_gpu_read(lp_gpu *gpu, lp_gpu_memory *memory, size_t offset, void *out, size_t bytes,
                                  lp_diag *diag);

/* Finds the greatest elements of rows[rows][vocab], floats at `offset` of the arena; a row begins `apart` floats after
 * the one before it. `out` receives for each row [1 + 2 * wanted] words: the floats sum of exp(x - greatest) and the
 * `wanted` greatest elements, then their ids as int32_t; the id `vocab` says that there are no more. Waits for the
 * result. */
typedef struct {
  size_t offset;
  int64_t rows, vocab, apart, wanted;
} lp_gpu_top;
bool lp_gpu_has_top(const lp_gpu *gpu); /* false: the code has no kernel for it, as older code has not */
LP_MUST_USE lp_status lp_gpu_find_top(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_top *top, float *out,
                                      lp_diag *diag);

/* Allocates memory filled with zeros, for KV caches. `what` completes the diagnostic "no room for 12 MiB of ...". */
LP_MUST_USE lp_status lp_gpu_reserve(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, const char *what, void **out,
                                     lp_diag *diag);
void lp_gpu_release(lp_gpu *gpu, lp_gpu_memory *memory, void *reserved); /* NULL is allowed */

/* Begins after all earlier work and returns when the copy is complete. */
LP_MUST_USE lp_status lp_gpu_copy(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_rows *rows, lp_diag *diag);

/* ---- one of the GPUs of several ranks (gpu.c) -------------------------------------------------------------------- */

bool lp_gpu_gathers(const lp_gpu *gpu); /* tells whether the interface can gather in the GPUs' own memory */
bool lp_gpu_enter(lp_gpu *gpu);         /* makes it the GPU of the calling thread, for libraries that take that one */
/* From now on gathers go through `ranks`, borrowed; NULL: no more. */
void lp_gpu_join(lp_gpu *gpu, const lp_collective *ranks);
/* Offsets in the activations: of this rank's part[outer][inner], of the result whole[outer][parts][inner], and of room
 * for the parts of all ranks, which is used if their order is not the result's (lp_collective_join). */
typedef struct {
  size_t part, whole, room, outer, inner;
  int32_t parts;
} lp_gpu_parts;
/* Enqueues a gather. The caller has made room in the activations. */
LP_MUST_USE lp_status lp_gpu_gather(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_parts *parts, lp_diag *diag);
