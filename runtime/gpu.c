/* Runs segments on a GPU: what the table of launches says, with sizes put in. */
#include "runtime/gpu.h"

#include <pthread.h>
#include <stdlib.h>

enum { SLOT_ALIGNMENT = 4096 }; /* so that a GPU can share them in place */

struct lp_gpu {
  lp_arena *arena;
  char *file;
  lp_gpu_table table;
  lp_opencl *cl;
  lp_map *kernels; /* name -> kernel */
  lp_map *weights; /* "offset" -> memory, made when first used */
  const char *weight_data;
  size_t weight_bytes;
  int32_t states;
  pthread_mutex_t one; /* kernels keep their arguments */
};

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static lp_status find_kernels(lp_gpu *gpu, lp_diag *diag) {
  for (int32_t i = 0; i < gpu->table.launcher_count; i++) {
    const lp_gpu_launcher *launcher = &gpu->table.launcher[i];
    for (int32_t k = 0; k < launcher->count; k++) {
      const char *name = launcher->launch[k].kernel;
      if (lp_map_has(gpu->kernels, name)) continue;
      void *kernel = lp_opencl_kernel(gpu->cl, name);
      if (kernel == NULL) return lp_error(diag, LP_LOC_FILE(gpu->file), "the kernels have no '%.80s'", name);
      lp_map_put(gpu->kernels, name, kernel);
    }
  }
  return LP_OK;
}

lp_status lp_gpu_create(const lp_gpu_source *source, lp_gpu **out, lp_diag *diag) {
  lp_gpu *gpu = lp_alloc(sizeof *gpu);
  gpu->arena = lp_arena_create();
  gpu->file = lp_strdup(source->table_file);
  gpu->kernels = lp_map_create();
  gpu->weights = lp_map_create();
  gpu->weight_data = source->weights;
  gpu->weight_bytes = source->weight_bytes;
  gpu->states = source->states;
  pthread_mutex_init(&gpu->one, NULL);
  lp_status status = lp_gpu_table_parse(gpu->file, source->table, source->table_size, gpu->arena, &gpu->table, diag);
  if (status == LP_OK)
    status = lp_opencl_open(source->kernels_file, source->kernels, source->kernels_size, &gpu->cl, diag);
  if (status == LP_OK) status = find_kernels(gpu, diag);
  if (status != LP_OK) {
    lp_gpu_free(gpu);
    gpu = NULL;
  }
  *out = gpu;
  return status;
}

