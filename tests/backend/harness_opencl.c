/* Running as OpenCL: the kernels and the table of launches go through the runtime, on whatever device the loader finds. */
#include "harness.h"

#include "runtime/gpu.h"

#include <stdlib.h>

bool harness_has_opencl(char why[256]) {
  lp_opencl *cl = NULL;
  lp_diag *diag = lp_diag_create();
  bool found = lp_opencl_open("kernels.cl", "", 0, &cl, diag) == LP_OK;
  if (!found) snprintf(why, 256, "%s", lp_diag_get(diag, 0)->text);
  lp_opencl_close(cl);
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

static void run_segment(const lp_frame *frame, int64_t thread) {
  (void)thread;
  if (lp_gpu_run(now.gpu, now.memory, now.layout, now.segment, frame, now.arena_bytes, now.state_bytes, now.h->diag) !=
      LP_OK)
    harness_fail(now.h, "cannot run");
  lp_gpu_memory_reset(now.gpu, now.memory); /* the runner's memory goes */
}

static void open_code(harness *h, const lp_backend *backend, const lp_emit_options *options, const lp_buf *weights) {
  lp_buf kernels = {0}, table = {0};
  if (backend->emit(h->module, options, LP_EMIT_SOURCE, &kernels, h->diag) != LP_OK ||
      backend->emit(h->module, options, LP_EMIT_LAUNCHES, &table, h->diag) != LP_OK)
    harness_fail(h, "cannot emit");
  const lp_gpu_source source = {.kernels_file = "kernels.cl",
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

void harness_run_opencl(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job) {
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
