/* What a GPU works on: memory of the host that it shares and gives back, or memory of its own that is copied from and to. */
#include "runtime/gpu_internal.h"

#include <stdlib.h>

/* ---- what goes wrong ------------------------------------------------------------------------------------------------ */

lp_status lp_gpu_report(lp_gpu *gpu, const lp_gpu_memory *memory, lp_diag *diag) {
  lp_status status = lp_error(diag, LP_LOC_FILE(gpu->file), "'%s' cannot run the code: %s",
                              gpu->api->device_name(gpu->device), gpu->api->error(memory->queue));
  lp_note(diag, LP_LOC_NONE, "a shorter context, fewer sequences or --kv-dtype=f16 need less memory");
  return status;
}

static lp_status report_no_room(lp_gpu *gpu, lp_gpu_queue *queue, size_t bytes, const char *what, const char *advice,
                                lp_diag *diag) {
  char wanted[32], left[32], all[32];
  size_t left_bytes = 0, all_bytes = 0;
  gpu->api->room(queue, &left_bytes, &all_bytes);
  lp_status status = lp_error(diag, LP_LOC_FILE(gpu->file), "'%s' has no room for %s of %s: %s of %s are free",
                              gpu->api->device_name(gpu->device), lp_format_bytes((double)bytes, wanted), what,
                              lp_format_bytes((double)left_bytes, left), lp_format_bytes((double)all_bytes, all));
  lp_note(diag, LP_LOC_NONE, "%s", advice);
  return status;
}

/* ---- weights -------------------------------------------------------------------------------------------------------- */

lp_status lp_gpu_bring_weights(lp_gpu *gpu, lp_diag *diag) {
  if (!gpu->api->apart || gpu->weight_bytes == 0) return LP_OK;
  lp_gpu_queue *queue = gpu->api->queue_create(gpu->device);
  gpu->all_weights = gpu->api->reserve(queue, gpu->weight_bytes);
  lp_status status = LP_OK;
  if (gpu->all_weights == NULL)
    status = report_no_room(
        gpu, queue, gpu->weight_bytes, "weights",
        "weights of fewer bits (--dtype-cloud=int4), more layers on the other side, or a GPU that nothing "
        "else uses",
        diag);
  else if (!gpu->api->copy(queue, gpu->all_weights, false, gpu->weight_data, true, gpu->weight_bytes) ||
           !gpu->api->finish(queue))
    status = lp_error(diag, LP_LOC_FILE(gpu->file), "'%s' does not take the weights: %s",
                      gpu->api->device_name(gpu->device), gpu->api->error(queue));
  gpu->api->queue_free(queue);
  return status;
}

static void *share_weight(lp_gpu *gpu, lp_gpu_queue *queue, const lp_gpu_ref *ref) {
  char key[32];
  snprintf(key, sizeof key, "%" PRId64, ref->index);
  pthread_mutex_lock(&gpu->one);
  void *memory = lp_map_get(gpu->weights, key);
  if (memory == NULL && ref->bytes > 0) {
    void *host = (void *)(uintptr_t)(gpu->weight_data + ref->index);
    memory = gpu->api->share(queue, host, (size_t)ref->bytes, true);
    if (memory != NULL) lp_map_put(gpu->weights, key, memory);
  }
  pthread_mutex_unlock(&gpu->one);
  return memory;
}

/* ---- an executor's -------------------------------------------------------------------------------------------------- */

lp_gpu_memory *lp_gpu_memory_create(const lp_gpu *gpu) {
  lp_gpu_memory *memory = lp_alloc(sizeof *memory);
  memory->queue = gpu->api->queue_create(gpu->device);
  memory->state = lp_alloc(sizeof *memory->state * ((size_t)gpu->states + 1));
  return memory;
}

static void drop(lp_gpu *gpu, lp_gpu_memory *memory, lp_gpu_shared *range) {
  if (range->mapped != NULL) (void)gpu->api->unmap(memory->queue, range->memory, range->mapped);
  gpu->api->release(gpu->device, range->memory);
  *range = (lp_gpu_shared){0};
}

void lp_gpu_memory_reset(lp_gpu *gpu, lp_gpu_memory *memory) {
  if (gpu->api->apart) (void)gpu->api->finish(memory->queue);
  for (size_t i = 0; i < memory->slots.count; i++)
    drop(gpu, memory, &memory->slots.data[i]);
  memory->slots.count = 0;
  for (int32_t i = 0; i < gpu->states; i++)
    drop(gpu, memory, &memory->state[i]);
  if (gpu->api->record != NULL) lp_gpu_drop_recordings(gpu, memory);
  gpu->api->release(gpu->device, memory->top);
  memory->top = NULL;
  memory->top_bytes = 0;
  gpu->api->release(gpu->device, memory->arena);
  memory->arena = NULL;
  memory->arena_bytes = 0;
  (void)gpu->api->finish(memory->queue);
}

