/* A side whose code runs on a GPU: kernels in source, compiled when they are loaded, and launches.json, which says what to launch on
 * what (docs/gpu.md). It stands where a shared object's layout and segment functions stand for a processor. Arena, weights and
 * KV caches are the executor's own memory, which the GPU shares, or memory of the GPU's own, as its interface has it (api.h).
 */
#ifndef LP_RUNTIME_GPU_H
#define LP_RUNTIME_GPU_H

#include "base/abi.h"
#include "base/poly.h"
#include "runtime/gpu/api.h"

/* ---- launches.json (table.c) ------------------------------------------------------------------------------------ */

typedef struct {
  const lp_poly *size;
  int64_t per;
} lp_gpu_axis; /* ceil(size / per) groups */

typedef enum { LP_GPU_ARG_REF, LP_GPU_ARG_NULL, LP_GPU_ARG_SIZE, LP_GPU_ARG_SCRATCH } lp_gpu_arg_kind;
typedef struct {
  lp_gpu_arg_kind kind;
  int32_t ref;
  const lp_poly *size;
  int32_t moving; /* of a size that is read from memory: its place among those (tables.c); else -1 */
} lp_gpu_arg;

/* A call's products are done by a library all, or by kernels all. */
typedef enum { LP_GPU_BY_ANY, LP_GPU_BY_LIBRARY, LP_GPU_BY_KERNEL } lp_gpu_by;
/* The arguments of a product. */
enum { LP_GPU_X, LP_GPU_W, LP_GPU_BIAS, LP_GPU_ADD, LP_GPU_Y, LP_GPU_ROWS, LP_GPU_BEGIN, LP_GPU_PRODUCT_ARGS };

typedef struct {
  const lp_gpu_product_kind *product; /* NULL: a kernel; else it has no kernel, threads, axes */
  lp_gpu_by by;
  const char *kernel;
  int32_t threads;
  lp_gpu_axis axis[2];
  const lp_poly *few; /* NULL: always; else only where least <= few <= most */
  int64_t least, most;
  int32_t least_sm, most_sm; /* of the GPU's architecture; both 0: any */
  bool spare;                /* more groups than the sizes ask for do no harm */
  bool spread;               /* where the interface spreads, one launch does it for all sequences */
  int32_t arg_count;
  lp_gpu_arg *arg;
} lp_gpu_launch;

typedef struct {
  int32_t count;
  lp_gpu_launch *launch;
  int32_t refs; /* that a call has to bring */
} lp_gpu_launcher;

typedef enum { LP_GPU_BUFFER, LP_GPU_STATE, LP_GPU_WEIGHT } lp_gpu_place;
/* In a pass over several sequences a buffer is a sequence's own, or holds the rows of all (base/abi.h). */
typedef enum { LP_GPU_OWN, LP_GPU_NEW_ROWS, LP_GPU_LAST_ROWS } lp_gpu_holds;
typedef struct {
  lp_gpu_place place;
  lp_gpu_holds holds;
  int64_t index, bytes; /* of a weight: offset and bytes; of a buffer of rows: bytes of one */
} lp_gpu_ref;

typedef struct {
  const lp_gpu_launcher *launcher;
  bool joint; /* runs once over the rows of all sequences, else for one after the other */
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
  const lp_poly **size; /* a slot holds the greatest */
} lp_gpu_slot;

typedef struct {
  const lp_poly *bytes, *few;
  int64_t most; /* needed while few <= most */
  bool library; /* and where a library does products */
} lp_gpu_scratch;

typedef struct {
  const char *name;
  int32_t buffers, slots, scratch_count;
  int32_t *slot; /* [buffers] */
  lp_gpu_slot *sizes;
  lp_gpu_scratch *scratch;
} lp_gpu_layout;

typedef struct {
  const char *language; /* of the kernels: what lp_gpu_api_find takes */
  lp_symbols symbols;
  bool
      sequences; /* it says what several sequences in one pass need to know; tables of before that was thought of do not */
  int32_t launcher_count, layout_count, segment_count;
  lp_gpu_launcher *launcher;
  lp_gpu_layout *layout;
  lp_gpu_segment *segment;
} lp_gpu_table;

/* Safe on any bytes. `file` names them in messages; everything lives in the arena but the symbols (lp_gpu_table_clear). */
LP_MUST_USE lp_status lp_gpu_table_parse(const char *file, const char *text, size_t size, lp_arena *arena,
                                         lp_gpu_table *out, lp_diag *diag);
void lp_gpu_table_clear(lp_gpu_table *table);

/* ---- code on a GPU (gpu.c) ---------------------------------------------------------------------------------------------- */

typedef struct {
  const char *kernels_file, *kernels; /* path for messages, text */
  size_t kernels_size;
  const char *table_file, *table;
  size_t table_size;
  const char *weights; /* the data section; outlives the code */
  size_t weight_bytes;
  int32_t states; /* of the bundle */
} lp_gpu_source;

/* One side's code. Any number of threads may run it, each with a memory of its own. */
typedef struct lp_gpu lp_gpu;
/* Finds a GPU, compiles the kernels for it, and brings the weights there where it has memory of its own. Text of the source may
 * go afterwards. */
