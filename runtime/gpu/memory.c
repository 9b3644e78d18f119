/* The memory that a GPU works on: host memory that it shares and gives back, or memory of its own with copies from
 * and to the host. */
#include "runtime/gpu/memory.h"

#include "base/abi.h"
#include "base/map.h"
#include "base/units.h"
#include "runtime/gpu/sizes.h"

/* ---- errors ------------------------------------------------------------------------------------------------------ */

lp_status lp_gpu_report(lp_gpu *gpu, const lp_gpu_memory *memory, lp_diag *diag) {
  const lp_collective *ranks = gpu->ranks;
  const bool ended = ranks && ranks->has_ended(ranks->self);
  const char *why = ranks ? ranks->error(ranks->self) : "";
  if (why[0] != '\0') return lp_error(diag, LP_LOC_FILE(gpu->file), "the ranks cannot gather their parts: %s", why);
  if (ended) return lp_error(diag, LP_LOC_FILE(gpu->file), "a rank of the sharded half has ended");
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

/* ---- weights ----------------------------------------------------------------------------------------------------- */

lp_status lp_gpu_bring_weights(lp_gpu *gpu, lp_diag *diag) {
  if (!gpu->api->apart || gpu->weight_bytes == 0) return LP_OK;
  lp_gpu_queue *queue = gpu->api->queue_create(gpu->device);
  gpu->all_weights = gpu->api->reserve(queue, gpu->weight_bytes);
  lp_status status = LP_OK;
  if (!gpu->all_weights)
    status = report_no_room(
        gpu, queue, gpu->weight_bytes, "weights",
        "weights of fewer bits (--dtype-cloud=int4), more layers on the other side, or a GPU that nothing else uses",
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
  if (!memory && ref->bytes > 0) {
    void *host = (void *)(uintptr_t)(gpu->weight_data + ref->index);
    memory = gpu->api->share(queue, host, (size_t)ref->bytes, true);
    if (memory) lp_map_put(gpu->weights, key, memory);
  }
  pthread_mutex_unlock(&gpu->one);
  return memory;
}

/* ---- of an executor ---------------------------------------------------------------------------------------------- */

lp_gpu_memory *lp_gpu_memory_create(const lp_gpu *gpu) {
  lp_gpu_memory *memory = lp_alloc(sizeof *memory);
  memory->queue = gpu->api->queue_create(gpu->device);
  memory->state = lp_alloc(sizeof *memory->state * ((size_t)gpu->states + 1));
  return memory;
}

static void drop(lp_gpu *gpu, lp_gpu_queue *queue, lp_gpu_shared *range) {
  if (range->mapped) (void)gpu->api->unmap(queue, range->memory, range->mapped);
  gpu->api->release(gpu->device, range->memory);
  *range = (lp_gpu_shared){0};
}

static void drop_recordings(lp_gpu *gpu, lp_gpu_memory *memory) {
  for (size_t i = 0; i < memory->recordings.count; i++) {
    gpu->api->recording_free(memory->queue, memory->recordings.data[i].recording);
    lp_buf_free(&memory->recordings.data[i].key);
  }
  memory->recordings.count = 0;
  gpu->api->release(gpu->device, memory->tables);
  memory->tables = NULL;
  memory->table_bytes = 0;
}

void lp_gpu_memory_reset(lp_gpu *gpu, lp_gpu_memory *memory) {
  if (gpu->api->apart) (void)gpu->api->finish(memory->queue);
  for (size_t i = 0; i < memory->slots.count; i++)
    drop(gpu, memory->queue, &memory->slots.data[i]);
  memory->slots.count = 0;
  for (int32_t i = 0; i < gpu->states; i++)
    drop(gpu, memory->queue, &memory->state[i]);
  if (gpu->api->record) drop_recordings(gpu, memory);
  gpu->api->release(gpu->device, memory->top);
  memory->top = NULL;
  memory->top_bytes = 0;
  gpu->api->release(gpu->device, memory->arena);
  memory->arena = NULL;
  memory->arena_bytes = 0;
  (void)gpu->api->finish(memory->queue);
  memory->busy = false;
}

void lp_gpu_memory_free(lp_gpu *gpu, lp_gpu_memory *memory) {
  if (!memory) return;
  lp_gpu_memory_reset(gpu, memory);
  gpu->api->queue_free(memory->queue);
  lp_vec_free(&memory->slots);
  lp_vec_free(&memory->recordings);
  free(memory->state);
  free(memory);
}

/* In the GPU's own memory, a part has the same offset in the pass's arena as its frame has in the frames' arenas. */
static char *place_apart(const lp_gpu_pass *pass, const lp_frame *frame, int64_t buffer) {
  uintptr_t from_begin = (uintptr_t)frame->arena - (uintptr_t)pass->frame->arena;
  return pass->memory->arena + from_begin + frame->offset[buffer];
}

static void *shared_slot(const lp_gpu_pass *pass, int32_t part, int32_t slot) {
  return pass->memory->slots.data[(size_t)part * ((size_t)pass->layout->slots + 1) + (size_t)slot].memory;
}

static void *buffer_of(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_ref *ref) {
  if (!pass->gpu->api->apart) return shared_slot(pass, part->number, pass->layout->slot[ref->index]);
  if (part->number == 0 || ref->holds == LP_GPU_OWN) return place_apart(pass, part->frame, ref->index);
  return place_apart(pass, pass->frame, ref->index) + lp_gpu_rows_before(part, ref->holds) * ref->bytes;
}

void *lp_gpu_memory_of(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_ref *ref) {
  lp_gpu *gpu = pass->gpu;
  switch (ref->place) {
  case LP_GPU_WEIGHT:
    return gpu->api->apart ? gpu->all_weights + ref->index : share_weight(gpu, pass->memory->queue, ref);
  case LP_GPU_STATE:
    return gpu->api->apart ? part->frame->state[ref->index] : part->owner->memory->state[ref->index].memory;
  case LP_GPU_BUFFER:
    break;
  }
  return buffer_of(pass, part, ref);
}

void *lp_gpu_scratch_of(const lp_gpu_pass *pass, const lp_gpu_part *part) {
  return pass->gpu->api->apart ? place_apart(pass, part->frame, pass->layout->buffers)
                               : shared_slot(pass, part->number, pass->layout->slots);
}

/* ---- shared with the host ---------------------------------------------------------------------------------------- */

static bool share(const lp_gpu_pass *pass, lp_gpu_shared *range, char *host, size_t bytes) {
  const lp_gpu_api *api = pass->gpu->api;
  lp_gpu_queue *queue = pass->memory->queue;
  if (range->memory && range->host == host && range->bytes == bytes) {
    bool given = !range->mapped || api->unmap(queue, range->memory, range->mapped);
    range->mapped = NULL;
    return given;
  }
  drop(pass->gpu, queue, range);
  void *shared = api->share(queue, host, bytes, false);
  *range = (lp_gpu_shared){.host = host, .bytes = bytes, .memory = shared};
  return range->memory != NULL;
}

static bool take_back(const lp_gpu_pass *pass, lp_gpu_shared *range) {
  if (!range->memory) return true;
  range->mapped = pass->gpu->api->map(pass->memory->queue, range->memory, range->bytes);
  return range->mapped != NULL;
}

static size_t slots_of(const lp_gpu_pass *pass) {
  return (size_t)pass->layout->slots + 1;
}

/* Shares each slot, up to the beginning of the next one. */
static bool share_arena(const lp_gpu_pass *pass, const lp_gpu_part *part, size_t arena_bytes) {
  const lp_gpu *gpu = pass->gpu;
  const lp_gpu_layout *layout = pass->layout;
  size_t before = (size_t)(part->frame->arena - pass->frame->arena), begin = 0;
  lp_gpu_shared *slot = &pass->memory->slots.data[(size_t)part->number * slots_of(pass)];
  for (size_t i = 0; i < slots_of(pass); i++) {
    int64_t bytes = i < (size_t)layout->slots ? lp_gpu_slot_bytes(gpu, &layout->sizes[i], part->frame->sym)
                                              : lp_gpu_scratch_bytes(gpu, layout, part->frame->sym);
    size_t end = (size_t)lp_gpu_end_of((int64_t)begin, bytes);
    if (end > arena_bytes - before) return false;
    if (end > begin && !share(pass, &slot[i], part->frame->arena + begin, end - begin)) return false;
    if (end == begin) drop(pass->gpu, pass->memory->queue, &slot[i]);
    begin = end;
  }
  return true;
}

static bool share_states(const lp_gpu_pass *pass, const lp_gpu_part *part) {
  const lp_gpu_owner *owner = part->owner;
  for (int32_t i = 0; owner && i < pass->gpu->states; i++)
    if (part->frame->state[i] && owner->state_bytes[i] > 0 &&
        !share(pass, &owner->memory->state[i], part->frame->state[i], owner->state_bytes[i]))
      return false;
  return true;
}

bool lp_gpu_give(const lp_gpu_pass *pass, size_t arena_bytes) {
  lp_gpu_memory *memory = pass->memory;
  if (pass->gpu->api->apart) return arena_bytes <= memory->arena_bytes;
  size_t parts = (size_t)pass->frame->sequences + 1, count = parts * slots_of(pass);
  while (memory->slots.count > count)
    drop(pass->gpu, memory->queue, &memory->slots.data[--memory->slots.count]);
  while (memory->slots.count < count)
    lp_vec_push(&memory->slots, ((lp_gpu_shared){0}));
  for (size_t i = 0; i < parts; i++) {
    const lp_gpu_part part = lp_gpu_part_of(pass, (int64_t)i);
    if (!share_arena(pass, &part, arena_bytes) || !share_states(pass, &part)) return false;
  }
  return true;
}

bool lp_gpu_take_back(const lp_gpu_pass *pass) {
  bool all = true;
  if (pass->gpu->api->apart) return true;
  for (size_t i = 0; i < pass->memory->slots.count; i++)
    all = take_back(pass, &pass->memory->slots.data[i]) && all;
  for (int64_t i = 0; i <= pass->frame->sequences; i++) {
    const lp_gpu_part part = lp_gpu_part_of(pass, i);
    for (int32_t k = 0; part.owner && k < pass->gpu->states; k++)
      all = take_back(pass, &part.owner->memory->state[k]) && all;
  }
  return all;
}

static bool move_rows(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call, bool back) {
  const lp_gpu_api *api = pass->gpu->api;
  const int64_t *sym = part->frame->sym;
  bool all = true;
  for (int32_t i = 0; i < call->ref_count && all && !api->apart; i++) {
    const lp_gpu_ref *ref = &call->ref[i];
    if (ref->place != LP_GPU_BUFFER || ref->holds == LP_GPU_OWN) continue;
    int64_t rows = sym[LP_SYM_B] * sym[ref->holds == LP_GPU_NEW_ROWS ? LP_SYM_S : LP_SYM_R];
    size_t begin = (size_t)(lp_gpu_rows_before(part, ref->holds) * ref->bytes), bytes = (size_t)(rows * ref->bytes);
    void *own = shared_slot(pass, part->number, pass->layout->slot[ref->index]);
    void *joint = shared_slot(pass, 0, pass->layout->slot[ref->index]);
    if (bytes == 0) continue;
    all = back ? api->move(pass->memory->queue, joint, begin, own, 0, bytes)
               : api->move(pass->memory->queue, own, 0, joint, begin, bytes);
  }
  return all;
}

bool lp_gpu_take_rows(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call) {
  return move_rows(pass, part, call, false);
}

bool lp_gpu_give_rows(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call) {
  return move_rows(pass, part, call, true);
}

/* ---- the GPU's own memory ---------------------------------------------------------------------------------------- */

bool lp_gpu_is_apart(const lp_gpu *gpu) {
  return gpu->api->apart;
}

lp_status lp_gpu_reserve(lp_gpu *gpu, lp_gpu_memory *memory, size_t bytes, const char *what, void **out,
                         lp_diag *diag) {
  *out = gpu->api->reserve(memory->queue, bytes);
  memory->busy = true;
  if (*out) return lp_gpu_wait(gpu, memory, diag); /* the first use may be on another queue */
  lp_status status = report_no_room(
      gpu, memory->queue, bytes, what,
      "a shorter context, fewer sequences, --kv-dtype=f16 or a smaller --context-budget need less", diag);
  (void)gpu->api->finish(memory->queue); /* the error is reported already */
  return status;
}

void lp_gpu_release(lp_gpu *gpu, lp_gpu_memory *memory, void *reserved) {
  if (!reserved) return;
  (void)gpu->api->finish(memory->queue);
  gpu->api->release(gpu->device, reserved);
}

lp_status lp_gpu_wait(lp_gpu *gpu, lp_gpu_memory *memory, lp_diag *diag) {
  if (!memory->busy) return LP_OK;
  memory->busy = false;
  return gpu->api->finish(memory->queue) ? LP_OK : lp_gpu_report(gpu, memory, diag);
}

/* Reserves half as much again, so that a context that grows by one token per step does not reserve memory at each
 * step. */
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
  memory->busy = true;
  if (bytes == 0 || gpu->api->copy(memory->queue, memory->arena + offset, false, data, true, bytes)) return LP_OK;
  (void)gpu->api->finish(memory->queue);
  return lp_gpu_report(gpu, memory, diag);
}

lp_status lp_gpu_read(lp_gpu *gpu, lp_gpu_memory *memory, size_t offset, void *out, size_t bytes, lp_diag *diag) {
  memory->busy = false;
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

/* ---- the greatest of rows ---------------------------------------------------------------------------------------- */

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
  const lp_gpu_work work = {.kernel = gpu->top,
                            .groups = {top->rows, 1, 1},
                            .threads = THREADS,
                            .count = LP_COUNT(value),
                            .overlaps = gpu->table.overlapping,
                            .arg = value};
  bool found =
      gpu->api->launch(memory->queue, &work) && gpu->api->copy(memory->queue, out, true, memory->top, false, bytes);
  return gpu->api->finish(memory->queue) && found ? LP_OK : lp_gpu_report(gpu, memory, diag);
}

/* ---- parts of a pass --------------------------------------------------------------------------------------------- */

lp_gpu_part lp_gpu_part_of(const lp_gpu_pass *pass, int64_t number) {
  bool alone = pass->frame->sequences == 0;
  return (lp_gpu_part){.frame = number == 0 ? pass->frame : &pass->frame->sequence[number - 1],
                       .number = (int32_t)number,
                       .owner = alone         ? pass->owner
                                : number == 0 ? NULL
                                              : &pass->owner[number - 1]};
}

int64_t lp_gpu_sequences(const lp_gpu_pass *pass) {
  return pass->frame->sequences > 0 ? pass->frame->sequences : 1;
}

int64_t lp_gpu_longest_past(const lp_gpu_pass *pass) {
  int64_t longest = pass->frame->sequences == 0 ? pass->frame->sym[LP_SYM_P] : 0;
  for (int64_t i = 0; i < pass->frame->sequences; i++)
    if (pass->frame->sequence[i].sym[LP_SYM_P] > longest) longest = pass->frame->sequence[i].sym[LP_SYM_P];
  return longest;
}

int64_t lp_gpu_rows_before(const lp_gpu_part *part, lp_gpu_holds holds) {
  return holds == LP_GPU_NEW_ROWS ? part->frame->row : part->frame->last_row;
}
