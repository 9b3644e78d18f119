/* One side's code on a GPU: opens it, finds its segments, runs them, and gathers the parts of several ranks. */
#include "runtime/gpu/gpu.h"

#include "base/abi.h"
#include "base/map.h"
#include "runtime/gpu/memory.h"
#include "runtime/gpu/pass.h"
#include "runtime/gpu/tables.h"

/* ---- creation ---------------------------------------------------------------------------------------------------- */

/* Opens the library of products if the code has any. */
static lp_status find_library(lp_gpu *gpu, lp_diag *diag) {
  for (int32_t i = 0; i < gpu->table.launcher_count && gpu->api->library; i++)
    for (int32_t k = 0; k < gpu->table.launcher[i].count; k++)
      if (gpu->table.launcher[i].launch[k].product) return gpu->api->library(gpu->device, &gpu->library, diag);
  return LP_OK;
}

static bool is_for(const lp_gpu *gpu, const lp_gpu_launch *launch, int32_t sm) {
  if (launch->by == LP_GPU_BY_LIBRARY && !gpu->library) return false;
  return launch->most_sm == 0 || (sm >= launch->least_sm && sm <= launch->most_sm);
}

/* Drops launches for other architectures, and those for a library that is missing. */
static void choose_launches(lp_gpu *gpu) {
  const int32_t sm = gpu->api->architecture(gpu->device);
  LP_FOR_EACH(lp_gpu_launcher, launcher, gpu->table.launcher, gpu->table.launcher_count) {
    int32_t kept = 0;
    LP_FOR_EACH(const lp_gpu_launch, launch, launcher->launch, launcher->count)
      if (is_for(gpu, launch, sm)) launcher->launch[kept++] = *launch;
    launcher->count = kept;
  }
}

static lp_status find_kernels(lp_gpu *gpu, lp_diag *diag) {
  LP_FOR_EACH(const lp_gpu_launcher, launcher, gpu->table.launcher, gpu->table.launcher_count) {
    for (int32_t k = 0; k < launcher->count; k++) {
      const char *name = launcher->launch[k].kernel;
      if (!name || lp_map_has(gpu->kernels, name)) continue;
      void *kernel = gpu->api->kernel(gpu->device, name);
      if (!kernel) return lp_error(diag, LP_LOC_FILE(gpu->file), "the kernels have no '%.80s'", name);
      lp_map_put(gpu->kernels, name, kernel);
    }
  }
  return LP_OK;
}

static lp_status open_gpu(lp_gpu *gpu, const lp_gpu_source *source, lp_diag *diag) {
  const lp_gpu_text text = {source->kernels_file, source->kernels, source->kernels_size, source->number};
  LP_TRY(lp_gpu_table_parse(gpu->file, source->table, source->table_size, gpu->arena, &gpu->table, diag));
  gpu->api = lp_gpu_api_find(gpu->table.language);
  LP_TRY(gpu->api->open(&text, &gpu->device, diag));
  LP_TRY(find_library(gpu, diag));
  choose_launches(gpu);
  lp_gpu_find_repeats(gpu);
  lp_gpu_find_tables(gpu);
  LP_TRY(find_kernels(gpu, diag));
  if (gpu->api->apart) gpu->top = gpu->api->kernel(gpu->device, "lp_find_top");
  return lp_gpu_bring_weights(gpu, diag);
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
  lp_status status = open_gpu(gpu, source, diag);
  if (status != LP_OK) {
    lp_gpu_free(gpu);
    gpu = NULL;
  }
  *out = gpu;
  return status;
}

void lp_gpu_free(lp_gpu *gpu) {
  if (!gpu) return;
  if (gpu->device) {
    for (size_t i = 0; i < lp_map_count(gpu->weights); i++)
      gpu->api->release(gpu->device, lp_map_value_at(gpu->weights, i));
    gpu->api->release(gpu->device, gpu->all_weights);
    for (size_t i = 0; i < lp_map_count(gpu->kernels); i++)
      gpu->api->kernel_free(gpu->device, lp_map_value_at(gpu->kernels, i));
    gpu->api->kernel_free(gpu->device, gpu->top);
    gpu->api->close(gpu->device);
  }
  lp_map_free(gpu->weights);
  lp_map_free(gpu->kernels);
  lp_vec_free(&gpu->moving);
  lp_vec_free(&gpu->own);
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

bool lp_gpu_runs_sequences(const lp_gpu *gpu) {
  return gpu->table.sequences;
}

bool lp_gpu_is_profiled(const lp_gpu *gpu) {
  return gpu->table.profiled;
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

const char *lp_gpu_library_used(lp_gpu *gpu) {
  return atomic_load(&gpu->library_used) ? gpu->library->name : NULL;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

lp_status lp_gpu_run(lp_gpu *gpu, lp_gpu_memory *memory, int32_t layout, int32_t segment, const lp_frame *frame,
                     size_t arena_bytes, const lp_gpu_owner *owner, lp_diag *diag) {
  lp_gpu_pass pass = {
      .gpu = gpu, .memory = memory, .layout = &gpu->table.layout[layout], .frame = frame, .owner = owner};
  memory->busy = true;
  bool done = lp_gpu_give(&pass, arena_bytes) && lp_gpu_launch_recorded(&pass, segment);
  if (done && gpu->api->apart) return LP_OK;
  done = lp_gpu_take_back(&pass) && done;
  done = gpu->api->finish(memory->queue) && done;
  memory->busy = false;
  return done ? LP_OK : lp_gpu_report(gpu, memory, diag);
}

/* ---- one of the GPUs of several ranks ---------------------------------------------------------------------------- */

bool lp_gpu_gathers(const lp_gpu *gpu) {
  return gpu->api->gather != NULL;
}

bool lp_gpu_enter(lp_gpu *gpu) {
  return gpu->api->enter(gpu->device);
}

void lp_gpu_join(lp_gpu *gpu, const lp_collective *ranks) {
  gpu->ranks = ranks;
  gpu->api->join(gpu->device, ranks);
}

/* Puts the parts of all ranks into the result, as lp_collective_join does. */
static bool put_parts(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_parts *parts) {
  const size_t size = parts->outer * parts->inner;
  const int32_t share = gpu->ranks->count / parts->parts; /* ranks with the same part */
  bool all = true;
  for (int32_t i = 0; i < parts->parts && all; i++) {
    const lp_gpu_rows rows = {.direction = LP_GPU_WITHIN,
                              .to = memory->arena + parts->whole + (size_t)i * parts->inner,
                              .from = memory->arena + parts->room + (size_t)(i * share) * size,
                              .to_apart = parts->inner * (size_t)parts->parts,
                              .from_apart = parts->inner,
                              .run = parts->inner,
                              .count = parts->outer};
    all = gpu->api->copy_rows(memory->queue, &rows);
  }
  return all;
}

lp_status lp_gpu_gather(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_parts *parts, lp_diag *diag) {
  const size_t size = parts->outer * parts->inner;
  const bool direct = parts->outer == 1 && parts->parts == gpu->ranks->count;
  if (size == 0) return LP_OK;
  memory->busy = true;
  bool done = gpu->api->gather(memory->queue, memory->arena + parts->part, size,
                               memory->arena + (direct ? parts->whole : parts->room));
  if (done && !direct) done = put_parts(gpu, memory, parts);
  if (done) return LP_OK;
  (void)gpu->api->finish(memory->queue);
  return lp_gpu_report(gpu, memory, diag);
}
