/* Recordings. The steps of a generation launch the same kernels on the same memory; only the number of past tokens
 * grows. Where an interface can record launches, a segment that runs twice with the same key is recorded, and replayed
 * while the past stays within a grain. Grids and memory of a recording are those of the grain's longest past; kernels
 * read sizes that grow from tables, which every run fills (tables.c). A pass over several sequences is recorded anew
 * when their number or any of their other sizes changes, or when the longest past leaves its grain. */
#include "runtime/gpu/pass.h"

#include "base/abi.h"
#include "runtime/gpu/sizes.h"
#include "runtime/gpu/tables.h"

/* ---- segments that can be recorded ------------------------------------------------------------------------------- */

static bool launch_repeats(const lp_gpu_launch *launch) {
  if (launch->product) { /* products do not read sizes from memory */
    bool grows = launch->few && lp_gpu_grows(launch->few);
    return !grows && !lp_gpu_grows(launch->arg[LP_GPU_ROWS].size) && !lp_gpu_grows(launch->arg[LP_GPU_BEGIN].size);
  }
  bool grid = lp_gpu_grows(launch->axis[0].size) || lp_gpu_grows(launch->axis[1].size);
  return (!launch->few || !lp_gpu_grows(launch->few)) && (launch->spare || !grid);
}

static bool segment_repeats(const lp_gpu_segment *segment) {
  for (int32_t i = 0; i < segment->count; i++)
    for (int32_t k = 0; k < segment->call[i].launcher->count; k++)
      if (!launch_repeats(&segment->call[i].launcher->launch[k])) return false;
  return true;
}

void lp_gpu_find_repeats(lp_gpu *gpu) {
  for (int32_t i = 0; i < gpu->table.segment_count; i++)
    gpu->table.segment[i].repeats = segment_repeats(&gpu->table.segment[i]);
}

/* ---- recordings -------------------------------------------------------------------------------------------------- */

static void put(lp_buf *key, const void *data, size_t bytes) {
  lp_buf_append(key, data, bytes);
}

static void put_symbols(const lp_gpu_pass *pass, const int64_t *sym, lp_buf *key) {
  int64_t most[LP_MAX_NAMED_SYMBOLS];
  lp_gpu_grain(pass->gpu, sym, lp_gpu_longest_past(pass), most);
  put(key, most, sizeof *most * pass->gpu->table.symbols.names.count);
}

static void put_places(const lp_gpu_pass *pass, const lp_frame *frame, lp_buf *key) {
  int64_t apart = (int64_t)((uintptr_t)frame->arena - (uintptr_t)pass->frame->arena);
  put(key, &apart, sizeof apart);
  put(key, frame->offset, sizeof *frame->offset * ((size_t)pass->layout->buffers + 1));
  if (frame->state) put(key, frame->state, sizeof *frame->state * (size_t)pass->gpu->states);
}

/* The key holds everything that a recording depends on except the tables; with `places`, also addresses of the
 * sequences' own memory. */
static void make_key(const lp_gpu_pass *pass, bool places, lp_buf *key) {
  const lp_frame *frame = pass->frame;
  lp_buf_clear(key);
  const int64_t at[] = {pass->layout - pass->gpu->table.layout, (int64_t)(uintptr_t)pass->memory->arena,
                        (int64_t)(uintptr_t)pass->memory->tables, frame->sequences};
  put(key, at, sizeof at);
  put_symbols(pass, frame->sym, key);
  put_places(pass, frame, key);
  for (int64_t i = 0; i < frame->sequences; i++) {
    put_symbols(pass, frame->sequence[i].sym, key);
    if (places) put_places(pass, &frame->sequence[i], key);
  }
}

static lp_gpu_recording *recording_of(lp_gpu_memory *memory, int32_t segment) {
  for (size_t i = 0; i < memory->recordings.count; i++)
    if (memory->recordings.data[i].segment == segment) return &memory->recordings.data[i];
  lp_vec_push(&memory->recordings, ((lp_gpu_recording){.segment = segment}));
  return &memory->recordings.data[memory->recordings.count - 1];
}

static bool record(const lp_gpu_pass *pass, const lp_gpu_segment *segment, lp_gpu_recording *recording) {
  const lp_gpu_api *api = pass->gpu->api;
  lp_gpu_pass recorded = *pass;
  recorded.recorded = true;
  if (!api->record(pass->memory->queue)) return false;
  bool launched = lp_gpu_launch_all(&recorded, segment);
  recording->recording = api->recorded(pass->memory->queue);
  return launched && recording->recording;
}

/* Launches one by one; the next run with the same key records. */
static bool launch_first(lp_gpu_pass *pass, const lp_gpu_segment *segment, lp_gpu_recording *recording) {
  pass->gpu->api->recording_free(pass->memory->queue, recording->recording);
  recording->recording = NULL;
  recording->failed = false;
  bool launched = lp_gpu_launch_all(pass, segment);
  recording->places = pass->places;
  make_key(pass, recording->places, &recording->key);
  return launched;
}

bool lp_gpu_launch_recorded(lp_gpu_pass *pass, int32_t index) {
  const lp_gpu_segment *segment = &pass->gpu->table.segment[index];
  const lp_gpu_api *api = pass->gpu->api;
  bool repeats = api->record && segment->repeats && !lp_gpu_is_timed(pass),
       several = api->spreads && pass->frame->sequences > 0;
  if ((repeats || several) && !lp_gpu_bring_tables(pass)) return false;
  if (!repeats) return lp_gpu_launch_all(pass, segment);
  lp_gpu_recording *recording = recording_of(pass->memory, index);
  lp_buf key = {0};
  make_key(pass, recording->places, &key);
  bool same = recording->key.size == key.size && memcmp(recording->key.data, key.data, key.size) == 0;
  lp_buf_free(&key);
  if (!same) return launch_first(pass, segment, recording);
  if (recording->failed) return lp_gpu_launch_all(pass, segment);
  if (!recording->recording && !record(pass, segment, recording)) {
    recording->failed = true; /* launching works without a recording, or reports the error */
    return lp_gpu_launch_all(pass, segment);
  }
  return api->replay(pass->memory->queue, recording->recording);
}