void lp_gpu_free(lp_gpu *gpu) {
  if (gpu == NULL) return;
  for (size_t i = 0; i < lp_map_count(gpu->weights); i++)
    lp_opencl_release(gpu->cl, lp_map_value_at(gpu->weights, i));
  for (size_t i = 0; i < lp_map_count(gpu->kernels); i++)
    lp_opencl_kernel_free(gpu->cl, lp_map_value_at(gpu->kernels, i));
  lp_opencl_close(gpu->cl);
  lp_map_free(gpu->weights);
  lp_map_free(gpu->kernels);
  lp_gpu_table_clear(&gpu->table);
  pthread_mutex_destroy(&gpu->one);
  lp_arena_free(gpu->arena);
  free(gpu->file);
  free(gpu);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

int32_t lp_gpu_find_layout(const lp_gpu *gpu, const char *name) {
  for (int32_t i = 0; i < gpu->table.layout_count; i++)
    if (lp_streq(gpu->table.layout[i].name, name)) return i;
  return -1;
}

int32_t lp_gpu_buffers(const lp_gpu *gpu, int32_t layout) {
  return gpu->table.layout[layout].buffers + 1;
}

static bool ref_fits(const lp_gpu *gpu, const lp_gpu_layout *layout, const lp_gpu_ref *ref) {
  if (ref->place == LP_GPU_BUFFER) return ref->index < layout->buffers;
  if (ref->place == LP_GPU_STATE) return ref->index < gpu->states;
  return (size_t)ref->index <= gpu->weight_bytes && (size_t)ref->bytes <= gpu->weight_bytes - (size_t)ref->index;
}

static bool segment_fits(const lp_gpu *gpu, const lp_gpu_layout *layout, const lp_gpu_segment *segment) {
  for (int32_t i = 0; i < segment->count; i++)
    for (int32_t k = 0; k < segment->call[i].ref_count; k++)
      if (!ref_fits(gpu, layout, &segment->call[i].ref[k])) return false;
  return true;
}

int32_t lp_gpu_find_segment(const lp_gpu *gpu, const char *name, int32_t layout) {
  for (int32_t i = 0; i < gpu->table.segment_count; i++)
    if (lp_streq(gpu->table.segment[i].name, name))
      return segment_fits(gpu, &gpu->table.layout[layout], &gpu->table.segment[i]) ? i : -1;
  return -1;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

static int64_t eval(const lp_gpu *gpu, const lp_poly *size, const int64_t *sym) {
  return lp_poly_eval(size, sym, gpu->table.symbols.names.count);
}

static int64_t slot_bytes(const lp_gpu *gpu, const lp_gpu_slot *slot, const int64_t *sym) {
  int64_t most = 0;
  for (int32_t i = 0; i < slot->count; i++) {
    int64_t bytes = eval(gpu, slot->size[i], sym);
    if (bytes > most) most = bytes;
  }
  return most;
}

static int64_t scratch_bytes(const lp_gpu *gpu, const lp_gpu_layout *layout, const int64_t *sym) {
  int64_t most = 0;
  for (int32_t i = 0; i < layout->scratch_count; i++) {
    const lp_gpu_scratch *scratch = &layout->scratch[i];
    int64_t bytes = eval(gpu, scratch->bytes, sym);
    if (eval(gpu, scratch->few, sym) <= scratch->most && bytes > most) most = bytes;
  }
  return most;
}

/* Where the region behind `begin` ends; negative when that is too far. */
static int64_t end_of(int64_t begin, int64_t bytes) {
  if (begin < 0 || bytes > INT64_MAX / 2 - begin) return -1;
  return (begin + bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

int64_t lp_gpu_lay_out(const lp_gpu *gpu, int32_t index, const int64_t *sym, int64_t *offset) {
  const lp_gpu_layout *layout = &gpu->table.layout[index];
  int64_t end = 0;
  for (int32_t i = 0; i < layout->slots && end >= 0; i++) {
    for (int32_t k = 0; k < layout->buffers; k++)
      if (layout->slot[k] == i) offset[k] = end;
    end = end_of(end, slot_bytes(gpu, &layout->sizes[i], sym));
  }
  offset[layout->buffers] = end;
  return end_of(end, scratch_bytes(gpu, layout, sym));
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A range of the host's memory that the GPU knows, and whose it is at the moment. */
typedef struct {
  char *host;
  size_t bytes;
  void *memory, *mapped; /* mapped: the host's; NULL: the GPU's */
} shared;

struct lp_gpu_memory {
  LP_VEC(shared) slots; /* by where they begin: made anew with each layout */
  shared *state;        /* [states] */
};

lp_gpu_memory *lp_gpu_memory_create(const lp_gpu *gpu) {
  lp_gpu_memory *memory = lp_alloc(sizeof *memory);
  memory->state = lp_alloc(sizeof *memory->state * ((size_t)gpu->states + 1));
  return memory;
}

static void drop(lp_gpu *gpu, shared *range) {
  if (range->mapped != NULL) (void)lp_opencl_unmap(gpu->cl, range->memory, range->mapped);
  lp_opencl_release(gpu->cl, range->memory);
  *range = (shared){0};
}

static void drop_slots(lp_gpu *gpu, lp_gpu_memory *memory) {
  for (size_t i = 0; i < memory->slots.count; i++)
    drop(gpu, &memory->slots.data[i]);
  memory->slots.count = 0;
}

void lp_gpu_memory_reset(lp_gpu *gpu, lp_gpu_memory *memory) {
  pthread_mutex_lock(&gpu->one);
  drop_slots(gpu, memory);
  for (int32_t i = 0; i < gpu->states; i++)
    drop(gpu, &memory->state[i]);
  (void)lp_opencl_finish(gpu->cl);
  pthread_mutex_unlock(&gpu->one);
}

void lp_gpu_memory_free(lp_gpu *gpu, lp_gpu_memory *memory) {
  if (memory == NULL) return;
  lp_gpu_memory_reset(gpu, memory);
  lp_vec_free(&memory->slots);
  free(memory->state);
  free(memory);
}

static bool share(lp_gpu *gpu, shared *range, char *host, size_t bytes) {
  if (range->memory != NULL && range->host == host && range->bytes == bytes) {
    bool given = range->mapped == NULL || lp_opencl_unmap(gpu->cl, range->memory, range->mapped);
    range->mapped = NULL;
    return given;
  }
  drop(gpu, range);
  *range = (shared){.host = host, .bytes = bytes, .memory = lp_opencl_share(gpu->cl, host, bytes, false)};
  return range->memory != NULL;
}

static bool take_back(lp_gpu *gpu, shared *range) {
  if (range->memory == NULL) return true;
  range->mapped = lp_opencl_map(gpu->cl, range->memory, range->bytes);
  return range->mapped != NULL;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_gpu *gpu;
  lp_gpu_memory *memory;
  const lp_gpu_layout *layout;
  const lp_frame *frame;
  const int64_t *sym;
  size_t arena_bytes;
  const size_t *state_bytes;
} run;

/* Each slot from where it begins to where the next one does. */
static bool share_arena(const run *r) {
  lp_gpu_memory *memory = r->memory;
  size_t count = (size_t)r->layout->slots + 1, begin = 0;
  while (memory->slots.count < count)
    lp_vec_push(&memory->slots, ((shared){0}));
  for (size_t i = 0; i < count; i++) {
    int64_t bytes = i < (size_t)r->layout->slots ? slot_bytes(r->gpu, &r->layout->sizes[i], r->sym)
                                                 : scratch_bytes(r->gpu, r->layout, r->sym);
    size_t end = (size_t)end_of((int64_t)begin, bytes);
    if (end > r->arena_bytes) return false;
    if (end > begin && !share(r->gpu, &memory->slots.data[i], r->frame->arena + begin, end - begin)) return false;
    begin = end;
  }
  return true;
}

static bool share_states(const run *r) {
  for (int32_t i = 0; i < r->gpu->states; i++)
    if (r->frame->state[i] != NULL && r->state_bytes[i] > 0 &&
        !share(r->gpu, &r->memory->state[i], r->frame->state[i], r->state_bytes[i]))
      return false;
  return true;
}

static bool take_all_back(const run *r) {
  bool all = true;
  for (size_t i = 0; i < r->memory->slots.count; i++)
    all = take_back(r->gpu, &r->memory->slots.data[i]) && all;
  for (int32_t i = 0; i < r->gpu->states; i++)
    all = take_back(r->gpu, &r->memory->state[i]) && all;
  return all;
}

static void *weight_memory(lp_gpu *gpu, const lp_gpu_ref *ref) {
  char key[32];
  snprintf(key, sizeof key, "%" PRId64, ref->index);
  void *memory = lp_map_get(gpu->weights, key);
  if (memory != NULL || ref->bytes == 0) return memory;
  memory = lp_opencl_share(gpu->cl, (void *)(uintptr_t)(gpu->weight_data + ref->index), (size_t)ref->bytes, true);
  if (memory != NULL) lp_map_put(gpu->weights, key, memory);
  return memory;
}

static void *memory_of(const run *r, const lp_gpu_ref *ref) {
  if (ref->place == LP_GPU_WEIGHT) return weight_memory(r->gpu, ref);
  if (ref->place == LP_GPU_STATE) return r->memory->state[ref->index].memory;
  return r->memory->slots.data[r->layout->slot[ref->index]].memory;
}

static bool set_arg(const run *r, void *kernel, const lp_gpu_call *call, const lp_gpu_arg *arg, int32_t index) {
  void *memory = NULL;
  int64_t size = 0;
  switch (arg->kind) {
  case LP_GPU_ARG_SIZE:
    size = eval(r->gpu, arg->size, r->sym);
    return lp_opencl_set(r->gpu->cl, kernel, index, sizeof size, &size);
  case LP_GPU_ARG_REF:
    memory = memory_of(r, &call->ref[arg->ref]);
    break;
  case LP_GPU_ARG_SCRATCH:
    memory = r->memory->slots.data[r->layout->slots].memory;
    break;
  case LP_GPU_ARG_NULL:
    break;
  }
  return lp_opencl_set(r->gpu->cl, kernel, index, sizeof memory, &memory);
}

static bool launch(const run *r, const lp_gpu_call *call, const lp_gpu_launch *launch) {
  if (launch->few != NULL) {
    int64_t few = eval(r->gpu, launch->few, r->sym);
    if (few < launch->least || few > launch->most) return true;
  }
  int64_t groups[2];
  for (int axis = 0; axis < 2; axis++) {
    int64_t size = eval(r->gpu, launch->axis[axis].size, r->sym), per = launch->axis[axis].per;
    groups[axis] = size / per + (size % per > 0);
  }
  void *kernel = lp_map_get(r->gpu->kernels, launch->kernel);
  for (int32_t i = 0; i < launch->arg_count; i++)
    if (!set_arg(r, kernel, call, &launch->arg[i], i)) return false;
  return lp_opencl_enqueue(r->gpu->cl, kernel, groups[0], groups[1], launch->threads);
}

static bool run_segment(const run *r, const lp_gpu_segment *segment) {
  if (!share_arena(r) || !share_states(r)) return false;
  for (int32_t i = 0; i < segment->count; i++) {
    const lp_gpu_call *call = &segment->call[i];
    for (int32_t k = 0; k < call->launcher->count; k++)
      if (!launch(r, call, &call->launcher->launch[k])) return false;
  }
  return true;
}

lp_status lp_gpu_run(lp_gpu *gpu, lp_gpu_memory *memory, int32_t layout, int32_t segment, const lp_frame *frame,
                     size_t arena_bytes, const size_t *state_bytes, lp_diag *diag) {
  const run r = {.gpu = gpu,
                 .memory = memory,
                 .layout = &gpu->table.layout[layout],
                 .frame = frame,
                 .sym = frame->sym,
                 .arena_bytes = arena_bytes,
                 .state_bytes = state_bytes};
  pthread_mutex_lock(&gpu->one);
  bool done = run_segment(&r, &gpu->table.segment[segment]);
  done = take_all_back(&r) && done;
  done = lp_opencl_finish(gpu->cl) && done;
  lp_status status = LP_OK;
  if (!done) {
    status = lp_error(diag, LP_LOC_FILE(gpu->file), "'%s' cannot run the code: %s", lp_opencl_device(gpu->cl),
                      lp_opencl_error(gpu->cl));
    lp_note(diag, LP_LOC_NONE, "a shorter context, fewer sequences or --kv-dtype=f16 need less memory");
  }
  pthread_mutex_unlock(&gpu->one);
  return status;
}
