/* Runs a job through lp_gpu_run, in the host's memory or the GPU's own. */
#include "tests/gpu/job.h"
#include "runtime/gpu/gpu.h"

/* The state of the runner's functions, which take no user data. */
static struct {
  lp_gpu *gpu;
  lp_gpu_memory *memory;
  int32_t layout, segment, states;
  size_t arena_bytes;
  const size_t *state_bytes;
  lp_diag *diag;
  lp_status status;
} now;

static int64_t lay_out(const int64_t *sym, int64_t *offset) {
  now.arena_bytes = (size_t)lp_gpu_lay_out(now.gpu, now.layout, sym, offset);
  return (int64_t)now.arena_bytes;
}

static lp_status run(const lp_frame *frame) {
  const lp_gpu_owner owner = {now.memory, now.state_bytes};
  return lp_gpu_run(now.gpu, now.memory, now.layout, now.segment, frame, now.arena_bytes, &owner, now.diag);
}

static lp_status bring_states(const lp_frame *frame, void **state) {
  for (int32_t i = 0; i < now.states; i++) {
    LP_TRY(lp_gpu_reserve(now.gpu, now.memory, now.state_bytes[i] + 1, "caches", &state[i], now.diag));
    const lp_gpu_rows rows = {LP_GPU_FROM_HOST, state[i], frame->state[i], 0, 0, now.state_bytes[i], 1};
    LP_TRY(lp_gpu_copy(now.gpu, now.memory, &rows, now.diag));
  }
  return LP_OK;
}

static lp_status fetch_states(const lp_frame *frame, void **state) {
  for (int32_t i = 0; i < now.states; i++) {
    const lp_gpu_rows rows = {LP_GPU_TO_HOST, frame->state[i], state[i], 0, 0, now.state_bytes[i], 1};
    LP_TRY(lp_gpu_copy(now.gpu, now.memory, &rows, now.diag));
  }
  return LP_OK;
}

/* The runner's memory goes to the GPU's own, and back afterwards. */
static lp_status run_apart(const lp_frame *frame) {
  void *state[GPU_JOB_MOST_STATES] = {NULL};
  lp_frame own = *frame;
  own.state = state;
  own.arena = NULL;
  LP_TRY(lp_gpu_make_arena(now.gpu, now.memory, now.arena_bytes + 1, now.diag));
  LP_TRY(lp_gpu_write(now.gpu, now.memory, 0, frame->arena, now.arena_bytes, now.diag));
  lp_status status = bring_states(frame, state);
  if (status == LP_OK) status = run(&own);
  if (status == LP_OK) status = lp_gpu_read(now.gpu, now.memory, 0, frame->arena, now.arena_bytes, now.diag);
  if (status == LP_OK) status = fetch_states(frame, state);
  for (int32_t i = 0; i < now.states; i++)
    lp_gpu_release(now.gpu, now.memory, state[i]);
  return status;
}

static void run_segment(const lp_frame *frame, int64_t thread) {
  (void)thread;
  now.status = lp_gpu_is_apart(now.gpu) ? run_apart(frame) : run(frame);
  lp_gpu_memory_reset(now.gpu, now.memory); /* the runner's memory goes */
}

static lp_status find_and_run(const runner_job *job) {
  now.memory = lp_gpu_memory_create(now.gpu);
  now.layout = lp_gpu_find_layout(now.gpu, "lp_layout_0");
  now.segment = now.layout < 0 ? -1 : lp_gpu_find_segment(now.gpu, "lp_segment_0", now.layout);
  now.status = LP_OK;
  if (now.segment < 0)
    now.status = lp_error(now.diag, LP_LOC_NONE, "there is no layout or segment 0");
  else if (runner_execute(lay_out, run_segment, job) != 0)
    now.status = lp_error(now.diag, LP_LOC_NONE, "memory outside of the arena was written");
  lp_gpu_memory_free(now.gpu, now.memory);
  return now.status;
}

lp_status gpu_job_run(const lp_gpu_source *source, const size_t *state_bytes, const runner_job *job, lp_diag *diag) {
  now.diag = diag;
  now.states = source->states;
  now.state_bytes = state_bytes;
  LP_TRY(lp_gpu_create(source, &now.gpu, diag));
  lp_status status = find_and_run(job);
  lp_gpu_free(now.gpu);
  return status;
}
