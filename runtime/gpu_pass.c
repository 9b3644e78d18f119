/* Segments run as the table of launches says, with sizes put in: for one sequence, or for several in one pass. Then what is joint is
 * launched once over the rows of all, every other call for one sequence after the other. */
#include "runtime/gpu_internal.h"

static lp_gpu_value value_of(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call,
                             const lp_gpu_arg *arg) {
  lp_gpu_value value = {.is_memory = arg->kind != LP_GPU_ARG_SIZE};
  switch (arg->kind) {
  case LP_GPU_ARG_SIZE:
    value.size = lp_gpu_eval(pass->gpu, arg->size, part->frame->sym);
    if (pass->by_address && arg->moving >= 0) value.at = pass->memory->moving + arg->moving;
    break;
  case LP_GPU_ARG_REF:
    value.memory = lp_gpu_memory_of(pass, part, &call->ref[arg->ref]);
    break;
  case LP_GPU_ARG_SCRATCH:
    value.memory = lp_gpu_scratch_of(pass, part);
    break;
  case LP_GPU_ARG_NULL:
    break;
  }
  return value;
}

static bool launch(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call,
                   const lp_gpu_launch *launch) {
  const int64_t *sym = part->number == 0 ? pass->grid_sym : part->frame->sym;
  if (launch->few != NULL) {
    int64_t few = lp_gpu_eval(pass->gpu, launch->few, part->frame->sym);
    if (few < launch->least || few > launch->most) return true;
  }
  lp_gpu_value value[LP_GPU_MOST_ARGS];
  lp_gpu_work work = {.kernel = lp_map_get(pass->gpu->kernels, launch->kernel),
                      .threads = launch->threads,
                      .count = launch->arg_count,
                      .arg = value};
  for (int axis = 0; axis < 2; axis++) {
    int64_t size = lp_gpu_eval(pass->gpu, launch->axis[axis].size, sym), per = launch->axis[axis].per;
    work.groups[axis] = size / per + (size % per > 0);
    if (work.groups[axis] <= 0) return true;
  }
  for (int32_t i = 0; i < launch->arg_count; i++)
    value[i] = value_of(pass, part, call, &launch->arg[i]);
  return pass->gpu->api->launch(pass->memory->queue, &work);
}

static bool launch_call(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call) {
  for (int32_t i = 0; i < call->launcher->count; i++)
    if (!launch(pass, part, call, &call->launcher->launch[i])) return false;
  return true;
}

bool lp_gpu_launch_all(const lp_gpu_pass *pass, const lp_gpu_segment *segment) {
  const lp_gpu_part all = lp_gpu_part_of(pass, 0);
  bool done = true;
  for (int32_t i = 0; i < segment->count && done; i++) {
    const lp_gpu_call *call = &segment->call[i];
    if (pass->frame->sequences == 0 || call->joint) {
      done = launch_call(pass, &all, call);
      continue;
    }
    for (int32_t k = 1; k <= pass->frame->sequences && done; k++) {
      const lp_gpu_part part = lp_gpu_part_of(pass, k);
      done =
          lp_gpu_take_rows(pass, &part, call) && launch_call(pass, &part, call) && lp_gpu_give_rows(pass, &part, call);
    }
  }
  return done;
}

lp_status lp_gpu_run(lp_gpu *gpu, lp_gpu_memory *memory, int32_t layout, int32_t segment, const lp_frame *frame,
                     size_t arena_bytes, const lp_gpu_owner *owner, lp_diag *diag) {
  const lp_gpu_pass pass = {.gpu = gpu,
                            .memory = memory,
                            .layout = &gpu->table.layout[layout],
                            .frame = frame,
                            .owner = owner,
                            .grid_sym = frame->sym};
  memory->busy = true;
  bool done = lp_gpu_give(&pass, arena_bytes) && lp_gpu_launch_recorded(&pass, segment);
  if (done && gpu->api->apart) return LP_OK;
  done = lp_gpu_take_back(&pass) && done;
  done = gpu->api->finish(memory->queue) && done;
  memory->busy = false;
  return done ? LP_OK : lp_gpu_report(gpu, memory, diag);
}