void lp_gpu_memory_free(lp_gpu *gpu, lp_gpu_memory *memory) {
  if (memory == NULL) return;
  lp_gpu_memory_reset(gpu, memory);
  gpu->api->queue_free(memory->queue);
  lp_vec_free(&memory->slots);
  lp_vec_free(&memory->recordings);
  free(memory->state);
  free(memory);
}

void *lp_gpu_memory_of(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_layout *layout, const lp_frame *frame,
                       const lp_gpu_ref *ref) {
  bool apart = gpu->api->apart;
  switch (ref->place) {
  case LP_GPU_WEIGHT:
    return apart ? gpu->all_weights + ref->index : share_weight(gpu, memory->queue, ref);
  case LP_GPU_STATE:
    return apart ? frame->state[ref->index] : memory->state[ref->index].memory;
  case LP_GPU_BUFFER:
    break;
  }
  return apart ? memory->arena + frame->offset[ref->index] : memory->slots.data[layout->slot[ref->index]].memory;
}

void *lp_gpu_scratch_of(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_layout *layout, const lp_frame *frame) {
  return gpu->api->apart ? memory->arena + frame->offset[layout->buffers] : memory->slots.data[layout->slots].memory;
}

/* ---- shared with the host ------------------------------------------------------------------------------------------- */

static bool share(lp_gpu *gpu, lp_gpu_memory *memory, lp_gpu_shared *range, char *host, size_t bytes) {
  if (range->memory != NULL && range->host == host && range->bytes == bytes) {
    bool given = range->mapped == NULL || gpu->api->unmap(memory->queue, range->memory, range->mapped);
    range->mapped = NULL;
    return given;
  }
  drop(gpu, memory, range);
  void *shared = gpu->api->share(memory->queue, host, bytes, false);
  *range = (lp_gpu_shared){.host = host, .bytes = bytes, .memory = shared};
  return range->memory != NULL;
}

static bool take_back(lp_gpu *gpu, lp_gpu_memory *memory, lp_gpu_shared *range) {
  if (range->memory == NULL) return true;
  range->mapped = gpu->api->map(memory->queue, range->memory, range->bytes);
  return range->mapped != NULL;
}

/* Each slot from where it begins to where the next one does. */
static bool share_arena(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_layout *layout, const lp_frame *frame,
                        size_t arena_bytes) {
  size_t count = (size_t)layout->slots + 1, begin = 0;
  while (memory->slots.count < count)
    lp_vec_push(&memory->slots, ((lp_gpu_shared){0}));
  for (size_t i = 0; i < count; i++) {
    int64_t bytes = i < (size_t)layout->slots ? lp_gpu_slot_bytes(gpu, &layout->sizes[i], frame->sym)
                                              : lp_gpu_scratch_bytes(gpu, layout, frame->sym);
    size_t end = (size_t)lp_gpu_end_of((int64_t)begin, bytes);
    if (end > arena_bytes) return false;
    if (end > begin && !share(gpu, memory, &memory->slots.data[i], frame->arena + begin, end - begin)) return false;
    begin = end;
  }
  return true;
}

bool lp_gpu_give(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_layout *layout, const lp_frame *frame,
                 size_t arena_bytes, const size_t *state_bytes) {
  if (gpu->api->apart) return arena_bytes <= memory->arena_bytes;
  if (!share_arena(gpu, memory, layout, frame, arena_bytes)) return false;
  for (int32_t i = 0; i < gpu->states; i++)
    if (frame->state[i] != NULL && state_bytes[i] > 0 &&
        !share(gpu, memory, &memory->state[i], frame->state[i], state_bytes[i]))
      return false;
  return true;
}

bool lp_gpu_take_back(lp_gpu *gpu, lp_gpu_memory *memory) {
  bool all = true;
  if (gpu->api->apart) return true;
  for (size_t i = 0; i < memory->slots.count; i++)
    all = take_back(gpu, memory, &memory->slots.data[i]) && all;
  for (int32_t i = 0; i < gpu->states; i++)
    all = take_back(gpu, memory, &memory->state[i]) && all;
  return all;
}

/* ---- apart from the host -------------------------------------------------------------------------------------------- */

bool lp_gpu_is_apart(const lp_gpu *gpu) {
  return gpu->api->apart;
}

