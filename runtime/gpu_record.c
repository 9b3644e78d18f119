/* Steps of a generation launch the same kernels on the same memory, and only the number of past tokens grows. Where an interface can
 * record launches, a segment that is run twice alike is recorded, and replayed as long as the past stays within a grain: then grids
 * and memory hold for the greatest past of the grain, and kernels read the sizes that grow from memory, where each run puts them.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu_internal.h"

enum { GRAIN = 256 }; /* tokens */

void lp_gpu_grain(const lp_gpu *gpu, const int64_t *sym, int64_t out[LP_MAX_NAMED_SYMBOLS]) {
  size_t count = gpu->table.symbols.names.count;
  memcpy(out, sym, sizeof *out * count);
  if (count > LP_SYM_P) out[LP_SYM_P] = sym[LP_SYM_P] / GRAIN * GRAIN + GRAIN - 1;
}

/* ---- what grows with the context ------------------------------------------------------------------------------------- */

static bool grows(const lp_poly *size) {
  return lp_poly_has(size, LP_SYM_P + 1);
}

static int32_t place_of(lp_gpu *gpu, const lp_poly *size) {
  for (size_t i = 0; i < gpu->moving.count; i++)
    if (lp_poly_equal(gpu->moving.data[i], size)) return (int32_t)i;
  lp_vec_push(&gpu->moving, size);
  return (int32_t)gpu->moving.count - 1;
}

static bool launch_repeats(const lp_gpu_launch *launch) {
  bool grid = grows(launch->axis[0].size) || grows(launch->axis[1].size);
  return (launch->few == NULL || !grows(launch->few)) && (launch->spare || !grid);
}

static bool segment_repeats(const lp_gpu_segment *segment) {
  for (int32_t i = 0; i < segment->count; i++)
    for (int32_t k = 0; k < segment->call[i].launcher->count; k++)
      if (!launch_repeats(&segment->call[i].launcher->launch[k])) return false;
  return true;
}

void lp_gpu_find_moving(lp_gpu *gpu) {
  for (int32_t i = 0; i < gpu->table.launcher_count; i++)
    for (int32_t k = 0; k < gpu->table.launcher[i].count; k++) {
      lp_gpu_launch *launch = &gpu->table.launcher[i].launch[k];
      for (int32_t n = 0; n < launch->arg_count; n++)
        if (launch->arg[n].kind == LP_GPU_ARG_SIZE && grows(launch->arg[n].size))
          launch->arg[n].moving = place_of(gpu, launch->arg[n].size);
    }
  for (int32_t i = 0; i < gpu->table.segment_count; i++)
    gpu->table.segment[i].repeats = segment_repeats(&gpu->table.segment[i]);
}

/* ---- recordings ------------------------------------------------------------------------------------------------------- */

static void put(lp_buf *key, const void *data, size_t bytes) {
  lp_buf_append(key, data, bytes);
}

/* All that a recording holds but the sizes that grow. */
static void make_key(const lp_gpu_pass *pass, const int64_t *most, lp_buf *key) {
  const lp_gpu *gpu = pass->gpu;
  lp_buf_clear(key);
  const int64_t at[] = {pass->layout - gpu->table.layout, (int64_t)(uintptr_t)pass->memory->arena};
  put(key, at, sizeof at);
  put(key, most, sizeof *most * gpu->table.symbols.names.count);
  put(key, pass->frame->offset, sizeof *pass->frame->offset * ((size_t)pass->layout->buffers + 1));
  put(key, pass->frame->state, sizeof *pass->frame->state * (size_t)gpu->states);
}

static lp_gpu_recording *recording_of(lp_gpu_memory *memory, int32_t segment) {
  for (size_t i = 0; i < memory->recordings.count; i++)
    if (memory->recordings.data[i].segment == segment) return &memory->recordings.data[i];
  lp_vec_push(&memory->recordings, ((lp_gpu_recording){.segment = segment}));
  return &memory->recordings.data[memory->recordings.count - 1];
}

static bool bring_moving(const lp_gpu_pass *pass) {
  lp_gpu *gpu = pass->gpu;
  lp_gpu_memory *memory = pass->memory;
  size_t count = gpu->moving.count;
  if (count == 0) return true;
  if (memory->moving == NULL) memory->moving = gpu->api->reserve(memory->queue, count * sizeof *memory->moving);
  if (memory->moving == NULL) return false;
  int64_t *now = lp_alloc(count * sizeof *now);
  for (size_t i = 0; i < count; i++)
    now[i] = lp_gpu_eval(gpu, gpu->moving.data[i], pass->frame->sym);
  bool brought = gpu->api->copy(memory->queue, memory->moving, false, now, true, count * sizeof *now);
  free(now);
  return brought;
}

static bool record(const lp_gpu_pass *pass, const int64_t *most, const lp_gpu_segment *segment,
                   lp_gpu_recording *recording) {
  const lp_gpu_api *api = pass->gpu->api;
  lp_gpu_pass recorded = *pass;
  recorded.grid_sym = most;
  recorded.by_address = true;
  if (!api->record(pass->memory->queue)) return false;
  bool launched = lp_gpu_launch_all(&recorded, segment);
  recording->recording = api->recorded(pass->memory->queue);
  return launched && recording->recording != NULL;
}

bool lp_gpu_launch_recorded(const lp_gpu_pass *pass, int32_t index) {
  const lp_gpu_segment *segment = &pass->gpu->table.segment[index];
  const lp_gpu_api *api = pass->gpu->api;
  lp_gpu_memory *memory = pass->memory;
  int64_t most[LP_MAX_NAMED_SYMBOLS];
  lp_buf key = {0};
  if (api->record == NULL || !segment->repeats) return lp_gpu_launch_all(pass, segment);
  lp_gpu_recording *recording = recording_of(memory, index);
  lp_gpu_grain(pass->gpu, pass->frame->sym, most);
  make_key(pass, most, &key);
  bool same = recording->key.size == key.size && memcmp(recording->key.data, key.data, key.size) == 0;
  if (!same) {
    api->recording_free(memory->queue, recording->recording);
    lp_buf_free(&recording->key);
    recording->key = key;
    recording->recording = NULL;
    return lp_gpu_launch_all(pass, segment);
  }
  lp_buf_free(&key);
  if (recording->failed) return lp_gpu_launch_all(pass, segment);
  if (!bring_moving(pass)) return false;
  if (recording->recording == NULL && !record(pass, most, segment, recording)) {
    recording->failed = true; /* what could not be recorded can be launched, or says there what is wrong */
    return lp_gpu_launch_all(pass, segment);
  }
  return api->replay(memory->queue, recording->recording);
}

void lp_gpu_drop_recordings(lp_gpu *gpu, lp_gpu_memory *memory) {
  for (size_t i = 0; i < memory->recordings.count; i++) {
    gpu->api->recording_free(memory->queue, memory->recordings.data[i].recording);
    lp_buf_free(&memory->recordings.data[i].key);
  }
  memory->recordings.count = 0;
  gpu->api->release(gpu->device, memory->moving);
  memory->moving = NULL;
}
