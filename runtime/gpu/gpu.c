/* One side's code on a GPU: kernels and layouts. */
#include "runtime/gpu/gpu.h"
#include "base/map.h"
#include "base/poly.h"
#include "runtime/gpu/internal.h"

#include <stdlib.h>

enum { SLOT_ALIGNMENT = 4096 }; /* so that a GPU can share them in place */

const lp_gpu_api *lp_gpu_api_find(const char *language) {
  static const lp_gpu_api *const all[] = {&lp_gpu_cuda, &lp_gpu_opencl};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    if (lp_streq(all[i]->language, language)) return all[i];
  return NULL;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

/* A library that has no product to do is not opened. */
static lp_status find_library(lp_gpu *gpu, lp_diag *diag) {
  for (int32_t i = 0; i < gpu->table.launcher_count && gpu->api->library != NULL; i++)
    for (int32_t k = 0; k < gpu->table.launcher[i].count; k++)
      if (gpu->table.launcher[i].launch[k].product != NULL) return gpu->api->library(gpu->device, &gpu->library, diag);
  return LP_OK;
}

static bool is_for(const lp_gpu *gpu, const lp_gpu_launch *launch, int32_t sm) {
  if (launch->by == LP_GPU_BY_LIBRARY && gpu->library == NULL) return false;
  return launch->most_sm == 0 || (sm >= launch->least_sm && sm <= launch->most_sm);
}

/* Launches for other architectures are left out, and those for a library that is not there. */
static void choose_launches(lp_gpu *gpu) {
  const int32_t sm = gpu->api->architecture != NULL ? gpu->api->architecture(gpu->device) : 0;
  for (int32_t i = 0; i < gpu->table.launcher_count; i++) {
    lp_gpu_launcher *launcher = &gpu->table.launcher[i];
    int32_t kept = 0;
    for (int32_t k = 0; k < launcher->count; k++) {
      const lp_gpu_launch *launch = &launcher->launch[k];
      if (is_for(gpu, launch, sm)) launcher->launch[kept++] = *launch;
    }
    launcher->count = kept;
  }
}

static lp_status find_kernels(lp_gpu *gpu, lp_diag *diag) {
  for (int32_t i = 0; i < gpu->table.launcher_count; i++) {
    const lp_gpu_launcher *launcher = &gpu->table.launcher[i];
    for (int32_t k = 0; k < launcher->count; k++) {
      const char *name = launcher->launch[k].kernel;
      if (name == NULL || lp_map_has(gpu->kernels, name)) continue;
      void *kernel = gpu->api->kernel(gpu->device, name);
      if (kernel == NULL) return lp_error(diag, LP_LOC_FILE(gpu->file), "the kernels have no '%.80s'", name);
      lp_map_put(gpu->kernels, name, kernel);
    }
  }
  return LP_OK;
}

static lp_status open_gpu(lp_gpu *gpu, const lp_gpu_source *source, lp_diag *diag) {
  const lp_gpu_text text = {source->kernels_file, source->kernels, source->kernels_size};
  LP_TRY(lp_gpu_table_parse(gpu->file, source->table, source->table_size, gpu->arena, &gpu->table, diag));
  gpu->api = lp_gpu_api_find(gpu->table.language);
  LP_TRY(gpu->api->open(&text, &gpu->device, diag));
  LP_TRY(find_library(gpu, diag));
  choose_launches(gpu);
  lp_gpu_find_repeats(gpu);
  lp_gpu_find_tables(gpu);
  LP_TRY(find_kernels(gpu, diag));
  if (gpu->api->apart) gpu->top = gpu->api->kernel(gpu->device, "lp_top");
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
  if (gpu == NULL) return;
  if (gpu->device != NULL) {
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

bool lp_gpu_applies(const lp_gpu *gpu, const lp_gpu_launch *launch, const int64_t *sym) {
  if (launch->few == NULL) return true;
  int64_t few = lp_gpu_eval(gpu, launch->few, sym);
  return few >= launch->least && few <= launch->most;
}

const char *lp_gpu_library_used(lp_gpu *gpu) {
  return atomic_load(&gpu->library_used) ? gpu->library->name : NULL;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

int64_t lp_gpu_eval(const lp_gpu *gpu, const lp_poly *size, const int64_t *sym) {
  return lp_poly_eval(size, sym, gpu->table.symbols.names.count);
}

int64_t lp_gpu_slot_bytes(const lp_gpu *gpu, const lp_gpu_slot *slot, const int64_t *sym) {
  int64_t most = 0;
  for (int32_t i = 0; i < slot->count; i++) {
    int64_t bytes = lp_gpu_eval(gpu, slot->size[i], sym);
    if (bytes > most) most = bytes;
  }
  return most;
}

int64_t lp_gpu_scratch_bytes(const lp_gpu *gpu, const lp_gpu_layout *layout, const int64_t *sym) {
  int64_t most = 0;
  for (int32_t i = 0; i < layout->scratch_count; i++) {
    const lp_gpu_scratch *scratch = &layout->scratch[i];
    int64_t bytes = lp_gpu_eval(gpu, scratch->bytes, sym);
    if (scratch->library && gpu->library == NULL) continue;
    if (lp_gpu_eval(gpu, scratch->few, sym) <= scratch->most && bytes > most) most = bytes;
  }
  return most;
}

int64_t lp_gpu_workspace_bytes(const lp_gpu *gpu, const int64_t *sym) {
  for (int32_t i = 0; i < gpu->table.launcher_count && gpu->library != NULL; i++)
    for (int32_t k = 0; k < gpu->table.launcher[i].count; k++) {
      const lp_gpu_launch *launch = &gpu->table.launcher[i].launch[k];
      if (launch->product != NULL && lp_gpu_applies(gpu, launch, sym))
        return lp_gpu_end_of(0, (int64_t)gpu->library->workspace);
    }
  return 0;
}

int64_t lp_gpu_end_of(int64_t begin, int64_t bytes) {
  if (begin < 0 || bytes > INT64_MAX / 2 - begin) return -1;
  return (begin + bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

/* Memory apart is laid out for all contexts of a grain, so that it stays where it is. */
static int64_t room_for(const lp_gpu *gpu, const lp_gpu_layout *layout, int32_t slot, const int64_t *sym) {
  int64_t most[LP_MAX_NAMED_SYMBOLS];
  int64_t bytes =
      slot < layout->slots ? lp_gpu_slot_bytes(gpu, &layout->sizes[slot], sym) : lp_gpu_scratch_bytes(gpu, layout, sym);
  if (!gpu->api->apart) return bytes;
  lp_gpu_grain(gpu, sym, sym[LP_SYM_P], most);
  int64_t later = slot < layout->slots ? lp_gpu_slot_bytes(gpu, &layout->sizes[slot], most)
                                       : lp_gpu_scratch_bytes(gpu, layout, most);
  return later > bytes ? later : bytes;
}

int64_t lp_gpu_lay_out(const lp_gpu *gpu, int32_t index, const int64_t *sym, int64_t *offset) {
  const lp_gpu_layout *layout = &gpu->table.layout[index];
  int64_t end = 0;
  for (int32_t i = 0; i < layout->slots && end >= 0; i++) {
    for (int32_t k = 0; k < layout->buffers; k++)
      if (layout->slot[k] == i) offset[k] = end;
    end = lp_gpu_end_of(end, room_for(gpu, layout, i, sym));
  }
  end = lp_gpu_end_of(end, lp_gpu_workspace_bytes(gpu, sym));
  offset[layout->buffers] = end;
  return lp_gpu_end_of(end, room_for(gpu, layout, layout->slots, sym));
}
