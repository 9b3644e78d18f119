/* A GPU as one of those of several ranks: gathers in its memory. */
#include "runtime/gpu/code.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/memory.h"

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
