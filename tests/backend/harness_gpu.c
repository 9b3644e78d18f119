/* Running as the runtime does: OpenCL or CUDA kernels and the table of launches, on whatever device there is. */
#include "harness.h"

#include "runtime/gpu.h"

#include <stdlib.h>
#include <string.h>

bool harness_has_gpu(const char *language, char why[256]) {
  const lp_gpu_api *api = lp_gpu_api_find(language);
  const lp_gpu_text text = {"kernels", "", 0};
  lp_gpu_device *device = NULL;
  lp_diag *diag = lp_diag_create();
  bool found = api->open(&text, &device, diag) == LP_OK;
  if (!found) snprintf(why, 256, "%s", lp_diag_get(diag, 0)->text);
  api->close(device);
  lp_diag_free(diag);
  return found;
}

/* What the runner's functions, which take no user data, work with. */
static struct {
  harness *h;
  lp_gpu *gpu;
  lp_gpu_memory *memory;
  int32_t layout, segment;
  size_t arena_bytes, state_bytes[64];
} now;

static int64_t lay_out(const int64_t *sym, int64_t *offset) {
  now.arena_bytes = (size_t)lp_gpu_lay_out(now.gpu, now.layout, sym, offset);
  return (int64_t)now.arena_bytes;
}

static void must(lp_status status, const char *what) {
  if (status != LP_OK) harness_fail(now.h, what);
}

static void run(const lp_frame *frame) {
  must(lp_gpu_run(now.gpu, now.memory, now.layout, now.segment, frame, now.arena_bytes, now.state_bytes, now.h->diag),
       "cannot run");
}

/* The runner's memory goes to the GPU's own, and back afterwards. */
static void run_apart(const lp_frame *frame) {
  lp_diag *diag = now.h->diag;
  void *state[64];
  lp_frame own = *frame;
  own.state = state;
  own.arena = NULL;
  must(lp_gpu_make_arena(now.gpu, now.memory, now.arena_bytes + 1, diag), "no room");
  must(lp_gpu_write(now.gpu, now.memory, 0, frame->arena, now.arena_bytes, diag), "cannot write");
  for (int32_t i = 0; i < now.h->state_count; i++) {
    lp_gpu_rows rows = {LP_GPU_FROM_HOST, NULL, frame->state[i], 0, 0, now.state_bytes[i], 1};
    must(lp_gpu_reserve(now.gpu, now.memory, now.state_bytes[i] + 1, "caches", &state[i], diag), "no room");
    rows.to = state[i];
    must(lp_gpu_copy(now.gpu, now.memory, &rows, diag), "cannot copy");
  }
  run(&own);
  must(lp_gpu_read(now.gpu, now.memory, 0, frame->arena, now.arena_bytes, diag), "cannot read");
  for (int32_t i = 0; i < now.h->state_count; i++) {
    const lp_gpu_rows rows = {LP_GPU_TO_HOST, frame->state[i], state[i], 0, 0, now.state_bytes[i], 1};
    must(lp_gpu_copy(now.gpu, now.memory, &rows, diag), "cannot copy");
    lp_gpu_release(now.gpu, now.memory, state[i]);
  }
}

static void run_segment(const lp_frame *frame, int64_t thread) {
  (void)thread;
  if (lp_gpu_is_apart(now.gpu))
    run_apart(frame);
  else
    run(frame);
  lp_gpu_memory_reset(now.gpu, now.memory); /* the runner's memory goes */
}

static void open_code(harness *h, const lp_backend *backend, const lp_emit_options *options, const lp_buf *weights) {
  lp_buf kernels = {0}, table = {0};
  if (backend->emit(h->module, options, LP_EMIT_KERNELS, &kernels, h->diag) != LP_OK ||
      backend->emit(h->module, options, LP_EMIT_LAUNCHES, &table, h->diag) != LP_OK)
    harness_fail(h, "cannot emit");
  const lp_gpu_source source = {.kernels_file = backend->kernels,
                                .kernels = lp_buf_text(&kernels),
                                .kernels_size = kernels.size,
                                .table_file = "launches.json",
                                .table = lp_buf_text(&table),
                                .table_size = table.size,
                                .weights = weights->data,
                                .weight_bytes = weights->size,
                                .states = h->state_count};
  if (lp_gpu_create(&source, &now.gpu, h->diag) != LP_OK) harness_fail(h, "cannot load");
  lp_buf_free(&kernels);
  lp_buf_free(&table);
}

void harness_run_gpu(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job) {
  lp_buf file = {0};
  void *state[64];
  (void)harness_weights(h, backend, options, &file);
  now.h = h;
  for (int32_t i = 0; i < h->state_count; i++) {
    state[i] = h->state[i].data;
    now.state_bytes[i] = (size_t)h->state[i].bytes;
  }
  job->state = state;
  job->weights = file.data;
  open_code(h, backend, options, &file);
  now.memory = lp_gpu_memory_create(now.gpu);
  now.layout = lp_gpu_find_layout(now.gpu, "lp_layout_0");
  now.segment = lp_gpu_find_segment(now.gpu, "lp_segment_0", now.layout);
  ck_assert(now.layout >= 0 && now.segment >= 0);
  ck_assert_msg(runner_execute(lay_out, run_segment, job) == 0, "memory outside of the arena was written");
  lp_gpu_memory_free(now.gpu, now.memory);
  lp_gpu_free(now.gpu);
  free(file.data);
}