lp_status lp_gpu_reserve(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, const char *what, void **out,
                         lp_diag *diag) {
  *out = gpu->api->reserve(memory->queue, bytes);
  if (*out != NULL) return LP_OK;
  lp_status status = report_no_room(
      gpu, memory->queue, bytes, what,
      "a shorter context, fewer sequences, --kv-dtype=f16 or a smaller --context-budget need less", diag);
  (void)gpu->api->finish(memory->queue); /* it is reported */
  return status;
}

void lp_gpu_release(lp_gpu *gpu, lp_gpu_memory *memory, void *reserved) {
  if (reserved == NULL) return;
  (void)gpu->api->finish(memory->queue);
  gpu->api->release(gpu->device, reserved);
}

/* A half more than asked for, so that a context that grows by one token a step does not reserve memory at each. */
lp_status lp_gpu_make_arena(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, lp_diag *diag) {
  if (bytes <= memory->arena_bytes) return LP_OK;
  size_t wanted = 0;
  if (!lp_size_add(bytes, bytes / 2, &wanted)) wanted = bytes;
  lp_gpu_release(gpu, memory, memory->arena);
  memory->arena = NULL;
  memory->arena_bytes = 0;
  void *arena = NULL;
  LP_TRY(lp_gpu_reserve(gpu, memory, wanted, "activations", &arena, diag));
  memory->arena = arena;
  memory->arena_bytes = wanted;
  return LP_OK;
}

lp_status lp_gpu_write(lp_gpu *gpu, lp_gpu_memory *memory, size_t offset, const void *data, size_t bytes,
                       lp_diag *diag) {
  if (bytes == 0 || gpu->api->copy(memory->queue, memory->arena + offset, false, data, true, bytes)) return LP_OK;
  (void)gpu->api->finish(memory->queue);
  return lp_gpu_report(gpu, memory, diag);
}

lp_status lp_gpu_read(lp_gpu *gpu, lp_gpu_memory *memory, size_t offset, void *out, size_t bytes, lp_diag *diag) {
  bool read = bytes == 0 || gpu->api->copy(memory->queue, out, true, memory->arena + offset, false, bytes);
  return gpu->api->finish(memory->queue) && read ? LP_OK : lp_gpu_report(gpu, memory, diag);
}

lp_status lp_gpu_copy(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_rows *rows, lp_diag *diag) {
  bool to_host = rows->direction == LP_GPU_TO_HOST, from_host = rows->direction == LP_GPU_FROM_HOST, all = true;
  bool joined = rows->to_apart == rows->run && rows->from_apart == rows->run;
  size_t run = joined ? rows->run * rows->count : rows->run, count = joined ? 1 : rows->count;
  for (size_t i = 0; i < count && run > 0 && all; i++)
    all = gpu->api->copy(memory->queue, rows->to + i * rows->to_apart, to_host, rows->from + i * rows->from_apart,
                         from_host, run);
  return gpu->api->finish(memory->queue) && all ? LP_OK : lp_gpu_report(gpu, memory, diag);
}

/* ---- the greatest of rows ---------------------------------------------------------------------------------------------- */

bool lp_gpu_has_top(const lp_gpu *gpu) {
  return gpu->top != NULL;
}

static lp_status make_room_for_top(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, lp_diag *diag) {
  if (bytes <= memory->top_bytes) return LP_OK;
  void *top = NULL;
  LP_TRY(lp_gpu_reserve(gpu, memory, bytes, "sampling", &top, diag));
  lp_gpu_release(gpu, memory, memory->top);
  memory->top = top;
  memory->top_bytes = bytes;
  return LP_OK;
}

lp_status lp_gpu_find_top(lp_gpu *gpu, lp_gpu_memory *memory, const lp_gpu_top *top, float *out, lp_diag *diag) {
  enum { THREADS = 1024 };
  size_t bytes = (size_t)(top->rows * (1 + 2 * top->wanted)) * sizeof *out;
  LP_TRY(make_room_for_top(gpu, memory, bytes, diag));
  const lp_gpu_value value[] = {{.is_memory = true, .memory = memory->arena + top->offset},
                                {.is_memory = true, .memory = memory->top},
                                {.size = top->vocab},
                                {.size = top->apart},
                                {.size = top->wanted}};
  const lp_gpu_work work = {
      .kernel = gpu->top, .groups = {top->rows, 1}, .threads = THREADS, .count = LP_COUNT(value), .arg = value};
  bool found =
      gpu->api->launch(memory->queue, &work) && gpu->api->copy(memory->queue, out, true, memory->top, false, bytes);
  return gpu->api->finish(memory->queue) && found ? LP_OK : lp_gpu_report(gpu, memory, diag);
}