LP_MUST_USE lp_status lp_gpu_create(const lp_gpu_source *source, lp_gpu **out, lp_diag *diag);
void lp_gpu_free(lp_gpu *gpu); /* NULL is allowed */
/* Does it compute in memory of its own, which the host cannot read, rather than in the host's? */
bool lp_gpu_is_apart(const lp_gpu *gpu);
/* -1 when there is none of that name; a segment's calls must fit the layout it is run with. */
int32_t lp_gpu_find_layout(const lp_gpu *gpu, const char *name);
int32_t lp_gpu_find_segment(const lp_gpu *gpu, const char *name, int32_t layout);
/* As lp_layout_fn, for `buffers` buffers and one entry more for scratch; negative when too large. */
int64_t lp_gpu_lay_out(const lp_gpu *gpu, int32_t layout, const int64_t *sym, int64_t *offset);
int32_t lp_gpu_buffers(const lp_gpu *gpu, int32_t layout); /* with the one for scratch */
/* "cuBLASLt 12.9.1", once it has done a product; NULL: all were done by the code's own kernels. */
const char *lp_gpu_library_used(lp_gpu *gpu);
bool lp_gpu_runs_sequences(const lp_gpu *gpu); /* several in one pass */

/* What one executor has on the GPU, or a batch of sequences: of one thread at a time. */
typedef struct lp_gpu_memory lp_gpu_memory;
lp_gpu_memory *lp_gpu_memory_create(const lp_gpu *gpu);
void lp_gpu_memory_free(lp_gpu *gpu, lp_gpu_memory *memory); /* NULL is allowed */
/* Lets go of all memory of the host, or of the activations: to be called before any of it is given back or moves. */
void lp_gpu_memory_reset(lp_gpu *gpu, lp_gpu_memory *memory);
/* Whose caches a sequence works on: they are shared with the GPU by way of `memory`, as long as that is not reset. */
typedef struct {
  lp_gpu_memory *memory;
  const size_t *state_bytes; /* [states] */
} lp_gpu_owner;
/* Runs a segment. Afterwards arena and caches can be read, by the functions below where the GPU's memory is apart; they wait
 * for it, and what went wrong on the way may be reported by them. `frame` holds what lp_gpu_reserve gave as caches then. Of its
 * arena, and those of a pass's sequences, nothing but how far they lie apart is looked at then. owner[sequences, at least 1]. */
LP_MUST_USE lp_status lp_gpu_run(lp_gpu *gpu, lp_gpu_memory *memory, int32_t layout, int32_t segment,
                                 const lp_frame *frame, size_t arena_bytes, const lp_gpu_owner *owner, lp_diag *diag);
/* Waits for what was enqueued, so that memory may be used by way of another. */
LP_MUST_USE lp_status lp_gpu_wait(lp_gpu *gpu, lp_gpu_memory *memory, lp_diag *diag);

/* ---- memory apart from the host's (memory.c) ---------------------------------------------------------------------------- */

/* Activations: as many bytes as a layout asks for. What was there is lost when it grows. */
LP_MUST_USE lp_status lp_gpu_make_arena(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, lp_diag *diag);
LP_MUST_USE lp_status lp_gpu_write(lp_gpu *gpu, lp_gpu_memory *memory, size_t offset, const void *data, size_t bytes,
                                   lp_diag *diag);
LP_MUST_USE lp_status lp_gpu_read(lp_gpu *gpu, lp_gpu_memory *memory, size_t offset, void *out, size_t bytes,
                                  lp_diag *diag);

/* Of `rows` rows of `vocab` floats, `apart` floats from one to the next, from `offset` of the arena on: the sum of
 * exp(x - greatest), the `wanted` greatest, and their ids as floats, for each row [1 + 2 * wanted]. Waits. */
typedef struct {
  size_t offset;
  int64_t rows, vocab, apart, wanted;
} lp_gpu_top;
bool lp_gpu_has_top(const lp_gpu *gpu); /* code of before it was thought of has no such kernel */
LP_MUST_USE lp_status lp_gpu_find_top(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_top *top, float *out,
                                      lp_diag *diag);

/* KV caches: zeros when it returns. `what` completes "no room for 12 MiB of ...". */
LP_MUST_USE lp_status lp_gpu_reserve(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, const char *what, void **out,
                                     lp_diag *diag);
void lp_gpu_release(lp_gpu *gpu, lp_gpu_memory *memory, void *reserved); /* NULL is allowed */

/* `count` runs of bytes, so far apart on either side; begins when all that ran before has ended, and waits for its own end. */
typedef enum { LP_GPU_TO_HOST, LP_GPU_FROM_HOST, LP_GPU_WITHIN } lp_gpu_direction;
typedef struct {
  lp_gpu_direction direction;
  char *to;
  const char *from;
  size_t to_apart, from_apart, run, count;
} lp_gpu_rows;
LP_MUST_USE lp_status lp_gpu_copy(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_rows *rows, lp_diag *diag);

#endif
