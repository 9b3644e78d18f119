/* A side whose code runs on a GPU: kernels in source, compiled when they are loaded, and launches.json, which says what to launch on
 * what (docs/gpu.md). It stands where a shared object's layout and segment functions stand for a processor; arena, weights and
 * KV caches are the executor's own memory, which the GPU shares.
 */
#ifndef LP_RUNTIME_GPU_H
#define LP_RUNTIME_GPU_H

#include "base/abi.h"
#include "base/base.h"

/* ---- launches.json (gpu_table.c) ------------------------------------------------------------------------------------ */

typedef struct {
  const lp_poly *size;
  int64_t per;
} lp_gpu_axis; /* ceil(size / per) groups */

typedef enum { LP_GPU_ARG_REF, LP_GPU_ARG_NULL, LP_GPU_ARG_SIZE, LP_GPU_ARG_SCRATCH } lp_gpu_arg_kind;
typedef struct {
  lp_gpu_arg_kind kind;
  int32_t ref;
  const lp_poly *size;
} lp_gpu_arg;

typedef struct {
  const char *kernel;
  int32_t threads;
  lp_gpu_axis axis[2];
  const lp_poly *few; /* NULL: always; else only where least <= few <= most */
  int64_t least, most;
  int32_t arg_count;
  lp_gpu_arg *arg;
} lp_gpu_launch;

typedef struct {
  int32_t count;
  lp_gpu_launch *launch;
  int32_t refs; /* that a call has to bring */
} lp_gpu_launcher;

typedef enum { LP_GPU_BUFFER, LP_GPU_STATE, LP_GPU_WEIGHT } lp_gpu_place;
typedef struct {
  lp_gpu_place place;
  int64_t index, bytes; /* of a weight: offset and bytes */
} lp_gpu_ref;

typedef struct {
  const lp_gpu_launcher *launcher;
  int32_t ref_count;
  lp_gpu_ref *ref;
} lp_gpu_call;

typedef struct {
  const char *name;
  int32_t count;
  lp_gpu_call *call;
} lp_gpu_segment;

typedef struct {
  int32_t count;
  const lp_poly **size; /* a slot holds the greatest */
} lp_gpu_slot;

typedef struct {
  const lp_poly *bytes, *few;
  int64_t most; /* needed while few <= most */
} lp_gpu_scratch;

typedef struct {
  const char *name;
  int32_t buffers, slots, scratch_count;
  int32_t *slot; /* [buffers] */
  lp_gpu_slot *sizes;
  lp_gpu_scratch *scratch;
} lp_gpu_layout;

typedef struct {
  lp_symbols symbols;
  int32_t launcher_count, layout_count, segment_count;
  lp_gpu_launcher *launcher;
  lp_gpu_layout *layout;
  lp_gpu_segment *segment;
} lp_gpu_table;

/* Safe on any bytes. `file` names them in messages; everything lives in the arena but the symbols (lp_gpu_table_clear). */
LP_MUST_USE lp_status lp_gpu_table_parse(const char *file, const char *text, size_t size, lp_arena *arena,
                                         lp_gpu_table *out, lp_diag *diag);
void lp_gpu_table_clear(lp_gpu_table *table);

/* ---- code on a GPU (gpu.c, gpu_opencl.c) ------------------------------------------------------------------------------- */

typedef struct {
  const char *kernels_file, *kernels; /* path for messages, text */
  size_t kernels_size;
  const char *table_file, *table;
  size_t table_size;
  const char *weights; /* the data section; outlives the code */
  size_t weight_bytes;
  int32_t states; /* of the bundle */
} lp_gpu_source;

/* One side's code: any number of threads may run it, one at a time gets the GPU. */
typedef struct lp_gpu lp_gpu;
/* Finds a GPU, compiles the kernels for it. Text of the source may go afterwards. */
LP_MUST_USE lp_status lp_gpu_create(const lp_gpu_source *source, lp_gpu **out, lp_diag *diag);
void lp_gpu_free(lp_gpu *gpu); /* NULL is allowed */
/* -1 when there is none of that name; a segment's calls must fit the layout it is run with. */
int32_t lp_gpu_find_layout(const lp_gpu *gpu, const char *name);
int32_t lp_gpu_find_segment(const lp_gpu *gpu, const char *name, int32_t layout);
/* As lp_layout_fn, for `buffers` buffers and one entry more for scratch; negative when too large. */
int64_t lp_gpu_lay_out(const lp_gpu *gpu, int32_t layout, const int64_t *sym, int64_t *offset);
int32_t lp_gpu_buffers(const lp_gpu *gpu, int32_t layout); /* with the one for scratch */

/* What one executor has on the GPU. */
typedef struct lp_gpu_memory lp_gpu_memory;
lp_gpu_memory *lp_gpu_memory_create(const lp_gpu *gpu);
void lp_gpu_memory_free(lp_gpu *gpu, lp_gpu_memory *memory); /* NULL is allowed */
/* Lets go of all memory of the host: to be called before any of it is given back or moves. */
void lp_gpu_memory_reset(lp_gpu *gpu, lp_gpu_memory *memory);
/* Runs a segment and waits for it: afterwards arena and caches can be read. state_bytes[states]: of the caches. */
LP_MUST_USE lp_status lp_gpu_run(lp_gpu *gpu, lp_gpu_memory *memory, int32_t layout, int32_t segment,
                                 const lp_frame *frame, size_t arena_bytes, const size_t *state_bytes, lp_diag *diag);

/* ---- OpenCL (gpu_opencl.c) ----------------------------------------------------------------------------------------------- */

/* The loader libOpenCL.so.1 is opened when it is first needed, so that nothing is linked with it. */
typedef struct lp_opencl lp_opencl;
LP_MUST_USE lp_status lp_opencl_open(const char *file, const char *source, size_t size, lp_opencl **out, lp_diag *diag);
void lp_opencl_close(lp_opencl *cl);                     /* NULL is allowed */
void *lp_opencl_kernel(lp_opencl *cl, const char *name); /* NULL: there is none */
void lp_opencl_kernel_free(lp_opencl *cl, void *kernel);
/* Memory of the host as the GPU sees it; NULL when there is no room. */
void *lp_opencl_share(lp_opencl *cl, void *host, size_t bytes, bool read_only);
void lp_opencl_release(lp_opencl *cl, void *memory);
/* The host gives memory up, or takes it back when all that was enqueued is done. */
bool lp_opencl_unmap(lp_opencl *cl, void *memory, void *mapped);
void *lp_opencl_map(lp_opencl *cl, void *memory, size_t bytes);
bool lp_opencl_set(lp_opencl *cl, void *kernel, int32_t arg, size_t size, const void *value);
bool lp_opencl_enqueue(lp_opencl *cl, void *kernel, int64_t x, int64_t y, int32_t threads);
/* Waits; false when anything went wrong, then `what` says it. */
bool lp_opencl_finish(lp_opencl *cl);
const char *lp_opencl_error(const lp_opencl *cl);
const char *lp_opencl_device(const lp_opencl *cl); /* its name */

#endif
